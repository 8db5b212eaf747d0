/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/fixture.h"

int main(void)
{
    return 0;
}
