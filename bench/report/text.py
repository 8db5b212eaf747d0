# SPDX-License-Identifier: BSD-3-Clause
"""How figures are said."""
from document import Table

MEDIA = {"tmpfs": "tmpfs (DRAM)", "optane": "Optane (model)", "cxl": "CXL (model)"}


def size_text(size):
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size:g} B"


def number(value, decimals=0):
    return "-" if value is None else f"{value:,.{decimals}f}"


def apart(one, other):
    """Two numbers with as many decimals as tell them apart."""
    for decimals in range(1, 9):
        texts = number(one, decimals), number(other, decimals)
        if texts[0] != texts[1]:
            break
    return texts


def joined(text):
    """One line of a text of many."""
    return " ".join(text.split())


def listed(texts):
    """a, b and c"""
    texts = list(texts)
    return " and ".join([", ".join(texts[:-1])] * (len(texts) > 1) + texts[-1:])


# ---- Bars --------------------------------------------------------------------------
# What was to be reached: dictionaries with `what`, `measured`, `demanded` (texts), `met`
# (None: not measured) and `why`, the reason where it is missed.


def verdict(bar):
    return {None: "not measured", True: "met", False: "**missed**"}[bar["met"]]


def bar_table(bars):
    return Table(["what", "measured", "demanded", "", "what of the difference is known"],
                 [[bar["what"], bar["measured"], bar["demanded"], verdict(bar),
                   bar["why"] if bar["met"] is False else ""] for bar in bars], "lrrll")


def count_text(bars):
    measured = [bar for bar in bars if bar["met"] is not None]
    near = sum(bar.get("within_noise", False) for bar in measured if not bar["met"])
    return (f"{sum(bar['met'] for bar in measured) or 'none'} of {len(measured)}" +
            (f"; {near} missed within noise" if near else ""))
