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

static int put(struct hashmap *map, const char *key, const char *value)
{
    struct bytes input = string_bytes(value);
    char *data = NULL;

    if (strcmp(value, "-") == 0)
        input.data = data = read_stdin(&input.size);
    int rc = hashmap_put(map, string_bytes(key), input);

    free(data);
    return rc;
}

static int get(const struct hashmap *map, const char *key)
{
    struct bytes value;
    int rc = hashmap_get(map, string_bytes(key), &value);

    if (rc == 0)
        fwrite(value.data, 1, value.size, stdout);
    return rc;
}

/* Deleting invalidates what is being visited: it begins again for each key. */
static int delete_first(void *arg, struct bytes key, struct bytes value)
{
    (void)value;
    int rc = hashmap_delete(arg, key);

    return rc < 0 ? rc : 1;
}

static int clear(struct hashmap *map)
{
    int rc;

    do
        rc = hashmap_each(map, delete_first, map);
    while (rc == 1);
    return rc;
}

static int run(struct hashmap *map, int argc, char **argv)
{
    const char *command = argv[0];

    if (strcmp(command, "put") == 0 && argc == 3)
        return put(map, argv[1], argv[2]);
    if (strcmp(command, "get") == 0 && argc == 2)
        return get(map, argv[1]);
    if (strcmp(command, "del") == 0 && argc == 2)
        return hashmap_delete(map, string_bytes(argv[1]));
    if (strcmp(command, "clear") == 0 && argc == 1)
        return clear(map);
    if (strcmp(command, "list") == 0 && argc == 1)
        return hashmap_each(map, print_pair, NULL);
    if (strcmp(command, "count") == 0 && argc == 1)
        return printf("%llu\n", (unsigned long long)hashmap_count(map)) < 0 ? -EIO : 0;
    if (strcmp(command, "check") == 0 && argc == 1)
        return hashmap_check(map);
    if (strcmp(command, "stress") == 0 && argc == 4)
        return stress_run(map, strtoull(argv[1], NULL, 0), strtoull(argv[2], NULL, 0),
                          strtoull(argv[3], NULL, 0));
    if (strcmp(command, "verify") == 0 && argc == 3)
        return stress_verify(map, strtoull(argv[1], NULL, 0),
                             strtoull(argv[2], NULL, 0));
    fputs(usage_text, stderr);
    exit(2);
}

int main(int argc, char **argv)
{
    struct hashmap map;

    if (argc < 3) {
        fputs(usage_text,
              argc == 2 && strcmp(argv[1], "--help") == 0 ? stdout : stderr);
        return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    struct minl2r_pool *pool = open_pool(argv[1]);
    int rc = hashmap_open(&map, pool);

    if (rc == 0)
        rc = run(&map, argc - 2, argv + 2);
    if (rc < 0)
        fail(argv[2], rc);
    minl2r_pool_close(pool);
    return fflush(stdout) == 0 ? 0 : 1;
}
