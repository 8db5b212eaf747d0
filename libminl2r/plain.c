/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/plain.h"

#include <string.h>

void plain_init(struct plain *plain)
{
    memset(plain->places, 0, sizeof(plain->places));
    plain->count = 0;
    plain->stamp = 1;
}
