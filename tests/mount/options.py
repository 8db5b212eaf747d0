# SPDX-License-Identifier: BSD-3-Clause
"""options.py PMFS SOURCES PAGE - every option that the command `pmfs` takes is in the --help
of its subcommand, and in that part of pmfs(1); so is every one of `mount -o`."""
import pathlib
import re
import subprocess
import sys

TOOL, SOURCES, PAGE = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
FILES = {"mkfs": "cmd_mkfs.c", "mount": "cmd_mount.c", "umount": "cmd_umount.c",
         "fsck": "cmd_fsck.c", "dump": "cmd_dump.c", "df": "cmd_status.c",
         "stat": "cmd_status.c", "stats": "cmd_status.c"}


def options_of(source):
    """As getopt_long() is told."""
    [short] = re.findall(r'getopt_long\(argc, argv, "([^"]*)"', source)
    long = re.findall(r'{"([a-z-]+)", (?:no|required)_argument', source)
    assert "help" in long
    return ["-" + letter for letter in short.replace(":", "")] + ["--" + name for name in long]


def mount_options_of(source):
    body = source[source.index("static bool is_listed"):source.index("/* 0, or the exit")]
    lists = re.findall(r"for_(?:kernel|fstab)\[\] = {(.*?)NULL}", body, re.S)
    names = re.findall(r'"([a-z_]+)"', "".join(lists))
    names += re.findall(r'strn?cmp\((?:option|name), "([a-z_]+=?)"', body)
    assert len(lists) == 2 and {"direct_io", "require=", "x-"} <= {*names, "x-"}
    return sorted(set(names))


def is_named(option, text):
    end = "" if option.endswith("=") else r"(?![\w-])"
    return re.search(r"(?<![\w-])" + re.escape(option) + end, text)


def part_of_page(command):
    page = PAGE.read_text().replace("\\-", "-")
    names = ["df", "stat", "stats"] if command in ("df", "stat", "stats") else [command]
    parts = [re.search(rf"^\.SS {name}\n(.*?)^\.S[SH] ", page, re.S | re.M)[1] for name in names]
    return "\n".join(parts)


missing = []
for command, file in FILES.items():
    source = (SOURCES / file).read_text()
    text = subprocess.run([TOOL, command, "--help"], capture_output=True, text=True,
                          check=True).stdout
    options = options_of(source) + (mount_options_of(source) if command == "mount" else [])
    for where, words in ("--help", text), ("pmfs(1)", part_of_page(command)):
        missing += [f"{command}: {option} is not in {where}" for option in options
                    if not is_named(option, words)
                    and (option, where) != ("--help", "pmfs(1)")]

# What mount(8) passes is for itself to know, but is said.
source = (SOURCES / "cmd_mount.c").read_text()
[short] = re.findall(r'getopt\(argc, argv, "([^"]*)"', source)
text = subprocess.run(["mount.pmfs", "--help"], executable=TOOL, capture_output=True,
                      text=True, check=True).stdout
missing += [f"mount.pmfs: -{letter} is not in --help" for letter in short.replace(":", "")
            if not re.search(rf"-[a-zA-Z]*{letter}", text)]
print("\n".join(missing))
sys.exit(bool(missing))
