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

#define PAGE_SIZE 4096u
#define PM_SIZE_MAX ((uint64_t)1 << 40)
#define EVENTS_MAX ((size_t)1 << 23)
#define RUN_HOOKS_MAX ((uint64_t)1 << 32)

/* Where PM lies before the crash and after it. */
#define RUN_ADDRESS ((uintptr_t)0x100000000000)
#define RECOVERY_ADDRESS ((uintptr_t)0x140000000000)

struct marks {
    uint64_t count;
    bool is_open;
    char names[OPERATIONS_MAX][OPERATION_NAME_MAX + 1];
};

/* What the child tells. */
struct outcome {
    struct guard_report report;
    const char *step; /* that it is of */
    bool is_done;
    uint64_t unseen, unseen_at;
    uint64_t unseen_in; /* operation + 1; 0: outside of one */
    char misuse[200];   /* of crashtest_begin() and _end() */
};

static struct session *running; /* in the child */

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
    struct trace *trace = recorder.trace;
    va_list args;

    if (!marks)
        return;
    if (marks->is_open)
        note_misuse(
            "crashtest_begin() before the crashtest_end() of the operation before");
    if (marks->count == OPERATIONS_MAX)
        note_misuse("more than 65536 operations: let run do less");
    if (marks->is_open || marks->count == OPERATIONS_MAX)
        return;
    record_settle();
    recorder.trace = NULL;
    va_start(args, format);
    vsnprintf(marks->names[marks->count], OPERATION_NAME_MAX + 1, format, args);
    va_end(args);
    recorder.trace = trace;
    marks->is_open = true;
    record_mark(TRACE_BEGIN, marks->count++);
    note_unseen(0);
}

void crashtest_end(void)
{
    struct marks *marks = running ? running->marks : NULL;

    if (!marks)
        return;
    if (!marks->is_open) {
        note_misuse("crashtest_end() without crashtest_begin()");
        return;
    }
    marks->is_open = false;
    record_mark(TRACE_END, marks->count - 1);
    note_unseen(marks->count);
}

/* ---- The child ------------------------------------------------------------------- */

static void *share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static uint8_t *map_pm(const struct session *session, uintptr_t address)
{
    void *memory = mmap((void *)address, session->size, PROT_READ | PROT_WRITE,
                        MAP_SHARED, session->fd, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

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
                 struct crashtest_pm *pm)
{
    session->outcome->step = name;
    guard_call(function, pm, RUN_HOOKS_MAX, &session->outcome->report);
    return guard_succeeded(&session->outcome->report);
}

static void run_in_child(struct session *session)
{
    struct crashtest_pm pm = {map_pm(session, RUN_ADDRESS), session->size,
                              session->path};

    if (!pm.base)
        return;
    running = session;
    record_pm(session->path, session->fd, pm.base, session->size, session->shadow);
    guard_init_child();
    if (!step(session, "init", call_init, &pm))
        return;
    memcpy(session->base, pm.base, session->size);
    memcpy(session->shadow, pm.base, session->size);
    session->marks->count = 0; /* those of init do not count */
    session->marks->is_open = false;
    record_start(session->trace);
    bool done = step(session, "run", call_run, &pm);

    record_look_for_unseen();
    record_stop();
    note_unseen(0);
    session->outcome->is_done = done;
}

/* ---- The parent ------------------------------------------------------------------ */

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

static int check_program(struct session *session)
{
    const struct crashtest_program *program = session->program;

    if (program->pm_size == 0)
        return fail(session, -EINVAL, "pm_size is 0: there is no PM to lose");
    if (program->pm_size > PM_SIZE_MAX)
        return fail(session, -EINVAL, "pm_size is too large: %zu bytes",
                    program->pm_size);
    if (!program->name || !program->run || !program->check)
        return fail(session, -EINVAL, "the program needs a name, run and check");
    session->size = (program->pm_size + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
    return 0;
}

static int make_pm(struct session *session)
{
    session->fd = memfd_create("crashtest-pm", 0);
    if (session->fd < 0 || ftruncate(session->fd, (off_t)session->size) < 0)
        return fail(session, -errno, "cannot make PM of %llu bytes: %s",
                    (unsigned long long)session->size, strerror(errno));
    snprintf(session->path, sizeof(session->path), "/proc/self/fd/%d", session->fd);
    session->base = share(session->size);
    session->shadow = mmap(NULL, session->size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    session->trace = trace_create(EVENTS_MAX);
    session->marks = share(sizeof(*session->marks));
    session->outcome = share(sizeof(*session->outcome));
    if (!session->base || session->shadow == MAP_FAILED || !session->trace ||
        !session->marks || !session->outcome)
        return fail(session, -ENOMEM, "no memory for the trace");
    return 0;
}

static bool has_stores(const struct trace *trace)
{
    for (size_t i = 0; i < trace->count; i++)
        if (trace_is_store(&trace->events[i]))
            return true;
    return false;
}

static bool has_seen_stores(const struct trace *trace)
{
    for (size_t i = 0; i < trace->count; i++)
        if (trace_is_store(&trace->events[i]) && !trace->events[i].unseen)
            return true;
    return false;
}

static int judge_child(struct session *session, int status)
{
    const struct outcome *outcome = session->outcome;
    char text[420];

    if (outcome->misuse[0])
        return fail(session, -EINVAL, "%s", outcome->misuse);
    if (session->trace->is_full)
        return fail(session, -E2BIG, "run stores more than %zu pieces: let it do less",
                    session->trace->capacity);
    if (outcome->is_done && session->marks->is_open)
        return fail(session, -EINVAL, "crashtest_end() is missing after \"%s\"",
                    session->marks->names[session->marks->count - 1]);
    if (outcome->is_done)
        return has_stores(session->trace)
                   ? 0
                   : fail(session, -EINVAL,
                          "run stores nothing to PM: nothing can be lost");
    if (!outcome->step || WIFSIGNALED(status))
        return fail(session, -EINVAL, "the process of %s ended: %s",
                    outcome->step ? outcome->step : "the program",
                    WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it exited");
    guard_describe(&outcome->report, text, sizeof(text));
    return fail(session, -EINVAL, "%s %s, without any crash", outcome->step, text);
}

static int run_once(struct session *session)
{
    int status = 0;

    trace_clear(session->trace);
    memset(session->outcome, 0, sizeof(*session->outcome));
    if (ftruncate(session->fd, 0) < 0 ||
        ftruncate(session->fd, (off_t)session->size) < 0)
        return fail(session, -errno, "cannot clear PM: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();

    if (child < 0)
        return fail(session, -errno, "cannot fork: %s", strerror(errno));
    if (child == 0) {
        run_in_child(session);
        fflush(NULL);
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return judge_child(session, status);
}

static int list_operations(struct session *session)
{
    session->operation_count = session->marks->count;
    session->operations =
        calloc(session->operation_count + 1, sizeof(*session->operations));
    if (!session->operations)
        return fail(session, -ENOMEM, "no memory for the trace");
    for (size_t i = 0; i < session->operation_count; i++)
        session->operations[i] = session->marks->names[i];
    return 0;
}

/* Stores that were found by comparing are found at each flush and fence from then on.
 */
static int run_again_if_unseen(struct session *session)
{
    session->unseen = session->outcome->unseen;
    session->unseen_at = session->outcome->unseen_at;
    if (session->outcome->unseen_in)
        session->unseen_in = session->marks->names[session->outcome->unseen_in - 1];
    if (session->unseen == 0)
        return 0;
    session->is_blind = !has_seen_stores(session->trace);
    recorder.catch_up = true;
    return run_once(session);
}

static int map_for_recovery(struct session *session)
{
    session->image = map_pm(
        session, session->program->fixed_address ? RUN_ADDRESS : RECOVERY_ADDRESS);
    if (!session->image)
        return fail(session, -ENOMEM, "cannot map PM");
    memcpy(session->image, session->base, session->size);
    memcpy(session->shadow, session->base, session->size);
    record_pm(session->path, session->fd, session->image, session->size,
              session->shadow);
    return 0;
}

int session_record(struct session *session, const struct crashtest_program *program)
{
    int result;

    *session = (struct session){.program = program, .fd = -1};
    result = check_program(session);
    if (result == 0)
        result = make_pm(session);
    if (result == 0)
        result = run_once(session);
    if (result == 0)
        result = run_again_if_unseen(session);
    if (result == 0)
        result = list_operations(session);
    if (result == 0)
        result = map_for_recovery(session);
    return result;
}

void session_finish(struct session *session)
{
    trace_destroy(session->trace);
    if (session->base)
        munmap(session->base, session->size);
    if (session->shadow && session->shadow != MAP_FAILED)
        munmap(session->shadow, session->size);
    if (session->marks)
        munmap(session->marks, sizeof(*session->marks));
    if (session->outcome)
        munmap(session->outcome, sizeof(*session->outcome));
    free(session->operations);
    if (session->fd >= 0)
        close(session->fd);
}
