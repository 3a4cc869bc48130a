"""Small arrays of a call, ids and weights of a router among them, as the C interface takes them: int32 or float32, and contiguous."""

from typing import Any

import numpy as np

from ._library import BF16, FP16, FP32, INT32, refuse
from ._operands import FORMAT_NAMES, INT64, Operand, expect_format, is_contiguous

LEAST, MOST = -(2**31), 2**31 - 1


def integers(given: Operand) -> tuple[Operand, Any]:
    """(the operand, contiguous and in int32, what owns its memory), of int32 or of int64 whose values int32 holds."""
    expect_format(given, INT32, INT64)
    if given.format == INT32 and is_contiguous(given):
        return given, None
    return _operand(given.name, narrowed(given.name, _array(given)))


def numbers(given: Operand) -> tuple[Operand, Any]:
    """The same of numbers that may stay int64."""
    expect_format(given, INT32, INT64)
    return (given, None) if is_contiguous(given) else _operand(given.name, np.ascontiguousarray(_array(given)))


def factors(given: Operand) -> tuple[Operand, Any]:
    """The same in float32, of any type of 16 or 32 bits, which it holds exactly."""
    expect_format(given, FP32, FP16, BF16)
    if given.format == FP32 and is_contiguous(given):
        return given, None
    values = _array(given)
    if given.format == BF16:
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return _operand(given.name, np.ascontiguousarray(values, np.float32))


def narrowed(name: str, values: np.ndarray) -> np.ndarray:
    """Contiguous int32 of whole numbers. Refuses the first that int32 does not hold."""
    beyond = (values < LEAST) | (values > MOST)
    if beyond.any():
        where = np.unravel_index(int(np.argmax(beyond)), values.shape)
        refuse(f"{name}[{', '.join(map(str, where))}] is {values[where]}, expected {LEAST} to {MOST}: {name} is kept as int32")
    return np.ascontiguousarray(values, np.int32)


class _Memory:
    def __init__(self, given: Operand, dtype: np.dtype):
        self.__array_interface__ = dict(version=3, typestr=dtype.str, data=(given.pointer, True), shape=given.shape,
                                        strides=tuple(stride * dtype.itemsize for stride in given.strides))


def _array(given: Operand) -> np.ndarray:
    """What lies there; of bfloat16 its bits."""
    dtype = np.dtype(np.uint16 if given.format == BF16 else FORMAT_NAMES[given.format])
    return np.empty(given.shape, dtype) if 0 in given.shape else np.asarray(_Memory(given, dtype))


def _operand(name: str, values: np.ndarray) -> tuple[Operand, np.ndarray]:
    format = {"int32": INT32, "int64": INT64, "float32": FP32}[values.dtype.name]
    strides = tuple(stride // values.itemsize for stride in values.strides)
    return Operand(name, values.__array_interface__["data"][0], format, values.shape, strides, (0, 0)), values
