/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One page that needs nothing else, for someone who has never seen the tester.
 */
#include <errno.h>
#include <string.h>

#include "crashtest/report.h"
#include "crashtest/source.h"

#define CONTEXT_LINES 3
#define STORES_SHOWN 64
#define LINES_SHOWN 32
#define POINTS_SHOWN 500
#define THREAD_COLOURS 4

static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<style>\n"
    ":root{color-scheme:light dark;--lost:#c62828;--kept:#2e7d32;--soft:#8882;"
    "--line:#8885}\n"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;"
    "padding:0 1rem}\n"
    "h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}\n"
    "code,pre,td.v{font-family:ui-monospace,monospace;font-size:.9em}\n"
    ".banner{border-left:.4rem solid;padding:.6rem 1rem;background:var(--soft)}\n"
    ".failed{border-color:var(--lost)}.passed{border-color:var(--kept)}\n"
    ".banner p{margin:.3rem 0}.headline{font-size:1.15rem;font-weight:600}\n"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25rem "
    ".6rem;border-bottom:1px solid var(--line);vertical-align:top}\n"
    ".lost{color:var(--lost);font-weight:600}.kept{color:var(--kept);font-weight:600}\n"
    ".cells{display:grid;grid-template-columns:6rem repeat(8,1fr);gap:2px;margin:2px 0;"
    "font:12px ui-monospace,monospace}\n"
    ".cells span{padding:.3rem;text-align:center;background:var(--soft);"
    "overflow:hidden}\n"
    ".cells .l{background:var(--lost);color:#fff}.cells .k{background:var(--kept);"
    "color:#fff}\n"
    "pre{overflow-x:auto;background:var(--soft);padding:.6rem}pre mark{display:block}\n"
    ".cells .h{background:none;opacity:.75}\n"
    "ol.story{padding-left:1.5rem}ol.story li{margin:.5rem 0}\n"
    ".bar{display:block;width:4rem;height:.7em;background:var(--soft)}"
    ".bar i{display:block;height:100%;background:var(--kept)}\n"
    "article{border-top:1px solid var(--line);margin-top:2rem}\n"
    "td.t0,td.t1,td.t2,td.t3{border-left:.4rem solid;font-weight:600}"
    "td.t0{border-left-color:#1565c0}td.t1{border-left-color:#6a1b9a}"
    "td.t2{border-left-color:#ef6c00}td.t3{border-left-color:#00838f}\n"
    ".scroll{overflow-x:auto}small{opacity:.75}\n"
    "</style>\n";

static void print_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
}

static void print_element(FILE *out, const char *open, const char *text,
                          const char *close)
{
    fputs(open, out);
    print_escaped(out, text);
    fputs(close, out);
}

/* ---- A failure ------------------------------------------------------------------- */

static void print_intro(FILE *out, const struct report *report)
{
    fputs(
        "<p>A power failure keeps what is in persistent memory (PM) and loses what is "
        "still in the CPU's caches. ",
        out);
    if (report->schedule_count > 0)
        fprintf(
            out,
            "crashtest ran the program with its %u threads in %zu different orders, "
            "and then had it recover from the contents that PM could have had at "
            "each moment of each run.</p>\n",
            report->threads, report_orders(report));
    else
        fputs("crashtest ran the program once, and then had it recover from the "
              "contents that PM could have had at each moment of that run.</p>\n",
              out);
}

static void print_verdict(FILE *out, const struct report *report)
{
    const struct report_workload total = report_total(report);
    char coverage[200];

    report_coverage(&total, coverage, sizeof(coverage));
    if (report->failure_count == 0) {
        fprintf(out, "<div class=\"banner%s</p>\n",
                total.count.out_of_time
                    ? "\"><p class=\"headline\">Nothing found, out of time"
                    : " passed\"><p class=\"headline\">Passed");
        print_element(out, "<p>No crash that was tried left anything wrong. Coverage: ",
                      coverage, ".</p></div>\n");
        return;
    }
    fprintf(out,
            "<p><b>%zu fault%s found.</b> Each is shown by the least that has to be "
            "lost for things to go wrong.</p>\n",
            report->failure_count, report->failure_count == 1 ? " was" : "s were");
}

static void print_unseen(FILE *out, const struct report *report)
{
    char text[200];

    for (size_t i = 0; i < report->workload_count; i++) {
        if (report->workloads[i].unseen.words == 0)
            continue;
        report_unseen(&report->workloads[i].unseen, text, sizeof(text));
        print_element(out, "<div class=\"banner\"><p><b>Not all was seen:</b> ", text,
                      " Code that crashtest-cc did not compile, a system call, or "
                      "inline assembly stores to PM, and may flush it, unseen, too. "
                      "Faults that are found may come of that.</p></div>\n");
    }
}

static void print_headline(FILE *out, const struct failure *failure)
{
    print_element(out, "<div class=\"banner failed\"><p class=\"headline\">",
                  failure->blame.headline, "</p>\n");
    print_element(out, "<p><b>What to do:</b> ", failure->blame.hint, "</p></div>\n");
}

static size_t count_lost(const struct failure *failure)
{
    size_t lost = 0;

    for (size_t i = 0; i < failure->store_count; i++)
        lost += failure->stores[i].lost;
    return lost;
}

static void print_losses(FILE *out, const struct failure *failure)
{
    size_t lost = count_lost(failure);

    if (failure->store_count == 0)
        fputs(
            "<li><b>Nothing was lost:</b> all that was stored before was durable.</li>"
            "\n",
            out);
    else if (lost == 0)
        fprintf(out,
                "<li><b>Nothing was lost:</b> %zu store%s not durable yet, but had "
                "arrived.</li>\n",
                failure->store_count, failure->store_count == 1 ? " was" : "s were");
    else
        fprintf(out,
                "<li><b>%zu of %zu stores were lost</b> that were not durable yet; the "
                "others had arrived. They are drawn below.</li>\n",
                lost, failure->store_count);
}

static void print_story(FILE *out, const struct report *report,
                        const struct failure *failure)
{
    fputs("<h2>What happened</h2>\n<ol class=\"story\">\n", out);
    print_element(out, "<li><b>Operation:</b> ", failure->operation, ".</li>\n");
    if (failure->turn_count > 0)
        fprintf(out,
                "<li><b>Threads</b> ran one at a time, in an order that seed %llu "
                "decides. Who ran last is listed below.</li>\n",
                (unsigned long long)failure->seed);
    print_element(out, "<li><b>Crash:</b> ", failure->crash, ".</li>\n");
    print_losses(out, failure);
    fprintf(out, "<li><b>Recovery</b> ran, and stored %s.</li>\n",
            failure->recovery_count == 0 ? "nothing" : "what is listed below");
    print_element(out, "<li><b>Then:</b> ", failure->verdict.message, ".</li>\n");
    fputs("</ol>\n<p>See it again, under a debugger if you like:</p>\n<pre>", out);
    print_escaped(out, report->command);
    print_element(out, " --replay ", failure->id, "</pre>\n");
}

static void print_turns(FILE *out, const struct failure *failure)
{
    char text[500];

    if (failure->turn_count == 0)
        return;
    fputs(
        "<h2>Who ran before the crash</h2>\n<p>The last turns of the threads: each row "
        "is what one of them did until another went on.</p>\n<table><tr><th>Thread"
        "</th><th>Operation</th><th>Where</th></tr>\n",
        out);
    for (size_t i = 0; i < failure->turn_count; i++) {
        const struct report_turn *turn = &failure->turns[i];

        report_turn(turn, text, sizeof(text));
        fprintf(out, "<tr><td class=\"t%u\">%u</td>",
                turn->first.thread % THREAD_COLOURS, turn->first.thread);
        print_element(out, "<td>", turn->operation, "</td>");
        print_element(out, "<td>", text, "</td></tr>\n");
    }
    fputs("</table>\n", out);
}

static void print_context(FILE *out, const char *title, const struct source *source)
{
    FILE *file = source->path[0] ? fopen(source->path, "r") : NULL;
    char text[300];
    unsigned line = 0;

    if (!file)
        return;
    print_element(out, title, source->place, "</h2>\n<pre>");
    while (fgets(text, sizeof(text), file)) {
        line++;
        if (line + CONTEXT_LINES < source->line || line > source->line + CONTEXT_LINES)
            continue;
        text[strcspn(text, "\n")] = 0;
        fprintf(out, "%s%5u  ", line == source->line ? "<mark>" : "", line);
        print_element(out, "", text, line == source->line ? "</mark>" : "\n");
    }
    fputs("</pre>\n", out);
    fclose(file);
}

static void print_culprit(FILE *out, const struct blame *blame)
{
    struct source source;

    if (blame->store.size == 0)
        return;
    source_of_program(&blame->store, &source);
    print_context(out, blame->store.outside ? "<h2>The call at " : "<h2>The store at ",
                  &source);
}

/* The lowest line from `from` on that has stores; UINT64_MAX: none. */
static uint64_t next_line(const struct failure *failure, uint64_t from)
{
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < failure->store_count; i++) {
        uint64_t line = failure->stores[i].event.at / LINE_SIZE;

        if (line >= from && line < next)
            next = line;
    }
    return next;
}

/* The newest store to the word that arrived or was lost decides its colour. */
static const struct account_entry *entry_of_word(const struct failure *failure,
                                                 uint64_t at)
{
    const struct account_entry *found = NULL;

    for (size_t i = 0; i < failure->store_count; i++)
        if (failure->stores[i].event.at / 8 == at / 8 &&
            (!found || failure->stores[i].lost || !found->lost))
            found = &failure->stores[i];
    return found;
}

static void print_line(FILE *out, const struct failure *failure, uint64_t line)
{
    unsigned long long start = line * LINE_SIZE;

    fprintf(out, "<div class=\"cells\"><span>0x%llx</span>", start);
    for (uint64_t at = start; at < start + LINE_SIZE; at += 8) {
        const struct account_entry *entry = entry_of_word(failure, at);

        if (!entry)
            fputs("<span>&middot;</span>", out);
        else
            fprintf(out, "<span class=\"%s\">%s</span>", entry->lost ? "l" : "k",
                    entry->lost ? "lost" : "arrived");
    }
    fputs("</div>\n", out);
}

static void print_lines(FILE *out, const struct failure *failure)
{
    uint64_t line = next_line(failure, 0);

    fputs("<h2>Cache lines in flight</h2>\n<p>What the program had stored, but was not "
          "durable yet: each row is a line of 64 bytes, each cell 8 of them. When the "
          "power fails, a line may have been written back at any time, or never; "
          "within a line, stores arrive in their order.</p>\n<div class=\"scroll\">\n"
          "<div class=\"cells\"><span class=\"h\">offset</span>",
          out);
    for (unsigned i = 0; i < LINE_SIZE; i += 8)
        fprintf(out, "<span class=\"h\">+%u</span>", i);
    fputs("</div>\n", out);
    for (size_t shown = 0; line != UINT64_MAX && shown < LINES_SHOWN; shown++) {
        print_line(out, failure, line);
        line = next_line(failure, line + 1);
    }
    fputs(line != UINT64_MAX ? "<p>There are more lines.</p></div>\n" : "</div>\n",
          out);
}

static void print_store(FILE *out, const struct trace_event *event, const char *fate,
                        bool names_thread)
{
    char place[500];

    source_describe(event, place, sizeof(place));
    fprintf(out, "<tr>%s", fate);
    if (names_thread)
        fprintf(out, "<td class=\"t%u\">%u</td>", event->thread % THREAD_COLOURS,
                event->thread);
    print_element(out, "<td>", place, "</td>");
    fprintf(out,
            "<td class=\"v\">0x%llx</td><td class=\"v\">%u</td><td class=\"v\">%llx "
            "&rarr; %llx</td></tr>\n",
            (unsigned long long)event->at, event->size,
            (unsigned long long)event->before, (unsigned long long)event->after);
}

static void print_in_flight(FILE *out, const struct failure *failure)
{
    if (failure->store_count == 0) {
        return;
    }
    print_lines(out, failure);
    fprintf(out,
            "<h2>Stores in flight</h2>\n<table><tr><th></th>%s<th>Where</th>"
            "<th>Offset</th><th>Bytes</th><th>Value</th></tr>\n",
            failure->turn_count > 0 ? "<th>Thread</th>" : "");
    for (size_t i = 0; i < failure->store_count && i < STORES_SHOWN; i++)
        print_store(out, &failure->stores[i].event,
                    failure->stores[i].lost ? "<td class=\"lost\">lost</td>"
                                            : "<td class=\"kept\">arrived</td>",
                    failure->turn_count > 0);
    fputs("</table>\n", out);
    if (failure->store_count > STORES_SHOWN)
        fprintf(out, "<p>There are %zu more.</p>\n",
                failure->store_count - STORES_SHOWN);
}

static void print_recovery(FILE *out, const struct failure *failure)
{
    if (failure->recovery_count == 0)
        return;
    fputs("<h2>What recovery stored</h2>\n", out);
    fputs("<table><tr><th>Where</th><th>Offset</th><th>Bytes</th><th>Value</th></tr>\n",
          out);
    for (size_t i = 0; i < failure->recovery_count; i++)
        print_store(out, &failure->recovery[i], "", false);
    fputs("</table>\n", out);
}

static void print_failure(FILE *out, const struct report *report,
                          const struct failure *failure)
{
    fputs("<article>\n", out);
    print_headline(out, failure);
    print_story(out, report, failure);
    print_turns(out, failure);
    print_culprit(out, &failure->blame);
    print_in_flight(out, failure);
    print_recovery(out, failure);
    fputs("</article>\n", out);
}

/* ---- Coverage -------------------------------------------------------------------- */

static void print_point(FILE *out, const struct report_point *point)
{
    char text[600] = "the end";

    if (!point->is_end)
        report_event(&point->before, text, sizeof(text));
    print_element(out, "<tr><td>before ", text, "</td>");
    fprintf(out, "<td class=\"v\">%llu</td>", (unsigned long long)point->point.states);
    if (point->point.possible == UINT64_MAX)
        fputs("<td class=\"v\">&gt; 10<sup>19</sup></td>", out);
    else
        fprintf(out, "<td class=\"v\">%llu</td>",
                (unsigned long long)point->point.possible);
    fprintf(out, "<td>%s</td></tr>\n", point->point.exact ? "all" : "some");
}

static void print_bar(FILE *out, uint64_t part, uint64_t all)
{
    fprintf(out, "<span class=\"bar\"><i style=\"width:%u%%\"></i></span> %llu",
            all == 0 ? 100 : (unsigned)(100 * part / all), (unsigned long long)part);
}

static void print_workload(FILE *out, const struct report_workload *workload)
{
    const struct explore_count *count = &workload->count;
    char coverage[200];

    report_coverage(workload, coverage, sizeof(coverage));
    print_element(out, "<tr><td>", workload->name, "</td>");
    print_element(out, "<td>", coverage, "</td>");
    fprintf(out, "<td>%llu</td><td>%llu</td><td>",
            (unsigned long long)workload->programs, (unsigned long long)count->points);
    print_bar(out, count->exact_points, count->points);
    fprintf(out,
            "</td><td>%llu</td><td>%llu</td><td>%llu</td><td>%llu</td><td>%.2f</td>",
            (unsigned long long)count->states, (unsigned long long)count->nested,
            (unsigned long long)count->kills, (unsigned long long)count->judged,
            workload->seconds);
    fprintf(out, "<td class=\"%s\">%zu</td></tr>\n",
            workload->failures ? "lost" : "kept", workload->failures);
}

static void print_order(FILE *out, const struct report_schedule *order)
{
    fprintf(out, "<tr><td>%llu</td><td>%llu</td>", (unsigned long long)order->seed,
            (unsigned long long)order->turns);
    if (order->same_as != 0)
        fprintf(out, "<td colspan=\"3\">does the same to PM as seed %llu</td></tr>\n",
                (unsigned long long)order->same_as);
    else if (!order->is_tried)
        fputs("<td colspan=\"3\">not crashed: enough was wrong before</td></tr>\n",
              out);
    else
        fprintf(out, "<td>%llu</td><td>%llu</td><td class=\"%s\">%zu</td></tr>\n",
                (unsigned long long)order->count.points,
                (unsigned long long)order->count.states,
                order->failures ? "lost" : "kept", order->failures);
}

static void print_orders(FILE *out, const struct report *report)
{
    if (report->schedule_count == 0)
        return;
    fprintf(
        out,
        "<h2>Orders of threads</h2>\n<p>The program was run %zu times, each time "
        "with its %u threads in the order that a seed decides: they change before "
        "stores to PM, flushes and fences, and where they lock or wait. %zu of these "
        "runs did not do the same to PM: those are to be crashed. The same seed "
        "gives the same order again: <code>--seed N --schedules 1</code>.</p>\n"
        "<details open><summary>By seed</summary><table><tr><th>Seed</th>"
        "<th>Turns</th><th>Crash points</th><th>States</th><th>Faults</th></tr>\n",
        report->schedule_count, report->threads, report_orders(report));
    for (size_t i = 0; i < report->schedule_count && i < POINTS_SHOWN; i++)
        print_order(out, &report->schedules[i]);
    fputs("</table></details>\n", out);
}

static void print_points(FILE *out, const struct report_workload *workload)
{
    if (workload->programs > 1 || workload->point_count == 0)
        return;
    print_element(out, "<details><summary>By crash point: ", workload->name,
                  "</summary>\n<table><tr><th>The power fails</th><th>New states</th>"
                  "<th>Possible</th><th>Tried</th></tr>\n");
    for (size_t i = 0; i < workload->point_count; i++)
        print_point(out, &workload->points[i]);
    fputs("</table></details>\n", out);
}

static void print_coverage(FILE *out, const struct report *report)
{
    const struct report_workload total = report_total(report);

    fputs("<h2>What was tried</h2>\n<p>A crash point is a moment at which something "
          "may become durable; a state is what PM can have then. Besides, the process "
          "is killed after each store, and the power fails during recovery.</p>\n"
          "<div class=\"scroll\"><table><tr><th>Workload</th><th>Coverage</th>"
          "<th>Programs</th><th>Crash points</th><th>in full</th><th>States</th>"
          "<th>in recovery</th><th>Kills</th><th>Runs of recovery</th><th>Seconds</th>"
          "<th>Faults</th></tr>\n",
          out);
    for (size_t i = 0; i < report->workload_count; i++)
        print_workload(out, &report->workloads[i]);
    if (report->workload_count > 1)
        print_workload(out, &total);
    fputs("</table></div>\n", out);
    for (size_t i = 0; i < report->workload_count && report->schedule_count == 0; i++)
        print_points(out, &report->workloads[i]);
}

static void print_warning(FILE *out, const struct lint_site *site, enum lint_kind kind)
{
    char place[500];

    source_describe(&site->event, place, sizeof(place));
    print_element(out, "<tr><td>", place, "</td>");
    fprintf(out, "<td>%s</td><td>%llu</td></tr>\n", lint_says(kind),
            (unsigned long long)site->useless[kind]);
}

static void print_warnings(FILE *out, const struct report *report)
{
    const struct lint_site *site;
    enum lint_kind kind;
    size_t at = 0, shown = 0;

    while ((site = report_warning(report, &at, &kind))) {
        if (shown++ == 0)
            fputs("<h2>Warnings</h2>\n<p>Not wrong, but for nothing.</p>\n<table><tr>"
                  "<th>Where</th><th>What</th><th>Times</th></tr>\n",
                  out);
        print_warning(out, site, kind);
    }
    if (shown > 0)
        fputs("</table>\n", out);
}

static void print_page(FILE *out, const struct report *report)
{
    fputs(head, out);
    print_element(out, "<title>crashtest: ", report->name, "</title></head><body>\n");
    print_element(out, "<h1>crashtest: ", report->name, "</h1>\n");
    print_intro(out, report);
    print_unseen(out, report);
    print_verdict(out, report);
    for (size_t i = 0; i < report->failure_count; i++)
        print_failure(out, report, &report->failures[i]);
    fputs("<article>\n", out);
    print_coverage(out, report);
    print_orders(out, report);
    print_warnings(out, report);
    fputs("</article>\n</body></html>\n", out);
}

int report_html(const struct report *report, const char *path)
{
    FILE *out = fopen(path, "w");

    if (!out)
        return -errno;
    print_page(out, report);
    return report_close(out);
}
