# SPDX-License-Identifier: BSD-3-Clause
"""Bars of the schemes: the throughput that minl2r was to reach beside each, the sizes at which
it does not and why, and how far figures that should be the same are apart."""
from dataclasses import dataclass

from document import Heading, Paragraph, Table
from reasons import BLOCK, Costs, why_behind
from stored import by_column, only, ratios, values, where
from text import MEDIA, joined, number, size_text, verdict

KIB = 1024
RIVALS = ("bpfs-durable", "sjfs-eager", "journal")
BARS = [  # workload, medium, from size, to size, beside, minl2r's throughput at least ... times
    ("overwrite", "tmpfs", 0, KIB, RIVALS, 1),
    ("overwrite", "tmpfs", KIB + 1, 4 * KIB, RIVALS, 0.90),
    ("overwrite", "tmpfs", 4 * KIB + 1, None, RIVALS, 0.95),
    ("append", "tmpfs", 0, None, ("bpfs-durable",), 0.90),
    ("overwrite", "optane", 0, None, RIVALS, 1),
]


BEHIND = """What a fence, a line or a read costs is what the [model of slower
media](#the-model-of-slower-media) measured on each medium, DRAM included; a fence is one that waits for
streamed lines, and takes longer for flushed ones. Undo reads the bytes that it is about to change, from
the medium if they are in no cache, before it may log them; shadow paging reads what it copies while
it streams. sjfs reads no old bytes of a small change; the journal reads the rest of each block, while it
streams; both leave the waiting for what they store at home to a later fence. Where the bytes read are in
a cache, reading costs less than this. No count has the hash of
the new bytes, by which two fences do rather than three, nor the allocations on PM, which change with each
swapped block so that a pool opens without a walk, nor that a library takes any ranges of any program and
any thread in one transaction and checks them, where a scheme here is a loop with one caller: these
may be in what the counts do not explain, and so may the noise of the page."""


# ---- Noise -------------------------------------------------------------------------

COUNTS = ("fences", "lines_flushed", "lines_streamed", "log_payload_bytes", "log_bytes",
          "pm_bytes")
ALIKE = 0.05  # what counts of twins may differ by
KEYS = ("workload", "record_size", "threads", "medium")


def nearly_same_work(row, other):
    return all(key in row and key in other and
               abs(row[key] - other[key]) <= ALIKE * max(row[key], other[key]) for key in COUNTS)


def twins(rows):
    """(row of minl2r, of the same with one kind of logging only) where that does nearly the same:
    data logging where less than half a block changes, pointer logging from there on."""
    others = [{tuple(row[key] for key in KEYS): row for row in where(rows, scheme=scheme)}
              for scheme in ("minl2r-data", "minl2r-ptr")]
    for row in where(rows, scheme="minl2r", threads=1):
        for of_scheme in others:
            other = of_scheme.get(tuple(row[key] for key in KEYS))
            if other and nearly_same_work(row, other):
                yield row, other


def class_of(size):
    return f"up to {size_text(BLOCK)}" if size <= BLOCK else f"above {size_text(BLOCK)}"


@dataclass
class Noise:
    """How far twins of one class of sizes are apart on one medium: shares of the slower's
    throughput, the largest last."""

    found: list  # (share, workload, record size)

    def share(self, part):
        return self.found[int(part * (len(self.found) - 1))][0]

    @property
    def floor(self):
        return self.share(0.9)


def noise_of(rows):
    """{(medium, class of sizes): Noise}"""
    found = {}
    for row, other in twins(rows):
        slow, fast = sorted((row["mb_s"], other["mb_s"]))
        found.setdefault((row["medium"], class_of(row["record_size"])), []).append(
            (fast / slow - 1, row["workload"], row["record_size"]))
    return {key: Noise(sorted(shares)) for key, shares in found.items()}


def is_within(noise, medium, size, ratio, least):
    """Whether it is that near to what is demanded that noise may decide."""
    known = noise.get((medium, class_of(size)))
    return known is not None and abs(ratio / least - 1) <= known.floor


NOISE = """**The noise of this page.** `minl2r` does what `minl2r-data` does where less than half of a
block changes, and what `minl2r-ptr` does from there on. The table has how far the throughputs of such
twins are apart, in all rows of one thread in which none of their counts differs by more than {alike}.
Where a ratio is no further from its limit than nine of ten of its class are apart, the tables of bars say
**within noise**; whether it is met they say by the limit alone. That is a floor: twins share their
code, and two schemes do not. The tables say, too, between what the rounds leave a ratio: from minl2r's
slowest beside the other's fastest to the reverse."""


def add_noise(document, rows):
    noise = noise_of(rows)
    if not noise:
        return
    table = []
    for medium in by_column(rows, "medium", list(MEDIA)):
        for name in dict.fromkeys(class_of(size) for size in sorted(values(rows, "record_size"))):
            if (medium, name) in noise:
                known = noise[medium, name]
                most, workload, size = known.found[-1]
                table.append([MEDIA.get(medium, medium), name, len(known.found),
                              *(f"{share:.1%}" for share in (known.share(0.5), known.floor, most)),
                              f"{workload}, {size_text(size)}"])
    document.add(
        Paragraph(joined(NOISE).format(alike=f"{ALIKE:.0%}")),
        Table(["medium", "sizes", "twins", "half, up to", "nine of ten, up to", "most", "at"],
              table, "llrrrrl"))


# ---- Bars --------------------------------------------------------------------------


def range_text(low, high):
    if high is None:
        return f"above {size_text(low - 1)}" if low else "every size"
    return f"{size_text(low - 1)} to {size_text(high)}" if low else f"up to {size_text(high)}"


@dataclass
class Place:
    """One size of a bar."""

    size: int
    ratio: float
    spread: tuple  # of the ratio; None: the rounds are not known
    within_noise: bool
    why: str

    def spread_text(self):
        return "{:.2f} to {:.2f}".format(*self.spread) if self.spread else "-"


def spread_of(mine, other):
    """The least and the most that rounds of two throughputs can have as their ratio."""
    keys = ("mb_s_min", "mb_s_max")
    if not all(row.get(key) for row in (mine, other) for key in keys):
        return None
    return tuple(mine[key] / other[against] for key, against in zip(keys, reversed(keys)))


def places(rows, other, low, high, least, noise, costs):
    """A bar's, by size; `rows`: of its workload and medium."""
    for size, ratio in sorted(ratios(rows, "minl2r", other).items()):
        if size < low or high is not None and size > high:
            continue
        mine, theirs = (only(rows, scheme=scheme, record_size=size) for scheme in ("minl2r", other))
        yield Place(size, ratio, spread_of(mine, theirs),
                    is_within(noise, mine["medium"], size, ratio, least),
                    why_behind(mine, theirs, costs) or "not known")


def bars_of(rows, delays=()):
    """As text.py has them, and with `least`, `medium`, the `worst` place (None: not measured), all
    those that are `missed`, and how many `sizes` there are. `delays`: rows of bench-delay, which
    tell what a difference costs."""
    noise = noise_of(rows)
    for workload, medium, low, high, others, least in BARS:
        chosen = where(rows, workload=workload, medium=medium, threads=1)
        for other in others:
            found = list(places(chosen, other, low, high, least, noise, Costs(delays, medium)))
            missed = [place for place in found if place.ratio < least]
            worst = min(found, key=lambda place: place.ratio, default=None)
            yield {"what": f"{workload}, {MEDIA[medium]}, {range_text(low, high)}: "
                           f"minl2r / {other}",
                   "measured": f"{worst.ratio:.2f} ({size_text(worst.size)})" if worst else "-",
                   "demanded": f"at least {least:.2f}", "met": not missed if worst else None,
                   "why": worst.why if worst else "", "least": least, "medium": medium,
                   "worst": worst, "missed": missed, "sizes": len(found),
                   "within_noise": bool(worst) and all(place.within_noise
                                                       for place in missed or [worst])}


def verdict_text(bar):
    return verdict(bar) + (", within noise" if bar["within_noise"] else "")


def missed_text(bar):
    if bar["worst"] is None:
        return "-"
    return f"{len(bar['missed']) or 'none'} of {bar['sizes']}"


def delay_text(stored):
    """What a reader has to know of the costs in the tables of bars; "" if it is nothing."""
    here, there = (stored.machine(name) for name in ("fs", "delay"))
    keys = [key for key in ("CPU", "Cores", "Kernel") if here.get(key) != there.get(key)]
    if not stored.rows("delay") or not keys:
        return ""
    named = "; ".join(f"{key}: {there.get(key, 'not known')}, not {here.get(key, 'not known')}"
                      for key in keys)
    return ("What counts cost was measured on another machine than the throughputs "
            f"({named}), so that it is a guess here.")


def add_missed(document, bar):
    document.add(
        Paragraph(f"**{bar['what']}**, {bar['demanded']}: missed at {missed_text(bar)} sizes."),
        Table(["size", "ratio", "by the rounds", "", "what of the difference is known"],
              [[size_text(place.size), number(place.ratio, 2), place.spread_text(),
                "within noise" if place.within_noise else "", place.why]
               for place in bar["missed"]], "rrrll"))


def add_bars(document, rows, stored):
    bars = list(bars_of(rows, stored.rows("delay")))
    document.add(
        Heading("Bars", 3),
        Paragraph("Throughput that minl2r was to reach beside the others: the least ratio, the "
                  "size that it is of, and at how many sizes the bar is missed. What the others "
                  "leave for later is under [What is compared](#what-is-compared)."),
        Table(["what", "least ratio", "by the rounds", "demanded", "", "sizes that miss it"],
              [[bar["what"], bar["measured"], bar["worst"].spread_text() if bar["worst"] else "-",
                bar["demanded"], verdict_text(bar), missed_text(bar)] for bar in bars], "lrrrlr"))
    add_noise(document, rows)
    missed = [bar for bar in bars if bar["missed"]]
    if missed:
        document.add(Heading("Where bars are missed", 3), Paragraph(joined(BEHIND)))
        if delay_text(stored):
            document.add(Paragraph(delay_text(stored)))
    for bar in missed:
        add_missed(document, bar)
