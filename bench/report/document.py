# SPDX-License-Identifier: BSD-3-Clause
"""A document of headings, paragraphs, tables and figures, as Markdown and as HTML.

Text has `code`, **bold** and [links](address), as Markdown does, and nothing else.
"""
import hashlib
import html
import json
import re
from dataclasses import dataclass, field


@dataclass
class Heading:
    text: str
    level: int = 2


@dataclass
class Paragraph:
    text: str


@dataclass
class Code:
    text: str


@dataclass
class Table:
    """`align` has a character per column: l or r."""

    head: list
    rows: list
    align: str


@dataclass
class Figure:
    """What is drawn is `data` and nothing else, by the function `kind` of plots.py."""

    name: str
    kind: str
    caption: str
    data: dict

    def digest(self):
        text = json.dumps([self.kind, self.data], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass
class Document:
    title: str
    blocks: list = field(default_factory=list)

    def add(self, *blocks):
        self.blocks.extend(blocks)

    def figures(self):
        return [block for block in self.blocks if isinstance(block, Figure)]


# ---- Markdown ----------------------------------------------------------------------


def table_markdown(table):
    rule = ["---:" if a == "r" else "---" for a in table.align]
    lines = [table.head, rule] + table.rows
    return "\n".join("| " + " | ".join(str(c) for c in line) + " |" for line in lines)


def block_markdown(block):
    if isinstance(block, Heading):
        return "#" * block.level + " " + block.text
    if isinstance(block, Paragraph):
        return block.text
    if isinstance(block, Code):
        return "```sh\n" + block.text + "\n```"
    if isinstance(block, Table):
        return table_markdown(block)
    return f"![{block.name}]({block.name}.svg)\n\n*{block.caption}*"


def to_markdown(document):
    parts = ["# " + document.title] + [block_markdown(b) for b in document.blocks]
    return "\n\n".join(parts) + "\n"


# ---- HTML --------------------------------------------------------------------------

STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --soft: #f2f2f2;
        --faint: #444; --line: #ccc; --link: #0645ad; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e4e4; --paper: #16181b; --soft: #26292e; --faint: #b5b5b5;
          --line: #484c52; --link: #8ab4f8; }
}
a { color: var(--link); }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 66rem; margin: 2rem auto; padding: 0 1.25rem; }
h1, h2, h3 { line-height: 1.2; margin: 2.2em 0 .6em; }
h1 { margin-top: 0; }
p { max-width: 46rem; }
code, pre { font: .92em/1.45 ui-monospace, "DejaVu Sans Mono", monospace; }
code { white-space: nowrap; background: var(--soft); padding: .05em .3em; border-radius: 3px; }
pre { background: var(--soft); padding: .8em 1em; overflow-x: auto; }
pre code { padding: 0; white-space: pre; }
.wide { overflow-x: auto; margin: 1em 0; }
table { border-collapse: collapse; font-size: .9em; font-variant-numeric: tabular-nums; }
th, td { padding: .25em .7em .25em 0; text-align: left; vertical-align: top;
         border-bottom: 1px solid var(--line); }
th { border-bottom: 2px solid var(--line); }
.r { text-align: right; white-space: nowrap; }
figure { margin: 1.5em 0 2em; overflow-x: auto; }
figure svg { min-width: 36rem; max-width: 100%; height: auto; border-radius: 6px; }
figcaption { max-width: 46rem; color: var(--faint); font-size: .94em; }
nav ul { columns: 16rem; padding-left: 1.2em; }
"""


def inline_html(text):
    text = html.escape(str(text), quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
    return re.sub(r"\[([^]]+)\]\(([^)]+)\)", r'<a href="\2">\1</a>', text)


def anchor(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def row_html(cells, align, tag):
    classes = [' class="r"' if a == "r" else "" for a in align]
    inner = "".join(
        f"<{tag}{c}>{inline_html(cell)}</{tag}>" for cell, c in zip(cells, classes)
    )
    return f"<tr>{inner}</tr>"


def table_html(table):
    head = row_html(table.head, table.align, "th")
    rows = "\n".join(row_html(row, table.align, "td") for row in table.rows)
    return (
        f'<div class="wide"><table>\n<thead>{head}</thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def figure_html(figure, svg):
    inner = svg[svg.index("<svg") :]
    alt = html.escape(figure.caption)
    inner = inner.replace("<svg", f'<svg role="img" aria-label="{alt}"', 1)
    return (
        f"<figure>\n{inner}\n<figcaption>{inline_html(figure.caption)}</figcaption>"
        "\n</figure>"
    )


def block_html(block, svgs):
    if isinstance(block, Heading):
        level, text = block.level, inline_html(block.text)
        return f'<h{level} id="{anchor(block.text)}">{text}</h{level}>'
    if isinstance(block, Paragraph):
        return f"<p>{inline_html(block.text)}</p>"
    if isinstance(block, Code):
        return f"<pre><code>{html.escape(block.text)}</code></pre>"
    if isinstance(block, Table):
        return table_html(block)
    return figure_html(block, svgs[block.name])


def contents_html(document):
    items = "\n".join(
        f'<li><a href="#{anchor(b.text)}">{inline_html(b.text)}</a></li>'
        for b in document.blocks
        if isinstance(b, Heading) and b.level == 2
    )
    return f"<nav><ul>\n{items}\n</ul></nav>"


def to_html(document, svgs):
    """One page that needs no other file; `svgs` has each figure's text by its name."""
    title = html.escape(document.title)
    body = "\n".join(block_html(block, svgs) for block in document.blocks)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{title}</h1>\n{contents_html(document)}\n{body}\n</body>\n</html>\n"
    )
