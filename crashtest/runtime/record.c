/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/runtime/record.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crashtest/runtime/schedule.h"
#include "include/crashtest.h"

struct recorder recorder = {.hooks_left = UINT64_MAX, .compare = true};

#define DEPTH_MAX 256

__thread size_t record_pending_size;

/* Who does something to PM: as in an event. */
struct doer {
    uintptr_t frames[TRACE_FRAMES];
    uintptr_t outside;
};

static __thread struct {
    uint32_t id;
    uint32_t pretended_id; /* 0: none */
    uint32_t depth;
    const void *callers[DEPTH_MAX]; /* the innermost ones, as a ring */
    const uint8_t *address;         /* of the pending store */
    uint8_t kind;
    bool joined;
    struct doer doer;
} self;

#define ALIASES_MAX 16

static struct {
    dev_t device;
    ino_t inode;
    uint32_t threads;
    bool is_locked;
    struct alias {
        const uint8_t *address;
        size_t size;
        uint64_t offset;
    } aliases[ALIASES_MAX];
} pm;

typedef uint64_t __attribute__((may_alias, aligned(1))) any_u64;

/* memcmp() is hooked. */
static bool is_same(const uint8_t *a, const uint8_t *b, size_t size)
{
    size_t i = 0;

    for (; i + 8 <= size; i += 8)
        if (*(const any_u64 *)(a + i) != *(const any_u64 *)(b + i))
            return false;
    for (; i < size; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static bool lock(void)
{
    if (__libc_single_threaded)
        return false;
    while (__atomic_test_and_set(&pm.is_locked, __ATOMIC_ACQUIRE))
        __builtin_ia32_pause();
    return true;
}

static void unlock(bool locked)
{
    if (locked)
        __atomic_clear(&pm.is_locked, __ATOMIC_RELEASE);
}

/* ---- Where PM is ----------------------------------------------------------------- */

void record_pm(const char *path, int fd, uint8_t *base, uint64_t size, uint8_t *shadow)
{
    struct stat status;

    recorder.path = path;
    recorder.base = base;
    recorder.size = size;
    recorder.shadow = shadow;
    if (fstat(fd, &status) == 0) {
        pm.device = status.st_dev;
        pm.inode = status.st_ino;
    }
}

bool record_is_pm_file(int fd)
{
    struct stat status;

    return recorder.base && fstat(fd, &status) == 0 && status.st_dev == pm.device &&
           status.st_ino == pm.inode;
}

void record_add_alias(void *address, size_t size, uint64_t offset)
{
    if (recorder.alias_count < ALIASES_MAX)
        pm.aliases[recorder.alias_count++] = (struct alias){address, size, offset};
}

void record_remove_alias(const void *address, size_t size)
{
    const uint8_t *start = address;

    for (uint32_t i = recorder.alias_count; i-- > 0;)
        if (start <= pm.aliases[i].address && pm.aliases[i].address < start + size)
            pm.aliases[i] = pm.aliases[--recorder.alias_count];
}

void record_forget_aliases(void)
{
    recorder.alias_count = 0;
}

int record_map_aliases_again(int fd)
{
    for (uint32_t i = 0; i < recorder.alias_count; i++) {
        const struct alias *alias = &pm.aliases[i];
        long result =
            syscall(SYS_mmap, alias->address, alias->size, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_FIXED, fd, (off_t)alias->offset);

        if (result == -1)
            return -errno;
    }
    return 0;
}

static bool clip(uint64_t start, uint64_t limit, size_t *size)
{
    if (start >= limit)
        return false;
    if (*size > limit - start)
        *size = limit - start;
    return true;
}

static bool find_alias(const uint8_t *address, size_t *size, uint64_t *offset)
{
    for (uint32_t i = 0; i < recorder.alias_count; i++) {
        const struct alias *alias = &pm.aliases[i];
        uint64_t start = (uint64_t)(address - alias->address);

        if (clip(start, alias->size, size)) {
            *offset = alias->offset + start;
            return clip(*offset, recorder.size, size);
        }
    }
    return false;
}

bool record_find(const void *address, size_t *size, uint64_t *offset)
{
    const uint8_t *start = address;

    *offset = (uint64_t)(start - recorder.base);
    if (clip(*offset, recorder.size, size))
        return true;
    return recorder.alias_count > 0 && find_alias(start, size, offset);
}

/* ---- Other processes ------------------------------------------------------------- */

static bool *stored_elsewhere; /* shared by all processes */

static void begin_forked(void)
{
    recorder.is_forked = true;
    recorder.trace = NULL;
}

int record_watch_forks(void)
{
    void *memory = mmap(NULL, sizeof(bool), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return -errno;
    stored_elsewhere = memory;
    return -pthread_atfork(NULL, NULL, begin_forked);
}

void record_begin_process(void)
{
    recorder.is_forked = false;
}

bool record_was_stored_elsewhere(void)
{
    return stored_elsewhere && __atomic_load_n(stored_elsewhere, __ATOMIC_RELAXED) &&
           __atomic_exchange_n(stored_elsewhere, false, __ATOMIC_RELAXED);
}

/* ---- Events ---------------------------------------------------------------------- */

void record_enter(const void *pc)
{
    self.callers[self.depth++ % DEPTH_MAX] = pc;
}

void record_leave(void)
{
    self.depth--;
}

uint32_t record_depth(void)
{
    return self.depth;
}

void record_set_depth(uint32_t depth)
{
    self.depth = depth;
}

uint32_t record_as_thread(uint32_t id)
{
    uint32_t before = self.pretended_id;

    record_settle();
    self.pretended_id = id;
    return before;
}

void record_name_thread(uint32_t number)
{
    self.id = number;
}

static uint32_t thread_id(void)
{
    if (self.pretended_id != 0)
        return self.pretended_id;
    if (self.id == 0)
        self.id = __atomic_add_fetch(&pm.threads, 1, __ATOMIC_RELAXED);
    return self.id;
}

/* Not the outermost caller: that is the tester, or libc. */
void record_frames(const void *pc, uintptr_t frames[TRACE_FRAMES])
{
    frames[0] = (uintptr_t)pc;
    for (uint32_t i = 1; i < TRACE_FRAMES; i++)
        frames[i] =
            i < self.depth ? (uintptr_t)self.callers[(self.depth - i) % DEPTH_MAX] : 0;
}

/* The code of the libminl2r with hooks, if the program is linked with it. */
#pragma weak __start_minl2r_text
#pragma weak __stop_minl2r_text
extern const char __start_minl2r_text[], __stop_minl2r_text[];

static bool is_of_library(const void *pc)
{
    uintptr_t start = (uintptr_t)__start_minl2r_text;

    return (uintptr_t)pc - start < (uintptr_t)__stop_minl2r_text - start;
}

static uintptr_t find_outside(const void *pc)
{
    if (!is_of_library(pc))
        return 0;
    for (uint32_t i = 1; i < self.depth && i <= DEPTH_MAX; i++) {
        const void *caller = self.callers[(self.depth - i) % DEPTH_MAX];

        if (!is_of_library(caller))
            return (uintptr_t)caller;
    }
    return 0;
}

static void find_doer(const void *pc, struct doer *doer)
{
    record_frames(pc, doer->frames);
    doer->outside = find_outside(pc);
}

static struct trace_event *add(enum trace_kind kind, const struct doer *doer)
{
    struct trace_event *event = trace_add(recorder.trace, kind);

    event->thread = thread_id();
    for (uint32_t i = 0; i < TRACE_FRAMES; i++)
        event->frames[i] = doer->frames[i];
    event->outside = doer->outside;
    return event;
}

/* A store that is being cut into pieces. */
struct store {
    const struct doer *doer;
    uint32_t group;
    bool joined, unseen;
};

/* Also one that leaves what is there: over a stream that nobody fenced it counts. */
static void add_piece(const struct store *store, uint64_t at, uint8_t size,
                      enum trace_kind kind)
{
    uint8_t *shadow = recorder.shadow + at;
    uint64_t before = trace_load_piece(shadow, size);
    uint64_t after = trace_load_piece(recorder.base + at, size);

    struct trace_event *event = add(kind, store->doer);

    event->at = at;
    event->size = size;
    event->group = store->group;
    event->joined = store->joined;
    event->unseen = store->unseen;
    event->before = before;
    event->after = after;
    trace_store_piece(shadow, after, size);
}

static void add_pieces(const struct store *store, uint64_t at, size_t size,
                       enum trace_kind kind)
{
    while (size > 0) {
        uint8_t piece = trace_piece_at(at, size);

        add_piece(store, at, piece, kind);
        at += piece;
        size -= piece;
    }
}

static void complete_pending(void)
{
    size_t size = record_pending_size;
    uint64_t offset;

    record_pending_size = 0;
    if (!recorder.trace || !record_find(self.address, &size, &offset))
        return;
    bool locked = lock();
    const struct store store = {
        .doer = &self.doer, .group = recorder.trace->groups++, .joined = self.joined};

    add_pieces(&store, offset, size, self.kind);
    unlock(locked);
}

void record_allow(uint64_t hooks)
{
    recorder.hooks_left = hooks;
    recorder.hooks_kept = 0;
}

void record_begin_turn(uint64_t hooks)
{
    uint64_t all;

    if (__builtin_add_overflow(recorder.hooks_left, recorder.hooks_kept, &all))
        all = UINT64_MAX;
    recorder.hooks_left = all < hooks ? all : hooks;
    recorder.hooks_kept = all - recorder.hooks_left;
}

/* A turn does not end before its pending store is done. */
static void run_out(void)
{
    if (recorder.hooks_kept == 0) {
        if (recorder.on_hang)
            recorder.on_hang();
    } else if (schedule_alive < 2) {
        record_begin_turn(UINT64_MAX);
    } else if (record_pending_size > 0) {
        recorder.hooks_left = 1;
        recorder.hooks_kept--;
    } else {
        schedule_yield(NULL);
    }
}

static void count_hook(void)
{
    if (--recorder.hooks_left == 0)
        run_out();
}

void record_settle(void)
{
    if (record_pending_size > 0)
        complete_pending();
    count_hook();
}

static bool is_done(void)
{
    size_t size = record_pending_size;
    uint64_t offset;

    return !recorder.trace || !record_find(self.address, &size, &offset) ||
           !is_same(recorder.base + offset, recorder.shadow + offset, size);
}

static void tell(const void *address, size_t size, enum access access)
{
    uint64_t offset;

    if (recorder.trace && record_find(address, &size, &offset))
        recorder.on_access(recorder.on_access_arg, offset, size, access);
}

void record_load_slowly(const void *address, size_t size)
{
    if (record_pending_size > 0 && is_done())
        complete_pending();
    count_hook();
    if (recorder.on_access && !recorder.is_hashing && record_may_be_pm(address))
        tell(address, size, ACCESS_LOAD);
}

void crashtest_hash_add(const void *data, size_t size)
{
    record_settle();
    if (recorder.on_access)
        tell(data, size, ACCESS_HASHED);
}

void crashtest_hash_begin(const void *data, size_t size)
{
    crashtest_hash_add(data, size);
    if (recorder.on_access && recorder.trace)
        recorder.on_access(recorder.on_access_arg, 0, 0, ACCESS_HASH);
    recorder.is_hashing = true;
}

void crashtest_hash_end(void)
{
    recorder.is_hashing = false;
}

void record_store(const void *address, size_t size, enum trace_kind kind, bool joined,
                  const void *pc)
{
    uint64_t offset;

    record_settle();
    if ((!recorder.trace && !recorder.is_forked) || !record_may_be_pm(address) ||
        !record_find(address, &size, &offset))
        return;
    if (recorder.is_forked) {
        __atomic_store_n(stored_elsewhere, true, __ATOMIC_RELAXED);
        return;
    }
    schedule_point(pc);
    if (recorder.on_access)
        tell(address, size, ACCESS_STORE);
    self.address = address;
    record_pending_size = size;
    self.kind = (uint8_t)kind;
    self.joined = joined;
    find_doer(pc, &self.doer);
}

/* ---- What the hooks do not see --------------------------------------------------- */

/* Words of a line that differ, in no order. */
static void catch_up_line(uint64_t line, const void *pc)
{
    struct doer doer;
    const struct store store = {
        .doer = &doer, .group = recorder.trace->groups++, .unseen = true};

    find_doer(pc, &doer);
    for (uint64_t at = line; at < line + LINE_SIZE; at += 8) {
        if (is_same(recorder.base + at, recorder.shadow + at, 8))
            continue;
        if (recorder.unseen++ == 0)
            recorder.unseen_at = at;
        add_piece(&store, at, 8, TRACE_STORE);
    }
}

static void catch_up(uint64_t start, uint64_t end, const void *pc)
{
    for (uint64_t at = start; at < end; at += LINE_SIZE)
        if (!is_same(recorder.base + at, recorder.shadow + at, LINE_SIZE))
            catch_up_line(at, pc);
}

static void catch_up_all(const void *pc)
{
    const uint64_t step = 4096;

    for (uint64_t at = 0; at < recorder.size; at += step)
        if (!is_same(recorder.base + at, recorder.shadow + at, step))
            catch_up(at, at + step, pc);
}

/* ---- Flushes, fences, marks ------------------------------------------------------ */

void record_flush(const void *address, size_t size, enum trace_kind kind,
                  const void *pc)
{
    uint64_t offset;

    record_settle();
    if (size == 0 || !recorder.trace || !record_find(address, &size, &offset))
        return;
    schedule_point(pc);
    uint64_t end = (offset + size + LINE_SIZE - 1) & ~(uint64_t)(LINE_SIZE - 1);
    struct doer doer;

    find_doer(pc, &doer);
    offset &= ~(uint64_t)(LINE_SIZE - 1);
    bool locked = lock();

    if (recorder.catch_up)
        catch_up(offset, end, pc);
    for (; offset < end; offset += LINE_SIZE)
        add(kind, &doer)->at = offset;
    unlock(locked);
}

static void add_fence(const void *pc, bool locks)
{
    struct doer doer;

    record_settle();
    if (!recorder.trace)
        return;
    schedule_point(pc);
    bool locked = lock();

    if (recorder.catch_up)
        catch_up_all(pc);
    find_doer(pc, &doer);
    add(TRACE_FENCE, &doer)->locks = locks;
    unlock(locked);
}

void record_fence(const void *pc)
{
    add_fence(pc, false);
}

void record_look_for_unseen(void)
{
    record_settle();
    if (!recorder.trace)
        return;
    bool locked = lock();

    catch_up_all(CALLER);
    unlock(locked);
}

void record_lock(const void *pc)
{
    if (recorder.locks_are_weak)
        record_settle();
    else
        add_fence(pc, true);
}

void record_mark(enum trace_kind kind, uint64_t operation)
{
    struct doer doer;

    if (recorder.compare)
        record_look_for_unseen();
    else
        record_settle();
    if (!recorder.trace)
        return;
    bool locked = lock();

    find_doer(CALLER, &doer);
    add(kind, &doer)->at = operation;
    unlock(locked);
}

void record_start(struct trace *trace)
{
    record_pending_size = 0;
    recorder.unseen = 0;
    recorder.is_hashing = false;
    recorder.trace = trace;
}

void record_stop(void)
{
    if (record_pending_size > 0)
        complete_pending();
    recorder.trace = NULL;
}
