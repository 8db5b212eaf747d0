#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# tools.sh - common programs on files of tmpfs and of the pool: what they print and how
# they end must be the same. Those that are not installed are left out. Each line of the
# table is one command; @ is the directory.
set -euo pipefail
export LC_ALL=C.UTF-8 TZ=UTC

table() {
    cat <<'TABLE'
rev @/in
wc @/in
wc -m @/in
sort -r -o @/sorted @/in
sort -S 1 -T @ @/in
tac @/in
shuf -n 5 --random-source=@/in -i 1-5
cut -c1-3 @/in
head -c 5 @/in
head -n -1 @/in
tail -c 5 @/in
tail -n 2 @/in
split -b 10 @/in @/sp.
split -n 3 @/in @/sn.
csplit -s -f @/cs @/in /char/
cat @/sp.aa @/sn.ac @/cs01
nl @/in
od -c @/in
fold -w 4 @/in
column -t @/in
paste @/in @/sorted
join @/sorted @/sorted
comm @/sorted @/sorted
cksum @/in
find @ -name s?.aa -size -2 -newer @/in
find @/in -printf %f.%s.%m.%TY\n
find @ -name sn.* -delete
ls @
sed -i.bak s/alpha/ALPHA/ @/in
sed -n -e s/b/B/w@/written @/in
cat @/in @/in.bak @/written
grep -n al @/in @/in.bak
grep -rc none @/in
diff @/in @/in.bak
cmp @/in @/in.bak
awk {print$1>"@/words"} @/in
cat @/words
gzip -kn @/in
gzip -dc @/in.gz
gzip -d @/in.gz
xz -k @/in
xz -dfk @/in.xz
tar -C @ -cf @/tar in sorted
tar -C @ -rf @/tar words
tar -C @ --delete -f @/tar in
tar -tf @/tar
perl -i.orig -pe s/a/A/g @/in
perl -CSD -ne print(length($_),ord) @/in.orig
install -m 640 @/in @/installed
install -d @/a/b/c
install -D @/in @/a/d/e
stat -c %A.%s.%h.%F @/in @/installed @/a/d/e
truncate -s 100K @/holes
truncate -s +5 @/holes
cp --sparse=always @/holes @/copied
stat -c %s @/holes @/copied
dd if=@/in of=@/dd bs=7 conv=sync status=none
dd if=@/in of=@/dd bs=7 conv=ucase,notrunc seek=1 status=none
dd if=@/in of=@/dd oflag=append conv=notrunc status=none
dd if=@/in of=@/dd conv=excl status=none
cksum @/dd
ln -s in @/link
ln @/in @/hard
ln -sr @/a/b @/relative
ln -sfT in @/a
readlink @/link @/relative
readlink -f @/relative/c
realpath --relative-to=@/a @/in
touch -d 2001-02-03T04:05:06 @/in
touch -r @/in @/dd
touch -c @/none
touch -h -d 1999-01-01 @/link
stat -c %y @/in @/dd @/link
date -r @/in -u
mv -b @/dd @/words
mv @/a @/a/b
mv @/words @/none/words
cp -r @/a @/again
cp --reflink=auto @/in @/again
cp --reflink=always @/in @/clone
cp @/in @/in
cp --backup=t @/sorted @/hard
chmod -R go= @/again
chmod 7777 @/sorted
chown 1:2 @/sorted
stat -c %A.%u.%g @/sorted @/again/d
getfacl -cp @/sorted
setfacl -m u:1001:r @/sorted
getfacl -cp @/sorted
rmdir @/a
rmdir -p @/a/b/c
rm @/a
rm @/none
mkdir @/in/x
mkfifo @/fifo
mkdir -m 1700 @/sticky
stat -c %a.%F @/fifo @/sticky
rm -r @/a @/again
sync @/in
mktemp @/noX
ls @
TABLE
}

on_pool() { LD_PRELOAD=$PRELOAD "$@"; }

# Runs the table, each line with what comes after the directory in front.
run() { # DIRECTORY [PREFIX ...]
    local dir=$1 line words
    shift
    "$@" mkdir "$dir"
    "$@" cp "$WORK/in" "$dir/in"
    "$@" touch -d 2020-01-02T03:04:05.678 "$dir/in"
    while IFS= read -r line; do
        read -ra words <<<"${line//@/$dir}"
        type -P "${words[0]}" >/dev/null || continue
        printf '$ %s\n' "$line"
        "$@" "${words[@]}" </dev/null 2>&1 || echo "status $?"
        echo
    done < <(table) | sed "s|$dir|DIR|g"
}

printf 'delta 4\nalpha 1\ncharlie 3\nbravo 2\nw\303\266rld \303\251\n' >"$WORK/in"
run "$WORK/tmpfs" >"$WORK/expected"
run /pmfs/tools on_pool >"$WORK/found"
diff "$WORK/expected" "$WORK/found"
[ "$(grep -c '^\$' "$WORK/found")" -gt 60 ]
