# SPDX-License-Identifier: BSD-3-Clause
# Programs under test, and what they have to report. Compiled with gcc, whatever else is: the
# hooks are its own.
set(crash_programs ${PROJECT_BINARY_DIR}/tests)
file(MAKE_DIRECTORY ${crash_programs})

# add_crash_program(name source [COMPILER g++] [OPTIONS option ...] [LIBRARIES option ...])
function(add_crash_program name source)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "COMPILER" "OPTIONS;LIBRARIES")
    set(compiler ${MINL2R_GCC})
    set(standard -std=gnu11)
    if(arg_COMPILER)
        set(compiler ${arg_COMPILER})
        set(standard)
    endif()
    set(program ${crash_programs}/${name})
    add_custom_command(OUTPUT ${program}
        COMMAND env CRASHTEST_CC=${compiler}
                ${PROJECT_BINARY_DIR}/bin/crashtest-cc ${standard} -O1 -Wall -Wextra
                ${arg_OPTIONS} -o ${program} ${source} ${arg_LIBRARIES}
        DEPENDS ${source} crashtest minl2r_traced ${traced_library}
                ${PROJECT_BINARY_DIR}/bin/crashtest-cc
                ${PROJECT_SOURCE_DIR}/crashtest/runtime/intrinsics.h
                ${PROJECT_SOURCE_DIR}/crashtest/crashtest.specs
        VERBATIM)
    add_custom_target(${name} ${in_all} DEPENDS ${program})
endfunction()

# add_crash_test(name program status pattern [ENVIRONMENT VAR=VALUE ...] [OPTIONS option ...])
#
# The program must exit with `status` and print `pattern` first: see expect.sh.
function(add_crash_test name program status pattern)
    cmake_parse_arguments(PARSE_ARGV 4 arg "" "" "ENVIRONMENT;OPTIONS")
    add_test(NAME ${name}
        COMMAND ${PROJECT_SOURCE_DIR}/tests/crashtest/expect.sh ${status} ${pattern}
                ${crash_programs}/${program} ${arg_OPTIONS})
    set_tests_properties(${name} PROPERTIES
        TIMEOUT 300 LABELS "crashtest;plain-only" ENVIRONMENT "${arg_ENVIRONMENT}")
endfunction()
