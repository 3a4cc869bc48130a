#!/usr/bin/env bash
# Gives the command the hostile inputs of tests/hostile/ and prints how many were refused as they should be.
# usage: scripts/hostile.sh [THRESHER [GROUP...]]
# THRESHER is build/default/src/cli/thresher if it is left out. Needs Python 3.11 or newer.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
[ $# -gt 0 ] || set -- "$root/build/default/src/cli/thresher"
exec python3 "$root/tests/hostile/run.py" "$@"
