# SPDX-License-Identifier: BSD-3-Clause
"""The report of what runs through the kernel, or beside what does: the mount, preloaded
programs, fio, and applications."""
from document import Figure, Heading, Paragraph, Table
from stored import by_column, only, values, where
from text import bar_table, joined, number, size_text

SYSTEMS = ["pmfs-preload", "pmfs-mount", "ext4-journal", "ext4-ordered", "xfs", "tmpfs"]

LOOP_CAVEAT = ("ext4 and xfs are on a loop device, whose thread makes every sync look worse than it "
               "would be on persistent memory as a block device.")
IN_PROCESS_CAVEAT = """On pmfs-preload a call is one of a library, in the process; on the others it
enters the kernel."""
LOOP = LOOP_CAVEAT + " " + IN_PROCESS_CAVEAT + """ On pmfs-mount it leaves the kernel again for the
process that serves it. pmfs promises as much with a sync per write as without."""


def title(name, size):
    return name if size is None else f"{name} {size_text(size)}"


# ---- The mount ---------------------------------------------------------------------

ABOVE_NS = 2000  # per request
IN_PROCESS = {"write": "overwrite"}  # what bench-pmfs calls it


def mount_why(stored, row):
    name = IN_PROCESS.get(row["op"], row["op"])
    direct = only(stored.rows("pmfs"), op=name, size=row["size"])
    if not direct:
        return ""
    return (f"the call takes {number(direct['ns_median'])} ns in the process "
            f"({number(direct['fences'])} fences, "
            f"{number(direct['lines_flushed'] + direct['lines_streamed'])} lines)")


def mount_bars(stored):
    for row in stored.rows("mount"):
        above = row["ns_own"] if row["requests"] >= 1 else row["ns_pmfs"]
        yield {"what": title(row["op"], row["size"]), "measured": f"{number(above)} ns",
               "demanded": f"at most {number(ABOVE_NS)} ns", "met": above <= ABOVE_NS,
               "why": mount_why(stored, row)}


def add_mount(document, stored):
    rows = stored.rows("mount")
    if not rows:
        return False
    document.add(
        Heading("The mount"),
        Paragraph("Most of what a call through a mount costs is the kernel's and libfuse's: an "
                  "**empty** filesystem that keeps nothing and answers at once shows how "
                  "much. Who asks and who answers share a core."),
        Figure("mount", "bars", "Time of a call through a mount, by what it is made of. Shorter is "
               "better.",
               {"x": "ns", "parts": ["empty filesystem", "pmfs, above that"], "panels": [
                   {"title": "", "rows": [
                       {"name": title(row["op"], row["size"]),
                        "values": [row["ns_empty"], max(0, row["ns_above"])]}
                       for row in rows]}]}),
        Heading("Bars of the mount", 3),
        Paragraph("What is above the empty filesystem, per request that the job is about: what lookups "
                  "and the like of the same call take is off, by rows of their own, and so is the copy of "
                  "more than 4 KiB, which the empty filesystem has not to do. Where the kernel sends no "
                  "request, the whole call."),
        bar_table(list(mount_bars(stored))))
    return True


# ---- Preloaded programs -------------------------------------------------------------


def preload_text(rows):
    """A preloaded call beside the same of pmfs.h."""
    said = [f"{row['ratio_pmfs_h']:.2f} times as long for a {row['call']} of {size_text(row['size'])}"
            for row in where(rows, by="preloaded")]
    return f" Preloaded it takes {', '.join(said)} as by `pmfs.h`." if said else ""


def add_preload(document, stored):
    rows = stored.rows("preload")
    if not rows:
        return False
    calls = dict.fromkeys((row["call"], row["size"]) for row in rows)
    document.add(
        Heading("Preloaded programs"),
        Paragraph("A program that is run with `libpmfs-preload.so` reads and writes files of pmfs "
                  "without entering the kernel, atomically and durably. Beside it the same calls "
                  "by `pmfs.h`, and by the kernel on tmpfs, which promises nothing." +
                  preload_text(rows)),
        Figure("preload", "bars", "Time of a call at random places of a file of 64 MiB. Shorter "
               "is better.",
               {"x": "ns", "parts": ["ns"], "panels": [
                   {"title": title(call, size), "rows": [
                       {"name": row["by"], "values": [row["ns_median"]]}
                       for row in where(rows, call=call, size=size)]}
                   for call, size in calls]}))
    return True


# ---- FIO ---------------------------------------------------------------------------

FIO_BARS = [("ext4-journal", 3), ("ext4-ordered", 1.5)]
SWEEPS = [("sweep write", 1), ("sweep rewrite", 1), ("sweep random write", 1), ("sweep read", 0),
          ("sweep random read", 0)]


def fio_rows(stored, system):
    return only(stored.rows("fio"), job="random write", record_size=4096, sync=1, system=system)


def scale_text(stored, theirs=None):
    """What belongs beside a large ratio of pmfs-preload: what a call that enters the kernel can
    reach, tmpfs' own figure; `theirs`: the row that is compared with."""
    tmpfs = fio_rows(stored, "tmpfs")
    if not tmpfs:
        return joined(IN_PROCESS_CAVEAT) + " "
    beside = f", {tmpfs['iops'] / theirs['iops']:.1f} times as many as that" if theirs else ""
    return (joined(IN_PROCESS_CAVEAT) + f" tmpfs, which keeps nothing and is the scale for those, does "
            f"{number(tmpfs['iops'])} a second{beside}. ")


def fio_why(stored, system, mine, theirs):
    why = f"a call takes {number(mine['lat_p50_ns'])} ns, theirs {number(theirs['lat_p50_ns'])}"
    empty = only(stored.rows("mount"), op="write", size=4096)
    if system == "pmfs-mount" and empty:
        why += f"; on an empty filesystem it takes {number(empty['ns_empty'])} ns"
    return why


def fio_bars(stored):
    for system in ("pmfs-preload", "pmfs-mount"):
        for other, least in FIO_BARS:
            mine, theirs = fio_rows(stored, system), fio_rows(stored, other)
            ratio = mine["iops"] / theirs["iops"] if mine and theirs else None
            yield {"what": f"random writes of 4 KiB with sync, {system} / {other}",
                   "measured": number(ratio, 2), "demanded": f"at least {least:.2f}",
                   "met": None if ratio is None else ratio >= least,
                   "why": fio_why(stored, system, mine, theirs) if ratio else ""}


def sweep_panel(rows, job, sync):
    chosen = where(rows, job=job, sync=sync)
    series = []
    for system in by_column(chosen, "system", SYSTEMS):
        points = sorted((row["record_size"], row["mb_s"]) for row in where(chosen, system=system))
        series.append({"name": system, "x": [p[0] for p in points], "y": [p[1] for p in points]})
    return {"title": job.removeprefix("sweep ") + (", with sync" if sync else ""),
            "series": series}


def add_fio(document, stored):
    rows = stored.rows("fio")
    if not rows:
        return False
    systems = by_column(rows, "system", SYSTEMS)
    table = []
    for job, size, sync in {(r["job"], r["record_size"], r["sync"]): 0 for r in rows}:
        if job.startswith("sweep"):
            continue
        cells = [only(rows, job=job, record_size=size, sync=sync, system=s) for s in systems]
        table.append([job, size_text(size) if size else "-", "yes" if sync else "no"] +
                     [iops_text(cell) for cell in cells])
    document.add(
        Heading("FIO, beside filesystems of the kernel"),
        Paragraph("The same job files on pmfs, in the process and mounted, and on ext4, xfs and "
                  "tmpfs on the same kind of memory. " + joined(LOOP)),
        Figure("fio", "lines", "Throughput by record size, as IOzone sweeps it; both axes are "
               "logarithmic. Higher is better.",
               {"columns": 3, "x": "record size", "y": "MB/s", "x_bytes": True, "x_log": True,
                "y_log": True, "share_y": True, "x_rotation": 35,
                "panels": [sweep_panel(rows, job, sync) for job, sync in SWEEPS
                           if where(rows, job=job, sync=sync)]}),
        Paragraph("Operations per second; in brackets the least and the most of the rounds, where "
                  "there were several:"),
        fio_table(systems, table),
        Heading("Bars of fio", 3),
        Paragraph(scale_text(stored) + LOOP_CAVEAT),
        bar_table(list(fio_bars(stored))))
    return True


def iops_text(row):
    if row is None:
        return "-"
    spread = f" ({number(row['iops_min'])} to {number(row['iops_max'])})"
    return number(row["iops"]) + (spread if row["rounds"] > 1 else "")


def fio_table(systems, rows):
    return Table(["job", "record", "sync"] + systems, rows, "lrl" + "r" * len(systems))


# ---- Applications ------------------------------------------------------------------


def asked_to_be_durable(rows):
    """The rows of each command that were to be durable; all where there is no choice."""
    for app, what in dict.fromkeys((row["app"], row["what"]) for row in rows):
        chosen = where(rows, app=app, what=what)
        yield app, what, where(chosen, sync=max(values(chosen, "sync")))


def apps_panel(rows, app, what, systems):
    chosen = next(found for *names, found in asked_to_be_durable(rows) if names == [app, what])
    cells = [(system, only(chosen, system=system)) for system in systems]
    return {"title": f"{app}: {what}", "rows": [
        {"name": system, "values": [row[key] if row else None
                                    for key in ("ms_min", "ms", "ms_max")]}
        for system, row in cells]}


def app_losses(rows):
    """Where pmfs takes longer than the faster ext4: (command, system, ms, ext4, its ms)."""
    for app, what, chosen in asked_to_be_durable(rows):
        ext4 = [row for row in chosen if row["system"].startswith("ext4")]
        fastest = min(ext4, key=lambda row: row["ms"], default=None)
        for mine in chosen:
            if fastest and mine["system"].startswith("pmfs") and mine["ms"] > fastest["ms"]:
                yield f"{app}: {what}", mine, fastest


def add_app_losses(document, rows):
    losses = list(app_losses(rows))
    measured = sum(row["system"].startswith("pmfs")
                   for _, _, chosen in asked_to_be_durable(rows) for row in chosen)
    text = f"Equally durable, pmfs takes longer than the faster ext4 in {len(losses) or 'none'} " \
           f"of {measured} cases"
    if not losses:
        document.add(Paragraph(text + "."))
        return
    document.add(
        Paragraph(text + "; **within the rounds**: the rounds of one reach those of the other."),
        Table(["command", "on", "ms", "beside", "its ms", "times as long", ""],
              [[command, mine["system"], number(mine["ms"], 1), other["system"],
                number(other["ms"], 1), number(mine["ms"] / other["ms"], 2),
                "within the rounds" if mine["ms_min"] <= other["ms_max"] else ""]
               for command, mine, other in losses], "llrlrrl"))


def add_apps(document, stored):
    rows = stored.rows("apps")
    if not rows:
        return False
    systems = by_column(rows, "system", SYSTEMS)
    apps = dict.fromkeys((row["app"], row["what"]) for row in rows)
    document.add(
        Heading("Applications, beside filesystems of the kernel"),
        Paragraph("sqlite3, tar, git and lmdb as they are, each asked to be durable, and all "
                  "equally: a sync per transaction, or of the whole filesystem after tar, which has "
                  "no other. What needs shared memory or several processes runs through the "
                  "mount only. A mount pays for every request that the kernel sends, so it costs "
                  "most where an application asks much and writes little. "
                  + LOOP_CAVEAT + " "
                  "Times without durability and ratios are in "
                  "[BENCHMARKS.md](../BENCHMARKS.md#applications-beside-other-filesystems)."),
        Figure("apps", "ranges", "Time of a whole command, its start included: least, median and "
               "most of the rounds, on a logarithmic axis. Further left is better; no mark: not "
               "run.",
               {"columns": 3, "x": "ms", "points": ["least", "median", "most"],
                "panels": [apps_panel(rows, app, what, systems) for app, what in apps]}))
    add_app_losses(document, rows)
    return True
