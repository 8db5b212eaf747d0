# SPDX-License-Identifier: BSD-3-Clause
# Tests of the core: allocator, log, lanes, transactions, recovery.
add_unit_test(test_writeset)
add_unit_test(test_writeset_alloc)
add_unit_test(test_writeset_slot)
add_unit_test(test_tx_random SOURCES model.c)
target_link_options(test_tx_random PRIVATE -Wl,--wrap=aligned_alloc,--wrap=calloc)
add_unit_test(test_minl2r)
add_unit_test(test_alloc)
add_unit_test(test_counts)
add_unit_test(test_spin LABELS threads)
add_unit_test(test_lane LABELS threads)
add_unit_test(test_threads LABELS threads)
add_unit_test(test_fuzz)
add_unit_test(test_large)
add_unit_test(test_process)
add_unit_test(test_create)
target_link_options(test_create PRIVATE
    -Wl,--wrap=open,--wrap=posix_fallocate,--wrap=linkat,--wrap=fsync,--wrap=pm_fence)
add_unit_test(test_watch LABELS threads)
set_target_properties(test_watch PROPERTIES ENABLE_EXPORTS ON)
add_unit_test(test_log)

add_unit_test(test_hostile)
target_compile_definitions(test_hostile PRIVATE MINL2R_TOOL="$<TARGET_FILE:minl2r_tool>")
add_dependencies(test_hostile minl2r_tool)

add_test_objects(subject subject.c)
add_unit_test(test_no_space LIBRARIES subject)
add_unit_test(test_no_memory LIBRARIES subject)
target_link_options(test_no_memory PRIVATE
    -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=strdup)

add_unit_test(test_msync LIBRARIES subject)
target_link_options(test_msync PRIVATE -Wl,--wrap=msync,--wrap=fstatfs)

add_unit_test(test_stack LIBRARIES subject LABELS plain-only)
# The dynamic linker, finding a function when it is first called, needs 3 KiB itself.
target_link_options(test_stack PRIVATE -Wl,-z,now)
