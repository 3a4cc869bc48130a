"""The weights of a linear layer or of experts, in float or as a quantized checkpoint left them."""

from typing import Any, NamedTuple

import torch
from torch import nn

from .._fp8 import Fp8
from .._library import refuse
from .._nvfp4 import Nvfp4
from ..torch._float_modules import called, expect_as_written, expect_linear
from ..torch._plain import short

_SIXTEEN_BITS = (torch.float16, torch.bfloat16)
_BLOCK = (128, 128)
_GROUP = 16
FP8_TOKENS = "fp8_block"


class Weights(NamedTuple):
    """As the modules of thresher.torch take them."""

    weight: Any  # torch.Tensor, Nvfp4 or Fp8, [N, K]
    bias: torch.Tensor | None
    tokens: str | None


def weights_of(layer: nn.Module) -> Weights:
    """Of a linear layer; of any other, or in a format that is not known, an error says why."""
    if hasattr(layer, "weight_packed"):
        return Weights(_four_bit(layer), getattr(layer, "bias", None), None)
    weight = getattr(layer, "weight", None)
    if isinstance(weight, torch.Tensor) and weight.dtype == torch.float8_e4m3fn:
        expect_blocks(layer)
        return Weights(fp8(weight, getattr(layer, "weight_scale_inv", None)), layer.bias, FP8_TOKENS)
    expect_linear("given", layer)
    expect_as_written(layer, frozenset())
    expect_sixteen_bits("weight", weight)
    return Weights(weight, layer.bias, None)


def expect_sixteen_bits(name: str, weight: torch.Tensor) -> None:
    if weight.dtype not in _SIXTEEN_BITS:
        refuse(f"{name} is {short(weight.dtype)}, expected float16 or bfloat16: load the model with dtype=torch.bfloat16")


def expect_blocks(module: nn.Module) -> None:
    """Of a module in transformers' fine-grained FP8."""
    block = getattr(module, "block_size", None)
    if block is None or tuple(block) != _BLOCK:
        refuse(f"the {called(module)} has FP8 weights with scales of {'other parts than blocks' if block is None else f'blocks {list(block)}'}, "
               f"expected blocks {list(_BLOCK)}")
    if getattr(module, "activation_scheme", "dynamic") != "dynamic":
        refuse(f"activation_scheme of the {called(module)} is {module.activation_scheme!r}, expected 'dynamic'")


def fp8(values: torch.Tensor, scales: torch.Tensor | None) -> Fp8:
    """Scales that are powers of two, as one byte, become the same numbers in float32."""
    if scales is None:
        refuse("FP8 weights have no weight_scale_inv, expected one number for each block")
    return Fp8(values.detach(), scales.detach().float().contiguous(), per="block")


def _four_bit(layer: nn.Module) -> Nvfp4:
    """As compressed-tensors writes NVFP4 and MXFP4. It divides by its global scale."""
    values, scales = layer.weight_packed, getattr(layer, "weight_scale", None)
    if not isinstance(scales, torch.Tensor) or values.dtype != torch.uint8 or values.dim() != 2:
        refuse(f"the {called(layer)} has weight_packed without NVFP4 or MXFP4 values and scales")
    divisor = getattr(layer, "weight_global_scale", None)
    if divisor is None:
        return Nvfp4.of_mxfp4(values.detach(), scales.detach())
    if scales.shape[-1] * _GROUP != values.shape[-1] * 2:
        refuse(f"weight_scale of the {called(layer)} is {list(scales.shape)}, expected one number for each {_GROUP} of a row")
    return Nvfp4(values.detach(), scales.detach(), 1.0 / divisor.detach().float().reshape(1))
