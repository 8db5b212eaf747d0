#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the same fio jobs on pmfs, preloaded and mounted, and on ext4, xfs and tmpfs on the same
kind of memory, round by round. Prints a table, then each bar and whether it is met."""

import json
import os
import statistics
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import command  # noqa: E402
import results  # noqa: E402
import systems  # noqa: E402

CLAIMS = ["durable-random-write", "small-random-write", "append", "random-read", "mixed", "create"]
SWEEP = "sweep"
RECORD_SIZES = ["4k", "16k", "64k", "256k", "1M", "4M", "16M"]
RECORD_SIZES_QUICK = ["4k", "64k", "1M"]
POOL_SIZE = 256 << 20
FILL_SIZE = "150M"  # with the 64 MiB of the jobs' file nearly all of the pool

COLUMNS = [("job", "job", 0), ("record_size", "record", 0), ("sync", "sync", 0),
           ("system", "system", 0), ("iops", "IOPS", 0), ("iops_min", "least", 0),
           ("iops_max", "most", 0), ("mb_s", "MB/s", 1), ("lat_p50_ns", "p50 ns", 0),
           ("lat_p99_ns", "p99 ns", 0)]


# ---- Running --------------------------------------------------------------------------

def row_of(job, system):
    """What fio says of one job; None for those that only prepare."""
    options = job["job options"]
    if job["jobname"] in ("fill", "layout"):
        return None
    done = max((job[way] for way in ("read", "write", "mixed") if way in job),
               key=lambda way: way["total_ios"])
    percentiles = done["lat_ns"].get("percentile", {})
    is_create = options.get("ioengine") == "filecreate"
    return {
        "job": job["jobname"], "system": system.name,
        "record_size": None if is_create else results.size_of(options["bs"]),
        "sync": int(options.get("sync", "0")),
        "iops": done["iops"],
        "mb_s": None if is_create else done["bw_bytes"] / 1e6,
        "lat_p50_ns": percentiles.get("50.000000"),
        "lat_p99_ns": percentiles.get("99.000000"),
    }


def run_fio(system, jobs, record_size, options):
    environment = {**system.environment, "DIRECTORY": system.path, "RUNTIME": options.runtime,
                   "RECORD_SIZE": record_size, "FILL_SIZE": FILL_SIZE}
    files = [os.path.join(HERE, job + ".fio") for job in ["fill", *jobs]]
    output = systems.run(["fio", "--output-format=json", *files], env=environment)
    found = json.loads(output[output.index("{"):])["jobs"]
    failed = [job["jobname"] for job in found if job["error"] != 0]
    if failed:
        raise command.Failure(f"{system.name}: fio failed in {', '.join(failed)}")
    return [row for row in (row_of(job, system) for job in found) if row is not None]


def key_of(row):
    return row["job"], row["record_size"], row["sync"], row["system"]


def median_row(rows):
    """Of the rounds of one job: the medians, and the least and most operations."""
    merged = dict(rows[0])
    for key in ("iops", "mb_s", "lat_p50_ns", "lat_p99_ns"):
        values = [row[key] for row in rows if row[key] is not None]
        merged[key] = round(statistics.median(values), 1) if values else None
    merged["iops_min"] = round(min(row["iops"] for row in rows), 1)
    merged["iops_max"] = round(max(row["iops"] for row in rows), 1)
    merged["rounds"] = len(rows)
    return merged


def measure(options):
    claims = [job for job in options.jobs if job != SWEEP]
    sizes = options.record_sizes if SWEEP in options.jobs else []
    found = {}
    systems.stay_on_one_core()
    with systems.Systems(options.dir, options.bin, POOL_SIZE) as all_systems:
        ready = all_systems.set_up_all(options.systems)
        systems.print_setup(options, f"{options.rounds}, of {options.runtime} a job")
        for number in range(options.rounds):
            for turn in range(len(ready)):
                system = ready[(number + turn) % len(ready)]
                runs = ([(claims, "4k")] if claims else []) + [([SWEEP], size) for size in sizes]
                for jobs, record_size in runs:
                    for row in run_fio(system, jobs, record_size, options):
                        found.setdefault(key_of(row), []).append(row)
    rows = [median_row(rows) for rows in found.values()]
    order = {name: index for index, name in enumerate(systems.NAMES)}
    first = {}
    for row in rows:
        first.setdefault((row["job"], row["record_size"], row["sync"]), len(first))
    rows.sort(key=lambda row: (first[row["job"], row["record_size"], row["sync"]],
                               order[row["system"]]))
    return rows


# ---- Showing --------------------------------------------------------------------------

def bars_of(rows):
    iops = {key_of(row): row["iops"] for row in rows}

    def ratio(system, other):
        ours = iops.get(("random write", 4096, 1, system))
        theirs = iops.get(("random write", 4096, 1, other))
        return ours / theirs if ours and theirs else None

    for system in ("pmfs-mount", "pmfs-preload"):
        for other, at_least in (("ext4-journal", 3), ("ext4-ordered", 1.5)):
            yield (f"random writes of 4 KiB with sync, {system} / {other}",
                   ratio(system, other), at_least)


def show(rows, markdown=False):
    if markdown:
        print("### Bars\n")
        results.print_bars(bars_of(rows), markdown)
        print("\n### All results\n")
    results.print_table(rows, COLUMNS, markdown)
    if not markdown:
        print("\nBars")
        results.print_bars(bars_of(rows))


def parse_arguments():
    jobs = [*CLAIMS, SWEEP]
    parser = systems.make_parser("bench-fio", __doc__,
                                 "shorter, fewer record sizes, one round: a minute or two", (3, 1))
    parser.add_argument("--runtime", help="of each job, as fio takes it (default 500ms)")
    parser.add_argument("--jobs", type=command.some_of(jobs), default=jobs,
                        help="comma-separated: " + ", ".join(jobs))
    parser.add_argument("--record-sizes", type=command.some_of(RECORD_SIZES), metavar="SIZES",
                        help="of the sweep, comma-separated: " + ", ".join(RECORD_SIZES))
    options = command.parse(parser)
    options.runtime = options.runtime or ("200ms" if options.quick else "500ms")
    options.record_sizes = options.record_sizes or (RECORD_SIZES_QUICK if options.quick
                                                    else RECORD_SIZES)
    return options


if __name__ == "__main__":
    sys.exit(command.main("bench-fio", parse_arguments(), measure, show, COLUMNS))
