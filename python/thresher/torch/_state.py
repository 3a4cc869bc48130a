"""What a module saves beside its buffers, and what it asks of a state dict.

The state of a module in a state dict is its buffers and, under `_extra_state`, what else its function depends on: a JSON text as uint8, so
that formats for tensors alone hold it. A state dict without that text, as older releases saved it, loads as far as its buffers fit.
"""

import json
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from .._errors import InvalidArgumentError
from .._fp8 import Fp8
from .._library import refuse
from .._nvfp4 import Nvfp4
from .._packed import PackedInfo
from . import packed_info
from ._module_weights import parts_of
from ._plain import short

_EXTRA = "_extra_state"


class Stated(nn.Module):
    """A module that is loaded from the state of one with the same function alone."""

    def __init__(self):
        super().__init__()
        self._held: dict[str, PackedInfo] = {}  # by the name of the buffer

    def said(self) -> dict[str, Any]:
        """What the function depends on beside the buffers, of JSON's types."""
        return {}

    def hold(self, name: str, make: Any, *weights: Any, **options: Any) -> PackedInfo:
        """Registers packed weights as a buffer. Those of weights on meta are as many bytes on meta."""
        packed, info = _packed(make, weights, options)
        self.register_buffer(name, packed)
        self._held[name] = info
        return info

    def _apply(self, fn: Callable, recurse: bool = True) -> "Stated":
        """Packed weights move, but stay in the type that they were rounded to."""
        dtype = getattr(self, "dtype", None)
        if self._held and isinstance(dtype, torch.dtype):
            found = fn(torch.empty(0, dtype=dtype, device=next(self.buffers()).device)).dtype
            if found != dtype:
                refuse(f"a {type(self).__name__} with packed weights for {short(dtype)} cannot become {short(found)}: make one with dtype=torch."
                       f"{short(found)}, or move it alone")
        return super()._apply(fn, recurse)

    def get_extra_state(self) -> torch.Tensor:
        return torch.tensor(list(json.dumps(self.said(), sort_keys=True).encode()), dtype=torch.uint8, device="cpu")

    def set_extra_state(self, state: Any) -> None:
        self._expect_said(_EXTRA, state)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, *lists):
        for name, held in self._held.items():
            if prefix + name in state_dict:
                given = state_dict[prefix + name]
                state_dict[prefix + name] = given = _aligned(given)
                _expect_packed(prefix + name, given, held)
                self._make_room(name, given)
        key = prefix + _EXTRA
        if key in state_dict:
            self._expect_said(key, state_dict[key])
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, *lists)
        if key in missing_keys:
            missing_keys.remove(key)

    def _make_room(self, name: str, given: torch.Tensor) -> None:
        """The same weights, packed for another kind of device, may be more bytes or fewer."""
        buffer = self._buffers[name]
        if buffer is not None and buffer.shape != given.shape:
            self._buffers[name] = torch.empty(given.shape, dtype=torch.uint8, device=buffer.device)

    def _expect_said(self, key: str, state: Any) -> None:
        if isinstance(state, torch.Tensor) and state.is_meta:
            refuse(f"{key} is on meta, where it says nothing, expected a text of JSON as uint8")
        try:
            saved = json.loads(bytes(state.tolist()))
        except (AttributeError, TypeError, ValueError, RuntimeError):  # of tensors without numbers of their own too
            saved = None
        if not isinstance(saved, dict):
            refuse(f"{key} does not hold what {type(self).__name__} saves, expected a text of JSON as uint8")
        own = json.loads(json.dumps(self.said()))
        for name in sorted({*own, *saved}):
            if own.get(name) != saved.get(name):
                refuse(f"{key} says {name} {saved.get(name)!r}, but this {type(self).__name__} has {own.get(name)!r}: make one with the same")


def _aligned(given: Any) -> Any:
    """Packed weights begin at a multiple of 16 bytes, which tensors in a file need not."""
    is_aligned = not isinstance(given, torch.Tensor) or given.is_meta or given.layout != torch.strided or given.data_ptr() % 16 == 0
    return given if is_aligned else given.clone()


def _expect_packed(key: str, given: Any, held: PackedInfo) -> None:
    if not isinstance(given, torch.Tensor) or given.dtype != torch.uint8 or given.dim() != 1:
        found = f"{short(given.dtype)} {list(given.shape)}" if isinstance(given, torch.Tensor) else type(given).__name__
        refuse(f"{key} is {found}, expected packed weights, uint8 [bytes]")
    if given.layout != torch.strided:
        refuse(f"{key} is {short(given.layout)}, expected packed weights, uint8 [bytes]")
    if given.is_meta:
        return
    try:
        found = packed_info(given)
    except InvalidArgumentError as error:
        if _is_block(given):
            raise InvalidArgumentError(f"{key}: {error}") from None
        refuse(f"{key} holds {given.numel()} bytes that pack did not make, expected packed weights")
    if found != held:
        refuse(f"{key} holds packed weights of {described(found)}, but this module has {described(held)}")


def _is_block(given: torch.Tensor) -> bool:
    return b"thresher_packed_weights" in bytes(given[: 1 << 12].tolist())


def described(info: PackedInfo) -> str:
    experts = "" if info.experts is None else f"{info.experts} expert{'s' if info.experts > 1 else ''}, "
    what = "gate and up" if info.matrices == 2 else "one matrix"
    return (f"{experts}{what} [{info.n}, {info.k}] in {info.format}{' with biases' if info.has_bias else ''}"
            f"{'' if info.numerics == 'exact' else f', numerics {info.numerics}'}")


def is_on_meta(weight: Any) -> bool:
    return any(isinstance(part, torch.Tensor) and part.is_meta for part in parts_of(weight))


@torch.no_grad()
def _packed(make: Any, weights: tuple, options: dict) -> tuple[torch.Tensor, PackedInfo]:
    if not any(map(is_on_meta, (*weights, *options.values()))):
        packed = make(*weights, **options)
        return packed, packed_info(packed)
    size, info = _measured(make, weights, options)
    return torch.empty(size, dtype=torch.uint8, device="meta"), info


# By the function that packs and the shapes: how many bytes, and what they hold.
_sizes: dict[tuple, tuple[int, PackedInfo]] = {}


def _measured(make: Any, weights: tuple, options: dict) -> tuple[int, PackedInfo]:
    """Of zeros, which are packed once for each shape."""
    key = (make, *map(_kind, weights), *((name, _kind(one)) for name, one in options.items()))
    if key not in _sizes:
        packed = make(*map(_zeros, weights), **{name: _zeros(one) for name, one in options.items()})
        _sizes[key] = packed.numel(), packed_info(packed)
    return _sizes[key]


def _kind(weight: Any) -> Any:
    if isinstance(weight, torch.Tensor):
        return weight.shape, weight.dtype
    return (weight.format, weight.scale_layout, *map(_kind, parts_of(weight))) if isinstance(weight, (Nvfp4, Fp8)) else weight


def _zeros(weight: Any) -> Any:
    """The same on the CPU."""
    if isinstance(weight, Fp8):
        return Fp8(_zeros(weight.values), _zeros(weight.scales), per=weight.per, scale_layout=weight.scale_layout)
    if isinstance(weight, Nvfp4):
        return Nvfp4(*map(_zeros, parts_of(weight)), scale_layout=weight.scale_layout)
    return torch.zeros(weight.shape, dtype=weight.dtype, device="cpu") if isinstance(weight, torch.Tensor) else weight
