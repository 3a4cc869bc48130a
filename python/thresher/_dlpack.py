"""Reading a DLPack capsule (dlpack.h), for arrays that NumPy cannot hold, bfloat16 for one. Nothing is copied."""

import ctypes as c

from ._library import CPU, CUDA, refuse
from ._operands import Operand, format_of
from ._options import shown_error


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


_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}
_TYPES = {(6, 8): "bool", (10, 8): "float8_e4m3fn"}
_DEVICES = {1: CPU, 3: CPU, 2: CUDA, 13: CUDA}  # CPU, pinned, CUDA, managed

_STREAMED = (2, 13)  # devices that take a stream, of which 1 is the default one

_pointer = c.pythonapi.PyCapsule_GetPointer
_pointer.restype = c.c_void_p
_pointer.argtypes = [c.py_object, c.c_char_p]


def _type_name(dtype: _DataType) -> str:
    if dtype.lanes != 1:
        return f"vectors of {dtype.lanes} elements"
    if (dtype.code, dtype.bits) in _TYPES:
        return _TYPES[dtype.code, dtype.bits]
    if dtype.code in _KINDS:
        return f"{_KINDS[dtype.code]}{dtype.bits}"
    return f"of the DLPack type code {dtype.code} with {dtype.bits} bits"


def operand(name: str, array, stream: int | None = None) -> tuple[Operand, object]:
    """The operand, and what must be kept for as long as it is used. stream: of a GPU, in whose order it is used."""
    try:
        device = array.__dlpack_device__()[0] if stream is not None else None
        capsule = array.__dlpack__(stream=stream or 1) if device in _STREAMED else array.__dlpack__()
        address = _pointer(capsule, b"dltensor")
    except Exception as error:  # whatever the exporter raises
        refuse(f"{name} cannot be had by DLPack: {shown_error(error)}")
    tensor = _Tensor.from_address(address)
    format = format_of(_type_name(tensor.dtype))
    kind = _DEVICES.get(tensor.device.type)
    if kind is None:
        refuse(f"{name} lies on a device of DLPack's type {tensor.device.type}, expected a CPU or a CUDA device")
    shape = tuple(tensor.shape[: tensor.ndim])
    if not tensor.data and 0 not in shape:
        refuse(f"{name} has the shape {list(shape)} but no memory: its storage was freed")
    if tensor.strides:
        strides = tuple(tensor.strides[: tensor.ndim])
    else:
        strides, step = (), 1
        for extent in reversed(shape):
            strides, step = (step, *strides), step * max(extent, 1)
    device = (kind, tensor.device.id if kind == CUDA else 0)
    return Operand(name, (tensor.data or 0) + tensor.byte_offset, format, shape, strides, device), capsule
