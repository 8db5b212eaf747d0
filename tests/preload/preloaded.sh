#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# preloaded.sh COMMAND [ARGUMENT ...] - runs it with the library, from with_pool.sh, and with
# PRELOAD_BEFORE before it, if that is set.
set -euo pipefail
exec env LD_PRELOAD="${PRELOAD_BEFORE:+$PRELOAD_BEFORE }$PRELOAD" "$@"
