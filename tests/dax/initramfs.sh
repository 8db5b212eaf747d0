#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Packs what the guest boots: a kernel of Debian's in OUTPUT/vmlinuz, and in
# OUTPUT/initramfs busybox, the modules for persistent memory, and programs of BUILD.
# The kernel's package is downloaded once, to CACHE, and not installed. Exit status 77: it
# cannot be had.
set -euo pipefail
[ $# -eq 3 ] || { echo "Usage: initramfs.sh BUILD CACHE OUTPUT" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
build=$1 cache=$2 output=$3

modules=(nfit nd_pmem dax_pmem device_dax ext4 crc32c_generic fuse)
host_programs=(/sbin/mke2fs /usr/bin/ndctl)
programs=(bin/minl2r bin/pmfs bin/demo-writer)
. "$here/guest_tests"
for test in $guest_tests_dax $guest_tests_eadr $guest_tests_long; do
    programs+=("tests/$test")
done

kernel_package() {
    apt-cache depends linux-image-amd64 |
        sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1
}

skip() { # WHY
    echo "SKIPPED: $1" >&2
    exit 77
}

fetch_kernel() {
    local package
    package=$(kernel_package) || true
    [ -n "$package" ] || skip "apt knows no linux-image-amd64"
    mkdir -p "$cache"
    cd "$cache"
    [ -f "$package/done" ] && return
    rm -rf "$package"
    mkdir "$package"
    # Lists that are out of date name versions that are gone.
    (cd "$package" && { apt-get -qq download "$package" 2>/dev/null ||
        { apt-get -qq update && apt-get -qq download "$package"; }; }) ||
        skip "$package cannot be downloaded"
    dpkg-deb --fsys-tarfile "$package"/*.deb | tar -x -C "$package" --wildcards \
        './boot/vmlinuz*' './lib/modules/*/modules.*' \
        './lib/modules/*/kernel/'{crypto,fs,lib,drivers/{acpi,dax,nvdimm}}
    rm "$package"/*.deb
    depmod -b "$package" "$(ls "$package/lib/modules")"
    touch "$package/done"
}

copy_programs() {
    local files=("${host_programs[@]}" "${programs[@]/#/$build/}") library
    mkdir -p root/bin root/host root/tests
    cp "${host_programs[@]}" root/host/
    for file in "${programs[@]}"; do
        cp "$build/$file" "root/$file"
    done
    strip root/host/* root/bin/* root/tests/*
    ldd "${files[@]}" | sed -n 's/.*[[:space:]]\(\/[^ ]*\) (.*/\1/p' | sort -u |
        while read -r library; do
            mkdir -p "root/$(dirname "$library")"
            cp -L "$library" "root/$library"
        done
}

# A module after all that it needs, as modules.dep says, each once.
module_files() { # FOLDER
    local module
    for module in "${modules[@]}"; do
        awk -F'[: ]+' -v name="/$module.ko" \
            'substr($1, length($1) - length(name) + 1) == name {
                for (i = NF; i > 0; i--) if ($i != "") print $i }' "$1/modules.dep"
    done | awk '!seen[$0]++'
}

# Not compressed: the guest would take longer to unpack it.
pack() {
    local folder file
    folder=$(echo "$kernel"/lib/modules/*)
    mkdir -p root/dev root/modules root/proc root/sys root/tmp
    copy_programs
    cp /bin/busybox root/bin/busybox
    ln -s busybox root/bin/sh
    cp "$here/guest.sh" root/init
    cp "$here/guest_tests" root/guest_tests
    for file in $(module_files "$folder"); do
        cp "$folder/$file" root/modules/
        basename "$file"
    done >root/modules/order
    (cd root && find . | cpio --quiet -o -H newc) >initramfs
    cp "$kernel"/boot/vmlinuz-* vmlinuz
    rm -r root
}

build=$(realpath "$build") cache=$(realpath -m "$cache") output=$(realpath "$output")
fetch_kernel
kernel=$cache/$(kernel_package)
cd "$output"
pack
