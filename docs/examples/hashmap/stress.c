/* SPDX-License-Identifier: BSD-3-Clause */
/* Operation i follows from the seed and i alone, so nothing but two numbers is
 * remembered. */
#include "stress.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_COUNT 4096
#define KEY_SIZE_MAX 5000
#define VALUE_SIZE_MAX ((size_t)2 << 20)

struct operation {
    unsigned key;
    size_t value_size; /* 0: delete */
    uint64_t value_seed;
};

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* Mostly small, some of many blocks, a few of megabytes. */
static size_t random_size(uint64_t *state)
{
    uint64_t kind = next_random(state) % 1024;
    uint64_t limit = kind < 800    ? 128
                     : kind < 960  ? 4096
                     : kind < 1023 ? 65536
                                   : VALUE_SIZE_MAX;

    return 8 + (size_t)(next_random(state) % (limit - 8));
}

static struct operation operation_at(uint64_t seed, uint64_t number)
{
    uint64_t state = seed ^ number * 0xd1342543de82ef95;
    unsigned key = (unsigned)(next_random(&state) % KEY_COUNT);
    bool is_delete = next_random(&state) % 4 == 0;
    size_t value_size = is_delete ? 0 : random_size(&state);

    return (struct operation){key, value_size, next_random(&state)};
}

/* Keys have different sizes; one in 64 is larger than a block. */
static struct bytes make_key(unsigned key, char buffer[KEY_SIZE_MAX])
{
    size_t size = key % 64 == 0 ? KEY_SIZE_MAX : 8 + key % 61;

    memset(buffer, '.', size);
    snprintf(buffer, 8, "%07u", key);
    return (struct bytes){buffer, size};
}

static struct bytes make_value(struct operation operation, uint64_t *buffer)
{
    uint64_t state = operation.value_seed;

    for (size_t i = 0; i < (operation.value_size + 7) / 8; i++)
        buffer[i] = next_random(&state);
    return (struct bytes){buffer, operation.value_size};
}

int stress_run(struct hashmap *map, uint64_t seed, uint64_t first, uint64_t last)
{
    static uint64_t value_buffer[VALUE_SIZE_MAX / 8];
    char key_buffer[KEY_SIZE_MAX];
    int rc = 0;

    setvbuf(stdout, NULL, _IOLBF, 0); /* each line leaves the process at once */
    for (uint64_t i = first; rc == 0 && i <= last; i++) {
        struct operation operation = operation_at(seed, i);
        struct bytes key = make_key(operation.key, key_buffer);

        if (operation.value_size > 0)
            rc = hashmap_put(map, key, make_value(operation, value_buffer));
        else if ((rc = hashmap_delete(map, key)) == -ENOENT)
            rc = 0;
        if (rc == 0 && printf("%llu %s %u\n", (unsigned long long)i,
                              operation.value_size ? "put" : "del", operation.key) < 0)
            rc = -errno;
    }
    return rc;
}

/* Does the map have for this key what `operation` left there? */
static bool shows(const struct hashmap *map, struct operation operation)
{
    static uint64_t value_buffer[VALUE_SIZE_MAX / 8];
    char key_buffer[KEY_SIZE_MAX];
    struct bytes found;
    int rc = hashmap_get(map, make_key(operation.key, key_buffer), &found);

    if (operation.value_size == 0)
        return rc == -ENOENT;
    return rc == 0 && found.size == operation.value_size &&
           memcmp(found.data, make_value(operation, value_buffer).data, found.size) ==
               0;
}

int stress_verify(const struct hashmap *map, uint64_t seed, uint64_t last)
{
    static struct operation states[KEY_COUNT];
    struct operation next = operation_at(seed, last + 1);
    uint64_t found = last, present = 0;
    int rc = hashmap_check(map);

    for (unsigned key = 0; key < KEY_COUNT; key++)
        states[key] = (struct operation){key, 0, 0};
    for (uint64_t i = 1; i <= last; i++) {
        struct operation operation = operation_at(seed, i);
        states[operation.key] = operation;
    }
    if (!shows(map, states[next.key])) {
        states[next.key] = next;
        found = last + 1;
    }
    for (unsigned key = 0; key < KEY_COUNT; key++) {
        present += states[key].value_size > 0;
        if (!shows(map, states[key])) {
            fprintf(stderr, "key %u is not as operation %llu left it\n", key,
                    (unsigned long long)found);
            rc = -EUCLEAN;
        }
    }
    if (present != hashmap_count(map)) {
        fprintf(stderr, "%llu keys, not %llu\n", (unsigned long long)hashmap_count(map),
                (unsigned long long)present);
        rc = -EUCLEAN;
    }
    printf("%llu\n", (unsigned long long)found);
    return rc;
}
