#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# copy_and_tar.sh TREE - a tree with one of everything goes into the pool by cp -a, out
# of it and in again by tar, and out by cp -a: it must come out as it went in.
set -euo pipefail
tree=$1

on_pool() { LD_PRELOAD=$PRELOAD "$@"; }

# What diff does not compare: types, modes, owners, sizes, times, links and targets.
list() { # DIRECTORY
    (cd "$1" && find . -printf '%P %y %m %U %G %n %s %T@ %l\n' | sed '/^ d/d' |
        awk '$2 == "d" { $7 = 0 } { print }' | sort)
}

original=$WORK/original
mkdir "$original"
cp -a "$tree" "$original/tree"
ln -s ../none "$original/dangling"
ln -s "$(printf 'x%.0s' {1..4000})" "$original/long-link"
ln "$(find "$original/tree" -type f | head -n 1)" "$original/hard-link"
mkfifo -m 600 "$original/fifo"
mkdir -m 2775 "$original/setgid" "$original/empty"
: >"$original/$(printf 'n%.0s' {1..255})"
head -c 3000000 /dev/urandom >"$original/large"
truncate -s 8M "$original/sparse"
printf end >>"$original/sparse"
install -m 4711 /dev/null "$original/setuid"
touch -h -d '2001-02-03 04:05:06.789' "$original/dangling" "$original/empty"
python() { /usr/bin/python3 -I -c "$@"; }
python 'import os, sys
os.setxattr(sys.argv[1], "trusted.name", b"value")' "$original/large" \
    2>"$WORK/no-xattr" || true

on_pool cp -a "$original" /pmfs/copy
on_pool diff -r --no-dereference "$original/tree" /pmfs/copy/tree
on_pool tar -C /pmfs/copy --xattrs --xattrs-include='*' -cf "$WORK/out.tar" .
on_pool mkdir /pmfs/again
on_pool tar -C /pmfs/again --xattrs --xattrs-include='*' -xpf "$WORK/out.tar"
on_pool tar -C /pmfs/again -cf /pmfs/inside.tar .
on_pool tar -C /pmfs/again -df /pmfs/inside.tar
on_pool cp -a /pmfs/again "$WORK/back"

diff -r --no-dereference -x fifo "$original" "$WORK/back"
diff <(list "$original") <(list "$WORK/back")
if [ ! -s "$WORK/no-xattr" ]; then
    python 'import os, sys
assert os.getxattr(sys.argv[1], "trusted.name") == b"value"' "$WORK/back/large"
fi
on_pool rm -r /pmfs/copy /pmfs/again /pmfs/inside.tar
[ -z "$(on_pool find /pmfs -mindepth 1)" ]
