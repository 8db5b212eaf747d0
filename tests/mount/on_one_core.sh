#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# on_one_core.sh COMMAND [ARGUMENT ...] - runs it, and all that it starts, on one core.
set -euo pipefail
cores=$(taskset -pc $$)
exec taskset -c "${cores##*[ ,-]}" "$@"
