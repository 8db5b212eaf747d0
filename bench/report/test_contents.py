#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""That the report has what it is demanded to show, as a page and as Markdown, and that the page
needs no other file: of rows made up, and of the report that is stored."""
import html.parser
import json
import os
import re
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import bench_report  # noqa: E402
import document as documents  # noqa: E402
import sections  # noqa: E402

MEDIA = ["tmpfs", "optane", "cxl"]
SIZES = [64, 1024, 4096, 65536]


def scheme_rows():
    for medium in MEDIA:
        for workload in "overwrite", "append":
            for size in SIZES:
                for number, scheme in enumerate(sections.SCHEMES, 1):
                    yield {"scheme": scheme, "workload": workload, "record_size": size, "threads": 1,
                           "medium": medium, "mb_s": size * number, "mb_s_min": size * number - 1,
                           "mb_s_max": size * number + 1, "ns_p50": number, "ns_p99": 2 * number,
                           "ns_p999": 3 * number, "fences": 2, "lines_flushed": number,
                           "lines_streamed": size / 64, "log_payload_bytes": 8, "log_bytes": 64,
                           "pm_bytes": 2 * size, "copied_bytes": 0}


def log_rows():
    for size in SIZES:
        yield {"record_size": size, **{key: size for _, key in sections.LOGGED + sections.WRITTEN}}


class Rows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as directory:
            for name, rows in (("fs", scheme_rows()), ("log", log_rows())):
                with open(os.path.join(directory, name + ".json"), "w") as file:
                    json.dump(list(rows), file)
            bench_report.write(os.path.join(directory, "fs.txt"),
                               "Command: ./dev bench fs --medium all\nCode: 123abc\nCPU: abacus\n"
                               "Cores: 2\nKernel: Linux 1\nRounds: 5\n\nTook: 9 s\n")
            document = bench_report.make_document(directory)
        cls.figures = {figure.name: figure for figure in document.figures()}
        cls.markdown = documents.to_markdown(document)
        cls.page = documents.to_html(document, {name: f"<svg><title>{name}</title></svg>"
                                                for name in cls.figures})

    def texts(self):
        """A page's own marks taken out, so that a word is found as it is read."""
        return {"Markdown": self.markdown.replace("`", ""),
                "page": re.sub(r"</?code>", "", self.page)}

    def expect(self, *words):
        for where, text in self.texts().items():
            for word in words:
                self.assertIn(word, text, where)

    def drawn(self, name):
        """The panels of a figure that is in both."""
        figure = self.figures[name]
        self.assertIn(f"![{name}]({name}.svg)\n\n*{figure.caption}*", self.markdown)
        self.assertRegex(self.page, rf'<figure>\n<svg role="img"[^>]*><title>{name}</title></svg>\n'
                                    "<figcaption>")
        return figure.data["panels"]

    def assert_axes(self, name, *units):
        data = self.figures[name].data
        self.assertEqual([data[axis] for axis in ("x", "y") if axis in data], list(units))

    def test_throughput_by_record_size_of_each_scheme(self):
        panels = self.drawn("throughput")
        self.assertEqual(len(panels), 2 * len(MEDIA))
        for panel in panels:
            self.assertEqual([series["name"] for series in panel["series"]], sections.MAIN_SCHEMES)
            self.assertEqual(panel["series"][0]["x"], SIZES)
        self.assert_axes("throughput", "record size", "MB/s")

    def test_log_bytes_by_record_size_and_bpfs_both_ways(self):
        logged, written = self.drawn("log")
        self.assertEqual([series["name"] for series in logged["series"]],
                         [name for name, _ in sections.LOGGED])
        self.assertEqual([name for name, _ in sections.LOGGED if name.startswith("bpfs")],
                         ["bpfs: shadow blocks", "bpfs: copied bytes"])
        self.assertEqual(written["series"][0]["x"], SIZES)
        self.assert_axes("log", "record size", "bytes per write")

    def test_fences_and_lines_of_each_scheme(self):
        for name in "fences", "lines":
            for panel in self.drawn(name):
                self.assertEqual([row["name"] for row in panel["rows"]], sections.SCHEMES)
            self.assert_axes(name, name)

    def test_distributions_of_latency_on_each_medium(self):
        for medium in MEDIA:
            for panel in self.drawn("latency-" + medium):
                self.assertEqual([row["name"] for row in panel["rows"]], sections.SCHEMES)
            self.assertEqual(self.figures["latency-" + medium].data["points"],
                             ["p50", "p99", "p99.9"])

    def test_the_papers_four_ratios_beside_ours_each_explained(self):
        self.expect("The paper's four ratios")
        for name, percent, schemes in sections.PAPER:
            self.expect(name, f"{percent} %", *schemes)
            self.assertIn(f"**{name}.** ", self.markdown)
            self.assertIn(f"<strong>{name}.</strong> ", self.page)
        self.assertEqual(len(sections.PAPER), 4)

    def test_the_bars_the_machine_and_the_commands(self):
        self.expect("Bars", "Where bars are missed", "abacus, 2 cores, Linux 1", "123abc", "9 s",
                    "./dev bench fs --medium all", "./dev bench report")


class Needs(html.parser.HTMLParser):
    """Collects what a page takes from elsewhere. A link that is followed is none of it."""

    TAGS = {"audio", "base", "embed", "frame", "iframe", "image", "img", "link", "object", "script",
            "source", "video", "feimage"}
    ATTRIBUTES = {"src", "srcset", "href", "xlink:href", "data", "poster", "background", "action"}

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag in self.TAGS:
            self.found.append(tag)
        for name, value in attributes:
            if tag != "a" and name in self.ATTRIBUTES and not value.startswith("#"):
                self.found.append(f"{tag} {name}={value}")
            self.look_at_style(value or "")

    def handle_data(self, data):
        self.look_at_style(data)

    def look_at_style(self, text):
        self.found += re.findall(r"@import|url\(\s*[\"']?[^#\"'\s]", text)


class Alone(unittest.TestCase):
    def test_the_page_needs_no_other_file(self):
        Rows.setUpClass()
        self.assertEqual(Needs(Rows.page).found, [])

    def test_nor_does_the_one_that_is_stored(self):
        path = os.path.join(bench_report.DOCS, "report", "index.html")
        if not os.path.exists(path):
            self.skipTest("none is stored")
        page = bench_report.read(path)
        self.assertIn("<svg", page)
        self.assertEqual(Needs(page).found, [])

    def test_what_it_would_need_is_seen(self):
        for page in ('<img src="a.svg">', '<link rel="stylesheet" href="a.css">', "<script></script>",
                     '<svg><use xlink:href="b.svg#a"/></svg>', "<style>@import 'a.css';</style>",
                     '<p style="background: url(a.png)">', "<style>p { cursor: url('a') }</style>"):
            self.assertNotEqual(Needs(page).found, [], page)
        for page in ('<a href="../a.md">', '<svg><use xlink:href="#a"/></svg>',
                     '<g clip-path="url(#a)">', '<svg xmlns="http://www.w3.org/2000/svg">'):
            self.assertEqual(Needs(page).found, [], page)


if __name__ == "__main__":
    unittest.main()
