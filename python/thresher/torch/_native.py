"""libthresher_torch.so: the operators from C++ (python/native/torch_operators.h), where torch is new enough and the library is there.

An operator of it makes calls that were made before, and gives others to the operator of the same name of thresher_python, which is
the one in Python: what a call must be is decided there alone.
"""

import ctypes as c
import itertools
import os
import threading
import warnings
import weakref
from collections.abc import Sequence
from typing import Any

import torch

from .. import _library as lib
from .._errors import Error
from .._operands import Operand
from .._plans import Plan, calls
from ._arguments import refuse_types

_I, _L, _P = c.c_int32, c.c_int64, c.c_void_p
_PLACES = ("out", "a", "a_scales", "a_global_scale", "offsets", "counts", "row_ids", "row_weights", "topk_ids", "topk_weights", "k", "v",
           "cu_seqlens_q", "cu_seqlens_k", "q", "lse", "block_table", "seqused_k", "sinks", "q_descale", "k_descale", "v_descale",
           "q_out", "k_out", "k_cache", "v_cache", "positions", "slots", "cos_sin")
_NAMES_OF_TOKENS = {"x": "a", "x_scales": "a_scales", "x_global_scale": "a_global_scale"}
_KINDS = {"int": "i", "float": "f", "bool": "b", "str": "s", "ScalarType": "d"}
ROWS, GROUPED, MOE, ATTENTION, APPEND, QUANTIZE = range(6)
_VARIABLE = "THRESHER_TORCH_BINDING"


class _Places(c.Structure):
    _fields_ = [(name, _I) for name in _PLACES]


class Call(c.Structure):
    """thresher_torch_call."""

    _fields_ = [
        ("convention", _I),
        ("a_scale_layout", _I),
        ("a_scales_are_global", _I),
        ("zeros", _I),
        ("scales_are_powers_of_two", _I),
        ("run", _P),
        ("plan", _P),
        ("workspace_bytes", _L),
        ("rows", _L),
        ("tokens", _L),
        ("a_stride", _L),
        ("out_stride", _L),
        ("strides", (_L * 4) * 4),
        ("has_strides", _I * 4),
        ("table_stride", _L),
        ("descale_strides", (_L * 2) * 3),
        ("append", _P),
        ("owner", _L),
    ]


def is_written(argument: Any) -> bool:
    """Of a schema."""
    return argument.alias_info is not None and argument.alias_info.is_write


def _kind(argument: Any) -> str:
    """The character of thresher_torch_describe."""
    text = str(argument.type)
    is_optional = text.startswith("Optional[")
    inner = text.removeprefix("Optional[").removesuffix("]")
    if inner == "Tensor":
        is_weight = argument.name.startswith("b") and argument.name != "block_table"
        kind = "o" if is_written(argument) else "p" if argument.name in ("weights", "gate_up", "down") else "w" if is_weight else "t"
    else:
        kind = "d" if argument.name.endswith("dtype") else _KINDS[inner]
    return kind.upper() if is_optional else kind


def _autograd_keys() -> int:
    """The dispatch keys that are passed over below autograd; 0 where this torch does not say."""
    try:
        with torch._C._AutoDispatchBelowAutograd():
            return torch._C._dispatch_tls_local_exclude_set().raw_repr()
    except (AttributeError, TypeError):
        return 0


class _Native:
    def __init__(self, library: c.CDLL):
        for name, result, arguments in (
            ("autograd_keys", None, [c.c_uint64]),
            ("say_by", None, [_P]),
            ("describe", _I, [c.c_char_p, c.c_char_p, _P]),
            ("keep", None, [_P]),
            ("keep_at_most", None, [_L]),
            ("fail", None, [c.c_char_p]),
            ("know_block", None, [_P, _I]),
            ("forget_block", None, [_P]),
            ("released", _I, [_P, _I]),
        ):
            function = getattr(library, f"thresher_torch_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, f"_{name}", function)
        self._has_said_by = False
        self._autograd_keys(_autograd_keys())
        self.keep_at_most(calls.most_plans)
        self._owners = itertools.count(1)
        self._plans: dict[int, Plan] = {}  # of calls that the library may make

    def describe(self, name: str, schema: Any) -> bool:
        """Whether the library has this operator."""
        places = _Places(*[-1] * len(_PLACES))
        for index, argument in enumerate(schema.arguments):
            place = _NAMES_OF_TOKENS.get(argument.name, argument.name)
            if place in _PLACES:
                setattr(places, place, index)
        if places.a < 0:  # tokens that every call has
            places.a = places.k if name == "append" else places.q
        kinds = "".join(map(_kind, schema.arguments))
        return bool(self._describe(name.encode(), kinds.encode(), c.byref(places)))

    def keep_at_most(self, count: int) -> None:
        """Lets the library forget all calls, and says how many it is to keep."""
        self._keep_at_most(count)

    def keep(self, plan: Plan, convention: int, *, operand: Operand | None = None, strides: Sequence = (), descale_strides: Sequence = (),
             **members: Any) -> None:
        """How the call that this thread is making is made again. operand: the tokens; strides, descale_strides: of attention's
        tensors, None of those that are contiguous or missing."""
        call = Call(convention=convention, run=c.cast(plan.run, _P), plan=plan.handle, workspace_bytes=plan.workspace_bytes,
                    owner=next(self._owners), **members)
        if operand is not None:
            call.a_scale_layout = operand.scale_layout
            call.a_scales_are_global = int(operand.scales is None and operand.global_scale is not None)
        for index, given in enumerate(strides):
            if given is not None:
                call.has_strides[index] = 1
                call.strides[index][: len(given)] = list(given)
        for index, given in enumerate(descale_strides):
            if given is not None:
                call.descale_strides[index][:] = list(given)
        self._drop_released()
        if not self._has_said_by:
            self._say_by(c.cast(lib.library().thresher_places_are_known, _P))
            self._has_said_by = True
        self._plans[call.owner] = plan
        self._keep(c.byref(call))

    def _drop_released(self) -> None:
        owners = (_L * 64)()
        while count := self._released(owners, len(owners)):
            for owner in owners[:count]:
                self._plans.pop(owner, None)

    def fail(self, error: Exception) -> None:
        _failed.error = error
        self._fail(str(error).encode(errors="replace"))

    def know_block(self, tensor: torch.Tensor) -> None:
        """Of packed weights on a GPU, as long as this tensor lives."""
        pointer = tensor.data_ptr()
        self._know_block(pointer, int(not tensor.is_inference()))
        weakref.finalize(tensor, self._forget_block, pointer).atexit = False


_failed = threading.local()


def call(operator: Any, *arguments: Any, **options: Any) -> Any:
    """operator(...), with Thresher's exceptions: that which the operator in Python raised, of which C++ gives the text alone, or a sentence
    about an argument of a type that the operator does not take."""
    try:
        return operator(*arguments, **options)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        if torch.compiler.is_compiling():  # what is traced has the text, and cannot look up the exception
            raise
        original = _failed.__dict__.pop("error", None)
        if original is not None and str(original) in str(error):
            raise original from None
        if not isinstance(error, Error):
            refuse_types(getattr(operator, "default", operator), arguments, options)
        raise


def _load() -> tuple[_Native | None, str | None]:
    """The library, or why there is none."""
    version = tuple(int("".join(filter(str.isdigit, part)) or 0) for part in torch.__version__.split(".")[:2])
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "libthresher_torch.so")
    chosen = os.environ.get(_VARIABLE)
    if chosen not in (None, "", "ctypes"):
        lib.refuse(f"{_VARIABLE} is {chosen!r}, expected 'ctypes' or no such variable")
    if chosen == "ctypes":
        return None, f"{_VARIABLE} is ctypes"
    if version < (2, 10):
        return None, f"torch {torch.__version__} is older than 2.10: install a newer one"
    if not os.path.exists(path):
        return None, f"{path} is missing: install the package again"
    try:
        torch.ops.load_library(path)
    except OSError as error:
        return None, f"{path} cannot be loaded into torch {torch.__version__} ({error}): install the package again"
    library = c.CDLL(path)
    if not library.thresher_torch_is_ready():
        return None, f"torch {torch.__version__} did not take the operators of {path}: install the package again"
    return _Native(library), None


native, WHY_NOT = _load()
if WHY_NOT is not None and os.environ.get(_VARIABLE) != "ctypes":
    warnings.warn(f"thresher's operators run without their C++ part, which makes a call several times slower on the host: {WHY_NOT}",
                  RuntimeWarning, stacklevel=2)
