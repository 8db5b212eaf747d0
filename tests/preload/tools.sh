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
find @ -name sp.aa -size -2 -newer @/in
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
zip -qj @/z.zip @/in
unzip -tq @/z.zip
unzip -qo @/z.zip -d @/un
cat @/un/in
ed -s @/in
ex -s -c %s/alpha/OMEGA/|wq @/in
vim -es -u NONE -c %s/bravo/BRAVO/ -c wq! @/in
cat @/in
xxd @/in @/in.xxd
xxd -r @/in.xxd @/in.back
cmp @/in @/in.back
ar rcD @/lib.a @/in
ar t @/lib.a
ar dD @/lib.a in
bzip2 -kf @/in
bzip2 -df @/in.bz2
zstd -q @/in
zstd -qd @/in.zst -o @/in.zstd
lz4 -q @/in @/in.lz4
openssl dgst -sha256 @/in
iconv -f UTF-8 -t UTF-16 -o @/in.u16 @/in
sha256sum @/in @/in.u16
fallocate -l 100K @/fa
fallocate -p -o 0 -l 64K @/fa
fallocate -d @/fa
stat -c %s @/fa
shred -n 1 -zu @/in.xxd
mke2fs -q -t ext4 -F @/img 4M
e2fsck -fn @/img
debugfs -w -R mkdir/x @/img
uniq @/in @/uniq
tee @/teed
dd if=/dev/zero of=@/dz bs=4096 count=10 status=none oflag=direct,dsync
dd if=@/dz of=@/dz2 bs=512 iflag=direct,fullblock conv=sparse,fsync status=none
dd if=@/in of=@/dz3 bs=512 conv=nocreat,fdatasync status=none
dd if=@/in of=@/dz3 conv=swab,noerror status=none
dd if=@/in of=@/dz3 bs=5 skip=1 iflag=count_bytes,skip_bytes count=7 status=none
dd if=@/in of=@/dz3 oflag=nofollow,noatime,sync,nonblock,noctty status=none
dd if=@/in of=/dev/stdout status=none
dd if=@ of=@/dz3 iflag=directory status=none
dd if=@/in of=@/dz4 cbs=10 conv=block status=none
cksum @/dz @/dz2 @/dz3 @/dz4
cp -a @/un @/un2
cp --preserve=all @/in @/in.all
cp -l @/in @/in.l
cp -u @/in @/in.all
cp -n @/in @/in.all
cp --remove-destination @/in @/in.all
cp -t @/un @/in @/z.zip
cp -rT @/un @/un5
cp /dev/null @/in.null
mv -n @/in @/in.all
mv -v @/in.all @/in.all2
mv -u @/in.all2 @/in.l
mv -T @/un @/un2
mv @/un @/un/x
mv -t @/un5 @/in.l @/dz
ln @/un @/hard
ln -L @/link @/hl
install -C @/in @/inst
tar -C @ -cf @/t.tar --sparse dz2 in un2
tar -C @/un5 -xpf @/t.tar
tar -C @ -df @/t.tar
tar -C @ -cf @/t3.tar --remove-files un5
mkdir -m 2750 @/sg
touch @/sg/f
chmod -R u+X,g-w @/sg
chmod --reference=@/in @/sg/f
chgrp 7 @/sg/f
stat -c %A.%u.%g.%h.%s @/sg/f @/in
unlink @/teed
link @/in @/teed
rm -v @/teed
rm @/sg
rm -d @/sg
find @/un2 -type f -size +0 -newermt 2000-01-01
find @ -maxdepth 1 -name dz? -type f -perm 644 -links 1 -delete
diff -r @/un2 @/sg
sqlite3 @/db .tables
ls @
TABLE
}

on_pool() { LD_PRELOAD=$PRELOAD "$@"; }

# What there is in the end; of what has times or numbers of its own in it not the bytes.
tree() { # DIRECTORY [PREFIX ...]
    local dir=$1 files
    shift
    "$@" find "$dir" -type d -printf '%p %M %n %U %G\n' -o -printf '%p %M %n %U %G %s %l\n' | sort
    mapfile -t files < <("$@" find "$dir" -type f ! -name '*.zip' ! -name '*tar' \
        ! -name img | sort)
    "$@" cksum "${files[@]}"
}

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
    tree "$dir" "$@" | sed "s|$dir|DIR|g"
}

printf 'delta 4\nalpha 1\ncharlie 3\nbravo 2\nw\303\266rld \303\251\n' >"$WORK/in"
run "$WORK/tmpfs" >"$WORK/expected"
run /pmfs/tools on_pool >"$WORK/found"
diff "$WORK/expected" "$WORK/found"
[ "$(grep -c '^\$' "$WORK/found")" -gt 100 ]
