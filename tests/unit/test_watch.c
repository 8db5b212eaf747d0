/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MINL2R_WATCH: programs that break the promise of MINL2R_COMMIT_PROVE, each in a child
 * whose standard error is read, and programs that keep it.
 */
#include "tests/unit/random.h"
#include "tests/unit/transact.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define POOL_SIZE ((uint64_t)4 << 20)
#define WORDS 64

static const struct minl2r_options prove = {.commit = MINL2R_COMMIT_PROVE, .lanes = 2};

/* ---- Children -------------------------------------------------------------------- */

struct program {
    struct minl2r_pool *pool;
    const uint64_t *words; /* [WORDS], the root */
};

typedef void program_fn(struct program *program);

static void (*on_fault)(int) = SIG_DFL; /* of the child, before it has a pool */

/* A child's pool is its own: a parent's is closed to it. */
static void run_child(const char *path, const struct minl2r_options *options,
                      program_fn *run)
{
    struct program program;

    signal(SIGSEGV, on_fault); /* not that of the test's framework */
    if (minl2r_pool_create(path, "test", POOL_SIZE, options, &program.pool) < 0) {
        dprintf(STDERR_FILENO, "%s\n", minl2r_errormsg());
        _exit(3);
    }
    program.words = minl2r_root(program.pool, WORDS * sizeof(uint64_t));
    run(&program);
    _exit(minl2r_pool_close(program.pool) < 0 ? 4 : 0);
}

/* What it says on standard error; the exit status, or -1 if it did not exit. */
static int run_program(struct fixture *f, const struct minl2r_options *options,
                       program_fn *run, char *said, size_t size)
{
    int pipes[2], status;
    ssize_t got;
    size_t used = 0;

    unlink(f->path);
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();

    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        run_child(f->path, options, run);
    }
    close(pipes[1]);
    while (used < size - 1 && (got = read(pipes[0], said + used, size - 1 - used)) > 0)
        used += (size_t)got;
    said[used] = '\0';
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect_found(struct fixture *f, program_fn *run, const char *words)
{
    static char said[65536];
    int status = run_program(f, &prove, run, said, sizeof(said));

    if (status == 0 || !strstr(said, words)) {
        print_error("status %d, and no \"%s\" in:\n%s\n", status, words, said);
        fail();
    }
}

static void expect_quiet(struct fixture *f, const struct minl2r_options *options,
                         program_fn *run)
{
    static char said[65536];
    int status = run_program(f, options, run, said, sizeof(said));

    if (status != 0 || said[0] != '\0') {
        print_error("status %d: %s\n", status, said);
        fail();
    }
}

static void set_words(struct program *p, uint64_t first, uint64_t count, uint64_t value)
{
    struct minl2r_tx *tx;
    uint64_t values[WORDS];

    for (uint64_t i = 0; i < count; i++)
        values[i] = value;
    if (minl2r_tx_begin(p->pool, &tx) < 0 ||
        minl2r_tx_write(tx, &p->words[first], values, count * sizeof(uint64_t)) < 0 ||
        minl2r_tx_commit(tx) < 0)
        _exit(5);
}

void store_past_the_library(const uint64_t *word, uint64_t value);

/* Its name is found where stacks are shown. */
__attribute__((noinline, visibility("default"))) void
store_past_the_library(const uint64_t *word, uint64_t value)
{
    *(volatile uint64_t *)(uintptr_t)word = value;
}

/* ---- Stores to the mapping ------------------------------------------------------- */

static void store_to_owned_bytes(struct program *p)
{
    set_words(p, 3, 2, 7);
    store_past_the_library(&p->words[4], 8);
}

static void a_store_to_owned_bytes_is_named_with_who_owns_them(void **state)
{
    struct fixture *f = *state;

    expect_found(f, store_to_owned_bytes, "a store past the library at offset ");
    expect_found(f, store_to_owned_bytes, "\n  it is done by:\n");
    expect_found(f, store_to_owned_bytes, "/test_watch(store_past_the_library+0x");
    expect_found(f, store_to_owned_bytes, "\n  16 bytes at offset ");
    expect_found(f, store_to_owned_bytes, " are owned by lane ");
}

static void store_to_bytes_of_nobody(struct program *p)
{
    store_past_the_library(&p->words[4], 8);
}

static void a_store_to_other_bytes_is_named_too(void **state)
{
    expect_found(*state, store_to_bytes_of_nobody,
                 "a store past the library at offset ");
}

static void without_the_promise_a_program_stores_as_it_likes(void **state)
{
    expect_quiet(*state, NULL, store_to_owned_bytes);
}

static void nothing_is_watched_unasked(void **state)
{
    unsetenv("MINL2R_WATCH");
    expect_quiet(*state, &prove, store_to_bytes_of_nobody);
    setenv("MINL2R_WATCH", "1", 1);
}

static void on_own_fault(int number)
{
    (void)number;
    _exit(0);
}

static void fault_elsewhere(struct program *p)
{
    volatile uintptr_t nowhere = sizeof(uint64_t);

    (void)p;
    store_past_the_library((const uint64_t *)nowhere, 1);
}

static void faults_elsewhere_are_the_programs(void **state)
{
    on_fault = on_own_fault;
    expect_quiet(*state, &prove, fault_elsewhere);
    on_fault = SIG_DFL;
}

/* ---- Pointers that were kept too long -------------------------------------------- */

/* A writable address of words[4], of a transaction that is over. */
static uint64_t *keep_writable(struct program *p)
{
    struct minl2r_tx *tx;
    uint64_t *kept = NULL;

    if (minl2r_tx_begin(p->pool, &tx) < 0 ||
        minl2r_tx_snapshot(tx, &p->words[4], sizeof(*kept), &kept) < 0 ||
        minl2r_tx_commit(tx) < 0)
        _exit(5);
    return kept;
}

static void store_late(struct program *p)
{
    uint64_t *kept = keep_writable(p);

    set_words(p, 2, 4, 0x0707070707070707);
    store_past_the_library(kept, 0x0708080807070707);
}

static void store_late_and_log(struct program *p)
{
    store_late(p);
    set_words(p, 20, 2, 1);
}

static void store_late_and_store_a_word(struct program *p)
{
    store_late(p);
    minl2r_store64(p->pool, &p->words[3], 1);
}

static void store_late_and_commit_a_word(struct program *p)
{
    store_late(p);
    set_words(p, 5, 1, 1);
}

static void *log_in_thread(void *program)
{
    struct minl2r_tx *tx;
    struct program *p = program;

    if (minl2r_tx_begin(p->pool, &tx) == 0 &&
        minl2r_tx_snapshot(tx, &p->words[20], 8, NULL) == 0)
        minl2r_tx_commit(tx);
    return NULL;
}

static void store_late_and_log_in_another_lane(struct program *p)
{
    pthread_t thread;

    store_late(p);
    if (pthread_create(&thread, NULL, log_in_thread, p) == 0)
        pthread_join(thread, NULL);
}

static void changed_bytes_are_found_by_whoever_ends_their_generation(void **state)
{
    static program_fn *const programs[] = {
        store_late, /* and close */
        store_late_and_log,
        store_late_and_store_a_word,
        store_late_and_commit_a_word,
        store_late_and_log_in_another_lane,
    };

    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
        expect_found(*state, programs[i], "were changed past the library");
}

static void old_new_and_found_bytes_are_shown(void **state)
{
    struct fixture *f = *state;

    expect_found(f, store_late, ": 3 bytes at offset ");
    expect_found(f, store_late, "\n  before it: 000000\n");
    expect_found(f, store_late, "\n  it stored: 070707\n");
    expect_found(f, store_late, "\n  found: 080808\n");
    expect_found(f, store_late, "\n  it was committed by:\n");
}

/* ---- Programs that keep the promise ---------------------------------------------- */

static void write_at_random(struct program *p, struct random *random)
{
    uint64_t first = random_below(random, WORDS - 8);

    if (random_below(random, 4) == 0)
        minl2r_store64(p->pool, &p->words[first], random_below(random, 100));
    else
        set_words(p, first, 1 + random_below(random, 8), random_below(random, 100));
}

/* A writable address is as good as the other, and is a place to write to, too. */
static void store_what_was_allocated(struct program *p)
{
    struct minl2r_tx *tx;
    uint64_t offset, *block = NULL, word = 9;

    if (minl2r_tx_begin(p->pool, &tx) < 0 ||
        minl2r_tx_alloc(tx, 1, &offset, &block) < 0)
        _exit(5);
    memset(block, 1, 4096);
    if (minl2r_offset(p->pool, block) != offset ||
        minl2r_tx_write(tx, &block[1], &word, sizeof(word)) < 0 ||
        minl2r_tx_commit(tx) < 0 || minl2r_store64(p->pool, &block[2], 8) < 0)
        _exit(6);
    const uint64_t *there = minl2r_at(p->pool, offset);

    if (there[0] != 0x0101010101010101 || there[1] != 9 || there[2] != 8)
        _exit(7);
}

static void store_what_was_snapshotted(struct program *p)
{
    struct minl2r_tx *tx;
    uint64_t *writable = NULL;

    if (minl2r_tx_begin(p->pool, &tx) < 0 ||
        minl2r_tx_snapshot(tx, &p->words[8], 64, &writable) < 0)
        _exit(5);
    for (int i = 0; i < 8; i++)
        writable[i]++;
    if (minl2r_tx_commit(tx) < 0)
        _exit(6);
}

static void store_what_was_snapshotted_at_once(struct program *p)
{
    const struct minl2r_range ranges[] = {{&p->words[8], 8}, {&p->words[16], 64}};
    struct minl2r_tx *tx;
    void *writable[2];

    if (minl2r_tx_begin(p->pool, &tx) < 0 ||
        minl2r_tx_snapshotv(tx, ranges, 2, writable) < 0)
        _exit(5);
    uint64_t *one = writable[0], *many = writable[1];

    one[0]++;
    for (int i = 0; i < 8; i++)
        many[i]++;
    if (minl2r_tx_commit(tx) < 0)
        _exit(6);
}

static void keep_the_promise(struct program *p)
{
    struct random random = {.state = 7};

    for (int i = 0; i < 1000; i++) {
        write_at_random(p, &random);
        if (i % 50 == 0)
            store_what_was_allocated(p);
        if (i % 20 == 0)
            store_what_was_snapshotted(p);
        if (i % 30 == 0)
            store_what_was_snapshotted_at_once(p);
    }
}

static void nothing_is_said_of_a_program_that_keeps_the_promise(void **state)
{
    expect_quiet(*state, &prove, keep_the_promise);
}

static void *keep_it_in_thread(void *program)
{
    struct program own = *(const struct program *)program;

    for (int i = 0; i < 200; i++)
        set_words(&own, 0, 8, (uint64_t)i);
    return NULL;
}

/* Each on words of its own, whose generations the other one settles. */
static void keep_the_promise_in_two_threads(struct program *p)
{
    struct program other = *p;
    pthread_t thread;

    other.words += 32;
    if (pthread_create(&thread, NULL, keep_it_in_thread, &other) != 0)
        _exit(5);
    for (int i = 0; i < 200; i++) {
        set_words(p, 0, 8, (uint64_t)i);
        store_what_was_snapshotted(p);
    }
    pthread_join(thread, NULL);
}

static void nothing_is_said_of_threads_that_keep_the_promise(void **state)
{
    expect_quiet(*state, &prove, keep_the_promise_in_two_threads);
}

static void what_a_watched_program_did_is_there_afterwards(void **state)
{
    struct fixture *f = *state;

    expect_quiet(f, &prove, keep_the_promise_in_two_threads);
    fixture_open(f);
    const uint64_t *words = minl2r_root(f->pool, WORDS * sizeof(uint64_t));

    for (int i = 0; i < 8; i++) {
        assert_int_equal(words[i], 199);
        assert_int_equal(words[8 + i], 200);
        assert_int_equal(words[32 + i], 199);
    }
}

#define TEST(name)                                                                     \
    cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_store_to_owned_bytes_is_named_with_who_owns_them),
        TEST(a_store_to_other_bytes_is_named_too),
        TEST(without_the_promise_a_program_stores_as_it_likes),
        TEST(nothing_is_watched_unasked),
        TEST(faults_elsewhere_are_the_programs),
        TEST(changed_bytes_are_found_by_whoever_ends_their_generation),
        TEST(old_new_and_found_bytes_are_shown),
        TEST(nothing_is_said_of_a_program_that_keeps_the_promise),
        TEST(nothing_is_said_of_threads_that_keep_the_promise),
        TEST(what_a_watched_program_did_is_there_afterwards),
    };

    setenv("MINL2R_WATCH", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
