# SPDX-License-Identifier: BSD-3-Clause
"""The report of the threshold of pointer logging: the two curves, where they cross, what `auto`
chose, and what that gains over half of a block."""
from document import Figure, Heading, Paragraph, Table
from reasons import BLOCK
from stored import by_column, values, where
from text import MEDIA, listed, number, size_text

NEVER = BLOCK + 1
KINDS = [("time", "ns", "ns"), ("log", "log_bytes", "B of log"), ("PM", "pm_bytes", "B of PM")]


def average(rows, threshold, what):
    """Over all sizes, each as often: of pointer logging from the threshold on."""
    return sum(row[("pointer_" if row["size"] >= threshold else "data_") + what]
               for row in rows) / len(rows)


def crossing_of(rows):
    """The size from which on pointers save most in all, as the library chooses; of equals the
    smallest."""
    sizes = [row["size"] for row in rows] + [NEVER]
    return min(sizes, key=lambda size: (average(rows, size, "ns"), size))


def threshold_text(threshold):
    return "never" if threshold > BLOCK else size_text(threshold)


def winner(half, automatic):
    """The one that is less by more than a percent."""
    ratio = half / automatic
    return "auto" if ratio > 1.01 else "half" if ratio < 0.99 else "neither"


def groups(rows):
    """(medium, pattern, its rows by size)"""
    for medium in by_column(rows, "medium", list(MEDIA)):
        for pattern in values(where(rows, medium=medium), "pattern"):
            yield medium, pattern, sorted(where(rows, medium=medium, pattern=pattern),
                                          key=lambda row: row["size"])


def name_of(medium, pattern):
    return f"{MEDIA.get(medium, medium)}, {pattern}"


def summary_table(rows):
    table = []
    for medium, pattern, chosen in groups(rows):
        automatic = chosen[0]["auto_threshold"]
        line = [name_of(medium, pattern), threshold_text(crossing_of(chosen)),
                threshold_text(automatic)]
        for _, what, _ in KINDS:
            half, ours = (average(chosen, at, what) for at in (BLOCK // 2, automatic))
            line += [number(half), number(ours), winner(half, ours)]
        table.append(line)
    head = [f"{name}, {unit}" for _, _, unit in KINDS for name in ("half", "auto")]
    return Table(["medium, pattern", "the curves cross at", "auto chose", head[0], head[1], "faster",
                  head[2], head[3], "less log", head[4], head[5], "less PM"], table,
                 "lrrrrlrrlrrl")


def wins_text(rows):
    """Where each is better, in a sentence for each of the figures."""
    said = []
    for name, what, _ in KINDS:
        won = {}
        for medium, pattern, chosen in groups(rows):
            half, ours = (average(chosen, at, what)
                          for at in (BLOCK // 2, chosen[0]["auto_threshold"]))
            won.setdefault(winner(half, ours), []).append(name_of(medium, pattern))
        if len(won) == 1:
            said.append(f"{name}: {next(iter(won))} everywhere")
        else:
            said.append(f"{name}: " + ", ".join(f"{who} on {listed(places)}"
                                                for who, places in won.items()))
    return "Which is better, by more than a percent: " + "; ".join(said) + "."


def differs_text(rows):
    """What `auto` loses where it chose otherwise than these curves say; "" if nowhere."""
    said = []
    for medium, pattern, chosen in groups(rows):
        automatic, crossing = chosen[0]["auto_threshold"], crossing_of(chosen)
        if automatic != crossing:
            best, ours = (average(chosen, at, "ns") for at in (crossing, automatic))
            said.append(f"{threshold_text(automatic)} rather than {threshold_text(crossing)} on "
                        f"{name_of(medium, pattern)} ({ours / best - 1:.1%} more time)")
    if not said:
        return "`auto` chose the crossing of these curves everywhere."
    return ("`auto` chose otherwise than where these curves cross: " + "; ".join(said) + ". It chooses "
            "by a trial of its own, once for a medium, for any pattern.")


def panel(medium, pattern, rows):
    sizes = [row["size"] for row in rows]
    automatic, crossing = rows[0]["auto_threshold"], crossing_of(rows)
    marks = [{"x": automatic, "text": "auto" if automatic != crossing else "auto, crossing"}]
    if crossing not in (automatic, NEVER):
        marks.append({"x": crossing, "text": "crossing", "low": True})
    return {"title": f"{pattern}, {MEDIA.get(medium, medium)}", "marks": marks,
            "series": [{"name": name, "x": sizes, "y": [row[key] for row in rows]}
                       for name, key in (("data logging", "data_ns"),
                                         ("pointer logging", "pointer_ns"))]}


def add_threshold(document, stored):
    rows = stored.rows("threshold")
    if not rows:
        return False
    panels = [panel(*group) for pattern in ("hot", "random")
              for group in groups(where(rows, pattern=pattern))]
    document.add(
        Heading("Data or pointer logging"),
        Paragraph("A commit that changes the first bytes of a block of 4 KiB, by either kind of "
                  "logging. Half of a block is where both move the same bytes; `auto` is the "
                  "threshold that `MINL2R_POINTER_AUTO` chose by trying both when a pool was "
                  "created on that medium; the curves **cross** at the threshold that would take "
                  "the least time over all sizes. All that was measured is in "
                  "[BENCHMARKS.md](../BENCHMARKS.md#the-threshold-of-pointer-logging)."),
        Figure("threshold", "lines",
               "Time of a commit by the bytes changed, the threshold chosen, and where the curves "
               "cross. Lower is better.",
               {"columns": 3, "x": "changed bytes of a block", "y": "ns", "x_bytes": True,
                "share_y": False, "panels": panels}),
        Paragraph("A fixed threshold of half a block beside `auto`: means over all sizes, each as "
                  "often. " + wins_text(rows) + " " + differs_text(rows) + " Over all workloads of the "
                  "schemes above, at which sizes either is faster or writes less is in "
                  "[BENCHMARKS.md](../BENCHMARKS.md#pointer-logging-from-half-of-a-block-or-from-what-is-measured)."),
        summary_table(rows))
    return True
