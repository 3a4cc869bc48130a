"""Tokens to FP8, between products."""

import torch
from torch.nn import functional

from .._fp8 import Fp8

_LARGEST = 448.0
COLUMNS = 128  # that share a scale


def fp8_blocks(rows: torch.Tensor) -> Fp8:
    """Rows [rows, K] in e4m3 with a float32 scale for 128 along K of a row: amax / 448, at least 2⁻¹²⁶, and 1 of zeros."""
    depth = rows.shape[1]
    padded = functional.pad(rows.float(), (0, -depth % COLUMNS)).unflatten(1, (-(-depth // COLUMNS), COLUMNS))
    largest = padded.abs().amax(-1)
    scales = torch.where(largest == 0, 1.0, (largest / _LARGEST).clamp_min(2.0**-126))
    values = (padded / scales[..., None]).clamp(-_LARGEST, _LARGEST).to(torch.float8_e4m3fn)
    return Fp8(values.flatten(1)[:, :depth].contiguous(), scales, per="block")
