#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the report of stored results: docs/report/README.md with its figures, and
docs/report/index.html, one page that needs no other file. Measures nothing."""
import argparse
import os
import re
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
DOCS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs")
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import command  # noqa: E402
import document as documents  # noqa: E402
import sections  # noqa: E402
from stored import NoProgram, Stored  # noqa: E402


def make_document(results, programs=None):
    document = documents.Document("MinL2R: the comparison")
    sections.fill(document, Stored(results, programs))
    return document


def find_programs():
    """Those that measure: beside the name that this one was started by, or where they are built."""
    beside = os.path.dirname(os.path.abspath(sys.argv[0]))
    return beside if beside != HERE else os.path.join(os.path.dirname(DOCS), "build", "bin")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def make(results, out, programs=None):
    try:
        import plots  # needs matplotlib, which checking does not
    except ModuleNotFoundError as error:
        raise command.Failure(f"drawing needs {error.name}, which is not installed: the package "
                              f"python3-{error.name.partition('.')[0]}") from error
    document = make_document(results, programs)
    os.makedirs(out, exist_ok=True)
    svgs = {figure.name: plots.to_svg(figure) for figure in document.figures()}
    for name in os.listdir(out):
        if name.endswith(".svg") and name.removesuffix(".svg") not in svgs:
            os.remove(os.path.join(out, name))
    for name, svg in svgs.items():
        write(os.path.join(out, name + ".svg"), svg)
    write(os.path.join(out, "README.md"), documents.to_markdown(document))
    write(os.path.join(out, "index.html"), documents.to_html(document, svgs))
    print(f"{out}/index.html, README.md and {len(svgs)} figures")


def find_stale(results, out, programs=None):
    """What in `out` is not what the results make now."""
    document = make_document(results, programs)
    svgs = {}
    for figure in document.figures():
        path = os.path.join(out, figure.name + ".svg")
        svgs[figure.name] = read(path) if os.path.exists(path) else ""
        drawn_of = re.search(r"<dc:description>data (\w+)</dc:description>", svgs[figure.name])
        if not drawn_of or drawn_of.group(1) != figure.digest():
            yield path
    if read(os.path.join(out, "README.md")) != documents.to_markdown(document):
        yield os.path.join(out, "README.md")
    if all(svgs.values()) and \
            read(os.path.join(out, "index.html")) != documents.to_html(document, svgs):
        yield os.path.join(out, "index.html")


def run(options):
    """The program's exit status."""
    if not options.check:
        make(options.results, options.out, find_programs())
        return 0
    if not os.path.exists(options.out):
        print(f"skipped: there is no {options.out}", file=sys.stderr)
        return 77
    try:
        stale = list(find_stale(options.results, options.out, find_programs()))
    except NoProgram as missing:
        print(f"skipped: {missing}", file=sys.stderr)
        return 77
    for path in stale:
        print(f"{path} is not of the stored results: run ./dev bench report", file=sys.stderr)
    return 1 if stale else 0


def main():
    parser = argparse.ArgumentParser(prog="bench-report", description=__doc__)
    parser.add_argument("--results", type=command.path, default=os.path.join(DOCS, "bench"),
                        metavar="DIR",
                        help="where the stored results are (default docs/bench)")
    parser.add_argument("--out", type=command.path, default=os.path.join(DOCS, "report"),
                        metavar="DIR",
                        help="where the report goes (default docs/report)")
    parser.add_argument("--check", action="store_true",
                        help="change nothing; fail if the report is not of these results")
    options = parser.parse_args()
    try:
        return run(options)
    except (OSError, command.Failure) as error:
        print(f"bench-report: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
