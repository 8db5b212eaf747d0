/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tour - one function for each way of changing a pool; the tutorial goes through them.
 *
 *     minl2r create --size 8M --layout tour /dev/shm/tour.pool
 *     tour /dev/shm/tour.pool
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <minl2r.h>

#define PAGE_COUNT 16
#define SCORE_COUNT 8
#define THREAD_COUNT 4

/* The root: everything is reached from here. */
struct tour {
    uint64_t notes;               /* offset of the newest note, 0: none */
    uint64_t pages[PAGE_COUNT];   /* slots: each names a block; 0: an empty page */
    uint64_t scores[SCORE_COUNT]; /* ascending */
    uint64_t turns[THREAD_COUNT]; /* one for each thread */
    uint64_t turns_taken;         /* by all threads */
    struct minl2r_slab names;
};

/* A note fills a block. */
struct note {
    uint64_t older; /* offset of the note before */
    char text[120];
};

static void check(int rc)
{
    if (rc < 0)
        errx(1, "%s", minl2r_errormsg());
}

/* ---- Blocks: allocate, fill, link ------------------------------------------------ */

static int add_note(struct minl2r_pool *pool, const struct tour *tour, const char *text)
{
    struct minl2r_tx *tx;
    struct note *note;
    uint64_t offset;
    int rc = minl2r_tx_begin(pool, &tx);

    if (rc < 0)
        return rc;
    rc = minl2r_tx_alloc(tx, 1, &offset, &note);
    if (rc == 0) {
        note->older = tour->notes; /* nobody sees this block before the commit */
        snprintf(note->text, sizeof(note->text), "%s", text);
        rc = minl2r_tx_write(tx, &tour->notes, &offset, sizeof(offset));
    }
    if (rc < 0) {
        minl2r_tx_abort(tx);
        return rc;
    }
    return minl2r_tx_commit(tx);
}

static void print_notes(const struct minl2r_pool *pool, const struct tour *tour)
{
    const struct note *note = minl2r_at(pool, tour->notes);

    for (; note; note = minl2r_at(pool, note->older))
        printf("note: %s\n", note->text);
}

/* ---- Slots: blocks that the library may replace ---------------------------------- */

static int fill_page(struct minl2r_pool *pool, const struct tour *tour, unsigned page,
                     const void *bytes, uint32_t size)
{
    struct minl2r_tx *tx;
    int rc = minl2r_tx_begin(pool, &tx);

    if (rc < 0)
        return rc;
    rc = minl2r_tx_write_block(tx, &tour->pages[page], 0, bytes, size);
    if (rc < 0) {
        minl2r_tx_abort(tx);
        return rc;
    }
    return minl2r_tx_commit(tx);
}

static void show_slots(struct minl2r_pool *pool, const struct tour *tour)
{
    struct minl2r_info info;
    char bytes[MINL2R_BLOCK_SIZE_MAX];

    check(minl2r_pool_info(pool, &info));
    memset(bytes, 'x', sizeof(bytes));
    check(fill_page(pool, tour, 0, bytes, info.block_size));
    uint64_t first = tour->pages[0];

    check(fill_page(pool, tour, 0, "a few", 5)); /* less than half: changed in place */
    printf("page 0: %.8s..., %s\n", (const char *)minl2r_at(pool, tour->pages[0]),
           tour->pages[0] == first ? "in the same block" : "in another block");

    memset(bytes, 'y', sizeof(bytes));
    check(fill_page(pool, tour, 0, bytes, info.block_size)); /* all of it: swapped */
    printf("page 0: %.8s..., %s\n", (const char *)minl2r_at(pool, tour->pages[0]),
           tour->pages[0] == first ? "in the same block" : "in another block");
}

/* ---- Edit: a working copy -------------------------------------------------------- */

static int add_score(struct minl2r_pool *pool, const struct tour *tour, uint64_t score)
{
    struct minl2r_tx *tx;
    uint64_t *scores;
    int rc = minl2r_tx_begin(pool, &tx);

    if (rc < 0)
        return rc;
    rc = minl2r_tx_edit(tx, tour->scores, sizeof(tour->scores), &scores);
    if (rc < 0) {
        minl2r_tx_abort(tx);
        return rc;
    }
    unsigned i = 0; /* the lowest score makes room */
    for (; i + 1 < SCORE_COUNT && scores[i + 1] < score; i++)
        scores[i] = scores[i + 1];
    scores[i] = score;
    return minl2r_tx_commit(tx);
}

/* ---- Snapshot: undo now, then store directly ------------------------------------- */

static int reverse_scores(struct minl2r_pool *pool, const struct tour *tour)
{
    struct minl2r_tx *tx;
    uint64_t *scores;
    int rc = minl2r_tx_begin(pool, &tx);

    if (rc < 0)
        return rc;
    rc = minl2r_tx_snapshot(tx, tour->scores, sizeof(tour->scores), &scores);
    if (rc < 0) {
        minl2r_tx_abort(tx);
        return rc;
    }
    for (unsigned i = 0; i < SCORE_COUNT / 2; i++) {
        uint64_t score = scores[i]; /* these are stores to the pool itself */
        scores[i] = scores[SCORE_COUNT - 1 - i];
        scores[SCORE_COUNT - 1 - i] = score;
    }
    return minl2r_tx_abort(tx); /* and all of them are taken back */
}

/* ---- Small objects --------------------------------------------------------------- */

static int add_and_delete_name(struct minl2r_pool *pool, const struct tour *tour,
                               const char *name)
{
    struct minl2r_tx *tx;
    size_t size = strlen(name) + 1;
    uint64_t offset;
    int rc = minl2r_tx_begin(pool, &tx);

    if (rc < 0)
        return rc;
    rc = minl2r_slab_alloc(tx, &tour->names, size, &offset);
    if (rc == 0)
        rc = minl2r_tx_write_fresh(tx, minl2r_at(pool, offset), name, size);
    if (rc < 0) {
        minl2r_tx_abort(tx);
        return rc;
    }
    rc = minl2r_tx_commit(tx);
    if (rc == 0)
        rc = minl2r_tx_begin(pool, &tx);
    if (rc < 0)
        return rc;
    printf("name: %s\n", (const char *)minl2r_at(pool, offset));
    rc = minl2r_slab_free(tx, &tour->names, offset, size);
    if (rc < 0) {
        minl2r_tx_abort(tx);
        return rc;
    }
    return minl2r_tx_commit(tx);
}

/* ---- Errors ---------------------------------------------------------------------- */

static void fill_pool(struct minl2r_pool *pool)
{
    struct minl2r_tx *tx;
    uint64_t blocks = 0;
    int rc;

    check(minl2r_tx_begin(pool, &tx));
    while ((rc = minl2r_tx_alloc(tx, 1, NULL, NULL)) == 0)
        blocks++;
    printf("%" PRIu64 " blocks, then: %s\n", blocks, minl2r_errormsg());
    if (rc != -ENOSPC)
        errx(1, "not what was expected");
    check(minl2r_tx_abort(tx)); /* gives all of them back */
}

/* ---- Threads --------------------------------------------------------------------- */

struct player {
    struct minl2r_pool *pool;
    const struct tour *tour;
    unsigned number;
};

static pthread_mutex_t turns_lock = PTHREAD_MUTEX_INITIALIZER;

static int take_turn(struct player *player)
{
    const struct tour *tour = player->tour;
    const uint64_t *own = &tour->turns[player->number];
    uint64_t own_turns = *own + 1, all_turns;
    struct minl2r_tx *tx;
    int rc = minl2r_tx_begin(player->pool, &tx);

    if (rc < 0)
        return rc;
    rc = minl2r_tx_write(tx, own, &own_turns, sizeof(own_turns));

    pthread_mutex_lock(
        &turns_lock); /* what others change, too, until it is committed */
    all_turns = tour->turns_taken + 1;
    if (rc == 0)
        rc = minl2r_tx_write(tx, &tour->turns_taken, &all_turns, sizeof(all_turns));
    if (rc == 0)
        rc = minl2r_tx_commit(tx);
    else
        minl2r_tx_abort(tx);
    pthread_mutex_unlock(&turns_lock);
    return rc;
}

static void *play(void *arg)
{
    for (int i = 0; i < 1000; i++)
        check(take_turn(arg));
    return NULL;
}

static void show_threads(struct minl2r_pool *pool, const struct tour *tour)
{
    struct player players[THREAD_COUNT];
    pthread_t threads[THREAD_COUNT];
    uint64_t sum = 0;

    for (unsigned i = 0; i < THREAD_COUNT; i++) {
        players[i] = (struct player){pool, tour, i};
        if (pthread_create(&threads[i], NULL, play, &players[i]) != 0)
            errx(1, "no thread");
    }
    for (unsigned i = 0; i < THREAD_COUNT; i++) {
        pthread_join(threads[i], NULL);
        sum += tour->turns[i];
    }
    printf("turns: %" PRIu64 "\n", tour->turns_taken);
    if (sum != tour->turns_taken)
        errx(1, "the threads counted %" PRIu64, sum);
}

int main(int argc, char **argv)
{
    struct minl2r_pool *pool;

    if (argc != 2)
        errx(2, "usage: tour POOL");
    check(minl2r_pool_open(argv[1], "tour", NULL, &pool));
    const struct tour *tour = minl2r_root(pool, sizeof(*tour));
    if (!tour)
        errx(1, "%s", minl2r_errormsg());

    check(add_note(pool, tour, "hello"));
    print_notes(pool, tour);
    show_slots(pool, tour);
    check(add_score(pool, tour, 42));
    check(add_score(pool, tour, 7));
    check(reverse_scores(pool, tour));
    printf("best score: %" PRIu64 "\n", tour->scores[SCORE_COUNT - 1]);
    check(add_and_delete_name(pool, tour, "Ada"));
    fill_pool(pool);
    show_threads(pool, tour);
    return minl2r_pool_close(pool) < 0;
}
