#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# tutorial_commands.sh SOURCE PREFIX: types the tutorial's commands, in one shell and in their
# order, and compares what they print.
#
# The commands are those of the blocks `sh` and `console`; $HOME/minl2r is PREFIX, and /tmp and
# /dev/shm are directories of this test. A line of "..." matches any lines. The comment before
# a block may say otherwise:
#
#     <!-- varies -->               the commands must succeed; their output is not compared
#     <!-- run by another test -->  not run here
set -euo pipefail
source=$1 prefix=$2

if [ ! -w /dev/shm ]; then
    echo "skipped: no emulated pools without /dev/shm"
    exit 77
fi
dir=$(mktemp -d /dev/shm/minl2r-tutorial-XXXXXX)
trap 'kill -9 $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT
mkdir "$dir/tmp" "$dir/shm" "$dir/home"
ln -s "$prefix" "$dir/home/minl2r"
export HOME=$dir/home
cd "$source"

fail() { # WHAT COMMAND [WANTED]
    printf 'TUTORIAL.md: %s: %s\n--- printed\n%s\n' "$1" "$2" "$(<"$dir/out")" >&2
    [ $# -lt 3 ] || printf -- '--- not\n%s' "$3" >&2
    exit 1
}

# In this shell: what a command exports, where it goes to and its $! stay for the next one.
type_command() { # COMMAND
    ran=$((ran + 1))
    eval "$1" >"$dir/out" </dev/null || fail "exit status $?" "$1"
}

compare() { # COMMAND WANTED
    local got line pattern=''
    while IFS= read -r line; do
        if [ "$line" = ... ]; then
            pattern+='*'
        else
            pattern+=$(sed 's/[][\\*?()]/\\&/g' <<<"$line")$'\n'
        fi
    done < <(printf %s "$2")
    got=$(<"$dir/out")
    # shellcheck disable=SC2053
    [[ ${got:+$got$'\n'} == $pattern ]] || fail "other output" "$1" "$2"
}

# A block of `sh` is a console without what is printed.
as_console() {
    sed -e ':join' -e '/\\$/{N;bjoin' -e '}' -e 's/\\\n *//g' -e 's/^/$ /'
}

run_console() { # MODE, the block on stdin
    local line command='' wanted=''
    while IFS= read -r line || [ -n "$command" ]; do
        if [[ -n $line && $line != '$ '* ]]; then
            wanted+=$line$'\n'
            continue
        fi
        if [ -n "$command" ]; then
            type_command "$command"
            [ "$1" = varies ] || compare "$command" "$wanted"
        fi
        command=${line#'$ '} wanted=''
    done
}

ran=0 kind='' mode='' block=''
while IFS= read -r line; do
    if [ -n "$kind" ] && [ "$line" = '```' ]; then
        case $mode:$kind in
        'run by another test':*) ;;
        *:sh) run_console varies < <(printf %s "$block" | as_console) ;;
        *:console) run_console "$mode" < <(printf %s "$block") ;;
        esac
        kind='' mode='' block=''
    elif [ -n "$kind" ]; then
        block+=$line$'\n'
    elif [[ $line =~ ^'```'(sh|console)$ ]]; then
        kind=${BASH_REMATCH[1]}
    elif [[ $line =~ ^'<!-- '(.*)' -->'$ ]]; then
        mode=${BASH_REMATCH[1]}
    fi
done < <(sed -e "s#/dev/shm/#$dir/shm/#g; s#/tmp/#$dir/tmp/#g" docs/TUTORIAL.md)
echo "$ran commands"
[ $ran -gt 0 ]
