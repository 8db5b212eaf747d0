# SPDX-License-Identifier: BSD-3-Clause
"""The filesystems that are compared, all on the same kind of memory, and how each is set up.

pmfs lies in a file on tmpfs, which stands in for persistent memory; ext4 and xfs lie on a
loop device over a file on the same tmpfs. Everything is mounted in a mount namespace of this
process and dies with it, however it dies."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import command

NAMES = ["pmfs-preload", "pmfs-mount", "ext4-journal", "ext4-ordered", "xfs", "tmpfs"]

LOOP_NOTE = (
    "ext4 and xfs are on a loop device: it passes requests on by a thread of its own, so "
    "every sync looks worse than on a ramdisk or on persistent memory as a block device."
)

# Not in Python's own library before 3.12.
_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNS, _MS_REC, _MS_PRIVATE, _PR_SET_PDEATHSIG = 0x20000, 0x4000, 1 << 18, 1


def die_with_parent():
    """For preexec_fn."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def run(arguments, **options):
    """Runs a command that must succeed; what it printed."""
    result = subprocess.run(arguments, text=True, capture_output=True,
                            preexec_fn=die_with_parent, **options)
    if result.returncode != 0:
        raise command.Failure(f"{' '.join(arguments)}: exit status {result.returncode}\n"
                      f"{result.stdout}{result.stderr}")
    return result.stdout


class System:
    """A filesystem that is ready: a program that runs with `environment` finds it at `path`."""

    def __init__(self, name, path, environment=None):
        self.name = name
        self.path = path
        self.environment = {**os.environ, **(environment or {})}


class Systems:
    """Sets systems up, below a directory on tmpfs, and takes them away. A context manager."""

    def __init__(self, parent, tools, size):
        self.parent, self.tools, self.size = parent, tools, size
        self.cleanup = contextlib.ExitStack()

    def __enter__(self):
        self.root = os.geteuid() == 0
        if self.root:
            _enter_mount_namespace()
        self.directory = tempfile.mkdtemp(prefix="minl2r-bench-", dir=self.parent)
        self.cleanup.callback(shutil.rmtree, self.directory, ignore_errors=True)
        return self

    def __exit__(self, *_):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self.cleanup.close()

    def why_not(self, name):
        """Why a system cannot be set up here; None if it can."""
        if name in ("ext4-journal", "ext4-ordered", "xfs"):
            if not self.root:
                return "loop devices need root"
            if not os.path.exists("/dev/loop-control"):
                return "there is no /dev/loop-control"
            if shutil.which("mkfs.ext4" if name != "xfs" else "mkfs.xfs") is None:
                return "there is no mkfs for it"
        if name == "pmfs-mount":
            if not os.access("/dev/fuse", os.R_OK | os.W_OK):
                return "there is no /dev/fuse for us"
            if not self.root and shutil.which("fusermount3") is None:
                return "without root it needs fusermount3"
        return None

    def set_up_all(self, names):
        """Those that can be; the others are named, with the reason."""
        ready = []
        for name in names:
            why_not = self.why_not(name)
            try:
                if why_not is None:
                    ready.append(self._set_up(name))
            except command.Failure as failure:
                # A container may have loop devices that it must not use.
                if name.startswith("pmfs"):
                    raise
                why_not = str(failure)
            if why_not is not None:
                print(f"Left out: {name}: {why_not}", file=sys.stderr)
        return ready

    def _set_up(self, name):
        setter = {
            "pmfs-preload": self._set_up_preload,
            "pmfs-mount": self._set_up_mount,
            "tmpfs": self._set_up_tmpfs,
        }.get(name, self._set_up_loop)
        return setter(name)

    def _make_directory(self, name):
        path = os.path.join(self.directory, name)
        os.mkdir(path)
        return path

    def _make_pool(self, name):
        pool = os.path.join(self.directory, name + ".pool")
        run([self.tools + "/pmfs", "mkfs", pool, str(self.size)])
        return pool

    def _set_up_preload(self, name):
        return System(name, "/pmfs", {
            "PMFS_PRELOAD": "/pmfs=" + self._make_pool(name),
            "LD_PRELOAD": self.tools + "/libpmfs-preload.so",
        })

    def _set_up_mount(self, name):
        path, pool = self._make_directory(name), self._make_pool(name)
        daemon = subprocess.Popen([self.tools + "/pmfs", "mount", "-f", pool, path],
                                  preexec_fn=die_with_parent)
        self.cleanup.callback(daemon.wait)
        self.cleanup.callback(daemon.terminate)
        while not os.path.ismount(path):
            if daemon.poll() is not None:
                raise command.Failure("pmfs cannot be mounted")
            time.sleep(0.01)
        return System(name, path)

    def _set_up_loop(self, name):
        path = self._make_directory(name)
        image = os.path.join(self.directory, name + ".image")
        with open(image, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(self.size, 512 << 20))
        if name == "xfs":
            run(["mkfs.xfs", "-q", image])
            options = "noatime"
        else:
            # A journal that is not what runs full first; nothing left to be done later.
            run(["mkfs.ext4", "-q", "-J", "size=64", "-E",
                 "lazy_itable_init=0,lazy_journal_init=0", image])
            options = "noatime,data=" + name.removeprefix("ext4-")
        run(["mount", "-o", "loop," + options, image, path])
        self.cleanup.callback(run, ["umount", "-l", path])
        return System(name, path)

    def _set_up_tmpfs(self, name):
        return System(name, self._make_directory(name))


def _enter_mount_namespace():
    if (_libc.unshare(_CLONE_NEWNS) != 0 or
            _libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) != 0):
        raise command.Failure("no mount namespace: " + os.strerror(ctypes.get_errno()))


def stay_on_one_core():
    """The caller and all that it starts: who asks a mount and who answers share a core, for on
    two it depends on how fast one wakes the other."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


# ---- What the programs share ------------------------------------------------------------

def make_parser(program, text, quick, rounds):
    """`text`, `quick` and `rounds` as command.make_parser() takes them."""
    parser = command.make_parser(
        program, text, quick, rounds, "2.5 GiB",
        "Loop devices need root; without it ext4 and xfs are left out. " + LOOP_NOTE)
    parser.add_argument("--systems", type=command.some_of(NAMES), default=NAMES,
                        help="comma-separated: " + ", ".join(NAMES))
    parser.add_argument("--bin", type=command.path,
                        default=os.path.dirname(os.path.abspath(sys.argv[0])),
                        help="where the programs of pmfs are (default: beside this one)")
    return parser


def print_setup(options, rounds):
    command.print_setup(f"files on {options.dir}; {LOOP_NOTE}", rounds)
