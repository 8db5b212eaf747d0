#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# tutorial_quotes.sh DOCS: every C snippet of the tutorial must stand, word for word, in the
# example that the comment before it names:
#
#     <!-- examples/counter/counter.c -->
#     ```c
set -euo pipefail
docs=$1

quotes=0 file='' snippet='' inside=0
while IFS= read -r line; do
    if [ $inside -eq 1 ] && [ "$line" = '```' ]; then
        text=$(<"$docs/$file")
        if [[ $text != *"$snippet"* ]]; then
            printf 'TUTORIAL.md: not in %s:\n%s' "$file" "$snippet" >&2
            exit 1
        fi
        quotes=$((quotes + 1)) inside=0 file=''
    elif [ $inside -eq 1 ]; then
        snippet+=$line$'\n'
    elif [[ $line =~ ^'<!-- '(.*)' -->'$ ]]; then
        file=${BASH_REMATCH[1]}
    elif [ "$line" = '```c' ]; then
        if [ -z "$file" ]; then
            echo "TUTORIAL.md: a snippet without its example" >&2
            exit 1
        fi
        inside=1 snippet=''
    fi
done <"$docs/TUTORIAL.md"
echo "$quotes snippets"
[ $quotes -gt 0 ]
