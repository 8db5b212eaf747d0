#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Puts the stored results docs/bench/NAME.json into docs/BENCHMARKS.md, each between its lines
# <!-- begin NAME --> and <!-- end NAME -->, as rendered by the program bench-NAME.
#
#   bench/update-docs.sh [--check] [BIN_DIRECTORY]
#
# --check changes nothing and fails if the document shows something else.
set -euo pipefail
shopt -s nullglob
check=false
if [ "${1:-}" = --check ]; then
    check=true
    shift
fi
docs=$(cd "$(dirname "$0")/../docs" && pwd)
bin=${1:-$docs/../build/bin}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp "$docs/BENCHMARKS.md" "$work/document"
for json in "$docs"/bench/*.json; do
    name=$(basename "$json" .json)
    "$bin/bench-$name" --render "$json" >"$work/results"
    awk -v begin="<!-- begin $name -->" -v end="<!-- end $name -->" \
        -v results="$work/results" '
        $0 == end { inside = 0; found = 1 }
        !inside { print }
        $0 == begin {
            inside = 1
            while ((getline line < results) > 0)
                print line
        }
        END { exit !found }' "$work/document" >"$work/next" || {
        echo "docs/BENCHMARKS.md has no place for $name" >&2
        exit 1
    }
    mv "$work/next" "$work/document"
done

if $check; then
    diff -u "$docs/BENCHMARKS.md" "$work/document"
else
    cp "$work/document" "$docs/BENCHMARKS.md"
fi
