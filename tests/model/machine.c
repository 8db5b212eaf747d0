/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/model/machine.h"

#include <assert.h>
#include <string.h>

uint16_t machine_load(const struct machine *m, uint8_t word)
{
    for (uint16_t i = m->pending_count; i > 0; i--)
        if (m->pending[i - 1].word == word)
            return m->pending[i - 1].value;
    return m->durable[word];
}

/* Sorted by line, so that states which differ in nothing else are the same. */
void machine_store(struct machine *m, uint8_t word, uint16_t value)
{
    uint16_t at = m->pending_count;

    assert(m->pending_count < MACHINE_PENDING_MAX);
    while (at > 0 && line_of(m->pending[at - 1].word) > line_of(word))
        at--;
    memmove(&m->pending[at + 1], &m->pending[at],
            (size_t)(m->pending_count - at) * sizeof(m->pending[0]));
    m->pending[at] = (struct pending_store){word, 0, value};
    m->pending_count++;
}

void machine_flush(struct machine *m, uint8_t thread, uint8_t word)
{
    for (uint16_t i = 0; i < m->pending_count; i++)
        if (line_of(m->pending[i].word) == line_of(word))
            m->pending[i].flushed_by |= (uint8_t)(1u << thread);
}

void machine_fence(struct machine *m, uint8_t thread)
{
    uint16_t kept = 0;

    for (uint16_t i = 0; i < m->pending_count; i++) {
        if (m->pending[i].flushed_by >> thread & 1)
            m->durable[m->pending[i].word] = m->pending[i].value;
        else
            m->pending[kept++] = m->pending[i];
    }
    memset(&m->pending[kept], 0,
           (size_t)(m->pending_count - kept) * sizeof(m->pending[0]));
    m->pending_count = kept;
}

void machine_kill(struct machine *m)
{
    for (uint16_t i = 0; i < m->pending_count; i++)
        m->pending[i].flushed_by = 0;
}

/* Decides how much of the line that begins at pending[from] arrived, then the rest. */
static int crash_from(const struct machine *m, uint16_t from, const uint16_t *before,
                      judge_fn *judge, void *arg)
{
    uint16_t words[MACHINE_WORDS];
    uint16_t end = from;

    if (from == m->pending_count) {
        memcpy(words, before, sizeof(words));
        return judge(arg, words);
    }
    while (end < m->pending_count &&
           line_of(m->pending[end].word) == line_of(m->pending[from].word))
        end++;
    memcpy(words, before, sizeof(words));
    for (uint16_t arrived = from;; arrived++) {
        if (!crash_from(m, end, words, judge, arg))
            return 0;
        if (arrived == end)
            return 1;
        words[m->pending[arrived].word] = m->pending[arrived].value;
    }
}

int machine_crash(const struct machine *m, judge_fn *judge, void *arg)
{
    return crash_from(m, 0, m->durable, judge, arg);
}
