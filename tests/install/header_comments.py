#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
header_comments.py HEADER ...: is the manual of each function in a public header complete?

A function has a comment, its own or that of the function before it. What can fail
(returns int) says there what it costs and how it fails, or what call it is like ("As
pmfs_mknod()"); or the comment that its section begins with does. Costs are asked for in
headers that count them. What holds for threads is in the contract at the top.
"""
import re
import sys

BANNER = re.compile(r"^/\* -{4} .* -{4,} ?\*/$", re.M)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
BODY = re.compile(r"\{[^{}]*\}")
FUNCTION = re.compile(r"^(?!typedef|#)([\w *]+?)\b((?:minl2r|pmfs|crashtest)_\w+)\(", re.M)
COST = re.compile(r"^ \*\s+Cost:? |\bAs \w+\(\)", re.M)
FAILURE = re.compile(r"^ \*\s+(Errors|Returns):? |\bAs \w+\(\)", re.M)


def blank(match):
    """Nothing but the lines, so that places stay what they are."""
    return re.sub(r"[^\n]", " ", match.group())


def functions(section):
    """(what it returns, its name, its comment) of each."""
    comments = [(m.start(), m.group()) for m in COMMENT.finditer(section)]
    for match in FUNCTION.finditer(BODY.sub(blank, COMMENT.sub(blank, section))):
        before = [text for at, text in comments if at < match.start()]
        yield match.group(1).strip(), match.group(2), before[-1] if before else ""


def complaints(text):
    contract = text[: text.index("#ifndef")]
    if "Threads" not in contract:
        yield "its contract says nothing of threads"
    for section in BANNER.split(text)[1:] or [text[len(contract):]]:
        found = list(functions(section))
        first = COMMENT.search(section)
        of_all = first.group() if first else ""
        if of_all in [own for _, _, own in found]:
            of_all = ""
        for returns, name, own in found:
            if not own:
                yield f"{name}() has no comment"
            elif returns == "int" and '"Cost" counts' in contract:
                if not COST.search(own + "\n" + of_all):
                    yield f"{name}() does not say what it costs"
                if not FAILURE.search(own + "\n" + of_all):
                    yield f"{name}() does not say how it fails"


def main():
    found = False
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as header:
            for complaint in complaints(header.read()):
                print(f"{path}: {complaint}")
                found = True
    return found


sys.exit(main())
