"""The operations on operands of whatever framework: what the C interface cannot check is checked here, all else there."""

import ctypes as c
import functools
import math

from . import _library as lib
from ._library import refuse
from ._operands import (
    Operand,
    expect_apart,
    expect_contiguous,
    expect_format,
    expect_rank,
    expect_same_device,
    expect_shape,
    row_stride,
)
from ._plans import HOST, Place, made, planned, row_bucket

ACTIVATIONS = {"silu": 0, "gelu_tanh": 1, "swiglu_clamped": 2}
ORDERS = {None: 0, "gate_first": 1, "up_first": 2, "interleaved": 3}
PACKED, SLOTS, GATHERED = range(3)

_OPERAND_FORMATS = (lib.FP16, lib.BF16, lib.NVFP4)
_OUTPUT_FORMATS = (lib.FP16, lib.BF16, lib.FP32)


def activation_of(name: str, alpha: float, limit: float, up_offset: float) -> tuple:
    """(number, constants) of the C interface."""
    number = ACTIVATIONS.get(name) if isinstance(name, str) else None
    if number is None:
        refuse(f"activation is {name!r}, expected one of {', '.join(ACTIVATIONS)}")
    return number, (_number("alpha", alpha), _number("limit", limit), _number("up_offset", up_offset))


def _number(name: str, value) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        refuse(f"{name} is {value!r}, expected a number")


def whole_number(name: str, value, least: int, most: int = 2**31 - 1) -> int:
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        refuse(f"{name} is {value!r}, expected a whole number")
    if not least <= number <= most:
        refuse(f"{name} is {number}, expected {least} to {most}")
    return number


def output_format(a: Operand, b: Operand) -> int:
    """What the output is where nobody says: the tokens' format, or that of the weights beside NVFP4 tokens."""
    for operand in (a, b):
        if operand.format != lib.NVFP4:
            return operand.format
    return lib.BF16


def _text(strategy: str | None) -> bytes | None:
    if strategy is not None and not isinstance(strategy, str):
        refuse(f"strategy is {strategy!r}, expected the name of one or None")
    return None if strategy is None else strategy.encode()


def _check_gpu(device: tuple, *weights: Operand | None) -> None:
    # A plan would hold a copy of packed weights, which nobody tells when they change.
    if device[0] != lib.CPU and any(one is not None and one.format == lib.NVFP4 for one in weights):
        raise_unsupported("NVFP4 weights on a GPU are not offered from Python yet: use the C++ or C interface, which pack them once")


def raise_unsupported(sentence: str) -> None:
    from ._errors import UnsupportedError

    raise UnsupportedError(sentence)


def _pointers(weights: Operand) -> tuple:
    return weights.pointer, row_stride(weights), weights.scales, weights.global_scale


def dual_gemm(a: Operand, b1: Operand, b2: Operand, out: Operand, activation: tuple, *, place: Place = HOST,
              threads: int = 0, strategy: str | None = None) -> None:
    """out[M,N] = activation(a·b1ᵀ) ∘ (a·b2ᵀ)."""
    expect_rank(a, 2, "[M, K]")
    expect_rank(b1, 2, "[N, K]")
    expect_format(a, *_OPERAND_FORMATS)
    expect_format(b1, *_OPERAND_FORMATS)
    expect_format(b2, b1.format)
    expect_format(out, *_OUTPUT_FORMATS)
    (rows, depth), (columns, _) = a.shape, b1.shape
    expect_shape(b1, (columns, depth), "[N, K] with the K of a")
    expect_shape(b2, b1.shape, "that of b1")
    expect_shape(out, (rows, columns), "[M, N]")
    expect_same_device(a, b1, b2, out)
    _check_gpu(a.device, b1, b2)
    if b1.scale_layout != b2.scale_layout:
        refuse("b1 and b2 have scales in different layouts, expected one layout")
    gate, up = _pointers(b1), _pointers(b2)
    bucket = row_bucket(rows)
    key = ("dual_gemm", a.device, bucket, columns, depth, a.format, b1.format, out.format, activation, gate, up,
           b1.scale_layout, threads, strategy)

    def make():
        number, constants = activation
        return made("dual_gemm", lib.library().thresher_dual_gemm_plan_raw_flat, *a.device, bucket, columns, depth, a.format,
                    b1.format, out.format, number, (c.c_float * 3)(*constants), *gate, *up, b1.scale_layout, _text(strategy),
                    None, threads)

    plan = planned(key, place, make)
    lib.check(lib.library().thresher_dual_gemm_run_flat(
        plan.handle, place.stream, rows, a.pointer, row_stride(a), a.scales, a.scale_layout, a.global_scale, out.pointer,
        row_stride(out), place.workspace(plan.workspace_bytes)))


def _expert_weights(b1: Operand, b2: Operand | None, order: int, bias1: Operand | None, bias2: Operand | None) -> tuple:
    """(n, k, what the plan's key holds) of the weights of all experts."""
    expect_rank(b1, 3, "[E, N, K]")
    expect_format(b1, *_OPERAND_FORMATS)
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
        if bias is not None:
            expect_format(bias, *_OUTPUT_FORMATS)
            expect_format(bias, bias1.format)
            expect_shape(bias, (experts, both), "one number for each row of the weights")
            expect_contiguous(bias)
    stride = row_stride(b1)
    expert_stride = b1.strides[0] if experts > 1 else both * stride
    if expert_stride == 0 and both * depth > 0:
        refuse("b1 repeats the weights of one expert (a stride of 0), expected those of each: make it contiguous")
    view = dict(
        format=b1.format, experts=experts, n=columns, k=depth, order=order, scale_layout=b1.scale_layout, b1=b1.pointer,
        b2=None if b2 is None else b2.pointer, expert_stride=expert_stride, row_stride=stride, b1_scales=b1.scales,
        b2_scales=None if b2 is None else b2.scales, b1_global_scales=b1.global_scale,
        b2_global_scales=None if b2 is None else b2.global_scale, bias1=None if bias1 is None else bias1.pointer,
        bias2=None if bias2 is None else bias2.pointer, bias_format=lib.FP32 if bias1 is None else bias1.format)
    return experts, columns, depth, view


def grouped(a: Operand, b1: Operand, b2: Operand | None, out: Operand, *, order: str | None, activation: tuple | None,
            offsets: Operand | None, counts: Operand | None, row_ids: Operand | None, row_ids_divisor: int,
            row_weights: Operand | None, bias1: Operand | None, bias2: Operand | None, place: Place = HOST,
            threads: int = 0, strategy: str | None = None) -> None:
    """The rows of `out` that experts own: each with the weights of its expert."""
    experts, columns, depth, view = _expert_weights(b1, b2, _order(order, b2, activation), bias1, bias2)
    layout, rows, tokens = grouped_rows(a, experts, offsets, counts, row_ids)
    expect_format(a, *_OPERAND_FORMATS)
    expect_format(out, *_OUTPUT_FORMATS)
    if a.shape[-1] != depth:
        refuse(f"a has rows of {a.shape[-1]} elements, but the weights have K = {depth}")
    outer = (experts, rows) if layout == SLOTS else (rows,)
    expect_shape(out, (*outer, columns), "[rows, N], of slots [E, capacity, N]")
    for operand in (a, out):
        row_stride(operand)
        if len(operand.shape) == 3 and experts > 1 and 0 not in operand.shape and operand.strides[0] != operand.shape[1] * operand.strides[1]:
            refuse(f"{operand.name} has gaps between its slots, expected one slot behind the other: make it contiguous")
    if row_weights is not None:
        expect_format(row_weights, lib.FP32)
        expect_shape(row_weights, outer, "one number for each row of the output")
        expect_contiguous(row_weights)
    expect_same_device(a, b1, b2, out, offsets, counts, row_ids, row_weights, bias1, bias2)
    _check_gpu(a.device, b1, b2)
    groups = counts if layout == SLOTS else offsets
    number, constants = (lib.NO_ACTIVATION, ()) if activation is None else activation
    most_rows = row_bucket(rows)
    most_tokens = row_bucket(tokens) if layout == GATHERED else 0
    key = ("grouped", a.device, layout, most_rows, most_tokens, row_ids_divisor, a.format, out.format, number, constants,
           row_weights is not None, tuple(view.values()), threads, strategy)

    def make():
        problem = lib.thresher_grouped_problem.made(
            layout=layout, experts=experts, rows=most_rows, n=columns, k=depth, tokens=most_tokens,
            row_ids_divisor=row_ids_divisor, a=a.format, b=b1.format, out=out.format, activation=number,
            bias=int(bias1 is not None), row_weights=int(row_weights is not None),
            **dict(zip(("alpha", "limit", "up_offset"), constants)))
        device = lib.Device(*a.device)
        weights = lib.thresher_grouped_weights_view.made(device=device, **view)
        options = lib.thresher_dual_gemm_options.made(threads=threads, strategy=_text(strategy))
        return made("grouped", lib.library().thresher_grouped_plan_raw, device, c.byref(problem), c.byref(weights),
                    c.byref(options))

    plan = planned(key, place, make)
    lib.check(lib.library().thresher_grouped_run_flat(
        plan.handle, place.stream, a.scale_layout, rows, tokens, a.pointer, row_stride(a), a.scales, a.global_scale, out.pointer,
        row_stride(out), groups.pointer, None if row_ids is None else row_ids.pointer,
        None if row_weights is None else row_weights.pointer, place.workspace(plan.workspace_bytes)))


def _order(order: str | None, b2: Operand | None, activation: tuple | None) -> int:
    if order not in ORDERS:
        refuse(f"order is {order!r}, expected one of {', '.join(name for name in ORDERS if name)}")
    if activation is not None and b2 is None and order is None:
        refuse("order is missing: say how gate and up lie in b1, gate_first, up_first or interleaved, or give b2")
    return ORDERS[order]


def grouped_rows(a: Operand, experts: int, offsets: Operand | None, counts: Operand | None, row_ids: Operand | None) -> tuple:
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
    expect_shape(offsets, (experts + 1,), "one for each expert and one more")
    if row_ids is not None:
        return GATHERED, row_ids.shape[0], a.shape[0]
    return PACKED, a.shape[0], 0


def attention_shape(q: Operand, k: Operand, v: Operand, cu_seqlens_q: Operand | None, cu_seqlens_k: Operand | None) -> tuple:
    """(batch, heads, kv_heads, queries, keys, head_dim), with the shapes checked."""
    expect_format(q, lib.FP16, lib.BF16)
    for operand in (k, v):
        expect_format(operand, q.format)
    if (cu_seqlens_q is None) != (cu_seqlens_k is None):
        refuse("one of cu_seqlens_q and cu_seqlens_k is missing, expected both or neither")
    if cu_seqlens_q is None:
        expect_rank(q, 4, "[B, H, Sq, D]")
        expect_rank(k, 4, "[B, Hk, Sk, D]")
        (batch, heads, queries, width), (_, kv_heads, keys, _) = q.shape, k.shape
        expect_shape(k, (batch, kv_heads, keys, width), "[B, Hk, Sk, D] with the B and D of q")
    else:
        expect_rank(q, 3, "[T, H, D]")
        expect_rank(k, 3, "[Tk, Hk, D]")
        (queries, heads, width), (keys, kv_heads, _) = q.shape, k.shape
        expect_shape(k, (keys, kv_heads, width), "[Tk, Hk, D] with the D of q")
        for operand in (cu_seqlens_q, cu_seqlens_k):
            expect_format(operand, lib.INT32)
            expect_rank(operand, 1, "[B + 1]")
            expect_contiguous(operand)
        batch = cu_seqlens_q.shape[0] - 1
        if batch < 0:
            refuse("cu_seqlens_q is empty, expected the offsets of at least one sequence")
        expect_shape(cu_seqlens_k, cu_seqlens_q.shape, "that of cu_seqlens_q")
    expect_shape(v, k.shape, "that of k")
    return batch, heads, kv_heads, queries, keys, width


def lse_shape(q_shape: tuple, variable_length: bool) -> tuple:
    return (q_shape[1], q_shape[0]) if variable_length else tuple(q_shape[:-1])


@functools.lru_cache(maxsize=4096)
def _array(strides: tuple) -> c.Array:
    return (c.c_int64 * len(strides))(*strides)


def _strides(operand: Operand) -> c.Array | None:
    return None if 0 in operand.shape else _array(operand.strides)


def attention(q: Operand, k: Operand, v: Operand, out: Operand, lse: Operand | None, cu_seqlens_q: Operand | None,
              cu_seqlens_k: Operand | None, *, causal: bool, scale: float | None, softcap: float, window: tuple,
              place: Place = HOST, threads: int = 0, strategy: str | None = None) -> None:
    """out = softmax(q·kᵀ·scale + mask)·v for each batch and head."""
    shape = attention_shape(q, k, v, cu_seqlens_q, cu_seqlens_k)
    expect_format(out, q.format)
    expect_shape(out, q.shape, "that of q")
    has_lengths = cu_seqlens_q is not None
    if lse is not None:
        expect_format(lse, lib.FP32)
        expect_shape(lse, lse_shape(q.shape, has_lengths), "[B, H, Sq], or [H, T] where lengths vary")
        expect_contiguous(lse)
    expect_same_device(q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k)
    expect_apart(out, q, k, v, lse)
    left, right = window
    key = ("attention", q.device, q.format, shape, causal, scale, softcap, left, right, has_lengths, threads, strategy)

    def make():
        batch, heads, kv_heads, queries, keys, width = shape
        return made("attention", lib.library().thresher_attention_plan_flat, *q.device, q.format, batch, heads, kv_heads,
                    queries, keys, width, int(causal), None if scale is None else c.byref(c.c_float(scale)), left, right,
                    c.byref(c.c_float(softcap)), int(has_lengths), _text(strategy), None, 0, threads)

    plan = planned(key, place, make)
    pointer = lambda operand: None if operand is None else operand.pointer
    lib.check(lib.library().thresher_attention_run_flat(
        plan.handle, place.stream, q.pointer, _strides(q), k.pointer, _strides(k), v.pointer, _strides(v),
        out.pointer, _strides(out), pointer(lse), pointer(cu_seqlens_q), pointer(cu_seqlens_k),
        place.workspace(plan.workspace_bytes)))


def attention_options(causal, scale, softcap, window) -> dict:
    """The options of attention, checked as far as types go."""
    if not isinstance(causal, bool):
        refuse(f"causal is {causal!r}, expected True or False")
    try:
        left, right = window
    except (TypeError, ValueError):
        refuse(f"window is {window!r}, expected the keys to the left and to the right that are visible, -1 for all")
    return dict(causal=causal, scale=None if scale is None else _finite("scale", scale), softcap=_finite("softcap", softcap),
                window=(whole_number("window's left", left, -1, 2**62), whole_number("window's right", right, -1, 2**62)))


def _finite(name: str, value) -> float:
    number = _number(name, value)
    if not math.isfinite(number):
        refuse(f"{name} is {number}, expected a finite number")
    return number


def threads_of(threads) -> int:
    return whole_number("threads", threads, 0, 1024)


