"""Reading a DLPack capsule (dlpack.h), for arrays that NumPy cannot hold, bfloat16 for one. Nothing is copied."""

import ctypes as c

from ._library import BF16, CPU, CUDA, FP8_E4M3, FP16, FP32, INT32, UINT8, refuse
from ._operands import FORMATS, INT64, Operand


class _Device(c.Structure):
    _fields_ = [("type", c.c_int32), ("id", c.c_int32)]


class _DataType(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class _Tensor(c.Structure):
    """DLTensor, with which a DLManagedTensor begins."""

    _fields_ = [
        ("data", c.c_void_p),
        ("device", _Device),
        ("ndim", c.c_int32),
        ("dtype", _DataType),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
    ]


_FORMATS = {(2, 32): FP32, (2, 16): FP16, (4, 16): BF16, (10, 8): FP8_E4M3, (0, 32): INT32, (0, 64): INT64, (1, 8): UINT8}
_DEVICES = {1: CPU, 3: CPU, 2: CUDA, 13: CUDA}  # CPU, pinned, CUDA, managed

_STREAMED = (2, 13)  # devices that take a stream, of which 1 is the default one

_pointer = c.pythonapi.PyCapsule_GetPointer
_pointer.restype = c.c_void_p
_pointer.argtypes = [c.py_object, c.c_char_p]


def operand(name: str, array, formats: dict = FORMATS, stream: int | None = None) -> tuple[Operand, object]:
    """The operand of one of these types, and what must be kept for as long as it is used. stream: of a GPU, in whose order it is used."""
    try:
        device = array.__dlpack_device__()[0] if stream is not None else None
        capsule = array.__dlpack__(stream=stream or 1) if device in _STREAMED else array.__dlpack__()
        address = _pointer(capsule, b"dltensor")
    except Exception as error:  # whatever the exporter raises
        refuse(f"{name} cannot be had by DLPack: {error}")
    tensor = _Tensor.from_address(address)
    dtype = tensor.dtype
    format = _FORMATS.get((dtype.code, dtype.bits)) if dtype.lanes == 1 else None
    if format not in formats.values():
        refuse(f"{name} has the DLPack type code {dtype.code} of {dtype.bits} bits, expected float16, bfloat16, float32, "
               f"int32 or uint8")
    kind = _DEVICES.get(tensor.device.type)
    if kind is None:
        refuse(f"{name} lies on a device of DLPack's type {tensor.device.type}, expected a CPU or a CUDA device")
    shape = tuple(tensor.shape[: tensor.ndim])
    if tensor.strides:
        strides = tuple(tensor.strides[: tensor.ndim])
    else:
        strides, step = (), 1
        for extent in reversed(shape):
            strides, step = (step, *strides), step * max(extent, 1)
    device = (kind, tensor.device.id if kind == CUDA else 0)
    return Operand(name, (tensor.data or 0) + tensor.byte_offset, format, shape, strides, device), capsule
