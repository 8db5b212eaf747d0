#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs sqlite3, tar, git and lmdb as they are on pmfs, and on ext4, xfs and tmpfs on the same
kind of memory, each asked to be as durable as the others. Prints a table of times, medians of
the rounds."""

import ctypes.util
import os
import shutil
import statistics
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import command  # noqa: E402
import results  # noqa: E402
import systems  # noqa: E402

POOL_SIZE = 512 << 20
TRANSACTIONS, BULK_ROWS = 1000, 100000
TREE_FILES = 600

COLUMNS = [("app", "application", 0), ("what", "what", 0), ("sync", "sync", 0),
           ("system", "system", 0), ("ms", "ms", 1), ("ms_min", "least", 1),
           ("ms_max", "most", 1), ("ratio_journal", "ext4-journal / it", 2)]


class Run:
    """Where one application does its work, and with what."""

    def __init__(self, system, tree, scale):
        self.system, self.tree, self.scale = system, tree, scale
        self.path = system.path

    def command(self, *command, stdin=None):
        """A program on the system. Its time includes its start, and, where pmfs is preloaded,
        that of opening the pool."""
        systems.run(command, env=self.system.environment, input=stdin)

    def remove(self, *names):
        self.command("rm", "-rf", *(f"{self.path}/{name}" for name in names))


# ---- Applications ---------------------------------------------------------------------
# Each: what is needed before, untimed; what is timed; what is removed after.

# One journal for all, so that all do the same; FULL: durable once committed.
SQL = "pragma journal_mode={}; pragma synchronous={};"


def sql_start(journal, sync):
    return SQL.format(journal, "full" if sync else "off")


def sqlite_single(run, sync, journal):
    rows = "".join(f"insert into t values({i}, 'a row with the number {i}');\n"
                   for i in range(TRANSACTIONS // run.scale))
    run.command("sqlite3", f"{run.path}/a.db",
                stdin=sql_start(journal, sync) + "create table t(i integer primary key, text);"
                + rows)


def sqlite_bulk(run, sync, journal):
    run.command("sqlite3", f"{run.path}/a.db", stdin=sql_start(journal, sync) + f"""
        create table t(i integer primary key, text); begin;
        insert into t with recursive n(i) as (select 1 union all select i + 1 from n
            where i < {BULK_ROWS // run.scale})
            select i, 'a row with the number ' || i from n;
        commit;""")


def remove_database(run):
    run.remove("a.db", "a.db-wal", "a.db-shm", "a.db-journal")


def make_tree(run, sync):
    run.command("cp", "-r", run.tree, f"{run.path}/tree")


def tar_unpack(run, sync):
    """What tar itself can do for durability is nothing: `sync` does the whole filesystem."""
    run.command("tar", "-C", run.path, "-xf", run.tree + ".tar")
    if sync and run.system.name != "pmfs-preload":
        run.command("sync", "-f", run.path)


def tar_pack(run, sync):
    run.command("tar", "-C", f"{run.path}/tree", "-cf", f"{run.path}/out.tar", ".")
    if sync and run.system.name != "pmfs-preload":
        run.command("sync", "-f", run.path)


def git_commit(run, sync):
    git = ["git", "-C", f"{run.path}/tree", "-c", "user.name=a", "-c", "user.email=a@b", "-c",
           "gc.auto=0", "-c", "core.fsync=" + ("all" if sync else "none"), "-c",
           "core.fsyncMethod=fsync"]
    run.command(*git, "init", "-q")
    run.command(*git, "add", ".")
    run.command(*git, "commit", "-q", "-m", "all")


def git_status(run, sync):
    run.command("git", "-C", f"{run.path}/tree", "status", "--porcelain")


def lmdb_transactions(run, sync):
    run.command(sys.executable, os.path.join(HERE, "lmdb_puts.py"), f"{run.path}/lmdb",
                str(TRANSACTIONS // run.scale), "1" if sync else "0")


APPS = [
    # name, what, prepare, work, names to remove, only through the kernel
    ("sqlite3", "single rows, journal", None,
     lambda run, sync: sqlite_single(run, sync, "delete"), remove_database, False),
    ("sqlite3", "bulk, journal", None,
     lambda run, sync: sqlite_bulk(run, sync, "delete"), remove_database, False),
    ("sqlite3", "single rows, wal", None,
     lambda run, sync: sqlite_single(run, sync, "wal"), remove_database, True),
    ("tar", "unpack", None, tar_unpack, lambda run: run.remove("tree"), False),
    ("tar", "pack", make_tree, tar_pack, lambda run: run.remove("tree", "out.tar"), False),
    ("git", "init, add, commit", make_tree, git_commit, lambda run: run.remove("tree"), True),
    ("git", "status", lambda run, sync: (make_tree(run, sync), git_commit(run, False)),
     git_status, lambda run: run.remove("tree"), True),
    ("lmdb", "single puts", None, lmdb_transactions, lambda run: run.remove("lmdb"), True),
]

# Nothing is written that could be lost.
READERS = {("git", "status")}


# ---- Measuring ------------------------------------------------------------------------

def make_sources(directory, scale):
    """A tree that is the same everywhere, and its archive, on tmpfs."""
    tree = os.path.join(directory, "tree")
    os.mkdir(tree)
    for number in range(TREE_FILES // scale):
        folder = os.path.join(tree, f"directory-{number % 20}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"file-{number}"), "w") as file:
            file.write(f"line of file {number}\n" * (1 + number * 7919 % 1000))
    systems.run(["tar", "-C", directory, "-cf", tree + ".tar", "tree"])
    return tree


def why_no_app(app):
    if app == "lmdb":
        return None if ctypes.util.find_library("lmdb") else "liblmdb is not installed"
    return None if shutil.which(app) else "not installed"


def time_one(run, prepare, work, clean_up, sync):
    if prepare:
        prepare(run, sync)
    start = time.perf_counter_ns()
    work(run, sync)
    ms = (time.perf_counter_ns() - start) / 1e6
    clean_up(run)
    return ms


def measure(options):
    found = {}
    systems.stay_on_one_core()
    with systems.Systems(options.dir, options.bin, POOL_SIZE) as all_systems:
        ready = all_systems.set_up_all(options.systems)
        tree = make_sources(all_systems.directory, options.scale)
        apps = []
        for app in options.apps:
            why_not = why_no_app(app)
            if why_not:
                print(f"Left out: {app}: {why_not}", file=sys.stderr)
            apps += [row for row in APPS if row[0] == app and not why_not]
        systems.print_setup(options, options.rounds)
        # The first round warms up.
        for number in range(options.rounds + 1):
            for app, what, prepare, work, clean_up, kernel_only in apps:
                for sync in ((0,) if (app, what) in READERS else (0, 1)):
                    for turn in range(len(ready)):
                        system = ready[(number + turn) % len(ready)]
                        if kernel_only and system.name == "pmfs-preload":
                            continue
                        run = Run(system, tree, options.scale)
                        ms = time_one(run, prepare, work, clean_up, sync)
                        if number > 0:
                            found.setdefault((app, what, sync, system.name), []).append(ms)
    order = {name: index for index, name in enumerate(systems.NAMES)}
    place = {row[:2]: index for index, row in enumerate(APPS)}
    rows = [{
        "app": app, "what": what, "sync": sync, "system": name,
        "ms": round(statistics.median(values), 3), "ms_min": round(min(values), 3),
        "ms_max": round(max(values), 3), "rounds": len(values),
        "ratio_journal": ratio_of(found, app, what, sync, values),
    } for (app, what, sync, name), values in found.items()]
    rows.sort(key=lambda row: (place[row["app"], row["what"]], row["sync"],
                               order[row["system"]]))
    return rows


def ratio_of(found, app, what, sync, values):
    """How much longer ext4 with data=journal takes: the median of the rounds' ratios."""
    journal = found.get((app, what, sync, "ext4-journal"))
    if not journal:
        return None
    return round(statistics.median(theirs / ours for theirs, ours in zip(journal, values)), 3)


def show(rows, markdown=False):
    results.print_table(rows, COLUMNS, markdown)


def parse_arguments():
    names = list(dict.fromkeys(row[0] for row in APPS))
    parser = systems.make_parser("bench-apps", __doc__, "a tenth of the rows and files, one round", (3, 1))
    parser.add_argument("--apps", type=command.some_of(names), default=names,
                        help="comma-separated: " + ", ".join(names))
    options = command.parse(parser)
    options.scale = 10 if options.quick else 1
    return options


if __name__ == "__main__":
    sys.exit(command.main("bench-apps", parse_arguments(), measure, show, COLUMNS))
