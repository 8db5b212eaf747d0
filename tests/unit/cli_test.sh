#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The command line tool: exit codes, text, JSON. cli_test.sh MINL2R CLI_UNFINISHED CMAKE
set -u
minl2r=$1
unfinished=$2
cmake=$3
here=$(cd "$(dirname "$0")" && pwd)
base=/dev/shm
[ -w $base ] || base=/tmp
dir=$(mktemp -d -p $base minl2r-test-XXXXXX)
trap 'rm -rf "$dir"' EXIT
pool=$dir/pool
out=$dir/out
failures=0
sentence=

it() { # SENTENCE: what the following shows; begins with a new pool
    sentence=$*
    rm -f "$pool"
    "$minl2r" create --size 4M --layout test "$pool" >"$out" || fail "create"
}

fail() {
    echo "FAILED: $sentence: $*"
    sed 's/^/    /' "$out"
    failures=$((failures + 1))
}

expect() { # CODE ARGUMENT ...: runs the tool, output to $out
    local expected=$1
    shift
    "$minl2r" "$@" >"$out" 2>&1
    local code=$?
    [ $code -eq "$expected" ] || fail "minl2r $*: exit code $code, not $expected"
}

says() { # PATTERN: the output has it
    grep -q -e "$1" "$out" || fail "no \"$1\""
}

json() { # VALUE KEY ...: the output is JSON, and this is its value
    local value=$1
    shift
    local keys
    keys=$(IFS=';' && echo "$*")
    local found
    found=$("$cmake" "-DFILE=$out" "-DKEYS=$keys" -P "$here/json_get.cmake" 2>&1)
    [ "$found" = "$value" ] || fail "JSON $keys is \"$found\", not \"$value\""
}

damage() { # OFFSET: changes one byte
    printf '\377' | dd of="$pool" bs=1 seek="$1" conv=notrunc status=none
}

it "without a command it shows the usage and exits with 2"
expect 2
says "^Usage: minl2r COMMAND"

it "help exits with 0 and lists the commands"
expect 0 --help
for command in create info check recover dump stats; do
    says "^  $command "
done

it "every command has help"
for command in create info check recover dump stats; do
    expect 0 $command --help
    says "^Usage: minl2r $command"
    says "[-][-]json"
done

it "the version is that of the header"
expect 0 --version
says '^minl2r [0-9]*\.[0-9]*$'

it "unknown commands and options, bad sizes and missing pools are usage errors"
expect 2 frobnicate "$pool"
says "^minl2r: no command 'frobnicate'$"
expect 2 info --frobnicate "$pool"
says "^minl2r info: unrecognized option '--frobnicate'$"
expect 2 info
expect 2 info "$pool" "$pool"
expect 2 create --size 12Q "$dir/new"
says '^minl2r create: --size: "12Q" is not a size'
expect 2 create --size -5 "$dir/new"
expect 2 create --size 99999999999T "$dir/new"
for sign in + ' ' ' -'; do # as strtoull() takes them
    expect 2 create --size "${sign}4M" "$dir/new"
    expect 2 create --size 4M --mode "${sign}600" "$dir/new"
done
expect 2 create --size 4M --mode -01777777777777777777000 "$dir/new"
expect 2 create --size "" "$dir/new"
expect 2 create --size 4M --lanes 5000000000 "$dir/new"
expect 2 create --size 4M --lanes 0 "$dir/new"
says '^minl2r create: --lanes: "0" is not'
expect 2 create --size 4M --lanes x "$dir/new"
says '^minl2r create: --lanes: "x" is not a count like 32$'
expect 2 create --size 4M --log-size x "$dir/new"
says '^minl2r create: --log-size: "x" is not a size'
expect 2 create "$dir/new"
says "^minl2r create: $dir/new: --size is missing"
expect 2 create --size 0 "$dir/new"
says "a pool of 0 bytes"
expect 2 create --size 4M --lanes 99999 "$dir/new"
says "lanes is 99999: at most"
expect 2 create --size 4M --pointer-threshold most "$dir/new"
says '"most" is not half, auto, always, never or a size'
expect 2 create --size 4M --mode 999 "$dir/new"
expect 2 create --size 4M --require gold "$dir/new"
[ ! -e "$dir/new" ] || fail "a file was made"

it "create takes sizes with suffixes and every option"
expect 0 create --size 0x800000 --block-size 1K --lanes 5 --log-size 8K --layout other \
    --pointer-threshold always --spare-blocks 9 --mode 640 --require emulated --json "$dir/new"
json 8388608 pool_size
json 1024 block_size
json 5 lanes
json 1 lanes_kept_for_commits
json 8192 log_size
json other layout
json 1 pointer_threshold
json 9 blocks_spare
[ "$(stat -c %a "$dir/new")" = 640 ] || fail "mode"
rm "$dir/new"

it "create tries out a threshold, and info shows it"
expect 0 create --size 4M --pointer-threshold auto --json "$dir/new"
threshold=$(sed -n -E 's/.*"pointer_threshold":[[:space:]]*"?([a-z0-9]+)"?.*/\1/p' "$out")
[ "$threshold" = never ] || [ $((${threshold:-1} % 256)) -eq 0 ] || fail "threshold $threshold"
expect 0 info --json "$dir/new"
json "$threshold" pointer_threshold
rm "$dir/new"

it "check of a filesystem names the command that looks at its files"
expect 0 check "$pool"
grep -q fsck "$out" && fail "a hint for another layout"
expect 0 create --size 4M --layout pmfs "$dir/new"
expect 0 check "$dir/new"
says "^hint: a filesystem: .pmfs fsck. looks at its files, too$"
rm "$dir/new"

it "create refuses an existing file"
expect 3 create --size 4M "$pool"
says "File exists"

it "create that may not write so much says so, and leaves no file"
(ulimit -f 100 && "$minl2r" create --size 4M "$dir/new" 2>"$out")
[ $? -eq 3 ] || fail "exit status"
says "cannot allocate 4194304 bytes for $dir/new: File too large"
[ ! -e "$dir/new" ] || fail "a file was left"

it "create tells why the library refuses, and leaves no file"
expect 2 create --size 4M --block-size 5000 "$dir/new"
says "block_size is 5000"
[ ! -e "$dir/new" ] || fail "a file was left"

it "create refuses a lesser medium"
expect 3 create --size 4M --require eadr "$dir/new"
says '"eadr" is required'

it "info shows the pool as text"
expect 0 info "$pool"
says "^layout: test$"
says "^pool_size: 4194304 (4 MiB)$"
says "^medium_reason: "
says "^unfinished_transactions: 0$"

it "info of what is missing fails, in JSON too"
expect 3 info "$dir/none"
says "No such file"
"$minl2r" info --json "$dir/none" >"$out" 2>/dev/null
json "cannot open $dir/none: No such file or directory" error

it "what is no UTF-8 does not spoil JSON"
expect 0 create --size 4M --layout $'\xc3\xa4\xff\xed\xa0\x80' --json "$dir/new"
json $'\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd' layout
rm "$dir/new"

it "a terminal obeys nothing that lies in a pool"
expect 0 create --size 4M --layout $'a\e[31m\\' "$dir/new"
expect 0 info "$dir/new"
says '^layout: a\\x1b\[31m\\x5c$'
rm "$dir/new"

it "messages name the command, and the file once"
expect 3 info "$dir/none"
says "^minl2r info: cannot open $dir/none: No such file or directory$"
expect 3 info ""
says "^minl2r info: cannot open '': No such file or directory$"
printf 'hello' >"$pool"
expect 3 check "$pool"
says "^minl2r check: $pool is not a MinL2R pool"

it "output that is lost is an error"
for command in info check recover dump stats; do
    for json in "" --json; do
        "$minl2r" $command $json "$pool" 2>"$out" >/dev/full
        [ $? -eq 3 ] || fail "$command $json to a full device"
        says "^minl2r $command: cannot write to standard output: No space left on device$"
        "$minl2r" $command $json "$pool" 2>"$out" >&-
        [ $? -eq 3 ] || fail "$command $json to a closed stream"
    done
done
"$minl2r" --help 2>"$out" >/dev/full
[ $? -eq 3 ] || fail "--help"

it "nothing is written into the pool where streams are closed"
"$unfinished" "$pool" || fail "unfinished"
for command in info check recover dump stats frobnicate; do
    "$minl2r" $command "$pool" <&- >&- 2>&-
    "$minl2r" $command --json "$pool" 2>&- >"$out"
done
expect 0 check "$pool"

it "info, check, dump and stats do not change the pool"
"$unfinished" "$pool" || fail "unfinished"
cp "$pool" "$dir/copy"
for command in info check dump stats; do
    expect 0 $command "$pool"
    cmp "$pool" "$dir/copy" >"$out" || fail "$command"
done

it "info counts unfinished transactions, recover undoes them once"
"$unfinished" "$pool" || fail "unfinished"
expect 0 info --json "$pool"
json 1 unfinished_transactions
expect 0 recover --json "$pool"
json ON undone
json 1 transactions
json 8 bytes
expect 0 recover --json "$pool"
json OFF undone
expect 0 info --json "$pool"
json 0 unfinished_transactions

it "check of a good pool exits with 0, unfinished transactions or not"
"$unfinished" "$pool" || fail "unfinished"
expect 0 check "$pool"
says "^consistent: yes$"
says "^problems: none$"

it "check of a damaged pool exits with 1 and names the problem"
damage $((4096 + 7)) # the settled generation of lane 0
expect 1 check --json "$pool"
json OFF consistent
says "lane 0: .*(I4)"

it "all commands but create exit with 1 when the superblock is damaged"
damage 150
for command in info check recover dump stats; do
    expect 1 $command "$pool"
    says "superblock: "
done

it "all commands but create exit with 3 when the pool is no pool"
head -c 100000 /dev/urandom >"$pool"
for command in info check recover stats; do
    expect 3 $command "$pool"
    says "not a MinL2R pool"
done

it "dump decodes the records of unfinished transactions"
"$unfinished" "$pool" || fail "unfinished"
expect 0 dump "$pool"
says "^        type undo, target [0-9]*, length 8, bytes 8877665544332211"
says "^  lane 1, settled "
says "^    unfinished:$"
says "^      generation: "
! grep -q '^ *$' "$out" || fail "an empty line"
expect 0 dump --json "$pool"
json 1 superblock format
json 64 root size

it "dump shows bytes of any file"
expect 0 dump --offset 0 --length 20 "$pool"
says "offset 0, hex 4d696e4c32520d0a.*, text MinL2R"
printf 'hello' >"$pool"
expect 0 dump --offset 1 "$pool"
says "^  offset 1, hex 656c6c6f, text ello$"
expect 0 dump --offset 5 "$pool"
says "^bytes: none$"
expect 3 dump --offset 0 "$dir"
says "^minl2r dump: $dir: cannot read: Is a directory$"
truncate -s 8K "$pool"
expect 0 dump --offset 8K --length 16 "$pool"
says "^bytes: none$"
expect 0 dump --offset 0 --length 100M --json "$pool"
json "hello..........." bytes 0 text

it "the lane that is kept for commits comes last, and is no one of those that were asked for"
rm "$pool"
expect 0 create --size 4M --lanes 2 "$pool"
says "^lanes: 2$"
says "^lanes_kept_for_commits: 1$"
for command in dump stats; do
    expect 0 $command "$pool"
    says "^  lane 1, [sg]"
    says "^  lane 2, kept_for_commits yes, "
    ! grep -q "^  lane 3" "$out" || fail "$command: lane 3"
done

it "stats adds up"
expect 0 stats --json "$pool"
json 4096 block_size
json 0 blocks_used
json 1 free_runs

if [ $failures -gt 0 ]; then
    echo "$failures failures"
    exit 1
fi
echo "all passed"
