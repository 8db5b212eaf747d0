#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# man_quotes.sh PAGE PROGRAM: the example of the manual page is the program that is built and run.
set -euo pipefail
page=$1 program=$2

shown=$(sed -n '/^\.Sh EXAMPLES/,$p' "$page" |
    sed -n '/^\.Bd/,/^\.Ed/p' | sed '/^\.[BE]d/d; s/\\e/\\/g')
diff <(sed -n '/^#include/,$p' "$program") - <<<"$shown" || {
    echo "$page: not what $program has" >&2
    exit 1
}
