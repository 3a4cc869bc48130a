#!/usr/bin/env bash
# A serving engine on a machine with a GPU that reaches no package index: the first command is for the machine that does, the other for
# that with the GPU. It has Python 3.12 with torch 2.11, and needs no more.
# usage: scripts/engine_on_gpu.sh bundle ENGINE BUILD FOLDER [THERE]
#            packs ENGINE (vllm or sglang), Thresher's wheels of BUILD and what else is needed into FOLDER/ENGINE.I-of-N.tar.xz, at most
#            ${PART_MIB:-48} MiB each. THERE: `pip freeze` of the machine with the GPU, whose packages are not brought again.
#        scripts/engine_on_gpu.sh serve ENGINE FOLDER OUT [OPTION... MODEL:OPTION...]
#            unpacks the parts that FOLDER has, those of an earlier call among them, into ${SITE:-/tmp/thresher-engine}. With all parts
#            there it serves by bench/serve_engine.py, whose options and runs follow, and leaves OUT/ENGINE.json and logs. While some
#            are missing, or where OUT is -, it says so and ends.
set -euo pipefail
cd "$(dirname "$0")/.."
action=${1:?bundle or serve}
engine=${2:?vllm or sglang}

case $action in
  bundle)
    build=${3:?a build folder}
    folder=${4:?a folder for the parts}
    scripts/python.sh wheel "$build"
    python3 scripts/engine_bundle.py make "$engine" "$build" "$folder" ${5:+--there "$5"} --part-mib "${PART_MIB:-48}"
    ;;
  serve)
    folder=${3:?the folder of the parts}
    out=${4:?a folder for results, or -}
    site=${SITE:-/tmp/thresher-engine}/$engine
    python3 scripts/engine_bundle.py unpack "$folder" "$site" "$engine" || exit 0
    [ "$out" != - ] || exit 0
    export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
    export MODELS=${MODELS:-/dev/shm/thresher-models}
    export THRESHER_CACHE=${THRESHER_CACHE:-$site/.kernels}
    mkdir -p "$out" "$MODELS"
    python3 bench/serve_engine.py "$engine" --out "$out/$engine.json" "${@:5}"
    ;;
  *)
    echo "$action is neither bundle nor serve" >&2
    exit 2
    ;;
esac
