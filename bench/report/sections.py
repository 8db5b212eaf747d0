# SPDX-License-Identifier: BSD-3-Clause
"""What the report says. Every figure in it is of a stored result; a section without any is
left out, and the page says so."""
import math
import statistics

from bars import RIVALS, add_bars, bars_of
from document import Code, Figure, Heading, Paragraph, Table
from kernel import (LOOP_CAVEAT, SYSTEMS, add_apps, add_fio, add_mount, add_preload, fio_bars, fio_rows,
                    mount_bars, scale_text)
from reasons import BLOCK, LINE
from stored import by_column, only, ratios, values, where
from text import MEDIA, apart, bar_table, count_text, joined, listed, number, size_text
from threshold import add_threshold

SCHEMES = ["none", "minl2r", "minl2r-data", "minl2r-ptr", "bpfs-durable", "bpfs-ordered", "sp",
           "sjfs-eager", "sjfs-lazy", "journal", "ordered"]
MAIN_SCHEMES = ["none", "minl2r", "bpfs-durable", "sp", "sjfs-eager", "sjfs-lazy", "journal",
                "ordered"]
TABLE_SIZES = [64, 256, 1024, 1984, 2048, 4096, 16384, 65536, 262144, 1048576]


def scheme_rows(stored):
    """Not those of pmfs, which are no scheme's."""
    return [row for row in stored.rows("fs") if row["scheme"] in SCHEMES]


def series_of(rows, schemes, y):
    """By record size; with the least and the most of the rounds where they are stored."""
    made = []
    for scheme in schemes:
        found = sorted((row for row in where(rows, scheme=scheme) if row.get(y) is not None),
                       key=lambda row: row["record_size"])
        if not found:
            continue
        series = {"name": scheme, "x": [row["record_size"] for row in found],
                  "y": [row[y] for row in found]}
        if y + "_min" in found[0]:
            series["low"] = [row[y + "_min"] for row in found]
            series["high"] = [row[y + "_max"] for row in found]
        made.append(series)
    return made


# ---- What was measured -------------------------------------------------------------


def machine_text(machine):
    return ", ".join([machine.get("CPU", "any machine, as it counts")] +
                     [machine[key] + (" cores" if key == "Cores" else "")
                      for key in ("Cores", "Kernel") if key in machine])


def machine_lines(stored):
    """Each machine, and what ran on it; each commit, and what was measured of it."""
    return (ran_text(stored, machine_text, "All ran on {}.") + " Code: " +
            ran_text(stored, code_text, "all of {}."))


def code_text(machine):
    return machine.get("Code", "not told")


def ran_text(stored, text_of, of_all):
    names = {}
    for name in stored.names():
        names.setdefault(text_of(stored.machine(name)), []).append(name)
    if len(names) == 1:
        return of_all.format(next(iter(names)))
    return "; ".join(f"{', '.join(ran)}: {text}" for text, ran in names.items()) + "."


def spread_text(rows):
    """How far the rounds of a throughput are apart, as a share of their median."""
    spreads = sorted((row["mb_s_max"] - row["mb_s_min"]) / row["mb_s"] for row in rows
                     if row.get("mb_s_min"))
    if not spreads:
        return ""
    half, most = (spreads[int(share * (len(spreads) - 1))] for share in (0.5, 0.9))
    return (f" The rounds of a throughput of `fs` lie apart, from the least to the most, by "
            f"{half:.0%} of their median in half of all rows, and by up to {most:.0%} in nine "
            "of ten.")


def add_runs(document, stored):
    rows, commands = [], []
    for name in stored.names():
        machine = stored.machine(name)
        plain = f"./dev bench {name} --json docs/bench/{name}.json"
        commands.append(f"{machine.get('Command', plain)} | tee docs/bench/{name}.txt")
        rows.append([f"[{name}.json](../bench/{name}.json)", machine.get("Rounds", "-"),
                     machine.get("Took", "-"), machine.get("Medium", "-").split("; ext4")[0]])
    document.add(
        Heading("The runs"),
        Paragraph("This page is made of stored results alone: no figure on it was typed in. "
                  "[BENCHMARKS.md](../BENCHMARKS.md) says what each benchmark does, and has "
                  "the complete tables. " + machine_lines(stored) + " What is compared "
                  "takes turns, round by round, in one run; a figure is the median of the rounds." +
                  spread_text(scheme_rows(stored))),
        Table(["result", "rounds", "took", "medium"], rows, "llrl"),
        Paragraph("They were stored by the first of these commands; the page was made of them by "
                  "the last:"),
        Code("\n".join(commands + ["./dev bench report"])))


# ---- In short ----------------------------------------------------------------------

CHANGES = [  # what it is called, case of bench-tx, bytes, ranges, % of a block
    ("an aligned word of 8 B", "store64", 8, 1, None),
    ("8 B", "ranges", 8, 1, None),
    ("1 KiB", "ranges", 1024, 1, None),
    ("16 times 8 B", "ranges", 8, 16, None),
    ("a block of 4 KiB, by its slot", "block", 4096, 1, 100),
    ("8 B, `MINL2R_COMMIT_PROVE`", "prove", 8, 1, None),
    ("16 times 8 B, `MINL2R_COMMIT_PROVE`", "prove", 8, 16, None),
]


def change_rows(stored):
    for name, case, size, ranges, percent in CHANGES:
        ours, theirs = (only(stored.rows("tx"), case=case, size=size, ranges=ranges,
                             changed_pct=percent, pattern="random", system=system)
                        for system in ("minl2r", "libpmemobj"))
        if ours and theirs:
            times = [row["ns_median"] for row in (theirs, ours)]
            yield [name, *map(number, times), number(times[0] / times[1], 1),
                   number(theirs["fences"]), number(ours["fences"])]


def add_short_tx(document, stored):
    rows = list(change_rows(stored))
    if rows:
        document.add(
            Paragraph("**A program that would use libpmemobj.** A transaction of the same change, at random "
                      "places of 64 MiB: median ns, and the fences that it waits at. "
                      "[More](#transactions-beside-libpmemobj)."),
            Table(["change", "libpmemobj", "minl2r", "times as fast", "its fences", "ours"], rows,
                  "lrrrrr"))


def add_short_files(document, stored):
    found = [(system, fio_rows(stored, system)) for system in SYSTEMS]
    rows = [[system, number(row["iops"]), number(row["lat_p50_ns"] / 1000, 1)]
            for system, row in found if row]
    if rows:
        document.add(
            Paragraph("**A program that writes files.** Random writes of 4 KiB, each durable when it "
                      "returns, by fio: pmfs in the process and mounted, beside filesystems of the "
                      f"kernel. {scale_text(stored)}{LOOP_CAVEAT} "
                      "[More](#fio-beside-filesystems-of-the-kernel)."),
            Table(["filesystem", "writes a second", "median us"], rows, "lrr"))


def add_short_schemes(document, stored):
    rows = overwrites(scheme_rows(stored), "tmpfs")
    if rows:
        document.add(
            Paragraph("**Somebody who would write a scheme for one file.** minl2r's throughput "
                      "divided by that of hand-written ones, in aligned overwrites on DRAM: above 1 the "
                      "library is faster. [More](#minl2r-beside-each-scheme), on slower media, too."),
            ratio_table(rows, RIVALS))


def scheme_bars(stored):
    """Those of the schemes, medium by medium: name, address and bars."""
    bars = list(bars_of(scheme_rows(stored)))
    return [(f"schemes for a file, {MEDIA[medium]}", "#bars", where(bars, medium=medium))
            for medium in values(bars, "medium")]


def add_summary(document, stored):
    """What somebody who has to decide needs first; how many bars of each kind are met, with
    where to read on."""
    rows = [[f"[{name}]({address})", count_text(bars)] for name, address, bars in (
        ("transactions", "../BENCHMARKS.md#transactions", stored.printed_bars("tx")),
        *scheme_bars(stored),
        ("pmfs in the process", "../BENCHMARKS.md#the-filesystem-in-process",
         stored.printed_bars("pmfs")),
        ("the mount", "#bars-of-the-mount", list(mount_bars(stored))),
        ("fio, beside ext4", "#bars-of-fio", list(fio_bars(stored))),
        ("the crash explorer", "#bars-of-the-explorer", list(crash_bars(stored))),
    ) if any(bar["met"] is not None for bar in bars)]
    document.add(Heading("In short"))
    add_short_tx(document, stored)
    add_short_files(document, stored)
    add_short_schemes(document, stored)
    if rows:
        document.add(
            Paragraph("**What was to be reached** was said before it was measured. Where a bar "
                      "is missed the table says what of the difference is known."),
            Table(["what", "bars met"], rows, "lr"))


WORDS = """Persistent memory is written in **lines** of 64 bytes, from the cache (`flushed`) or
past it (`streamed`). A **fence** waits until the lines sent before it are durable. A
**block** is 4 KiB. Undo logs the old bytes, redo the new ones; **shadow paging** writes a block anew and
then changes the pointer to it. MinL2R is undo, and where half of a block changes the old block is its
own log: **pointer logging**."""

KINDS = {
    "none": ("stores in place and waits once", "none: a crash tears it"),
    "minl2r": ("is a transaction of the library", "atomic, durable"),
    "minl2r-data": ("the same, always with data logging", "atomic, durable"),
    "minl2r-ptr": ("the same, always with pointer logging", "atomic, durable"),
    "bpfs-durable": ("BPFS: copies blocks and nodes, up to one word", "atomic, durable"),
    "bpfs-ordered": ("the same, without waiting for the word",
                     "atomic; the last write may be lost"),
    "sp": ("shadow paging: copies up to the root, always", "atomic, durable"),
    "sjfs-eager": ("Shortcut-JFS: logs differences or new blocks, and stores them at home",
                   "atomic, durable"),
    "sjfs-lazy": ("the same, at home when the log is full", "atomic, durable"),
    "journal": ("journals whole blocks, as ext4 with data=journal", "atomic, durable"),
    "ordered": ("journals metadata only, as ext4 with data=ordered", "tears data"),
}


def add_schemes(document, rows):
    def fences(scheme, size):
        row = only(overwrites(rows, "tmpfs"), scheme=scheme, record_size=size)
        return number(row["fences"], 0 if row["fences"] % 1 < 0.005 else 2) if row else "-"

    document.add(
        Heading("What is compared"),
        Paragraph(joined(WORDS)),
        Paragraph("One small file model, the same calls, and for each scheme one source file: only "
                  "the scheme differs. Every write brings new bytes. minl2r stores through the "
                  "library only, and says so (`MINL2R_COMMIT_PROVE`), as pmfs does. Each scheme is crashed at any "
                  "moment by the project's own [explorer](../CRASHTEST.md), with what it promises: the "
                  "three of minl2r by single writes and with a limit of states, because the library's own "
                  "tests explore it deeper. "
                  "Details and sources are in [BENCHMARKS.md](../BENCHMARKS.md#schemes)."),
        Table(["scheme", "a write", "promise", "fences, 64 B", "fences, 4 KiB"],
              [[f"`{scheme}`", *KINDS[scheme], fences(scheme, 64), fences(scheme, BLOCK)]
               for scheme in SCHEMES if where(rows, scheme=scheme)], "lllrr"),
        Paragraph("Equal promises are not equal work. **Which blocks are in use** minl2r keeps on "
                  "the medium, in bitmaps that every swap of a block changes and writes. All others "
                  "keep it in DRAM, and walk the whole tree to find it again when a file is opened. "
                  "**What is stored at home** minl2r waits for before it returns. `sjfs-eager` waits "
                  "for its log only: the fence of the next write waits for the rest, and after a crash it "
                  "is stored again from the log. `sjfs-lazy` and `journal` put it off until their log is "
                  "full, so that many writes to one block share it."))


# ---- Schemes -----------------------------------------------------------------------


def overwrites(rows, medium):
    return where(rows, workload="overwrite", threads=1, medium=medium)


def add_throughput(document, rows):
    workloads = [w for w in ("overwrite", "overwrite random", "append") if where(rows, workload=w)]
    media = by_column(rows, "medium", list(MEDIA))
    panels = []
    for workload in workloads:
        for medium in media:
            chosen = where(rows, workload=workload, threads=1, medium=medium)
            panels.append({"title": f"{workload}, {MEDIA.get(medium, medium)}",
                           "series": series_of(chosen, MAIN_SCHEMES, "mb_s")})
    document.add(
        Heading("Throughput by record size"),
        Figure("throughput", "lines",
               "Throughput of one thread by the size of its writes, with the least and the most of "
               "the rounds shaded; both axes are logarithmic. Higher is better.",
               {"columns": len(media), "x": "record size", "y": "MB/s", "x_bytes": True,
                "x_log": True, "y_log": True, "share_y": True, "x_rotation": 35,
                "panels": panels}))


def ratio_table(rows, comparators):
    sizes = [size for size in TABLE_SIZES if where(rows, record_size=size)]
    table = []
    for other in comparators:
        found = ratios(rows, "minl2r", other)
        table.append([other] + [number(found.get(size), 2) for size in sizes])
    return Table(["minl2r /"] + [size_text(size) for size in sizes], table,
                 "l" + "r" * len(sizes))


def ratio_panel(rows, medium):
    series = []
    for other in MAIN_SCHEMES:
        found = sorted(ratios(overwrites(rows, medium), "minl2r", other).items())
        if found and other != "minl2r":
            series.append({"name": other, "x": [x for x, _ in found],
                           "y": [y for _, y in found]})
    return {"title": MEDIA.get(medium, medium), "series": series}


def add_ratios(document, rows, stored):
    document.add(
        Heading("minl2r beside each scheme"),
        Paragraph("Throughput of minl2r divided by the other's, in aligned overwrites by one "
                  "thread: above 1 minl2r is faster."),
        Figure("ratios", "lines", "How many times as fast as each scheme minl2r is.",
               {"columns": 3, "x": "record size", "y": "minl2r / scheme", "x_bytes": True,
                "x_log": True, "y_log": True, "y_ticks": [2 ** power for power in range(-2, 5)],
                "share_y": True, "x_rotation": 35, "level": 1,
                "panels": [ratio_panel(rows, medium)
                           for medium in by_column(rows, "medium", list(MEDIA))]}))
    for medium in by_column(rows, "medium", list(MEDIA)):
        chosen = overwrites(rows, medium)
        others = [s for s in SCHEMES if s != "minl2r" and where(chosen, scheme=s)]
        document.add(Heading(MEDIA.get(medium, medium), 3), ratio_table(chosen, others))
    add_bars(document, rows, stored)


def workload_table(rows, size):
    schemes = [scheme for scheme in SCHEMES if where(rows, scheme=scheme)]
    table = []
    for workload in values(rows, "workload"):
        cells = [only(rows, scheme=scheme, workload=workload, record_size=size, threads=1)
                 for scheme in schemes]
        table.append([workload] + [number(cell["ns_p50"] if cell else None) for cell in cells])
    return Table([f"p50 ns, {size_text(size)}"] + schemes, table, "l" + "r" * len(schemes))


def unchanged_text(rows):
    row = only(rows, scheme="minl2r", workload="overwrite unchanged", record_size=1024, threads=1)
    if not row or "log_payload_bytes" not in row:
        return ""
    return (f": of 1 KiB minl2r saves {number(row['log_payload_bytes'])} B, streams "
            f"{number(row['lines_streamed'])} lines and flushes {number(row['lines_flushed'])}")


def add_workloads(document, rows):
    here = where(rows, medium="tmpfs")
    document.add(
        Heading("Other workloads"),
        Paragraph("Half of all calls take no longer than this, by one thread on tmpfs. `mixed` "
                  "is seven reads of ten calls. `unchanged` brings the bytes that are there "
                  "already, which only a library that compares can make use of" +
                  unchanged_text(here) + "."))
    for size in (64, 1024, BLOCK):
        if where(here, record_size=size):
            document.add(workload_table(here, size))


def scaling_of(rows, scheme):
    """{size: throughput of two threads / of one}"""
    one, two = ({row["record_size"]: row["mb_s"]
                 for row in where(rows, scheme=scheme, workload="overwrite", threads=n)}
                for n in (1, 2))
    return {size: two[size] / one[size] for size in sorted(two) if size in one}


def pmfs_scaling_text(stored):
    one, two = (only(stored.rows("pmfs"), op=f"overwrite by {threads}", size=4096)
                for threads in ("1 thread", "2 threads"))
    if not one or not two:
        return ""
    ours, floor = (2 * one[key] / two[key] for key in ("ns_median", "ns_floor"))
    return (f" Two threads that overwrite blocks of files of their own on pmfs do {ours:.2f} "
            f"times as many as one; on plain memory, which is what the machine has to give, "
            f"{floor:.2f} times.")


def add_threads(document, stored):
    rows = where(scheme_rows(stored), medium="tmpfs")
    found = {scheme: scaling_of(rows, scheme) for scheme in SCHEMES}
    if not any(found.values()):
        return
    sizes = [size for size in TABLE_SIZES if any(size in s for s in found.values())]
    document.add(
        Heading("Two threads"),
        Paragraph("Two threads, each with a core and a file of its own: their throughput "
                  "together, divided by that of one. 2 is all that can be gained; what the memory "
                  "has to give is shared, and `none` shows it. The files of minl2r lie in one "
                  "pool; those of the other schemes share nothing but the machine. What the pool "
                  "costs was not measured by itself." +
                  pmfs_scaling_text(stored)),
        Figure("threads", "lines", "Throughput of two threads by that of one, by record size, in "
               "aligned overwrites on tmpfs. Higher is better.",
               {"columns": 1, "x": "record size", "y": "two threads / one", "x_bytes": True,
                "x_log": True, "level": 1, "panels": [{"title": "overwrite, tmpfs (DRAM)", "series": [
                    {"name": scheme, "x": list(found[scheme]), "y": list(found[scheme].values())}
                    for scheme in MAIN_SCHEMES if found[scheme]]}]}),
        Table(["two threads / one"] + [size_text(size) for size in sizes],
              [[scheme] + [number(found[scheme].get(size), 2) for size in sizes]
               for scheme in SCHEMES], "l" + "r" * len(sizes)))


# ---- Log, fences, latency ----------------------------------------------------------


LOGGED = [("minl2r", "minl2r_payload"), ("bpfs: shadow blocks", "bpfs_shadow"),
          ("bpfs: copied bytes", "bpfs_copied"), ("sjfs-eager", "sjfs_payload"),
          ("journal", "journal_payload")]
WRITTEN = [("minl2r", "minl2r_pm"), ("bpfs-durable", "bpfs_pm"), ("sjfs-eager", "sjfs_pm"),
           ("journal", "journal_pm")]


def add_log(document, stored):
    rows = stored.rows("log")
    if not rows:
        return False
    sizes = [row["record_size"] for row in rows]

    def panel(title, columns):
        return {"title": title, "series": [
            {"name": name, "x": sizes, "y": [row[key] for row in rows]} for name, key in columns]}

    document.add(
        Heading("What is logged, and what is written"),
        Paragraph("The log of minl2r is a saw-tooth: the original bytes that change, until half a "
                  "block does; then 8 bytes, the pointer to the block that is its own log. So "
                  "it shrinks as records grow, which is what the paper saw, too. Shadow paging "
                  "has no log. What the paper took for that of BPFS is not known: the "
                  "blocks written anew grow with the data, the bytes copied into them shrink "
                  "towards each whole block."),
        Figure("log", "lines",
               "Bytes per overwrite, from the start of a block on, by its size in steps of "
               f"{size_text(sizes[0])}. Left: the log's payload, original or new bytes and "
               "pointers without headers and padding, and what of BPFS could be called so. Right: "
               "everything stored to PM, the data included. Counted, and the same on any machine.",
               {"columns": 2, "x": "record size", "y": "bytes per write", "x_bytes": True,
                "y_bytes": True, "mark_every": 4,
                "panels": [panel("logged", LOGGED), panel("written in all", WRITTEN)]}))
    return True


def add_amplification(document, rows):
    written = series_of(overwrites(rows, "tmpfs"), MAIN_SCHEMES, "pm_bytes")
    document.add(
        Figure("written", "lines",
               "All bytes that one aligned overwrite stores to PM, the log and copies included, "
               "divided by the bytes that were to be written.",
               {"columns": 1, "x": "record size", "y": "bytes written / record size",
                "x_bytes": True, "x_log": True, "y_log": True,
                "panels": [{"title": "write amplification", "series": [
                    {**s, "y": [y / x for x, y in zip(s["x"], s["y"])]} for s in written]}]}))


def add_counts(document, rows):
    chosen = overwrites(rows, "tmpfs")
    sizes = [size for size in (64, 1024, BLOCK) if where(chosen, record_size=size)]

    def panel(size, keys, **more):
        found = [row for s in SCHEMES for row in where(chosen, scheme=s, record_size=size)]
        return {"title": size_text(size), **more,
                "rows": [{"name": row["scheme"], "values": [row[k] for k in keys]}
                         for row in found]}

    document.add(
        Heading("Fences and lines"),
        Paragraph("What a write costs on any machine: the fences that it waits at, and the lines "
                  "that it sends to memory. With one thread these counts are exact."),
        Figure("fences", "bars", "Fences per aligned overwrite.",
               {"x": "fences", "parts": ["fences"],
                "panels": [panel(size, ["fences"]) for size in sizes]}),
        Figure("lines", "bars",
               "Lines of 64 bytes per aligned overwrite: written back from the cache, and written "
               "past it.",
               {"x": "lines", "parts": ["flushed", "streamed"],
                "panels": [panel(size, ["lines_flushed", "lines_streamed"]) for size in sizes]}))


def add_latency(document, rows):
    points = [("p50", "ns_p50"), ("p99", "ns_p99"), ("p99.9", "ns_p999")]
    points = [point for point in points
              if all(row.get(point[1]) is not None for row in rows
                     if row["record_size"] <= BLOCK)]
    for medium in by_column(rows, "medium", list(MEDIA)):
        chosen = overwrites(rows, medium)
        sizes = [size for size in (64, 1024, BLOCK) if where(chosen, record_size=size)]
        panels = []
        for size in sizes:
            found = [row for s in SCHEMES for row in where(chosen, scheme=s, record_size=size)]
            panels.append({"title": size_text(size), "rows": [
                {"name": row["scheme"], "values": [row[key] for _, key in points]}
                for row in found]})
        if medium == "tmpfs":
            document.add(Heading("Latency"), Paragraph(
                "Each call timed by itself, the clock's own time subtracted."))
        document.add(Figure(
            f"latency-{medium}", "ranges",
            f"Latency of one aligned overwrite on {MEDIA.get(medium, medium)}: percentiles of "
            "all calls, on a logarithmic axis. Further left is better.",
            {"x": "ns", "points": [name for name, _ in points], "panels": panels}))


# ---- The paper ---------------------------------------------------------------------

PAPER = [
    # What it compares with, its "up to" in %, our schemes in its place.
    ("BPFS", 286, ["bpfs-durable", "bpfs-ordered"]),
    ("Shortcut-JFS", 291, ["sjfs-eager", "sjfs-lazy"]),
    ("ext4 data=journal", 395, ["journal"]),
    ("ext4 data=ordered", 115, ["ordered"]),
]


def lines_of(row):
    return row["lines_flushed"] + row["lines_streamed"]


def beside(rows, other, size, key):
    """What minl2r and another scheme have of something, in words."""
    chosen = overwrites(rows, "tmpfs")
    found = [only(chosen, scheme=scheme, record_size=size) for scheme in ("minl2r", other)]
    if not all(found):
        return "not measured"
    ours, theirs = (lines_of(row) if key == "lines" else row[key] for row in found)
    return f"{number(ours)} and {number(theirs)}"


def range_of_ratios(rows, other, least):
    """Of throughputs of aligned overwrites on tmpfs, in words."""
    found = [ratio for size, ratio in ratios(overwrites(rows, "tmpfs"), "minl2r", other).items()
             if size >= least]
    if not found:
        return "not measured"
    return (f"there minl2r's throughput is {min(found):.2f} to {max(found):.2f} times that of "
            f"`{other}`, by size")


def real_text(stored, other):
    """pmfs beside the filesystem itself."""
    theirs = fio_rows(stored, other)
    found = [(system, fio_rows(stored, system)) for system in ("pmfs-preload", "pmfs-mount")]
    ratios_said = [f"{row['iops'] / theirs['iops']:.1f} times ({system})"
                   for system, row in found if row and theirs]
    if not ratios_said:
        return ""
    return (" Random writes of 4 KiB with a sync each, by fio on pmfs beside the real one on a loop "
            f"device: {' and '.join(ratios_said)} as many. " + scale_text(stored, theirs) + LOOP_CAVEAT)


def paper_reasons(stored, rows):
    return {
        "BPFS": "Both write a changed block anew from half of it on. "
        "Below that BPFS copies the rest of the block: lines per write of 64 B, of minl2r and of "
        f"`bpfs-durable`: {beside(rows, 'bpfs-durable', 64, 'lines')}; of 4 KiB: "
        f"{beside(rows, 'bpfs-durable', BLOCK, 'lines')}. What those lines cost is the medium's: here "
        "they are streamed, and wait together at one fence; the paper's machine perhaps had no "
        "instruction that writes a line back without waiting for those before. From half of a block on "
        "minl2r changes bitmaps on PM, where BPFS, here as in its own paper, keeps its "
        f"allocations in DRAM: {range_of_ratios(rows, 'bpfs-durable', BLOCK // 2)}.",
        "Shortcut-JFS": "Rebuilt from abstracts: details that made the authors' version slower "
        "may be missing. It logs differences, and blocks that become the file's by a pointer, so that it "
        "writes about as much as minl2r: bytes "
        f"per write of 64 B, of minl2r and of `sjfs-eager`: {beside(rows, 'sjfs-eager', 64, 'pm_bytes')}; "
        f"of 1 KiB: {beside(rows, 'sjfs-eager', 1024, 'pm_bytes')}; of 4 KiB: "
        f"{beside(rows, 'sjfs-eager', BLOCK, 'pm_bytes')}. It does not wait for what it stores at "
        "home, and reads no old bytes of a small change. `sjfs-lazy` puts storing at home off until its log "
        "is full: medians do not see that, throughput does.",
        "ext4 data=journal": "The scheme alone, without a block layer, a page cache, or a kernel: what "
        "the paper measured contains all of these." + real_text(stored, "ext4-journal"),
        "ext4 data=ordered": "It makes no promise for data, which it writes in place: a crash "
        "tears it. What it journals is metadata, and an overwrite has none." +
        real_text(stored, "ext4-ordered"),
    }


def extreme_ratios(rows, other):
    """The smallest and the largest ratio, each with its size; () if nothing was measured."""
    found = sorted((ratio, size) for size, ratio in ratios(rows, "minl2r", other).items())
    return (found[0], found[-1]) if found else ()


def ratio_text(rows, other):
    return " to ".join(f"{ratio:.2f} ({size_text(size)})"
                       for ratio, size in extreme_ratios(rows, other)) or "-"


def never_faster_text(rows, media):
    """Beside whom, and where, minl2r was the faster one at no size."""
    said = []
    for scheme in (scheme for _, _, schemes in PAPER for scheme in schemes):
        found = {m: extreme_ratios(overwrites(rows, m), scheme) for m in media}
        slower = [MEDIA.get(m, m) for m, extremes in found.items()
                  if extremes and extremes[1][0] <= 1]
        if slower:
            said.append(f"beside `{scheme}` on {listed(slower)}")
    return f"minl2r was faster at no size {'; '.join(said)}." if said else \
        "Beside each of them minl2r was faster at some size on each medium."


def new_node_text():
    """What the lines of a new node are beside those of the data that it is for."""
    slots, lines = BLOCK // 8, BLOCK // LINE
    return (f"{lines} lines for {slots} new blocks of {lines}, "
            f"under {math.ceil(1000 / slots) / 10:.1f} % of the lines written")


def add_paper(document, stored):
    rows = scheme_rows(stored)
    if not rows:
        return
    media = by_column(rows, "medium", list(MEDIA))
    table = []
    for name, percent, schemes in PAPER:
        for scheme in schemes:
            found = only(overwrites(rows, "tmpfs"), scheme=scheme, record_size=BLOCK)
            ours = only(overwrites(rows, "tmpfs"), scheme="minl2r", record_size=BLOCK)
            at_block = ours["mb_s"] / found["mb_s"] if found and ours else None
            table.append([name, f"{percent} %", f"`{scheme}`"] +
                         [ratio_text(overwrites(rows, m), scheme) for m in media] +
                         [number(at_block, 2)])
    document.add(
        Heading("The paper's four ratios"),
        Paragraph("The paper (H. K. Lee et al., IMCOM 2015) found minl2r \"up to\" so many percent "
                  "faster than four others, on a machine with 8 GB of DRAM and a prototype on "
                  "ramfs, by FIO and IOzone. \"x % faster\" may be read as x or as x + 100 "
                  "percent of the other's speed. Beside it our ratios of throughput, plainly, 1 being "
                  "equal: the smallest and the largest of all record sizes, and the sizes that they "
                  "are of. " + never_faster_text(rows, media)),
        Table(["compared with", "paper: faster by", "here"] +
              [MEDIA.get(m, m) for m in media] +
              [f"{size_text(BLOCK)}, tmpfs"], table, "lrl" + "r" * (len(media) + 1)),
        Paragraph("Why they differ. The others share one tree, one allocator in DRAM, and the "
                  "library's streaming stores; `minl2r` is the library itself behind the same calls. "
                  "None of the others was made slower than its rules demand, with two small exceptions: "
                  "`bpfs` zeroes and flushes a new node of its tree whole, though slots past the size are "
                  f"never read: {new_node_text()}; the checkpoint of `journal` flushes all lines of a "
                  "home block of which one is dirty, as JBD2 writes whole blocks."))
    for name, reason in paper_reasons(stored, rows).items():
        document.add(Paragraph(f"**{name}.** {reason}"))


# ---- pmfs in the process -----------------------------------------------------------


def add_pmfs(document, rows):
    rows = where(rows, scheme="pmfs")
    if not rows:
        return
    columns = (("ns_p50", 0), ("ns_p99", 0), ("mb_s", 0), ("log_bytes", 0), ("lines_flushed", 1),
               ("lines_streamed", 1), ("fences", 2), ("calls", 0))
    document.add(
        Heading("Calls of pmfs"),
        Paragraph("The filesystem in the process, on tmpfs, timed and counted as the schemes are: a "
                  "file has times, names and a place in a directory besides its bytes. The `metadata "
                  "storm` makes, writes, links, renames, changes and twice unlinks one file after "
                  "another: what is shown is the mean of these seven calls, and the times are over all "
                  "of them. Counts are per call."),
        Table(["call", "size", "p50 ns", "p99 ns", "MB/s", "log B", "flushed", "streamed", "fences",
               "calls"],
              [[row["workload"], size_text(row["record_size"]) if row["record_size"] else "-"] +
               [number(row.get(key), decimals) for key, decimals in columns] for row in rows],
              "lrrrrrrrrr"))


def add_throughputs(document, stored):
    rows = scheme_rows(stored)
    if not rows:
        return False
    add_schemes(document, rows)
    add_throughput(document, rows)
    add_ratios(document, rows, stored)
    return True


def add_causes(document, stored):
    rows = scheme_rows(stored)
    if not rows:
        return False
    add_amplification(document, rows)
    add_counts(document, rows)
    add_latency(document, rows)
    add_workloads(document, rows)
    add_threads(document, stored)
    add_pmfs(document, stored.rows("fs"))
    add_paper(document, stored)
    return True


# ---- The model of media ------------------------------------------------------------


def deviation_text(rows):
    """How much longer it took than was due: what was asked for, or what this machine takes."""
    found = [row for row in rows if row["medium"] in MEDIA]
    row = max(found, key=lambda row: row["ratio"])
    half = statistics.median(row["ratio"] for row in found)
    return (f"It took up to {half:.2f} times as long as was due in half of them, and at most "
            f"{row['ratio']:.2f} times ({row['what']}, {number(row['lines'])} "
            f"line{'' if row['lines'] == 1 else 's'}, {MEDIA[row['medium']]}); due is the longer of what "
            "the model asks for and what this machine takes itself")


def add_delay(document, stored):
    rows = stored.rows("delay")
    if not rows:
        return False
    panels = []
    for medium in [m for m in values(rows, "medium") if m in MEDIA]:
        for what in values(where(rows, medium=medium), "what"):
            chosen = where(rows, medium=medium, what=what, threads=1)
            lines = [row["lines"] for row in chosen]
            series = [{"name": name, "x": lines, "y": [row[key] for row in chosen]}
                      for name, key in (("this machine", "ns_here"), ("asked for", "ns_asked"),
                                        ("got", "ns_got"), ("published", "ns_published"))
                      if any(row[key] is not None for row in chosen)]
            panels.append({"title": f"{what}, {MEDIA[medium]}", "series": series})
    document.add(
        Heading("The model of slower media"),
        Paragraph("Optane and CXL on this page are a model in front of the library's door to PM, "
                  "fitted to what was published; its rules and sources are in "
                  "[BENCHMARKS.md](../BENCHMARKS.md#slower-media). Here it measures itself."),
        Figure("delay", "lines",
               "Writes with a fence, and reads, by their lines: what the model asks for and what "
               "came out. " + deviation_text(rows) + ".",
               {"columns": 3, "x": "lines", "y": "ns", "x_log": True, "y_log": True,
                "x_ticks": values(rows, "lines"),
                "share_y": False, "panels": panels}))
    return True


# ---- Transactions ------------------------------------------------------------------


def add_tx(document, stored):
    rows = where(stored.rows("tx"), case="ranges")
    if not rows:
        return False
    panels = []
    for pattern in ("hot", "random"):
        chosen = [row for row in where(rows, pattern=pattern, size=8) if row["ranges"]]
        series = []
        for system in ("minl2r", "libpmemobj", "floor"):
            points = sorted((row["ranges"], row["ns_median"])
                            for row in where(chosen, system=system))
            series.append({"name": system, "x": [p[0] for p in points],
                           "y": [p[1] for p in points]})
        panels.append({"title": f"{pattern}, ranges of 8 bytes", "series": series})
    document.add(
        Heading("Transactions beside libpmemobj"),
        Paragraph("A transaction over many ranges waits at three fences whatever their number; "
                  "libpmemobj's at two for each. `floor` is the same bytes made durable with no "
                  "atomicity. More in [BENCHMARKS.md](../BENCHMARKS.md#transactions)."),
        Figure("transactions", "lines",
               "Time of a transaction by the number of its ranges. Lower is better.",
               {"columns": 2, "x": "ranges", "y": "ns", "x_log": True, "y_log": True,
                "x_ticks": sorted({x for panel in panels for s in panel["series"] for x in s["x"]}),
                "share_y": True, "panels": panels}))
    return True


# ---- The crash explorer ------------------------------------------------------------

STATES_PER_S = 200000  # of the library, each state tried, on one core


def crash_bars(stored):
    for row in stored.rows("crash"):
        if row["run"] != "library, eagerly":
            continue
        took, may = apart(1e6 / row["states_per_s"], 1e6 / STATES_PER_S)
        yield {"what": f"states a second, library, {row['setting']}",
               "measured": number(row["states_per_s"]),
               "demanded": f"at least {number(STATES_PER_S)}",
               "met": row["states_per_s"] >= STATES_PER_S,
               "why": f"{took} us for a recovery and its judgement, not {may}"}


def add_crash(document, stored):
    rows = stored.rows("crash")
    if not rows:
        return False
    document.add(
        Heading("Crash exploration"),
        Paragraph("Every claim of atomicity on this page is tried: `crashtest` makes the states that a "
                  "power failure can leave, recovers each, and judges it. **Eagerly**, one processor tries "
                  "every state of a crash point up to a limit, which shows the speed; **two in a row** "
                  "explores all pairs of operations on all processors, states that recovery "
                  "cannot tell apart counted once."),
        Table(["run", "setting", "programs", "crash points", "states", "coverage", "s", "states/s"],
              [[row["run"], row["setting"], number(row["programs"]), number(row["points"]),
                number(row["states"]), row["coverage"], number(row["seconds"], 1),
                number(row["states_per_s"])] for row in rows], "llrrrlrr"),
        Figure("crash", "bars", "States after a crash that are recovered and judged in a second. "
               "Longer is better.",
               {"x": "states/s", "parts": ["states/s"], "panels": [{"title": "", "rows": [
                   {"name": f"{row['run']}: {row['setting']}", "values": [row["states_per_s"]]}
                   for row in rows]}]}),
        Heading("Bars of the explorer", 3),
        bar_table(list(crash_bars(stored))))
    return True


# ---- All of it ---------------------------------------------------------------------

LIMITS = """Everything was measured on tmpfs, whose lines go to DRAM: the instructions are those of
persistent memory, the waiting is not. The model adds what is known of slower media, and knows
nothing of their buffers. Times are of one machine; counts are of any."""


SECTIONS = [("tx", add_tx), ("fs", add_throughputs), ("log", add_log), ("fs", add_causes),
            ("threshold", add_threshold), ("mount", add_mount), ("preload", add_preload),
            ("fio", add_fio), ("apps", add_apps), ("delay", add_delay), ("crash", add_crash)]


def fill(document, stored):
    document.add(Paragraph("What a consistent write to persistent memory costs, by MinL2R and by "
                           "what it is compared with. Times are of tmpfs in DRAM unless said."))
    add_summary(document, stored)
    missing = [name for name, add in SECTIONS if not add(document, stored)]
    add_runs(document, stored)
    document.add(Heading("What this does not show"), Paragraph(joined(LIMITS)))
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        document.add(Paragraph(f"No results are stored of: {names}."))
