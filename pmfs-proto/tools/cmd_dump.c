/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dump - what is in a pool that is not mounted: all inodes in a line each, or single
 * ones with their block maps and entries. It reads a private copy in which recovery has
 * run, and believes nothing.
 */
#include "pmfs-proto/tools/commands.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libminl2r/tools/console.h"
#include "pmfs-proto/core/dir.h"
#include "pmfs-proto/core/map.h"
#include "pmfs-proto/core/trie.h"
#include "pmfs-proto/core/view.h"
#include "pmfs-proto/tools/json.h"

static const char help[] =
    "Usage: pmfs dump [--json] POOL [INODE ...]\n\n"
    "Shows what POOL, which must not be mounted, holds: the superblock and each inode "
    "in\n"
    "use, or the named inodes with the blocks of their maps and, of directories, "
    "their\n"
    "entries. Offsets are bytes from the start of the pool. Writes nothing.\n\n"
    "  -j, --json   one JSON object\n"
    "      --help\n\n"
    "Exit status: 0 shown, 1 failed, 2 wrong usage.\n";

struct dump {
    struct pmfs fs;
    struct map states;
    struct map inodes;
    cJSON *json; /* NULL: for people */
};

/* ---- Inodes ------------------------------------------------------------------ */

/* The state of an inode and the inode, or NULL where the table has no block for it. */
static const struct pm_inode *find_inode(struct dump *dump, uint64_t ino,
                                         uint8_t *state)
{
    const struct pmfs *fs = &dump->fs;
    uint32_t per_block = fs->block_size / PM_INODE_SIZE;
    const void *states, *inodes;

    *state = PM_STATE_FREE;
    if (ino >= fs->pm->inode_count ||
        map_block(&dump->states, ino >> fs->block_shift, &states) < 0 || !states)
        return NULL;
    *state = ((const uint8_t *)states)[ino & (fs->block_size - 1)];
    if (map_block(&dump->inodes, ino / per_block, &inodes) < 0 || !inodes)
        return NULL;
    return (const struct pm_inode *)inodes + ino % per_block;
}

static const char *state_name(uint8_t state)
{
    static const char *const names[] = {"free", "used", "orphan", "truncate"};

    return state < sizeof(names) / sizeof(names[0]) ? names[state] : "impossible";
}

static cJSON *inode_json(uint64_t ino, uint8_t state, const struct pm_inode *pm)
{
    const struct {
        const char *name;
        uint64_t value;
    } fields[] = {
        {"ino", ino},
        {"mode", pm->mode},
        {"nlink", pm->nlink},
        {"uid", pm->uid},
        {"gid", pm->gid},
        {"size", pm->size},
        {"blocks", pm->blocks},
        {"rdev", pm->rdev},
        {"parent", pm->parent},
        {"generation", pm->generation},
        {"flags", pm->flags},
        {"map_root", pm->map.root},
        {"map_height", pm->map.height},
    };
    cJSON *object = cJSON_CreateObject();

    cJSON_AddStringToObject(object, "state", state_name(state));
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        json_add_count(object, fields[i].name, fields[i].value);
    return object;
}

static void print_line(uint64_t ino, uint8_t state, const struct pm_inode *pm)
{
    printf("%10" PRIu64 "  %-8s %07o %6" PRIu32 " %6" PRIu32 " %6" PRIu32 " %14" PRIu64
           " %9" PRIu64 " %10" PRIu64 "\n",
           ino, state_name(state), pm->mode, pm->nlink, pm->uid, pm->gid, pm->size,
           pm->blocks, pm->parent);
}

static void print_heading(void)
{
    puts("     inode  state       mode  links    uid    gid           size    blocks  "
         "   parent");
}

/* ---- Block maps and entries -------------------------------------------------- */

struct extent {
    uint64_t first;  /* block of the file */
    uint64_t offset; /* in the pool */
    uint64_t count;
};

static void show_extent(cJSON *list, const struct extent *extent)
{
    if (extent->count == 0)
        return;
    if (!list) {
        printf("    blocks %" PRIu64 " to %" PRIu64 " at 0x%" PRIx64 "\n",
               extent->first, extent->first + extent->count - 1, extent->offset);
        return;
    }
    cJSON *object = cJSON_CreateObject();

    json_add_count(object, "first_block", extent->first);
    json_add_count(object, "count", extent->count);
    json_add_count(object, "offset", extent->offset);
    cJSON_AddItemToArray(list, object);
}

struct extents {
    const struct pmfs *fs;
    struct extent last; /* not shown yet */
    cJSON *list;
};

static void add_to_extents(struct extents *extents, uint64_t index, const void *block)
{
    struct extent *last = &extents->last;
    uint64_t offset = minl2r_offset(extents->fs->pool, block);

    if (last->count == 0 || index != last->first + last->count ||
        offset != last->offset + (last->count << extents->fs->block_shift)) {
        show_extent(extents->list, last);
        *last = (struct extent){.first = index, .offset = offset};
    }
    last->count++;
}

/* As many blocks as the pool has; more there are only where they are shared. */
static int show_blocks(struct dump *dump, uint64_t ino, const struct pm_inode *pm,
                       cJSON *list)
{
    const struct pmfs *fs = &dump->fs;
    struct extents extents = {.fs = fs, .list = list};
    uint64_t index = 0;
    struct map map;
    int rc = map_init(&map, fs, &pm->map, ino);

    for (uint64_t i = 0; rc == 0 && i < fs->block_count; i++, index++) {
        const void *block;

        rc = map_next(&map, index, map_end(&map), MAP_BLOCK, &index);
        if (rc < 0 || index >= map_end(&map))
            break;
        rc = map_block(&map, index, &block);
        if (rc < 0)
            break;
        add_to_extents(&extents, index, block);
    }
    show_extent(list, &extents.last);
    return rc;
}

static void show_entry(cJSON *list, const struct pm_dirent *entry)
{
    char name[4 * 255 + 1];

    utf8_escape(entry->name, entry->name_size, name);
    if (!list) {
        printf("    %10" PRIu64 "  type %2u  %s\n", entry->ino, entry->type, name);
        return;
    }
    cJSON *object = cJSON_CreateObject();

    json_add_count(object, "ino", entry->ino);
    json_add_count(object, "type", entry->type);
    cJSON_AddStringToObject(object, "name", name);
    cJSON_AddItemToArray(list, object);
}

static int show_entries(struct dump *dump, uint64_t ino, const void *block,
                        uint32_t first, cJSON *list)
{
    const struct pm_dirent *entry;

    for (uint32_t at = first; at < dump->fs.block_size; at += entry->size) {
        entry = dirent_at(&dump->fs, block, at);
        if (!entry)
            return dirent_bad(&dump->fs, ino, block, at);
        if (entry->ino)
            show_entry(list, entry);
    }
    return 0;
}

/* Of one of an older format. */
static int show_linear(struct dump *dump, uint64_t ino, const struct pm_inode *pm,
                       cJSON *list)
{
    const struct pmfs *fs = &dump->fs;
    uint64_t end = blocks_of(fs, pm->size);
    struct map map;
    int rc = map_init(&map, fs, &pm->map, ino);

    if (end > fs->block_count)
        end = fs->block_count;
    for (uint64_t i = 0; rc == 0 && i < end; i++) {
        const void *block;

        rc = map_block(&map, i, &block);
        if (rc == 0 && block)
            rc = show_entries(dump, ino, block, 0, list);
    }
    return rc;
}

typedef int block_fn(struct dump *dump, uint64_t ino, const void *block, cJSON *list);

static int show_hashed(struct dump *dump, uint64_t ino, const void *block, cJSON *list)
{
    return show_entries(dump, ino, block, dirent_tags(&dump->fs), list);
}

/* Of a directory, in the order of hashes; NULL: shows the blocks as extents. */
static int for_each_block(struct dump *dump, uint64_t ino, const struct pm_inode *pm,
                          block_fn *show, cJSON *list)
{
    struct extents extents = {.fs = &dump->fs, .list = list};
    uint64_t hash = 0, count = 0;
    uint32_t gap = 0;
    struct trie trie;
    int rc;

    do {
        rc = trie_find(&trie, &dump->fs, &pm->map, ino, hash);
        if (rc < 0)
            break;
        trie_widen(&trie);
        if (trie.block && show)
            rc = show(dump, ino, trie.block, list);
        else if (trie.block)
            add_to_extents(&extents, count, trie.block);
        count += trie.block != NULL;
        if (rc == 0)
            rc = trie_next(&trie, trie.block != NULL, &gap, &hash);
    } while (rc == 0 && hash != 0 && count < dump->fs.block_count);
    show_extent(list, &extents.last);
    return rc;
}

static int show_directory(struct dump *dump, uint64_t ino, const struct pm_inode *pm,
                          cJSON *blocks, cJSON *entries)
{
    int rc;

    if (!(pm->flags & PM_INODE_HASHED)) {
        rc = show_blocks(dump, ino, pm, blocks);
        return rc < 0 ? rc : show_linear(dump, ino, pm, entries);
    }
    rc = for_each_block(dump, ino, pm, NULL, blocks);
    return rc < 0 ? rc : for_each_block(dump, ino, pm, show_hashed, entries);
}

/* ---- Commands ---------------------------------------------------------------- */

static int check_inodes(struct dump *dump, const uint64_t *inos, int count)
{
    uint8_t state;

    for (int i = 0; i < count; i++)
        if (!find_inode(dump, inos[i], &state))
            return fs_error(ENOENT, "there is no inode %" PRIu64, inos[i]);
    return 0;
}

/* One that is there. */
static int show_inode(struct dump *dump, uint64_t ino)
{
    uint8_t state;
    const struct pm_inode *pm = find_inode(dump, ino, &state);
    cJSON *blocks = NULL, *entries = NULL;

    if (dump->json) {
        cJSON *object = inode_json(ino, state, pm);

        cJSON_AddItemToArray(cJSON_GetObjectItem(dump->json, "inodes"), object);
        blocks = cJSON_AddArrayToObject(object, "extents");
        entries = S_ISDIR(pm->mode) ? cJSON_AddArrayToObject(object, "entries") : NULL;
    } else {
        print_heading();
        print_line(ino, state, pm);
    }
    return S_ISDIR(pm->mode) ? show_directory(dump, ino, pm, blocks, entries)
                             : show_blocks(dump, ino, pm, blocks);
}

static void show_all(struct dump *dump)
{
    for (uint64_t ino = 1; ino < dump->fs.pm->inode_count; ino++) {
        uint8_t state;
        const struct pm_inode *pm = find_inode(dump, ino, &state);

        if (!pm || state == PM_STATE_FREE)
            continue;
        if (dump->json)
            cJSON_AddItemToArray(cJSON_GetObjectItem(dump->json, "inodes"),
                                 inode_json(ino, state, pm));
        else
            print_line(ino, state, pm);
    }
}

static void show_super(struct dump *dump)
{
    const struct pm_fs *pm = dump->fs.pm;

    if (dump->json) {
        json_add_count(dump->json, "format", pm->format);
        json_add_count(dump->json, "inode_count", pm->inode_count);
        json_add_count(dump->json, "created_s", pm->created_ns / 1000000000);
        json_add_count(dump->json, "block_size", dump->fs.block_size);
        return;
    }
    printf("format %" PRIu32 ", blocks of %" PRIu32
           " bytes, inode numbers below %" PRIu64 "\n",
           pm->format, dump->fs.block_size, pm->inode_count);
}

static int open_table(struct dump *dump)
{
    const struct pm_fs *pm = dump->fs.pm;

    if (pm->inode_count >> dump->fs.block_shift > dump->fs.block_count)
        return fs_error(EUCLEAN, "superblock: %" PRIu64 " inodes", pm->inode_count);
    int rc = map_init(&dump->states, &dump->fs, &pm->states, 0);
    return rc < 0 ? rc : map_init(&dump->inodes, &dump->fs, &pm->inodes, 0);
}

static int show(struct dump *dump, struct minl2r_pool *pool, const uint64_t *inos,
                int count)
{
    int rc = fs_open_super(&dump->fs, pool);

    if (rc == 0)
        rc = open_table(dump);
    if (rc == 0)
        rc = check_inodes(dump, inos, count); /* before anything is printed */
    if (rc < 0)
        return rc;
    show_super(dump);
    if (count == 0) {
        if (!dump->json)
            print_heading();
        show_all(dump);
    }
    for (int i = 0; rc == 0 && i < count; i++)
        rc = show_inode(dump, inos[i]);
    return rc;
}

static int fail(cJSON *json, const char *path, const char *why)
{
    if (json)
        cJSON_AddStringToObject(json, "error", why);
    else
        console_fail("pmfs dump", path, why);
    return PLAIN_EXIT_FAILED;
}

static int run(const char *path, const uint64_t *inos, int count, cJSON *json)
{
    struct dump dump = {.json = json};
    struct minl2r_pool *pool;
    int status = 0;

    if (view_open(path, PMFS_LAYOUT, &pool) < 0)
        return fail(json, path, minl2r_errormsg());
    if (json)
        cJSON_AddArrayToObject(json, "inodes");
    if (show(&dump, pool, inos, count) < 0)
        status = fail(json, path, pmfs_errormsg());
    minl2r_pool_close(pool);
    return status;
}

static bool parse_inos(char **arguments, int count, uint64_t *inos)
{
    for (int i = 0; i < count; i++) {
        char *end;

        errno = 0;
        inos[i] = strtoull(arguments[i], &end, 10);
        if (errno != 0 || *arguments[i] < '1' || *arguments[i] > '9' || *end != '\0') {
            fprintf(stderr, "pmfs dump: '%s' is no inode number\n", arguments[i]);
            return false;
        }
    }
    return true;
}

static int dump_pool(int count, char **arguments, bool for_programs)
{
    uint64_t *inos = calloc((size_t)count + 1, sizeof(*inos));
    cJSON *json = for_programs ? cJSON_CreateObject() : NULL;
    int status = PLAIN_EXIT_USAGE;

    if (inos && parse_inos(arguments + 1, count - 1, inos)) {
        status = run(arguments[0], inos, count - 1, json);
        if (json)
            json_print(json);
    }
    cJSON_Delete(json);
    free(inos);
    return status;
}

int cmd_dump(int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    bool json = false;
    int option;

    while ((option = getopt_long(argc, argv, "j", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (option == '?')
            return PLAIN_EXIT_USAGE;
        json = true;
    }
    if (optind == argc) {
        fputs("pmfs dump: a POOL has to be named\nTry: pmfs dump --help\n", stderr);
        return PLAIN_EXIT_USAGE;
    }
    return dump_pool(argc - optind, argv + optind, json);
}
