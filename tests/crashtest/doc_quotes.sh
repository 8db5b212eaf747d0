#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: doc_quotes.sh DOCS LOG JOURNAL
# The C snippets of CRASHTEST.md stand word for word in the example; what it shows of the bugs'
# reports is what LOG and JOURNAL, the examples with the bugs, print.
set -euo pipefail
docs=$1
log=$2
journal=$3

snippet='' inside=0 quotes=0
example=$(<"$docs/../crashtest/examples/log.c")
while IFS= read -r line; do
    if [ $inside -eq 1 ] && [ "$line" = '```' ]; then
        if [[ $example != *"$snippet"* ]]; then
            printf 'CRASHTEST.md: not in the example:\n%s' "$snippet" >&2
            exit 1
        fi
        quotes=$((quotes + 1)) inside=0
    elif [ $inside -eq 1 ]; then
        snippet+=$line$'\n'
    elif [ "$line" = '```c' ]; then
        inside=1 snippet=''
    fi
done <"$docs/CRASHTEST.md"
[ $quotes -gt 0 ]

while IFS= read -r line; do
    if ! grep -qF -- "$line" "$docs/CRASHTEST.md"; then
        printf 'CRASHTEST.md does not show:\n%s\n' "$line" >&2
        exit 1
    fi
done < <(
    { "$log" || true; } | grep -E '^(log.c|  (operation|crash|then|lost|arrived|hint) )'
    { "$journal" --failures 1 || true; } | grep -E '^(journal.c|  (operation|turns) |   .*thread )'
)
