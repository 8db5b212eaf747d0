# SPDX-License-Identifier: BSD-3-Clause
"""The stored results: docs/bench/NAME.json, rows with the same keys, and what the run said
of its machine in docs/bench/NAME.txt."""
import json
import os
import re
import subprocess

import command

MACHINE_KEYS = ("Command", "Code", "Compiler", "CPU", "Cores", "Kernel", "PMDK", "Medium", "Clock",
                "Rounds", "Took")


class NoProgram(command.Failure):
    """One that is asked is not built."""


class Stored:
    """`programs`: the directory of those that measured; None: there is none to ask."""

    def __init__(self, directory, programs=None):
        self.directory = directory
        self.programs = programs

    def names(self):
        return sorted(name.removesuffix(".json") for name in os.listdir(self.directory)
                      if name.endswith(".json"))

    def rows(self, name):
        """[] if there are none."""
        path = os.path.join(self.directory, name + ".json")
        if not os.path.exists(path):
            return []
        with open(path) as file:
            return json.load(file)

    def machine(self, name):
        """What was printed as "CPU: ..." and so on, before the table, and "Took: ..." after it."""
        path = os.path.join(self.directory, name + ".txt")
        if not os.path.exists(path):
            return {}
        with open(path) as file:
            found = re.findall(r"^(\w+): *(.*)$", file.read(), re.MULTILINE)
        return {key: value for key, value in reversed(found) if key in MACHINE_KEYS}

    def printed_bars(self, name):
        """As bar_table() has them, but `met` alone: the verdicts of the program that has these bars,
        on what is stored."""
        path = os.path.join(self.directory, name + ".json")
        if not self.programs or not os.path.exists(path):
            return []
        program = os.path.join(self.programs, "bench-" + name)
        if not os.path.exists(program):
            raise NoProgram(f"the verdicts on {path} are of {program}, which is not built")
        done = subprocess.run([program, "--render", path], capture_output=True, text=True)
        if done.returncode != 0:
            raise command.Failure(done.stderr.strip())
        printed = done.stdout.partition("### Bars\n")[2].partition("\n### ")[0]
        return [{"met": verdict == "met"}
                for verdict in re.findall(r"\b(met|missed|MISSED)(?: \|)?$", printed,
                                          re.MULTILINE)]


def where(rows, **wanted):
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def only(rows, **wanted):
    """The row, or None; more than one is a mistake in the question."""
    found = where(rows, **wanted)
    if len(found) > 1:
        raise ValueError(f"{len(found)} rows have {wanted}")
    return found[0] if found else None


def values(rows, key):
    """Those there are, each once, in the order of their rows."""
    return list(dict.fromkeys(row[key] for row in rows if row.get(key) is not None))


def by_column(rows, key, order):
    """The values of `key`, those that are known first, in the order given."""
    found = values(rows, key)
    return [v for v in order if v in found] + [v for v in found if v not in order]


def ratios(rows, ours, theirs, of="mb_s", by="record_size", key="scheme"):
    """{by: ours / theirs} where both were measured."""
    def column(name):
        return {row[by]: row[of] for row in where(rows, **{key: name}) if row.get(of)}

    mine, other = column(ours), column(theirs)
    return {x: mine[x] / other[x] for x in mine if x in other}
