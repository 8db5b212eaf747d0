# SPDX-License-Identifier: BSD-3-Clause
"""What the difference between two schemes is made of: what their counts cost on a medium, by
what bench-delay measured there, and what they do not explain."""
import statistics

from stored import where
from text import MEDIA, number, size_text

BLOCK = 4096
LINE = 64


class Costs:
    """ns of a fence, of a line more that it waits for, and of reads, on one medium. What this
    machine itself takes was measured beside each modelled medium; rows of others, of a bus
    that is limited, are no medium's."""

    def __init__(self, rows, medium):
        self.is_here = is_here = medium == "tmpfs"
        self.key = "ns_here" if is_here else "ns_got"
        self.rows = [row for row in where(rows, threads=1)
                     if row["medium"] == medium or is_here and row["medium"] in MEDIA]

    def points(self, what):
        """{lines: ns}, from few to many."""
        found = {}
        for row in where(self.rows, what=what):
            if row[self.key] is not None:
                found.setdefault(row["lines"], []).append(row[self.key])
        return {lines: statistics.median(found[lines]) for lines in sorted(found)}

    def are_known(self):
        return all(len(self.points(what)) > 1 for what in ("flush, fence", "stream, fence", "read"))

    def fence(self):
        return min(self.points("stream, fence").values())

    def line(self, what):
        lines, ns = zip(*self.points(what + ", fence").items())
        return max(0, (ns[-1] - ns[0]) / (lines[-1] - lines[0]))

    def read(self, lines):
        """Along straight lines from one measured point to the next."""
        if lines == 0:
            return 0
        points = list(self.points("read").items())
        for (x, y), (next_x, next_y) in zip(points, points[1:]):
            if lines <= next_x:
                break
        return y + (next_y - y) * (lines - x) / (next_x - x)

    def copy(self, copied, streamed):
        """What reading lines that are copied adds to the phase that streams the copies: it is
        done beside that, so only what is left when the phase is over."""
        return max(0, self.read(copied) - self.fence() - self.line("stream") * streamed)


def ns_per_call(row):
    return row["record_size"] * 1000 / row["mb_s"]


def saved_bytes(row):
    """Old bytes that undo has to read before it may change them: none where pointers do."""
    pointers = 8 * -(-row["record_size"] // BLOCK)
    return row["log_payload_bytes"] if row["log_payload_bytes"] > pointers else 0


def copied_bytes(row):
    """Old bytes that go along to a new block. The library does not count them: they are the rest
    of the last block of an aligned overwrite where that is swapped."""
    if row.get("copied_bytes") is not None:
        return row["copied_bytes"]
    is_overwrite = row["workload"].startswith("overwrite")
    return -row["record_size"] % BLOCK if is_overwrite and not saved_bytes(row) else 0


def counted(value, unit):
    """A difference in words; "" if there is none."""
    shown = number(abs(value), 0 if abs(value) >= 9.5 else 1).removesuffix(".0")
    if shown == "0":
        return ""
    plural = "" if shown == "1" else "s"
    return f"{shown} {'more' if value > 0 else 'fewer'} {unit.replace('(s)', plural)}"


def counts(mine, other, costs):
    """(in words, ns) of each count that differs; ns None: not known."""
    def cost(of, *arguments):
        return of(*arguments) if costs.are_known() else None

    for words, key, each in (("fence(s)", "fences", cost(costs.fence)),
                             ("line(s) flushed", "lines_flushed", cost(costs.line, "flush")),
                             ("line(s) streamed", "lines_streamed", cost(costs.line, "stream"))):
        differ = mine[key] - other[key]
        if counted(differ, words):
            yield counted(differ, words), None if each is None else differ * each
    yield from reads(mine, other, costs)


def reads(mine, other, costs):
    """The same of old bytes that a write reads: to save them, before its log can leave; or to
    copy them, beside the streams. Where the model has measured what reads took, it is that,
    with what else was read: slots and bits that have been streamed."""
    measured = [row.get("ns_reads") for row in (mine, other)]
    if None not in measured:
        yield "waiting for reads, of old bytes, slots and bits", measured[0] - measured[1]
        return
    saved = saved_bytes(mine)
    if saved:
        yield (f"{size_text(round(saved))} read to be saved before anything leaves",
               costs.read(-(-saved // LINE)) if costs.are_known() else None)
    ours, theirs = copied_bytes(mine), copied_bytes(other)
    if round(ours) != round(theirs):
        words = "more" if ours > theirs else "fewer"
        ns = None
        if costs.are_known():
            ns = (costs.copy(ours / LINE, mine["lines_streamed"]) -
                  costs.copy(theirs / LINE, other["lines_streamed"]))
        yield f"{size_text(round(abs(ours - theirs)))} {words} copied", ns


# What was tried where a write takes many blocks: with free blocks used again in the order of the
# library, oldest first, the others took as long as with the newest first.
RULED_OUT = "that free blocks are used again in another order is none"


def is_unknown(ns, of):
    """`ns` of the difference `of` are left: most of it."""
    return ns > of / 2


def rest_text(ns, of):
    if round(ns) < 0:
        return f"the counts explain {number(-ns)} ns more than that"
    if not is_unknown(ns, of):
        return f"not explained by counts: {number(ns)} ns"
    return ("reason not found: counts explain " +
            ("nothing" if ns >= of else f"{number(of - ns)} ns") + " of that")


def hints(mine, other, costs):
    """What else there is to be said of a difference without a reason."""
    if costs.is_here and mine["record_size"] > BLOCK:
        yield RULED_OUT
    medians = [row.get("ns_p50") for row in (mine, other)]
    if None not in medians:
        differ = medians[0] - medians[1]
        yield (f"the medians differ by {number(abs(differ))} ns" +
               (" the other way" if differ < 0 else ""))


def why_behind(mine, other, costs):
    """What mine, of the library, has to do and the other has not, in words."""
    if "fences" not in mine:
        return ""
    left = more = ns_per_call(mine) - ns_per_call(other)
    parts = [f"{number(left)} ns more a call"]
    for words, ns in counts(mine, other, costs):
        if ns is not None and abs(ns) < 1:
            continue
        if ns is None:
            parts.append(words)
        else:
            parts.append(f"{words}: {number(abs(ns))} ns" + (" less" if ns < 0 else ""))
        left -= ns or 0
    if costs.are_known():
        parts.append(rest_text(left, more))
        if is_unknown(left, more):
            parts.extend(hints(mine, other, costs))
    return "; ".join(parts)
