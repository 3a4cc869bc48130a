"""Weights of modules in one 16-bit type, and the type of what goes into a module and comes out."""

import contextlib
from collections.abc import Iterable
from typing import Any

import torch

from .._fp8 import Fp8
from .._library import refuse
from .._nvfp4 import Nvfp4
from .._plans import row_bucket
from ._native import call
from ._plain import short

_TOKENS = (None, "fp8_block")
_GIVEN = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def buffer_of(name: str, tensor: Any, dtype: torch.dtype, rank: int) -> torch.Tensor:
    if not isinstance(tensor, torch.Tensor) or tensor.dim() != rank:
        refuse(f"{name} is {list(tensor.shape) if isinstance(tensor, torch.Tensor) else tensor!r}, expected a tensor of {rank} "
               f"dimension{'s' if rank > 1 else ''}")
    if tensor.dtype not in _GIVEN:
        refuse(f"{name} is {short(tensor.dtype)}, expected float16, bfloat16, float32 or float64, or Fp8 or Nvfp4 where they are taken")
    made = tensor.detach().to(dtype).contiguous()
    may_overflow = torch.finfo(dtype).max < torch.finfo(tensor.dtype).max and type(made) is torch.Tensor and not made.is_meta
    if may_overflow and made.isinf().any() and bool((made.isinf() & ~tensor.isinf()).any()):
        refuse(f"{name} has numbers beyond {torch.finfo(dtype).max:g}, which {short(dtype)} does not hold, expected smaller ones or a wider type")
    return made


def sixteen_bit(tensor: torch.Tensor, dtype: torch.dtype | None) -> torch.dtype:
    """What weights are kept in: `dtype`, else their own type, or bfloat16 of wider ones."""
    dtype = dtype or (tensor.dtype if tensor.dtype in (torch.float16, torch.bfloat16) else torch.bfloat16)
    if dtype not in (torch.float16, torch.bfloat16):
        refuse(f"dtype is {dtype}, expected torch.float16 or torch.bfloat16")
    return dtype


def in_one_type(rank: int, dtype: torch.dtype | None, *weights: tuple) -> tuple[torch.dtype, list]:
    """(what is computed in, the weights) of (name, weight): float tensors are rounded to it, and the first of them says it where
    nobody does."""
    tensors = [one for _, one in weights if isinstance(one, torch.Tensor)]
    dtype = sixteen_bit(tensors[0] if tensors else torch.empty(0, dtype=torch.bfloat16, device="cpu"), dtype)
    return dtype, [one if isinstance(one, (Nvfp4, Fp8)) else buffer_of(name, one, dtype, rank) for name, one in weights]


def expect_one_device(**weights: Any) -> None:
    """Of weights and biases by their arguments: nothing is moved or left out."""
    placed = [(name, part.device) for name, weight in weights.items() for part in parts_of(weight) if isinstance(part, torch.Tensor)]
    for name, device in placed:
        if device != placed[0][1]:
            refuse(f"{name} is on {device}, but {placed[0][0]} on {placed[0][1]}, expected one device")


def parts_of(weight: Any) -> tuple:
    return (weight.values, weight.scales, weight.global_scale) if isinstance(weight, (Nvfp4, Fp8)) else (weight,)


def bias_of(name: str, bias: Any) -> torch.Tensor | None:
    """float32, as products take it."""
    return None if bias is None else buffer_of(name, bias, torch.float32, 2)


def bias_beside(name: str, bias: Any, weight: Any) -> torch.Tensor | None:
    """The same of weights [E, rows, columns]."""
    given, rows = bias_of(name, bias), tuple(parts_of(weight)[0].shape[:2])
    if given is not None and tuple(given.shape) != rows:
        refuse(f"{name} has the shape {list(given.shape)}, expected {list(rows)}: one number for each row of the weights")
    return given


def buckets(rows: Iterable[int]) -> list[int]:
    """One number of rows for each plan that these numbers need."""
    return sorted({row_bucket(one): one for one in rows}.values())


def tokens_of(tokens: str | None) -> str | None:
    """What a module multiplies rows in, checked."""
    if tokens not in _TOKENS:
        refuse(f"tokens is {tokens!r}, expected None or 'fp8_block'")
    return tokens


def aligned(rows: torch.Tensor) -> torch.Tensor:
    """Rows of 16 bits that begin on 16 bytes and do not overlap: these, or a copy."""
    is_whole = rows.stride(1) == 1 and rows.stride(0) >= rows.shape[1] and rows.stride(0) % 8 == 0
    begins_well = torch.compiler.is_compiling() or rows.storage_offset() % 8 == 0  # compilers copy what does not
    return rows if is_whole and begins_well else rows.clone(memory_format=torch.contiguous_format)


def operand_of(rows: torch.Tensor, tokens: str | None, name: str = "a") -> tuple[torch.Tensor, dict]:
    """(values, named arguments) of rows as the operand `name` of a product, or of a layer."""
    if tokens is None:
        return rows, {}
    values, scales = call(torch.ops.thresher.quantize, aligned(rows), tokens)
    return values, {f"{name}_scales": scales, f"{name}_format": tokens}


def expect_floats(x: torch.Tensor, **weights: Any) -> None:
    """What a module is called with; weights: its buffers. PyTorch would give uninitialised memory for weights on meta."""
    for name, one in weights.items():
        if not isinstance(one, torch.Tensor):
            refuse(f"the weights {name} of the module are {one!r}, expected a tensor: load a state dict, or make the module again")
    if not isinstance(x, torch.Tensor) or x.dtype not in _GIVEN:
        refuse(f"x is {short(x.dtype) if isinstance(x, torch.Tensor) else type(x).__name__}, expected float16, bfloat16, float32 or float64")
    if x.layout != torch.strided or x.is_nested:
        refuse(f"x is {'nested' if x.is_nested else short(x.layout)}, expected a dense tensor")
    for name, one in weights.items():
        if one.is_meta and not x.is_meta:
            refuse(f"x is on {x.device}, but the weights are on meta: load a state dict with assign=True first")
        expect_beside("x", x, f"the weights {name}", one)


def expect_beside(name: str, one: torch.Tensor, other_name: str, other: torch.Tensor) -> None:
    if one.device != other.device:
        refuse(f"{name} is on {one.device}, but {other_name} on {other.device}, expected one device")


def _autocasts(x: torch.Tensor) -> bool:
    """Whether autocast would cast x before a linear layer."""
    return x.dtype != torch.float64 and (x.is_cuda or x.is_cpu) and torch.is_autocast_enabled(x.device.type)


def result_dtype(x: torch.Tensor) -> torch.dtype:
    """The type that a linear layer of the type of x would give."""
    return torch.get_autocast_dtype(x.device.type) if _autocasts(x) else x.dtype


def in_own_type(x: torch.Tensor) -> Any:
    """Where a module computes in the type of its weights, whatever autocast says."""
    return torch.autocast(x.device.type, enabled=False) if _autocasts(x) else contextlib.nullcontext()
