#!/usr/bin/env bash
# Makes what a release consists of in dist/ and checks it: the wheel for manylinux, the source distribution, the site, and checksums.
# usage: scripts/release.sh [BUILD]   (build/default, with the Python package built)
# The wheel is tried in an environment that has NumPy and nothing of this checkout. The source distribution is unpacked and configured.
# The container file, scripts/Containerfile, takes the wheel. Exit status 77: left out, and why.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(cd "${1:-build/default}" && pwd)
version=$(sed -nE 's/^project\(thresher VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
fail() { echo "$*" >&2; exit 1; }

grep -qE "^## \[$version\]( - [0-9]{4}-[0-9]{2}-[0-9]{2}|.*[Uu]nreleased)" CHANGELOG.md || fail "CHANGELOG.md has no entry of $version"
grep -qx "version: $version" CITATION.cff || fail "CITATION.cff is not of $version"

scripts/python.sh wheel "$build"
rm -rf dist
mkdir dist
cp "$build"/wheel/portable/*.whl "$build"/wheel/engines/*.whl dist/

# The source distribution is what git tracks, without what a build does not need.
git archive --format=tar.gz --prefix="thresher-$version/" -o "dist/thresher-$version.tar.gz" HEAD -- . ':!measurements' ':!.ci'
unpacked=$(mktemp -d)
bare=$(mktemp -d)
trap 'rm -rf "$unpacked" "$bare"' EXIT
tar -C "$unpacked" -xzf "dist/thresher-$version.tar.gz"
[ -f "$unpacked/thresher-$version/pyproject.toml" ] || fail "the source distribution has no pyproject.toml"
(cd "$unpacked/thresher-$version" && cmake --preset default -DTHRESHER_BUILD_PYTHON=ON >"$unpacked/log" 2>&1) || fail "$(tail -5 "$unpacked/log")"

status=0
scripts/docs.sh site "$build/docs" || status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 77 ] || exit "$status"
[ "$status" -ne 0 ] || tar -czf "dist/thresher-$version-docs.tar.gz" -C "$build/docs" html

# A bare environment: no variable of this one, another folder, the wheel and NumPy alone.
python3 -m venv "$bare/env"
"$bare/env/bin/python" -m pip install -q --disable-pip-version-check numpy dist/thresher-"$version"-py3-none-manylinux_*.whl
(cd "$bare" && env -i HOME="$bare" PATH="$bare/env/bin:/usr/bin:/bin" "$bare/env/bin/python" - "$version" <<'PROGRAM'
import sys

import numpy as np
import thresher
from thresher.numpy import dual_gemm

assert thresher.__version__ == sys.argv[1], thresher.__version__
ones = np.ones((2, 32), np.float16)
weights = np.ones((16, 32), np.float16)
assert dual_gemm(ones, weights, weights).shape == (2, 16)
PROGRAM
env -i HOME="$bare" PATH="$bare/env/bin:/usr/bin:/bin" "$bare/env/bin/thresher" doctor)

(cd dist && sha256sum -- *.whl *.tar.gz >SHA256SUMS && cat SHA256SUMS)
