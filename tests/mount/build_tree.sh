# SPDX-License-Identifier: BSD-3-Clause
# build_tree.sh SOURCES - by with_mount.sh: what a programmer does, on tmpfs and on the
# mount: unpack a source tree, put it into git, configure and compile it, run what came out,
# pack it up. Both must come out the same, so both are done under one name: first where
# nothing is mounted, which is tmpfs.
sources=$1

export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null HOME=$WORK
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_AUTHOR_DATE='2001-02-03T04:05:06Z'
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
unset CMAKE_C_COMPILER_LAUNCHER

programs=(-DMINL2R_PMFS=OFF -DMINL2R_CRASHTEST=OFF -DMINL2R_BENCH=OFF)
if [ "${MINL2R_TEST_LONG:-OFF}" = ON ]; then programs=(); fi

work() {
    mkdir "$MOUNT/tree"
    tar -C "$MOUNT/tree" -xf "$WORK/sources.tar"
    cd "$MOUNT/tree"

    git init -q
    git add .
    git commit -q -m all
    [ -z "$(git status --porcelain)" ]
    echo "# changed" >>CMakeLists.txt
    [ "$(git status --porcelain)" = " M CMakeLists.txt" ]
    git stash -q
    git -c pack.threads=1 gc -q --prune=now # threads race for what is packed how
    git stash pop -q
    git fsck --strict

    cmake -S . -B out -G Ninja -DCMAKE_BUILD_TYPE=Debug "${programs[@]}" \
        -DMINL2R_TESTS=OFF
    cmake --build out
    # No time of a file has gone wrong.
    cmake --build out | tee again
    grep -q 'no work to do' again
    out/bin/minl2r create --size 8M "$WORK/pool"
    rm "$WORK/pool"

    # Sorted and without what differs by nature: times, and files that tell of them.
    tar -cf ../tree.tar --sort=name --mtime=@0 --exclude=.git/index --exclude=.git/logs \
        --exclude=.git/ORIG_HEAD --exclude='.ninja_*' --exclude='CMake*.log' --exclude=again .
    tar -df ../tree.tar
    cd "$WORK"
}

tar -C "$sources" -cf "$WORK/sources.tar" --exclude=./.git --exclude='./build*' .
"$PMFS_TOOL" umount "$MOUNT"
work >"$WORK/said" 2>&1 || { tail -n 50 "$WORK/said"; exit 1; }
mkdir "$WORK/tmpfs"
mv "$MOUNT/tree" "$MOUNT/tree.tar" "$WORK/tmpfs"
mount_filesystem
work >"$WORK/said" 2>&1 || { tail -n 50 "$WORK/said"; exit 1; }
diff -r --no-dereference "$WORK/tmpfs/tree/libminl2r" "$MOUNT/tree/libminl2r"
diff <(git -C "$WORK/tmpfs/tree" rev-parse HEAD) <(git -C "$MOUNT/tree" rev-parse HEAD)
if ! cmp "$WORK/tmpfs/tree.tar" "$MOUNT/tree.tar"; then
    diff <(tar -tvf "$WORK/tmpfs/tree.tar") <(tar -tvf "$MOUNT/tree.tar") | head -n 20
    exit 1
fi
echo "$(tar -tf "$MOUNT/tree.tar" | wc -l) files are the same"
rm -r "$MOUNT/tree" "$MOUNT/tree.tar"
