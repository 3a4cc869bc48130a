"""The operations on PyTorch's tensors, on a GPU or on this CPU.

Each is an operator of `torch.ops.thresher` with a functional and an out form, which `torch.compile` takes into its graph whole; on
a GPU it runs in the current stream and can be captured in a CUDA graph once it was called with such shapes. There are no
derivatives: a call that would need one is refused, in eager mode and wherever PyTorch traces or transforms it.

Functions take `out`, a tensor that is written instead of a new one, and raise below `thresher.Error`, with one sentence and before
anything is written, when arguments do not fit together. Under torch.autocast operands in float32 are taken in its type, as a linear
layer takes them.
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal, overload

import torch as _torch

from .. import _options
from .._attention import window_of as _window_of
from .._errors import InvalidArgumentError as _InvalidArgumentError
from .._fp8 import Fp8
from .._library import refuse as _refuse
from .._nvfp4 import Nvfp4
from .._packed import PackedInfo
from .._packed import info_of as _info_of
from .._quantize import FORMATS as _QUANTIZED
from .._quantize import LAYOUTS as _LAYOUTS
from . import _ops as _ops  # registers
from . import _packing
from ._arguments import dtype_of as _dtype_of
from ._arguments import expect_number as _expect_number
from ._arguments import kept as _kept
from ._arguments import refuse_beyond as _refuse_beyond
from ._native import call as _call
from ._place import block as _block
from ._plain import expect_plain as _expect_plain

__all__ = [
    "Attention",
    "GatedMLP",
    "Linear",
    "MoE",
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
    "quantize",
    "warm",
]

_Tensor = _torch.Tensor
_Activation = Literal["silu", "gelu_tanh", "swiglu_clamped", "situ"]
_LayerActivation = Literal["silu", "gelu_tanh", "swiglu_clamped", "situ", "relu2"]
_OneActivation = Literal["relu2"]
_Order = Literal["gate_first", "up_first", "interleaved"]
_Numerics = Literal["exact", "fast"]
_Pairs = Literal["halves", "interleaved", "none"]


_STRIDED = _torch.strided
_PER = {"block": "fp8_block", "row": "fp8_row"}


def _expect_tensor(name: str, value: Any) -> None:
    if not isinstance(value, _Tensor):
        _refuse(f"{name} is {'None' if value is None else 'of the type ' + type(value).__name__}, expected a tensor")
    if value.layout != _STRIDED or not (value.is_cuda or value.is_cpu or value.is_meta):
        _expect_plain(name, value)


def _expect_tensors(**given: Any) -> None:
    for name, value in given.items():
        _expect_tensor(name, value)


def _activation(activation: str, alpha: float | None, limit: float | None, up_offset: float | None) -> dict:
    """The named arguments of an operator, which costs less to call with fewer."""
    if alpha is None and limit is None and up_offset is None:
        return {} if activation == "silu" else {"activation": activation}
    if activation not in _options.CONSTANTS:
        _options.activation_chosen(activation, alpha, limit, up_offset)
    given = {name: value for name, value in (("alpha", alpha), ("limit", limit), ("up_offset", up_offset)) if value is not None}
    for name, value in given.items():
        _expect_number(name, value)
    return {"activation": activation, **given}


def _between(dtype: _torch.dtype | str | None, scale: float) -> dict:
    """The named arguments of a layer's operator that say what lies between its products."""
    named: dict[str, Any] = {}
    if isinstance(dtype, str):
        named["intermediate_format"] = dtype
    elif dtype is not None:
        named["intermediate_dtype"] = _dtype_of("intermediate_dtype", dtype, (_torch.float16, _torch.bfloat16))
    _expect_number("intermediate_scale", scale)
    return named if scale == 1.0 else {**named, "intermediate_scale": scale}


def _quantized(x: str | None) -> dict:
    if x is not None:
        _options.one_of("quantized_x", x, _QUANTIZED)
    return {} if x is None else {"quantized_x": x}


def _given(**optional: Any) -> dict:
    """Those that are not None, checked, and in the types that an operator takes."""
    given: dict[str, Any] = {}
    for name, value in optional.items():
        if value is not None:
            _expect_tensor(name, value)
            given[name] = _kept(name, value)
    return given


def _attention_options(causal: bool, scale: float | None, softcap: float, left: int, right: int) -> dict:
    """As _activation: the named arguments that are not the defaults."""
    given: dict[str, Any] = {}
    if causal is not False:
        if causal is not True:
            _refuse(f"causal is {causal!r}, expected True or False")
        given["causal"] = True
    if scale is not None:
        if type(scale) is not float:
            _expect_number("scale", scale)
        given["scale"] = scale
    if type(softcap) is not float:
        _expect_number("softcap", softcap)
    if softcap != 0.0:
        given["softcap"] = softcap
    if left != -1 or right != -1:
        _expect_number("window_left", left)
        _expect_number("window_right", right)
        given["window_left"], given["window_right"] = left, right
    return given


def _weights(names: tuple, weights: tuple) -> tuple:
    """(values, named arguments) of weights that are tensors, all Nvfp4 or all Fp8."""
    kinds = [type(one) for one in weights if isinstance(one, (Nvfp4, Fp8))]
    if not kinds:
        for name, one in zip(names, weights):
            if one is not None or name != "b2":
                _expect_tensors(**{name: one})
        return weights, {}
    values: list[_Tensor | None] = []
    named: dict[str, _Tensor] = {}
    layouts: set = set()
    formats: set = set()
    for name, one in zip(names, weights):
        if one is None:
            values.append(None)
            continue
        if not isinstance(one, kinds[0]):
            _refuse(f"{name} is not {kinds[0].__name__}, expected it to be, as the other weights are")
        _expect_tensors(**{f"{name}.values": one.values, f"{name}.scales": one.scales})
        values.append(one.values)
        named.update(_given(**{f"{name}_scales": one.scales, f"{name}_global_scale": one.global_scale}))
        layouts.add(one.scale_layout)
        formats.add(one.format)
    if len(layouts) > 1:
        _refuse("b1 and b2 have scales in different layouts, expected one layout")
    if len(formats) > 1:
        _refuse(f"b1 and b2 are {' and '.join(sorted(formats))}, expected one format")
    return tuple(values), {**named, "scale_layout": layouts.pop(), "b_format": formats.pop()}


def _tokens(a: Any, name: str = "a") -> tuple:
    """(values, named arguments) of tokens."""
    if not isinstance(a, (Nvfp4, Fp8)):
        _expect_tensors(**{name: a})
        return a, {}
    _expect_tensors(**{f"{name}.values": a.values, f"{name}.scales": a.scales})
    named = _given(**{f"{name}_scales": a.scales, f"{name}_global_scale": a.global_scale})
    return a.values, {**named, f"{name}_scale_layout": a.scale_layout, f"{name}_format": a.format}


def _count_write(*written: _Tensor) -> None:
    """So that autograd refuses to use what an earlier operation saved of them. The operator counts those that it writes, but does not see
    the tensors around them, of a subclass or of torch.func."""
    if _torch.compiler.is_compiling():
        return
    is_inference = _torch.is_inference_mode_enabled()
    for one in written:
        if not (is_inference and type(one) is _Tensor) and not one.is_inference():
            _torch.autograd.graph.increment_version(one)


def _run(name: str, out: _Tensor | None, out_dtype: _torch.dtype | str | None, arguments: tuple, options: dict) -> _Tensor:
    if out is None:
        if out_dtype is not None:
            options["out_dtype"] = _dtype_of("out_dtype", out_dtype)
        return _call(getattr(_torch.ops.thresher, name), *arguments, **options)
    if out_dtype is not None:
        _refuse("out and out_dtype are both given, expected one of them")
    _expect_tensors(out=out)
    _call(getattr(_torch.ops.thresher, f"{name}_out"), out, *arguments, **options)
    _count_write(out)
    return out


def dual_gemm(a: _Tensor | Nvfp4 | Fp8, b1: _Tensor | Nvfp4 | Fp8, b2: _Tensor | Nvfp4 | Fp8, *, activation: _Activation = "silu",
              alpha: float | None = None, limit: float | None = None, up_offset: float | None = None,
              out_dtype: _torch.dtype | str | None = None, out: _Tensor | None = None) -> _Tensor:
    """activation(a·b1ᵀ) ∘ (a·b2ᵀ), the first half of a gated MLP. b1 is the gate, b2 is up.

    a: [M, K], float16, bfloat16, Nvfp4 or Fp8. K is a multiple of 8, with Nvfp4 and Fp8 of 16; M and N may be 0.
    b1, b2: [N, K], both float16, both bfloat16, both Nvfp4 (on the CPU) or both Fp8 of one `per`.
    activation: of gate g and up u: "silu", g·σ(g)·u; "gelu_tanh"; "swiglu_clamped", with g' = min(g, limit) and
        u' = clamp(u, ±limit): g'·σ(alpha·g')·(u' + up_offset); or "situ", Kimi-K3's: alpha·tanh(g/alpha)·σ(g)·limit·tanh(u/limit).
    alpha, limit, up_offset: of "swiglu_clamped", 1.702, 7 and 1 by default; of "situ" alpha and limit, 4 and 25.
    out_dtype: float16, bfloat16 or float32, or their names; by default that of `a`, of Nvfp4 and Fp8 that of b1, of both bfloat16.
    out: [M, N], written instead; must not overlap the inputs. Rows may have gaps, elements of a row may not.

    Products and activation are float32, rounded once. Returns [M, N].
    """
    a, tokens = _tokens(a)
    values, scales = _weights(("b1", "b2"), (b1, b2))
    return _run("dual_gemm", out, out_dtype, (a, *values),
                {**_activation(activation, alpha, limit, up_offset), **scales, **tokens})


def pack(b1: _Tensor | Nvfp4 | Fp8, b2: _Tensor | Nvfp4 | Fp8, *, numerics: _Numerics = "exact") -> _Tensor:
    """The weights of dual_gemm_packed as one uint8 tensor [bytes] on their device: a header that says what they are, and they.

    b1, b2: as dual_gemm takes them, [N, K]; on a GPU Nvfp4 too.
    numerics: "exact", or "fast" of NVFP4 weights on a Hopper GPU.

    The tensor is moved, saved and copied like any; it begins at a multiple of 16 bytes, on a GPU of 256, as PyTorch's allocators
    give them. Weights packed on the CPU, and 16-bit ones packed on a GPU, fit every device; others that kind of GPU.
    """
    values, scales = _weights(("b1", "b2"), (b1, b2))
    return _packing.pack(*values, numerics, scales)


def pack_grouped(b1: _Tensor | Nvfp4 | Fp8, b2: _Tensor | Nvfp4 | Fp8 | None = None, *, order: _Order | None = None,
                 bias1: _Tensor | None = None, bias2: _Tensor | None = None, numerics: _Numerics = "exact") -> _Tensor:
    """The weights of grouped_dual_gemm_packed or, of b1 alone without an order, of grouped_gemm_packed: uint8 [bytes].

    b1, b2, order, bias1, bias2: as grouped_dual_gemm takes them, or as `b` and `bias` of grouped_gemm. All else as in pack.
    """
    values, scales = _weights(("b1", "b2"), (b1, b2))
    biases = _given(bias1=bias1, bias2=bias2)
    return _packing.pack_grouped(*values, order, biases.get("bias1"), biases.get("bias2"), numerics, scales)


def packed_info(weights: _Tensor, *, check: bool = False) -> PackedInfo:
    """What packed weights hold: format, experts (None of the dual GEMM's), n, k, matrices, has_bias, numerics.

    weights: uint8 [bytes]. check: every byte of the weights is looked at, else the header alone. Raises InvalidArgumentError for
    bytes that are no packed weights, are damaged or of another version, UnsupportedError for those of another kind of device.
    """
    _expect_tensors(weights=weights)
    return _info_of(_block(weights), check)


def dual_gemm_packed(a: _Tensor | Nvfp4 | Fp8, weights: _Tensor, n: int, *, activation: _Activation = "silu",
                     alpha: float | None = None, limit: float | None = None, up_offset: float | None = None,
                     out_dtype: _torch.dtype | str | None = None, out: _Tensor | None = None) -> _Tensor:
    """dual_gemm with weights that pack gave.

    weights: uint8 [bytes], read in place. On the CPU their header is looked at in every call; on a GPU once, and again
        when the tensor was written to outside of inference mode.
    n: N of the weights, as packed_info says, since torch.compile cannot look into them.
    out_dtype: as in dual_gemm; with Nvfp4 and Fp8 beside packed float16 it has to be said, for the same reason.
    Everything else as in dual_gemm. Returns [M, N].
    """
    a, tokens = _tokens(a)
    _expect_tensors(weights=weights)
    _expect_number("n", n)
    return _run("dual_gemm_packed", out, out_dtype, (a, weights, n),
                {**_activation(activation, alpha, limit, up_offset), **tokens})


def _of_one(activation: str | None) -> dict:
    """As _activation, of a product of one matrix."""
    _options.activation_of_one(activation)
    return {} if activation is None else {"activation": activation}


def gemm(a: _Tensor | Nvfp4 | Fp8, b: _Tensor | Nvfp4 | Fp8, *, bias: _Tensor | None = None, activation: _OneActivation | None = None,
         out_dtype: _torch.dtype | str | None = None, out: _Tensor | None = None) -> _Tensor:
    """a·bᵀ + bias, as a down projection is.

    a: [M, K]; b: [N, K]; formats, out_dtype and out as in dual_gemm. bias: [N], float32, float16 or bfloat16.
    activation: "relu2" for max(c, 0)² of it, as the first half of an MLP without a gate; or None.
    The product is float32, rounded once. Returns [M, N].
    """
    a, tokens = _tokens(a)
    values, scales = _weights(("b",), (b,))
    return _run("gemm", out, out_dtype, (a, *values), dict(**_given(bias=bias), **_of_one(activation), **scales, **tokens))


def pack_gemm(b: _Tensor | Nvfp4 | Fp8, *, bias: _Tensor | None = None, numerics: _Numerics = "exact") -> _Tensor:
    """The weights of gemm_packed, and of gated_mlp's down, uint8 [bytes]: b [N, K] and bias [N] as gemm takes them.

    They are those of a grouped GEMM of one expert. All else as in pack.
    """
    values, scales = _weights(("b",), (b,))
    return _packing.pack_gemm(*values, _given(bias=bias).get("bias"), numerics, scales)


def gemm_packed(a: _Tensor | Nvfp4 | Fp8, weights: _Tensor, n: int, *, activation: _OneActivation | None = None,
                out_dtype: _torch.dtype | str | None = None, out: _Tensor | None = None) -> _Tensor:
    """gemm with weights, a bias among them, that pack_gemm gave: uint8 [bytes]; `n` is theirs.

    Everything else as in gemm and dual_gemm_packed.
    """
    a, tokens = _tokens(a)
    _expect_tensors(weights=weights)
    _expect_number("n", n)
    return _run("gemm_packed", out, out_dtype, (a, weights, n), {**_of_one(activation), **tokens})


def gated_mlp(x: _Tensor | Nvfp4 | Fp8, gate_up: _Tensor, down: _Tensor, *, activation: _LayerActivation = "silu", alpha: float | None = None,
              limit: float | None = None, up_offset: float | None = None, intermediate_dtype: _torch.dtype | str | None = None,
              intermediate_scale: float = 1.0, out_dtype: _torch.dtype | str | None = None, out: _Tensor | None = None) -> _Tensor:
    """activation(x·gateᵀ, x·upᵀ)·downᵀ, a dense feed-forward layer; with "relu2", which has no gate, activation(x·upᵀ)·downᵀ.

    x: [T, K], float16, bfloat16, Nvfp4 or Fp8. gate_up: uint8, what pack gave of gate and up [N, K], or pack_gemm of up alone;
        down: uint8, what pack_gemm gave of down [K, N].
    intermediate_dtype: float16 or bfloat16, the intermediate, rounded once; that of x by default (of Nvfp4 and Fp8
        that of the weights, else bfloat16). Or it is quantized: "fp8_block", N a multiple of 128, "fp8_row", "fp8_tensor" or
        "nvfp4"; FP8 weights of down need FP8 on a GPU.
    intermediate_scale: the one scale of "fp8_tensor", the global scale of "nvfp4"; 1 by default.
    activation, out_dtype, out: as in dual_gemm_packed. Returns [T, K].
    """
    x, tokens = _tokens(x, "x")
    _expect_tensors(gate_up=gate_up, down=down)
    return _run("gated_mlp", out, out_dtype, (x, gate_up, down),
                {**_activation(activation, alpha, limit, up_offset), **_between(intermediate_dtype, intermediate_scale), **tokens})


def moe(x: _Tensor | Nvfp4 | Fp8, gate_up: _Tensor, down: _Tensor, topk_ids: _Tensor, topk_weights: _Tensor, *,
        activation: _LayerActivation = "silu", alpha: float | None = None, limit: float | None = None, up_offset: float | None = None,
        intermediate_dtype: _torch.dtype | str | None = None, intermediate_scale: float = 1.0, rows_dtype: _torch.dtype | str = _torch.float32,
        quantized_x: Literal["fp8_block", "fp8_row"] | None = None, out_dtype: _torch.dtype | str | None = None,
        out: _Tensor | None = None) -> _Tensor:
    """Σ over the choices c of a token of topk_weights[c] times the gated MLP of the expert topk_ids[c].

    x: [T, K]. gate_up, down: uint8, what pack_grouped gave of gate and up [E, N, K], and of down [E, K, N], with their biases.
    topk_ids: int32 or int64 [T, k]; those outside [0, E) are skipped, and no host reads them on a GPU. topk_weights: float32,
        float16 or bfloat16 [T, k].
    rows_dtype: float32, float16 or bfloat16, to which each choice's row is rounded before rows are added up in float32, in the
        order of the choices.
    quantized_x: x in 16 bits becomes FP8 first, as quantize makes it; on a GPU by the launch that gathers its rows, where K is a
        multiple of 128 and the scales are those of "fp8_block".
    Everything else as in gated_mlp. Returns [T, K].
    """
    x, tokens = _tokens(x, "x")
    _expect_tensors(gate_up=gate_up, down=down, topk_ids=topk_ids, topk_weights=topk_weights)
    return _run("moe", out, out_dtype, (x, gate_up, down, _kept("topk_ids", topk_ids), _kept("topk_weights", topk_weights)),
                {**_activation(activation, alpha, limit, up_offset), **_between(intermediate_dtype, intermediate_scale),
                 "rows_dtype": _dtype_of("rows_dtype", rows_dtype), **tokens, **_quantized(quantized_x)})


def grouped_dual_gemm(a: _Tensor | Nvfp4 | Fp8, b1: _Tensor | Nvfp4 | Fp8, b2: _Tensor | Nvfp4 | Fp8 | None = None, *, offsets: _Tensor | None = None,
                      counts: _Tensor | None = None, row_ids: _Tensor | None = None, row_ids_divisor: int = 1,
                      order: _Order | None = None, bias1: _Tensor | None = None, bias2: _Tensor | None = None,
                      row_weights: _Tensor | None = None, activation: _Activation = "silu", alpha: float | None = None, limit: float | None = None,
                      up_offset: float | None = None, out_dtype: _torch.dtype | str | None = None, out: _Tensor | None = None) -> _Tensor:
    """activation(a·b1[e]ᵀ + bias1[e], a·b2[e]ᵀ + bias2[e])·row_weight for the rows of each expert e.

    Rows have one of three layouts, given by int32 or int64; no host reads the lists on a GPU:
        offsets [E + 1]: rows offsets[e] … offsets[e + 1] − 1 of a [rows, K] and of the result [rows, N] are e's.
        offsets and row_ids [rows]: so are those of the result, whose row r takes row row_ids[r] // row_ids_divisor
            of a [tokens, K]; ids outside of it skip the row.
        counts [E]: the first counts[e] rows of slot e of a [E, capacity, K] and of the result [E, capacity, N].
    Invalid offsets are clamped.

    b1, b2: [E, N, K], gate and up; or b1 [E, 2·N, K] alone and `order`, their order in it: "gate_first", "up_first" or
        "interleaved". float16, bfloat16, Nvfp4 (on the CPU) or Fp8.
    bias1, bias2: [E, N], of one tensor [E, 2·N]; float32, float16 or bfloat16.
    row_weights: float32, float16 or bfloat16 [rows], of slots [E, capacity].
    Everything else as in dual_gemm. Padding rows are 0 in a new result and left alone in `out`.
    """
    a, tokens = _tokens(a)
    values, scales = _weights(("b1", "b2"), (b1, b2))
    _expect_number("row_ids_divisor", row_ids_divisor)
    tensors = _given(offsets=offsets, counts=counts, row_ids=row_ids, row_weights=row_weights, bias1=bias1, bias2=bias2)
    return _run("grouped_dual_gemm", out, out_dtype, (a, *values),
                dict(row_ids_divisor=row_ids_divisor, order=order, **_activation(activation, alpha, limit, up_offset), **tensors, **scales,
                     **tokens))


def grouped_gemm(a: _Tensor | Nvfp4 | Fp8, b: _Tensor | Nvfp4 | Fp8, *, offsets: _Tensor | None = None, counts: _Tensor | None = None,
                 row_ids: _Tensor | None = None, row_ids_divisor: int = 1, bias: _Tensor | None = None,
                 row_weights: _Tensor | None = None, out_dtype: _torch.dtype | str | None = None,
                 out: _Tensor | None = None) -> _Tensor:
    """(a·b[e]ᵀ + bias[e])·row_weight for the rows of each expert e: the down projection.

    b: [E, N, K]; bias: [E, N]; everything else as in grouped_dual_gemm.
    """
    a, tokens = _tokens(a)
    values, scales = _weights(("b",), (b,))
    _expect_number("row_ids_divisor", row_ids_divisor)
    tensors = _given(offsets=offsets, counts=counts, row_ids=row_ids, row_weights=row_weights, bias=bias)
    return _run("grouped_gemm", out, out_dtype, (a, *values), dict(row_ids_divisor=row_ids_divisor, **tensors, **scales, **tokens))


def grouped_dual_gemm_packed(a: _Tensor | Nvfp4 | Fp8, weights: _Tensor, n: int, *, offsets: _Tensor | None = None,
                             counts: _Tensor | None = None, row_ids: _Tensor | None = None, row_ids_divisor: int = 1,
                             row_weights: _Tensor | None = None, activation: _Activation = "silu", alpha: float | None = None,
                             limit: float | None = None, up_offset: float | None = None, out_dtype: _torch.dtype | str | None = None,
                             out: _Tensor | None = None) -> _Tensor:
    """grouped_dual_gemm with weights, biases among them, that pack_grouped gave: uint8 [bytes]; `n` is theirs.

    Everything else as in grouped_dual_gemm and dual_gemm_packed.
    """
    a, tokens = _tokens(a)
    _expect_tensors(weights=weights)
    _expect_number("n", n)
    _expect_number("row_ids_divisor", row_ids_divisor)
    tensors = _given(offsets=offsets, counts=counts, row_ids=row_ids, row_weights=row_weights)
    return _run("grouped_dual_gemm_packed", out, out_dtype, (a, weights, n),
                dict(row_ids_divisor=row_ids_divisor, **_activation(activation, alpha, limit, up_offset), **tensors, **tokens))


def grouped_gemm_packed(a: _Tensor | Nvfp4 | Fp8, weights: _Tensor, n: int, *, offsets: _Tensor | None = None, counts: _Tensor | None = None,
                        row_ids: _Tensor | None = None, row_ids_divisor: int = 1, row_weights: _Tensor | None = None,
                        out_dtype: _torch.dtype | str | None = None, out: _Tensor | None = None) -> _Tensor:
    """grouped_gemm with weights, a bias among them, that pack_grouped gave: uint8 [bytes]; `n` is theirs.

    Everything else as in grouped_gemm and dual_gemm_packed.
    """
    a, tokens = _tokens(a)
    _expect_tensors(weights=weights)
    _expect_number("n", n)
    _expect_number("row_ids_divisor", row_ids_divisor)
    tensors = _given(offsets=offsets, counts=counts, row_ids=row_ids, row_weights=row_weights)
    return _run("grouped_gemm_packed", out, out_dtype, (a, weights, n), dict(row_ids_divisor=row_ids_divisor, **tensors, **tokens))


@overload
def attention(q: _Tensor, k: _Tensor, v: _Tensor, *, causal: bool = False, scale: float | None = None, softcap: float = 0.0,
              window: tuple[int, int] = (-1, -1), cu_seqlens_q: _Tensor | None = None, cu_seqlens_k: _Tensor | None = None,
              block_table: _Tensor | None = None, seqused_k: _Tensor | None = None, sinks: _Tensor | None = None,
              q_descale: _Tensor | None = None, k_descale: _Tensor | None = None, v_descale: _Tensor | None = None,
              return_lse: Literal[False] = False,
              out: _Tensor | None = None) -> _Tensor: ...


@overload
def attention(q: _Tensor, k: _Tensor, v: _Tensor, *, causal: bool = False, scale: float | None = None, softcap: float = 0.0,
              window: tuple[int, int] = (-1, -1), cu_seqlens_q: _Tensor | None = None, cu_seqlens_k: _Tensor | None = None,
              block_table: _Tensor | None = None, seqused_k: _Tensor | None = None, sinks: _Tensor | None = None,
              q_descale: _Tensor | None = None, k_descale: _Tensor | None = None, v_descale: _Tensor | None = None, return_lse: Literal[True],
              out: _Tensor | None = None) -> tuple[_Tensor, _Tensor]: ...


@overload
def attention(q: _Tensor, k: _Tensor, v: _Tensor, *, causal: bool = False, scale: float | None = None, softcap: float = 0.0,
              window: tuple[int, int] = (-1, -1), cu_seqlens_q: _Tensor | None = None, cu_seqlens_k: _Tensor | None = None,
              block_table: _Tensor | None = None, seqused_k: _Tensor | None = None, sinks: _Tensor | None = None,
              q_descale: _Tensor | None = None, k_descale: _Tensor | None = None, v_descale: _Tensor | None = None, return_lse: bool = False,
              out: _Tensor | None = None) -> _Tensor | tuple[_Tensor, _Tensor]: ...


def attention(q: _Tensor, k: _Tensor, v: _Tensor, *, causal: bool = False, scale: float | None = None, softcap: float = 0.0,
              window: tuple[int, int] = (-1, -1), cu_seqlens_q: _Tensor | None = None, cu_seqlens_k: _Tensor | None = None,
              block_table: _Tensor | None = None, seqused_k: _Tensor | None = None, sinks: _Tensor | None = None,
              q_descale: _Tensor | None = None, k_descale: _Tensor | None = None, v_descale: _Tensor | None = None, return_lse: bool = False,
              out: _Tensor | None = None) -> _Tensor | tuple[_Tensor, _Tensor]:
    """softmax(q·kᵀ·scale + mask)·v for each batch and head.

    q: [B, H, Sq, D]; k, v: [B, Hk, Sk, D] with H a multiple of Hk; float16 or bfloat16; D is 64, 128, 192, 256 or 576, and that
        of v may be another, of 64, 128, 192, 256 and 512. A GPU takes neither 576 nor 512. The last dimension is contiguous, the
        other strides are multiples of 16 bytes, so that [B, S, H, D] in memory is a transposed view. k and v, and then q too, may
        be float8_e4m3fn, or its bytes as uint8.
    cu_seqlens_q, cu_seqlens_k: int32 or int64 [B + 1]: sequences of different lengths one behind the other; q is [T, H, D] then,
        k and v [Tk, Hk, D]. Rows of q behind the last sequence give none: theirs of the result are not written.
    block_table, seqused_k: int32 or int64 [B, pages of a sequence] and [B], with cu_seqlens_q alone: paged KV cache; k and v are
        [pages, page size, Hk, D] in any strides, and key j of sequence b is row j % page size of page block_table[b, j // page size].
    sinks: float32 [H]: an attention sink: an extra logit of each head in the softmax denominator.
    q_descale, k_descale, v_descale: float32 [B, Hk], with 1 where one is shared: they multiply queries, keys and values in FP8.
        The heads of a group share that of queries.
    causal: query i sees keys up to i + Sk − Sq. window: keys to the left and to the right that are visible, −1 for all.
    scale: 1/√D by default. softcap: 0 for none, else c·tanh(s/c) after the scale.
    out: of the type of q, with q in FP8 float16 or bfloat16, and of its shape, with the last dimension of v; must not overlap the
        inputs. A new one is bfloat16 where q is in FP8.

    Returns the result, or with return_lse the result and the logarithm of the sum of exponentials, float32 [B, H, Sq] or [H, T].
    A row that may see no key gives 0 and −inf, or its sink.
    """
    _expect_tensors(q=q, k=k, v=v)
    left, right = _window_of(window)
    if return_lse is not True and return_lse is not False:
        _refuse(f"return_lse is {return_lse!r}, expected True or False")
    options = {**_attention_options(causal, scale, softcap, left, right),
               **_given(cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, block_table=block_table, seqused_k=seqused_k, sinks=sinks,
                        q_descale=q_descale, k_descale=k_descale, v_descale=v_descale)}
    try:
        if out is None:
            return _call(_torch.ops.thresher.attention_with_lse if return_lse else _torch.ops.thresher.attention, q, k, v, **options)
        return _attend_into(out, q, k, v, return_lse, options)
    except _InvalidArgumentError:
        _refuse_beyond(dict(cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, block_table=block_table, seqused_k=seqused_k))
        raise


def _attend_into(out: _Tensor, q: _Tensor, k: _Tensor, v: _Tensor, return_lse: bool, options: dict) -> _Tensor | tuple[_Tensor, _Tensor]:
    _expect_tensors(out=out)
    if not return_lse:
        _call(_torch.ops.thresher.attention_out, out, None, q, k, v, **options)
        _count_write(out)
        return out
    if not _torch.compiler.is_compiling():
        _expect_plain("q", q)
    shape = (q.shape[1], q.shape[0]) if "cu_seqlens_q" in options else q.shape[:-1]
    lse = q.new_empty(shape, dtype=_torch.float32)
    _call(_torch.ops.thresher.attention_out, out, lse, q, k, v, **options)
    _count_write(out)
    return out, lse


def append(k: _Tensor, v: _Tensor, k_cache: _Tensor, v_cache: _Tensor, slots: _Tensor, *, positions: _Tensor | None = None, q: _Tensor | None = None,
           pairs: _Pairs = "halves", rotary_dim: int = 0, theta: float = 10000.0, cos_sin: _Tensor | None = None, k_descale: _Tensor | None = None,
           v_descale: _Tensor | None = None, q_out: _Tensor | None = None, k_out: _Tensor | None = None) -> _Tensor | None:
    """Turns queries and keys of new tokens by their positions, and writes keys and values to their rows of the pages.

    k: [T, Hk, D], v: [T, Hk, D of values], float16 or bfloat16; D is a multiple of 16 up to 1024. The last dimension is contiguous, the
        other strides are multiples of 16 bytes.
    k_cache, v_cache: [pages, page size, Hk, D] in any such strides, as attention reads them; of the type of k, or float8_e4m3fn or its
        bytes as uint8. Rows that no slot names are left alone.
    slots: int32 or int64 [T]: token t is written to row slots[t] % page size of page slots[t] // page size, and nowhere where that is
        negative. No slot comes twice.
    positions: of the type of slots, [T], from 0 on. Not needed with pairs="none".
    pairs: which columns turn together, of rotary_dim: "halves", p and p + rotary_dim/2 (GPT-NeoX, Llama); "interleaved", 2p and 2p + 1
        (GPT-J); or "none". Pair p turns by position·theta^(−2p/rotary_dim).
    rotary_dim: even; 0 for D. Columns behind it stay as they are. theta: above 0, on a GPU from 1 on.
    cos_sin: float32 [positions, rotary_dim]: all cosines, then all sines, in place of theta.
    k_descale, v_descale: float32 [Hk], or [1] that all heads share, with FP8 pages alone: what is written is divided by them.
    q: [T, H, D]; after RoPE it is q_out, which may be q; a new tensor by default. k_out: as k, which it may be: the keys after RoPE too.

    RoPE is float32, rounded once. Everything is of one device; outputs must not overlap anything else. A GPU looks at positions and
    slots when the call runs: a slot that does not exist is not written, and a position is clamped; on the CPU
    both are refused. Returns the queries after RoPE, or None without q. Raises InvalidArgumentError before anything is written.
    """
    _expect_tensors(k=k, v=v, k_cache=k_cache, v_cache=v_cache, slots=slots)
    optional = _given(positions=positions, q=q, cos_sin=cos_sin, k_descale=k_descale, v_descale=v_descale, k_out=k_out)
    if q_out is not None:
        _expect_tensors(q_out=q_out)
    elif q is not None:
        q_out = _torch.empty_like(q, memory_format=_torch.contiguous_format)
    if q_out is not None:
        optional["q_out"] = q_out
    _expect_number("rotary_dim", rotary_dim)
    _expect_number("theta", theta)
    if pairs != "halves" or rotary_dim != 0 or theta != 10000.0:
        optional.update(pairs=pairs, rotary_dim=rotary_dim, theta=theta)
    _call(_torch.ops.thresher.append, k_cache, v_cache, k, v, slots, **optional)
    _count_write(k_cache, v_cache, *(one for one in (q_out, k_out) if one is not None))
    return q_out


def quantize(x: _Tensor, *, per: Literal["block", "row"] = "block", scale_layout: Literal["row_major", "column_major"] = "row_major",
             powers_of_two: bool = False) -> Fp8:
    """Tokens in FP8, as products with FP8 weights take them on a GPU.

    x: [rows, K], float16 or bfloat16; K is a multiple of 16. Rows may have gaps, elements of a row may not.
    per: "block", a scale for 128 along K of a row, or "row". scale_layout: of blocks, as Fp8 says.
    powers_of_two: scales are rounded up to powers of two.

    A scale is amax / 448 of what shares it, at least 2⁻¹²⁶, and 1 of zeros; a value is divided by it, rounded to nearest even and
    saturated. NaN stays NaN and does not count for amax; what shares a scale with an infinity reads as NaN.
    """
    _expect_tensors(x=x)
    _options.one_of("per", per, _PER)
    _options.one_of("scale_layout", scale_layout, _LAYOUTS)
    if powers_of_two is not True and powers_of_two is not False:
        _refuse(f"powers_of_two is {powers_of_two!r}, expected True or False")
    values, scales = _call(_torch.ops.thresher.quantize, x, _PER[per], scale_layout=scale_layout, powers_of_two=powers_of_two)
    return Fp8(values, scales, per=per, scale_layout=scale_layout)


def warm(call: _torch.nn.Module | Callable[[int], Any], rows: int | Iterable[int], *, choices: int = 1) -> None:
    """Plans and compiles ahead, so that no call has to, and CUDA graphs can be captured.

    call: a module, of which every GatedMLP, Linear and MoE is warmed, for its device; or a function that is called with a
        number of rows, makes what calls are to be warmed, and whose result is thrown away.
    rows: of tokens [rows, K]; a number stands for all from 1 up to it. Several numbers share a plan: they are rounded up by at
        most an eighth, or to a multiple of 16.
    choices: experts of a token, of a MoE.

    A module's calls are made with zeros, those of a MoE without experts. The 16384 plans used last are kept. Raises
    InvalidArgumentError while a CUDA graph is captured, and what the calls raise.
    """
    counts = list(range(1, rows + 1)) if isinstance(rows, int) and not isinstance(rows, bool) else rows
    counts = list(counts) if isinstance(counts, Iterable) and not isinstance(counts, (str, bytes)) else []
    if not counts or not all(isinstance(one, int) and not isinstance(one, bool) and one > 0 for one in counts):
        _refuse(f"rows is {rows!r}, expected a number greater than 0, or several")
    if isinstance(choices, bool) or not isinstance(choices, int) or choices < 1:
        _refuse(f"choices is {choices!r}, expected a whole number from 1 up")
    if not isinstance(call, _torch.nn.Module):
        if not callable(call):
            _refuse(f"call is of the type {type(call).__name__}, expected a module or a function of a number of rows")
        for count in _buckets(counts):
            call(count)
        return
    found = [module for module in call.modules() if isinstance(module, (GatedMLP, Linear, MoE))]
    if not found:
        _refuse(f"the module {type(call).__name__} holds no GatedMLP, Linear or MoE, expected one at least")
    with _torch.inference_mode():
        for module in found:
            module.warm(counts, choices)


from .modules import Attention, GatedMLP, Linear, MoE  # noqa: E402  they call what is above
from .modules import buckets as _buckets  # noqa: E402
