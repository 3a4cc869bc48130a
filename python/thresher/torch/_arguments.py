"""Arguments that are no tensors' contents: of another type than an operator takes, in Thresher's sentences, and of types that it is given in."""

import numbers
from typing import Any

import torch

from .. import _append, _options
from .._conversions import narrowed
from .._library import refuse
from .._operands import SCALE_LAYOUTS
from ._plain import expect_plain, short

OUTPUTS = (torch.float16, torch.bfloat16, torch.float32)
_BY_NAME = {short(dtype): dtype for dtype in OUTPUTS}

# What small tensors are made into before a call.
_KEPT_AS = dict.fromkeys(("offsets", "counts", "row_ids", "topk_ids", "cu_seqlens_q", "cu_seqlens_k", "block_table", "seqused_k"), torch.int32)
_KEPT_AS |= dict.fromkeys(("topk_weights", "row_weights"), torch.float32)
_LEAST, _MOST = -(2**31), 2**31 - 1

_CHOICES = {"activation": _options.ACTIVATIONS, "order": _options.ORDERS, "scale_layout": SCALE_LAYOUTS,
            "pairs": _append.PAIRS}
_WHOLE = ("n", "row_ids_divisor", "rotary_dim", "window_left", "window_right")
_IN_PYTHON = {"window_left": "window's left", "window_right": "window's right", "intermediate_format": "intermediate_dtype"}


def dtype_of(name: str, value: Any, expected: tuple = OUTPUTS) -> torch.dtype:
    """One of PyTorch's types, or of their names."""
    dtype = _BY_NAME.get(value) if isinstance(value, str) else value
    if dtype not in expected:
        *most, last = [short(one) for one in expected]
        refuse(f"{name} is {_shown(value)}, expected {', '.join(most)} or {last}")
    return dtype


def _shown(value: Any) -> str:
    """In one line."""
    if isinstance(value, torch.dtype):
        return short(value)
    return f"a tensor of the shape {list(value.shape)}" if isinstance(value, torch.Tensor) else " ".join(repr(value).split())


def kept(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """Numbers as int32 and factors as float32. Numbers that int32 does not hold become its ends, which are out of range too."""
    wanted = _KEPT_AS.get(name)
    if wanted is None or tensor.dtype is wanted:
        return tensor
    if not torch.compiler.is_compiling():
        expect_plain(name, tensor)
    if wanted is torch.float32:
        if tensor.dtype not in OUTPUTS:
            refuse(f"{name} is {short(tensor.dtype)}, expected float32, float16 or bfloat16")
        return tensor.to(torch.float32)
    if tensor.dtype is not torch.int64:
        refuse(f"{name} is {short(tensor.dtype)}, expected int32 or int64")
    return tensor.clamp(_LEAST, _MOST).to(torch.int32)


def refuse_beyond(given: dict) -> None:
    """Of lists by their names: refuses the first number that `kept` made an end of int32, by its value where the host can read it."""
    for name, tensor in given.items():
        if type(tensor) is torch.Tensor and tensor.is_cpu and tensor.dtype is torch.int64:
            try:
                values = tensor.numpy()
            except RuntimeError:  # inside of a transform
                continue
            narrowed(name, values)


def expect_number(name: str, value: Any) -> None:
    """Refuses what counts as 0 or 1 to PyTorch, and what float32 does not hold; all else is refused by an operator's types."""
    if type(value) is float and name not in _WHOLE:
        _options.in_float32(name, value)
    elif type(value) not in (int, float) and _options.is_truth(value):
        refuse(f"{_IN_PYTHON.get(name, name)} is {_shown(value)}, expected a {'whole number' if name in _WHOLE else 'number'}")


def refuse_types(operator: Any, arguments: tuple, options: dict) -> None:
    """Refuses the first argument of a type that the operator does not take."""
    schema = {one.name: one for one in operator._schema.arguments}
    for name in options:
        if name not in schema:
            refuse(f"{name} is given, but {operator._schema.name.removeprefix('thresher::')} has no argument of this name")
    for name, value in (*zip(schema, arguments), *options.items()):
        text = str(schema[name].type)
        if value is not None or not text.startswith("Optional["):
            _expect_type(name, value, text.removeprefix("Optional[").removesuffix("]"))


def _expect_type(name: str, value: Any, kind: str) -> None:
    if kind == "Tensor":
        if not isinstance(value, torch.Tensor):
            refuse(f"{name} is {'None' if value is None else 'of the type ' + type(value).__name__}, expected a tensor")
        expect_plain(name, value)
        return
    expected = None
    if kind == "str":
        expected = None if isinstance(value, str) else _names(name)
    elif kind == "bool":
        expected = None if isinstance(value, bool) else "True or False"
    elif kind == "float":
        expected = None if isinstance(value, numbers.Real) and not isinstance(value, bool) else "a number"
    elif not name.endswith("dtype"):
        if not isinstance(value, numbers.Integral) or isinstance(value, bool):
            expected = "a whole number"
        elif not -(2**63) <= value < 2**63:
            expected = "a whole number of 64 bits"
    if expected is not None:
        refuse(f"{_IN_PYTHON.get(name, name)} is {_shown(value)}, expected {expected}")


def _names(name: str) -> str:
    choices = next((choices for suffix, choices in _CHOICES.items() if name.endswith(suffix)), None)
    return "a name" if choices is None else f"one of {', '.join(choices)}"
