"""Tensors that Thresher cannot take as they are: of another layout, without memory of their own, or beside others on another device."""

from collections.abc import Iterable
from typing import Any, NoReturn

import torch

from .._library import refuse

_FUNCTORCH = {"is_batchedtensor": "torch.vmap", "is_gradtrackingtensor": "torch.func", "is_functionaltensor": "torch.func.functionalize"}


def short(dtype: torch.dtype | torch.layout) -> str:
    """float16 of torch.float16."""
    return str(dtype).removeprefix("torch.")


def expect_plain(name: str, tensor: torch.Tensor) -> None:
    """Refuses what no operator has a kernel of."""
    if tensor.is_nested:
        refuse(f"{name} is a nested tensor, expected a plain one")
    if tensor.is_quantized:
        refuse(f"{name} is a quantized tensor of {short(tensor.dtype)}, expected a plain one, Nvfp4 or Fp8")
    if tensor.layout != torch.strided or not (tensor.is_cpu or tensor.is_cuda or tensor.is_meta):
        refuse(f"{name} is {tensor.layout} on {tensor.device}, expected torch.strided on cpu or cuda")
    if type(tensor).__name__ == "DTensor":
        _refuse_class(name, tensor)


def pointer_of(name: str, tensor: torch.Tensor) -> int:
    """Where the tensor's elements lie; 0 of one without elements alone."""
    if tensor.is_nested or tensor.is_quantized:
        expect_plain(name, tensor)
    if type(tensor).__name__ == "FakeTensor":
        _refuse_class(name, tensor)
    if tensor.is_meta:
        refuse(f"{name} is on meta, expected cpu or cuda")
    if tensor.is_neg():
        refuse(f"{name} is a view whose sign is still to be turned, expected a plain tensor: give its resolve_neg()")
    try:
        pointer = tensor.data_ptr()
    except RuntimeError:
        _refuse_class(name, tensor)
    if pointer == 0 and (tensor.numel() > 0 or type(tensor) not in (torch.Tensor, torch.nn.Parameter)):
        _refuse_class(name, tensor)
    return pointer


def _refuse_class(name: str, tensor: torch.Tensor) -> NoReturn:
    """Of a tensor without memory of its own."""
    kind = type(tensor).__name__
    if kind == "DTensor":
        refuse(f"{name} is a DTensor, expected a plain tensor: give its full_tensor()")
    for test, transform in _FUNCTORCH.items():
        if getattr(torch._C._functorch, test, lambda _: False)(tensor):
            refuse(f"{name} is a tensor inside of {transform}, which has no memory, expected a plain tensor")
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        refuse(f"{name} is a {kind} on {tensor.device}, which has no memory of its own, expected a plain tensor")
    refuse(f"{name} has the shape {list(tensor.shape)} but no memory: its storage was freed")


def expect_whole(name: str, tensor: torch.Tensor) -> None:
    """Of bytes: refuses those that lie behind their storage's end, which may have been made smaller."""
    size, end = tensor.untyped_storage().nbytes(), tensor.storage_offset() + tensor.numel()
    if end > size:
        refuse(f"{name} ends at byte {end} of its storage, which has {size}")


def expect_together(given: Iterable[tuple[str, Any]]) -> None:
    """given: names and arguments. Refuses the first tensor on another device than the first."""
    tensors = [(name, one.device) for name, one in given if isinstance(one, torch.Tensor)]
    first, expected = tensors[0]
    for name, device in tensors:
        if device != expected:
            refuse(f"{name} is on {device}, expected {expected}, where {first} is")
