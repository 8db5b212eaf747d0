#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: caller.sh PROGRAM SOURCE
# Each store of PROGRAM's report is libminl2r's, and is shown with the line of SOURCE that commits.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
line=$(grep -n 'return minl2r_tx_commit' "$2")
place=${2##*/}:${line%%:*}
status=0
"$1" --no-kill --json "$work/report.json" --html "$work/report.html" >"$work/report.txt" || status=$?
[ $status -eq 1 ]

stores=$(grep -cE '^  (lost|arrived) ' "$work/report.txt")
[ "$stores" -gt 0 ]
shown=$(grep -cE "^  (lost|arrived) .*\.c:[0-9]+ .*, in a call at .*$place \(set\): " "$work/report.txt")
[ "$shown" -eq "$stores" ]
grep -qF '"call_function": "set"' "$work/report.json"
grep -q "\"call\": \".*$place\"" "$work/report.json"
grep -q "<h2>The call at .*$place</h2>" "$work/report.html"
grep -q "in a call at .*$place (set)" "$work/report.html"
