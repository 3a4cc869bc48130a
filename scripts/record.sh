#!/usr/bin/env bash
# Runs a command and prints what a text file under measurements/ must say: commit, machine, toolchain, the command, its
# output and how it ended.
# usage: scripts/record.sh COMMAND [ARGUMENT...] >measurements/NAME.txt
# COMMIT names the commit where the sources lie outside of git.
set -uo pipefail
[ $# -gt 0 ] || { echo "usage: scripts/record.sh COMMAND [ARGUMENT...]" >&2; exit 2; }
commit=${COMMIT:-$(git rev-parse --short HEAD)} || { echo "no git checkout here: name the commit in COMMIT" >&2; exit 2; }
first_line() { "$@" 2>/dev/null | head -n 1; }
gpu=$(first_line nvidia-smi --query-gpu=name,driver_version --format=csv,noheader)
nvrtc=$(ls /usr/local/cuda/lib*/libnvrtc.so.* 2>/dev/null | tail -n 1)
echo "# commit $commit, $(date -u +%Y-%m-%dT%H:%MZ), $(uname -m), $(nproc) CPUs"
echo "# GPU and driver: ${gpu:-none}; NVRTC: ${nvrtc##*/libnvrtc.so.}; $(first_line "${CXX:-g++}" --version)"
echo "\$ $(basename "$1") ${*:2}"
"$@" 2>&1
status=$?
echo "exit status $status"
exit $status
