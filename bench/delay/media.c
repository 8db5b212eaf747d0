/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "bench/delay/model.h"

const struct delay_medium delay_media[] = {
    {.name = "tmpfs", .source = "this machine's memory, not delayed"},
    /*
     * Six interleaved modules. Writes: the least squares of the times of 64 B to 4 KiB
     * in graphs/12-flush_instr_lat.csv, with one fence_ns for both kinds; reads:
     * graphs/02-best_case_latency.csv (random), and the bandwidth of one thread in
     * graphs/04-bandwidth_thcount_optane.csv, where the limits are from, too.
     */
    {.name = "optane",
     .fence_ns = 112,
     .flush_line_ns = 26.6,
     .stream_line_ns = 22.7,
     .read_ns = 305,
     .read_line_ns = 22.2,
     .write_gb_s = 12.5,
     .read_gb_s = 37.6,
     .source = "J. Yang et al., An Empirical Guide to the Behavior and Use of Scalable "
               "Persistent Memory, FAST 2020; its data: github.com/NVSL/OptaneStudy"},
    /*
     * The middle of 140 to 410 ns, the range over the settings measured. Nobody has published what a write
     * with its fence takes: it is assumed to be a round trip, as a read. One module's
     * bandwidth, of two reads for each write, is divided likewise.
     */
    {.name = "cxl",
     .fence_ns = 275,
     .flush_line_ns = 5.3,
     .stream_line_ns = 5.3,
     .read_ns = 275,
     .read_line_ns = 2.7,
     .write_gb_s = 12,
     .read_gb_s = 24,
     .source = "140 to 410 ns: J. Liu et al., Systematic CXL Memory Characterization "
               "and Performance Analysis at Scale, ASPLOS 2025; 36 GB/s: Micron's "
               "CZ120; writes are assumed to take a round trip"},
};
const size_t delay_media_count = sizeof(delay_media) / sizeof(delay_media[0]);

const struct delay_medium *delay_find(const char *name)
{
    for (size_t i = 0; i < delay_media_count; i++)
        if (strcmp(delay_media[i].name, name) == 0)
            return &delay_media[i];
    return NULL;
}

/* NVSL/OptaneStudy: graphs/12-flush_instr_lat.csv and 02-best_case_latency.csv. */
const struct delay_published delay_optane_flush[] = {
    {1, 116.4267},  {2, 133.7120},   {4, 192.4694},   {8, 327.8956},
    {16, 601.0082}, {32, 1015.1672}, {64, 1774.2456}, {0}};
const struct delay_published delay_optane_stream[] = {
    {1, 124.6945},  {2, 134.6914},  {4, 211.9761},   {8, 304.6761},
    {16, 483.9664}, {32, 853.4980}, {64, 1550.5531}, {0}};
const struct delay_published delay_optane_read[] = {{1, 305.0}, {0}};
