/* SPDX-License-Identifier: BSD-3-Clause */
/* The program around the map: one command per run. */
#include "hashmap.h"

#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stress.h"

#define POOL_SIZE ((uint64_t)128 << 20)

static const char usage_text[] =
    "Usage: hashmap POOL COMMAND\n"
    "\n"
    "  put KEY VALUE   insert, or replace the value; VALUE - is read from stdin\n"
    "  get KEY         write the value to stdout\n"
    "  del KEY         delete\n"
    "  clear           delete all\n"
    "  list            all keys, with the sizes of their values\n"
    "  count           number of keys\n"
    "  check           verify the map's structure\n"
    "  stress SEED FIRST LAST\n"
    "                  run the random operations FIRST to LAST that follow from SEED; "
    "print\n"
    "                  a line for each when it is durable\n"
    "  verify SEED LAST\n"
    "                  check that operations 1 to LAST are there, all of each, and at "
    "most\n"
    "                  one more; print the number of the last one found\n"
    "\n"
    "POOL is created if it does not exist.\n";

static _Noreturn void fail(const char *what, int rc)
{
    if (rc == -ENOENT)
        errx(1, "%s: no such key", what);
    if (rc == -EUCLEAN)
        errx(1, "%s: the map is damaged", what);
    errx(1, "%s: %s", what, minl2r_errormsg());
}

static struct minl2r_pool *open_pool(const char *path)
{
    struct minl2r_pool *pool;
    int rc = minl2r_pool_open(path, HASHMAP_LAYOUT, NULL, &pool);

    if (rc == -ENOENT)
        rc = minl2r_pool_create(path, HASHMAP_LAYOUT, POOL_SIZE, NULL, &pool);
    if (rc < 0)
        fail("open", rc);
    return pool;
}

static struct bytes string_bytes(const char *string)
{
    return (struct bytes){string, strlen(string)};
}

static char *read_stdin(size_t *size)
{
    size_t capacity = 65536, count;
    char *data = malloc(capacity);

    for (*size = 0; data; *size += count) {
        count = fread(data + *size, 1, capacity - *size, stdin);
        if (count == 0)
            return data;
        if (*size + count == capacity)
            data = realloc(data, capacity *= 2);
    }
    err(1, "stdin");
}

static int print_pair(void *arg, struct bytes key, struct bytes value)
{
    (void)arg;
    printf("%.*s %zu\n", (int)key.size, (const char *)key.data, value.size);
    return 0;
}

static uint64_t parse_number(const char *text)
{
    char *end;

    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);

    if (errno != 0 || end == text || *end != '\0' || text[0] == '-')
        errx(2, "not a number: %s", text);
    return number;
}

/* ---- Commands: each gets the arguments that follow its name ---------------------- */

static int run_put(struct hashmap *map, char **arguments)
{
    struct bytes value = string_bytes(arguments[1]);
    char *data = NULL;

    if (strcmp(arguments[1], "-") == 0)
        value.data = data = read_stdin(&value.size);
    int rc = hashmap_put(map, string_bytes(arguments[0]), value);

    free(data);
    return rc;
}

static int run_get(struct hashmap *map, char **arguments)
{
    struct bytes value;
    int rc = hashmap_get(map, string_bytes(arguments[0]), &value);

    if (rc == 0)
        fwrite(value.data, 1, value.size, stdout);
    return rc;
}

static int run_del(struct hashmap *map, char **arguments)
{
    return hashmap_delete(map, string_bytes(arguments[0]));
}

/* Deleting invalidates what is being visited: it begins again for each key. */
static int delete_first(void *arg, struct bytes key, struct bytes value)
{
    (void)value;
    int rc = hashmap_delete(arg, key);

    return rc < 0 ? rc : 1;
}

static int run_clear(struct hashmap *map, char **arguments)
{
    int rc;

    (void)arguments;
    do
        rc = hashmap_each(map, delete_first, map);
    while (rc == 1);
    return rc;
}

static int run_list(struct hashmap *map, char **arguments)
{
    (void)arguments;
    return hashmap_each(map, print_pair, NULL);
}

static int run_count(struct hashmap *map, char **arguments)
{
    (void)arguments;
    printf("%llu\n", (unsigned long long)hashmap_count(map));
    return 0;
}

static int run_check(struct hashmap *map, char **arguments)
{
    (void)arguments;
    return hashmap_check(map);
}

static int run_stress(struct hashmap *map, char **arguments)
{
    return stress_run(map, parse_number(arguments[0]), parse_number(arguments[1]),
                      parse_number(arguments[2]));
}

static int run_verify(struct hashmap *map, char **arguments)
{
    return stress_verify(map, parse_number(arguments[0]), parse_number(arguments[1]));
}

struct command {
    const char *name;
    int argument_count;
    int (*run)(struct hashmap *map, char **arguments);
};

static const struct command commands[] = {
    {"put", 2, run_put},     {"get", 1, run_get},       {"del", 1, run_del},
    {"clear", 0, run_clear}, {"list", 0, run_list},     {"count", 0, run_count},
    {"check", 0, run_check}, {"stress", 3, run_stress}, {"verify", 2, run_verify},
};

/* NULL: no such command, or one that takes another number of arguments. */
static const struct command *find_command(const char *name, int argument_count)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(commands[i].name, name) == 0 &&
            commands[i].argument_count == argument_count)
            return &commands[i];
    return NULL;
}

int main(int argc, char **argv)
{
    struct hashmap map;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage_text, stdout);
        return 0;
    }
    const struct command *command = argc > 2 ? find_command(argv[2], argc - 3) : NULL;

    if (!command) {
        fputs(usage_text, stderr);
        return 2;
    }
    struct minl2r_pool *pool = open_pool(argv[1]);
    int rc = hashmap_open(&map, pool);

    if (rc == 0)
        rc = command->run(&map, argv + 3);
    if (rc < 0)
        fail(command->name, rc);
    minl2r_pool_close(pool);
    return fflush(stdout) == 0 ? 0 : 1;
}
