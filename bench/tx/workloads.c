/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/tx/tx.h"

#define BOTH_PATTERNS(...)                                                             \
    {.pattern = "hot", __VA_ARGS__},                                                   \
    {                                                                                  \
        .pattern = "random", __VA_ARGS__                                               \
    }

#define RANGES(bytes, count)                                                           \
    BOTH_PATTERNS(.name = "ranges", .op = OP_RANGES, .size = (bytes), .ranges = (count))
#define PROVE(bytes, count)                                                            \
    BOTH_PATTERNS(.name = "prove", .op = OP_PROVE, .size = (bytes), .ranges = (count))
#define BLOCK(percent)                                                                 \
    BOTH_PATTERNS(.name = "block", .op = OP_BLOCK, .size = BLOCK_SIZE, .ranges = 1,    \
                  .changed_pct = (percent))
#define SNAPSHOT(bytes, count)                                                         \
    BOTH_PATTERNS(.name = "snapshot", .op = OP_SNAPSHOT, .size = (bytes),              \
                  .ranges = (count))
#define ABORT(bytes)                                                                   \
    BOTH_PATTERNS(.name = "abort", .op = OP_ABORT_QUEUED, .size = (bytes),             \
                  .ranges = 1),                                                        \
        BOTH_PATTERNS(.name = "abort", .op = OP_ABORT_SNAPSHOT, .size = (bytes),       \
                      .ranges = 1, .changed_pct = 100)

/* clang-format off */
const struct workload workloads[] = {
    BOTH_PATTERNS(.name = "ranges", .op = OP_READ),
    RANGES(8, 1), RANGES(64, 1), RANGES(256, 1), RANGES(1024, 1), RANGES(2048, 1),
    RANGES(4096, 1),
    RANGES(8, 4), RANGES(8, 16), RANGES(8, 64),
    PROVE(8, 1), PROVE(64, 1), PROVE(256, 1), PROVE(1024, 1), PROVE(8, 4), PROVE(8, 16),
    BLOCK(10), BLOCK(25), BLOCK(50), BLOCK(75), BLOCK(100),
    SNAPSHOT(8, 1), SNAPSHOT(256, 1), SNAPSHOT(4096, 1), SNAPSHOT(8, 16),
    BOTH_PATTERNS(.name = "store64", .op = OP_STORE64, .size = 8, .ranges = 1),
    ABORT(8), ABORT(4096),
    {.name = "open", .op = OP_OPEN},
    {.name = "recover", .op = OP_RECOVER, .size = BUSY_SIZE, .ranges = BUSY_LANES},
};
/* clang-format on */

const size_t workload_count = sizeof(workloads) / sizeof(workloads[0]);

const struct column tx_columns[TX_COLUMN_COUNT] = {
    [TX_CASE] = {"case", "case", COLUMN_TEXT, 0},
    [TX_SYSTEM] = {"system", "system", COLUMN_TEXT, 0},
    [TX_PATTERN] = {"pattern", "pattern", COLUMN_TEXT, 0},
    [TX_SIZE] = {"size", "size", COLUMN_NUMBER, 0},
    [TX_RANGES] = {"ranges", "ranges", COLUMN_NUMBER, 0},
    [TX_CHANGED_PCT] = {"changed_pct", "%", COLUMN_NUMBER, 0},
    [TX_FENCES] = {"fences", "fences", COLUMN_NUMBER, 2},
    [TX_LINES_FLUSHED] = {"lines_flushed", "flushed", COLUMN_NUMBER, 2},
    [TX_LINES_STREAMED] = {"lines_streamed", "streamed", COLUMN_NUMBER, 2},
    [TX_LOG_PAYLOAD_BYTES] = {"log_payload_bytes", "saved B", COLUMN_NUMBER, 1},
    [TX_LOG_BYTES] = {"log_bytes", "log B", COLUMN_NUMBER, 1},
    [TX_NS_MEDIAN] = {"ns_median", "ns", COLUMN_NUMBER, 0},
    [TX_NS_MIN] = {"ns_min", "min", COLUMN_NUMBER, 0},
    [TX_NS_MAX] = {"ns_max", "max", COLUMN_NUMBER, 0},
    [TX_RATIO_LIBPMEMOBJ] = {"ratio_libpmemobj", "/libpmemobj", COLUMN_NUMBER, 2},
    [TX_RATIO_FLOOR] = {"ratio_floor", "/floor", COLUMN_NUMBER, 2},
};
