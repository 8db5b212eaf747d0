/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crashtest/guard.h"
#include "crashtest/runtime/record.h"
#include "crashtest/runtime/schedule.h"

#define PAGE_SIZE 4096u
#define PM_SIZE_MAX ((uint64_t)1 << 40)
#define EVENTS_MAX ((size_t)1 << 23)
#define RUN_HOOKS_MAX ((uint64_t)1 << 32)
/* So often all of PM is compared with what was seen, if programs run in this process.
 */
#define COMPARE_EVERY 16

/* Where PM lies before the crash and after it. */
#define RUN_ADDRESS ((uintptr_t)0x100000000000)
#define RECOVERY_ADDRESS ((uintptr_t)0x140000000000)

struct marks {
    uint64_t count;
    uint64_t open; /* operations that run */
    char names[OPERATIONS_MAX][OPERATION_NAME_MAX + 1];
};

/* What the child is told, and tells. */
struct outcome {
    uint64_t schedule;
    bool catch_up;

    struct guard_report report;
    const char *step; /* that it is of */
    bool is_done;
    uint64_t unseen, unseen_at;
    uint64_t unseen_in; /* operation + 1; 0: outside of one */
    char misuse[200];   /* of crashtest_begin() and _end() */
};

static struct session *running;
static __thread uint64_t my_operation; /* + 1; 0: none is open */

/* ---- Marks ----------------------------------------------------------------------- */

static void note_misuse(const char *what)
{
    snprintf(running->outcome->misuse, sizeof(running->outcome->misuse), "%s", what);
}

static void note_unseen(uint64_t operation)
{
    if (recorder.unseen > 0 && running->outcome->unseen == 0)
        running->outcome->unseen_in = operation;
    running->outcome->unseen = recorder.unseen;
    running->outcome->unseen_at = recorder.unseen_at;
}

void crashtest_begin(const char *format, ...)
{
    struct marks *marks = running ? running->marks : NULL;
    va_list args;

    if (!marks)
        return;
    if (my_operation != 0)
        note_misuse(
            "crashtest_begin() before the crashtest_end() of the operation before");
    if (marks->count == OPERATIONS_MAX)
        note_misuse("more than 65536 operations: let run do less");
    if (my_operation != 0 || marks->count == OPERATIONS_MAX)
        return;
    uint64_t number = __atomic_fetch_add(&marks->count, 1, __ATOMIC_RELAXED);

    va_start(args, format);
    vsnprintf(marks->names[number], OPERATION_NAME_MAX + 1, format, args);
    va_end(args);
    __atomic_fetch_add(&marks->open, 1, __ATOMIC_RELAXED);
    my_operation = number + 1;
    record_mark(TRACE_BEGIN, number);
    note_unseen(0);
}

void crashtest_end(void)
{
    struct marks *marks = running ? running->marks : NULL;

    if (!marks)
        return;
    if (my_operation == 0) {
        note_misuse("crashtest_end() without the crashtest_begin() of the same thread");
        return;
    }
    __atomic_fetch_sub(&marks->open, 1, __ATOMIC_RELAXED);
    record_mark(TRACE_END, my_operation - 1);
    note_unseen(my_operation);
    my_operation = 0;
}

/* ---- Running --------------------------------------------------------------------- */

static int call_init(void *arg)
{
    const struct crashtest_pm *pm = arg;
    const struct crashtest_program *program = running->program;

    return program->init ? program->init(pm, program->arg) : 0;
}

static int call_run(void *arg)
{
    const struct crashtest_pm *pm = arg;

    return running->program->run(pm, running->program->arg);
}

static bool step(struct session *session, const char *name, guard_fn *function,
                 struct crashtest_pm *pm, uint64_t hooks_max)
{
    session->outcome->step = name;
    guard_call(function, pm, hooks_max, &session->outcome->report);
    return guard_succeeded(&session->outcome->report);
}

static struct crashtest_pm pm_of_run(const struct session *session)
{
    return (struct crashtest_pm){session->run_image, session->size, session->path};
}

static void record_run(struct session *session, uint64_t hooks_max, bool compare)
{
    struct crashtest_pm pm = pm_of_run(session);

    session->marks->count = session->marks->open = 0; /* those of init do not count */
    my_operation = 0;
    recorder.compare = compare;
    record_start(session->trace);
    bool done = step(session, "run", call_run, &pm, hooks_max);

    if (compare)
        record_look_for_unseen();
    record_stop();
    recorder.compare = true;
    note_unseen(0);
    session->outcome->is_done = done;
}

/* ---- In a child ------------------------------------------------------------------ */

static bool make_base(struct session *session)
{
    struct crashtest_pm pm = pm_of_run(session);

    if (session->tested->base)
        memcpy(pm.base, session->tested->base, session->size);
    else if (!step(session, "init", call_init, &pm, RUN_HOOKS_MAX))
        return false;
    memcpy(session->base, pm.base, session->size);
    memcpy(session->shadow, pm.base, session->size);
    return true;
}

static void run_in_child(void *arg)
{
    struct session *session = arg;

    if (mprotect(session->run_image, session->size, PROT_READ | PROT_WRITE) < 0)
        return;
    running = session;
    recorder.catch_up = session->outcome->catch_up;
    record_pm(session->path, session->fd, session->run_image, session->size,
              session->shadow);
    guard_init_child();
    if (session->outcome->schedule != 0)
        schedule_begin(session->outcome->schedule);
    else
        schedule_free();
    if (make_base(session))
        record_run(session, RUN_HOOKS_MAX, true);
}

static int fail(struct session *session, int result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(struct session *session, int result, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(session->error, sizeof(session->error), format, args);
    va_end(args);
    return result;
}

static const struct origin_answer *run_fresh(struct session *session)
{
    if (session->origin.process == 0 &&
        origin_begin(&session->origin, run_in_child, session) < 0)
        return NULL;
    return origin_run(&session->origin);
}

static int fork_run(struct session *session, int *status)
{
    struct origin_answer here = {0};
    const struct origin_answer *answer = &here;

    session->loaded = NULL;
    if (ftruncate(session->fd, 0) < 0 ||
        ftruncate(session->fd, (off_t)session->size) < 0)
        return fail(session, -errno, "cannot clear PM: %s", strerror(errno));
    session->outcome->schedule = session->tested->schedule;
    session->outcome->catch_up = recorder.catch_up;
    if (session->tested->is_fresh)
        answer = run_fresh(session);
    else
        origin_fork(run_in_child, session, &here);
    if (!answer || !answer->is_started)
        return fail(session, -EAGAIN, "cannot fork");
    *status = answer->status;
    if (answer->is_stuck)
        return fail(session, -EINVAL, "%s %s",
                    session->outcome->step ? session->outcome->step : "the program",
                    answer->stuck);
    return 0;
}

/* PM, and what it looks like after recovery. */
static void load(struct session *session, const uint8_t *bytes)
{
    memcpy(session->image, bytes, session->size);
    memcpy(session->shadow, bytes, session->size);
}

/* ---- In this process ------------------------------------------------------------- */

void session_revert(const struct session *session, const struct trace *trace)
{
    for (size_t i = trace->count; i-- > 0;) {
        const struct trace_event *e = &trace->events[i];

        if (!trace_is_store(e))
            continue;
        trace_store_piece(session->image + e->at, e->before, e->size);
        trace_store_piece(session->shadow + e->at, e->before, e->size);
    }
}

static void take_back(struct session *session, bool compared)
{
    const struct trace *trace = session->trace;

    if (trace->is_full || session->outcome->unseen > 0 ||
        (compared && !session->outcome->is_done)) {
        load(session, session->tested->base);
        return;
    }
    session_revert(session, trace);
}

static int run_here(struct session *session)
{
    bool compare = session->runs++ % COMPARE_EVERY == 0 || recorder.catch_up;

    if (session->loaded != session->tested->base)
        load(session, session->tested->base);
    session->loaded = session->tested->base;
    if (mprotect(session->run_image, session->size, PROT_READ | PROT_WRITE) < 0)
        return fail(session, -errno, "cannot make PM writable: %s", strerror(errno));
    running = session;
    record_pm(session->path, session->fd, session->run_image, session->size,
              session->shadow);
    record_run(session, session->hooks_max, compare);
    running = NULL;
    take_back(session, compare);
    return 0;
}

/* ---- Either way ------------------------------------------------------------------ */

static bool has_seen_stores(const struct trace *trace)
{
    for (size_t i = 0; i < trace->count; i++)
        if (trace_is_store(&trace->events[i]) && !trace->events[i].unseen)
            return true;
    return false;
}

static const char *open_operation(const struct session *session)
{
    const struct trace *trace = session->trace;
    uint64_t open = session->marks->count - 1;

    for (size_t i = trace->count; i-- > 0 && trace->events[i].kind != TRACE_BEGIN;)
        if (trace->events[i].kind == TRACE_END && trace->events[i].at == open)
            open--;
    return session->marks->names[open];
}

static int judge_outcome(struct session *session, int status)
{
    const struct outcome *outcome = session->outcome;
    char text[1100];

    if (outcome->misuse[0])
        return fail(session, -EINVAL, "%s", outcome->misuse);
    if (session->trace->is_full)
        return fail(session, -E2BIG, "run stores more than %zu pieces: let it do less",
                    session->trace->capacity);
    if (outcome->is_done && session->marks->open > 0)
        return fail(session, -EINVAL, "crashtest_end() is missing after \"%s\"",
                    open_operation(session));
    if (outcome->is_done)
        return session->tested->base || trace_has_stores(session->trace)
                   ? 0
                   : fail(session, -EINVAL,
                          "run stores nothing to PM: nothing can be lost");
    if (!outcome->step || WIFSIGNALED(status))
        return fail(session, -EINVAL, "the process of %s ended: %s",
                    outcome->step ? outcome->step : "the program",
                    WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it exited");
    guard_describe(&outcome->report, text, sizeof(text));
    return fail(session, -EINVAL, "%s %s%s", outcome->step, text,
                outcome->report.end == GUARD_FORKED ? "" : ", without any crash");
}

static int run_once(struct session *session)
{
    int status = 0;

    trace_clear(session->trace);
    session->threads = 1;
    session->turns = 0;
    session->outcome->step = NULL;
    session->outcome->is_done = false;
    session->outcome->unseen = session->outcome->unseen_in = 0;
    session->outcome->misuse[0] = 0;
    int result =
        session->tested->in_process ? run_here(session) : fork_run(session, &status);

    if (session->tested->schedule != 0) {
        session->threads = schedule->started;
        session->turns = schedule->turns;
    }
    return result < 0 ? result : judge_outcome(session, status);
}

/* Stores that were found by comparing are found at each flush and fence from then on.
 */
static int run_again_if_unseen(struct session *session)
{
    session->unseen = session->outcome->unseen;
    session->unseen_at = session->outcome->unseen_at;
    session->unseen_in = NULL;
    if (session->outcome->unseen_in)
        session->unseen_in = session->marks->names[session->outcome->unseen_in - 1];
    if (session->unseen == 0)
        return 0;
    session->is_blind = !has_seen_stores(session->trace);
    recorder.catch_up = true;
    return run_once(session);
}

static int list_operations(struct session *session)
{
    size_t count = session->marks->count;

    if (operations_begin(&session->operations, count, session->trace) < 0)
        return fail(session, -ENOMEM, "no memory for the trace");
    for (size_t i = 0; i < count; i++)
        session->operations.names[i] = session->marks->names[i];
    session->operations.names[count] = NULL;
    return 0;
}

static int prepare_recovery(struct session *session)
{
    if (!session->tested->in_process)
        load(session, session->base);
    else if (!session->is_fixed &&
             mprotect(session->run_image, session->size, PROT_NONE) < 0)
        return fail(session, -errno, "cannot protect PM: %s", strerror(errno));
    record_pm(session->path, session->fd, session->image, session->size,
              session->shadow);
    return 0;
}

/* ---- Memory ---------------------------------------------------------------------- */

static void *share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static uint8_t *map_pm(const struct session *session, uintptr_t address, int protection)
{
    void *memory =
        mmap((void *)address, session->size, protection, MAP_SHARED, session->fd, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static int open_memory(uint64_t size)
{
    int fd = memfd_create("crashtest-pm", 0);

    if (fd >= 0 && ftruncate(fd, (off_t)size) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int make_pm(struct session *session)
{
    session->fd = open_memory(session->size);
    if (session->fd < 0)
        return fail(session, -errno, "cannot make PM of %llu bytes: %s",
                    (unsigned long long)session->size, strerror(errno));
    snprintf(session->path, sizeof(session->path), "/proc/self/fd/%d", session->fd);
    session->base = share(session->size);
    session->shadow = mmap(NULL, session->size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (session->shadow == MAP_FAILED)
        session->shadow = NULL;
    session->is_fixed = session->program->fixed_address;
    session->image = map_pm(session, session->is_fixed ? RUN_ADDRESS : RECOVERY_ADDRESS,
                            PROT_READ | PROT_WRITE);
    session->run_image =
        session->is_fixed ? session->image : map_pm(session, RUN_ADDRESS, PROT_NONE);
    if (!session->base || !session->shadow || !session->run_image || !session->image)
        return fail(session, -ENOMEM, "no memory for PM");
    return 0;
}

static bool map_again(const struct session *session, uint8_t *at, int protection)
{
    return mmap(at, session->size, protection, MAP_SHARED | MAP_FIXED, session->fd,
                0) == at;
}

int session_unshare(struct session *session)
{
    int fd = open_memory(session->size);

    if (fd < 0 || dup2(fd, session->fd) < 0)
        return -errno;
    close(fd);
    if (!map_again(session, session->image, PROT_READ | PROT_WRITE) ||
        (!session->is_fixed && !map_again(session, session->run_image, PROT_NONE)) ||
        record_map_aliases_again(session->fd) < 0)
        return -errno;
    load(session, session->base);
    record_pm(session->path, session->fd, session->image, session->size,
              session->shadow);
    return 0;
}

static void unmap(uint8_t **memory, uint64_t size)
{
    if (*memory)
        munmap(*memory, size);
    *memory = NULL;
}

static void unmake_pm(struct session *session)
{
    origin_finish(&session->origin);
    recorder.base = NULL;
    unmap(&session->base, session->size);
    unmap(&session->shadow, session->size);
    if (!session->is_fixed)
        unmap(&session->run_image, session->size);
    unmap(&session->image, session->size);
    session->run_image = NULL;
    if (session->fd >= 0)
        close(session->fd);
    session->fd = -1;
    session->loaded = NULL;
}

static int make_trace(struct session *session)
{
    session->trace = session->trace ? session->trace : trace_create(EVENTS_MAX);
    session->marks = session->marks ? session->marks : share(sizeof(*session->marks));
    session->outcome =
        session->outcome ? session->outcome : share(sizeof(*session->outcome));
    return session->trace && session->marks && session->outcome && schedule_init() == 0
               ? 0
               : fail(session, -ENOMEM, "no memory for the trace");
}

/* ---- Recording ------------------------------------------------------------------- */

static int check_program(struct session *session)
{
    const struct crashtest_program *program = session->program;

    if (program->pm_size == 0)
        return fail(session, -EINVAL, "pm_size is 0: there is no PM to lose");
    if (program->pm_size > PM_SIZE_MAX)
        return fail(session, -EINVAL, "pm_size is too large: %zu bytes",
                    program->pm_size);
    bool is_checked =
        program->check || session->tested->check || session->tested->only_run;

    if (!program->name || !program->run || !is_checked)
        return fail(session, -EINVAL, "the program needs a name, run and check");
    if (!program->name[0] || strpbrk(program->name, ": \n"))
        return fail(
            session, -EINVAL,
            "the program's name \"%s\" is empty, or has colons or spaces, which "
            "ids cannot have",
            program->name);
    if (session->tested->in_process && !session->tested->base)
        return fail(session, -EINVAL, "running here needs a base image");
    return 0;
}

static int prepare_pm(struct session *session)
{
    uint64_t pages = PAGE_SIZE - 1;
    uint64_t size = (session->program->pm_size + pages) & ~pages;

    if (session->image && session->size == size &&
        session->is_fixed == session->program->fixed_address)
        return 0;
    unmake_pm(session);
    session->size = size;
    return make_pm(session);
}

void session_init(struct session *session, uint64_t hooks_max)
{
    *session = (struct session){.fd = -1, .hooks_max = hooks_max};
}

int session_record(struct session *session, const struct session_program *tested)
{
    int result;

    session->tested = tested;
    session->program = tested->program;
    session->error[0] = 0;
    recorder.catch_up = false;
    result = check_program(session);
    if (result == 0)
        result = prepare_pm(session);
    if (result == 0)
        result = make_trace(session);
    if (result == 0)
        result = run_once(session);
    if (result == 0)
        result = run_again_if_unseen(session);
    if (result == 0)
        result = list_operations(session);
    if (result == 0)
        result = prepare_recovery(session);
    return result;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

uint64_t session_hash(const struct session *session)
{
    const struct trace *trace = session->trace;
    uint64_t hash = trace->count;

    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_event *e = &trace->events[i];

        hash = mix(hash, (uint64_t)e->kind << 48 ^ (uint64_t)e->thread << 32 ^ e->size);
        hash = mix(hash, e->at);
        hash = mix(hash, e->after);
    }
    return hash;
}

void session_finish(struct session *session)
{
    unmake_pm(session);
    trace_destroy(session->trace);
    if (session->marks)
        munmap(session->marks, sizeof(*session->marks));
    if (session->outcome)
        munmap(session->outcome, sizeof(*session->outcome));
    operations_finish(&session->operations);
}
