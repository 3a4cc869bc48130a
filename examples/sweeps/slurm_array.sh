#!/bin/bash
# A tournament over the tasks of a Slurm array, one shard a task, and a last job that merges them.
#
# usage: slurm_array.sh SHARDS SEED FOLDER SUITE... [OPTION...]
#        slurm_array.sh 16 42 /shared/sweep origin decode --pitch /shared/pitches/*.toml --device gpu
#
# FOLDER is one that all nodes see. Words behind it go to `thresher tournament`; files in them need absolute paths. A
# shard that failed is held again, and merged, by
#        sbatch --array=5 slurm_array.sh WORDS AS BEFORE
#        thresher ledger merge --ledger FOLDER/all.sqlite FOLDER/shard-*.sqlite
#SBATCH --job-name=thresher
#SBATCH --gres=gpu:1
#SBATCH --exclusive
#SBATCH --no-requeue
set -euo pipefail

if [ -z "${SLURM_ARRAY_TASK_ID:-}" ]; then  # not in a task yet: submit
  shards=$1 folder=$3
  mkdir -p "$folder"
  script=$(realpath "$0")
  # No two shards at once on a node (--exclusive): one would disturb the other's times.
  array=$(sbatch --parsable --array="1-$shards" --output="$folder/%a.log" "$script" "$@")
  # Also after tasks with status 1: there a gate failed, which is a result. What is missing, the merge names.
  sbatch --dependency="afterany:$array" --output="$folder/merge.log" \
    --wrap="thresher ledger merge --ledger '$folder/all.sqlite' '$folder'/shard-*.sqlite && thresher report --ledger '$folder/all.sqlite' --report '$folder/report'"
  exit
fi

shards=$1 seed=$2 folder=$3
shift 3
# Written on the node and copied when it is whole: databases and network file systems do not go well together.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0
thresher tournament "$@" --shard "$SLURM_ARRAY_TASK_ID/$shards" --seed "$seed" --ledger "$scratch/ledger.sqlite" || status=$?
[ "$status" -le 1 ] || exit "$status"
cp "$scratch/ledger.sqlite" "$folder/part-$SLURM_ARRAY_TASK_ID"
mv "$folder/part-$SLURM_ARRAY_TASK_ID" "$folder/shard-$SLURM_ARRAY_TASK_ID.sqlite"
exit "$status"
