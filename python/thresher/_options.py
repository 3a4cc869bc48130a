"""What callers choose beside tensors, checked."""

import math
from typing import NoReturn

from . import _library as lib
from ._errors import UnsupportedError
from ._library import refuse
from ._operands import FORMAT_NAMES, Operand

ACTIVATIONS = {"silu": 0, "gelu_tanh": 1, "swiglu_clamped": 2}
WITH_CONSTANTS = "swiglu_clamped"
CONSTANTS = {"alpha": 1.702, "limit": 7.0, "up_offset": 1.0}
ORDERS = {"gate_first": 1, "up_first": 2, "interleaved": 3}
NUMERICS = {"exact": 0, "fast": 1}
OPERAND_FORMATS = (lib.FP16, lib.BF16, lib.NVFP4, lib.FP8_TENSOR, lib.FP8_ROW, lib.FP8_BLOCK)
OUTPUT_FORMATS = (lib.FP16, lib.BF16, lib.FP32)
_INFINITE, _NOTHING = 2.0**128 - 2.0**103, 2.0**-150  # from and up to where float32 rounds to these
_K_MULTIPLES = {lib.FP16: 8, lib.BF16: 8}  # those with scales are checked where these are


def shown(value) -> str:
    """In one line."""
    return " ".join(repr(value).split())


def shown_error(error: BaseException) -> str:
    """The first line of what was raised, or its kind."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def one_of(name: str, value, choices: dict) -> int:
    number = choices.get(value) if isinstance(value, str) else None
    if number is None:
        refuse(f"{name} is {shown(value)}, expected one of {', '.join(choices)}")
    return number


def activation_of(name: str, alpha: float | None = None, limit: float | None = None, up_offset: float | None = None) -> tuple:
    """(number, constants) of the C interface. None is a constant's default; another value goes with the activation that has it alone."""
    kind = one_of("activation", name, ACTIVATIONS)
    given = [default if value is None else number(constant, value)
             for (constant, default), value in zip(CONSTANTS.items(), (alpha, limit, up_offset))]
    if not given[1] > 0:
        refuse(f"limit is {given[1]:g}, expected a number above 0")
    if not (math.isfinite(given[0]) and math.isfinite(given[2])):
        refuse(f"alpha is {given[0]:g} and up_offset {given[2]:g}, expected finite numbers")
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


def is_truth(value) -> bool:
    """Of Python's, of NumPy's and of arrays' of one: each counts as 0 or 1 where a number is asked for."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")).removeprefix("torch.") == "bool"


def number(name: str, value) -> float:
    if isinstance(value, (str, bytes)) or is_truth(value):
        refuse(f"{name} is {shown(value)}, expected a number")
    try:
        given = float(value)
    except (TypeError, ValueError, OverflowError):
        refuse(f"{name} is {shown(value)}, expected a number")
    return in_float32(name, given)


def in_float32(name: str, given: float) -> float:
    """The number, which the C interface takes in float32: it may not become 0 or infinite there."""
    size = abs(given)
    if size != math.inf and (size >= _INFINITE or 0 < size <= _NOTHING):
        refuse(f"{name} is {given}, which is {0 if size < 1 else 'infinite'} in float32, expected a number that float32 holds")
    return given


def finite(name: str, value) -> float:
    given = number(name, value)
    if not math.isfinite(given):
        refuse(f"{name} is {given}, expected a finite number")
    return given


def whole_number(name: str, value, least: int, most: int = 2**31 - 1) -> int:
    if is_truth(value):
        refuse(f"{name} is {shown(value)}, expected a whole number")
    try:
        given = value.__index__()
    except (AttributeError, TypeError):
        refuse(f"{name} is {shown(value)}, expected a whole number")
    if not least <= given <= most:
        refuse(f"{name} is {given}, expected {least} to {most}")
    return given


def truth(name: str, value) -> bool:
    if not isinstance(value, bool):
        refuse(f"{name} is {shown(value)}, expected True or False")
    return value


def threads_of(threads) -> int:
    return whole_number("threads", threads, 0, 1024)


def strategy_of(strategy: str | None) -> bytes | None:
    return None if strategy is None else text_of("strategy", strategy, "the name of one or None")


def text_of(name: str, value, expected: str) -> bytes:
    """A name as the C interface takes it: printable ASCII, so that nothing ends it before its end."""
    if not isinstance(value, str) or not value or not (value.isascii() and value.isprintable()):
        refuse(f"{name} is {shown(value)}, expected {expected}")
    return value.encode()


def output_format(*formats: int | str) -> int:
    """What the output is where nobody says, of the formats of tokens and weights: the first of 16 bits."""
    for format in formats:
        if format in OUTPUT_FORMATS:
            return format
    return lib.BF16


def expect_depth(k: int, *formats: int | str) -> None:
    """Of what a call that is traced knows before it runs; else the C interface says the same."""
    if k == 0:
        refuse("K is 0, expected at least 1")
    for format in formats:
        multiple = _K_MULTIPLES.get(format, 1)
        if k % multiple:
            refuse(f"K is {k}, expected a multiple of {multiple} for {FORMAT_NAMES[format]} operands")


def expect_assumed_output(weights: int | None) -> None:
    """Of a call that was traced without seeing its packed weights, whose output was taken to be bfloat16."""
    if weights == lib.FP16:
        refuse("out_dtype is missing beside packed weights in float16 that are traced: give out_dtype='float16', the type of the weights, "
               "or another")


def expect_sixteen_bits_on_gpu(*weights: Operand | None) -> None:
    """A plan would hold a copy of packed weights, which nobody tells when they change."""
    if any(one is not None and one.format == lib.NVFP4 and one.device[0] != lib.CPU for one in weights):
        raise UnsupportedError("NVFP4 weights on a GPU have to be packed once: use pack or pack_grouped, and the functions of packed weights")
