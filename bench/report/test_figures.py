#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""That no measured figure is typed into the documents: whatever looks like one lies between the
lines of a generated part, in what a program printed, or is on the list below."""
import glob
import os
import re
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# Document, what stands there, and why it is no figure that was measured.
ALLOWED = [
    ("docs/BENCHMARKS.md", "1 GB/s", "the bus that a row of bench-delay asks the model for"),
    ("docs/CRASHTEST.md", "18 crash points", "an example of what is printed"),
    ("docs/CRASHTEST.md", "9 crash points", "an example of what is printed"),
    ("docs/CRASHTEST.md", "three seconds", "a limit: whose wait is not known is noticed then"),
    ("docs/CRASHTEST.md", "five seconds", "a limit: how long what hangs may sleep"),
    ("docs/DESIGN.md", "two milliseconds", "a constant: what takes the place of membarrier(2)"),
]

TIME = r"(?:nano|micro|milli)?seconds?|minutes?|hours?"
RATE = r"(?:(?:states|crash points|operations|writes|calls) )?(?:an?|per) second|(?:states|calls)/s"
UNIT = rf"(?:[nuµm]?s|{TIME}|{RATE}|[KMGT]i?B/s|[KMG]?IOPS)"
IN_WORDS = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|a dozen|a few|half an?)"
FIGURE = re.compile(rf"\b(?:\d[\d,.]* ?{UNIT}|{IN_WORDS} (?:{TIME}))(?![\w/])")
COUNT = re.compile(r"\b\d[\d,]* (?:crash points|states)\b")  # of explorations, which are results
VAGUE = re.compile(rf"\b(?:{TIME}) or (?:two|so)\b|\bquarter of an hour\b")

GENERATED = re.compile(r"^<!-- begin (\S+) -->$.*?^<!-- end \1 -->$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^```console$.*?^```$", re.MULTILINE | re.DOTALL)


def documents():
    for pattern in ("README.md", "docs/*.md", "docs/man/*", "docs/examples/**/*.md"):
        yield from sorted(glob.glob(os.path.join(ROOT, pattern), recursive=True))


def typed(text):
    """What of a document nobody but its author answers for, on as many lines as before."""
    for part in GENERATED, PRINTED:
        text = part.sub(lambda found: "\n" * found.group().count("\n"), text)
    return text


def figures(text):
    """(line, what stands there) of all that looks measured."""
    for pattern in FIGURE, COUNT, VAGUE:
        for found in pattern.finditer(text):
            yield text.count("\n", 0, found.start()) + 1, " ".join(found.group().split())


class Figures(unittest.TestCase):
    def test_none_is_typed(self):
        found = {}
        for path in documents():
            name = os.path.relpath(path, ROOT)
            with open(path, encoding="utf-8") as file:
                for line, what in figures(typed(file.read())):
                    found[name, what] = f"{name}:{line}: {what}"
        allowed = {(name, what) for name, what, _ in ALLOWED}
        self.assertEqual([where for key, where in found.items() if key not in allowed], [],
                         "measured? Then show a stored result")
        self.assertEqual(allowed - set(found), set(), "allowed, but not there any more")

    def test_what_is_measured_is_seen(self):
        for text in ("it took 380 ns", "12,800 states a second", "3.2 s:", "two minutes", "1 GB/s", "0.5 µs",
                     "a minute or two", "45 states", "5 GiB/s", "100 IOPS", "2 ms",
                     "a quarter of an hour", "20us", "a microsecond or two", "half an hour"):
            self.assertTrue(list(figures(text)), text)

    def test_what_is_not_is_left_alone(self):
        for text in ("4 KiB", "64 bytes", "2 threads", "three fences", "8 sectors", "16 slots",
                     "`created_s`", "seconds since the epoch", "the 56 operations"):
            self.assertEqual(list(figures(text)), [], text)

    def test_generated_and_printed_parts_are_not_typed(self):
        text = "a\n<!-- begin x -->\n5 ns\n<!-- end x -->\n```console\n6 ns\n```\n7 ns\n"
        self.assertEqual(list(figures(typed(text))), [(8, "7 ns")])


if __name__ == "__main__":
    unittest.main()
