"""Append on operands of whatever framework. What the C interface cannot see is checked here, all else there."""

import ctypes as c
from typing import NamedTuple

from . import _library as lib
from ._library import refuse
from ._operands import INT64, Operand, expect_contiguous, expect_format, expect_rank, expect_same_device, expect_shape
from ._options import number, one_of, whole_number
from ._plans import HOST, Place, Plan, calls, made, planned, row_bucket

PAIRS = {"none": 0, "halves": 1, "interleaved": 2}
THETA = 10000.0  # by default
_BITS = {lib.INT32: 32, INT64: 64}


class Tensors(NamedTuple):
    q: Operand | None
    q_out: Operand | None
    k: Operand
    v: Operand
    k_out: Operand | None
    positions: Operand | None
    slots: Operand
    cos_sin: Operand | None
    k_cache: Operand
    v_cache: Operand
    k_descale: Operand | None
    v_descale: Operand | None


_NUMBERS = ("positions", "slots")
_VIEWS = tuple(name for name in Tensors._fields if name not in _NUMBERS)


class Options(NamedTuple):
    pairs: int
    rotary_dim: int
    theta: float


def options_of(pairs: str, rotary_dim: int, theta: float) -> Options:
    return Options(one_of("pairs", pairs, PAIRS), whole_number("rotary_dim", rotary_dim, 0), number("theta", theta))


class Prepared(NamedTuple):
    """A call without addresses."""

    plan: Plan
    views: c.Array  # thresher_tensor, in the order of _VIEWS
    bits: int

    def tensors(self, given: Tensors) -> tuple[lib.Versioned, c.Array]:
        """What the C interface takes, and what must be kept for as long."""
        views = type(self.views).from_buffer_copy(self.views)
        tensors = lib.thresher_append_tensors.made(number_bits=self.bits)
        for view, name in zip(views, _VIEWS):
            operand = getattr(given, name)
            if operand is not None:
                view.data = operand.pointer
                setattr(tensors, name, c.addressof(view))
        for name in _NUMBERS:
            operand = getattr(given, name)
            setattr(tensors, name, operand and operand.pointer)
        return tensors, views


def run(given: Tensors, options: Options, *, place: Place = HOST, threads: int = 0) -> tuple[Prepared, lib.Versioned, c.Array]:
    """Writes q_out, k_out and the rows of the pages that slots name. Returns what such a call is made again with."""
    key = ("append", *(one and one[2:6] for one in given), options, threads)
    call = calls.get(key) or calls.make(key, lambda: _prepared(given, options, place, threads))
    tensors, views = call.tensors(given)
    lib.check(call.plan.run(call.plan.handle, place.stream, c.byref(tensors)))
    return call, tensors, views


def _prepared(given: Tensors, options: Options, place: Place, threads: int) -> Prepared:
    _expect_ranks(given)
    _expect_formats(given)
    tokens = given.k.shape[0]
    if (given.q is None) != (given.q_out is None):
        refuse("one of q and q_out is missing, expected both or neither")
    if options.pairs != PAIRS["none"] and given.positions is None:
        refuse("positions are missing, expected those of the tokens: with pairs='none' nothing turns")
    if options.theta != THETA and (given.cos_sin is not None or options.pairs == PAIRS["none"]):
        instead = "pairs is 'none' and nothing turns" if given.cos_sin is None else "cos_sin is given in its place"
        refuse(f"theta is {options.theta:g}, but {instead}: leave one of them out")
    bits = {_number_bits(one, tokens) for one in (given.slots, given.positions) if one is not None}
    if len(bits) > 1:
        refuse("one of positions and slots is int32 and the other int64, expected one type")
    expect_same_device(given.k, *given)
    heads = 1 if given.q is None else given.q.shape[1]
    shape = (row_bucket(max(tokens, 1)), heads, *given.k.shape[1:], given.v.shape[2], *given.k_cache.shape[:2],
             0 if given.cos_sin is None else given.cos_sin.shape[0])
    kv_format = _format_of_pages(given.k_cache)

    def make() -> Plan:
        problem = lib.thresher_append_problem.made(
            **dict(zip(("tokens", "heads", "kv_heads", "head_dim", "value_dim", "pages", "page_size", "max_position"), shape)),
            **options._asdict(), format=given.k.format, has_kv_format=1, kv_format=kv_format)
        return made("append", lib.library().thresher_append_plan, lib.Device(*given.k.device), c.byref(problem), threads)

    key = ("append", given.k.device, given.k.format, kv_format, shape, options, threads)
    return Prepared(planned(key, place, make), _views(given), bits.pop())


def _expect_formats(given: Tensors) -> None:
    expect_format(given.k, lib.FP16, lib.BF16)
    for rows in (given.v, given.q, given.q_out, given.k_out):
        if rows is not None:
            expect_format(rows, given.k.format)
    for pool in (given.k_cache, given.v_cache):
        expect_format(pool, given.k.format, lib.FP8_E4M3, lib.UINT8)
    for numbers in (given.cos_sin, given.k_descale, given.v_descale):
        if numbers is not None:
            expect_format(numbers, lib.FP32)


def _expect_ranks(given: Tensors) -> None:
    for rows, shape in ((given.k, "[T, Hk, D]"), (given.v, "[T, Hk, D of values]"), (given.q, "[T, H, D]")):
        if rows is not None:
            expect_rank(rows, 3, shape)
    for pool in (given.k_cache, given.v_cache):
        expect_rank(pool, 4, "[pages, page size, Hk, D]")
    if given.cos_sin is not None:
        expect_rank(given.cos_sin, 2, "[positions, rotary_dim]")
        if given.cos_sin.shape[0] == 0:
            refuse("cos_sin has no positions, expected one row for each, or None for theta")
    for descale in (given.k_descale, given.v_descale):
        if descale is not None:
            expect_rank(descale, 1, "[Hk], or [1] that all heads share")


def _number_bits(numbers: Operand, tokens: int) -> int:
    expect_format(numbers, lib.INT32, INT64)
    expect_shape(numbers, (tokens,), "one for each token of k")
    expect_contiguous(numbers)
    return _BITS[numbers.format]


def _format_of_pages(pool: Operand) -> int:
    """FP8 may come as bytes."""
    return lib.FP8_E4M3 if pool.format == lib.UINT8 else pool.format


def _views(given: Tensors) -> c.Array:
    views = (lib.thresher_tensor * len(_VIEWS))()
    for index, name in enumerate(_VIEWS):
        operand = getattr(given, name)
        if operand is not None:
            format = _format_of_pages(operand) if name in ("k_cache", "v_cache") else operand.format
            views[index] = view = lib.thresher_tensor.made(format=format, device=lib.Device(*operand.device), rank=len(operand.shape))
            views[index].shape[: view.rank] = operand.shape
            views[index].strides[: view.rank] = operand.strides
    return views
