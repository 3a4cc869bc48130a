"""NVFP4 operands: several arrays that are one matrix."""

from typing import Any

from ._fp8 import described


class Nvfp4:
    """A matrix [rows, K], or a stack [E, rows, K], in NVFP4: element = e2m1 value × e4m3 scale × global scale.

    values: uint8 [rows, K/2], two e2m1 values a byte, the low nibble first.
    scales: uint8 or float8_e4m3fn; e4m3, one for each 16 values along K: [rows, K/16] with scale_layout "row_major"; with
        "blocked" (Blackwell's and cuBLAS's order of 128 by 4) any contiguous shape of so many bytes.
    global_scale: float32 of one element (of a stack [E]), or None for 1. It multiplies; checkpoints of the format
        compressed-tensors hold its reciprocal.
    """

    __slots__ = ("values", "scales", "global_scale", "scale_layout")
    format = "nvfp4"

    def __init__(self, values: Any, scales: Any, global_scale: Any = None, *, scale_layout: str = "row_major"):
        self.values = values
        self.scales = scales
        self.global_scale = global_scale
        self.scale_layout = scale_layout

    def __repr__(self) -> str:
        scaled = "" if self.global_scale is None else ", with a global scale"
        return f"Nvfp4({described(self.values, 2)}, scale_layout={self.scale_layout!r}{scaled})"

    @classmethod
    def of_mxfp4(cls, values: Any, exponents: Any) -> "Nvfp4":
        """A matrix in MXFP4, or a stack, exactly: element = e2m1 value × 2^(exponent − 127), of which 32 along K share one.

        values: uint8 [rows, K/2] or [E, rows, K/2], two e2m1 values a byte, the low nibble first, as compressed-tensors' weight_packed
            is; or blocks [E, rows, K/32, 16], as gpt-oss has them.
        exponents: uint8 (of torch float8_e8m0fnu, too), [rows, K/32] or [E, rows, K/32].
        Both are arrays of NumPy or tensors of torch, and so are the parts of the result. Raises InvalidArgumentError where the
        exponents of a matrix are more than 17 apart, which NVFP4 does not hold: bfloat16 holds them. Numerics "fast" rounds no weight
        where they are 11 apart at the most.
        """
        from ._mxfp4 import parts_of

        return cls(*parts_of(values, exponents))
