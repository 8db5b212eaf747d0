# SPDX-License-Identifier: BSD-3-Clause
"""What the difference between two schemes is made of: what their counts cost on a medium, by
what bench-delay measured there, and what is left."""
from stored import where
from text import number, size_text

BLOCK = 4096
LINE = 64


class Costs:
    """ns of a fence, of a line more that it waits for, and of reads, on one medium."""

    def __init__(self, rows, medium):
        self.rows = where(rows, threads=1)
        self.key = "ns_here" if medium == "tmpfs" else "ns_got"
        if medium != "tmpfs":
            self.rows = where(self.rows, medium=medium)

    def points(self, what):
        """{lines: ns}, from few to many."""
        return dict(sorted((row["lines"], row[self.key]) for row in where(self.rows, what=what)
                           if row[self.key] is not None))

    def are_known(self):
        return all(len(self.points(what)) > 1 for what in ("flush, fence", "stream, fence", "read"))

    def fence(self):
        return min(self.points("stream, fence").values())

    def line(self, what):
        lines, ns = zip(*self.points(what + ", fence").items())
        return (ns[-1] - ns[0]) / (lines[-1] - lines[0])

    def read(self, lines):
        """Along straight lines from one measured point to the next."""
        points = list(self.points("read").items())
        for (x, y), (next_x, next_y) in zip(points, points[1:]):
            if lines <= next_x:
                break
        return y + (next_y - y) * (lines - x) / (next_x - x)


def ns_per_call(row):
    return row["record_size"] * 1000 / row["mb_s"]


def saved_bytes(row):
    """Old bytes that undo has to read before it may change them: none where pointers do."""
    pointers = 8 * -(-row["record_size"] // BLOCK)
    return row["log_payload_bytes"] if row["log_payload_bytes"] > pointers else 0


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
    if saved_bytes(mine):
        yield f"{size_text(saved_bytes(mine))} read to be saved", cost(costs.read,
                                                                       saved_bytes(mine) / LINE)


def why_behind(mine, other, costs):
    """What mine, of the library, has to do and the other has not, in words."""
    if "fences" not in mine:
        return ""
    left = ns_per_call(mine) - ns_per_call(other)
    parts = [f"{number(left)} ns more a call"]
    for words, ns in counts(mine, other, costs):
        if ns is not None and abs(ns) < 1:
            continue
        parts.append(words if ns is None else f"{words}: {number(ns)} ns")
        left -= ns or 0
    if costs.are_known():
        parts.append(f"instructions and the rest: {number(left)} ns")
    return "; ".join(parts)
