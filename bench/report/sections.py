# SPDX-License-Identifier: BSD-3-Clause
"""What the report says. Every figure in it is of a stored result; a section without any is
left out, and the page says so."""
from document import Code, Figure, Heading, Paragraph, Table
from stored import only, ratios, values, where

MEDIA = {"tmpfs": "tmpfs (DRAM)", "optane": "Optane (model)", "cxl": "CXL (model)"}
SCHEMES = ["none", "minl2r", "minl2r-data", "minl2r-ptr", "bpfs-durable", "bpfs-ordered", "sp",
           "sjfs-eager", "sjfs-lazy", "journal", "ordered"]
MAIN_SCHEMES = ["none", "minl2r", "bpfs-durable", "sp", "sjfs-eager", "sjfs-lazy", "journal",
                "ordered"]
BLOCK = 4096
TABLE_SIZES = [64, 256, 1024, 1984, 2048, 4096, 16384, 65536, 262144, 1048576]


def scheme_rows(stored):
    """Not those of pmfs, which are no scheme's."""
    return [row for row in stored.rows("fs") if row["scheme"] in SCHEMES]


def size_text(size):
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size:g} B"


def number(value, decimals=0):
    return "-" if value is None else f"{value:,.{decimals}f}"


def by_column(rows, key, order):
    """The values of `key`, those that are known first, in the order given."""
    found = values(rows, key)
    return [v for v in order if v in found] + [v for v in found if v not in order]


def series_of(rows, schemes, y, x="record_size"):
    made = []
    for scheme in schemes:
        points = sorted((row[x], row[y]) for row in where(rows, scheme=scheme)
                        if row.get(y) is not None)
        if points:
            made.append({"name": scheme, "x": [p[0] for p in points],
                         "y": [p[1] for p in points]})
    return made


# ---- What was measured -------------------------------------------------------------


def add_runs(document, stored):
    names = stored.names()
    keys = ["CPU", "Cores", "Kernel", "Medium", "Rounds"]
    rows = []
    for name in names:
        machine = stored.machine(name)
        rows.append([f"[{name}.json](../bench/{name}.json)"] +
                    [machine.get(key, "-") for key in keys])
    commands = []
    for name in names:
        plain = f"./dev bench {name} --json docs/bench/{name}.json"
        command = stored.machine(name).get("Command", plain)
        commands.append(f"{command} | tee docs/bench/{name}.txt")
    document.add(
        Heading("The runs"),
        Paragraph("This page is made of stored results alone: no figure on it was typed in. "
                  "[BENCHMARKS.md](../BENCHMARKS.md) says what each benchmark does, and has "
                  "the complete tables."),
        Table(["result"] + keys, rows, "ll" + "l" * (len(keys) - 1)),
        Paragraph("They were stored by the first of these commands; the page was made of them by "
                  "the last:"),
        Code("\n".join(commands + ["./dev bench report"])))


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
        Paragraph("One small file model, the same calls, and for each scheme one source file: "
                  "only the scheme differs. Every write brings new bytes and is durable when it "
                  "returns, by each scheme's own rules. `none` is no scheme: it stores in place "
                  "and waits once, and a crash tears it. `ordered` may tear data, too."),
        Figure("throughput", "lines",
               "Throughput of one thread by the size of its writes; both axes are logarithmic. "
               "Higher is better.",
               {"columns": len(media), "x": "record size", "y": "MB/s", "x_bytes": True,
                "x_log": True, "y_log": True, "share_y": True, "x_rotation": 35,
                "panels": panels}))


KIB = 1024
RIVALS = ("bpfs-durable", "sjfs-eager", "journal")
BARS = [  # workload, medium, from size, to size, beside, minl2r's throughput at least ... times
    ("overwrite", "tmpfs", 0, KIB, RIVALS, 1),
    ("overwrite", "tmpfs", KIB + 1, 4 * KIB, RIVALS, 0.90),
    ("overwrite", "tmpfs", 4 * KIB + 1, None, RIVALS, 0.95),
    ("append", "tmpfs", 0, None, ("bpfs-durable",), 0.90),
    ("overwrite", "optane", 0, None, RIVALS, 1),
]


BEHIND = """Where minl2r is behind, several things add up. Undo reads the bytes that it is about to
change, from the medium if they are in no cache; redo (sjfs, journal) never looks at them. Two fences
rather than three are paid for with a second copy of a small change in the log: cheap where waiting is
dearer than lines, as on DRAM, but not on the model of Optane. Allocations are on PM and change
with each swapped block, where the other schemes keep them in DRAM and walk the tree after a crash. And it
is a library, which takes any ranges of any program in one transaction, checks them, and gathers them
before it writes, where a scheme here is a loop with one caller: what is left between two with the
same fences and about as many lines is the instructions of that, and it weighs most where the
medium is fastest."""


def range_text(low, high):
    if high is None:
        return f"above {size_text(low - 1)}" if low else "every size"
    return f"{size_text(low - 1)} to {size_text(high)}" if low else f"up to {size_text(high)}"


def worst_ratio(rows, other, low, high):
    """The least ratio between these sizes, and its size; None if nothing was measured."""
    found = [(ratio, size) for size, ratio in ratios(rows, "minl2r", other).items()
             if low <= size and (high is None or size <= high)]
    return min(found, default=None)


def bar_rows(rows):
    for workload, medium, low, high, others, least in BARS:
        chosen = where(rows, workload=workload, medium=medium, threads=1)
        for other in others:
            worst = worst_ratio(chosen, other, low, high)
            verdict = ("not measured" if worst is None else
                       "met" if worst[0] >= least else "**missed**")
            yield [f"{workload}, {MEDIA[medium]}, {range_text(low, high)}", other,
                   f"{worst[0]:.2f} ({size_text(worst[1])})" if worst else "-", f"{least:.2f}",
                   verdict]


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


def add_ratios(document, rows):
    document.add(
        Heading("minl2r beside each scheme"),
        Paragraph("Throughput of minl2r divided by the other's, in aligned overwrites by one "
                  "thread: above 1 minl2r is faster."),
        Figure("ratios", "lines", "How many times as fast as each scheme minl2r is.",
               {"columns": 3, "x": "record size", "y": "minl2r / scheme", "x_bytes": True,
                "x_log": True, "y_log": True, "share_y": True, "x_rotation": 35, "level": 1,
                "panels": [ratio_panel(rows, medium)
                           for medium in by_column(rows, "medium", list(MEDIA))]}))
    for medium in by_column(rows, "medium", list(MEDIA)):
        chosen = overwrites(rows, medium)
        others = [s for s in SCHEMES if s != "minl2r" and where(chosen, scheme=s)]
        document.add(Heading(MEDIA.get(medium, medium), 3), ratio_table(chosen, others))
    document.add(
        Heading("Bars", 3),
        Paragraph("What minl2r was to reach, and the size at which it is furthest from it."),
        Table(["what", "beside", "least ratio", "at least", ""], list(bar_rows(rows)), "llrrl"),
        Paragraph(" ".join(BEHIND.split())))


def workload_table(rows, size):
    schemes = [scheme for scheme in SCHEMES if where(rows, scheme=scheme)]
    table = []
    for workload in values(rows, "workload"):
        cells = [only(rows, scheme=scheme, workload=workload, record_size=size, threads=1)
                 for scheme in schemes]
        table.append([workload] + [number(cell["ns_p50"] if cell else None) for cell in cells])
    return Table([f"p50 ns, {size_text(size)}"] + schemes, table, "l" + "r" * len(schemes))


def add_workloads(document, rows):
    here = where(rows, medium="tmpfs")
    document.add(
        Heading("Other workloads"),
        Paragraph("Half of all calls take no longer than this, by one thread on tmpfs. `mixed` "
                  "is seven reads of ten calls. `unchanged` brings the bytes that are there "
                  "already: minl2r then logs and stores nothing."))
    for size in (64, 1024, BLOCK):
        if where(here, record_size=size):
            document.add(workload_table(here, size))
    add_threads(document, here)


def add_threads(document, rows):
    """Where two threads were measured."""
    sizes = [size for size in TABLE_SIZES if where(rows, record_size=size, threads=2)]
    if not sizes:
        return
    table = []
    for scheme in SCHEMES:
        cells = []
        for size in sizes:
            one, two = (only(rows, scheme=scheme, workload="overwrite", record_size=size,
                             threads=n) for n in (1, 2))
            cells.append(number(two["mb_s"] / one["mb_s"] if one and two else None, 2))
        table.append([scheme] + cells)
    document.add(
        Paragraph("Two threads, each on a file of its own: their throughput together, divided by "
                  "that of one."),
        Table(["two threads / one"] + [size_text(size) for size in sizes], table,
              "l" + "r" * len(sizes)))


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
    # What it compares with, its "up to" in %, our schemes in its place, why it differs.
    ("BPFS", 286, ["bpfs-durable", "bpfs-ordered"],
     "Both write a changed block anew from half of it on, so that there is nothing to gain; below "
     "that BPFS copies the rest of the block. How much that costs is the medium's: on DRAM "
     "streaming the whole block costs little more than waiting for one line, so a log of a few "
     "lines gains less than it did on a machine whose every line had to be flushed by itself. "
     "BPFS keeps its allocations in DRAM, here as in its paper, and so "
     "writes no bitmap."),
    ("Shortcut-JFS", 291, ["sjfs-eager", "sjfs-lazy"],
     "Rebuilt from abstracts: details that made the authors' version slower may be missing. Logged "
     "are differences, and blocks that become the file's by a pointer, so that it writes about as "
     "many bytes as minl2r; `sjfs-lazy` puts off writing in place, which no measurement of "
     "single writes sees."),
    ("ext4 data=journal", 395, ["journal"],
     "The scheme alone, without a block layer, a page cache, or a kernel: what the paper measured "
     "contains all of these. The real ext4, on a loop device, is further down."),
    ("ext4 data=ordered", 115, ["ordered"],
     "It makes no promise for data, which it writes in place: a crash tears it. What it "
     "journals is a block of metadata."),
]


def best_ratio(rows, other):
    """The largest ratio, and its size."""
    found = ratios(rows, "minl2r", other)
    return max(((ratio, size) for size, ratio in found.items()), default=(None, None))


def ratio_text(rows, other):
    ratio, size = best_ratio(rows, other)
    return "-" if ratio is None else f"{ratio:.2f} ({size_text(size)})"


def add_paper(document, rows):
    media = by_column(rows, "medium", list(MEDIA))
    table = []
    for name, percent, schemes, _ in PAPER:
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
                  "percent of the other's speed. Beside it our largest ratio of throughput over "
                  "all record sizes, plainly, 1 being equal, and the size that it is of."),
        Table(["compared with", "paper: faster by", "here"] +
              [MEDIA.get(m, m) for m in media] +
              [f"{size_text(BLOCK)}, tmpfs"], table, "lrl" + "r" * (len(media) + 1)),
        Paragraph("Why they differ. None of the others was made slower than its rules demand, and "
                  "all share one tree, one allocator and the same streaming stores."))
    for name, _, _, reason in PAPER:
        document.add(Paragraph(f"**{name}.** {reason}"))


def add_throughputs(document, stored):
    rows = scheme_rows(stored)
    if not rows:
        return False
    add_throughput(document, rows)
    add_ratios(document, rows)
    return True


def add_causes(document, stored):
    rows = scheme_rows(stored)
    if not rows:
        return False
    add_amplification(document, rows)
    add_counts(document, rows)
    add_latency(document, rows)
    add_workloads(document, rows)
    add_paper(document, rows)
    return True


# ---- The threshold -----------------------------------------------------------------


def add_threshold(document, stored):
    rows = stored.rows("threshold")
    if not rows:
        return False
    panels = []
    for pattern in ("hot", "random"):
        for medium in by_column(rows, "medium", list(MEDIA)):
            chosen = where(rows, medium=medium, pattern=pattern)
            sizes = [row["size"] for row in chosen]
            panels.append({
                "title": f"{pattern}, {MEDIA.get(medium, medium)}",
                "marks": [{"x": chosen[0]["auto_threshold"], "text": "auto"}],
                "series": [{"name": "data logging", "x": sizes,
                            "y": [row["data_ns"] for row in chosen]},
                           {"name": "pointer logging", "x": sizes,
                            "y": [row["pointer_ns"] for row in chosen]}]})
    document.add(
        Heading("Data or pointer logging"),
        Paragraph("A commit that changes the first bytes of a block of 4 KiB, by either kind of "
                  "logging. Half of a block is where both move the same bytes; `auto` is the "
                  "threshold that `MINL2R_POINTER_AUTO` chose by trying both when a pool was "
                  "created on that medium. Where it lies left of half it saves log and "
                  "time, and writes more bytes in all: the means over all sizes are in "
                  "[BENCHMARKS.md](../BENCHMARKS.md#the-threshold-of-pointer-logging)."),
        Figure("threshold", "lines",
               "Time of a commit by the bytes changed, and the threshold chosen. Lower is better.",
               {"columns": 3, "x": "changed bytes of a block", "y": "ns", "x_bytes": True,
                "share_y": False, "panels": panels}))
    return True


# ---- The model of media ------------------------------------------------------------


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
               "came out. Where this machine takes longer than that, it is this machine that is "
               "measured, and a little for the model.",
               {"columns": 3, "x": "lines", "y": "ns", "x_log": True, "y_log": True,
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
                "share_y": True, "panels": panels}))
    return True


# ---- Through the kernel ------------------------------------------------------------


def add_fio(document, stored):
    rows = stored.rows("fio")
    if not rows:
        return False
    order = ["pmfs-preload", "pmfs-mount", "ext4-journal", "ext4-ordered", "xfs", "tmpfs"]
    systems = by_column(rows, "system", order)
    jobs = {(row["job"], row["record_size"], row["sync"]): None for row in rows}
    table = []
    for job, size, sync in jobs:
        cells = [only(rows, job=job, record_size=size, sync=sync, system=s) for s in systems]
        table.append([job, size_text(size) if size else "-", "yes" if sync else "no"] +
                     [number(cell["iops"] if cell else None) for cell in cells])
    document.add(
        Heading("FIO, beside filesystems of the kernel"),
        Paragraph("The same job files on pmfs, in the process and mounted, and on ext4, xfs and "
                  "tmpfs on the same kind of memory; operations per second. ext4 and xfs are on "
                  "a loop device, whose thread makes every sync look worse than on persistent "
                  "memory as a block device. pmfs promises as much with a sync per write as "
                  "without."),
        Table(["job", "record", "sync"] + systems, table, "lrl" + "r" * len(systems)))
    return True


# ---- All of it ---------------------------------------------------------------------

LIMITS = """Everything was measured on tmpfs, whose lines go to DRAM: the instructions are those of
persistent memory, the waiting is not. The model adds what is known of slower media, and knows
nothing of their buffers. Times are of one machine; counts are of any."""


def fill(document, stored):
    document.add(Paragraph("What a consistent write to persistent memory costs, by MinL2R and by "
                           "what it is compared with."))
    add_runs(document, stored)
    missing = [name for name, add in (
        ("fs", add_throughputs), ("log", add_log), ("fs", add_causes), ("threshold", add_threshold), ("delay", add_delay),
        ("tx", add_tx), ("fio", add_fio)) if not add(document, stored)]
    document.add(Heading("What this does not show"), Paragraph(" ".join(LIMITS.split())))
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        document.add(Paragraph(f"No results are stored of: {names}."))
