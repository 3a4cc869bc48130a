"""Quantization of tokens on operands of whatever framework. What the C interface cannot check is checked here, all else there."""

import ctypes as c
from typing import NamedTuple

from . import _library as lib
from ._operands import Operand, expect_format, expect_rank, row_stride
from ._options import one_of
from ._plans import HOST, Place, Plan, calls, made, planned, row_bucket

FORMATS = {"fp8_block": lib.FP8_BLOCK, "fp8_row": lib.FP8_ROW}
LAYOUTS = {"row_major": 0, "column_major": 2}
BLOCK = 128  # columns that share a scale


class Options(NamedTuple):
    format: int
    scale_layout: int
    powers_of_two: bool

    def scales_shape(self, rows: int, columns: int) -> tuple:
        blocks = -(-columns // BLOCK)
        if self.format == lib.FP8_ROW:
            return (rows,)
        return (rows, blocks) if self.scale_layout == LAYOUTS["row_major"] else (blocks, -(-rows // 4) * 4)


def options_of(format: str, scale_layout: str, powers_of_two: bool) -> Options:
    options = Options(one_of("format", format, FORMATS), one_of("scale_layout", scale_layout, LAYOUTS), powers_of_two)
    if options.format == lib.FP8_ROW and options.scale_layout != LAYOUTS["row_major"]:
        lib.refuse("scale_layout is 'column_major', but the scales are one of each row: leave it 'row_major'")
    return options


class QuantizeCall(NamedTuple):
    plan: Plan
    x_stride: int


def run(x: Operand, values: Operand, scales: Operand, options: Options, *, place: Place = HOST, threads: int = 0) -> QuantizeCall:
    """Writes the values and the scales of x, which are new tensors that fit it. Returns what such a call is made again with."""
    key = ("quantize", *x[2:6], options, threads)
    call = calls.get(key) or calls.make(key, lambda: _prepared(x, options, place, threads))
    lib.check(call.plan.run(call.plan.handle, place.stream, x.shape[0], x.pointer, call.x_stride, values.pointer, 0, scales.pointer,
                            options.scale_layout, options.powers_of_two))
    return call


def _prepared(x: Operand, options: Options, place: Place, threads: int) -> QuantizeCall:
    expect_rank(x, 2, "[rows, K]")
    expect_format(x, lib.FP16, lib.BF16)
    bucket = row_bucket(x.shape[0])

    def make() -> Plan:
        problem = lib.thresher_quantize_problem.made(x=x.format, out=options.format, rows=bucket, columns=x.shape[1])
        return made("quantize", lib.library().thresher_quantize_plan, lib.Device(*x.device), c.byref(problem), threads)

    key = ("quantize", x.device, x.format, x.shape[1], bucket, options.format, threads)
    return QuantizeCall(planned(key, place, make), row_stride(x))
