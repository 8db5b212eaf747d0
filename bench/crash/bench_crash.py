#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How many states after a crash the explorer recovers and judges in a second: on one processor,
each state tried as it is, the fastest of five rounds; and whole sets of programs on all processors."""

import argparse
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile

CRASHTEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "crashtest")
POWER = ["--no-kill", "--nested", "0"]
EAGER = [*POWER, "--strategy", "eager", "--jobs", "1"]
RUNS = [
    ("library, eagerly", ["library", "--length", "1", "--thorough", "0", *EAGER]),
    ("pmfs, eagerly", ["pmfs", "--setting", "ace", "--length", "1", *EAGER]),
    ("library, two in a row", ["library", "--length", "2", "--setting", "small-log", *POWER]),
    ("pmfs, two in a row", ["pmfs", "--setting", "ace", "--length", "2", "--budget", "256", *POWER]),
]
ROUNDS = 5
QUICK = [
    ("library, eagerly", ["library", "--length", "1", "--setting", "swap-never", *EAGER]),
    ("pmfs, eagerly", ["pmfs", "--setting", "ace", "--length", "1", "--budget", "256", *EAGER]),
]


def cpu():
    with open("/proc/cpuinfo", encoding="ascii") as info:
        return re.search(r"model name\s*: (.*)", info.read()).group(1)


def run_once(name, arguments, directory):
    """A row for each setting that is measured on its own, or one of all."""
    path = os.path.join(directory, "report.json")
    # It says by its exit status that nothing was wrong.
    subprocess.run([CRASHTEST, *arguments, "--json", path], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    return report["workloads"] if name == "library, eagerly" else [report]


def measure(name, arguments, directory):
    """The fastest of some rounds: what else the machine does only takes time. What is done
    within a moment tells nothing of speed."""
    rounds = ROUNDS if name.endswith("eagerly") else 1
    runs = [run_once(name, arguments, directory) for _ in range(rounds)]
    rows = [min(same, key=lambda row: row["seconds"]) for same in zip(*runs)]
    rows = [row for row in rows if row["states"] > 10000] or rows
    return [{"run": name, "setting": row["workload"], "programs": row["programs"],
             "points": row["points"], "states": row["states"],
             "coverage": row["coverage"], "seconds": row["seconds"],
             "states_per_s": round(row["states"] / row["seconds"]),
             "command": "crashtest " + " ".join(arguments)} for row in rows]


def render(results):
    lines = [f"- CPU: {results['cpu']}", f"- Cores: {results['cores']}",
             f"- Kernel: {results['kernel']}", "",
             "| run | setting | programs | crash points | states | coverage | seconds | states/s |",
             "|---|---|---:|---:|---:|---|---:|---:|"]
    lines += [f"| {row['run']} | {row['setting']} | {row['programs']} | {row['points']} "
              f"| {row['states']} | {row['coverage']} | {row['seconds']:.1f} "
              f"| {row['states_per_s']} |" for row in results["rows"]]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds, less of it")
    parser.add_argument("--json", metavar="FILE", help="write the results for programs")
    parser.add_argument("--render", metavar="FILE", help="print stored results; measure nothing")
    options = parser.parse_args()
    if options.render:
        with open(options.render, encoding="utf-8") as file:
            print(render(json.load(file)))
        return
    results = {"cpu": cpu(), "cores": os.cpu_count(), "rows": [],
               "kernel": f"{platform.system()} {platform.release()}"}
    with tempfile.TemporaryDirectory() as directory:
        for name, arguments in QUICK if options.quick else RUNS:
            results["rows"] += measure(name, arguments, directory)
    print(render(results))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
            file.write("\n")


def end(number, _):
    """What has been started ends, too, and leaves nothing behind."""
    sys.exit(128 + number)


for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(ending, end)
try:
    main()
except (OSError, subprocess.CalledProcessError) as error:
    sys.exit(f"bench-crash: {error}")
