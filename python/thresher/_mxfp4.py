"""MXFP4 as NVFP4, exactly: what the C++ library does with files (src/formats/mxfp4.hpp), on arrays."""

from typing import Any

from ._library import refuse

_BLOCK = 32
_BLOCK_BYTES = _BLOCK // 2
_MOST_EXPONENT = 252  # 6 · 2^(252 − 127) is a number of bfloat16, 6 · 2^(253 − 127) none
_MOST_POWER = 8
# e4m3 codes of 2^8, 2^7, … 2^-9, of which the last three are no normal numbers.
_POWERS = [exponent << 3 for exponent in range(15, 0, -1)] + [4, 2, 1]


def _module_of(values: Any) -> Any:
    if type(values).__module__.partition(".")[0] == "torch":
        import torch

        return torch
    import numpy

    return numpy


def _expect_readable(values: Any, exponents: Any) -> None:
    """Refuses tensors of torch that have no elements to look at, or lie apart."""
    tensors = {name: one for name, one in (("values", values), ("exponents", exponents)) if hasattr(one, "is_meta")}
    for name, tensor in tensors.items():
        if tensor.is_meta:
            refuse(f"{name} is on meta, expected cpu or cuda: its exponents are looked at")
    if len(tensors) == 2 and values.device != exponents.device:
        refuse(f"exponents is on {exponents.device}, expected {values.device}, where values is")


def parts_of(values: Any, exponents: Any) -> tuple[Any, Any, Any]:
    """(values [..., rows, K/2], e4m3 scales as uint8 [..., rows, K/16], global scales float32 [..., 1 or E]) of MXFP4."""
    if "float8_e8m0fnu" in str(getattr(exponents, "dtype", None)):
        exponents = exponents.view(_module_of(exponents).uint8)
    for name, array in (("values", values), ("exponents", exponents)):
        if "uint8" not in str(getattr(array, "dtype", None)):
            refuse(f"{name} is {getattr(array, 'dtype', type(array).__name__)}, expected uint8")
    _expect_readable(values, exponents)
    if values.ndim == exponents.ndim + 1 and values.shape[-1] == _BLOCK_BYTES:  # blocks of gpt-oss
        values = values.reshape(*values.shape[:-2], -1)
    blocks = tuple(exponents.shape)
    if exponents.ndim not in (2, 3) or tuple(values.shape) != (*blocks[:-1], blocks[-1] * _BLOCK_BYTES):
        refuse(f"values are {list(values.shape)} and exponents {list(blocks)}, expected [rows, K/2] and [rows, K/32], with experts "
               "before both or not")
    xp = _module_of(values)
    if 0 in blocks:
        refuse(f"exponents are {list(blocks)}, expected some")
    of_matrix = xp.asarray(exponents.reshape(blocks[0] if len(blocks) == 3 else 1, -1), dtype=xp.int32)
    if int(of_matrix.max()) > _MOST_EXPONENT:
        refuse(f"exponents hold {int(of_matrix.max())}, expected 0 to {_MOST_EXPONENT}; 255 is NaN")
    # Of blocks whose values are all zeros the exponent counts for nothing.
    counts = ((values.reshape(of_matrix.shape[0], -1, _BLOCK_BYTES) & 0x77) != 0).any(-1)
    most = xp.amax(xp.where(counts, of_matrix, -1), axis=1)
    least = xp.amin(xp.where(counts, of_matrix, 1 << 10), axis=1)
    is_empty = most < 0
    span = int(xp.where(is_empty, 0, most - least).max())
    if span >= len(_POWERS) or bool(((most <= _MOST_POWER) & ~is_empty).any()):
        refuse(f"the exponents of a matrix are {span} apart, expected {len(_POWERS) - 1} at the most and the greatest above "
               f"{_MOST_POWER}: NVFP4 does not hold them, bfloat16 does")
    most = xp.where(is_empty, 127 + _MOST_POWER, most)
    below = most[:, None] - of_matrix
    table = xp.asarray(_POWERS, dtype=xp.uint8)
    table = table if xp.__name__ == "numpy" else table.to(values.device)
    codes = table[xp.where(counts, below, 0)]
    scales = xp.where(counts, codes, codes * 0)
    scales = xp.stack([scales, scales], -1).reshape(*blocks[:-1], 2 * blocks[-1])
    return values, scales, xp.ldexp(xp.ones_like(most, dtype=xp.float32), most - 127 - _MOST_POWER)
