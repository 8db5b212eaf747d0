#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# preloaded.sh COMMAND [ARGUMENT ...] - runs it with the library, from with_pool.sh.
set -euo pipefail
exec env LD_PRELOAD="$PRELOAD" "$@"
