# SPDX-License-Identifier: BSD-3-Clause
# cmake -DFILE=file -DKEYS="a;0;b" -P json_get.cmake: prints a value of a JSON file.
file(READ ${FILE} text)
string(JSON value GET "${text}" ${KEYS})
execute_process(COMMAND ${CMAKE_COMMAND} -E echo "${value}")
