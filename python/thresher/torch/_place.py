"""Tensors as operands, and where calls on them run."""

import torch
from torch.utils.weak import WeakIdKeyDictionary

from .. import _library as lib
from .. import _packed
from .._operands import INT64, Operand
from .._plans import HOST, Place
from ._native import native
from ._plain import expect_whole, pointer_of, short

FORMATS = {
    torch.float32: lib.FP32,
    torch.float16: lib.FP16,
    torch.bfloat16: lib.BF16,
    torch.int32: lib.INT32,
    torch.uint8: lib.UINT8,
    torch.float8_e4m3fn: lib.FP8_E4M3,
    torch.int64: INT64,
}

_CPU = (lib.CPU, 0)


def operand(name: str, tensor: torch.Tensor) -> Operand:
    if tensor is None:
        lib.refuse(f"{name} is None, expected a tensor")
    format = FORMATS.get(tensor.dtype)
    if format is None:
        format = short(tensor.dtype)  # which what is done with it refuses
    pointer = pointer_of(name, tensor)
    device = (lib.CUDA, tensor.get_device()) if tensor.is_cuda else _CPU
    return Operand(name, pointer, format, tuple(tensor.shape), tensor.stride(), device)


def optional(name: str, tensor: torch.Tensor | None) -> Operand | None:
    return None if tensor is None else operand(name, tensor)


class _OnGpu(Place):
    """The current stream of a tensor's GPU. PyTorch's allocator gives the workspace, so that a graph's own pool does while one
    is captured; the stream's order lets it be given away again once the call is enqueued."""

    def __init__(self, device: torch.device):
        self._device = device
        self.stream = torch.cuda.current_stream(device).cuda_stream

    def workspace(self, size: int) -> int:
        if size == 0:
            return 0
        self._memory = torch.empty(size, dtype=torch.uint8, device=self._device)
        return self._memory.data_ptr()

    def before_planning(self) -> None:
        if torch.cuda.is_current_stream_capturing():
            lib.refuse("a call that was not made before is being captured in a CUDA graph, and planning it may compile and "
                       "allocate: make it once with these shapes before the capture, or let thresher.torch.warm do so")


# Of blocks on GPUs, whose headers cannot be read in every call: the version and the address that they were read of.
_headers = WeakIdKeyDictionary()


def block(tensor: torch.Tensor, name: str = "weights") -> _packed.Block:
    """Packed weights. On a GPU the header is read again when PyTorch counts that the tensor was written to."""
    given = operand(name, tensor)
    expect_whole(name, tensor)
    if not tensor.is_cuda:
        return _packed.block(given)
    _packed.expect_block(given)
    seen = (None if tensor.is_inference() else tensor._version, given.pointer, given.shape)
    known = _headers.get(tensor)
    if known is None or known[0] != seen:
        place(tensor).before_planning()
        first = bytes(tensor[:8].tolist())
        header = bytes(tensor[: _packed.header_length(first, given.shape[0])].tolist()) if len(first) == 8 else b""
        known = _headers[tensor] = (seen, header)
        if native is not None:
            native.know_block(tensor)
    return _packed.Block(given, known[1])


def place(tensor: torch.Tensor) -> Place:
    return _OnGpu(tensor.device) if tensor.is_cuda else HOST
