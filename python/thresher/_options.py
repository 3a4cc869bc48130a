"""What callers choose beside tensors, checked."""

import math
from typing import NoReturn

from . import _library as lib
from ._errors import UnsupportedError
from ._library import refuse
from ._operands import Operand

ACTIVATIONS = {"silu": 0, "gelu_tanh": 1, "swiglu_clamped": 2}
WITH_CONSTANTS = "swiglu_clamped"
CONSTANTS = {"alpha": 1.702, "limit": 7.0, "up_offset": 1.0}
ORDERS = {"gate_first": 1, "up_first": 2, "interleaved": 3}
NUMERICS = {"exact": 0, "fast": 1}
OPERAND_FORMATS = (lib.FP16, lib.BF16, lib.NVFP4, lib.FP8_TENSOR, lib.FP8_ROW, lib.FP8_BLOCK)
OUTPUT_FORMATS = (lib.FP16, lib.BF16, lib.FP32)


def one_of(name: str, value, choices: dict) -> int:
    number = choices.get(value) if isinstance(value, str) else None
    if number is None:
        refuse(f"{name} is {value!r}, expected one of {', '.join(choices)}")
    return number


def activation_of(name: str, alpha: float | None = None, limit: float | None = None, up_offset: float | None = None) -> tuple:
    """(number, constants) of the C interface. None is a constant's default; another value goes with the activation that has it alone."""
    kind = one_of("activation", name, ACTIVATIONS)
    given = [default if value is None else number(constant, value)
             for (constant, default), value in zip(CONSTANTS.items(), (alpha, limit, up_offset))]
    if name != WITH_CONSTANTS:
        for (constant, default), value in zip(CONSTANTS.items(), given):
            if value != default:
                _refuse_constant(constant, value, name)
    return kind, tuple(given)


def activation_chosen(name: str, alpha: float | None, limit: float | None, up_offset: float | None) -> tuple:
    """The same of constants that a caller gave, or left None: none is given beside an activation without it."""
    chosen = activation_of(name, alpha, limit, up_offset)
    if name != WITH_CONSTANTS:
        for constant, value in zip(CONSTANTS, (alpha, limit, up_offset)):
            if value is not None:
                _refuse_constant(constant, value, name)
    return chosen


def _refuse_constant(constant: str, value: float, activation: str) -> NoReturn:
    refuse(f"{constant} is {value}, but the activation is {activation!r}, which has none: only {WITH_CONSTANTS!r} takes {constant}")


def number(name: str, value) -> float:
    if isinstance(value, (str, bytes)):
        refuse(f"{name} is {value!r}, expected a number")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        refuse(f"{name} is {value!r}, expected a number")


def finite(name: str, value) -> float:
    given = number(name, value)
    if not math.isfinite(given):
        refuse(f"{name} is {given}, expected a finite number")
    return given


def whole_number(name: str, value, least: int, most: int = 2**31 - 1) -> int:
    try:
        given = value.__index__()
    except (AttributeError, TypeError):
        refuse(f"{name} is {value!r}, expected a whole number")
    if not least <= given <= most:
        refuse(f"{name} is {given}, expected {least} to {most}")
    return given


def truth(name: str, value) -> bool:
    if not isinstance(value, bool):
        refuse(f"{name} is {value!r}, expected True or False")
    return value


def threads_of(threads) -> int:
    return whole_number("threads", threads, 0, 1024)


def strategy_of(strategy: str | None) -> bytes | None:
    if strategy is not None and not isinstance(strategy, str):
        refuse(f"strategy is {strategy!r}, expected the name of one or None")
    return None if strategy is None else strategy.encode()


def output_format(*formats: int | str) -> int:
    """What the output is where nobody says, of the formats of tokens and weights: the first of 16 bits."""
    for format in formats:
        if format in OUTPUT_FORMATS:
            return format
    return lib.BF16


def expect_assumed_output(weights: int | None) -> None:
    """Of a call that was traced without seeing its packed weights, whose output was taken to be bfloat16."""
    if weights == lib.FP16:
        refuse("out_dtype is missing beside packed weights in float16 that are traced: give out_dtype='float16', the type of the weights, "
               "or another")


def expect_sixteen_bits_on_gpu(*weights: Operand | None) -> None:
    """A plan would hold a copy of packed weights, which nobody tells when they change."""
    if any(one is not None and one.format == lib.NVFP4 and one.device[0] != lib.CPU for one in weights):
        raise UnsupportedError("NVFP4 weights on a GPU have to be packed once: use pack or pack_grouped, and the functions of packed weights")
