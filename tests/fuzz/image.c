/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/image.h"

#include <string.h>
#include <sys/mman.h>

#include "libminl2r/recovery.h"
#include "libminl2r/tx.h"

#define EDIT_SIZE 14u
#define EDITS_MAX 40u
#define LOG_BATCH_SIZE 1024u

_Noreturn void fuzz_fail(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    abort();
}

/* ---- Pools in memory ------------------------------------------------------------- */

uint8_t *image_map(void)
{
    uint8_t *space = mmap(NULL, IMAGE_SIZE + (size_t)2 * PM_PAGE, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    fuzz_require(space != MAP_FAILED);
    fuzz_require(mprotect(space + PM_PAGE, IMAGE_SIZE, PROT_READ | PROT_WRITE) == 0);
    return space + PM_PAGE;
}

static struct pm_super *super_of(uint8_t *memory)
{
    return (struct pm_super *)(void *)memory;
}

void image_format(uint8_t *memory, const char *layout,
                  const struct minl2r_options *options)
{
    struct pm_super *super = super_of(memory);
    struct pm pm;

    memset(memory, 0, IMAGE_SIZE);
    pm_adopt(&pm, memory, IMAGE_SIZE, MINL2R_EMULATED);
    fuzz_require(pool_format(&pm, layout, 0, options) == 0);
    memset(super->uuid, 'u', sizeof(super->uuid));
    super->created_s = 1;
    super->checksum = super_checksum(super);
}

int image_open(uint8_t *memory, struct minl2r_pool *pool)
{
    struct pm pm;

    *pool = (struct minl2r_pool){.fd = -1};
    pthread_mutex_init(&pool->root_lock, NULL);
    pthread_mutex_init(&pool->tx_lock, NULL);
    pm_adopt(&pm, memory, IMAGE_SIZE, MINL2R_EMULATED);
    int rc = pool_attach(pool, &pm, NULL);
    if (rc < 0)
        return rc;
    rc = recovery_run(pool);
    if (rc < 0)
        pool_detach(pool);
    return rc;
}

void image_close(struct minl2r_pool *pool)
{
    fuzz_require(tx_free_all(pool) == 0);
    pool_detach(pool);
}

/* ---- Where things are ------------------------------------------------------------ */

uint32_t image_add_kind(struct image *image, uint32_t size)
{
    fuzz_require(image->kind_count < IMAGE_KINDS_MAX);
    image->kinds[image->kind_count].size = size;
    return image->kind_count++;
}

void image_add_object(struct image *image, uint32_t kind, uint64_t offset)
{
    struct image_kind *known = &image->kinds[kind];

    if (known->count == known->capacity) {
        known->capacity = known->capacity ? known->capacity * 2 : 16;
        known->offsets =
            realloc(known->offsets, known->capacity * sizeof(*known->offsets));
        fuzz_require(known->offsets);
    }
    known->offsets[known->count++] = offset;
}

void image_take(struct image *image, const uint8_t *memory)
{
    const struct pm_super *super = (const struct pm_super *)(const void *)memory;
    uint32_t supers = image_add_kind(image, sizeof(*super));
    uint32_t lanes = image_add_kind(image, sizeof(struct pm_lane));
    uint32_t logs = image_add_kind(image, 256);
    uint32_t bitmaps = image_add_kind(image, 64);
    uint32_t roots = image_add_kind(image, sizeof(struct pm_root));

    image->bytes = malloc(IMAGE_SIZE);
    fuzz_require(image->bytes);
    memcpy(image->bytes, memory, IMAGE_SIZE);
    image_add_object(image, supers, 0);
    for (uint32_t i = 0; i < super->lane_count; i++) {
        image_add_object(image, lanes,
                         super->lanes_offset + i * sizeof(struct pm_lane));
        image_add_object(image, logs,
                         super->logs_offset + (uint64_t)i * super->log_size);
    }
    image_add_object(image, bitmaps, super->zones_offset);
    image_add_object(image, roots, super->zones_offset + super->block_size);
}

/* ---- Edits ----------------------------------------------------------------------- */

struct damage {
    uint8_t kind;
    uint8_t mode;
    uint16_t object;
    uint16_t field;
    uint64_t operand;
};

static struct damage read_damage(const uint8_t *bytes)
{
    struct damage edit = {.kind = bytes[0], .mode = bytes[1]};

    memcpy(&edit.object, bytes + 2, 2);
    memcpy(&edit.field, bytes + 4, 2);
    memcpy(&edit.operand, bytes + 6, 8);
    return edit;
}

static uint64_t any_block(const struct image *image, uint64_t number)
{
    const struct pm_super *super = (const struct pm_super *)(const void *)image->bytes;
    uint64_t count = (IMAGE_SIZE - super->zones_offset) / super->block_size;

    return super->zones_offset + number % count * super->block_size;
}

/* The offset of a word of an object; 0 if there is no such kind. */
static uint64_t any_word(const struct image *image, uint32_t kind, uint32_t object,
                         uint32_t field)
{
    const struct image_kind *known = &image->kinds[kind % image->kind_count];

    if (known->count == 0)
        return 0;
    return known->offsets[object % known->count] + field * 8ull % known->size;
}

static uint64_t new_value(const struct image *image, const uint8_t *memory,
                          const struct damage *edit, uint64_t old)
{
    uint64_t from;

    switch (edit->mode % 8) {
    case 0:
        return edit->operand;
    case 1:
        return edit->operand & 0xff;
    case 2:
        return old + edit->operand % 8;
    case 3:
        return old - edit->operand % 8;
    case 4:
        return old ^ (uint64_t)1 << edit->operand % 64;
    case 5:
        return any_block(image, edit->operand);
    case 6:
        return ~(uint64_t)0;
    default: /* what another field holds */
        from = any_word(image, (uint32_t)edit->operand & 0xff,
                        (uint32_t)(edit->operand >> 8) & 0xffff,
                        (uint32_t)(edit->operand >> 24) & 0xffff);
        memcpy(&from, memory + from, sizeof(from));
        return from;
    }
}

static void apply_to_field(const struct image *image, uint8_t *memory,
                           const struct damage *edit)
{
    static const uint8_t sizes[] = {8, 4, 1, 2};
    uint32_t size = sizes[edit->mode / 8 % 4];
    uint32_t part = edit->mode / 32 % (8 / size) * size;
    uint64_t at = any_word(image, edit->kind, edit->object, edit->field) + part;
    uint64_t value = 0;

    if (at + 8 > IMAGE_SIZE)
        return;
    memcpy(&value, memory + at, size);
    value = new_value(image, memory, edit, value);
    memcpy(memory + at, &value, size);
}

/* ---- Records of logs ------------------------------------------------------------- */

struct batch {
    struct pm_batch header;
    uint8_t records[LOG_BATCH_SIZE];
    uint32_t size; /* of the records */
};

static void add_bytes(struct batch *batch, const void *bytes, uint32_t size)
{
    if (batch->size + size > LOG_BATCH_SIZE)
        return;
    memcpy(batch->records + batch->size, bytes, size);
    batch->size += size;
}

static void add_record(const struct image *image, struct batch *batch,
                       const struct damage *edit)
{
    uint32_t type = PM_UNDO + edit->mode / 8 % 6;
    uint64_t word = any_word(image, edit->field >> 8, edit->object, edit->field & 0xff);
    uint64_t block = any_block(image, edit->operand);
    struct pm_record record = {.type = type, .length = 8, .target = word};
    const struct pm_swap swap = {
        .old_block = any_block(image, edit->operand >> 32),
        .new_block = block,
    };

    if (type != PM_UNDO && type != PM_SWAP) {
        record.length = edit->field & 0xff;
        record.target = block;
    }
    add_bytes(batch, &record, sizeof(record));
    if (type == PM_UNDO)
        add_bytes(batch, &edit->operand, sizeof(edit->operand));
    if (type == PM_SWAP)
        add_bytes(batch, &swap, sizeof(swap));
}

/* The first batch of the next generation of lane 0, with a right checksum. */
static void write_batch(const struct image *image, uint8_t *memory, struct batch *batch)
{
    const struct pm_super *super = (const struct pm_super *)(const void *)image->bytes;
    uint64_t seed = pm_hash(super->uuid, sizeof(super->uuid), 0);
    uint8_t *at = memory + super->logs_offset;
    uint64_t settled;

    memcpy(&settled, memory + super->lanes_offset, sizeof(settled));
    batch->header.generation = settled + 1;
    batch->header.size = (uint32_t)sizeof(batch->header) + batch->size;
    memcpy(at, &batch->header, sizeof(batch->header));
    memcpy(at + sizeof(batch->header), batch->records, batch->size);
    batch->header.checksum = pm_hash(at + 8, batch->header.size - 8, seed);
    memcpy(at, &batch->header.checksum, 8);
}

void image_damage(const struct image *image, uint8_t *memory, const uint8_t *edits,
                  size_t size)
{
    struct batch batch = {.size = 0};
    struct pm_super *super = super_of(memory);

    memcpy(memory, image->bytes, IMAGE_SIZE);
    for (size_t i = 0; i < EDITS_MAX && (i + 1) * EDIT_SIZE <= size; i++) {
        struct damage edit = read_damage(edits + i * EDIT_SIZE);

        if (edit.kind % (image->kind_count + 1) == image->kind_count) {
            add_record(image, &batch, &edit);
        } else {
            edit.kind %= (uint8_t)(image->kind_count + 1);
            apply_to_field(image, memory, &edit);
        }
    }
    if (batch.size > 0)
        write_batch(image, memory, &batch);
    super->checksum = super_checksum(super);
}
