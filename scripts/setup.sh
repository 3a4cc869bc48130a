# Sourced by ./run and ./test: installs what is missing, configures and builds. Idempotent.

build_packages=(build-essential cmake ninja-build libdnnl-dev libhwy-dev libboost-context-dev libtomlplusplus-dev
  nlohmann-json3-dev libcli11-dev libfmt-dev libsqlite3-dev libssl-dev libdlpack-dev libjs-chart.js python3 python3-venv)
test_packages=(libgtest-dev libbenchmark-dev chromium doxygen)

setup_source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
thresher_gpu=ON

# The distribution's name where its packages are known to suffice, else nothing.
known_distribution() {
  . /etc/os-release 2>/dev/null || return 0
  case "${ID:-}:${VERSION_ID:-}" in
    debian:12) echo debian ;;
    ubuntu:24.04) echo ubuntu ;;
  esac
}

missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done
}

install_packages() {
  local distribution packages=("$@") missing as_root=()
  distribution=$(known_distribution)
  if [ -z "$distribution" ]; then
    require_tools
    return
  fi
  if [ "$distribution" = ubuntu ]; then  # Ubuntu's chromium is a snap: the report's browser test is skipped there
    packages=("${packages[@]/chromium/}")
  fi
  missing=$(missing_packages ${packages[@]})
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "These packages are missing, and installing them needs root or sudo:" $missing >&2; exit 2; }
    as_root=(sudo)
  fi
  echo "Installing:" $missing
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -q &&
         "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -20 "$log" >&2
    echo "The package manager could not install:" $missing >&2
    exit 2
  fi
  rm -f "$log"
}

# On a distribution whose packages are not known: say what is missing and stop, or go on.
require_tools() {
  local missing=() header
  command -v cmake >/dev/null || missing+=("cmake >= 3.25")
  command -v ninja >/dev/null || missing+=("ninja")
  command -v c++ >/dev/null || missing+=("a C++20 compiler")
  for header in oneapi/dnnl/dnnl.hpp hwy/highway.h boost/context/fiber.hpp toml++/toml.h nlohmann/json.hpp CLI/CLI.hpp \
    fmt/format.h sqlite3.h openssl/evp.h dlpack/dlpack.h; do
    echo "#include <$header>" | c++ -std=c++20 -E -x c++ - >/dev/null 2>&1 || missing+=("the header <$header>")
  done
  if [ "${#missing[@]}" -gt 0 ]; then
    printf 'This is neither Debian 12 nor Ubuntu 24.04, so nothing is installed for you. Missing:\n' >&2
    printf '  %s\n' "${missing[@]}" >&2
    exit 2
  fi
}

# take_options ARGUMENT...: leaves in `arguments` what is not an option of ./run and ./test themselves.
take_options() {
  arguments=()
  local argument
  for argument in "$@"; do
    if [ "$argument" = --no-gpu ]; then thresher_gpu=OFF; else arguments+=("$argument"); fi
  done
}

# Whether the header of CUDA 12 or newer is in a toolkit or a Python package, where CMake looks for it (src/runtime/CMakeLists.txt).
has_cuda_header() {
  local folder
  for folder in "${CUDA_HOME:-}/include" "${CUDA_PATH:-}/include" /usr/local/cuda/include \
    $(python3 -c 'import glob, sys; print(*(f for p in sys.path if p.endswith("-packages") for f in glob.glob(p + "/nvidia/*/include")))' 2>/dev/null); do
    ! grep -qsE '^#define CUDA_VERSION (1[2-9]|[2-9][0-9])[0-9]{3}$' "$folder/cuda.h" || return 0
  done
  return 1
}

# Prints CMake's options for the GPU. Without a CUDA toolkit, NVIDIA's packages for Python stand in for one: they are fetched once
# for a machine.
gpu_options() {
  local environment
  echo "-DTHRESHER_GPU=$thresher_gpu"
  [ "$thresher_gpu" = ON ] && ! has_cuda_header || return 0
  environment=$("$setup_source/scripts/python.sh" cuda .) ||
    echo "There is no CUDA toolkit, and NVIDIA's packages could not be fetched: ${environment#left out: }" >&2
}

# configure_and_build [cmake option...] -- [target...]
configure_and_build() {
  local options=() log=build/default/configure.log
  while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
  [ $# -eq 0 ] || shift
  mkdir -p build/default
  mapfile -t -O "${#options[@]}" options < <(gpu_options)
  if ! cmake --preset default "${options[@]}" >"$log" 2>&1; then
    tail -30 "$log" >&2
    exit 2
  fi
  grep -E '^-- Thresher:' "$log" || true
  cmake --build --preset default ${1:+--target "$@"}
}
