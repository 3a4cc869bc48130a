"""Attention on operands of whatever framework. What the C interface cannot check is checked here, all else there."""

import ctypes as c
from typing import NamedTuple

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
)
from ._options import finite, strategy_of, whole_number
from ._plans import HOST, Place, Plan, calls, made, planned


class Options(NamedTuple):
    causal: bool
    scale: float | None
    softcap: float
    window_left: int
    window_right: int


def options_of(causal, scale, softcap, window) -> Options:
    if not isinstance(causal, bool):
        refuse(f"causal is {causal!r}, expected True or False")
    try:
        left, right = window
    except (TypeError, ValueError):
        refuse(f"window is {window!r}, expected the keys to the left and to the right that are visible, -1 for all")
    return Options(causal, None if scale is None else finite("scale", scale), finite("softcap", softcap),
                   whole_number("window's left", left, -1, 2**62), whole_number("window's right", right, -1, 2**62))


def shape_of(q: Operand, k: Operand, v: Operand, cu_seqlens_q: Operand | None, cu_seqlens_k: Operand | None) -> tuple:
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
        assert cu_seqlens_k is not None
        for offsets in (cu_seqlens_q, cu_seqlens_k):
            expect_format(offsets, lib.INT32)
            expect_rank(offsets, 1, "[B + 1]")
            expect_contiguous(offsets)
        batch = cu_seqlens_q.shape[0] - 1
        if batch < 0:
            refuse("cu_seqlens_q is empty, expected the offsets of at least one sequence")
        expect_shape(cu_seqlens_k, cu_seqlens_q.shape, "that of cu_seqlens_q")
    expect_shape(v, k.shape, "that of k")
    return batch, heads, kv_heads, queries, keys, width


def lse_shape(q_shape: tuple, variable_length: bool) -> tuple:
    return (q_shape[1], q_shape[0]) if variable_length else tuple(q_shape[:-1])


def run(q: Operand, k: Operand, v: Operand, out: Operand, lse: Operand | None, cu_seqlens_q: Operand | None,
        cu_seqlens_k: Operand | None, options: Options, *, place: Place = HOST, threads: int = 0,
        strategy: str | None = None) -> tuple[Plan, list]:
    """out = softmax(q·kᵀ·scale + mask)·v for each batch and head."""
    named = strategy_of(strategy)
    extra = (lse, cu_seqlens_q, cu_seqlens_k)
    key = ("attention", q[2:6], k[2:6], v[2:6], out[2:6], tuple(one and one[2:6] for one in extra), options, threads, named)
    call = calls.get(key) or calls.make(key, lambda: _prepared(q, k, v, out, extra, options, place, threads, named))
    expect_apart(out, q, k, v, lse)
    plan, strides = call
    lib.check(plan.run(
        plan.handle, place.stream, q.pointer, strides[0], k.pointer, strides[1], v.pointer, strides[2], out.pointer, strides[3],
        *(one and one.pointer for one in extra), place.workspace(plan.workspace_bytes)))
    return call


def _strides(operand: Operand) -> c.Array | None:
    return None if 0 in operand.shape else (c.c_int64 * len(operand.strides))(*operand.strides)


def _prepared(q: Operand, k: Operand, v: Operand, out: Operand, extra: tuple, options: Options, place: Place, threads: int,
              strategy: bytes | None) -> tuple[Plan, list]:
    lse, cu_seqlens_q, cu_seqlens_k = extra
    shape = shape_of(q, k, v, cu_seqlens_q, cu_seqlens_k)
    expect_format(out, q.format)
    expect_shape(out, q.shape, "that of q")
    has_lengths = cu_seqlens_q is not None
    if lse is not None:
        expect_format(lse, lib.FP32)
        expect_shape(lse, lse_shape(q.shape, has_lengths), "[B, H, Sq], or [H, T] where lengths vary")
        expect_contiguous(lse)
    expect_same_device(q, k, v, out, *extra)

    def make() -> Plan:
        scale = None if options.scale is None else c.byref(c.c_float(options.scale))
        return made("attention", lib.library().thresher_attention_plan_flat, *q.device, q.format, *shape, int(options.causal),
                    scale, options.window_left, options.window_right, c.byref(c.c_float(options.softcap)), int(has_lengths),
                    strategy, None, 0, threads)

    key = ("attention", q.device, q.format, shape, options, has_lengths, threads, strategy)
    return planned(key, place, make), [_strides(one) for one in (q, k, v, out)]
