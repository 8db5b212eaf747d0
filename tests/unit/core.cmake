# SPDX-License-Identifier: BSD-3-Clause
# Tests of the core: allocator, log, lanes, transactions, recovery.
add_unit_test(test_writeset)
add_unit_test(test_tx_random SOURCES model.c)
add_unit_test(test_counts)
