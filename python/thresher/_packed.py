"""Packed weights as blocks of bytes (thresher.h): made, read in place, and described."""

import ctypes as c
import re
from typing import NamedTuple

from . import _library as lib
from ._errors import InvalidArgumentError
from ._library import refuse
from ._operands import FORMAT_NAMES, Operand, expect_contiguous, expect_format, expect_rank
from ._options import NUMERICS, one_of, truth
from ._plans import Kept


class PackedInfo(NamedTuple):
    """What packed weights hold."""

    format: str  # "float16", "bfloat16", "nvfp4", "fp8_tensor", "fp8_row" or "fp8_block", before packing
    experts: int | None  # None of the dual GEMM's
    n: int  # rows of one matrix of one expert
    k: int
    matrices: int  # of an expert: 2 for gate and up, else 1
    has_bias: bool
    numerics: str  # "exact" or "fast"


class Block(NamedTuple):
    """A block and the bytes of its header, by which is known what it holds now."""

    operand: Operand
    header: bytes


class Handle:
    """Packed weights of the C interface, of the kind "dual_gemm" or "grouped"."""

    __slots__ = ("handle", "info", "format", "_destroy", "_kind")

    def __init__(self, kind: str, handle: c.c_void_p):
        self.handle = handle
        self._kind = kind
        self._destroy = self._function("destroy")
        given = lib.thresher_packed_info.made()
        lib.check(self._function("info")(handle, c.byref(given)))
        self.format = given.format
        self.info = PackedInfo(FORMAT_NAMES[given.format], given.experts or None, given.n, given.k, given.matrices,
                               bool(given.has_bias), list(NUMERICS)[given.numerics])

    def _function(self, name: str):
        return getattr(lib.library(), f"thresher_{self._kind}_weights_{name}")

    def block_bytes(self) -> int:
        size = c.c_size_t()
        lib.check(self._function("block_bytes")(self.handle, c.byref(size)))
        return size.value

    def to_block(self, pointer: int, size: int) -> None:
        lib.check(self._function("to_block")(self.handle, pointer, size))

    def __del__(self):
        destroy = getattr(self, "_destroy", None)
        if destroy is not None:
            destroy(self.handle)


class Part:
    """A handle of weights that share the memory of others."""

    def __init__(self, kind: str, make, *arguments):
        self.handle = c.c_void_p()
        self._destroy = getattr(lib.library(), f"thresher_{kind}_weights_destroy")
        lib.check(make(*arguments, c.byref(self.handle)))

    def __del__(self):
        if self.handle:
            self._destroy(self.handle)


# By what and where they are: of weights that were looked at last, what they hold.
_handles = Kept(1024)


def made(kind: str, function, *arguments) -> Handle:
    handle = c.c_void_p()
    lib.check(function(*arguments, c.byref(handle)))
    return Handle(kind, handle)


def numerics_of(numerics: str) -> int:
    return one_of("numerics", numerics, NUMERICS)


def expect_block(operand: Operand) -> None:
    expect_format(operand, lib.UINT8)
    expect_rank(operand, 1, "the bytes that pack gave")
    expect_contiguous(operand)


def header_length(first: bytes, size: int) -> int:
    """Of all of a block's header, which `first`, its first 8 bytes, tell; what is none is as long as its block at most."""
    return min(8 + int.from_bytes(first, "little"), size)


def block(operand: Operand) -> Block:
    """Of memory of the CPU."""
    expect_block(operand)
    size = operand.shape[0]
    if size < 8:
        return Block(operand, b"")
    return Block(operand, c.string_at(operand.pointer, header_length(c.string_at(operand.pointer, 8), size)))


def opened(kind: str, given: Block, check: bool = False) -> Handle:
    """The weights in a block, read in place; `check`: all of their bytes are looked at."""
    operand = given.operand

    def make() -> Handle:
        try:
            return made(kind, getattr(lib.library(), f"thresher_{kind}_weights_from_block"), lib.Device(*operand.device),
                        operand.pointer, operand.shape[0], int(check))
        except InvalidArgumentError as error:
            refuse(_about_block(operand.name, str(error)))

    if check:
        return make()
    key = (kind, operand[1:6], given.header)
    return _handles.get(key) or _handles.make(key, make)


def _about_block(name: str, sentence: str) -> str:
    """The library's sentence about a block, which it takes for a file, as one about the argument."""
    found = re.fullmatch(r"packed weights in memory( is not a valid safetensors file)?: (.*)", sentence)
    if found is None:
        return sentence
    reason = found[2].removesuffix(", make it with thresher pack")
    if found[1] or reason != found[2]:
        return f"{name} does not hold what pack, pack_gemm or pack_grouped gave: {reason}"
    return f"{name}: {reason}"


def info_of(given: Block, check: bool) -> PackedInfo:
    truth("check", check)
    kind = "grouped" if b'"experts":' in given.header else "dual_gemm"
    return opened(kind, given, check).info
