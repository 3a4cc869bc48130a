"""Experts as transformers' registries call them: rows, the experts that a router chose for each, and their weights.

A module's weights are packed at its first call. Where packed weights are the tensors themselves behind a header, as those of 16 bits are, the
module's parameters become views of them: there is one copy, and a state dict, another implementation or new weights see the same numbers.
"""

from typing import NamedTuple

import torch
from torch import nn

from .._errors import UnsupportedError
from ..torch import MoE
from ..torch._experts import gating
from ._weights import FP8_TOKENS, expect_blocks, expect_sixteen_bits, fp8

_NAME = "_thresher_experts"


class Packed(NamedTuple):
    made: MoE
    places: tuple[int, int]


def experts(module: nn.Module, hidden_states: torch.Tensor, top_k_index: torch.Tensor, top_k_weights: torch.Tensor) -> torch.Tensor:
    """hidden_states: [T, K]; top_k_index, top_k_weights: [T, k]."""
    packed = module.__dict__.get(_NAME)
    if packed is None or not (torch.compiler.is_compiling() or packed.places == _places(module)):
        packed = pack_experts(module)
    return packed.made(hidden_states, top_k_index.to(torch.int32), top_k_weights)


def _places(module: nn.Module) -> tuple[int, int]:
    """Which change where a model is moved, copied or given other tensors."""
    return module.gate_up_proj.data_ptr(), module.down_proj.data_ptr()


@torch.no_grad()
def pack_experts(module: nn.Module) -> Packed:
    """What computes the module from now on. It is no part of the module, whose weights it shares."""
    if torch.compiler.is_compiling():
        raise UnsupportedError("the experts of this model are not packed yet, which torch.compile cannot record: call the model once before, "
                               "or thresher.transformers.prepare")
    of_model = module.config._experts_implementation_internal
    module.config._experts_implementation_internal = "eager"  # from_float calls the module, on a few rows
    try:
        made = _made(module)
    finally:
        module.config._experts_implementation_internal = of_model
    for name, packed in (("gate_up_proj", made.gate_up), ("down_proj", made.down)):
        _share(module, name, packed, is_transposed=getattr(module, "is_transposed", False))
    packed = Packed(made, _places(module))
    object.__setattr__(module, _NAME, packed)
    return packed


def _made(module: nn.Module) -> MoE:
    both, down = module.gate_up_proj, module.down_proj
    if both.dtype != torch.float8_e4m3fn:
        expect_sixteen_bits("gate_up_proj", both)
        return MoE.from_float(module)
    expect_blocks(module)
    (activation, constants), order, _ = gating(module, None, {})
    return MoE(fp8(both, module.gate_up_proj_scale_inv), fp8(down, module.down_proj_scale_inv), order=order or "gate_first", tokens=FP8_TOKENS,
               activation=activation, **constants)


def _share(module: nn.Module, name: str, packed: torch.Tensor, *, is_transposed: bool) -> None:
    """Makes a parameter a view of its packed copy, where that has the same numbers."""
    given = getattr(module, name)
    header = 8 + int.from_bytes(bytes(packed[:8].tolist()), "little")
    matrices = packed[header: header + given.numel() * given.element_size()]
    if matrices.numel() != given.numel() * given.element_size():
        return
    shape = given.transpose(1, 2).shape if is_transposed else given.shape
    view = matrices.view(given.dtype).view(shape)
    view = view.transpose(1, 2) if is_transposed else view
    bits = torch.int16 if given.element_size() == 2 else torch.uint8
    if all(torch.equal(one.view(bits), other.view(bits)) for one, other in zip(view, given)):
        given.data = view


def prepare(model: nn.Module) -> nn.Module:
    """Packs the experts of a model, as its first call does: for torch.compile and for CUDA graphs, which cannot record that."""
    for module in model.modules():
        if is_experts(module) and _NAME not in module.__dict__:
            pack_experts(module)
    return model


def is_experts(module: nn.Module) -> bool:
    """Whether transformers' registry calls this module."""
    return hasattr(module, "_apply_gate") and isinstance(getattr(module, "gate_up_proj", None), torch.Tensor)
