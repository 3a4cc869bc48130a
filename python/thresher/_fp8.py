"""FP8 operands: e4m3 values and their float32 scales, which are one matrix."""

from typing import Any


def described(values: Any, elements_per_value: int = 1) -> str:
    """The shape of a matrix in elements, of which one of `values` may hold several."""
    shape = getattr(values, "shape", None)
    if shape is None or len(shape) == 0:
        return f"values of the type {type(values).__name__}"
    return str([*shape[:-1], elements_per_value * shape[-1]])


def _widened(scales: Any) -> Any:
    return scales.float() if hasattr(scales, "float") else scales.astype("float32")


class Fp8:
    """A matrix [rows, K], or a stack [E, rows, K], in FP8: element = e4m3 value × float32 scale.

    values: float8_e4m3fn (of NumPy the type of ml_dtypes) or uint8, its bits: [rows, K], K a multiple of 16.
    scales: float32, contiguous; they multiply, as checkpoints' weight_scale and weight_scale_inv do. Those of the type float8_e8m0fnu,
        powers of two, become a new float32 array here.
    per: what one scale is of, and so the shape of the scales; a stack has E before it.
        "tensor": of the whole matrix: one element.
        "row": of one row: [rows] or [rows, 1].
        "block": of 128 along K of one row of tokens: [rows, ⌈K/128⌉]; of 128 × 128 of weights: [⌈rows/128⌉, ⌈K/128⌉].
    scale_layout: "row_major"; of tokens in blocks also "column_major": [⌈K/128⌉, rows rounded up to 4].
    """

    __slots__ = ("values", "scales", "per", "scale_layout")

    def __init__(self, values: Any, scales: Any, *, per: str, scale_layout: str = "row_major"):
        self.values = values
        self.scales = _widened(scales) if "float8_e8m0fnu" in str(getattr(scales, "dtype", "")) else scales
        self.per = per
        self.scale_layout = scale_layout

    global_scale = None  # the one scale of "tensor" is in scales

    def __repr__(self) -> str:
        return f"Fp8({described(self.values)}, per={self.per!r}, scale_layout={self.scale_layout!r})"

    @property
    def format(self) -> str:
        return f"fp8_{self.per}"
