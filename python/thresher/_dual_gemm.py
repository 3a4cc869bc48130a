"""The dual GEMM on operands of whatever framework. What the C interface cannot check is checked here, all else there."""

import ctypes as c

from . import _library as lib
from ._library import refuse
from ._operands import Operand, expect_format, expect_rank, expect_same_device, expect_shape, row_stride
from ._options import OPERAND_FORMATS, OUTPUT_FORMATS, expect_sixteen_bits_on_gpu, strategy_of
from ._packed import Block, Handle, opened
from ._packed import made as made_weights
from ._packed import numerics_of
from ._plans import HOST, Place, Plan, RowsCall, calls, knobs, made, planned, row_bucket


def run(a: Operand, b1: Operand, b2: Operand, out: Operand, activation: tuple, *, place: Place = HOST, threads: int = 0,
        strategy: str | None = None) -> RowsCall:
    """out[M,N] = activation(a·b1ᵀ) ∘ (a·b2ᵀ)."""
    named = strategy_of(strategy)
    key = ("dual_gemm", a[2:6], b1[1:], b2[1:], out[2:6], activation, threads, named)
    call = calls.get(key) or calls.make(key, lambda: _prepared(a, b1, b2, out, activation, place, threads, named))
    call.run(a, out, place)
    return call


def run_packed(a: Operand, weights: Block, out: Operand, activation: tuple, *, place: Place = HOST, threads: int = 0,
               strategy: str | None = None) -> RowsCall:
    """The same of packed weights."""
    named = strategy_of(strategy)
    key = ("dual_gemm_packed", a[2:6], weights.operand[1:6], weights.header, out[2:6], activation, threads, named)
    call = calls.get(key) or calls.make(key, lambda: _prepared_packed(a, weights, out, activation, place, threads, named))
    call.run(a, out, place)
    return call


def pack(b1: Operand, b2: Operand, numerics: str) -> Handle:
    columns, depth = _shape_of_weights(b1, b2)
    gate, up = _pointers(b1), _pointers(b2)
    return made_weights("dual_gemm", lib.library().thresher_dual_gemm_pack_flat, *b1.device, b1.format, columns, depth, *gate, *up,
                        b1.scale_layout, numerics_of(numerics))


def _shape_of_weights(b1: Operand, b2: Operand) -> tuple[int, int]:
    """(N, K), with what the weights are by themselves checked."""
    expect_rank(b1, 2, "[N, K]")
    expect_format(b1, *OPERAND_FORMATS)
    expect_format(b2, b1.format)
    expect_shape(b2, b1.shape, "that of b1")
    expect_same_device(b1, b2)
    if b1.scale_layout != b2.scale_layout:
        refuse("b1 and b2 have scales in different layouts, expected one layout")
    return b1.shape


def _pointers(b: Operand) -> tuple:
    return b.pointer, row_stride(b), b.scales, b.global_scale


def _expect_rows(a: Operand, out: Operand, columns: int) -> None:
    expect_format(a, *OPERAND_FORMATS)
    expect_format(out, *OUTPUT_FORMATS)
    expect_shape(out, (a.shape[0], columns), "[M, N]")


def _prepared(a: Operand, b1: Operand, b2: Operand, out: Operand, activation: tuple, place: Place, threads: int,
              strategy: bytes | None) -> RowsCall:
    expect_rank(a, 2, "[M, K]")
    expect_rank(b1, 2, "[N, K]")
    expect_shape(b1, (b1.shape[0], a.shape[1]), "[N, K] with the K of a")
    columns, depth = _shape_of_weights(b1, b2)
    _expect_rows(a, out, columns)
    expect_same_device(a, b1, out)
    expect_sixteen_bits_on_gpu(b1, b2)
    gate, up = _pointers(b1), _pointers(b2)
    bucket = row_bucket(a.shape[0])

    def make() -> Plan:
        kind, constants = activation
        return made("dual_gemm", lib.library().thresher_dual_gemm_plan_raw_flat, *a.device, bucket, columns, depth, a.format,
                    b1.format, out.format, kind, (c.c_float * 3)(*constants), *gate, *up, b1.scale_layout, strategy, knobs(), threads)

    key = ("dual_gemm", a.device, bucket, columns, depth, a.format, b1.format, out.format, activation, gate, up, b1.scale_layout,
           threads, strategy)
    return RowsCall(planned(key, place, make), row_stride(a), row_stride(out))


def _prepared_packed(a: Operand, weights: Block, out: Operand, activation: tuple, place: Place, threads: int,
                     strategy: bytes | None) -> RowsCall:
    expect_rank(a, 2, "[M, K]")
    expect_same_device(a, weights.operand, out)
    held = opened("dual_gemm", weights)
    if a.shape[1] != held.info.k:
        refuse(f"a has rows of {a.shape[1]} elements, but the weights have K = {held.info.k}")
    _expect_rows(a, out, held.info.n)
    bucket = row_bucket(a.shape[0])

    def make() -> Plan:
        kind, constants = activation
        return made("dual_gemm", lib.library().thresher_dual_gemm_plan_flat, held.handle, bucket, a.format, out.format, kind,
                    (c.c_float * 3)(*constants), strategy, knobs(), threads)

    key = ("dual_gemm_packed", weights.operand[1:6], weights.header, bucket, a.format, out.format, activation, threads, strategy)
    return RowsCall(planned(key, place, make), row_stride(a), row_stride(out))
