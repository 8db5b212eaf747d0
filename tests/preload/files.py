# SPDX-License-Identifier: BSD-3-Clause
"""files.py DIRECTORY - makes it, and prints what it sees while it works in there."""
import concurrent.futures
import csv
import errno
import fcntl
import filecmp
import fnmatch
import glob
import hashlib
import io
import json
import mmap
import os
import pathlib
import pickle
import shutil
import sqlite3
import stat
import sys
import tarfile
import tempfile
import zipfile

root = pathlib.Path(sys.argv[1])


def show(what, value):
    print(f"{what}: {str(value).replace(str(root), 'ROOT')}")


def fails(what, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
        show(what, "done")
    except OSError as error:
        show(what, errno.errorcode.get(error.errno, error))


def text_and_bytes():
    file = root / "text"
    file.write_text("eins\nzwei\nδύο\n", encoding="utf-8")
    show("lines", file.read_text(encoding="utf-8").splitlines())
    with open(file, "r+b", buffering=0) as raw:
        raw.seek(5)
        raw.write(b"ZWEI")
        raw.seek(-3, io.SEEK_END)
        show("tail", raw.read())
        show("tell", raw.tell())
        raw.truncate(9)
    with open(file, "a+", encoding="utf-8") as both:
        both.write("!")
        both.seek(0)
        show("appended", both.read())
    fails("x", open, file, "x")
    fails("missing", open, root / "none")
    fails("directory", open, root)


def documents():
    with open(root / "a.json", "w", encoding="utf-8") as out:
        json.dump({"numbers": list(range(1000)), "name": "pmfs"}, out)
    with open(root / "a.json", encoding="utf-8") as source:
        show("json", sum(json.load(source)["numbers"]))
    with open(root / "a.csv", "w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([i, i * i] for i in range(100))
    with open(root / "a.csv", newline="", encoding="utf-8") as source:
        show("csv", sum(int(row[1]) for row in csv.reader(source)))
    with open(root / "a.pickle", "wb") as out:
        pickle.dump([b"x" * 100000, {"a": 1}], out)
    with open(root / "a.pickle", "rb") as source:
        show("pickle", len(pickle.load(source)[0]))
    (root / "random").write_bytes(hashlib.sha256(b"1").digest() * 10000)
    show("sha256", hashlib.sha256((root / "random").read_bytes()).hexdigest())


def trees():
    tree = root / "tree"
    (tree / "a" / "b").mkdir(parents=True)
    for i in range(50):
        (tree / "a" / f"file{i}").write_bytes(bytes([i]) * i * 100)
    (tree / "link").symlink_to("a/file7")
    os.link(tree / "a" / "file8", tree / "hard")
    os.chmod(tree / "a" / "file9", 0o640)
    os.utime(tree / "a" / "file9", ns=(1, 1_000_000_001))
    shutil.copytree(tree, root / "copy", symlinks=True)
    compared = filecmp.dircmp(tree, root / "copy")
    show("differs", compared.diff_files + compared.left_only + compared.right_only)
    show("walk", sorted(os.path.join(r, n) for r, d, f in os.walk(tree) for n in d + f))
    show("glob", sorted(glob.glob(str(tree / "**" / "file1*"), recursive=True)))
    show("rglob", len(list(tree.rglob("*"))))
    show("fnmatch", sorted(fnmatch.filter(os.listdir(tree / "a"), "*4")))
    with os.scandir(tree) as entries:
        show("scandir", sorted((e.name, e.is_dir(), e.is_symlink()) for e in entries))
    found = os.stat(root / "copy" / "a" / "file9")
    show("stat", (stat.filemode(found.st_mode), found.st_mtime_ns, found.st_size))
    show("lstat", stat.filemode(os.lstat(tree / "link").st_mode))
    show("samefile", os.path.samefile(tree / "hard", tree / "a" / "file8"))
    show("nlink", os.stat(tree / "hard").st_nlink)
    shutil.move(tree, root / "moved")
    fails("not empty", os.rmdir, root / "moved")
    shutil.rmtree(root / "moved")
    show("exists", (root / "moved").exists())


def archives():
    shutil.make_archive(str(root / "archive"), "gztar", root / "copy")
    with tarfile.open(root / "archive.tar.gz") as archive:
        show("tar", len(archive.getnames()))
        archive.extractall(root / "unpacked")
    show("unpacked", len(os.listdir(root / "unpacked" / "a")))
    with zipfile.ZipFile(root / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(root / "random", "random")
    with zipfile.ZipFile(root / "a.zip") as archive:
        show("zip", (archive.testzip(), archive.getinfo("random").file_size))
    shutil.rmtree(root / "unpacked")


def descriptors():
    fd = os.open(root / "fd", os.O_RDWR | os.O_CREAT, 0o600)
    show("pwritev", os.pwritev(fd, [b"one", b"two"], 4))
    show("preadv", os.preadv(fd, [bytearray(5), bytearray(10)], 0))
    second = os.dup(fd)
    os.lseek(fd, 2, os.SEEK_SET)
    show("shared position", os.lseek(second, 0, os.SEEK_CUR))
    fcntl.flock(fd, fcntl.LOCK_EX)
    fcntl.lockf(second, fcntl.LOCK_EX)
    with open(root / "sent", "wb", buffering=0) as out:
        show("sendfile", os.sendfile(out.fileno(), fd, 3, 5))
    show("sent", (root / "sent").read_bytes())
    os.fsync(fd)
    os.posix_fallocate(fd, 0, 100)
    show("size", os.fstat(fd).st_size)
    with mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE) as memory:
        show("mmap", memory[:12])
    os.close(fd)
    os.close(second)
    fails("closed", os.fstat, fd)
    directory = os.open(root, os.O_RDONLY)
    with open("relative", "w", opener=lambda p, f: os.open(p, f, dir_fd=directory),
              encoding="utf-8") as out:
        out.write("by dir_fd")
    show("dir_fd", os.stat("relative", dir_fd=directory).st_size)
    os.rename("relative", "renamed", src_dir_fd=directory, dst_dir_fd=directory)
    show("listdir", "renamed" in os.listdir(directory))
    os.close(directory)


def current_directory():
    os.chdir(root)
    show("cwd", os.getcwd())
    os.makedirs("x/y")
    os.chdir("x/y")
    show("cwd", os.getcwd())
    show("relpath", os.path.relpath(root / "a.json"))
    show("realpath", os.path.realpath("../../copy/link"))
    os.chdir("../../..")
    show("outside", os.path.exists(root.name))
    os.chdir("/")


def temporary():
    with tempfile.TemporaryDirectory(dir=root) as name:
        with tempfile.NamedTemporaryFile("w+", dir=name, encoding="utf-8") as file:
            file.write("temporary")
            file.flush()
            show("temporary", os.stat(file.name).st_size)
        with tempfile.TemporaryFile(dir=name) as file:
            file.write(b"no name")
            file.seek(0)
            show("nameless", file.read())
        show("left", os.listdir(name))
    show("left", os.path.exists(name))


def database():
    with sqlite3.connect(root / "a.db") as connection:
        connection.execute("create table t(a, b)")
        rows = ((i, i * i) for i in range(999))
        connection.executemany("insert into t values(?, ?)", rows)
    show("rows", connection.execute("select count(*), sum(b) from t").fetchone())
    show("check", connection.execute("pragma integrity_check").fetchone())
    connection.close()


def threads():
    def work(number):
        name = root / f"thread{number}"
        for i in range(50):
            with open(name, "ab") as out:
                out.write(bytes([number]) * 1000)
            with open(root / "common", "ab", buffering=0) as out:
                out.write(b"x" * 10)
        return name.stat().st_size

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        show("threads", sum(pool.map(work, range(8))))
    show("common", (root / "common").stat().st_size)


def attributes():
    fails("setxattr", os.setxattr, root / "random", "trusted.colour", b"blue")
    fails("getxattr", os.getxattr, root / "random", "trusted.colour")
    fails("no such", os.getxattr, root / "random", "trusted.none")


root.mkdir()
for part in (text_and_bytes, documents, trees, archives, descriptors, current_directory,
             temporary, database, threads, attributes):
    part()
show("root", sorted(os.listdir(root)))
shutil.rmtree(root)
