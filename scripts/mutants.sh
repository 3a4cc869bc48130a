#!/usr/bin/env bash
# How many of the faults in tests/mutants the tests find. On demand: it builds the test programs anew.
#
# usage: scripts/mutants.sh make FOLDER            copies the tree there and builds the test programs with every fault behind a switch
#        scripts/mutants.sh run FOLDER [JOBS]      turns them on one at a time and prints the score; needs nothing but FOLDER, so that
#                                                  it may be another machine's; one that was stopped goes on where it was
#        scripts/mutants.sh alone NUMBER FOLDER    the same for one fault, planted as it is written, without switches
# CMAKE_ARGUMENTS and NINJA_ARGUMENTS are given to both. A fault counts as found when a test fails, the program crashes, or LIMIT (default 600) seconds pass.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

copy_tree() {
  mkdir -p "$1"
  cd "$here/.."
  git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -p -t "$1"
}

build_programs() { # FOLDER: the targets that its list names
  cd "$1"
  # Machine code is nobody's business here, and the device code is not what it should be.
  cmake --preset default -DTHRESHER_BUILD_TESTS=ON -DTHRESHER_BUILT_IN_ARCHS= ${CMAKE_ARGUMENTS:-} >cmake.log
  cut -f 2 faults.tsv | tr ' ' '\n' | cut -d : -f 1 | sort -u >programs.txt
  xargs ninja -C build/default ${NINJA_ARGUMENTS:-} <programs.txt
  mkdir -p programs
  while read -r program; do
    cp "$(find build/default/tests -name "$program" -type f)" programs/
  done <programs.txt
}

# NUMBER PROGRAMS EXCUSE FAULT: one line "outcome<tab>number<tab>how<tab>excuse<tab>fault".
try_fault() {
  local number=$1 programs=$2 excuse=$3 fault=$4 one how
  set -f
  for one in $programs; do
    how=$(first_failure "$number" "${one%%:*}" "${one#*:}") && continue
    printf 'found\t%s\t%s\t%s\t%s\n' "$number" "$how" "$excuse" "$fault"
    return
  done
  printf 'survived\t%s\t\t%s\t%s\n' "$number" "$excuse" "$fault"
}

# True when every test passes; else prints the first test that failed.
first_failure() {
  local status=0 log
  log=$(mktemp)
  THRESHER_MUTANT=$1 GTEST_FAIL_FAST=1 timeout "${LIMIT:-600}" "programs/$2" --gtest_filter="$3" --gtest_color=no >"$log" 2>&1 || status=$?
  if [ "$status" -ne 0 ]; then
    { grep -m 1 '^\[  FAILED  \]' "$log" || echo "status $status after $(grep -c '^\[       OK \]' "$log") tests"; } | sed 's/^\[  FAILED  \] //; s/ (.*//'
  elif ! grep -q '^\[==========\] [1-9][0-9]* tests\?' "$log"; then
    echo "no test of $2 is called $3" >&2
    rm -f "$log"
    exit 255
  fi
  rm -f "$log"
  [ "$status" -eq 0 ]
}

report() { # of results.tsv
  sort -t $'\t' -k 2 -n results.tsv | awk -F '\t' '
    { printf "%-8s %3d  %s%s%s\n", $1, $2, $5, $3 == "" ? "" : "  [" $3 "]", $4 == "" ? "" : "  (" $4 ")" }
    $4 ~ /^equivalent/ { ++equivalent; next }
    { ++all; found += $1 == "found" }
    END { printf "%d of %d faults found (%.1f %%), %d more are equivalent\n", found, all, 100 * found / all, equivalent }'
}

case "${1:-}" in
  make)
    folder=$(mkdir -p "$2" && cd "$2" && pwd)
    copy_tree "$folder"
    python3 "$here/plant_faults.py" "$folder" all >"$folder/faults.tsv"
    cp "$here/mutants.sh" "$folder/"
    build_programs "$folder"
    ;;
  alone)
    folder=$(mkdir -p "$3" && cd "$3" && pwd)
    copy_tree "$folder"
    python3 "$here/plant_faults.py" "$folder" "$2" >"$folder/faults.tsv"
    build_programs "$folder"
    exec "$here/mutants.sh" run "$folder"
    ;;
  run)
    cd "$2"
    export -f try_fault first_failure
    if [ "$(wc -l <faults.tsv)" -gt 1 ]; then
      # With no fault turned on nothing may fail.
      cut -f 2 faults.tsv | tr ' ' '\n' | sort -u | xargs -d '\n' -n 1 -P "${3:-$(nproc)}" \
        bash -c 'how=$(first_failure 0 "${1%%:*}" "${1#*:}") || { echo "without a fault $1 fails: $how" >&2; exit 255; }' _
    fi
    touch results.tsv
    awk -F '\t' 'FILENAME == "results.tsv" { known[$2]; next } !($1 in known)' results.tsv faults.tsv | tr '\t' '\n' |
      xargs -d '\n' -n 4 -P "${3:-$(nproc)}" bash -c 'try_fault "$@"' _ >>results.tsv
    report
    ;;
  *)
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
