/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pm_traced.c - the door to PM in programs under test: that of the hardware, but that
 * the file that is PM is not mapped anew for each state, and that the tester is told of
 * checksums.
 */
#include "libminl2r/pm.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "include/crashtest.h"
#include "libminl2r/error.h"

/* That of the hardware's door, compiled under this name. */
int pm_map_hardware(struct pm *pm, int fd, uint64_t size, bool writable);

int pm_map(struct pm *pm, int fd, uint64_t size, bool writable_wanted)
{
    void *base;

    if (!writable_wanted)
        return pm_map_hardware(pm, fd, size, false);
    base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return error_set(errno, "cannot map %llu bytes: %s", (unsigned long long)size,
                         strerror(errno));
    pm_adopt(pm, base, size, MINL2R_DAX);
    return 0;
}

/* By which the tester tells this library from the one without hooks. */
extern const char minl2r_is_traced;
__attribute__((visibility("default"))) const char minl2r_is_traced = 1;

/* Where a program's stores are recorded, they go to one place. */
int pm_watch(struct pm *pm, int fd)
{
    (void)pm;
    (void)fd;
    return 0;
}

/* Those of the hardware's door, compiled without hooks. */
uint64_t pm_hash_plainly(const void *data, size_t size, uint64_t seed);
uint64_t pm_hash_ranges_plainly(const struct pm_range *ranges, size_t count);

uint64_t pm_hash(const void *data, size_t size, uint64_t seed)
{
    crashtest_hash_begin(data, size);
    uint64_t hash = pm_hash_plainly(data, size, seed);

    crashtest_hash_end();
    return hash;
}

uint64_t pm_hash_ranges(const struct pm_range *ranges, size_t count)
{
    for (size_t i = 1; i < count; i++)
        crashtest_hash_add(ranges[i].start, ranges[i].size);
    crashtest_hash_begin(ranges[0].start, ranges[0].size);
    uint64_t hash = pm_hash_ranges_plainly(ranges, count);

    crashtest_hash_end();
    return hash;
}
