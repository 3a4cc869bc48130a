"""The C interface (thresher/thresher.h) by ctypes. Loaded when something is first asked of it."""

import ctypes as c
import functools
import os
from typing import NoReturn

from . import _errors
from ._sentences import in_python

FP32, FP16, BF16, FP8_E4M3, NVFP4, INT32, UINT8, FP8_TENSOR, FP8_ROW, FP8_BLOCK = range(10)
CPU, CUDA = range(2)
NO_ACTIVATION = -1

_I, _L, _P, _S, _Z = c.c_int32, c.c_int64, c.c_void_p, c.c_char_p, c.c_size_t
_MATRIX = [_P, _L, _P, _P]  # data, row stride, scales, global scale

class Device(c.Structure):
    _fields_ = [("kind", _I), ("ordinal", _I)]


PLANS = ("dual_gemm", "gemm", "grouped", "gated_mlp", "moe", "attention", "append", "quantize")
# By what a plan is run: of most kinds by a function of numbers and pointers that is named like its kind.
RUNS = {kind: f"thresher_{kind}_run_flat" for kind in PLANS} | {"attention": "thresher_attention_run_serving_flat", "append": "thresher_append_run"}
WITHOUT_WORKSPACE = ("append", "quantize")

_SIGNATURES = {
    "thresher_version": (_S, []),
    "thresher_last_error": (_S, []),
    "thresher_places_are_known": (_I, [_I]),
    "thresher_dual_gemm_plan_raw_flat": (
        _I,
        [_I, _I, _L, _L, _L, _I, _I, _I, _I, _P, *_MATRIX, *_MATRIX, _I, _S, _S, _I, _P],
    ),
    "thresher_dual_gemm_plan_flat": (_I, [_P, _L, _I, _I, _I, _P, _S, _S, _I, _P]),
    "thresher_dual_gemm_pack_flat": (_I, [_I, _I, _I, _L, _L, *_MATRIX, *_MATRIX, _I, _I, _P]),
    "thresher_grouped_pack": (_I, [_P, _I, _P]),
    **{f"thresher_{kind}_run_flat": (_I, [_P, _P, _L, _P, _L, _P, _I, _P, _P, _L, _P]) for kind in ("dual_gemm", "gemm", "gated_mlp")},
    "thresher_gemm_plan": (_I, [Device, _P, _P, _P, _P]),
    "thresher_gemm_plan_raw": (_I, [Device, _P, _P, _P, _I, _P, _P]),
    "thresher_gemm_weights_of_expert": (_I, [_P, _P]),
    "thresher_gemm_weights_destroy": (None, [_P]),
    "thresher_gated_mlp_plan": (_I, [Device, _P, _P, _P, _P, _P]),
    "thresher_gated_mlp_weights_of_parts": (_I, [_P, _P, _P]),
    "thresher_gated_mlp_weights_of_up": (_I, [_P, _P, _P]),
    "thresher_gated_mlp_weights_destroy": (None, [_P]),
    "thresher_moe_plan": (_I, [Device, _P, _P, _P, _P, _P, _P]),
    "thresher_moe_run_flat": (_I, [_P, _P, _L, _P, _L, _P, _I, _P, _P, _P, _P, _L, _P]),
    "thresher_grouped_run_flat": (_I, [_P, _P, _I, _L, _L, _P, _L, _P, _P, _P, _L, _P, _P, _P, _P]),
    "thresher_attention_plan_serving_flat": (
        _I,
        [_I, _I, _I, _I, _I, *[_L] * 7, _I, _P, _L, _L, _P, _I, _L, _L, _I, _S, _S, _I, _I, _P],
    ),
    "thresher_attention_run_serving_flat": (_I, [*[_P] * 14, _L, *[_P] * 9]),
    "thresher_append_plan": (_I, [Device, _P, _I, _P]),
    "thresher_append_run": (_I, [_P, _P, _P]),
    "thresher_quantize_plan": (_I, [Device, _P, _I, _P]),
    "thresher_quantize_run_flat": (_I, [_P, _P, _L, _P, _L, _P, _L, _P, _I, _I]),
    **{f"thresher_{kind}_destroy": (None, [_P]) for kind in PLANS},
    **{f"thresher_{kind}_workspace_bytes": (_Z, [_P]) for kind in PLANS if kind not in WITHOUT_WORKSPACE},
    **{
        f"thresher_{kind}_weights_{name}": signature
        for kind in ("dual_gemm", "grouped")
        for name, signature in {
            "destroy": (None, [_P]),
            "info": (_I, [_P, _P]),
            "block_bytes": (_I, [_P, _P]),
            "to_block": (_I, [_P, _P, _Z]),
            "from_block": (_I, [Device, _P, _Z, _I, _P]),
        }.items()
    },
}


class Versioned(c.Structure):
    """A struct that begins with its size; `made` takes the library's defaults for what is not given."""

    @classmethod
    def made(cls, **values):
        one = cls()
        initialise = getattr(library(), cls.__name__ + "_init")
        initialise(c.byref(one), c.c_uint32(c.sizeof(cls)))
        for name, value in values.items():
            setattr(one, name, value)
        return one


class thresher_grouped_problem(Versioned):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("layout", _I),
        ("experts", _L),
        ("rows", _L),
        ("n", _L),
        ("k", _L),
        ("tokens", _L),
        ("expected_rows", _L),
        ("row_ids_divisor", _L),
        ("a", _I),
        ("b", _I),
        ("out", _I),
        ("activation", _I),
        ("alpha", c.c_float),
        ("limit", c.c_float),
        ("up_offset", c.c_float),
        ("bias", _I),
        ("row_weights", _I),
        ("reserved", _I),
    ]


class thresher_grouped_weights_view(Versioned):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("format", _I),
        ("device", Device),
        ("experts", _L),
        ("n", _L),
        ("k", _L),
        ("order", _I),
        ("scale_layout", _I),
        ("b1", _P),
        ("b2", _P),
        ("expert_stride", _L),
        ("row_stride", _L),
        ("b1_scales", _P),
        ("b2_scales", _P),
        ("b1_global_scales", _P),
        ("b2_global_scales", _P),
        ("bias1", _P),
        ("bias2", _P),
        ("bias_format", _I),
        ("reserved", _I),
    ]


class thresher_matrix(Versioned):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("format", _I),
        ("data", _P),
        ("shape", _L * 2),
        ("device", Device),
        ("row_stride", _L),
        ("scales", _P),
        ("global_scale", _P),
        ("scale_layout", _I),
        ("scales_are_powers_of_two", _I),
    ]


class thresher_gemm_problem(Versioned):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("a", _I),
        ("b", _I),
        ("out", _I),
        ("m", _L),
        ("n", _L),
        ("k", _L),
        ("bias", _I),
        ("activation", _I),
    ]


class thresher_gated_mlp_problem(Versioned):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("x", _I),
        ("tokens", _L),
        ("hidden_size", _L),
        ("intermediate_size", _L),
        ("gate_up", _I),
        ("intermediate", _I),
        ("down", _I),
        ("out", _I),
        ("activation", _I),
        ("alpha", c.c_float),
        ("limit", c.c_float),
        ("up_offset", c.c_float),
        ("intermediate_scale", c.c_float),
        ("reserved", _I),
    ]


class thresher_moe_problem(Versioned):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("x", _I),
        ("experts", _L),
        ("tokens", _L),
        ("top_k", _L),
        ("hidden_size", _L),
        ("intermediate_size", _L),
        ("expected_rows", _L),
        ("gate_up", _I),
        ("intermediate", _I),
        ("down", _I),
        ("rows", _I),
        ("out", _I),
        ("activation", _I),
        ("alpha", c.c_float),
        ("limit", c.c_float),
        ("up_offset", c.c_float),
        ("gate_up_bias", _I),
        ("down_bias", _I),
        ("intermediate_scale", c.c_float),
        ("quantized_x", _I),
        ("reserved", _I),
    ]


class thresher_append_problem(Versioned):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("format", _I),
        ("tokens", _L),
        ("heads", _L),
        ("kv_heads", _L),
        ("head_dim", _L),
        ("value_dim", _L),
        ("rotary_dim", _L),
        ("max_position", _L),
        ("page_size", _L),
        ("pages", _L),
        ("pairs", _I),
        ("theta", c.c_float),
        ("has_kv_format", _I),
        ("kv_format", _I),
    ]


class thresher_tensor(Versioned):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("format", _I),
        ("data", _P),
        ("device", Device),
        ("rank", _I),
        ("reserved", _I),
        ("shape", _L * 4),
        ("strides", _L * 4),
    ]


class thresher_append_tensors(Versioned):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("number_bits", _I),
        *((name, _P) for name in ("q", "q_out", "k", "v", "k_out", "positions", "slots", "cos_sin", "k_cache", "v_cache", "k_descale",
                                  "v_descale")),
    ]


class thresher_quantize_problem(Versioned):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("x", _I),
        ("out", _I),
        ("reserved", _I),
        ("rows", _L),
        ("columns", _L),
    ]


class thresher_packed_info(Versioned):
    _fields_ = [
        ("struct_size", c.c_uint32),
        ("format", _I),
        ("experts", _L),
        ("n", _L),
        ("k", _L),
        ("matrices", _I),
        ("has_bias", _I),
        ("numerics", _I),
        ("reserved", _I),
    ]


class thresher_dual_gemm_options(Versioned):
    _fields_ = [("struct_size", c.c_uint32), ("threads", _I), ("strategy", _S), ("knobs", _S)]


@functools.cache
def library() -> c.CDLL:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libthresher.so")
    try:
        loaded = c.CDLL(path)
    except OSError as error:
        raise ImportError(f"the library of the package thresher cannot be loaded ({error}): install the package again") from None
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    return loaded


def check(status: int) -> None:
    """Raises the library's sentence unless `status` is that of success."""
    if status != 0:
        sentence = in_python(library().thresher_last_error().decode(errors="replace"))
        raise _errors.by_status.get(status, _errors.InternalError)(sentence)


def refuse(sentence: str) -> NoReturn:
    raise _errors.InvalidArgumentError(sentence)


def version() -> str:
    return library().thresher_version().decode()


def best_device() -> str:
    device = Device()
    check(library().thresher_best_device(c.byref(device)))
    return "cpu" if device.kind == CPU else f"cuda:{device.ordinal}"


def parse_device(text: str) -> tuple[int, int]:
    """(kind, ordinal) of "cpu", "cuda" or "cuda:1"."""
    kind, _, ordinal = text.partition(":") if isinstance(text, str) else ("", "", "")
    if kind == "cpu" and not ordinal:
        return (CPU, 0)
    if kind == "cuda" and (not ordinal or ordinal.isascii() and ordinal.isdigit()):
        return (CUDA, int(ordinal or 0))
    refuse(f"the device is {text!r}, expected 'cpu', 'cuda' or 'cuda:1'")


def device_name(device: str = "cpu") -> str:
    text = c.create_string_buffer(256)
    check(library().thresher_device_name(Device(*parse_device(device)), text, c.c_size_t(len(text))))
    return text.value.decode(errors="replace")


def strategies(operation: str, device: str = "cpu") -> list[str]:
    kinds = {"dual_gemm": "dual_gemm", "gemm": "gemm", "grouped_dual_gemm": "grouped", "grouped_gemm": "grouped", "attention": "attention"}
    if operation not in kinds:
        refuse(f"the operation is {operation!r}, expected one of {', '.join(kinds)}")
    text = c.create_string_buffer(4096)
    function = getattr(library(), f"thresher_{kinds[operation]}_strategies")
    check(function(Device(*parse_device(device)), text, c.c_size_t(len(text))))
    return text.value.decode().split(",")
