#!/usr/bin/env bash
# Records whether the arena accuses anybody who is honest on a machine that is kept busy, and whether a contestant differs
# from itself on one that is not. Kernels of tests/arena/user_kernels/unusual compete too where there is a compiler.
# usage: scripts/busy_tournaments.sh [--tournaments N] [--matches N] [--build FOLDER] [--into FOLDER]
# Writes tournaments_busy_DATE.txt and matches_with_itself_DATE.txt. COMMIT as for record.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
tournaments=100 matches=200 build=$here/build/default into=$here/measurements
while [ $# -gt 0 ]; do
  case $1 in
    --tournaments) tournaments=$2 ;;
    --matches) matches=$2 ;;
    --build) build=$2 ;;
    --into) into=$2 ;;
    *) sed -n 's/^# usage: //p' "$0" >&2; exit 2 ;;
  esac
  shift 2
done
pitches=$(mktemp -d)
trap 'rm -rf "$pitches"' EXIT
if command -v "${CXX:-g++}" >/dev/null; then
  cp "$here"/tests/arena/user_kernels/unusual/*.cpp "$here"/tests/support/naive_kernel.h "$pitches"
  for kernel in "$pitches"/*.cpp; do
    name=$(basename "$kernel" .cpp)
    printf 'title = "%s"\n[contestant]\noperation = "dual_gemm"\nstrategy = "%s"\n[kernel]\nsource = "%s.cpp"\nentry = "mine"\n%s\n' \
      "$name" "$name" "$name" "$(sed -n 's|^// \[kernel\] ||p' "$kernel")" >"$pitches/$name.toml"
    printf '[baseline]\nstrategy = "two_pass"\n[claim]\nspeedup = 1\nconfidence = 0\nreason = "none"\n' >>"$pitches/$name.toml"
  done
fi
shopt -s nullglob
fairness=$build/bench/bench_arena_fairness
thresher=$build/src/cli/thresher
status=0
record() { # FILE WORDS...
  local file=$1
  shift
  "$here/scripts/record.sh" "$fairness" "$thresher" "$@" "$pitches"/*.toml | sed "s|$pitches/||g; s|$here/||g" >"$into/$file" || status=1
  tail -n 3 "$into/$file"
}
date=$(date -u +%F)
[ "$tournaments" = 0 ] || record "tournaments_busy_$date.txt" tournaments "$tournaments" busy
[ "$matches" = 0 ] || record "matches_with_itself_$date.txt" matches "$matches" quiet
exit $status
