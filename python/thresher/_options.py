"""What callers choose beside tensors, checked."""

import math
from typing import NoReturn

from . import _library as lib
from ._errors import UnsupportedError
from ._library import refuse
from ._operands import FORMAT_NAMES, Operand

ACTIVATIONS = {"silu": 0, "gelu_tanh": 1, "swiglu_clamped": 2, "situ": 3, "relu2": 4}
UNGATED = "relu2"  # of one matrix, where all others are of gate and up
UNUSED = {"alpha": 1.702, "limit": 7.0, "up_offset": 1.0}  # what the C interface is given of an activation without constants
CONSTANTS = {"swiglu_clamped": {"alpha": 1.702, "limit": 7.0, "up_offset": 1.0}, "situ": {"alpha": 4.0, "limit": 25.0}}
NAMES_OF_CONSTANTS = tuple(UNUSED)
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


def takers_of(constant: str) -> str:
    """The activations that have it."""
    return " and ".join(repr(name) for name, own in CONSTANTS.items() if constant in own)


def constants_of(name: str, given: dict[str, float | None]) -> dict[str, float]:
    """The constants of an activation: None is a default, and another value goes with the activations that have it alone."""
    own = CONSTANTS.get(name, {})
    numbers = {constant: number(constant, value) for constant, value in given.items() if value is not None}
    for constant, value in numbers.items():
        if constant not in own:
            refuse(f"{constant} is {value}, but the activation is {name!r}, which has none: it is of {takers_of(constant)} alone")
    found = own | numbers
    if not found.get("limit", 1.0) > 0:
        refuse(f"limit is {found['limit']:g}, expected a number above 0")
    if name == "situ" and not (0 < found["alpha"] < math.inf and found["limit"] < math.inf):
        refuse(f"alpha is {found['alpha']:g} and limit {found['limit']:g}, expected finite numbers above 0 for 'situ'")
    if not all(math.isfinite(found.get(constant, 0.0)) for constant in ("alpha", "up_offset")):
        refuse(f"alpha is {found['alpha']:g} and up_offset {found['up_offset']:g}, expected finite numbers")
    return found


def _is_unused(constant: str, value) -> bool:
    return isinstance(value, float) and value == UNUSED[constant]


def activation_of(name: str, alpha: float | None = None, limit: float | None = None, up_offset: float | None = None) -> tuple:
    """(number, constants) of the C interface. What programs that were traced before have of a constant that the activation lacks counts
    for nothing."""
    kind = one_of("activation", name, ACTIVATIONS)
    given = dict(zip(NAMES_OF_CONSTANTS, (alpha, limit, up_offset)))
    taken = CONSTANTS.get(name, {})
    own = constants_of(name, {one: None if one not in taken and _is_unused(one, given[one]) else given[one] for one in UNUSED})
    return kind, tuple(own.get(constant, unused) for constant, unused in UNUSED.items())


def activation_chosen(name: str, alpha: float | None, limit: float | None, up_offset: float | None) -> tuple:
    """The same of constants that a caller gave, or left None: none is given beside an activation without it."""
    chosen = activation_of(name, alpha, limit, up_offset)
    constants_of(name, dict(zip(NAMES_OF_CONSTANTS, (alpha, limit, up_offset))))
    return chosen


def expect_gated(name: str) -> str:
    """Of gate and up."""
    one_of("activation", name, ACTIVATIONS)
    if name == UNGATED:
        refuse(f"activation is {name!r}, which is of one matrix, expected one of gate and up: use gemm or grouped_gemm")
    return name


def activation_of_one(name: str | None) -> int:
    """That of one matrix, or 0 for none."""
    if name is None:
        return 0
    if not isinstance(name, str) or name != UNGATED:
        refuse(f"activation is {shown(name)}, expected {UNGATED!r} or None: a product of one matrix has no up")
    return ACTIVATIONS[name]


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
