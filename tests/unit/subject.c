/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/subject.h"

#include "tests/unit/transact.h"

#define BLOCK SUBJECT_BLOCK

/* ---- Places ---------------------------------------------------------------------- */

static const uint8_t *data_at(const struct subject *subject, size_t at)
{
    return (const uint8_t *)minl2r_at(subject->pool, subject->data) + at;
}

static uint8_t *seen_data(struct subject *subject, size_t at)
{
    return &subject->seen.content[0][0] + at;
}

static uint8_t *seen_block(struct subject *subject, int slot)
{
    return subject->seen.content[SUBJECT_DATA + slot];
}

/* Other bytes at every call. */
static const uint8_t *new_bytes(size_t size)
{
    static uint8_t bytes[SUBJECT_DATA * BLOCK];
    static uint64_t seed;

    fill_pattern(bytes, size, ++seed);
    return bytes;
}

/* ---- Calls ----------------------------------------------------------------------- */

static int write_at(struct subject *subject, size_t at, size_t size)
{
    const uint8_t *bytes = new_bytes(size);
    int result = minl2r_tx_write(subject->tx, data_at(subject, at), bytes, size);

    if (result == 0)
        memcpy(seen_data(subject, at), bytes, size);
    return result;
}

static int write_few_bytes(struct subject *subject)
{
    return write_at(subject, 100, 13);
}

static int write_over_blocks(struct subject *subject)
{
    return write_at(subject, BLOCK + 1000, 3 * BLOCK);
}

static int write_inside_a_write(struct subject *subject)
{
    return write_at(subject, 2 * BLOCK + 1000, 8);
}

static int zero_at(struct subject *subject, size_t at, size_t size)
{
    int result = minl2r_tx_zero(subject->tx, data_at(subject, at), size);

    if (result == 0)
        memset(seen_data(subject, at), 0, size);
    return result;
}

static int zero_over_blocks(struct subject *subject)
{
    return zero_at(subject, 4 * BLOCK - 8, 2 * BLOCK);
}

static int zero_many_blocks(struct subject *subject)
{
    return zero_at(subject, 16 * BLOCK, 36 * BLOCK);
}

static int copy_over_blocks(struct subject *subject)
{
    size_t to = 6 * BLOCK + 5, from = BLOCK + 500, size = 2 * BLOCK;
    int result =
        minl2r_tx_copy(subject->tx, data_at(subject, to), data_at(subject, from), size);

    if (result == 0)
        memmove(seen_data(subject, to), seen_data(subject, from), size);
    return result;
}

static int edit_blocks(struct subject *subject)
{
    size_t at = 8 * BLOCK + 2000, size = 2 * BLOCK;
    uint8_t *copy;
    int result = minl2r_tx_edit(subject->tx, data_at(subject, at), size, &copy);

    for (size_t i = 0; result == 0 && i < size; i += 40)
        copy[i] = seen_data(subject, at)[i] = new_bytes(8)[5];
    return result;
}

static int write_into_the_edit(struct subject *subject)
{
    return write_at(subject, 8 * BLOCK + 1000, 3 * BLOCK);
}

static int snapshot_of_bytes(struct subject *subject)
{
    size_t at = 12 * BLOCK + 10, size = 200;
    uint8_t *bytes;
    int result = minl2r_tx_snapshot(subject->tx, data_at(subject, at), size, &bytes);

    if (result == 0) {
        memcpy(bytes, new_bytes(size), size);
        memcpy(seen_data(subject, at), bytes, size);
    }
    return result;
}

static int snapshot_of_many_ranges(struct subject *subject)
{
    struct minl2r_range ranges[50];
    void *writable[50];
    size_t first = 13 * BLOCK, step = 200, size = 100;

    for (size_t i = 0; i < 50; i++)
        ranges[i] = (struct minl2r_range){data_at(subject, first + i * step), size};
    int result = minl2r_tx_snapshotv(subject->tx, ranges, 50, writable);

    for (size_t i = 0; result == 0 && i < 50; i++) {
        memcpy(writable[i], new_bytes(size), size);
        memcpy(seen_data(subject, first + i * step), writable[i], size);
    }
    return result;
}

static int write_slot(struct subject *subject, int slot, uint32_t at, uint32_t size)
{
    const uint8_t *bytes = new_bytes(size);
    int result =
        minl2r_tx_write_block(subject->tx, &subject->slots[slot], at, bytes, size);

    if (result == 0) {
        memcpy(seen_block(subject, slot) + at, bytes, size);
        if (slot >= SUBJECT_SLOTS && !subject->seen.filled[slot - SUBJECT_SLOTS]) {
            subject->seen.filled[slot - SUBJECT_SLOTS] = true;
            subject->seen.blocks_used++;
        }
    }
    return result;
}

static int write_block_in_part(struct subject *subject)
{
    return write_slot(subject, 0, 10, 100);
}

static int write_block_from_half_on(struct subject *subject)
{
    return write_slot(subject, 1, 1, 3000);
}

static int write_block_whole(struct subject *subject)
{
    return write_slot(subject, 2, 0, BLOCK);
}

static int write_block_whole_again_in_part(struct subject *subject)
{
    return write_slot(subject, 2, 500, 1000);
}

static int write_block_up_to_half(struct subject *subject)
{
    return write_slot(subject, 0, 2000, 2000);
}

static int fill_hole_in_part(struct subject *subject)
{
    return write_slot(subject, SUBJECT_SLOTS, 1000, 10);
}

static int fill_hole_whole(struct subject *subject)
{
    return write_slot(subject, SUBJECT_SLOTS + 1, 0, BLOCK);
}

static int fill_hole_further(struct subject *subject)
{
    return write_slot(subject, SUBJECT_SLOTS, 0, 900);
}

static int allocate_blocks(struct subject *subject)
{
    int result = minl2r_tx_alloc(subject->tx, 5, &subject->own, NULL);

    if (result == 0)
        subject->seen.blocks_used += 5;
    return result;
}

static int free_own_blocks(struct subject *subject)
{
    if (subject->own == 0)
        return 0; /* their allocation has failed */
    int result = minl2r_tx_free(subject->tx, subject->own + BLOCK, 2);

    if (result == 0)
        subject->seen.blocks_used -= 2;
    return result;
}

static int free_at(struct subject *subject, uint64_t index, uint64_t count)
{
    int result = minl2r_tx_free(subject->tx, subject->extra + index * BLOCK, count);

    if (result == 0)
        subject->seen.blocks_used -= count;
    return result;
}

static int free_a_block(struct subject *subject)
{
    return free_at(subject, 5, 1);
}

static int free_other_blocks(struct subject *subject)
{
    return free_at(subject, 8, 3);
}

/* Where nothing else is written. */
static int write_fresh_bytes(struct subject *subject)
{
    uint64_t at = subject->extra;

    return minl2r_tx_write_fresh(subject->tx, minl2r_at(subject->pool, at),
                                 new_bytes(1000), 1000);
}

#define CALL(function)                                                                 \
    {                                                                                  \
#function, function                                                            \
    }

const struct subject_call subject_calls[] = {
    CALL(write_few_bytes),
    CALL(write_over_blocks),
    CALL(write_inside_a_write),
    CALL(zero_over_blocks),
    CALL(copy_over_blocks),
    CALL(edit_blocks),
    CALL(write_into_the_edit),
    CALL(write_block_in_part),
    CALL(write_block_from_half_on),
    CALL(write_block_whole),
    CALL(write_block_whole_again_in_part),
    CALL(write_block_up_to_half),
    CALL(fill_hole_in_part),
    CALL(fill_hole_whole),
    CALL(fill_hole_further),
    CALL(allocate_blocks),
    CALL(free_own_blocks),
    CALL(free_a_block),
    CALL(free_other_blocks),
    CALL(write_fresh_bytes),
    CALL(zero_many_blocks),
    CALL(snapshot_of_bytes),
    CALL(snapshot_of_many_ranges),
};

const int subject_call_count = sizeof(subject_calls) / sizeof(subject_calls[0]);

/* ---- Comparing ------------------------------------------------------------------- */

static void compare_bytes(const char *what, int index, const void *bytes,
                          const void *want)
{
    if (memcmp(bytes, want, BLOCK) != 0)
        fail_msg("%s %d differs from what was written", what, index);
}

static bool has_block(const struct subject *subject, int slot)
{
    return slot < SUBJECT_SLOTS || subject->committed.filled[slot - SUBJECT_SLOTS];
}

void subject_compare_seen(const struct subject *subject)
{
    static uint8_t bytes[SUBJECT_DATA * BLOCK];

    assert_ok(minl2r_tx_read(subject->tx, bytes, data_at(subject, 0), sizeof(bytes)));
    for (int i = 0; i < SUBJECT_DATA; i++)
        compare_bytes("seen: block", i, bytes + (size_t)i * BLOCK,
                      subject->seen.content[i]);
    for (int i = 0; i < SUBJECT_SLOTS + SUBJECT_HOLES; i++) {
        if (!has_block(subject, i))
            continue;
        assert_ok(minl2r_tx_read(subject->tx, bytes,
                                 minl2r_at(subject->pool, subject->slots[i]), BLOCK));
        compare_bytes("seen: slot", i, bytes, subject->seen.content[SUBJECT_DATA + i]);
    }
}

void subject_compare(const struct subject *subject)
{
    const struct subject_state *want = &subject->committed;

    for (int i = 0; i < SUBJECT_DATA; i++)
        compare_bytes("block", i, data_at(subject, (size_t)i * BLOCK),
                      want->content[i]);
    for (int i = 0; i < SUBJECT_SLOTS + SUBJECT_HOLES; i++) {
        if (has_block(subject, i))
            compare_bytes("slot", i, minl2r_at(subject->pool, subject->slots[i]),
                          want->content[SUBJECT_DATA + i]);
        else
            assert_int_equal(subject->slots[i], 0);
    }
    assert_int_equal(free_blocks(subject->pool),
                     subject->blocks_free - want->blocks_used);
}

/* ---- Life ------------------------------------------------------------------------ */

void subject_begin(struct subject *subject)
{
    subject->tx = begin(subject->pool);
    subject->own = 0;
    subject->seen = subject->committed;
}

void subject_commit(struct subject *subject)
{
    assert_ok(minl2r_tx_commit(subject->tx));
    subject->committed = subject->seen;
    subject_compare(subject);
}

void subject_abort(struct subject *subject)
{
    assert_ok(minl2r_tx_abort(subject->tx));
    subject_compare(subject);
}

void subject_find(struct subject *subject, struct minl2r_pool *pool)
{
    subject->pool = pool;
    subject->slots = minl2r_root(pool, SUBJECT_ROOT_SIZE);
    assert_non_null(subject->slots);
    subject_compare(subject);
}

void subject_create(struct subject *subject, struct minl2r_pool *pool)
{
    uint64_t slots[SUBJECT_SLOTS];
    struct subject_state *state = &subject->committed;

    *subject = (struct subject){.pool = pool};
    subject->slots = minl2r_root(pool, SUBJECT_ROOT_SIZE);
    assert_non_null(subject->slots);
    subject->data = make_blocks(pool, SUBJECT_DATA, 1);
    fill_pattern(state->content, SUBJECT_DATA * BLOCK, 1);
    subject->extra = make_blocks(pool, SUBJECT_EXTRA, 2);
    for (uint64_t i = 0; i < SUBJECT_SLOTS; i++) {
        slots[i] = make_blocks(pool, 1, 10 + i);
        fill_pattern(state->content[SUBJECT_DATA + i], BLOCK, 10 + i);
    }
    struct minl2r_tx *tx = begin(pool);

    assert_ok(minl2r_tx_write(tx, subject->slots, slots, sizeof(slots)));
    assert_ok(minl2r_tx_commit(tx));
    subject->blocks_free = free_blocks(pool);
    subject_compare(subject);
}
