"""Weights packed from tensors, which no operator of PyTorch does: they are read in place, once."""

from typing import Any

import torch

from .. import _dual_gemm, _gemm, _grouped
from .. import _operands as of
from ._ops import refuse_derivatives, scaled
from ._place import optional
from ._plain import expect_plain, expect_together, pointer_of


def pack(b1, b2, numerics, scales):
    given = _readable(b1=b1, b2=b2, **scales)
    return _written(_dual_gemm.pack(_weights("b1", given), _weights("b2", given), numerics), b1)


def pack_gemm(b, bias, numerics, scales):
    given = _readable(b=b, bias=bias, **scales)
    return _written(_gemm.pack(_weights("b", given), optional("bias", given["bias"]), numerics), b)


def pack_grouped(b1, b2, order, bias1, bias2, numerics, scales):
    given = _readable(b1=b1, b2=b2, bias1=bias1, bias2=bias2, **scales)
    up = None if b2 is None else _weights("b2", given)
    weights = _grouped.Weights(_weights("b1", given), up, optional("bias1", given["bias1"]), optional("bias2", given["bias2"]), order)
    return _written(_grouped.pack(weights, numerics), b1)


def _readable(**given: Any) -> dict:
    """The arguments, whose tensors lie together with their signs turned and have no derivative to lose."""
    tensors = {name: one for name, one in given.items() if isinstance(one, torch.Tensor)}
    for name, tensor in tensors.items():
        expect_plain(name, tensor)
    refuse_derivatives(tensors.items())
    expect_together(tensors.items())
    turned = {name: tensor.resolve_neg() if tensor.is_neg() else tensor for name, tensor in tensors.items()}
    for name, tensor in turned.items():
        pointer_of(name, tensor)
    _finish(next(iter(turned.values())))
    return {**given, **turned}


def _weights(name: str, given: dict) -> of.Operand:
    return scaled(name, given[name], given.get(f"{name}_scales"), given.get(f"{name}_global_scale"), given.get("scale_layout", "row_major"),
                  given.get("b_format"))


def _finish(tensor: torch.Tensor) -> None:
    """What is packed was computed in the current stream, which packing does not wait for."""
    if tensor.is_cuda:
        torch.cuda.current_stream(tensor.device).synchronize()


def _written(weights, like: torch.Tensor) -> torch.Tensor:
    packed = torch.empty(weights.block_bytes(), dtype=torch.uint8, device=like.device)
    weights.to_block(packed.data_ptr(), packed.numel())
    return packed
