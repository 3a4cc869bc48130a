"""The operations on CuPy's arrays, by their GPU, in CuPy's current stream.

Arrays are given as CuPy's, or as objects with `__cuda_array_interface__` or `__dlpack__` in memory of a GPU; nothing is copied, so
that ids, offsets and counts are int32, weights of rows float32, and all of them contiguous. All of a call lie on one GPU, which is
CuPy's current one. Results are new CuPy arrays, or what was given as `out`, a CuPy array. The workspace comes from CuPy's memory
pool. `threads` is 0; `strategy` is one of `thresher.strategies(operation, "cuda")`.

The functions are those of thresher.numpy, and raise as they do. Packed weights are packed for the GPU, and their header is read in every
call, for which it waits; calls that a CUDA graph is to capture are better made with thresher.torch.
"""

from typing import Any

import cupy as _cp

from . import _dlpack, _options, _packed
from . import _library as _lib
from . import _operands as _of
from ._array_functions import Array, Call, Functions
from ._array_functions import kind as _kind
from ._library import refuse as _refuse
from ._plans import Place
from .numpy import __all__  # noqa: F401


class _OnGpu(Place):
    """CuPy's current stream; memory that is given back is given away in its order."""

    def __init__(self):
        self.stream = _cp.cuda.get_current_stream().ptr

    def workspace(self, size: int) -> int:
        if size == 0:
            return 0
        self._memory = _cp.empty(size, _cp.uint8)
        return self._memory.data.ptr


class _Call(Call):
    """Of CuPy's arrays, in memory of the current GPU."""

    def __init__(self):
        super().__init__()
        self.place = _OnGpu()

    def array(self, name: str, array: Any) -> _of.Operand:
        made = self._operand(name, array)
        current = (_lib.CUDA, _cp.cuda.Device().id)
        if made.device != current:
            _refuse(f"{name} lies on {_of.device_text(made.device)}, expected memory of {_of.device_text(current)}, CuPy's current one")
        return made

    def _operand(self, name: str, array: Any) -> _of.Operand:
        if isinstance(array, _cp.ndarray):
            return self.of_array(name, array, array.data.ptr, (_lib.CUDA, array.device.id))
        if hasattr(array, "__cuda_array_interface__"):
            try:
                given = _cp.asarray(array)
            except Exception as error:  # whatever CuPy or the object raises
                _refuse(f"{name} cannot be had by __cuda_array_interface__: {_options.shown_error(error)}")
            return self._operand(name, given)
        if hasattr(array, "__dlpack__"):
            made, owner = _dlpack.operand(name, array, stream=self.place.stream)
            self._owners.append(owner)
            return made
        _refuse(f"{name} is {_kind(array)}, expected a CuPy array or an object with __cuda_array_interface__ or __dlpack__")

    def threads(self, threads: int) -> int:
        if threads != 0:
            _refuse(f"threads is {threads!r}, expected 0: the GPU computes, and threads are the CPU's")
        return 0

    def output(self, out: Any, shape: tuple, format: int, *, zeros: bool = False, name: str = "out") -> tuple:
        if out is None:
            out = (_cp.zeros if zeros else _cp.empty)(shape, self.dtype(format))
        return out, self.written_to(name, out)

    def written_to(self, name: str, array: Any) -> _of.Operand:
        if not isinstance(array, _cp.ndarray):
            _refuse(f"{name} is {_kind(array)}, expected a CuPy array")
        return self.operand(name, array)

    def written(self, weights: _packed.Handle) -> Array:
        block = _cp.empty(weights.block_bytes(), _cp.uint8)
        weights.to_block(block.data.ptr, block.size)
        return block

    def settled(self) -> Call:
        _cp.cuda.get_current_stream().synchronize()
        return self

    def block(self, array: Any, name: str = "weights") -> _packed.Block:
        operand = self.operand(name, array)
        _packed.expect_block(operand)
        size = operand.shape[0]
        if size < 8:
            return _packed.Block(operand, b"")
        length = _packed.header_length(_read(operand, 8), size)
        return _packed.Block(operand, _read(operand, length))


def _read(operand: _of.Operand, count: int) -> bytes:
    """The first bytes of memory of a GPU, in the current stream's order."""
    stream = _cp.cuda.get_current_stream()
    stream.synchronize()
    memory = _cp.cuda.UnownedMemory(operand.pointer, count, operand)
    return _cp.ndarray((count,), _cp.uint8, _cp.cuda.MemoryPointer(memory, 0)).get(stream=stream).tobytes()


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
