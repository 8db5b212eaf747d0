#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How many states after a crash the explorer recovers and judges in a second: on one processor,
each state tried as it is, the fastest of five rounds; and whole sets of programs on all processors."""

import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import command  # noqa: E402
import results  # noqa: E402
import systems  # noqa: E402

CRASHTEST = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "crashtest")
POWER = ["--no-kill", "--nested", "0"]
EAGER = [*POWER, "--strategy", "eager", "--jobs", "1"]
RUNS = [
    ("library, eagerly", ["library", "--length", "1", "--thorough", "0", *EAGER]),
    ("pmfs, eagerly", ["pmfs", "--setting", "ace", "--length", "1", *EAGER]),
    ("library, two in a row", ["library", "--length", "2", "--setting", "small-log", *POWER]),
    ("pmfs, two in a row", ["pmfs", "--setting", "ace", "--length", "2", "--budget", "256", *POWER]),
]
QUICK = [
    ("library, eagerly", ["library", "--length", "1", "--setting", "swap-never", *EAGER]),
    ("pmfs, eagerly", ["pmfs", "--setting", "ace", "--length", "1", "--budget", "256", *EAGER]),
]


def run_once(name, arguments, directory):
    """A row for each setting that is measured on its own, or one of all."""
    path = os.path.join(directory, "report.json")
    # It says by its exit status that nothing was wrong.
    systems.run([CRASHTEST, *arguments, "--json", path])
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    return report["workloads"] if name == "library, eagerly" else [report]


def measure_one(name, arguments, rounds, directory):
    """The fastest of some rounds: what else the machine does only takes time. What is done
    within a moment tells nothing of speed."""
    rounds = rounds if name.endswith("eagerly") else 1
    runs = [run_once(name, arguments, directory) for _ in range(rounds)]
    rows = [min(same, key=lambda row: row["seconds"]) for same in zip(*runs)]
    rows = [row for row in rows if row["states"] > 10000] or rows
    return [{"run": name, "setting": row["workload"], "programs": row["programs"],
             "points": row["points"], "states": row["states"],
             "coverage": row["coverage"], "seconds": row["seconds"],
             "states_per_s": round(row["states"] / row["seconds"]),
             "command": "crashtest " + " ".join(arguments)} for row in rows]


def measure(options):
    command.print_setup("emulated, in the memory of the explorer",
                        f"{options.rounds}, of those that are eager; the fastest")
    rows = []
    with tempfile.TemporaryDirectory(dir=options.dir) as directory:
        for name, arguments in QUICK if options.quick else RUNS:
            rows += measure_one(name, arguments, options.rounds, directory)
    return rows


COLUMNS = [("run", "run", 0), ("setting", "setting", 0), ("programs", "programs", 0),
           ("points", "crash points", 0), ("states", "states", 0), ("coverage", "coverage", 0),
           ("seconds", "seconds", 1), ("states_per_s", "states/s", 0)]


def show(rows, markdown):
    results.print_table(rows, COLUMNS, markdown)


if __name__ == "__main__":
    parser = command.make_parser("bench-crash", __doc__, "a few seconds, less of it", (5, 5),
                                 "1 MiB")
    sys.exit(command.main("bench-crash", command.parse(parser), measure, show, COLUMNS))
