#!/usr/bin/env bash
# Records the disassemblies that the audit's tests read: compiles tests/arena/audit/*.cu for Hopper and two dual-GEMM
# kernels of this repository, and keeps what nvdisasm and cuobjdump print. Needs nvcc, nvdisasm and cuobjdump on PATH.
# usage: scripts/record_dumps.sh [folder, tests/arena/audit by default]
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-tests/arena/audit}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
arch=(-std=c++20 -O3 -gencode=arch=compute_90a,code=sm_90a -cubin)
for source in tests/arena/audit/*.cu; do
  name=$(basename "$source" .cu)
  nvcc "${arch[@]}" -o "$work/$name.cubin" "$source"
done
cat >"$work/dual_gemm.cu" <<'CUDA'
#include "strategies/gemm/wgmma/fused/device/operation.hpp"
namespace d = thresher::strategies::dual_gemm::fused;
template __global__ void d::kernel<d::Config{.epilogue = d::Epilogue::tma}>(__grid_constant__ const d::Params);
CUDA
nvcc "${arch[@]}" -Isrc -Iinclude -o "$work/dual_gemm.cubin" "$work/dual_gemm.cu"
for name in origin_like spilled dual_gemm; do
  nvdisasm -c "$work/$name.cubin" >"$out/$name.sass"
done
cuobjdump -sass "$work/staged.cubin" >"$out/staged.sass"      # the other tool's format
for name in origin_like spilled staged dual_gemm; do
  cuobjdump -res-usage "$work/$name.cubin"
done | grep -E 'Function|REG' >"$out/resources.txt"
cp "$work/staged.cubin" "$out/staged.cubin"
{ nvcc --version | grep release; nvdisasm --version | grep release; } >"$out/toolchain.txt"
