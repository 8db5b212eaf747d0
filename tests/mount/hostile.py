#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hostile.py PMFS FUZZ_TARGET CORPUS STEP - mounts each STEPth of the damaged pools that
the fuzzer's inputs make, and uses all that is there: a mount is refused or serves to the
end, and answers in time. That what it says makes sense is not asked for."""
import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

tool, target, corpus = sys.argv[1:4]
step = int(sys.argv[4])
HANG_S = 120
FILES_MAX = 200

if os.geteuid() != 0 or not os.access("/dev/fuse", os.W_OK):
    print("skipped: mounting is not possible here")
    sys.exit(77)


def attempt(call, *arguments):
    """Any answer will do, but that there is nobody who gives one."""
    try:
        return call(*arguments)
    except OSError as error:
        if error.errno in (errno.ENOTCONN, errno.ECONNABORTED):
            raise
        return None
    except ValueError:  # a name that is no string of C
        return None


def read_and_write(path):
    fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        size = os.fstat(fd).st_size
        for offset in (0, max(0, size - 100)):
            attempt(os.pread, fd, 100000, offset)
        hole = attempt(os.lseek, fd, 0, os.SEEK_HOLE)
        attempt(os.lseek, fd, hole or 0, os.SEEK_DATA)
        attempt(os.pwrite, fd, b"x" * 5000, 3000)
        attempt(os.posix_fallocate, fd, 6000, 20000)
        attempt(os.copy_file_range, fd, fd, 5000, 0, 1 << 30)
        attempt(os.ftruncate, fd, 5000)
    finally:
        os.close(fd)


def use(path, status):
    for name in attempt(lambda: os.listxattr(path, follow_symlinks=False)) or []:
        attempt(lambda: os.getxattr(path, name, follow_symlinks=False))
    attempt(lambda: os.setxattr(path, "user.new", b"x" * 5000, follow_symlinks=False))
    attempt(os.readlink, path)
    if stat.S_ISREG(status.st_mode):
        attempt(read_and_write, path)
    attempt(os.chmod, path, 0o700)
    attempt(os.link, path, path + " linked")
    attempt(os.rename, path, path + " moved")
    attempt(os.rename, path + " moved", path)


def walk(top):
    """All that is found from there, but not for ever."""
    found = [top]
    for path in found:
        for name in attempt(os.listdir, path) or []:
            if len(found) < FILES_MAX:
                found.append(os.path.join(path, name))
    return found[1:]


def use_all(mount):
    found = walk(mount)
    for path in found:
        status = attempt(os.lstat, path)
        if status:
            use(path, status)
            attempt(os.mkdir, os.path.join(path, "made"))
            attempt(lambda: os.close(os.open(path + " made", os.O_CREAT | os.O_EXCL)))
    os.statvfs(mount)
    for path in reversed(found):
        attempt(os.unlink, path)
        attempt(os.rmdir, path)


def run(*command):
    return subprocess.run([tool, *command], capture_output=True, timeout=HANG_S)


def try_image(image, mount):
    """Was it mounted?"""
    said = run("mount", image, mount)
    if said.returncode != 0:
        assert said.returncode == 32 and said.stderr, said
        return False
    try:
        use_all(mount)
    finally:
        said = run("umount", mount)
    assert said.returncode == 0, said
    assert run("fsck", image).returncode in (0, 4, 8)
    return True


def on_alarm(*_):
    raise TimeoutError("it hangs")


folder = tempfile.mkdtemp(prefix="pmfs-test-", dir="/dev/shm")
mount, images = os.path.join(folder, "mount"), os.path.join(folder, "images")
signal.signal(signal.SIGALRM, on_alarm)
try:
    os.mkdir(mount)
    os.mkdir(images)
    subprocess.run([target, corpus], check=True, stderr=subprocess.DEVNULL,
                   env=dict(os.environ, FUZZ_SAVE=images))
    names = sorted(os.listdir(images), key=int)[::step]
    mounted = 0
    for name in names:
        signal.alarm(HANG_S)
        print("image", name, flush=True)
        mounted += try_image(os.path.join(images, name), mount)
        signal.alarm(0)
    print(f"{mounted} of {len(names)} were mounted")
    assert mounted > 0
finally:
    subprocess.run([tool, "umount", "--lazy", mount], stderr=subprocess.DEVNULL)
    shutil.rmtree(folder)
