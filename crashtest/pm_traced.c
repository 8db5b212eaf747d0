/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pm_traced.c - the door to PM in programs under test: that of the hardware, but that
 * the file that is PM is not mapped anew for each state.
 */
#define pm_map pm_map_hardware
#include "libminl2r/pm_libpmem.c"
#undef pm_map

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
