#!/usr/bin/env bash
# Everything that only a card with tensor memory can tell of the kernels for Blackwell, in one command, on a machine with
# a B200 or a GB300: the GPU tests, the kernels with NVIDIA's own checks of tensor memory compiled in, their bits against
# the emulator's, a tournament, and how many of the predicted times lie in their intervals. Leaves one file to send back.
# usage: scripts/check_on_b200.sh [FOLDER]     FOLDER: for the results, which must not exist; blackwell_DATE if left out
set -uo pipefail
cd "$(dirname "$0")/.."

# Name and compute capability of GPU 0; nothing where there is none.
gpu=$(nvidia-smi -i 0 --query-gpu=name,compute_cap --format=csv,noheader 2>/dev/null | head -n 1)
capability=${gpu##*, }
case "$capability" in
  10.0) card=b200 ;;
  10.3) card=gb300 ;;
  *)
    echo "scripts/check_on_b200.sh needs a GPU of compute capability 10.0 or 10.3 (a B200 or a GB300) as GPU 0, and here is ${gpu:-none}" >&2
    exit 2
    ;;
esac
results=${1:-blackwell_$(date -u +%Y-%m-%d_%H%M)}
if [ -e "$results" ]; then
  echo "scripts/check_on_b200.sh: $results exists already: name a folder that does not" >&2
  exit 2
fi

. scripts/setup.sh
install_packages "${build_packages[@]}" "${test_packages[@]}"
configure_and_build -DTHRESHER_BUILD_TESTS=ON || exit 2
mkdir -p "$results"
thresher=build/default/src/cli/thresher
tcgen05=build/default/tests/ops/test_ops_gpu_tcgen05
export COMMIT=${COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}
failed=()

# step NAME COMMAND...: its output goes to NAME.txt with machine and commit; what fails keeps nothing else from running.
step() {
  local name=$1 status=0
  shift
  printf '%-28s' "$name"
  scripts/record.sh "$@" >"$results/$name.txt" || status=$?
  if [ "$status" -eq 0 ]; then echo "ok"; else
    echo "exit status $status, see $results/$name.txt"
    failed+=("$name")
  fi
}

# ran NAME: whether none of its tests was skipped.
ran() {
  ! grep -q SKIPPED "$results/$1.txt" || { echo "$1: skipped, see $results/$1.txt"; failed+=("$1"); }
}

# score NAME: the predicted times against the tournament NAME.
score() {
  [ -s "$results/$1.json" ] || return 0
  step "score_$1" "$thresher" predict --against "$results/predictions.json" --measured "$results/$1.json"
}

step doctor "$thresher" doctor
step gpu_tests ctest --preset default -L gpu --no-tests=error --output-on-failure
step bits_of_the_emulator "$tcgen05" --gtest_filter='*ComputesTheEmulatorsBits'
ran bits_of_the_emulator
step tensor_memory_checks "$tcgen05" --gtest_filter='*BreaksNoRuleOfTensorMemory'
ran tensor_memory_checks
step predictions "$thresher" predict --device-table "$card" --output "$results/predictions.json" pitches/origin/*.toml pitches/blackwell/*.toml
if [ "$card" = b200 ]; then
  step predictions_as_committed cmp "$results/predictions.json" measurements/predictions_b200.json
fi
pitches=()
for pitch in pitches/blackwell/*.toml; do pitches+=(--pitch "$pitch"); done
step tournament "$thresher" tournament origin --device gpu --json "$results/tournament.json" --ledger "$results/ledger.sqlite"
score tournament
step tournament_of_lists "$thresher" tournament grouped_origin --device gpu --json "$results/tournament_of_lists.json" --ledger "$results/ledger.sqlite"
score tournament_of_lists
step tournament_of_pitches "$thresher" tournament origin --device gpu "${pitches[@]}" --json "$results/tournament_of_pitches.json" --ledger "$results/ledger.sqlite"
score tournament_of_pitches

archive=$results.tar.gz
tar -czf "$archive" -C "$(dirname "$results")" "$(basename "$results")" || exit 2
echo
echo "send back: $archive"
if [ "${#failed[@]}" -gt 0 ]; then
  echo "failed: ${failed[*]}"
  exit 1
fi
