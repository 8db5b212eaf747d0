# SPDX-License-Identifier: BSD-3-Clause
"""Results, a list of dictionaries, printed as a table or as Markdown."""

def _show(value, decimals):
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:.{decimals}f}"


def print_table(rows, columns, markdown=False):
    """`columns`: for each its key, its heading, and the decimals of its numbers."""
    texts = [[_show(row.get(key), decimals) for key, _, decimals in columns] for row in rows]
    headings = [heading for _, heading, _ in columns]
    is_text = [any(isinstance(row.get(key), str) for row in rows) for key, _, _ in columns]
    if markdown:
        print("| " + " | ".join(headings) + " |")
        print("|" + "|".join("---" if text else "---:" for text in is_text) + "|")
        for line in texts:
            print("| " + " | ".join(line) + " |")
        return
    widths = [max(map(len, column)) for column in zip(headings, *texts)]
    for line in [headings, *texts]:
        print("  ".join(cell.ljust(width) if text else cell.rjust(width)
                        for cell, width, text in zip(line, widths, is_text)).rstrip())


def size_of(text):
    """Bytes: of "64", "4k", "1M"."""
    units = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
    unit = units.get(text[-1:].lower())
    return int(text[:-1]) * unit if unit else int(text)


def print_bars(bars, markdown=False):
    """`bars`: what is compared, the figure (None: not measured) and what it has to reach."""
    for what, figure, at_least in bars:
        verdict = ("not measured" if figure is None else
                   f"{figure:.2f}, at least {at_least:.2f}: "
                   f"{'met' if figure >= at_least else 'MISSED'}")
        print(f"{'- ' if markdown else '  '}{what}: {verdict}")
