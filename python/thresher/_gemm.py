"""The plain product on operands of whatever framework. What the C interface cannot check is checked here, all else there."""

import ctypes as c

from . import _grouped
from . import _library as lib
from ._library import refuse
from ._operands import (
    Operand,
    expect_contiguous,
    expect_format,
    expect_rank,
    expect_same_device,
    expect_shape,
    row_stride,
    with_elements,
)
from ._options import OPERAND_FORMATS, OUTPUT_FORMATS, expect_sixteen_bits_on_gpu, strategy_of
from ._packed import Block, Handle, Part, opened
from ._plans import HOST, Place, Plan, RowsCall, calls, knobs, made, planned, row_bucket


def run(a: Operand, b: Operand, bias: Operand | None, out: Operand, *, place: Place = HOST, threads: int = 0,
        strategy: str | None = None, activation: int = 0) -> RowsCall:
    """out[M,N] = a·bᵀ + bias, and the activation of that, 0 for none."""
    named = strategy_of(strategy)
    key = ("gemm", a[2:6], b[1:], bias and bias[1:], out[2:6], threads, named, activation)
    call = calls.get(key) or calls.make(key, lambda: _prepared(a, b, bias, out, place, threads, named, activation))
    call.run(a, out, place)
    return call


def run_packed(a: Operand, weights: Block, out: Operand, *, place: Place = HOST, threads: int = 0,
               strategy: str | None = None, activation: int = 0) -> RowsCall:
    """The same of packed weights."""
    named = strategy_of(strategy)
    key = ("gemm_packed", a[2:6], weights.operand[1:6], weights.header, out[2:6], threads, named, activation)
    call = calls.get(key) or calls.make(key, lambda: _prepared_packed(a, weights, out, place, threads, named, activation))
    call.run(a, out, place)
    return call


def pack(b: Operand, bias: Operand | None, numerics: str) -> Handle:
    """As the one expert of a grouped product, which is how blocks keep them."""
    expect_weights(b, bias)
    stacks = (None if one is None else one._replace(shape=(1, *one.shape), strides=(0, *one.strides)) for one in (b, bias))
    return _grouped.pack(_grouped.Weights(next(stacks), None, next(stacks), None, None), numerics)


def expert(weights: Block) -> Handle:
    """The weights in a block, which hold one matrix."""
    held = opened("grouped", weights)
    if held.info.experts != 1 or held.info.matrices != 1:
        refuse(f"the weights are {'gate and up' if held.info.matrices == 2 else 'a matrix'} of {held.info.experts} experts, expected "
               f"those that pack_gemm gave")
    return held


def part(held: Handle) -> Part:
    return Part("gemm", lib.library().thresher_gemm_weights_of_expert, held.handle)


def expect_weights(b: Operand, bias: Operand | None) -> None:
    expect_rank(b, 2, "[N, K]")
    expect_format(b, *OPERAND_FORMATS)
    if b.scales is not None or b.global_scale is not None:
        expect_contiguous(b)
    if bias is not None:
        expect_format(bias, *OUTPUT_FORMATS)
        expect_shape(bias, b.shape[:1], "one number for each row of the weights")
        expect_contiguous(bias)
    expect_same_device(b, bias)


def _expect_rows(a: Operand, out: Operand, columns: int) -> None:
    expect_format(a, *OPERAND_FORMATS)
    expect_format(out, *OUTPUT_FORMATS)
    expect_shape(out, (a.shape[0], columns), "[M, N]")


def _problem(a: Operand, rows: int, n: int, k: int, b: int, out: Operand, has_bias: bool,
             activation: int) -> lib.thresher_gemm_problem:
    return lib.thresher_gemm_problem.made(a=a.format, b=b, out=out.format, m=rows, n=n, k=k, bias=int(has_bias), activation=activation)


def _prepared(a: Operand, b: Operand, bias: Operand | None, out: Operand, place: Place, threads: int,
              strategy: bytes | None, activation: int) -> RowsCall:
    expect_rank(a, 2, "[M, K]")
    expect_weights(b, bias)
    expect_shape(b, (b.shape[0], a.shape[1]), "[N, K] with the K of a")
    columns, depth = b.shape
    _expect_rows(a, out, columns)
    expect_same_device(a, b, out)
    expect_sixteen_bits_on_gpu(b)
    bias = with_elements(bias)
    stride = row_stride(b)
    bucket = row_bucket(a.shape[0])

    def make() -> Plan:
        device = lib.Device(*a.device)
        matrix = lib.thresher_matrix.made(format=b.format, data=b.pointer, shape=(columns, depth), device=device, row_stride=stride,
                                          scales=b.scales, global_scale=b.global_scale, scale_layout=b.scale_layout)
        problem = _problem(a, bucket, columns, depth, b.format, out, bias is not None, activation)
        options = lib.thresher_dual_gemm_options.made(threads=threads, strategy=strategy, knobs=knobs())
        return made("gemm", lib.library().thresher_gemm_plan_raw, device, c.byref(problem), c.byref(matrix), bias and bias.pointer,
                    lib.FP32 if bias is None else bias.format, c.byref(options))

    key = ("gemm", a.device, bucket, a.format, out.format, b[1:], bias and bias[1:], threads, strategy, activation)
    return RowsCall(planned(key, place, make), row_stride(a), row_stride(out))


def _prepared_packed(a: Operand, weights: Block, out: Operand, place: Place, threads: int, strategy: bytes | None,
                     activation: int) -> RowsCall:
    expect_rank(a, 2, "[M, K]")
    expect_same_device(a, weights.operand, out)
    held = expert(weights)
    if a.shape[1] != held.info.k:
        refuse(f"a has rows of {a.shape[1]} elements, but the weights have K = {held.info.k}")
    _expect_rows(a, out, held.info.n)
    bucket = row_bucket(a.shape[0])

    def make() -> Plan:
        problem = _problem(a, bucket, held.info.n, held.info.k, held.format, out, held.info.has_bias, activation)
        options = lib.thresher_dual_gemm_options.made(threads=threads, strategy=strategy, knobs=knobs())
        of_expert = part(held)
        return made("gemm", lib.library().thresher_gemm_plan, lib.Device(*a.device), c.byref(problem), of_expert.handle,
                    c.byref(options))

    key = ("gemm_packed", weights.operand[1:6], weights.header, bucket, a.format, out.format, threads, strategy, activation)
    return RowsCall(planned(key, place, make), row_stride(a), row_stride(out))
