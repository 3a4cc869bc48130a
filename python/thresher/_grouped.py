"""The grouped products on operands of whatever framework. What the C interface cannot check is checked here, all else there."""

import ctypes as c
from collections.abc import Callable
from typing import NamedTuple

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
from ._options import ACTIVATIONS, OPERAND_FORMATS, ORDERS, OUTPUT_FORMATS, UNGATED, expect_sixteen_bits_on_gpu, one_of, strategy_of
from ._packed import Block, Handle, opened
from ._packed import made as made_weights
from ._packed import numerics_of
from ._plans import HOST, Place, Plan, calls, knobs, made, planned, row_bucket

PACKED, SLOTS, GATHERED = range(3)


class Weights(NamedTuple):
    """Of all experts. `order` is that of gate and up in b1 where b2 is None, and None of a product without an activation."""

    b1: Operand
    b2: Operand | None
    bias1: Operand | None
    bias2: Operand | None
    order: str | None


class Rows(NamedTuple):
    """Which rows experts own."""

    offsets: Operand | None
    counts: Operand | None
    row_ids: Operand | None
    row_ids_divisor: int
    row_weights: Operand | None


class Call(NamedTuple):
    """What a call needs beside the operands."""

    plan: Plan
    count: int
    tokens: int
    a_stride: int
    out_stride: int


def run(a: Operand, weights: Weights | Block, rows: Rows, out: Operand, activation: tuple | None, *, place: Place = HOST,
        threads: int = 0, strategy: str | None = None) -> Call:
    """The rows of `out` that experts own: each with the weights of its expert."""
    named = strategy_of(strategy)
    key = ("grouped", a[2:6], _key_of(weights),
           tuple(one and one[2:6] for one in (*rows[:3], rows.row_weights)), rows.row_ids_divisor, out[2:6], activation, threads,
           named)
    call = calls.get(key) or calls.make(key, lambda: _prepared(a, weights, rows, out, activation, place, threads, named))
    groups = rows.counts if rows.offsets is None else rows.offsets
    assert groups is not None
    plan = call.plan
    lib.check(plan.run(
        plan.handle, place.stream, a.scale_layout, call.count, call.tokens, a.pointer, call.a_stride, a.scales, a.global_scale,
        out.pointer, call.out_stride, groups.pointer, rows.row_ids and rows.row_ids.pointer, rows.row_weights and rows.row_weights.pointer,
        place.workspace(plan.workspace_bytes)))
    return call


def pack(weights: Weights, numerics: str) -> Handle:
    """Of b1 alone, without an order, the one matrix of the grouped GEMM."""
    if weights.order is not None:
        one_of("order", weights.order, ORDERS)
    view = _view(weights, has_activation=False)
    expect_same_device(*weights[:4])
    packed = lib.thresher_grouped_weights_view.made(device=lib.Device(*weights.b1.device), **view)
    return made_weights("grouped", lib.library().thresher_grouped_pack, c.byref(packed), numerics_of(numerics))


def _key_of(weights: Weights | Block) -> tuple:
    if isinstance(weights, Block):
        return weights.operand[1:6], weights.header
    if weights.order is not None:
        one_of("order", weights.order, ORDERS)
    return tuple(one and one[1:] for one in weights[:4]), weights.order


def _view(weights: Weights, has_activation: bool) -> dict:
    """The members of thresher_grouped_weights_view."""
    b1, b2, bias1, bias2, order = weights
    if has_activation and b2 is None and order is None:
        refuse("order is missing: say how gate and up lie in b1, gate_first, up_first or interleaved, or give b2")
    expect_rank(b1, 3, "[E, N, K]")
    expect_format(b1, *OPERAND_FORMATS)
    experts, both, depth = b1.shape
    columns = both
    if order:
        if b2 is not None:
            refuse("order is that of gate and up in one tensor, but b2 is given too: leave one of them out")
        if both % 2:
            refuse(f"b1 has {both} rows for each expert, expected an even number: half of them gate, half up")
        columns = both // 2
    if b2 is not None:
        expect_format(b2, b1.format)
        expect_shape(b2, b1.shape, "that of b1")
        if b2.strides != b1.strides or b2.scale_layout != b1.scale_layout:
            refuse("b1 and b2 lie differently in memory, expected equal strides and scale layouts: make both contiguous")
    if (bias1 is None) != (bias2 is None) and b2 is not None or bias1 is None and bias2 is not None:
        refuse("one of the biases is missing, expected both or neither")
    if bias2 is not None and b2 is None:
        refuse("bias2 is given without b2, expected bias1 alone")
    for bias in (bias1, bias2):
        if bias is not None and bias1 is not None:
            expect_format(bias, *OUTPUT_FORMATS)
            expect_format(bias, bias1.format)
            expect_shape(bias, (experts, both), "one number for each row of the weights")
            expect_contiguous(bias)
    bias1, bias2 = with_elements(bias1), with_elements(bias2)
    stride = row_stride(b1)
    expert_stride = b1.strides[0] if experts > 1 else both * stride
    if expert_stride == 0 and both * depth > 0:
        refuse("b1 repeats the weights of one expert (a stride of 0), expected those of each: make it contiguous")
    return dict(
        format=b1.format, experts=experts, n=columns, k=depth, order=0 if order is None else ORDERS[order], scale_layout=b1.scale_layout, b1=b1.pointer,
        b2=None if b2 is None else b2.pointer, expert_stride=expert_stride, row_stride=stride, b1_scales=b1.scales,
        b2_scales=None if b2 is None else b2.scales, b1_global_scales=b1.global_scale,
        b2_global_scales=None if b2 is None else b2.global_scale, bias1=None if bias1 is None else bias1.pointer,
        bias2=None if bias2 is None else bias2.pointer, bias_format=lib.FP32 if bias1 is None else bias1.format)


def rows_of(a: Operand, experts: int, offsets: Operand | None, counts: Operand | None, row_ids: Operand | None) -> tuple:
    """(layout, rows of the output, of one slot, and rows of `a`), with the lists checked."""
    if (offsets is None) == (counts is None):
        refuse("offsets and counts are both given, expected one of them" if offsets is not None else
               "neither offsets nor counts are given, expected offsets [E + 1], or with slots counts [E]")
    for operand in (offsets, counts, row_ids):
        if operand is not None:
            expect_format(operand, lib.INT32)
            expect_rank(operand, 1, "a list")
            expect_contiguous(operand)
    if counts is not None:
        expect_rank(a, 3, "[E, capacity, K]")
        expect_shape(counts, (experts,), "one for each expert")
        if row_ids is not None:
            refuse("row_ids are given with counts, expected them with offsets alone")
        if a.shape[0] != experts:
            refuse(f"a has {a.shape[0]} slots, but the weights have {experts} experts")
        return SLOTS, a.shape[1], 0
    expect_rank(a, 2, "[rows, K]")
    assert offsets is not None
    expect_shape(offsets, (experts + 1,), "one for each expert and one more")
    if row_ids is not None:
        return GATHERED, row_ids.shape[0], a.shape[0]
    return PACKED, a.shape[0], 0


def _expect_close_slots(operand: Operand) -> None:
    if len(operand.shape) == 3 and operand.shape[0] > 1 and 0 not in operand.shape and (
            operand.strides[0] != operand.shape[1] * row_stride(operand)):
        refuse(f"{operand.name} has gaps between its slots, expected one slot behind the other: make it contiguous")


class _Held(NamedTuple):
    """What a call is to know of its weights, and how a plan is made from them."""

    experts: int
    n: int
    k: int
    format: int
    has_bias: bool
    operands: tuple
    key: tuple
    plan: Callable[[lib.Device, lib.thresher_grouped_problem, lib.thresher_dual_gemm_options], Plan]


def _held(weights: Weights | Block, has_activation: bool) -> _Held:
    library = lib.library()
    if isinstance(weights, Block):
        held = opened("grouped", weights)
        info = held.info
        return _Held(info.experts or 0, info.n, info.k, held.format, info.has_bias, (weights.operand,), _key_of(weights),
                     lambda device, problem, options: made("grouped", library.thresher_grouped_plan, device, c.byref(problem),
                                                           held.handle, c.byref(options)))
    view = _view(weights, has_activation)
    expect_sixteen_bits_on_gpu(weights.b1, weights.b2)

    def plan(device, problem, options) -> Plan:
        packed = lib.thresher_grouped_weights_view.made(device=device, **view)
        return made("grouped", library.thresher_grouped_plan_raw, device, c.byref(problem), c.byref(packed), c.byref(options))

    return _Held(view["experts"], view["n"], view["k"], weights.b1.format, with_elements(weights.bias1) is not None, weights[:4],
                 tuple(view.values()), plan)


def _prepared(a: Operand, weights: Weights | Block, rows: Rows, out: Operand, activation: tuple | None, place: Place, threads: int,
              strategy: bytes | None) -> Call:
    held = _held(weights, activation is not None and activation[0] != ACTIVATIONS[UNGATED])
    layout, count, tokens = rows_of(a, held.experts, rows.offsets, rows.counts, rows.row_ids)
    if rows.row_ids is None and rows.row_ids_divisor != 1:
        refuse(f"row_ids_divisor is {rows.row_ids_divisor}, but row_ids are missing, which it divides")
    expect_format(a, *OPERAND_FORMATS)
    expect_format(out, *OUTPUT_FORMATS)
    if a.shape[-1] != held.k:
        refuse(f"a has rows of {a.shape[-1]} elements, but the weights have K = {held.k}")
    outer = (held.experts, count) if layout == SLOTS else (count,)
    expect_shape(out, (*outer, held.n), "[rows, N], of slots [E, capacity, N]")
    _expect_close_slots(a)
    _expect_close_slots(out)
    if rows.row_weights is not None:
        expect_format(rows.row_weights, lib.FP32)
        expect_shape(rows.row_weights, outer, "one number for each row of the output")
        expect_contiguous(rows.row_weights)
    expect_same_device(a, out, *held.operands, *rows[:3], rows.row_weights)
    kind, constants = (lib.NO_ACTIVATION, ()) if activation is None else activation
    most_rows = row_bucket(count)
    most_tokens = row_bucket(tokens) if layout == GATHERED else 0
    has_row_weights = rows.row_weights is not None

    def make() -> Plan:
        problem = lib.thresher_grouped_problem.made(
            layout=layout, experts=held.experts, rows=most_rows, n=held.n, k=held.k, tokens=most_tokens,
            row_ids_divisor=rows.row_ids_divisor, a=a.format, b=held.format, out=out.format, activation=kind,
            bias=int(held.has_bias), row_weights=int(has_row_weights), **dict(zip(("alpha", "limit", "up_offset"), constants)))
        options = lib.thresher_dual_gemm_options.made(threads=threads, strategy=strategy, knobs=knobs())
        return held.plan(lib.Device(*a.device), problem, options)

    key = ("grouped", a.device, layout, most_rows, most_tokens, rows.row_ids_divisor, a.format, out.format, kind, constants,
           has_row_weights, held.key, threads, strategy)
    return Call(planned(key, place, make), count, tokens, row_stride(a), row_stride(out))
