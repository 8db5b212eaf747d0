/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * demo-writer - writes records into a filesystem that is about to be killed, and tells
 * afterwards whether the filesystem kept its word.
 *
 * Each writer thread owns three files and changes them by single write() calls:
 *
 *   slots-W    records of many sizes side by side, overwritten in random order
 *   append-W   one record after the other
 *   replace-W  one record; each next one is written aside and renamed over it
 *
 * A record says which it is, and every byte of it follows from that: a record that is
 * torn, misplaced or mixed from two cannot pass. Each acknowledged write is logged in
 * the file ACKS, which lies outside the filesystem. So afterwards a slot must hold the
 * record that was acknowledged last, whole, or the one that was under way when the
 * filesystem died, whole.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define WRITER_COUNT 8u
#define RECORD_SIZE_MAX 1000000u
#define APPEND_FILE_SIZE_MAX (2u << 20)

/*
 * Below and above half a block, whole blocks, and unaligned ones across several. A kill
 * hits inside the commit of a long one most easily.
 */
static const uint32_t slot_sizes[] = {64,   200,  1000,  1900,   3000,
                                      4096, 9000, 40000, 1000000};
#define SIZE_COUNT (sizeof(slot_sizes) / sizeof(slot_sizes[0]))
#define SLOT_COUNT (SIZE_COUNT * 4u)

/* Where records go besides the slots 0 to SLOT_COUNT - 1. */
#define PLACE_APPEND SLOT_COUNT
#define PLACE_REPLACE (SLOT_COUNT + 1)
#define PLACE_COUNT (SLOT_COUNT + 2)

/* Start of each record. `sequence` counts the records of one place from 1. */
struct record {
    uint32_t writer;
    uint32_t place;
    uint64_t sequence;
    uint64_t size; /* bytes, this header included */
};

/* An entry of ACKS: the write is durable, says the filesystem. */
struct ack {
    uint32_t writer;
    uint32_t place;
    uint64_t sequence;
};

/* What a writer has acknowledged: the newest record of each place; 0: none. */
struct progress {
    uint64_t sequence[PLACE_COUNT];
};

struct writer {
    uint32_t index;
    struct progress progress;
    uint64_t random;
    uint64_t acknowledged;
    uint64_t append_size;
    int slots_fd;
    int append_fd;
    char replace_path[4096];
    char aside_path[4096];
    uint8_t buffer[RECORD_SIZE_MAX];
};

static const char *directory;
static int acks_fd;
static atomic_bool stopped;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dULL;
}

static uint64_t seed_of(uint32_t writer, uint32_t place, uint64_t sequence)
{
    uint64_t seed = sequence * 0x9e3779b97f4a7c15ULL + ((uint64_t)writer << 32) + place;

    next_random(&seed);
    return seed | 1;
}

static uint32_t record_size(uint32_t writer, uint32_t place, uint64_t sequence)
{
    uint64_t seed = seed_of(writer, place, sequence);

    if (place < SLOT_COUNT)
        return slot_sizes[place % SIZE_COUNT];
    return 64 + (uint32_t)(next_random(&seed) % 6000);
}

static uint32_t make_record(uint8_t *buffer, uint32_t writer, uint32_t place,
                            uint64_t sequence)
{
    uint32_t size = record_size(writer, place, sequence);
    struct record head = {writer, place, sequence, size};
    uint64_t seed = seed_of(writer, place, sequence);

    for (uint32_t at = 0; at < size; at += 8) {
        uint64_t word = next_random(&seed);
        memcpy(buffer + at, &word, size - at < 8 ? size - at : 8);
    }
    memcpy(buffer, &head, sizeof(head));
    return size;
}

static off_t slot_offset(uint32_t slot)
{
    off_t offset = 0;

    for (uint32_t i = 0; i < slot % SIZE_COUNT; i++)
        offset += slot_sizes[i];
    off_t cycle = offset;
    for (uint32_t i = slot % SIZE_COUNT; i < SIZE_COUNT; i++)
        cycle += slot_sizes[i];
    return offset + cycle * (off_t)(slot / SIZE_COUNT);
}

static void path_of(char path[4096], const char *name, uint32_t writer)
{
    if (snprintf(path, 4096, "%s/%s-%u", directory, name, writer) >= 4096)
        errx(2, "%s: path too long", directory);
}

/* ---- Acknowledgements -------------------------------------------------------- */

static void acknowledge(const struct ack *ack)
{
    if (write(acks_fd, ack, sizeof(*ack)) != (ssize_t)sizeof(*ack))
        err(2, "acknowledgement log");
}

static void load_acks(struct progress progress[WRITER_COUNT])
{
    struct ack acks[1024];
    off_t offset = 0;
    ssize_t got;

    while ((got = pread(acks_fd, acks, sizeof(acks), offset)) > 0) {
        for (size_t i = 0; i < (size_t)got / sizeof(acks[0]); i++) {
            if (acks[i].writer >= WRITER_COUNT || acks[i].place >= PLACE_COUNT)
                errx(2, "acknowledgement log: damaged");
            progress[acks[i].writer].sequence[acks[i].place] = acks[i].sequence;
        }
        offset += got;
    }
    if (got < 0)
        err(2, "acknowledgement log");
}

/* ---- Writing ----------------------------------------------------------------- */

static bool is_dead(int errnum)
{
    return errnum == ENOTCONN || errnum == ECONNABORTED;
}

/*
 * A request that the daemon was just taking or answering when it was killed fails with
 * EIO. Then the filesystem is dead a moment later.
 */
static bool dies_now(void)
{
    struct statvfs status;

    for (int i = 0; i < 200; i++) {
        if (statvfs(directory, &status) < 0 && is_dead(errno))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return false;
}

/* The filesystem should die under us; any other error is a failure of its own. */
static void expect_death(const char *what)
{
    int errnum = errno;

    if (!is_dead(errnum) && (errnum != EIO || !dies_now()))
        errx(1, "%s: %s", what, strerror(errnum));
}

static bool write_whole(int fd, const void *data, uint32_t size, off_t offset)
{
    ssize_t put = offset < 0 ? write(fd, data, size) : pwrite(fd, data, size, offset);

    if (put < 0)
        expect_death("write");
    else if (put != (ssize_t)size)
        errx(1, "write: %zd of %u bytes", put, size);
    return put >= 0;
}

static bool replace_file(struct writer *writer, uint32_t size)
{
    int fd = open(writer->aside_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0) {
        expect_death(writer->aside_path);
        return false;
    }
    bool replaced = write_whole(fd, writer->buffer, size, -1);
    close(fd);
    if (replaced && rename(writer->aside_path, writer->replace_path) < 0) {
        expect_death(writer->replace_path);
        replaced = false;
    }
    return replaced;
}

static uint32_t choose_place(struct writer *writer)
{
    uint64_t dice = next_random(&writer->random) >> 32;

    if (dice % 10 == 0)
        return PLACE_REPLACE;
    if (dice % 10 <= 2 && writer->append_size < APPEND_FILE_SIZE_MAX)
        return PLACE_APPEND;
    return (uint32_t)(dice / 10 % SLOT_COUNT);
}

static bool write_next(struct writer *writer)
{
    uint32_t place = choose_place(writer);
    uint64_t sequence = writer->progress.sequence[place] + 1;
    uint32_t size = make_record(writer->buffer, writer->index, place, sequence);
    bool written;

    if (place == PLACE_REPLACE)
        written = replace_file(writer, size);
    else if (place == PLACE_APPEND)
        written = write_whole(writer->append_fd, writer->buffer, size, -1);
    else
        written =
            write_whole(writer->slots_fd, writer->buffer, size, slot_offset(place));
    if (!written)
        return false;
    acknowledge(&(struct ack){writer->index, place, sequence});
    writer->progress.sequence[place] = sequence;
    writer->append_size += place == PLACE_APPEND ? size : 0;
    writer->acknowledged++;
    return true;
}

static void *write_until_death(void *arg)
{
    struct writer *writer = arg;

    while (!atomic_load(&stopped) && write_next(writer))
        ;
    atomic_store(&stopped, true);
    return NULL;
}

static int open_for_writing(const char *name, uint32_t writer, int flags)
{
    char path[4096];

    path_of(path, name, writer);
    /* O_DIRECT, which needs no alignment here, makes each write() one request. */
    int fd = open(path, O_WRONLY | O_CREAT | O_DIRECT | flags, 0600);
    if (fd < 0)
        expect_death(path);
    return fd;
}

static bool open_writer(struct writer *writer, uint32_t index)
{
    struct stat status;

    writer->index = index;
    writer->random = seed_of(index, 0, (uint64_t)getpid());
    path_of(writer->replace_path, "replace", index);
    path_of(writer->aside_path, "aside", index);
    writer->slots_fd = open_for_writing("slots", index, 0);
    writer->append_fd = open_for_writing("append", index, O_APPEND);
    if (writer->slots_fd < 0 || writer->append_fd < 0)
        return false;
    if (fstat(writer->append_fd, &status) < 0) {
        expect_death("append");
        return false;
    }
    writer->append_size = (uint64_t)status.st_size;
    return true;
}

static int run(void)
{
    static struct writer writers[WRITER_COUNT];
    static struct progress progress[WRITER_COUNT];
    pthread_t threads[WRITER_COUNT];
    uint64_t acknowledged = 0;

    load_acks(progress);
    for (uint32_t i = 0; i < WRITER_COUNT; i++) {
        writers[i].progress = progress[i];
        if (!open_writer(&writers[i], i))
            atomic_store(&stopped, true);
    }
    for (uint32_t i = 0; i < WRITER_COUNT; i++) {
        if (pthread_create(&threads[i], NULL, write_until_death, &writers[i]) != 0)
            errx(2, "no thread");
    }
    for (uint32_t i = 0; i < WRITER_COUNT; i++) {
        pthread_join(threads[i], NULL);
        acknowledged += writers[i].acknowledged;
    }
    printf("%" PRIu64 "\n", acknowledged);
    return 0;
}

/* ---- Verifying --------------------------------------------------------------- */

struct verdict {
    struct progress *progress;
    uint32_t writer;
    uint64_t whole;   /* records found whole */
    uint64_t unasked; /* of these, whole though never acknowledged */
    uint64_t failures;
};

__attribute__((format(printf, 3, 4))) static void
fail(struct verdict *verdict, uint32_t place, const char *format, ...)
{
    va_list args;

    printf("writer %u, ", verdict->writer);
    if (place < SLOT_COUNT)
        printf("slot %u at %jd: ", place, (intmax_t)slot_offset(place));
    else
        printf("%s: ", place == PLACE_APPEND ? "append" : "replace");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    verdict->failures++;
}

/*
 * Checks that `found`, `size` bytes, is a whole record of `place`, and one that may be
 * there: the acknowledged one, or the next.
 */
static void verify_record(struct verdict *verdict, uint32_t place, const uint8_t *found,
                          uint32_t size)
{
    static uint8_t expected[RECORD_SIZE_MAX];
    uint64_t *acked = &verdict->progress->sequence[place];
    struct record head;

    memcpy(&head, found, sizeof(head));
    if (head.sequence != *acked && head.sequence != *acked + 1) {
        fail(verdict, place, "acknowledged %" PRIu64 ", found %" PRIu64, *acked,
             head.sequence);
        return;
    }
    if (record_size(verdict->writer, place, head.sequence) != size ||
        make_record(expected, verdict->writer, place, head.sequence) != size ||
        memcmp(expected, found, size) != 0) {
        fail(verdict, place, "record %" PRIu64 " is torn", head.sequence);
        return;
    }
    verdict->whole++;
    if (head.sequence == *acked)
        return;
    /* What was seen whole must never vanish again. */
    acknowledge(&(struct ack){verdict->writer, place, head.sequence});
    *acked = head.sequence;
    verdict->unasked++;
}

static bool all_zero(const uint8_t *bytes, uint32_t size)
{
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* The whole file; NULL and 0 if there is none. */
static uint8_t *load_file(const char *name, uint32_t writer, size_t *size)
{
    char path[4096];
    struct stat status;
    size_t filled = 0;
    ssize_t got;

    *size = 0;
    path_of(path, name, writer);
    int fd = open(path, O_RDONLY);
    if (fd < 0 && errno == ENOENT)
        return NULL;
    if (fd < 0 || fstat(fd, &status) < 0)
        err(1, "%s", path);
    uint8_t *content = malloc((size_t)status.st_size + 1);
    if (content == NULL)
        err(2, "%s", path);
    while ((got = read(fd, content + filled, (size_t)status.st_size - filled)) > 0)
        filled += (size_t)got;
    if (got < 0)
        err(1, "%s", path);
    close(fd);
    *size = filled;
    return content;
}

static void verify_slots(struct verdict *verdict)
{
    static const uint8_t nothing[RECORD_SIZE_MAX];
    size_t file_size;
    uint8_t *content = load_file("slots", verdict->writer, &file_size);

    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        uint64_t offset = (uint64_t)slot_offset(slot);
        uint32_t size = slot_sizes[slot % SIZE_COUNT];
        bool inside = offset + size <= file_size;
        const uint8_t *found = inside ? content + offset : nothing;

        if (verdict->progress->sequence[slot] != 0 || !all_zero(found, size))
            verify_record(verdict, slot, found, size);
    }
    free(content);
}

static void verify_append(struct verdict *verdict)
{
    size_t file_size, offset = 0;
    uint8_t *content = load_file("append", verdict->writer, &file_size);
    uint64_t acked = verdict->progress->sequence[PLACE_APPEND];
    uint64_t failures = verdict->failures;

    for (uint64_t next = 1; offset < file_size && failures == verdict->failures;
         next++) {
        uint32_t size = record_size(verdict->writer, PLACE_APPEND, next);

        if (offset + size > file_size) {
            fail(verdict, PLACE_APPEND, "the file ends inside record %" PRIu64, next);
            break;
        }
        verdict->progress->sequence[PLACE_APPEND] = next <= acked ? next : acked;
        verify_record(verdict, PLACE_APPEND, content + offset, size);
        offset += size;
    }
    if (verdict->progress->sequence[PLACE_APPEND] < acked ||
        (acked != 0 && file_size == 0))
        fail(verdict, PLACE_APPEND, "acknowledged %" PRIu64 ", the file ends before",
             acked);
    free(content);
}

static void verify_replace(struct verdict *verdict)
{
    size_t size;
    uint8_t *content = load_file("replace", verdict->writer, &size);

    if (content == NULL && verdict->progress->sequence[PLACE_REPLACE] != 0)
        fail(verdict, PLACE_REPLACE, "the file is gone");
    else if (content != NULL &&
             (size < sizeof(struct record) || size > RECORD_SIZE_MAX))
        fail(verdict, PLACE_REPLACE, "the file has %zu bytes", size);
    else if (content != NULL)
        verify_record(verdict, PLACE_REPLACE, content, (uint32_t)size);
    free(content);
}

static int verify(void)
{
    static struct progress progress[WRITER_COUNT];
    struct verdict verdict = {0};

    load_acks(progress);
    for (uint32_t i = 0; i < WRITER_COUNT; i++) {
        verdict.writer = i;
        verdict.progress = &progress[i];
        verify_slots(&verdict);
        verify_append(&verdict);
        verify_replace(&verdict);
    }
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", verdict.whole, verdict.unasked,
           verdict.failures);
    return verdict.failures == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc != 4 || (strcmp(argv[1], "run") != 0 && strcmp(argv[1], "verify") != 0)) {
        fprintf(stderr, "Usage: demo-writer run|verify DIRECTORY ACKS\n"
                        "run: writes until the filesystem dies; prints how many writes "
                        "were acknowledged.\n"
                        "verify: prints how many records are whole, how many of these "
                        "were not acknowledged,\n"
                        "and how many are lost or torn. Exit status 0 if none is.\n");
        return 2;
    }
    directory = argv[2];
    acks_fd = open(argv[3], O_RDWR | O_CREAT | O_APPEND, 0600);
    if (acks_fd < 0)
        err(2, "%s", argv[3]);
    return strcmp(argv[1], "run") == 0 ? run() : verify();
}
