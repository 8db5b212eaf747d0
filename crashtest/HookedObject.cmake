# SPDX-License-Identifier: BSD-3-Clause
# add_hooked_object(objects directory source [OPTION ...])
#
# Compiles `source` by crashtest-cc into `directory`, and appends the object to the list
# `objects`. With gcc, whatever else is: the hooks are its own.
function(add_hooked_object objects directory source)
    cmake_path(ABSOLUTE_PATH source)
    cmake_path(GET source FILENAME name)
    set(directory ${CMAKE_CURRENT_BINARY_DIR}/${directory})
    set(object ${directory}/${name}.o)
    file(MAKE_DIRECTORY ${directory})
    add_custom_command(OUTPUT ${object}
        COMMAND env CRASHTEST_CC=${MINL2R_GCC}
                ${PROJECT_BINARY_DIR}/bin/crashtest-cc -c -std=gnu11 -O2 -D_GNU_SOURCE
                -fvisibility=hidden -I${PROJECT_SOURCE_DIR} ${ARGN} -MD -MF ${object}.d
                -o ${object} ${source}
        DEPENDS ${source} ${PROJECT_BINARY_DIR}/bin/crashtest-cc
                ${PROJECT_SOURCE_DIR}/crashtest/runtime/intrinsics.h
        DEPFILE ${object}.d
        VERBATIM)
    set(${objects} ${${objects}} ${object} PARENT_SCOPE)
endfunction()
