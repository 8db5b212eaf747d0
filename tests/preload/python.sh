#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# python.sh - a script that uses what Python has for files, twice: on tmpfs and on the
# pool. It must print the same.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

/usr/bin/python3 -I "$here/files.py" "$WORK/python" >"$WORK/expected"
LD_PRELOAD=$PRELOAD /usr/bin/python3 -I "$here/files.py" /pmfs/python >"$WORK/found"
diff "$WORK/expected" "$WORK/found"
[ "$(wc -l <"$WORK/found")" -gt 20 ]
