"""Attention on operands of whatever framework. What the C interface cannot check is checked here, all else there."""

import ctypes as c
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
)
from ._options import finite, shown, strategy_of, truth, whole_number
from ._plans import HOST, Place, Plan, calls, knobs, made, planned


class Options(NamedTuple):
    causal: bool
    scale: float | None
    softcap: float
    window_left: int
    window_right: int


def options_of(causal, scale, softcap, window) -> Options:
    truth("causal", causal)
    left, right = window_of(window)
    cap = finite("softcap", softcap)
    if cap < 0:
        refuse(f"softcap is {cap:g}, expected 0 (none) or a finite number above 0")
    return Options(causal, None if scale is None else finite("scale", scale), cap,
                   whole_number("window's left", left, -1, 2**62), whole_number("window's right", right, -1, 2**62))


def window_of(window) -> tuple:
    """Its two numbers, of what has an order."""
    try:
        left, right = window if isinstance(window, (tuple, list)) or hasattr(window, "shape") else ()
    except (TypeError, ValueError):
        refuse(f"window is {shown(window)}, expected the keys to the left and to the right that are visible, -1 for all")
    return left, right


class Serving(NamedTuple):
    """What serving adds to q, k and v."""

    block_table: Operand | None = None
    seqused_k: Operand | None = None
    sinks: Operand | None = None
    q_descale: Operand | None = None
    k_descale: Operand | None = None
    v_descale: Operand | None = None


PLAIN = Serving()


class Prepared(NamedTuple):
    plan: Plan
    strides: list
    table_stride: int
    descale_strides: list


class Shape(NamedTuple):
    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    head_dim: int
    value_dim: int
    page_size: int = 0
    pages: int = 0


FP8 = (lib.FP8_E4M3, lib.UINT8)
HEAD_DIMS, _VALUE_DIMS = (64, 128, 192, 256, 576), (64, 128, 192, 256, 512)


def stored_format(operand: Operand) -> int:
    """FP8 may come as bytes."""
    return lib.FP8_E4M3 if operand.format in FP8 else operand.format


def out_format(q: Operand) -> int:
    """Of a new output: that of q, or bfloat16 of q in FP8."""
    return lib.BF16 if q.format in FP8 else q.format


def shape_of(q: Operand, k: Operand, v: Operand, cu_seqlens_q: Operand | None, cu_seqlens_k: Operand | None,
             serving: Serving = PLAIN) -> Shape:
    """The extents, with the shapes checked."""
    expect_format(q, lib.FP16, lib.BF16, *FP8)
    expect_format(k, *(FP8 if q.format in FP8 else (q.format, *FP8)))
    expect_format(v, k.format)
    if (serving.block_table is None) != (serving.seqused_k is None):
        refuse("one of block_table and seqused_k is missing, expected both or neither")
    if serving.block_table is not None:
        return _shape_of_pages(q, k, v, cu_seqlens_q, cu_seqlens_k, serving)
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
            _expect_list(offsets, "[B + 1]")
        batch = _sequences(cu_seqlens_q)
        expect_shape(cu_seqlens_k, cu_seqlens_q.shape, "that of cu_seqlens_q")
    expect_rank(v, len(k.shape), "as many as k")
    expect_shape(v, (*k.shape[:-1], v.shape[-1]), "that of k but for the last dimension")
    return Shape(batch, heads, kv_heads, queries, keys, width, v.shape[-1])


def expect_widths(shape: Shape) -> None:
    """Of what a call that is traced knows before it runs; else the C interface says the same."""
    for what, width, widths in (("q and k", shape.head_dim, HEAD_DIMS), ("v", shape.value_dim, _VALUE_DIMS)):
        if width not in widths:
            refuse(f"the last dimension of {what} is {width}, expected {', '.join(map(str, widths[:-1]))} or {widths[-1]}")


def _shape_of_pages(q, k, v, cu_seqlens_q, cu_seqlens_k, serving) -> Shape:
    if cu_seqlens_q is None or cu_seqlens_k is not None:
        refuse("block_table takes cu_seqlens_q and no cu_seqlens_k: queries are packed, and seqused_k says how many keys there are")
    expect_rank(q, 3, "[T, H, D]")
    expect_rank(k, 4, "[pages, page size, Hk, D]")
    (queries, heads, width), (pages, page_size, kv_heads, _) = q.shape, k.shape
    expect_shape(k, (pages, page_size, kv_heads, width), "[pages, page size, Hk, D] with the D of q")
    expect_rank(v, 4, "[pages, page size, Hk, D]")
    expect_shape(v, (*k.shape[:-1], v.shape[-1]), "that of k but for the last dimension")
    _expect_list(cu_seqlens_q, "[B + 1]")
    batch = _sequences(cu_seqlens_q)
    _expect_list(serving.seqused_k, "[B]")
    expect_shape(serving.seqused_k, (batch,), "[B], with the B of cu_seqlens_q")
    table = serving.block_table
    expect_format(table, lib.INT32)
    expect_rank(table, 2, "[B, pages of a sequence]")
    expect_shape(table, (batch, table.shape[1]), "[B, pages of a sequence], with the B of cu_seqlens_q")
    return Shape(batch, heads, kv_heads, queries, table.shape[1] * page_size, width, v.shape[-1], page_size, pages)


def _expect_list(numbers: Operand, shape: str) -> None:
    expect_format(numbers, lib.INT32)
    expect_rank(numbers, 1, shape)
    expect_contiguous(numbers)


def _sequences(cu_seqlens_q: Operand) -> int:
    if cu_seqlens_q.shape[0] == 0:
        refuse("cu_seqlens_q is empty, expected the offsets of at least one sequence")
    return cu_seqlens_q.shape[0] - 1


def lse_shape(q_shape: tuple, variable_length: bool) -> tuple:
    return (q_shape[1], q_shape[0]) if variable_length else tuple(q_shape[:-1])


def out_shape(q_shape: tuple, v_shape: tuple) -> tuple:
    return (*q_shape[:-1], v_shape[-1]) if v_shape else tuple(q_shape)


def run(q: Operand, k: Operand, v: Operand, out: Operand, lse: Operand | None, cu_seqlens_q: Operand | None,
        cu_seqlens_k: Operand | None, options: Options, serving: Serving = PLAIN, *, place: Place = HOST, threads: int = 0,
        strategy: str | None = None) -> Prepared:
    """out = softmax(q·kᵀ·scale + mask)·v for each batch and head. Returns what such a call is made again with."""
    named = strategy_of(strategy)
    extra = (lse, cu_seqlens_q, cu_seqlens_k, *serving)
    key = ("attention", q[2:6], k[2:6], v[2:6], out[2:6], tuple(one and one[2:6] for one in extra), options, threads, named)
    call = calls.get(key) or calls.make(key, lambda: _prepared(q, k, v, out, extra, options, place, threads, named))
    plan, strides = call.plan, call.strides
    pointers = [one and one.pointer for one in extra]
    rows = (plan.handle, place.stream, q.pointer, strides[0], k.pointer, strides[1], v.pointer, strides[2], out.pointer, strides[3])
    workspace = place.workspace(plan.workspace_bytes)
    descales = [given for pair in zip(pointers[6:], call.descale_strides) for given in pair]
    lib.check(plan.run(*rows, *pointers[:4], call.table_stride, *pointers[4:6], *descales, workspace))
    return call


def _strides(operand: Operand) -> c.Array | None:
    return None if 0 in operand.shape else (c.c_int64 * len(operand.strides))(*operand.strides)


def _table_stride(table: Operand | None) -> int:
    if table is None or 0 in table.shape:
        return 0
    row, column = table.strides
    has_one_row = table.shape[0] == 1
    if (table.shape[1] > 1 and column != 1) or (not has_one_row and row < table.shape[1]):
        refuse(f"block_table has the strides {list(table.strides)}, expected rows of its own that are contiguous")
    return 0 if has_one_row else row


def _descale_strides(descale: Operand | None, batch: int, kv_heads: int) -> c.Array | None:
    """Of [B, Hk], with 0 where sequences or heads share one."""
    if descale is None:
        return None
    expect_format(descale, lib.FP32)
    expect_rank(descale, 2, "[B, Hk], with 1 where one is shared")
    if descale.shape[0] not in (1, batch) or descale.shape[1] not in (1, kv_heads):
        refuse(f"{descale.name} has the shape {list(descale.shape)}, expected {[batch, kv_heads]}, with 1 where one is shared")
    return (c.c_int64 * 2)(*(0 if extent == 1 else stride for extent, stride in zip(descale.shape, descale.strides)))


def expect_serving(q: Operand, k: Operand, shape: Shape, serving: Serving) -> list:
    """The strides of the descales, with them and the sinks checked."""
    if serving.sinks is not None:
        expect_format(serving.sinks, lib.FP32)
        expect_shape(serving.sinks, (shape.heads,), "[H]")
        expect_contiguous(serving.sinks)
    descales = (serving.q_descale, serving.k_descale, serving.v_descale)
    for descale, scaled, what in zip(descales, (q, k, k), ("queries", "keys and values", "keys and values")):
        if descale is not None and scaled.format not in FP8:
            refuse(f"{descale.name} is given, but {what} are not float8_e4m3fn: leave it out")
    return [_descale_strides(one, shape.batch, shape.kv_heads) for one in descales]


def _prepared(q: Operand, k: Operand, v: Operand, out: Operand, extra: tuple, options: Options, place: Place, threads: int,
              strategy: bytes | None) -> Prepared:
    lse, cu_seqlens_q, cu_seqlens_k, *rest = extra
    serving = Serving(*rest)
    shape = shape_of(q, k, v, cu_seqlens_q, cu_seqlens_k, serving)
    expect_format(out, *((lib.FP16, lib.BF16) if q.format in FP8 else (q.format,)))
    expect_shape(out, out_shape(q.shape, v.shape), "that of q with the last dimension of v")
    has_lengths = cu_seqlens_q is not None
    if lse is not None:
        expect_format(lse, lib.FP32)
        expect_shape(lse, lse_shape(q.shape, has_lengths), "[B, H, Sq], or [H, T] where lengths vary")
        expect_contiguous(lse)
    descale_strides = expect_serving(q, k, shape, serving)
    expect_same_device(q, k, v, out, *extra)
    table_stride = _table_stride(serving.block_table)
    formats = (out.format, stored_format(q), stored_format(k))

    def make() -> Plan:
        scale = None if options.scale is None else c.byref(c.c_float(options.scale))
        return made("attention", lib.library().thresher_attention_plan_serving_flat, *q.device, *formats, *shape[:7],
                    int(options.causal), scale, options.window_left, options.window_right, c.byref(c.c_float(options.softcap)),
                    int(has_lengths), shape.page_size, shape.pages, int(serving.sinks is not None), strategy, knobs(), 0, threads)

    key = ("attention", q.device, formats, shape, options, has_lengths, serving.sinks is not None, threads, strategy)
    return Prepared(planned(key, place, make), [_strides(one) for one in (q, k, v, out)], table_stride, descale_strides)
