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

static const char head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<style>\n"
    ":root{color-scheme:light dark;--lost:#c62828;--kept:#2e7d32;--soft:#8882;"
    "--line:#8885}\n"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
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

static void print_row(FILE *out, const char *name, const char *text)
{
    fprintf(out, "<tr><th>%s</th>", name);
    print_element(out, "<td>", text, "</td></tr>\n");
}

/* ---- A failure ------------------------------------------------------------------- */

static void print_banner(FILE *out, const struct report *report)
{
    const struct report_workload total = report_total(report);
    char coverage[200];

    report_coverage(&total, coverage, sizeof(coverage));
    if (report->failure_count == 0) {
        fputs("<div class=\"banner passed\"><p class=\"headline\">Passed</p>\n", out);
        print_element(out, "<p>No crash that was tried left anything wrong. Coverage: ",
                      coverage, ".</p></div>\n");
    }
}

static void print_headline(FILE *out, const struct failure *failure)
{
    print_element(out, "<div class=\"banner failed\"><p class=\"headline\">",
                  failure->blame.headline, "</p>\n");
    print_element(out, "<p><b>What to do:</b> ", failure->blame.hint, "</p></div>\n");
}

static void print_story(FILE *out, const struct report *report,
                        const struct failure *failure)
{
    fputs("<h2>What happened</h2>\n<table>\n", out);
    print_row(out, "Operation", failure->operation);
    print_row(out, "Crash", failure->crash);
    print_row(out, "Then", failure->verdict.message);
    fputs("</table>\n<p>See it again, under a debugger if you like:</p>\n<pre>", out);
    print_escaped(out, report->command);
    print_element(out, " --replay ", failure->id, "</pre>\n");
}

static void print_context(FILE *out, const struct source *source)
{
    FILE *file = source->path[0] ? fopen(source->path, "r") : NULL;
    char text[300];
    unsigned line = 0;

    if (!file)
        return;
    fputs("<h2>The store</h2>\n<pre>", out);
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
    source_of_event(&blame->store, &source);
    print_context(out, &source);
}

static bool is_first_of_line(const struct failure *failure, size_t index)
{
    uint64_t line = failure->stores[index].event.at / LINE_SIZE;

    for (size_t i = 0; i < index; i++)
        if (failure->stores[i].event.at / LINE_SIZE == line)
            return false;
    return true;
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
    size_t shown = 0;

    fputs("<h2>Cache lines in flight</h2>\n<p>What the program had stored, but was not "
          "durable yet: each row is a line of 64 bytes, each cell 8 of them. When the "
          "power fails, a line may have been written back at any time, or never; "
          "within a line, stores arrive in their order.</p>\n<div class=\"scroll\">\n",
          out);
    for (size_t i = 0; i < failure->store_count && shown < LINES_SHOWN; i++)
        if (is_first_of_line(failure, i)) {
            print_line(out, failure, failure->stores[i].event.at / LINE_SIZE);
            shown++;
        }
    fputs("</div>\n", out);
}

static void print_store(FILE *out, const struct trace_event *event, const char *fate)
{
    char place[500];

    source_describe(event, place, sizeof(place));
    fprintf(out, "<tr>%s", fate);
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
        fputs("<p>Everything that was stored before the crash had arrived.</p>\n", out);
        return;
    }
    print_lines(out, failure);
    fputs("<h2>Stores in flight</h2>\n<table><tr><th></th><th>Where</th><th>Offset</th>"
          "<th>Bytes</th><th>Value</th></tr>\n",
          out);
    for (size_t i = 0; i < failure->store_count && i < STORES_SHOWN; i++)
        print_store(out, &failure->stores[i].event,
                    failure->stores[i].lost ? "<td class=\"lost\">lost</td>"
                                            : "<td class=\"kept\">arrived</td>");
    fputs("</table>\n", out);
}

static void print_recovery(FILE *out, const struct failure *failure)
{
    fputs("<h2>What recovery made of it</h2>\n", out);
    if (failure->recovery_count == 0) {
        fputs("<p>It stored nothing.</p>\n", out);
        return;
    }
    fputs("<table><tr><th>Where</th><th>Offset</th><th>Bytes</th><th>Value</th></tr>\n",
          out);
    for (size_t i = 0; i < failure->recovery_count; i++)
        print_store(out, &failure->recovery[i], "");
    fputs("</table>\n", out);
}

static void print_failure(FILE *out, const struct report *report,
                          const struct failure *failure)
{
    print_headline(out, failure);
    print_story(out, report, failure);
    print_culprit(out, &failure->blame);
    print_in_flight(out, failure);
    print_recovery(out, failure);
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

static void print_coverage(FILE *out, const struct report_workload *workload)
{
    const struct explore_count *count = &workload->count;
    char coverage[200];

    report_coverage(workload, coverage, sizeof(coverage));
    print_element(out, "<h2>Coverage: ", workload->name, "</h2>\n<table>\n");
    print_row(out, "Coverage", coverage);
    fprintf(out,
            "<tr><th>Operations</th><td>%llu</td></tr>\n"
            "<tr><th>Crash points</th><td>%llu</td></tr>\n"
            "<tr><th>Different states after a power failure</th><td>%llu</td></tr>\n"
            "<tr><th>The same during recovery</th><td>%llu</td></tr>\n"
            "<tr><th>Kills of the process before that</th><td>%llu</td></tr>\n"
            "<tr><th>Recoveries run</th><td>%llu</td></tr>\n"
            "<tr><th>Seconds</th><td>%.2f</td></tr>\n</table>\n",
            (unsigned long long)workload->operations, (unsigned long long)count->points,
            (unsigned long long)count->states, (unsigned long long)count->nested,
            (unsigned long long)count->kills, (unsigned long long)count->judged,
            workload->seconds);
    if (workload->programs > 1)
        return;
    fputs("<details><summary>By crash point</summary>\n<table><tr><th>The power fails"
          "</th><th>New states</th><th>Ways</th><th>Tried</th></tr>\n",
          out);
    for (size_t i = 0; i < workload->point_count; i++)
        print_point(out, &workload->points[i]);
    fputs("</table></details>\n", out);
}

static void print_page(FILE *out, const struct report *report)
{
    fputs(head, out);
    print_element(out, "<title>crashtest: ", report->name, "</title></head><body>\n");
    print_element(out, "<h1>crashtest: ", report->name, "</h1>\n");
    print_banner(out, report);
    for (size_t i = 0; i < report->failure_count; i++)
        print_failure(out, report, &report->failures[i]);
    for (size_t i = 0; i < report->workload_count; i++)
        print_coverage(out, &report->workloads[i]);
    fputs(
        "<p><small>A power failure keeps what is in persistent memory and loses what "
        "is in the CPU's caches. crashtest runs a program once, and then recovers from "
        "every content that persistent memory could have had at every moment of the "
        "run.</small></p>\n</body></html>\n",
        out);
}

int report_html(const struct report *report, const char *path)
{
    FILE *out = fopen(path, "w");

    if (!out)
        return -errno;
    print_page(out, report);
    return fclose(out) == 0 ? 0 : -errno;
}
