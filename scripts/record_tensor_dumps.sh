#!/usr/bin/env bash
# Records the disassemblies of Blackwell's machine code that the audit's tests read: the rings of tests/emulator/kernels,
# as they are and with mistakes, squeezed. Needs nvcc, nvdisasm and cuobjdump on PATH.
# usage: scripts/record_tensor_dumps.sh [folder, tests/arena/audit by default]
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-tests/arena/audit}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

# usage: compile_ring name header what-sed-changes
compile_ring() {
  sed "$3" "tests/emulator/kernels/$2.hpp" >"$work/$1.hpp"
  echo "#include \"$1.hpp\"" >"$work/$1.cu"
  nvcc -std=c++20 -O3 -gencode=arch=compute_100f,code=sm_100f -cubin -I"$work" -Isrc -Iinclude -o "$work/$1.cubin" "$work/$1.cu"
}
# Without their columns and encodings, which nobody reads, the listings are a quarter as long.
squeeze() { grep -vE '^ +/\* 0x' | sed -E 's:/\* 0x.*::; s/ +/ /g; s/ $//'; }

clean='s/params.defect == wanted/TensorDefect::none == wanted/'
spill='s/TH_KERNEL(192, 1)/TH_KERNEL(192, 3)/
s/    const u32 row = launch::thread_index();/&\
    float before[tensor_columns];\
    for (u32 n = 0; n < tensor_columns; ++n) before[n] = params.c.load((tile * 128 + row) * tensor_columns + n);\
    warp::sync();/
s/words.get_float(static_cast<int>(n)))/words.get_float(static_cast<int>(n)) + before[n])/'
compile_ring tensor_ring tensor_ring "$clean"
compile_ring tensor_ring_not_elected tensor_ring "${clean/none/not_elected}"
compile_ring tensor_ring_three_products tensor_ring "$clean;s/k < tensor_k_blocks/k < 3/"
compile_ring tensor_ring_spilled tensor_ring "$clean
$spill"
compile_ring tensor_pair tensor_pair 's/params.defect == wanted/PairDefect::none == wanted/'
for name in tensor_ring tensor_ring_not_elected tensor_ring_three_products tensor_ring_spilled; do
  nvdisasm -c "$work/$name.cubin" | squeeze >"$out/$name.sass"
done
cuobjdump -sass "$work/tensor_ring_not_elected.cubin" | squeeze >"$out/tensor_ring_not_elected_by_cuobjdump.sass"
cuobjdump -sass "$work/tensor_pair.cubin" | squeeze >"$out/tensor_pair.sass"
{ nvcc --version | grep release; nvdisasm --version | grep release; } >"$out/tensor_toolchain.txt"
