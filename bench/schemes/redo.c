/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/schemes/redo.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct pm_redo {
    uint64_t committed; /* from | to << 32 */
    uint64_t unused[7];
};

struct pm_redo_head {
    uint32_t lines; /* of the transaction */
    uint32_t size;  /* bytes of its records */
};

struct pm_redo_record {
    uint64_t home;
    uint32_t size;
    uint32_t at; /* an image: its line; 0: the bytes follow, padded to 8 */
};

static uint64_t pad8(uint64_t size)
{
    return (size + 7) / 8 * 8;
}

static uint64_t lines_of(uint64_t size)
{
    return (size + PM_LINE - 1) / PM_LINE;
}

static uint64_t line_offset(const struct file *file, uint64_t line)
{
    return file->log_offset + line * PM_LINE;
}

static const struct pm_redo *media_of(const struct file *file)
{
    return tree_at(file, file->log_offset);
}

/* ---- Replaying ------------------------------------------------------------------- */

/* A home is anywhere in the part of the file, but not in the log. */
static bool is_home(const struct file *file, uint64_t home, uint64_t size)
{
    return home >= file->first_block && home < file->end_block &&
           size <= file->end_block - home;
}

static int replay_record(struct file *file, const struct pm_redo_record *record)
{
    const void *bytes = record->at ? tree_at(file, line_offset(file, record->at))
                                   : (const void *)(record + 1);

    if (!is_home(file, record->home, record->size))
        return -EUCLEAN;
    tree_put(file, record->home, bytes, record->size);
    return 0;
}

static int replay_transaction(struct file *file, const struct pm_redo_head *head)
{
    const uint8_t *at = (const uint8_t *)(head + 1);
    const uint8_t *end = at + head->size;
    int rc = 0;

    while (rc == 0 && at < end) {
        const struct pm_redo_record *record = (const void *)at;

        rc = replay_record(file, record);
        at += sizeof(*record) + (record->at ? 0 : pad8(record->size));
    }
    return rc;
}

static int replay(struct redo *redo, struct file *file)
{
    uint64_t line = redo->from;
    int rc = 0;

    while (rc == 0 && line < redo->to) {
        const struct pm_redo_head *head = tree_at(file, line_offset(file, line));

        if (head->lines == 0 || head->lines > redo->to - line ||
            head->size > head->lines * PM_LINE)
            return -EUCLEAN;
        rc = replay_transaction(file, head);
        line += head->lines;
    }
    return rc;
}

static void set_committed(struct redo *redo, struct file *file, uint64_t from,
                          uint64_t to)
{
    uint64_t word = from | to << 32;

    redo->from = from;
    redo->to = to;
    pm_store_nt(&file->phase, &media_of(file)->committed, &word, sizeof(word));
}

int redo_reset(struct redo *redo, struct file *file)
{
    int rc = tree_fence(file); /* what is at home, then that the log is empty */

    if (rc < 0)
        return rc;
    set_committed(redo, file, 0, 0);
    return tree_fence(file); /* that it is, then another transaction in it */
}

int redo_init(struct redo *redo, struct file *file, bool keeps_all)
{
    uint64_t word = media_of(file)->committed;
    uint64_t lines = (file->first_block - file->log_offset) / PM_LINE;

    *redo = (struct redo){.line_count = lines,
                          .from = word & UINT32_MAX,
                          .to = word >> 32,
                          .keeps_all = keeps_all};
    if (redo->from > redo->to || redo->to > lines)
        return -EUCLEAN;
    /* What a killed process has streamed may be seen and lost yet: stored again, it is
     * committed for good before home changes. */
    set_committed(redo, file, redo->from, redo->to);
    int rc = tree_fence(file);

    if (rc == 0)
        rc = replay(redo, file);
    return rc < 0 ? rc : redo_reset(redo, file);
}

void redo_finish(struct redo *redo)
{
    free(redo->head);
    free(redo->changes);
}

/* ---- Writing --------------------------------------------------------------------- */

static int make_room(struct redo *redo, const struct redo_bound *bound,
                     uint64_t head_size)
{
    if (head_size > redo->head_room) {
        free(redo->head);
        redo->head = memory_apart(head_size);
        redo->head_room = redo->head ? head_size : 0;
    }
    if (bound->changes > redo->change_room) {
        free(redo->changes);
        redo->changes = memory_apart(bound->changes * sizeof(*redo->changes));
        redo->change_room = redo->changes ? bound->changes : 0;
    }
    return redo->head && redo->changes ? 0 : -ENOMEM;
}

/* A line that nothing in [from, to) is overwritten from. 0: there is none. */
static uint64_t find_start(const struct redo *redo, uint64_t lines)
{
    uint64_t behind = redo->to > 0 ? redo->to : 1;

    if (lines <= redo->line_count - behind)
        return behind;
    return !redo->keeps_all && 1 + lines <= redo->from ? 1 : 0;
}

int redo_begin(struct redo *redo, struct file *file, const struct redo_bound *bound)
{
    uint64_t head_size = sizeof(struct pm_redo_head) + bound->bytes +
                         bound->records * (sizeof(struct pm_redo_record) + 7);
    uint64_t head_lines = lines_of(head_size);
    uint64_t image_lines = lines_of(tree_of(file)->block_size);
    uint64_t lines = head_lines + bound->images * image_lines;

    /* Without keeping all, one must fit beside the one before. */
    if (lines * (redo->keeps_all ? 1 : 2) + 1 > redo->line_count)
        return -EFBIG;
    redo->start = find_start(redo, lines);
    if (redo->start == 0)
        return -ENOSPC;
    redo->images_start = redo->image_line = redo->start + head_lines;
    redo->head_size = sizeof(struct pm_redo_head);
    redo->change_count = 0;
    return make_room(redo, bound, head_lines * PM_LINE);
}

void redo_add_change(struct redo *redo, const struct redo_change *change)
{
    assert(redo->change_count < redo->change_room);
    redo->changes[redo->change_count++] = *change;
}

bool redo_is_empty(const struct redo *redo)
{
    return redo->head_size == sizeof(struct pm_redo_head);
}

static void add_record(struct redo *redo, uint64_t home, uint64_t size, uint64_t at)
{
    struct pm_redo_record record = {home, (uint32_t)size, (uint32_t)at};

    assert(redo->head_size + sizeof(record) <= redo->head_room);
    memcpy(redo->head + redo->head_size, &record, sizeof(record));
    redo->head_size += sizeof(record);
}

void redo_bytes(struct redo *redo, struct file *file, uint64_t home, const void *src,
                uint64_t size)
{
    add_record(redo, home, size, 0);
    assert(redo->head_size + size <= redo->head_room);
    const struct redo_change change = {
        .home = home, .src = redo->head + redo->head_size, .size = size};

    memcpy(redo->head + redo->head_size, src, size);
    redo_add_change(redo, &change);
    redo->head_size += pad8(size);
    file->counts.stats.log_payload_bytes += size;
}

void redo_word(struct redo *redo, struct file *file, const uint64_t *home,
               uint64_t value)
{
    uint64_t offset =
        (uint64_t)((const uint8_t *)home - (const uint8_t *)tree_at(file, 0));

    redo_bytes(redo, file, offset, &value, sizeof(value));
    redo->changes[redo->change_count - 1].is_word = true;
}

void redo_image(struct redo *redo, struct file *file, uint64_t home, uint64_t old,
                const struct piece *piece)
{
    uint32_t size = tree_of(file)->block_size;

    add_record(redo, home, size, redo->image_line);
    tree_put_block(file, line_offset(file, redo->image_line), old, piece, size);
    redo->image_line += lines_of(size);
    file->counts.stats.log_payload_bytes += size;
    file->counts.stats.log_bytes += size;
}

/* The lines between the records and the images are left as they are. */
static uint64_t put_head(struct redo *redo, struct file *file)
{
    uint64_t head_lines = lines_of(redo->head_size);
    bool has_images = redo->image_line > redo->images_start;
    uint64_t end = has_images ? redo->image_line : redo->start + head_lines;
    const struct pm_redo_head head = {
        .lines = (uint32_t)(end - redo->start),
        .size = (uint32_t)(redo->head_size - sizeof(head)),
    };

    memcpy(redo->head, &head, sizeof(head));
    memset(redo->head + redo->head_size, 0, head_lines * PM_LINE - redo->head_size);
    tree_put(file, line_offset(file, redo->start), redo->head, head_lines * PM_LINE);
    file->counts.stats.log_bytes += head_lines * PM_LINE;
    return end;
}

int redo_commit(struct redo *redo, struct file *file)
{
    uint64_t end = put_head(redo, file);
    int rc = tree_fence(file); /* the transaction, then the word */

    if (rc < 0)
        return rc;
    set_committed(redo, file,
                  redo->keeps_all && redo->to > 0 ? redo->from : redo->start, end);
    file->counts.stats.log_bytes += sizeof(uint64_t);
    return tree_fence(file); /* the word, then home and the caller */
}
