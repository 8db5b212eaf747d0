# SPDX-License-Identifier: BSD-3-Clause
"""The command line that benchmarks share, as command.h has it, and what follows from it: to
measure, print and store, or to print what is stored. Results are a list of dictionaries."""

import argparse
import contextlib
import errno
import json
import os
import signal
import sys
import time


class Failure(Exception):
    """Something that a benchmark needs does not work; the text says what."""


# ---- Options ------------------------------------------------------------------------------

def _round_count(text):
    if not text.isdecimal() or not 0 < int(text) < 1000:
        raise argparse.ArgumentTypeError(f"no number of rounds: {text}")
    return int(text)


def path(text):
    """For argparse: the name of a file or directory."""
    if not text:
        raise argparse.ArgumentTypeError("nothing is named")
    return text


def some_of(known):
    """For argparse: a type of comma-separated names."""
    def parse(text):
        for name in text.split(","):
            if name not in known:
                raise argparse.ArgumentTypeError(f"there is no {name}")
        return text.split(",")
    return parse


def make_parser(program, text, quick, rounds, room, epilog=None):
    """`rounds`: how many unless told, and with --quick."""
    parser = argparse.ArgumentParser(prog=program, description=text, epilog=epilog)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--rounds", type=_round_count, metavar="N",
                        help=f"rounds (default {rounds[0]}, with --quick {rounds[1]})")
    parser.add_argument("--dir", type=path, default="/dev/shm",
                        help="where files are made: tmpfs or DAX (default /dev/shm); "
                             f"needs {room}")
    parser.add_argument("--json", type=path, metavar="FILE", help="also write the results there")
    parser.add_argument("--render", type=path, metavar="FILE",
                        help="measure nothing: print such results as Markdown")
    parser.set_defaults(rounds_default=rounds)
    return parser


def parse(parser):
    options = parser.parse_args()
    options.rounds = options.rounds or options.rounds_default[1 if options.quick else 0]
    return options


# ---- The machine --------------------------------------------------------------------------

def print_setup(medium, rounds):
    """The lines that bench/update-docs.sh puts into the document."""
    with open("/proc/cpuinfo") as cpuinfo:
        cpu = next((line.split(":", 1)[1].strip() for line in cpuinfo
                    if line.startswith("model name")), "unknown")
    system = os.uname()
    command = " ".join([os.path.basename(sys.argv[0]).removeprefix("bench-"), *sys.argv[1:]])
    code = os.environ.get("MINL2R_BENCH_CODE")  # set by ./dev bench
    print(f"Command: ./dev bench {command}" + (f"\nCode: {code}" if code else ""))
    print(f"CPU: {cpu}\nCores: {os.cpu_count()}\n"
          f"Kernel: {system.sysname} {system.release}\nMedium: {medium}\nRounds: {rounds}\n",
          flush=True)


# ---- Stored results -----------------------------------------------------------------------

def read_json(path, keys):
    """Rows that have all of `keys`, or a Failure."""
    with open(path) as file:
        try:
            rows = json.load(file)
        except ValueError as error:
            raise Failure(f"{path}: these are no results: {error}") from error
    if not isinstance(rows, list):
        raise Failure(f"{path}: these are no results: no list of rows")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise Failure(f"{path}: these are no results: row {number} is no object")
        missing = [key for key in keys if key not in row]
        if missing:
            raise Failure(f"{path}: these are other results: row {number} has no {missing[0]}")
        for key in keys:
            if not isinstance(row[key], (str, int, float, type(None))):
                raise Failure(f"{path}: these are no results: row {number}: {key} is no figure")
    return rows


@contextlib.contextmanager
def _results_file(path):
    """What writes rows there, one a line. The file appears only when it is complete, and
    replaces a file, but no directory or device; that it can be made is seen at once."""
    if os.path.exists(path) and not os.path.isfile(path):
        number = errno.EISDIR if os.path.isdir(path) else errno.ENOTSUP
        raise OSError(number, os.strerror(number), path)
    partial = path + ".partial"
    with open(partial, "w") as file:
        try:
            yield lambda rows: file.write(
                "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
        except BaseException:
            os.remove(partial)
            raise
    os.rename(partial, path)


# ---- Running ------------------------------------------------------------------------------

def _end(number, _):
    """What has been started ends, too, and leaves nothing behind."""
    sys.exit(128 + number)


def _run(options, measure, show, keys):
    if options.render:
        show(read_json(options.render, keys), markdown=True)
        return
    with contextlib.ExitStack() as stack:
        write = stack.enter_context(_results_file(options.json)) if options.json else None
        start = time.monotonic()
        rows = measure(options)
        took_s = time.monotonic() - start
        show(rows, markdown=False)
        print(f"\nTook: {took_s:.0f} s")
        if write:
            write(rows)


def main(program, options, measure, show, columns):
    """The program's exit status. `columns` as print_table() has them: rows have their keys."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        _run(options, measure, show, [key for key, _, _ in columns])
    except Failure as failure:
        print(f"{program}: {failure}", file=sys.stderr)
        return 1
    except OSError as error:
        what = f"{error.filename}: ".replace(".partial:", ":") if error.filename else ""
        print(f"{program}: {what}{error.strerror}", file=sys.stderr)
        return 1
    return 0
