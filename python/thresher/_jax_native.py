"""libthresher_jax.so: the handlers of XLA's foreign functions (python/native/jax_handlers.h), which give calls of compiled programs here.

A call says in text what it is, so that programs may be kept and run in another process.
"""

import ctypes as c
import json
import os
import threading
from typing import Any

import jax

from . import _attention, _dual_gemm, _gemm, _grouped, _layers, _options
from . import _library as lib
from . import _operands as of
from ._errors import OutOfMemoryError
from ._packed import Block, opened
from ._plans import HOST, Place

_I, _L, _P = c.c_int32, c.c_int64, c.c_void_p
_FORMATS = {10: lib.FP16, 11: lib.FP32, 16: lib.BF16, 20: lib.FP8_E4M3, 4: lib.INT32, 6: lib.UINT8}  # by XLA_FFI_DataType
BLOCKS = ("weights", "gate_up", "down")


class _Buffer(c.Structure):
    _fields_ = [("data", _P), ("extents", c.POINTER(_L)), ("header", _P), ("header_bytes", _L), ("type", _I), ("rank", _I)]


class _Call(c.Structure):
    _fields_ = [("text", _P), ("text_bytes", _L), ("operands", c.POINTER(_Buffer)), ("results", c.POINTER(_Buffer)),
                ("operand_count", _I), ("result_count", _I), ("device", _I), ("reserved", _I), ("stream", _P)]


_RUN = c.CFUNCTYPE(_P, c.POINTER(_Call))
_sentences = threading.local()


class _InProgram(Place):
    """On a GPU: the stream of the program, and XLA's memory."""

    def __init__(self, library: c.CDLL, stream: int):
        self._library = library
        self.stream = stream

    def workspace(self, size: int) -> int:
        if size == 0:
            return 0
        memory = self._library.thresher_jax_scratch(size)
        if not memory:
            raise OutOfMemoryError(f"the workspace of {size} bytes cannot be had from XLA")
        return memory


def described(operands: dict) -> tuple[dict, list]:
    """What each operand is, and the arrays of all."""
    shape, arrays = {}, []
    for name, one in operands.items():
        parts = [one] if not hasattr(one, "scales") else [one.values, one.scales, one.global_scale]
        shape[name] = None if len(parts) == 1 else [one.format, one.scale_layout, one.global_scale is not None]
        arrays += [part for part in parts if part is not None]
    return shape, arrays


def _operand(name: str, buffer: _Buffer, device: tuple) -> of.Operand:
    shape = tuple(buffer.extents[: buffer.rank])
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return of.Operand(name, buffer.data or 0, _FORMATS[buffer.type], shape, tuple(reversed(strides)), device)


def _given(shape: dict, buffers: Any, device: tuple) -> dict:
    """Operands and blocks by name."""
    given: dict = {}
    for name, how in shape.items():
        if how is None:
            buffer = next(buffers)
            operand = _operand(name, buffer, device)
            given[name] = Block(operand, c.string_at(buffer.header, buffer.header_bytes)) if name in BLOCKS else operand
            continue
        format, layout, has_global = how
        values, scales = _operand(f"{name}.values", next(buffers), device), _operand(f"{name}.scales", next(buffers), device)
        if format == "nvfp4":
            factor = _operand(f"{name}.global_scale", next(buffers), device) if has_global else None
            given[name] = of.nvfp4(values, scales, factor, layout)
        else:
            given[name] = of.fp8(values, scales, format.removeprefix("fp8_"), layout, are_tokens=name in of.TOKENS)
    return given


def _run_on(function: str, given: dict, options: dict, results: list, where: dict) -> None:
    """The function of thresher.numpy of that name, on operands wherever they are."""
    activation = (_options.activation_of(*(options[name] for name in ("activation", "alpha", "limit", "up_offset")))
                  if "activation" in options else None)
    out = results[0]
    packed = given.get("weights") or given.get("gate_up")
    if packed is not None:
        held = opened("dual_gemm" if function in ("dual_gemm_packed", "gated_mlp") else "grouped", packed)
        if "weights" in given and held.info.n != out.shape[-1]:
            lib.refuse(f"n is {out.shape[-1]}, but the weights have N = {held.info.n}")
        if options.get("is_assumed"):
            _options.expect_assumed_output(held.format)
    if function == "dual_gemm":
        _dual_gemm.run(given["a"], given["b1"], given["b2"], out, activation, **where)
    elif function == "dual_gemm_packed":
        _dual_gemm.run_packed(given["a"], given["weights"], out, activation, **where)
    elif function == "gemm":
        _gemm.run(given["a"], given["b"], given.get("bias"), out, **where)
    elif function == "gemm_packed":
        _gemm.run_packed(given["a"], given["weights"], out, **where)
    elif function in ("gated_mlp", "moe"):
        between = options["intermediate_dtype"]
        between = _layers.Between(None if between is None else _layers.INTERMEDIATES[between], options.get("intermediate_scale", 1.0))
        weights = _layers.Weights(given["gate_up"], given["down"])
        if function == "gated_mlp":
            _layers.gated_mlp(given["x"], weights, out, between, activation, **where)
        else:
            _layers.moe(given["x"], weights, given["topk_ids"], given["topk_weights"], out, between, of.FORMATS[options["rows_dtype"]],
                        activation, **where)
    elif function == "attention":
        lse = results[1] if options["return_lse"] else None
        serving = _attention.Serving(*map(given.get, _attention.Serving._fields))
        _attention.run(given["q"], given["k"], given["v"], out, lse, given.get("cu_seqlens_q"), given.get("cu_seqlens_k"),
                       _attention.options_of(*(options[name] for name in ("causal", "scale", "softcap", "window"))), serving, **where)
    else:
        rows = _grouped.Rows(given.get("offsets"), given.get("counts"), given.get("row_ids"), options["row_ids_divisor"],
                             given.get("row_weights"))
        if "weights" in given:
            weights = given["weights"]
        else:
            weights = _grouped.Weights(given["b1"] if "b1" in given else given["b"], given.get("b2"),
                                       given["bias"] if "bias" in given else given.get("bias1"), given.get("bias2"), options.get("order"))
        _grouped.run(given["a"], weights, rows, out, activation, **where)


class Native:
    """The library, whose handlers have been registered."""

    def __init__(self, library: c.CDLL):
        self._library = library
        library.thresher_jax_scratch.restype, library.thresher_jax_scratch.argtypes = _P, [_L]
        library.thresher_jax_set_run.restype, library.thresher_jax_set_run.argtypes = None, [_RUN]
        self._run = _RUN(self._made)
        library.thresher_jax_set_run(self._run)
        for platform, handler in (("cpu", library.thresher_jax_cpu), ("CUDA", library.thresher_jax_cuda)):
            jax.ffi.register_ffi_target("thresher_call", jax.ffi.pycapsule(handler), platform=platform)

    def _made(self, pointer: Any) -> int | None:
        """A call of a program; gives back where the sentence lies that it failed with."""
        call = pointer.contents
        try:
            site = json.loads(c.string_at(call.text, call.text_bytes))
            device = (lib.CPU, 0) if call.device < 0 else (lib.CUDA, call.device)
            place = HOST if call.device < 0 else _InProgram(self._library, call.stream)
            if call.device >= 0 and site["options"]["threads"]:
                lib.refuse(f"threads is {site['options']['threads']}, expected 0: the GPU computes, and threads are the CPU's")
            given = _given(site["operands"], iter(call.operands[: call.operand_count]), device)
            results = [_operand(name, buffer, device) for name, buffer in zip(("out", "lse"), call.results[: call.result_count])]
            _run_on(site["function"], given, site["options"], results, dict(place=place, threads=site["options"]["threads"]))
        except Exception as error:  # whatever it is, XLA is told
            _sentences.last = c.create_string_buffer(str(error).encode(errors="replace"))
            return c.addressof(_sentences.last)
        return None

    def call(self, function: str, result: Any, operands: dict, options: dict) -> Any:
        """The call in a program, with `result` the shapes of what it gives."""
        shape, arrays = described(operands)
        text = json.dumps(dict(function=function, operands=shape, options=options))
        packed = "".join("1" if name in BLOCKS else "0" * (1 if how is None else 2 + how[2] * (how[0] == "nvfp4"))
                         for name, how in shape.items())
        zeros = function.startswith("grouped_") or "cu_seqlens_q" in shape  # rows that nobody owns are not written
        return jax.ffi.ffi_call("thresher_call", result, vmap_method="sequential")(*arrays, call=text, packed=packed, zeros=zeros)


def _load() -> tuple[Native | None, str | None]:
    """The library, or why there is none."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libthresher_jax.so")
    if not hasattr(jax, "ffi"):
        return None, f"jax {jax.__version__} has no jax.ffi: install a newer one"
    if not os.path.exists(path):
        return None, f"{path} is missing, since jaxlib was not there when the package was built: install it first, and the package again"
    return Native(c.CDLL(path)), None


native, WHY_NOT = _load()
