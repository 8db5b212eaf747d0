/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/source.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int find_program(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    *(uintptr_t *)arg = info->dlpi_addr;
    return 1; /* the program comes first */
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void find_in_library(uintptr_t address, struct source *source)
{
    Dl_info info;

    *source = (struct source){0};
    if (dladdr((void *)address, &info) == 0 || !info.dli_fname) {
        snprintf(source->place, sizeof(source->place), "0x%llx",
                 (unsigned long long)address);
        return;
    }
    snprintf(source->place, sizeof(source->place), "%s", file_name(info.dli_fname));
    if (info.dli_sname)
        snprintf(source->function, sizeof(source->function), "%s", info.dli_sname);
}

/* Paths in the current directory are shown from there, others by their last part. */
static const char *shorten(const char *path)
{
    char directory[400];
    size_t length;

    if (!getcwd(directory, sizeof(directory)))
        return file_name(path);
    length = strlen(directory);
    if (strncmp(path, directory, length) == 0 && path[length] == '/')
        return path + length + 1;
    return file_name(path);
}

static void cut(char *text, char end)
{
    char *found = strchr(text, end);

    if (found)
        *found = 0;
}

/* Inline functions of the compiler's headers are not where anybody looks. */
static bool is_of_system(const char *place)
{
    return strncmp(place, "/usr/", 5) == 0;
}

/* Reads what addr2line says: a line with the function, one with "file:line". */
static bool read_answer(FILE *answer, struct source *source)
{
    char function[300], place[500];

    if (!fgets(function, sizeof(function), answer) ||
        !fgets(place, sizeof(place), answer))
        return false;
    cut(function, '\n');
    cut(place, '\n');
    cut(place, ' '); /* "(discriminator 2)" */
    if (strstr(place, "??") || strstr(place, ":?") || is_of_system(place))
        return false;
    char *colon = strrchr(place, ':');

    source->line = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
    snprintf(source->place, sizeof(source->place), "%.199s", shorten(place));
    snprintf(source->path, sizeof(source->path), "%.*s",
             colon ? (int)(colon - place) : 0, place);
    snprintf(source->function, sizeof(source->function), "%.99s", function);
    return true;
}

/* The line of the call, not of what comes after it. */
static bool ask_addr2line(uintptr_t address, struct source *source)
{
    char program[300], command[400];
    uintptr_t base = 0;
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

    if (length <= 0 || memchr(program, '\'', (size_t)length))
        return false;
    program[length] = 0;
    dl_iterate_phdr(find_program, &base);
    snprintf(command, sizeof(command), "addr2line -f -i -C -e '%s' 0x%llx 2>/dev/null",
             program, (unsigned long long)(address - base - 1));
    FILE *answer = popen(command, "r");

    if (!answer)
        return false;
    bool found = false;

    while (!found && !feof(answer))
        found = read_answer(answer, source);
    pclose(answer);
    return found;
}

/* A report asks for the same few places again and again, and each costs a process. */
static bool find_by_addr2line(uintptr_t address, struct source *source)
{
    static struct answer {
        uintptr_t address;
        bool is_found;
        struct source source;
    } answers[64];
    struct answer *answer = &answers[address % (sizeof(answers) / sizeof(*answers))];

    if (answer->address != address) {
        answer->is_found = ask_addr2line(address, &answer->source);
        answer->address = address;
    }
    *source = answer->source;
    return answer->is_found;
}

void source_find(uintptr_t return_address, struct source *source)
{
    if (return_address == 0 || !find_by_addr2line(return_address, source))
        find_in_library(return_address, source);
}

/* Where the event's frame with a line of source is, from `frame` on; TRACE_FRAMES:
 * none. */
static size_t find_frame(const struct trace_event *event, size_t frame,
                         struct source *source)
{
    for (; frame < TRACE_FRAMES && event->frames[frame] != 0; frame++)
        if (find_by_addr2line(event->frames[frame], source))
            return frame;
    return TRACE_FRAMES;
}

void source_of_event(const struct trace_event *event, struct source *source)
{
    if (find_frame(event, 0, source) == TRACE_FRAMES)
        source_find(event->frames[0], source);
}

void source_of_program(const struct trace_event *event, struct source *source)
{
    if (event->outside != 0)
        source_find(event->outside, source);
    else
        source_of_event(event, source);
}

static void append_place(char *text, size_t size, const char *how,
                         const struct source *source)
{
    size_t length = strlen(text);
    bool has_function = source->function[0] != 0;

    snprintf(text + length, size - length, "%s%s%s%s%s", how, source->place,
             has_function ? " (" : "", source->function, has_function ? ")" : "");
}

void source_describe(const struct trace_event *event, char *text, size_t size)
{
    struct source source, caller;
    size_t frame = find_frame(event, 0, &source), next = TRACE_FRAMES;

    if (frame == TRACE_FRAMES)
        source_find(event->frames[0], &source);
    else
        next = find_frame(event, frame + 1, &caller);
    text[0] = 0;
    append_place(text, size, "", &source);
    if (next < TRACE_FRAMES)
        append_place(text, size, ", called from ", &caller);
    if (event->outside == 0 ||
        (next < TRACE_FRAMES && event->frames[next] == event->outside))
        return;
    source_find(event->outside, &caller);
    append_place(text, size, ", in a call at ", &caller);
}
