/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.h - what passed the shadow door, for the tester's model of x86 persistency. A
 * phase is to the model what a thread is: less is promised than hardware does, where
 * locked instructions fence, and a fence is the whole thread's.
 */
#ifndef CRASH_MODEL_H
#define CRASH_MODEL_H

#include "crashtest/px86.h"
#include "tests/crash/pm_shadow.h"

static inline void model_apply(struct px86 *px86, const struct shadow_event *event)
{
    static const uint8_t kinds[] = {
        [SHADOW_STORE] = TRACE_STORE, [SHADOW_STREAM] = TRACE_STREAM,
        [SHADOW_FLUSH] = TRACE_FLUSH, [SHADOW_FENCE] = TRACE_FENCE,
        [SHADOW_MARK] = TRACE_BEGIN,
    };
    const struct trace_event translated = {
        .kind = kinds[event->kind],
        .size = event->size,
        .group = event->group,
        .thread = (uint32_t)(event->phase >> 3), /* phases are aligned */
        .at = event->at,
        .after = event->after,
    };

    px86_apply(px86, &translated, 0);
}

#endif
