#!/usr/bin/env bash
# The sources as .clang-format has them, by the pinned formatter, which is fetched once for a machine.
# usage: scripts/format.sh          formats every source
#        scripts/format.sh --check  says which lines differ; status 1 when any does, 77 when the formatter cannot be had
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
  "") how=(-i) ;;
  --check) how=(--dry-run -Werror) ;;
  *) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
environment=$(scripts/python.sh formatter .) || { status=$?; echo "$environment"; exit "$status"; }
find bench examples fuzz include python src tests -type f -regex '.*\.\(c\|cpp\|cu\|h\|hpp\)' -print0 | xargs -0 -n 100 -P "$(nproc)" "$environment/bin/clang-format" "${how[@]}"
