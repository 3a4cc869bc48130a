"""The operations on NumPy arrays, by this CPU.

Arrays are given as NumPy's, or as objects with `__dlpack__` (PyTorch's and JAX's arrays) or `__array_interface__`; nothing is copied
but ids, offsets and weights of rows that are int64, of 16 bits or strided. bfloat16 is the type of that name of the package
ml_dtypes. Results are new NumPy arrays, or what was given as `out`, a NumPy array that may be written to.

Every function raises InvalidArgumentError with one sentence, and has written nothing, when arguments do not fit together.
`threads` is how many to use, 0 for all; `strategy` one of `thresher.strategies(operation)`, None for the default.
"""

from collections.abc import Callable
from typing import Any

import numpy as _np

from . import _conversions, _dlpack, _options, _packed
from . import _library as _lib
from . import _operands as _of
from ._array_functions import Array, Call, Functions
from ._array_functions import kind as _kind
from ._errors import OutOfMemoryError as _OutOfMemoryError
from ._library import refuse as _refuse

__all__ = [
    "append",
    "attention",
    "dual_gemm",
    "dual_gemm_packed",
    "gated_mlp",
    "gemm",
    "gemm_packed",
    "grouped_dual_gemm",
    "grouped_dual_gemm_packed",
    "grouped_gemm",
    "grouped_gemm_packed",
    "moe",
    "pack",
    "pack_gemm",
    "pack_grouped",
    "packed_info",
]


class _Call(Call):
    """Of NumPy's arrays, in memory of the CPU."""

    def array(self, name: str, array: Any) -> _of.Operand:
        made = self._operand(name, array)
        if made.device[0] != _lib.CPU:
            _refuse(f"{name} lies on {_of.device_text(made.device)}, expected memory of the CPU: thresher.cupy and thresher.torch compute "
                    f"on GPUs")
        return made

    def _operand(self, name: str, array: Any) -> _of.Operand:
        if not isinstance(array, _np.ndarray):
            if hasattr(array, "__cuda_array_interface__") and not hasattr(array, "__dlpack__"):
                _refuse(f"{name} lies on a GPU, expected memory of the CPU: thresher.cupy and thresher.torch compute on GPUs")
            if hasattr(array, "__dlpack__"):
                made, owner = _dlpack.operand(name, array)
                self._owners.append(owner)
                return made
            if not hasattr(array, "__array_interface__"):
                _refuse(f"{name} is {_kind(array)}, expected a NumPy array or an object with __dlpack__ or __array_interface__")
            try:
                array = _np.asarray(array)
            except Exception as error:  # whatever NumPy or the object raises
                _refuse(f"{name} cannot be had by __array_interface__: {_options.shown_error(error)}")
        return self.of_array(name, array, array.__array_interface__["data"][0], (_lib.CPU, 0))

    def integers(self, name: str, array: Any) -> _of.Operand:
        return self._converted(_conversions.integers, name, array)

    def numbers(self, name: str, array: Any) -> _of.Operand:
        return self._converted(_conversions.numbers, name, array)

    def factors(self, name: str, array: Any) -> _of.Operand:
        return self._converted(_conversions.factors, name, array)

    def _converted(self, convert: Callable[[_of.Operand], tuple], name: str, array: Any) -> _of.Operand:
        made, owner = convert(self.operand(name, array))
        self._owners.append(owner)
        return made

    def output(self, out: Any, shape: tuple, format: int, *, zeros: bool = False, name: str = "out") -> tuple:
        if out is None:
            dtype = self.dtype(format)
            try:
                out = (_np.zeros if zeros else _np.empty)(shape, dtype)
            except (MemoryError, ValueError):  # of more bytes than there are, or than can be counted
                raise _OutOfMemoryError(f"{name} of the shape {list(shape)} in {dtype.name} cannot be allocated") from None
        return out, self.written_to(name, out)

    def written_to(self, name: str, array: Any) -> _of.Operand:
        if not isinstance(array, _np.ndarray):
            _refuse(f"{name} is {_kind(array)}, expected a NumPy array")
        if not array.flags.writeable:
            _refuse(f"{name} is read-only, expected an array that may be written to")
        return self.operand(name, array)

    def written(self, weights: _packed.Handle) -> Array:
        block = _np.empty(weights.block_bytes(), _np.uint8)
        weights.to_block(block.__array_interface__["data"][0], block.size)
        return block

    def block(self, array: Any, name: str = "weights") -> _packed.Block:
        return _packed.block(self.operand(name, array))


_functions = Functions(_Call)
append = _functions.append
attention = _functions.attention
dual_gemm = _functions.dual_gemm
dual_gemm_packed = _functions.dual_gemm_packed
gated_mlp = _functions.gated_mlp
gemm = _functions.gemm
gemm_packed = _functions.gemm_packed
grouped_dual_gemm = _functions.grouped_dual_gemm
grouped_dual_gemm_packed = _functions.grouped_dual_gemm_packed
grouped_gemm = _functions.grouped_gemm
grouped_gemm_packed = _functions.grouped_gemm_packed
moe = _functions.moe
pack = _functions.pack
pack_gemm = _functions.pack_gemm
pack_grouped = _functions.pack_grouped
packed_info = _functions.packed_info
