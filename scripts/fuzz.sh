#!/usr/bin/env bash
# Runs every fuzzer, or those that are named, for so many executions, on every processor, and prints what came of it.
# usage: scripts/fuzz.sh EXECUTIONS [TARGET...]
# Builds nothing: configure with -DTHRESHER_BUILD_TESTS=ON -DTHRESHER_BUILD_FUZZERS=ON, or name the folder of the fuzzers and their seeds in
# FUZZERS (default: build/default/fuzz). PARTS is how many processes share a target's executions (default 4). What a
# target finds, and its corpus, lie in its folder under CORPUS (default: a folder that is left behind).
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
[ $# -gt 0 ] || { echo "usage: scripts/fuzz.sh EXECUTIONS [TARGET...]" >&2; exit 2; }
executions=$1
shift
fuzzers=${FUZZERS:-$root/build/default/fuzz}
export fuzzers parts=${PARTS:-4} corpus=${CORPUS:-$(mktemp -d)}
[ $# -gt 0 ] || set -- $(cd "$fuzzers" && ls | sed -n 's/^fuzz_//p')
[ $# -gt 0 ] || { echo "there are no fuzzers in $fuzzers" >&2; exit 2; }
export each=$(((executions + parts - 1) / parts))

# Where memory was allocated is asked when a finding is run again.
export ASAN_OPTIONS=${ASAN_OPTIONS:-malloc_context_size=0}

part() {  # TARGET NUMBER
  local at=$corpus/$1
  mkdir -p "$at/$2"
  (cd "$at" && "$fuzzers/fuzz_$1" -runs="$each" -max_len=4096 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    "$at/$2" "$fuzzers/seeds/$1") >"$at/log_$2" 2>&1
  echo $? >"$at/status_$2"
}
export -f part

for target in "$@"; do
  for number in $(seq "$parts"); do echo "$target $number"; done
done | xargs -P "$(nproc)" -L 1 bash -c 'part "$0" "$1"'

failed=0
printf '%-16s %12s %10s %9s %9s  %s\n' target executions "a second" covered inputs findings
for target in "$@"; do
  at=$corpus/$target
  runs=$(sed -n 's/^stat::number_of_executed_units: //p' "$at"/log_* | awk '{ sum += $1 } END { print sum + 0 }')
  speed=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$at"/log_* | awk '{ sum += $1 } END { print sum + 0 }')
  covered=$(sed -n 's/.*DONE *cov: \([0-9]*\).*/\1/p' "$at"/log_* | sort -n | tail -n 1)
  inputs=$(find "$at" -mindepth 2 -type f | wc -l)
  found=$(find "$at" -maxdepth 1 -type f \( -name 'crash-*' -o -name 'timeout-*' -o -name 'oom-*' -o -name 'leak-*' \) | wc -l)
  if grep -qvx 0 "$at"/status_*; then failed=1; fi
  printf '%-16s %12s %10s %9s %9s  %s\n' "$target" "$runs" "$speed" "${covered:--}" "$inputs" "$found"
done
echo "corpora, and what was found: $corpus"
exit $failed
