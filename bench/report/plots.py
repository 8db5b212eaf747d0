# SPDX-License-Identifier: BSD-3-Clause
"""Draws the figures of a document as SVG. What is drawn is each figure's `data`.

Colours are those of Okabe and Ito, which people with any kind of colour vision tell apart;
each series has a marker or a dash of its own besides.
"""
import io
import math

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({
    "svg.hashsalt": "minl2r",  # the same data, the same file
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "legend.frameon": False,
})

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, \
    MultipleLocator, NullLocator  # noqa: E402

BLACK, GREY = "#000000", "#8c8c8c"
ORANGE, SKY, GREEN = "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"

# Colour, marker, dashes. A scheme and its variant share the colour.
STYLES = {
    "none": (GREY, "", ":"),
    "minl2r": (BLUE, "o", "-"),
    "minl2r-data": (SKY, "v", "-"),
    "minl2r-ptr": (SKY, "^", "--"),
    "bpfs-durable": (VERMILION, "s", "-"),
    "bpfs-ordered": (VERMILION, "s", "--"),
    "sp": (ORANGE, "D", "-"),
    "sjfs-eager": (GREEN, "P", "-"),
    "sjfs-lazy": (GREEN, "P", "--"),
    "journal": (PURPLE, "X", "-"),
    "ordered": (PURPLE, "X", "--"),
    "bpfs: shadow blocks": (VERMILION, "s", "-"),
    "bpfs: copied bytes": (VERMILION, "s", ":"),
    # Others than schemes.
    "data logging": (ORANGE, "s", "-"),
    "pointer logging": (BLUE, "o", "-"),
    "this machine": (GREY, "", ":"),
    "asked for": (BLACK, "", "-"),
    "got": (BLUE, "o", ""),
    "published": (VERMILION, "x", ""),
    "libpmemobj": (VERMILION, "s", "-"),
    "libpmemblk": (GREEN, "P", "-"),
    "floor": (GREY, "", ":"),
    "pmfs-preload": (BLUE, "o", "-"),
    "pmfs-mount": (SKY, "o", "--"),
    "ext4-journal": (PURPLE, "X", "-"),
    "ext4-ordered": (PURPLE, "X", "--"),
    "xfs": (GREEN, "P", "-"),
    "tmpfs": (GREY, "", ":"),
}


def style_of(name):
    color, marker, dashes = STYLES[name]
    thick = name in ("minl2r", "pmfs-preload")
    return {
        "color": color,
        "marker": marker or None,
        "linestyle": dashes or "none",
        "markersize": 5.5,
        "markerfacecolor": "white" if dashes == "--" and marker not in ("x", "") else color,
        "linewidth": 2.4 if thick else 1.5,
        "zorder": 4 if thick else 3,
    }


def show_bytes(value, _=None):
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g} B"


def show_number(value, _=None):
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"


def log_ticks(is_bytes, low, high):
    """Powers of 4 or of 10; also 2 and 5 of these where that is few."""
    base = 4 if is_bytes else 10
    steps = [1] if is_bytes or high / low > 60 else [1, 2, 5]
    ticks = [base ** power * step for power in range(-3, 16) for step in steps]
    return [tick for tick in ticks if low / 1.5 <= tick <= high * 1.5]


def set_log_axis(axis, is_bytes, low, high, ticks=None):
    """With each tick's unit spelled out."""
    axis.set_major_locator(FixedLocator(ticks or log_ticks(is_bytes, low, high)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(show_bytes if is_bytes else show_number))


def show_total(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def finite(values):
    return [value for value in values if value is not None]


def make_panels(count, columns, width, height, **options):
    rows = -(-count // columns)
    figure, axes = plt.subplots(rows, columns, squeeze=False,
                                figsize=(width, height * rows + 0.9), **options)
    flat = list(axes.flat)
    for unused in flat[count:]:
        unused.set_visible(False)
    return figure, flat[:count]


def add_legend(figure, axes):
    """One for all panels, below them."""
    columns = int(figure.get_figwidth() / 1.6)
    found = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            found.setdefault(label, handle)
    if found:
        figure.legend(found.values(), found.keys(), loc="lower center",
                      ncol=min(len(found), columns), handlelength=3.2, columnspacing=1.8)
    rows = -(-len(found) // columns)
    figure.tight_layout(rect=(0, (0.12 + 0.24 * rows) / figure.get_figheight(), 1, 1))


def draw_lines(data):
    """Panels of series over a common kind of axis.

    data: columns, x, y (labels), x_bytes, y_bytes, x_log, y_log, x_ticks and y_ticks (of
    logarithmic axes, optional), share_y, panels [title,
    series [name, x, y, low and high (optional)], marks [x, text, low (optional)]].
    """
    panels = data["panels"]
    columns = min(data.get("columns", 3), len(panels))
    width, height = ((7.4, 3.6) if columns == 1 else (10.6, 3.6) if columns == 2 else
                     (3.4 * columns + 0.4, 2.9))
    figure, axes = make_panels(len(panels), columns, width, height)
    everything = [s for panel in panels for s in panel["series"]]
    for axis, panel in zip(axes, panels):
        for series in panel["series"]:
            axis.plot(series["x"], [float("nan") if y is None else y for y in series["y"]],
                      label=series["name"],
                      **style_of(series["name"]), markevery=data.get("mark_every", 1))
        for series in panel["series"]:
            if "low" in series:
                axis.fill_between(series["x"], series["low"], series["high"], alpha=0.15,
                                  color=style_of(series["name"])["color"], linewidth=0)
        for mark in panel.get("marks", []):
            axis.axvline(mark["x"], color=BLACK, linewidth=0.9, linestyle=(0, (2, 2)))
            height = 0.90 if mark.get("low") else 0.985  # so that two have room side by side
            axis.annotate(mark["text"], (mark["x"], height), xycoords=("data", "axes fraction"),
                          xytext=(4, -2), textcoords="offset points", va="top", fontsize=9)
        scale_panel(axis, everything if data.get("share_y") else panel["series"], data)
        if data.get("level") is not None:
            axis.axhline(data["level"], color=BLACK, linewidth=0.9)
        axis.set_title(panel["title"])
        axis.grid(True)
    label_panels(axes, columns, data)
    add_legend(figure, axes)
    return figure


def scale_panel(axis, series, data):
    xs = [x for s in series for x in s["x"]]
    ys = finite(y for s in series for y in s["y"])
    if data.get("x_log"):
        axis.set_xscale("log")
        set_log_axis(axis.xaxis, data.get("x_bytes"), min(xs), max(xs), data.get("x_ticks"))
    elif data.get("x_bytes"):
        axis.xaxis.set_major_locator(MultipleLocator(2 ** math.floor(math.log2(max(xs) / 3))))
        axis.xaxis.set_major_formatter(FuncFormatter(show_bytes))
        axis.set_xlim(left=0)
    if data.get("y_log"):
        axis.set_yscale("log")
        positive = [y for y in ys if y > 0]
        set_log_axis(axis.yaxis, data.get("y_bytes"), min(positive), max(positive),
                     data.get("y_ticks"))
        axis.set_ylim(min(positive) / 1.4, max(positive) * 1.5)
    else:
        axis.set_ylim(bottom=0)
        if data.get("y_bytes"):
            step = 2 ** math.floor(math.log2(max(ys) / 4))
            axis.yaxis.set_major_locator(MultipleLocator(step))
        axis.yaxis.set_major_formatter(
            FuncFormatter(show_bytes if data.get("y_bytes") else show_number))
    axis.tick_params(axis="x", labelsize=8.5, labelrotation=data.get("x_rotation", 0))


def label_panels(axes, columns, data):
    """Every panel's x; y once per row."""
    for index, axis in enumerate(axes):
        axis.set_xlabel(data["x"])
        if index % columns == 0:
            axis.set_ylabel(data["y"])


def draw_bars(data):
    """Panels of horizontal bars in parts.

    data: x (label), parts [names], panels [title, x (optional), rows [name, values]].
    """
    panels = data["panels"]
    colors = [BLUE, ORANGE, GREEN, PURPLE][: len(data["parts"])]
    hatches = ["", "////", "....", "xx"]
    rows = max(len(panel["rows"]) for panel in panels)
    columns = min(data.get("columns", len(panels)), len(panels))
    figure, axes = make_panels(len(panels), columns, 10.6, 0.27 * rows + 0.8)
    for index, (axis, panel) in enumerate(zip(axes, panels)):
        names = [row["name"] for row in panel["rows"]]
        left = [0.0] * len(names)
        for part, name in enumerate(data["parts"]):
            values = [row["values"][part] for row in panel["rows"]]
            axis.barh(names, values, left=left, label=name, color=colors[part],
                      hatch=hatches[part], edgecolor="white", height=0.68)
            left = [a + b for a, b in zip(left, values)]
        limit = max(left) or 1
        for y, total in enumerate(left):
            axis.annotate(show_total(total), (total, y), xytext=(3, 0),
                          textcoords="offset points", va="center", fontsize=8.5)
        axis.set_xlim(0, limit * 1.16)
        axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axis.xaxis.set_major_formatter(FuncFormatter(show_number))
        axis.invert_yaxis()
        axis.set_title(panel["title"])
        axis.set_xlabel(panel.get("x", data["x"]))
        axis.grid(True, axis="x")
        if index % columns:
            axis.tick_params(axis="y", labelleft=False)
    if len(data["parts"]) > 1:
        add_legend(figure, axes)
    else:
        figure.tight_layout()
    return figure


def draw_ranges(data):
    """Panels of percentiles: a line from the first to the last, a mark at each.

    data: columns, x (label), points [names], panels [title, rows [name, values]], where a
    value may be None.
    """
    panels = data["panels"]
    markers = ["o", "|", "x"]
    rows = max(len(panel["rows"]) for panel in panels)
    values = finite(v for panel in panels for row in panel["rows"] for v in row["values"])
    columns = data.get("columns", len(panels))
    figure, axes = make_panels(len(panels), columns, 10.6, 0.27 * rows + 0.8)
    for index, (axis, panel) in enumerate(zip(axes, panels)):
        for y, row in enumerate(panel["rows"]):
            color = style_of(row["name"])["color"] if row["name"] in STYLES else BLACK
            if row["values"][0] is not None:
                axis.plot([row["values"][0], row["values"][-1]], [y, y], color=color,
                          linewidth=2, zorder=3)
        for point, name in enumerate(data["points"]):
            axis.plot([float("nan") if row["values"][point] is None else row["values"][point]
                       for row in panel["rows"]], range(len(panel["rows"])), linestyle="none", color=BLACK,
                      marker=markers[point], markersize=7 if point else 5.5,
                      markeredgewidth=1.6, zorder=4, label=name)
        axis.set_xscale("log")
        set_log_axis(axis.xaxis, False, min(values), max(values))
        axis.set_xlim(min(values) / 1.5, max(values) * 1.5)
        axis.set_yticks(range(len(panel["rows"])), [row["name"] for row in panel["rows"]])
        axis.set_ylim(len(panel["rows"]) - 0.4, -0.6)
        axis.set_title(panel["title"])
        axis.set_xlabel(data["x"])
        axis.grid(True, axis="x")
        if index % columns:
            axis.tick_params(axis="y", labelleft=False)
    add_legend(figure, axes)
    return figure


DRAW = {"lines": draw_lines, "bars": draw_bars, "ranges": draw_ranges}


def to_svg(figure):
    """The text of one document.Figure; it says which data it was drawn from."""
    drawn = DRAW[figure.kind](figure.data)
    out = io.StringIO()
    drawn.savefig(out, format="svg", metadata={
        "Date": None, "Creator": None, "Format": None, "Type": None,
        "Title": figure.name, "Description": "data " + figure.digest()})
    plt.close(drawn)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
