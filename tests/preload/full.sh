#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# full.sh - a pool without room: calls say ENOSPC, and streams what they say on /dev/full.
# What was there stays, and once there is room all goes on.
set -euo pipefail

cat >"$WORK/streams.py" <<'PYTHON'
import ctypes, sys

libc = ctypes.CDLL(None, use_errno=True)
libc.fopen.restype = ctypes.c_void_p

def stream():
    return ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))

text = b"y" * 3000
s = stream()
print(libc.fwrite(text, 1, 3000, s), libc.fflush(s), libc.ferror(s), libc.fclose(s))
s = stream()
print(libc.fputs(text, s), libc.fclose(s))
s = stream()
print(libc.fwrite(text * 30, 1, 90000, s), libc.ferror(s), libc.fclose(s))
s = stream()
print(libc.fprintf(s, text), libc.fclose(s))
s = stream()
libc.setvbuf(s, None, 2, 0) # _IONBF
print(libc.fputc(97, s), libc.fprintf(s, b"%d", 3), libc.fclose(s))
PYTHON

cat >"$WORK/fill.py" <<'PYTHON'
import errno, os

def full(function, *args):
    try:
        function(*args)
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
        return
    raise AssertionError(function)

def fill(fd):
    size = 1 << 20
    while size:
        try:
            os.write(fd, b"x" * size)
        except OSError as error:
            assert error.errno == errno.ENOSPC
            size //= 8

os.mkdir("/pmfs/names")
old = os.open("/pmfs/old", os.O_RDWR | os.O_CREAT)
os.write(old, b"o" * 100000)
open("/pmfs/stream", "w").close()
big = os.open("/pmfs/big", os.O_RDWR | os.O_CREAT)
fill(big)

def make_names():
    for i in range(100000):
        os.close(os.open("/pmfs/names/%0200d" % i, os.O_CREAT | os.O_WRONLY))

full(make_names)
end = os.fstat(big).st_size
full(os.write, big, b"x")
full(os.mkdir, "/pmfs/names/" + "d" * 250)
full(os.symlink, "x" * 300, "/pmfs/symlink")
full(os.rename, "/pmfs/old", "/pmfs/names/" + "r" * 250)
full(os.link, "/pmfs/old", "/pmfs/names/" + "l" * 250)
full(os.posix_fallocate, big, 0, end + (1 << 20))
full(os.pwrite, big, b"x", end + (1 << 20))
full(os.copy_file_range, old, big, 50000, 0, end)
assert os.fstat(big).st_size == end
assert os.pwrite(old, b"n" * 100000, 0) == 100000
assert os.pread(old, 200000, 0) == b"n" * 100000
PYTHON

on_pool() { LD_PRELOAD=$PRELOAD "$@"; }

on_pool /usr/bin/python3 -I "$WORK/fill.py"
/usr/bin/python3 -I "$WORK/streams.py" /dev/full >"$WORK/expected"
on_pool /usr/bin/python3 -I "$WORK/streams.py" /pmfs/stream >"$WORK/found"
diff "$WORK/expected" "$WORK/found"
! on_pool dd if=/dev/zero of=/pmfs/stream bs=1M count=1 2>"$WORK/said"
grep -qF 'No space left on device' "$WORK/said"
on_pool rm /pmfs/big
on_pool mkdir "/pmfs/names/$(printf 'd%.0s' {1..250})"
on_pool dd if=/dev/zero of=/pmfs/stream bs=1M count=1 status=none

# A pool that may not be written: nothing of it is there, and a line says why.
chmod 444 "$POOL"
if [ "$(id -u)" != 0 ]; then
    ! on_pool ls /pmfs 2>"$WORK/said"
    grep -qF 'Permission denied' "$WORK/said"
fi
chmod 644 "$POOL"
