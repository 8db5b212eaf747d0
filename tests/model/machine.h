/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine.h - persistent memory of a few words, as docs/CRASH_MODEL.md has it.
 *
 * Stores wait in `pending`, in the order of their lines; a crash keeps of each line any
 * prefix of what waits for it. A fence makes durable what its thread has flushed.
 */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdint.h>

#define MACHINE_WORDS 40
#define MACHINE_PENDING_MAX 28

struct pending_store {
    uint8_t word;
    uint8_t flushed_by; /* bit per thread: flushed, and not fenced yet */
    uint16_t value;
};

struct machine {
    uint16_t durable[MACHINE_WORDS];
    uint16_t pending_count;
    struct pending_store pending[MACHINE_PENDING_MAX];
};

/* Which line a word lies in; of the protocol that runs on the machine. */
uint8_t line_of(uint8_t word);

uint16_t machine_load(const struct machine *m, uint8_t word);
void machine_store(struct machine *m, uint8_t word, uint16_t value);
void machine_flush(struct machine *m, uint8_t thread, uint8_t word);
void machine_fence(struct machine *m, uint8_t thread);

/* A process was killed: nobody fences any more what it flushed. */
void machine_kill(struct machine *m);

/* Calls `judge` for each state that a power failure can leave, until it says 0. */
typedef int judge_fn(void *arg, uint16_t *words);
int machine_crash(const struct machine *m, judge_fn *judge, void *arg);

#endif
