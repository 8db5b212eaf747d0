/* SPDX-License-Identifier: BSD-3-Clause */
/* place.c - names of crashes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crashtest/explore.h"
#include "crashtest/number.h"

static void *check_memory(void *memory)
{
    if (!memory) {
        fputs("crashtest: no memory to explore\n", stderr);
        exit(2);
    }
    return memory;
}

void place_finish(struct place *place)
{
    for (unsigned i = 0; i < PLACE_LEVELS; i++)
        free(place->levels[i].lines);
    *place = (struct place){0};
}

void place_add(struct place_level *level, uint64_t at, struct px86_choice choice)
{
    if (level->count == level->capacity) {
        level->capacity = level->capacity * 2 + 16;
        level->lines = check_memory(
            realloc(level->lines, level->capacity * sizeof(*level->lines)));
    }
    level->lines[level->count++] = (struct place_line){at, choice};
}

void place_copy(struct place *to, const struct place *from)
{
    for (unsigned i = 0; i < PLACE_LEVELS; i++) {
        struct place_level *level = &to->levels[i];

        level->kind = from->levels[i].kind;
        level->event = from->levels[i].event;
        level->count = 0;
        for (size_t j = 0; j < from->levels[i].count; j++)
            place_add(level, from->levels[i].lines[j].at,
                      from->levels[i].lines[j].choice);
    }
}

static const char place_letters[] = {
    [PLACE_NONE] = 0, [PLACE_POWER] = 'p', [PLACE_KILLED] = 'k', [PLACE_SAVED] = 'e'};

static void append_level(FILE *out, const struct place_level *level)
{
    fprintf(out, "%c%zu:", place_letters[level->kind], level->event);
    for (size_t i = 0; i < level->count; i++) {
        const struct place_line *line = &level->lines[i];

        fprintf(out, "%s%llx=%x.%x.%llx", i ? "," : "", (unsigned long long)line->at,
                line->choice.whole, line->choice.subset,
                (unsigned long long)line->choice.streams);
    }
}

void place_print(const struct place *place, char *text, size_t size)
{
    FILE *out = fmemopen(text, size, "w");

    text[0] = 0;
    if (!out)
        return;
    append_level(out, &place->levels[0]);
    if (place->levels[1].kind != PLACE_NONE) {
        fputc('/', out);
        append_level(out, &place->levels[1]);
    }
    fclose(out);
    text[size - 1] = 0;
}

static bool take(const char **text, char expected)
{
    if (**text != expected)
        return false;
    ++*text;
    return true;
}

static bool parse_kind(struct place_level *level, const char **text)
{
    for (enum place_kind kind = PLACE_POWER; kind <= PLACE_SAVED; kind++)
        if (take(text, place_letters[kind])) {
            level->kind = kind;
            return true;
        }
    return false;
}

static bool parse_line(struct place_level *level, const char **text)
{
    uint64_t at, whole, subset, streams;

    if (!number_take(text, 16, UINT64_MAX, &at) || !take(text, '=') ||
        !number_take(text, 16, UINT32_MAX, &whole) || !take(text, '.') ||
        !number_take(text, 16, UINT32_MAX, &subset) || !take(text, '.') ||
        !number_take(text, 16, UINT64_MAX, &streams))
        return false;
    place_add(level, at,
              (struct px86_choice){(uint32_t)whole, (uint32_t)subset, streams});
    return true;
}

static bool parse_level(struct place_level *level, const char **text)
{
    uint64_t event;

    if (!parse_kind(level, text) || !number_take(text, 10, SIZE_MAX - 1, &event))
        return false;
    level->event = event;
    if (**text == 0) /* who copies an id may leave out its last colon */
        return true;
    if (!take(text, ':'))
        return false;
    if (**text == 0 || **text == '/')
        return true;
    do {
        if (!parse_line(level, text))
            return false;
    } while (take(text, ','));
    return true;
}

bool place_parse(struct place *place, const char *text)
{
    *place = (struct place){0};
    if (!parse_level(&place->levels[0], &text))
        return false;
    if (take(&text, '/') && !parse_level(&place->levels[1], &text))
        return false;
    return *text == 0;
}
