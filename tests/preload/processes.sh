#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# processes.sh - one process has the pool: what others get is an error that says so, and
# nothing goes astray.
set -euo pipefail

on_pool() { LD_PRELOAD=$PRELOAD "$@"; }

# Prints what the command says, which must fail; asks for a text in it.
refused() { # TEXT COMMAND...
    local text=$1 said
    shift
    if said=$(on_pool "$@" 2>&1); then
        echo "not refused: $*: $said"
        exit 1
    fi
    grep -qF "$text" <<<"$said" || { echo "$*: $said"; exit 1; }
}

# A second process.
mkfifo "$WORK/ready" "$WORK/stop"
on_pool /usr/bin/python3 -I -c '
import sys
kept = open("/pmfs/kept", "w")
open(sys.argv[1], "w").close()
open(sys.argv[2]).close()
kept.write("kept")
' "$WORK/ready" "$WORK/stop" &
cat "$WORK/ready"
refused 'One process has a pool' ls /pmfs
refused 'Device or resource busy' ls /pmfs
: >"$WORK/stop"
wait $!
[ "$(on_pool cat /pmfs/kept)" = kept ]

# One that the kernel starts, with a descriptor that it does not know.
refused 'is lost' /usr/bin/python3 -I -c '
import subprocess
subprocess.run(["/bin/echo", "lost"], stdout=open("/pmfs/out", "w"), check=True)'
[ -z "$(on_pool cat /pmfs/out)" ]

# A child: refused, but may do with its descriptors what it likes; the parent goes on.
on_pool /usr/bin/python3 -I - 2>"$WORK/said" <<'PYTHON'
import ctypes, errno, os

def refused(function, *args):
    try:
        function(*args)
    except OSError as error:
        return error.errno == errno.ENOTCONN
    return False

fd = os.open("/pmfs/file", os.O_RDWR | os.O_CREAT)
os.write(fd, b"parent")
os.chdir("/pmfs")
for fork in os.fork, ctypes.CDLL(None)._Fork:
    pid = fork()
    if pid == 0:
        good = all([refused(os.stat, "/pmfs"), refused(os.write, fd, b"child"),
                    refused(os.pread, fd, 1, 0), refused(os.listdir, "."),
                    refused(os.stat, "file"), refused(os.fsync, fd)])
        os.dup2(2, fd)
        os.close(fd)
        os._exit(0 if good else 1)
    assert os.waitpid(pid, 0)[1] == 0
os.write(fd, b" goes on")
assert os.pread(fd, 100, 0) == b"parent goes on"
os.chdir("/")
PYTHON
grep -qF 'must not use it' "$WORK/said"
[ "$(wc -l <"$WORK/said")" = 2 ] # one of each child

# Programs in the pool; shared maps.
on_pool cp /bin/true /pmfs/true
refused 'cannot be run' /usr/bin/python3 -I -c '
import os
os.execv("/pmfs/true", ["true"])'
refused 'cannot be mapped shared' /usr/bin/python3 -I -c '
import mmap
file = open("/pmfs/true", "r+b")
mmap.mmap(file.fileno(), 0)'

# A program with its directory in the pool starts others nowhere, not somewhere else.
refused 'No such file or directory' sh -c 'cd /pmfs && /bin/ls true'

# What has nothing to do with the pool works as ever, and leaves it alone.
on_pool sh -c 'echo a | tr a b | grep -qx b'
on_pool env -u PMFS_PRELOAD true 2>/dev/null
! on_pool env PMFS_PRELOAD=/pmfs="$WORK/none" ls /pmfs 2>"$WORK/said"
grep -qF "cannot mount $WORK/none" "$WORK/said"

# Closing everything does not let go of the pool.
on_pool /usr/bin/python3 -I - <<'PYTHON'
import os
fd = os.open("/pmfs/file", os.O_RDWR)
os.closerange(3, 2000)
open("/pmfs/file", "a").write("!")
assert open("/pmfs/file").read() == "parent goes on!"
PYTHON

# A signal that comes while a call runs, and calls: no deadlock.
on_pool timeout 60 /usr/bin/python3 -I - <<'PYTHON'
import os, signal

count = 0

def handler(number, frame):
    global count
    count += 1
    os.stat("/pmfs/file")

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
while count < 100:
    with open("/pmfs/file", "r+b") as file:
        file.write(b"x" * 100000)
signal.setitimer(signal.ITIMER_REAL, 0)
PYTHON

# Starting programs while files are open: they run, and know nothing of the pool.
on_pool /usr/bin/python3 -I - 2>"$WORK/said" <<'PYTHON'
import errno, os, subprocess

def refused(error, function, *args, **keys):
    try:
        function(*args, **keys)
    except OSError as found:
        return found.errno == error
    return False

fd = os.open("/pmfs/file", os.O_RDWR)
assert os.system("true") == 0
assert os.popen("echo popen").read() == "popen\n"
assert subprocess.run(["echo", "run"], capture_output=True).stdout == b"run\n"
assert os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)[1] == 0
assert refused(errno.ENOENT, os.posix_spawn, "/pmfs/true", ["true"], {})
action = (os.POSIX_SPAWN_OPEN, 1, "/pmfs/file", os.O_WRONLY, 0)
assert refused(errno.ENOENT, os.posix_spawn, "/bin/true", ["true"], {}, file_actions=[action])
assert refused(errno.ENOTCONN, subprocess.run, ["true"], cwd="/pmfs")
assert os.pread(fd, 100, 0) != b""
PYTHON
