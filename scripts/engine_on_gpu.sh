#!/usr/bin/env bash
# A serving engine on a machine with a GPU that reaches no package index: the first command is for the machine that does, the other for
# that with the GPU, which has Python 3.12 and, for vLLM, torch 2.11.
# usage: scripts/engine_on_gpu.sh bundle ENGINE BUILD FOLDER [OPTION...]
#            packs ENGINE (vllm or sglang) and what else is needed into FOLDER/ENGINE.I-of-N of at most 48 MiB, unless they are there, and
#            Thresher's wheels of BUILD into FOLDER/ENGINE-thresher.I-of-N. Options are those of scripts/engine_bundle.py: --there FILE,
#            `pip freeze` of the machine with the GPU, spares what it has; SGLang needs --torch, since its kernels run with its torch alone.
#        scripts/engine_on_gpu.sh serve ENGINE FOLDER OUT [OPTION... MODEL:OPTION...]
#            unpacks the parts that FOLDER has into a folder that is kept, ${SITE:-thresher-engine of the temporary files}. With all parts
#            there it serves by bench/serve_engine.py, whose options and runs follow, and leaves OUT/ENGINE.json and logs. While some
#            are missing it says so, and where OUT is - it ends.
set -euo pipefail
cd "$(dirname "$0")/.."
action=${1:?bundle or serve}
engine=${2:?vllm or sglang}

case $action in
  bundle)
    build=${3:?a build folder}
    folder=${4:?a folder for the parts}
    [ -n "${WHEELS_ARE_MADE:-}" ] || scripts/python.sh wheel "$build"
    python3 scripts/engine_bundle.py make "$engine" "$build" "$folder" "${@:5}"
    ;;
  serve)
    folder=${3:?the folder of the parts}
    out=${4:?a folder for results, or -}
    site=${SITE:-${TMPDIR:-/tmp}/thresher-engine}/$engine
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
