#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the report computes, with rows made up, and that it notices when it is stale."""
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import bars  # noqa: E402
import bench_report  # noqa: E402
import command  # noqa: E402
import document as documents  # noqa: E402
import kernel  # noqa: E402
import reasons  # noqa: E402
import sections  # noqa: E402
import text  # noqa: E402
import threshold  # noqa: E402
from stored import NoProgram, Stored, only, ratios  # noqa: E402


def row(scheme, size, mb_s, workload="overwrite", medium="tmpfs"):
    return {"scheme": scheme, "workload": workload, "record_size": size, "threads": 1,
            "medium": medium, "mb_s": mb_s}


class Ratios(unittest.TestCase):
    rows = [row("minl2r", 64, 30), row("minl2r", 4096, 90), row("minl2r", 65536, 100),
            row("journal", 64, 10), row("journal", 4096, 100)]

    def test_a_ratio_needs_both(self):
        self.assertEqual(ratios(self.rows, "minl2r", "journal"), {64: 3.0, 4096: 0.9})

    def test_the_smallest_and_the_largest_with_their_sizes(self):
        self.assertEqual(sections.ratio_text(self.rows, "journal"), "0.90 (4 KiB) to 3.00 (64 B)")
        self.assertEqual(sections.ratio_text(self.rows, "sp"), "-")

    def test_where_it_is_never_faster_is_said(self):
        rows = self.rows + [row("ordered", 64, 40), row("ordered", 4096, 90)]
        self.assertEqual(sections.never_faster_text(rows, ["tmpfs", "cxl"]),
                         "minl2r was faster at no size beside `ordered` on tmpfs (DRAM).")

    def test_the_worst_within_a_range_of_sizes(self):
        rows = self.rows + [row("journal", 65536, 200)]
        found = {bar["what"].split(", ")[2]: bar["measured"] for bar in bars.bars_of(rows)
                 if "overwrite, tmpfs" in bar["what"] and "journal" in bar["what"]}
        self.assertEqual(found, {"up to 1 KiB: minl2r / journal": "3.00 (64 B)",
                                 "1 KiB to 4 KiB: minl2r / journal": "0.90 (4 KiB)",
                                 "above 4 KiB: minl2r / journal": "0.50 (64 KiB)"})

    def test_two_rows_for_one_are_a_mistake(self):
        with self.assertRaises(ValueError):
            only(self.rows + [row("journal", 64, 1)], scheme="journal", record_size=64)


class Short(unittest.TestCase):
    def test_a_change_is_shown_beside_libpmemobj(self):
        rows = [{"case": "prove", "size": 8, "ranges": 1, "changed_pct": None, "system": system,
                 "pattern": "random", "ns_median": ns, "fences": fences}
                for system, ns, fences in (("minl2r", 300, 2), ("libpmemobj", 960, 5))]
        with tempfile.TemporaryDirectory() as directory:
            with open(os.path.join(directory, "tx.json"), "w") as file:
                json.dump(rows, file)
            found = list(sections.change_rows(Stored(directory)))
        self.assertEqual(found, [["8 B, `MINL2R_COMMIT_PROVE`", "960", "300", "3.2", "5", "2"]])


class Applications(unittest.TestCase):
    def test_where_pmfs_takes_longer_is_listed(self):
        rows = [{"app": "tar", "what": "unpack", "sync": sync, "system": system, "ms": ms,
                 "ms_min": ms - 1, "ms_max": ms + 1}
                for sync, system, ms in ((1, "pmfs-mount", 9), (1, "pmfs-preload", 3),
                                         (1, "ext4-journal", 5), (1, "ext4-ordered", 4),
                                         (0, "pmfs-mount", 9), (0, "ext4-ordered", 1))]
        self.assertEqual([(command, mine["system"], other["system"], other["ms"])
                          for command, mine, other in kernel.app_losses(rows)],
                         [("tar: unpack", "pmfs-mount", "ext4-ordered", 4)])


class Usage(unittest.TestCase):
    def test_a_path_that_is_empty_is_refused(self):
        for option in "--results", "--out":
            said = io.StringIO()
            with unittest.mock.patch("sys.argv", ["bench-report", option, ""]), \
                    contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as ended:
                bench_report.main()
            self.assertEqual(ended.exception.code, 2)
            self.assertIn(option, said.getvalue())

    def test_results_that_are_not_there_are_said(self):
        said = io.StringIO()
        with tempfile.TemporaryDirectory() as directory, \
                unittest.mock.patch("sys.argv", ["bench-report", "--check", "--results",
                                                 directory + "/none", "--out", directory]), \
                contextlib.redirect_stderr(said):
            self.assertEqual(bench_report.main(), 1)
        self.assertIn("none", said.getvalue())


    def test_without_matplotlib_its_package_is_named(self):
        said = io.StringIO()
        sys.modules.pop("plots", None)
        with tempfile.TemporaryDirectory() as directory, \
                unittest.mock.patch.dict(sys.modules, {"matplotlib": None}), \
                unittest.mock.patch("sys.argv", ["bench-report", "--results", directory, "--out",
                                                 directory + "/out"]), \
                contextlib.redirect_stderr(said):
            self.assertEqual(bench_report.main(), 1)
        self.assertIn("python3-matplotlib", said.getvalue())


class Bars(unittest.TestCase):
    def verdicts(self, rows):
        return {bar["what"]: bar["met"] for bar in bars.bars_of(rows)}

    def test_met_missed_and_not_measured(self):
        found = self.verdicts([row("minl2r", 64, 10), row("journal", 64, 10),
                               row("sjfs-eager", 64, 10.1)])
        what = "overwrite, tmpfs (DRAM), up to 1 KiB: minl2r / "
        self.assertIs(found[what + "journal"], True)
        self.assertIs(found[what + "sjfs-eager"], False)
        self.assertIsNone(found[what + "bpfs-durable"])

    def test_a_bar_is_of_its_medium_and_workload(self):
        found = self.verdicts([row("minl2r", 64, 1, medium="optane"),
                               row("journal", 64, 2, medium="optane")])
        self.assertIs(found["overwrite, Optane (model), every size: minl2r / journal"], False)
        self.assertIsNone(found["overwrite, tmpfs (DRAM), up to 1 KiB: minl2r / journal"])

    counts = {"mb_s": 1024, "fences": 2, "lines_flushed": 3, "lines_streamed": 66,
              "log_payload_bytes": 1024, "record_size": 1024, "workload": "overwrite",
              "copied_bytes": None}
    redo = {**counts, "mb_s": 2048, "fences": 1, "copied_bytes": 0}
    delays = [{"medium": medium, "what": what, "lines": lines, "threads": 1,
               "ns_here": 100 + slope * (lines - 1), "ns_got": 1000.}
              for medium in ("optane", "cxl")
              for what, slope in (("flush, fence", 4), ("stream, fence", 2), ("read", 10))
              for lines in (1, 2, 64)]
    # A bus that is limited is no medium's.
    delays += [{"medium": "1 GB/s", "what": "stream, fence", "lines": lines, "threads": 1,
                "ns_here": 9000, "ns_got": 9000.} for lines in (1, 64)]

    def test_what_a_difference_is_made_of(self):
        other = {**self.redo, "lines_flushed": 1}
        self.assertEqual(reasons.why_behind(self.counts, other, reasons.Costs([], "tmpfs")),
                         "500 ns more a call; 1 more fence; 2 more lines flushed; "
                         "1 KiB read to be saved before anything leaves")

    def test_what_that_costs_is_what_the_medium_was_measured_to(self):
        other = {**self.redo, "lines_streamed": 56, "lines_flushed": 5}
        costs = reasons.Costs(self.delays, "tmpfs")
        self.assertEqual(reasons.why_behind(self.counts, other, costs),
                         "500 ns more a call; 1 more fence: 100 ns; 2 fewer lines flushed: 8 ns less; "
                         "10 more lines streamed: 20 ns; 1 KiB read to be saved before anything "
                         "leaves: 250 ns; not explained by counts: 138 ns")

    def test_what_the_other_copies_it_reads_too(self):
        """48 lines take 570 ns to read; the phase that streams 66 takes 232 anyhow."""
        other = {**self.redo, "fences": 2, "mb_s": 1025, "copied_bytes": 3072}
        costs = reasons.Costs(self.delays, "tmpfs")
        self.assertEqual(reasons.why_behind(self.counts, other, costs),
                         "1 ns more a call; 1 KiB read to be saved before anything leaves: 250 ns; "
                         "3 KiB fewer copied: 338 ns less; reason not found: counts explain nothing "
                         "of that")

    def test_reads_that_were_measured_need_no_guess(self):
        mine = {**self.counts, "ns_reads": 700}
        other = {**self.redo, "fences": 2, "mb_s": 2048, "ns_reads": 300}
        self.assertEqual(reasons.why_behind(mine, other, reasons.Costs(self.delays, "optane")),
                         "500 ns more a call; waiting for reads, of old bytes, slots and bits: 400 ns; "
                         "not explained by counts: 100 ns")

    def test_what_is_read_while_copies_are_streamed_costs_nothing(self):
        """13 lines take 220 ns."""
        other = {**self.redo, "fences": 2, "mb_s": 1025, "copied_bytes": 832}
        costs = reasons.Costs(self.delays, "tmpfs")
        self.assertNotIn("copied", reasons.why_behind(self.counts, other, costs))

    def test_counts_that_explain_more_than_there_is_say_so(self):
        costs = reasons.Costs(self.delays, "tmpfs")
        self.assertIn("; the counts explain 349 ns more than that",
                      reasons.why_behind(self.counts, {**self.redo, "mb_s": 1025}, costs))

    def test_where_counts_are_no_reason_none_is_given(self):
        costs = reasons.Costs(self.delays, "tmpfs")
        large = {**self.counts, "record_size": 65536, "log_payload_bytes": 128, "mb_s": 65536,
                 "ns_p50": 910}
        other = {**large, "fences": 1, "mb_s": 131072, "ns_p50": 430}
        self.assertEqual(reasons.why_behind(large, other, costs),
                         "500 ns more a call; 1 more fence: 100 ns; reason not found: counts explain "
                         "100 ns of that; " + reasons.RULED_OUT + "; the medians differ by 480 ns")
        self.assertEqual(reasons.rest_text(40, 100), "not explained by counts: 40 ns")

    def test_what_an_overwrite_copies_beside_a_pointer(self):
        row = {**self.counts, "record_size": 4096 + 3072, "log_payload_bytes": 16}
        self.assertEqual(reasons.copied_bytes(row), 1024)
        self.assertEqual(reasons.copied_bytes(self.counts), 0)

    def test_costs_of_another_machine_are_said(self):
        with tempfile.TemporaryDirectory() as directory:
            for name, kernel in (("fs", "1"), ("delay", "1")):
                bench_report.write(os.path.join(directory, name + ".txt"),
                                   f"CPU: abacus\nKernel: {kernel}\n")
            with open(os.path.join(directory, "delay.json"), "w") as file:
                json.dump(self.delays, file)
            self.assertEqual(bars.delay_text(Stored(directory)), "")
            bench_report.write(os.path.join(directory, "delay.txt"), "CPU: slide rule\nKernel: 1\n")
            self.assertIn("CPU: slide rule, not abacus", bars.delay_text(Stored(directory)))

    def test_pointers_are_saved_unread(self):
        self.assertEqual(reasons.saved_bytes({"record_size": 8192, "log_payload_bytes": 16}), 0)

    def test_bars_are_those_that_the_program_prints_of_what_is_stored(self):
        with tempfile.TemporaryDirectory() as directory:
            stored = Stored(directory, directory)
            self.assertEqual(stored.printed_bars("tx"), [])
            bench_report.write(os.path.join(directory, "tx.json"),
                               "### Bars\n\n| a | 3 | 3 | met |\n- b: 1, at least 2: MISSED\n"
                               "- c: not measured\n| d | 1 | 2 | missed |\n\n### All\n\n- e: met\n")
            with self.assertRaisesRegex(NoProgram, "bench-tx, which is not built"):
                stored.printed_bars("tx")
            program = os.path.join(directory, "bench-tx")
            bench_report.write(program, '#!/bin/sh\n[ "$1" = --render ] && cat "$2"\n')
            os.chmod(program, 0o755)
            found = stored.printed_bars("tx")
            self.assertEqual(Stored(directory).printed_bars("tx"), [])
            bench_report.write(program, "#!/bin/sh\necho why >&2\nexit 1\n")
            with self.assertRaisesRegex(command.Failure, "why"):
                stored.printed_bars("tx")
        self.assertEqual([bar["met"] for bar in found], [True, False, False])

    def test_an_explorer_that_is_too_slow_misses(self):
        with tempfile.TemporaryDirectory() as directory:
            rows = [{"run": "library, eagerly", "setting": name, "states_per_s": rate}
                    for name, rate in (("a", 199999), ("b", 200000))]
            with open(os.path.join(directory, "crash.json"), "w") as file:
                json.dump(rows, file)
            found = list(sections.crash_bars(Stored(directory)))
        self.assertEqual([bar["met"] for bar in found], [False, True])
        self.assertIn("5.00003 us for a recovery and its judgement, not 5.00000", found[0]["why"])


def twin(scheme, size, mb_s, fences=2, **more):
    return {**row(scheme, size, mb_s, **more), **dict.fromkeys(bars.COUNTS, 100),
            "fences": fences}


class Noise(unittest.TestCase):
    def test_it_is_of_rows_that_do_nearly_the_same(self):
        rows = [twin("minl2r", 64, 100), twin("minl2r-data", 64, 110),
                twin("minl2r-ptr", 64, 900, 3), twin("minl2r", 8192, 100, 2),
                twin("minl2r-ptr", 8192, 125, 2.1), twin("minl2r-data", 8192, 900, 3)]
        noise = bars.noise_of(rows)
        self.assertEqual({key: [share for share, _, _ in known.found]
                          for key, known in noise.items()},
                         {("tmpfs", "up to 4 KiB"): [0.10000000000000009],
                          ("tmpfs", "above 4 KiB"): [0.25]})
        self.assertEqual(bars.noise_of(rows[:1]), {})

    def test_a_verdict_within_it_is_the_limits_and_says_so(self):
        for rival, verdict in ((104, "**missed**, within noise"), (96, "met, within noise"),
                               (120, "**missed**"), (80, "met")):
            rows = [twin("minl2r", 64, 100), twin("minl2r-data", 64, 106), twin("journal", 64, rival)]
            found = [bar for bar in bars.bars_of(rows) if bar["met"] is not None]
            self.assertEqual([bars.verdict_text(bar) for bar in found], [verdict])

    def test_without_twins_nothing_is_within_it(self):
        found = bars.bars_of([row("minl2r", 64, 100), row("journal", 64, 101)])
        self.assertEqual([bar["within_noise"] for bar in found if bar["worst"]], [False])


class Missed(unittest.TestCase):
    rows = [row("minl2r", size, 100) for size in (64, 128, 256)] + \
        [row("journal", size, mb_s) for size, mb_s in ((64, 125), (128, 100), (256, 200))]

    def test_each_size_that_misses_is_told(self):
        bar = next(bar for bar in bars.bars_of(self.rows) if bar["worst"])
        self.assertEqual([(place.size, place.ratio, place.why) for place in bar["missed"]],
                         [(64, 0.8, "not known"), (256, 0.5, "not known")])
        self.assertEqual(bars.missed_text(bar), "2 of 3")

    def test_what_none_meets_is_none(self):
        found = [bar for bar in bars.bars_of(self.rows) if bar["worst"]]
        self.assertEqual(text.count_text(found), "none of 1")

    def test_a_spread_is_of_the_slowest_beside_the_fastest(self):
        mine, other = {"mb_s_min": 90, "mb_s_max": 120}, {"mb_s_min": 40, "mb_s_max": 60}
        self.assertEqual(bars.spread_of(mine, other), (1.5, 3.0))
        self.assertIsNone(bars.spread_of(mine, {"mb_s_min": 40}))


class Threshold(unittest.TestCase):
    def rows(self, automatic, pointer_ns=700):
        return [{"medium": "tmpfs", "pattern": "hot", "size": size, "auto_threshold": automatic,
                 "data_ns": 100 + size / 2, "pointer_ns": pointer_ns, "data_log_bytes": size,
                 "pointer_log_bytes": 8, "data_pm_bytes": 2 * size, "pointer_pm_bytes": 4096}
                for size in range(512, 4097, 512)]

    def test_curves_cross_where_time_in_all_is_least(self):
        self.assertEqual(threshold.crossing_of(self.rows(1024)), 1536)
        self.assertEqual(threshold.crossing_of(self.rows(1024, 5000)), threshold.NEVER)
        self.assertEqual(threshold.crossing_of(self.rows(1024, 1)), 512)

    def test_what_auto_chose_otherwise_is_said_with_its_cost(self):
        self.assertIn("1 KiB rather than 1536 B on tmpfs (DRAM), hot (1.7% more time)",
                      threshold.differs_text(self.rows(1024)))
        self.assertIn("everywhere", threshold.differs_text(self.rows(1536)))

    def test_who_wins_is_said_of_time_and_bytes(self):
        self.assertIn("time: auto everywhere; log: auto everywhere; PM: half everywhere",
                      threshold.wins_text(self.rows(1536)))


class Rendering(unittest.TestCase):
    def test_html_escapes_and_marks_up(self):
        self.assertEqual(documents.inline_html("a < b, `x & y`, **so** [there](t.md)"),
                         "a &lt; b, <code>x &amp; y</code>, <strong>so</strong> "
                         '<a href="t.md">there</a>')

    def test_markdown_of_a_table(self):
        table = documents.Table(["a", "b"], [["x", 1]], "lr")
        self.assertEqual(documents.table_markdown(table),
                         "| a | b |\n| --- | ---: |\n| x | 1 |")

    def test_a_digest_is_of_what_is_drawn(self):
        one = documents.Figure("n", "lines", "c", {"x": [1]})
        other = documents.Figure("n", "lines", "c", {"x": [2]})
        self.assertEqual(one.digest(), documents.Figure("m", "lines", "d", {"x": [1]}).digest())
        self.assertNotEqual(one.digest(), other.digest())


class Stale(unittest.TestCase):
    """Without matplotlib: the drawings stand for themselves by their digest."""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.results = os.path.join(self.directory.name, "results")
        self.out = os.path.join(self.directory.name, "out")
        os.mkdir(self.results)
        os.mkdir(self.out)
        self.store(5)
        document = bench_report.make_document(self.results)
        svgs = {f.name: f"<svg><dc:description>data {f.digest()}</dc:description></svg>"
                for f in document.figures()}
        for name, svg in svgs.items():
            bench_report.write(os.path.join(self.out, name + ".svg"), svg)
        bench_report.write(os.path.join(self.out, "README.md"), documents.to_markdown(document))
        bench_report.write(os.path.join(self.out, "index.html"),
                           documents.to_html(document, svgs))

    def tearDown(self):
        self.directory.cleanup()

    def store(self, ns):
        rows = [{"case": "ranges", "pattern": pattern, "size": 8, "system": system, "ranges": n,
                 "ns_median": ns * n, "fences": 3}
                for pattern in ("hot", "random") for n in (2, 4)
                for system in ("minl2r", "libpmemobj", "floor")]
        with open(os.path.join(self.results, "tx.json"), "w") as file:
            json.dump(rows, file)

    def stale(self):
        return [os.path.basename(p) for p in bench_report.find_stale(self.results, self.out)]

    def test_what_was_just_made_is_not(self):
        self.assertEqual(self.stale(), [])

    def test_a_drawing_of_other_results_is(self):
        self.store(6)
        self.assertEqual(self.stale(), ["transactions.svg"])

    def test_a_number_typed_into_the_text_is(self):
        for name in ("README.md", "index.html"):
            path = os.path.join(self.out, name)
            as_made = bench_report.read(path)
            bench_report.write(path, as_made.replace("three fences", "two fences"))
            self.assertEqual(self.stale(), [name])
            bench_report.write(path, as_made)

    def test_the_machine_is_that_of_the_run(self):
        bench_report.write(os.path.join(self.results, "tx.txt"),
                           "CPU: abacus\nRounds: 3\n\nCPU: in a table\n\nTook: 7 s\n")
        self.assertEqual(Stored(self.results).machine("tx"),
                         {"CPU": "abacus", "Rounds": "3", "Took": "7 s"})


if __name__ == "__main__":
    unittest.main()
