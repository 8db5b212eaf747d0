#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Usage: test_found_states.sh CRASHTEST REPORT
# States that were wrong once are right now, and wrong with the bug of the self-test that stands
# for what was found; see docs/CRASH_MODEL.md. REPORT is that of `crashtest self-test --json`,
# which found them: the id of a state is of one order of stores, and changes with it.
set -eu
crashtest=$1
report=$2

replay() { # STATUS WORKLOAD ID OPTION ...
    local status=0 wanted=$1 workload=$2 id=$3
    shift 3
    "$crashtest" "$workload" --replay "$id" "$@" || status=$?
    if [ $status -ne "$wanted" ]; then
        echo "$id $*: exit status $status, not $wanted" >&2
        exit 1
    fi
}

for bug in same-value-not-stored magic-not-flushed ended-without-log bits_not_noted; do
    read -r workload id < <(python3 - "$report" "$bug" <<'END'
import json, sys
with open(sys.argv[1]) as report:
    bug = next(bug for bug in json.load(report)["bugs"] if bug["name"] == sys.argv[2])
print(bug["workload"], bug["id"])
END
    )
    replay 0 "$workload" "$id"
    replay 1 "$workload" "$id" --bug "$bug"
done

# The tester was wrong here.
replay 0 pmfs pmfs/large/repair-lost-directory+exchange-foo-A/C:1:p1:
