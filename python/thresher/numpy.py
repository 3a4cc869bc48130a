"""The operations on NumPy arrays, by this CPU.

Arrays are given as NumPy's, or as objects with `__dlpack__` (PyTorch's and JAX's arrays) or `__array_interface__`; nothing is copied.
bfloat16 is the type of that name of the package ml_dtypes. Results are new NumPy arrays, or what was given as `out`, a NumPy
array that may be written to.

Every function raises InvalidArgumentError with one sentence, and has written nothing, when arguments do not fit together.
`threads` is how many to use, 0 for all; `strategy` one of `thresher.strategies(operation)`, None for the default.
"""

from typing import Any, TypeAlias

import numpy as _np

from . import _attention, _dlpack, _dual_gemm, _gemm, _grouped, _layers, _packed
from . import _library as _lib
from . import _operands as _of
from . import _options
from ._fp8 import Fp8
from ._library import refuse as _refuse
from ._nvfp4 import Nvfp4
from ._packed import PackedInfo

Array: TypeAlias = Any  # numpy.ndarray, or what has __dlpack__ or __array_interface__
Operand: TypeAlias = Any  # Array | Nvfp4 | Fp8
DType: TypeAlias = Any  # what numpy.dtype takes, or "bfloat16"

__all__ = [
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


class _Call:
    """The operands of one call, whose owners it keeps alive."""

    def __init__(self):
        self._owners = []
        self._bfloat16 = None

    def operand(self, name: str, array: Any) -> _of.Operand:
        if isinstance(array, Nvfp4):
            return _of.nvfp4(
                self.operand(f"{name}.values", array.values),
                self.operand(f"{name}.scales", array.scales),
                self.optional(f"{name}.global_scale", array.global_scale),
                array.scale_layout,
            )
        if isinstance(array, Fp8):
            return _of.fp8(self.operand(f"{name}.values", array.values), self.operand(f"{name}.scales", array.scales), array.per,
                           array.scale_layout, are_tokens=name in _of.TOKENS)
        made = self._operand(name, array)
        if made.device[0] != _lib.CPU:
            _refuse(f"{name} lies on {_of.device_text(made.device)}, expected memory of the CPU: thresher.torch computes on GPUs")
        return made

    def block(self, array: Any, name: str = "weights") -> _packed.Block:
        return _packed.block(self.operand(name, array))

    def layer(self, gate_up: Any, down: Any) -> _layers.Weights:
        return _layers.Weights(self.block(gate_up, "gate_up"), self.block(down, "down"))

    def optional(self, name: str, array: Any) -> _of.Operand | None:
        return None if array is None else self.operand(name, array)

    def _operand(self, name: str, array: Any) -> _of.Operand:
        if not isinstance(array, _np.ndarray):
            if hasattr(array, "__cuda_array_interface__") and not hasattr(array, "__dlpack__"):
                _refuse(f"{name} lies on a GPU, expected memory of the CPU: thresher.torch computes on GPUs")
            if hasattr(array, "__dlpack__"):
                made, owner = _dlpack.operand(name, array)
                self._owners.append(owner)
                return made
            if not hasattr(array, "__array_interface__"):
                _refuse(f"{name} is {_kind(array)}, expected a NumPy array or an object with __dlpack__ or __array_interface__")
            array = _np.asarray(array)
        self._owners.append(array)
        format = _of.FORMATS.get(array.dtype.name)
        if format is None or format == _lib.NVFP4 or not array.dtype.isnative:
            _refuse(f"{name} has the type {array.dtype.name if array.dtype.kind == 'V' else array.dtype.str}, expected float16, "
                    f"bfloat16, float32, int32 or uint8 in this machine's byte order")
        if format == _lib.BF16:
            self._bfloat16 = array.dtype
        size = array.itemsize
        if any(stride % size for stride in array.strides):
            _refuse(f"{name} has strides of {list(array.strides)} bytes, expected multiples of its element's {size}")
        strides = tuple(stride // size for stride in array.strides)
        return _of.Operand(name, array.__array_interface__["data"][0], format, array.shape, strides, (_lib.CPU, 0))

    def output(self, out: Any, shape: tuple, format: int, *, zeros: bool = False, name: str = "out") -> tuple:
        """(the array, its operand): `out`, or a new one."""
        if out is None:
            out = (_np.zeros if zeros else _np.empty)(shape, self._dtype(format))
        elif not isinstance(out, _np.ndarray):
            _refuse(f"{name} is {_kind(out)}, expected a NumPy array")
        elif not out.flags.writeable:
            _refuse(f"{name} is read-only, expected an array that may be written to")
        return out, self.operand(name, out)

    def _dtype(self, format: int) -> _np.dtype:
        if format != _lib.BF16:
            return _np.dtype(_of.FORMAT_NAMES[format])
        if self._bfloat16 is None:
            try:
                import ml_dtypes
            except ImportError:
                _refuse("NumPy has no bfloat16 for the output: install ml_dtypes, or give out_dtype or out")
            self._bfloat16 = _np.dtype(ml_dtypes.bfloat16)
        return self._bfloat16


def _kind(value: Any) -> str:
    return "None" if value is None else f"of the type {type(value).__name__}"


def _format(out_dtype: Any, out: Any, default: int) -> int:
    if out_dtype is None:
        return default
    if out is not None:
        _refuse("out and out_dtype are both given, expected one of them")
    return _of.FORMATS[_dtype_name("out_dtype", out_dtype)]


def _dtype_name(argument: str, dtype: Any, expected: tuple = ("float16", "bfloat16", "float32")) -> str:
    try:
        name = dtype if isinstance(dtype, str) else _np.dtype(dtype).name
    except TypeError:
        name = repr(dtype)
    if name not in expected:
        _refuse(f"{argument} is {name}, expected {', '.join(expected[:-1])} or {expected[-1]}")
    return name


def dual_gemm(a: Operand, b1: Operand, b2: Operand, *, activation: str = "silu", alpha: float = 1.702, limit: float = 7.0,
              up_offset: float = 1.0, out_dtype: DType = None, out: _np.ndarray | None = None, threads: int = 0,
              strategy: str | None = None) -> _np.ndarray:
    """activation(a·b1ᵀ) ∘ (a·b2ᵀ), the first half of a gated MLP. b1 is the gate, b2 is up.

    a: [M, K], float16, bfloat16, Nvfp4 or Fp8. K is a multiple of 8, with Nvfp4 and Fp8 of 16; M and N may be 0.
    b1, b2: [N, K], both float16, both bfloat16, both Nvfp4 or both Fp8 of one `per`.
    activation: of gate g and up u: "silu", g·σ(g)·u; "gelu_tanh"; or "swiglu_clamped", with g' = min(g, limit) and
        u' = clamp(u, ±limit): g'·σ(alpha·g')·(u' + up_offset).
    out_dtype: float16, bfloat16 or float32; that of `a` by default (of Nvfp4 and Fp8 that of b1, else bfloat16).
    out: [M, N], written instead; lies apart from the inputs. Rows may have gaps, elements of a row may not.

    Products and activation are float32, rounded once. Returns [M, N].
    """
    call = _Call()
    a, b1, b2 = call.operand("a", a), call.operand("b1", b1), call.operand("b2", b2)
    _of.expect_rank(a, 2, "[M, K]")
    _of.expect_rank(b1, 2, "[N, K]")
    result, c = call.output(out, (a.shape[0], b1.shape[0]), _format(out_dtype, out, _options.output_format(a.format, b1.format)))
    _dual_gemm.run(a, b1, b2, c, _options.activation_of(activation, alpha, limit, up_offset), threads=_options.threads_of(threads),
                   strategy=strategy)
    return result


def pack(b1: Operand, b2: Operand, *, numerics: str = "exact") -> _np.ndarray:
    """The weights of dual_gemm_packed as one uint8 array: a header that says what they are, and the weights.

    b1, b2: as dual_gemm takes them, [N, K].
    numerics: "exact"; "fast" is for NVFP4 weights on a Hopper GPU, which thresher.torch packs for.

    The array is their only copy: it can be saved, pickled and mapped from a file, and is read where it lies, which is at a
    multiple of 16 bytes, as NumPy's arrays do.
    """
    call = _Call()
    return _written(_dual_gemm.pack(call.operand("b1", b1), call.operand("b2", b2), numerics))


def pack_grouped(b1: Operand, b2: Operand | None = None, *, order: str | None = None, bias1: Array | None = None,
                 bias2: Array | None = None, numerics: str = "exact") -> _np.ndarray:
    """The weights of grouped_dual_gemm_packed or, of b1 alone without an order, of grouped_gemm_packed as one uint8 array.

    b1, b2, order, bias1, bias2: as grouped_dual_gemm takes them, or as `b` and `bias` of grouped_gemm. All else as in pack.
    """
    call = _Call()
    return _written(_grouped.pack(_grouped_weights(call, b1, b2, bias1, bias2, order, ("b1", "bias1")), numerics))


def _written(weights: _packed.Handle) -> _np.ndarray:
    block = _np.empty(weights.block_bytes(), _np.uint8)
    weights.to_block(block.__array_interface__["data"][0], block.size)
    return block


def packed_info(weights: Array, *, check: bool = False) -> PackedInfo:
    """What packed weights hold: format, experts (None of the dual GEMM's), n, k, matrices, has_bias, numerics.

    weights: uint8, what pack or pack_grouped gave. check: every byte of the weights is looked at, else the header alone.
    Raises InvalidArgumentError for bytes that are no packed weights, are damaged or of another version, UnsupportedError for
    weights that were packed for a GPU.
    """
    return _packed.info_of(_Call().block(weights), check)


def dual_gemm_packed(a: Operand, weights: Array, *, activation: str = "silu", alpha: float = 1.702, limit: float = 7.0,
                     up_offset: float = 1.0, out_dtype: DType = None, out: _np.ndarray | None = None, threads: int = 0,
                     strategy: str | None = None) -> _np.ndarray:
    """dual_gemm with weights that pack gave.

    weights: uint8 [bytes], read where they lie: weights that are written over in place are seen, and so is their header.
    Everything else as in dual_gemm. Raises InvalidArgumentError besides for bytes that are no such weights.
    """
    call = _Call()
    a, block = call.operand("a", a), call.block(weights)
    _of.expect_rank(a, 2, "[M, K]")
    held = _packed.opened("dual_gemm", block)
    result, c = call.output(out, (a.shape[0], held.info.n),
                            _format(out_dtype, out, _options.output_format(a.format, held.format)))
    _dual_gemm.run_packed(a, block, c, _options.activation_of(activation, alpha, limit, up_offset),
                          threads=_options.threads_of(threads), strategy=strategy)
    return result


def gemm(a: Operand, b: Operand, *, bias: Array | None = None, out_dtype: DType = None, out: _np.ndarray | None = None,
         threads: int = 0, strategy: str | None = None) -> _np.ndarray:
    """a·bᵀ + bias, as a down projection is.

    a: [M, K]; b: [N, K]; formats, out_dtype and out as in dual_gemm. bias: [N], float32, float16 or bfloat16.
    The product is float32, rounded once. Returns [M, N].
    """
    call = _Call()
    a, b, offset = call.operand("a", a), call.operand("b", b), call.optional("bias", bias)
    _of.expect_rank(a, 2, "[M, K]")
    _of.expect_rank(b, 2, "[N, K]")
    result, c = call.output(out, (a.shape[0], b.shape[0]), _format(out_dtype, out, _options.output_format(a.format, b.format)))
    _gemm.run(a, b, offset, c, threads=_options.threads_of(threads), strategy=strategy)
    return result


def pack_gemm(b: Operand, *, bias: Array | None = None, numerics: str = "exact") -> _np.ndarray:
    """The weights of gemm_packed, and of gated_mlp's down, as one uint8 array: b [N, K] and bias [N] as gemm takes them.

    They are those of a grouped GEMM of one expert. All else as in pack.
    """
    call = _Call()
    return _written(_gemm.pack(call.operand("b", b), call.optional("bias", bias), numerics))


def gemm_packed(a: Operand, weights: Array, *, out_dtype: DType = None, out: _np.ndarray | None = None, threads: int = 0,
                strategy: str | None = None) -> _np.ndarray:
    """gemm with weights, a bias among them, that pack_gemm gave: uint8 [bytes]. Everything else as in gemm and dual_gemm_packed."""
    call = _Call()
    a, block = call.operand("a", a), call.block(weights)
    _of.expect_rank(a, 2, "[M, K]")
    held = _gemm.expert(block)
    result, c = call.output(out, (a.shape[0], held.info.n),
                            _format(out_dtype, out, _options.output_format(a.format, held.format)))
    _gemm.run_packed(a, block, c, threads=_options.threads_of(threads), strategy=strategy)
    return result


def gated_mlp(x: Operand, gate_up: Array, down: Array, *, activation: str = "silu", alpha: float = 1.702, limit: float = 7.0,
              up_offset: float = 1.0, intermediate_dtype: DType = None, out_dtype: DType = None, out: _np.ndarray | None = None,
              threads: int = 0) -> _np.ndarray:
    """activation(x·gateᵀ, x·upᵀ)·downᵀ, a dense feed-forward layer.

    x: [T, K], float16, bfloat16, Nvfp4 or Fp8. gate_up: uint8, what pack gave of gate and up [N, K]; down: uint8, what pack_gemm
        gave of down [K, N].
    intermediate_dtype: float16 or bfloat16, what lies between the products, rounded once; that of x by default (of Nvfp4 and Fp8
        that of the weights, else bfloat16).
    activation, out_dtype, out: as in dual_gemm. Returns [T, K].
    """
    call = _Call()
    x, weights = call.operand("x", x), call.layer(gate_up, down)
    parts = _layers.gated_mlp_parts(weights)
    result, o = call.output(out, x.shape, _format(out_dtype, out, _options.output_format(x.format, parts[0].format)))
    _layers.gated_mlp(x, weights, o, _intermediate(intermediate_dtype), _options.activation_of(activation, alpha, limit, up_offset),
                      threads=_options.threads_of(threads))
    return result


def moe(x: Operand, gate_up: Array, down: Array, topk_ids: Array, topk_weights: Array, *, activation: str = "silu",
        alpha: float = 1.702, limit: float = 7.0, up_offset: float = 1.0, intermediate_dtype: DType = None,
        rows_dtype: DType = "float32", out_dtype: DType = None, out: _np.ndarray | None = None, threads: int = 0) -> _np.ndarray:
    """Σ over the choices c of a token of topk_weights[c] times the gated MLP of the expert topk_ids[c].

    x: [T, K]. gate_up, down: uint8, what pack_grouped gave of gate and up [E, N, K], and of down [E, K, N], with their biases.
    topk_ids: int32 [T, k]; those outside [0, E) are skipped. topk_weights: float32 [T, k].
    rows_dtype: float32, float16 or bfloat16, to which each choice's row is rounded before rows are added up in float32, in the
        order of the choices.
    Everything else as in gated_mlp. Returns [T, K].
    """
    call = _Call()
    x, weights = call.operand("x", x), call.layer(gate_up, down)
    parts = _layers.moe_parts(weights)
    ids, factors = call.operand("topk_ids", topk_ids), call.operand("topk_weights", topk_weights)
    result, o = call.output(out, x.shape, _format(out_dtype, out, _options.output_format(x.format, parts[0].format)))
    _layers.moe(x, weights, ids, factors, o, _intermediate(intermediate_dtype), _of.FORMATS[_dtype_name("rows_dtype", rows_dtype)],
                _options.activation_of(activation, alpha, limit, up_offset), threads=_options.threads_of(threads))
    return result


def _intermediate(dtype: DType) -> int | None:
    return None if dtype is None else _of.FORMATS[_dtype_name("intermediate_dtype", dtype, ("float16", "bfloat16"))]


def grouped_dual_gemm(a: Operand, b1: Operand, b2: Operand | None = None, *, offsets: Array | None = None,
                      counts: Array | None = None, row_ids: Array | None = None, row_ids_divisor: int = 1,
                      order: str | None = None, bias1: Array | None = None, bias2: Array | None = None,
                      row_weights: Array | None = None, activation: str = "silu", alpha: float = 1.702, limit: float = 7.0,
                      up_offset: float = 1.0, out_dtype: DType = None, out: _np.ndarray | None = None, threads: int = 0,
                      strategy: str | None = None) -> _np.ndarray:
    """activation(a·b1[e]ᵀ + bias1[e], a·b2[e]ᵀ + bias2[e])·row_weight for the rows of each expert e.

    Rows lie in one of three ways:
        offsets int32 [E + 1]: rows offsets[e] … offsets[e + 1] − 1 of a [rows, K] and of the result [rows, N] are e's.
        offsets and row_ids int32 [rows]: so are those of the result, whose row r takes row row_ids[r] // row_ids_divisor
            of a [tokens, K]; ids that lie outside skip the row.
        counts int32 [E]: the first counts[e] rows of slot e of a [E, capacity, K] and of the result [E, capacity, N].
    Offsets that make no sense are limited to such as do.

    b1, b2: [E, N, K], gate and up; or b1 [E, 2·N, K] alone and `order`, how both lie in it: "gate_first", "up_first" or
        "interleaved". float16, bfloat16, Nvfp4 or Fp8.
    bias1, bias2: [E, N], of one tensor [E, 2·N]; float32, float16 or bfloat16.
    row_weights: float32 [rows], of slots [E, capacity].
    Everything else as in dual_gemm. Rows that nobody owns are 0 in a new result and left alone in `out`.
    """
    return _run_grouped(a, b1, b2, _options.activation_of(activation, alpha, limit, up_offset), order, offsets, counts, row_ids,
                    row_ids_divisor, bias1, bias2, row_weights, out_dtype, out, threads, strategy, ("b1", "bias1"))


def grouped_gemm(a: Operand, b: Operand, *, offsets: Array | None = None, counts: Array | None = None,
                 row_ids: Array | None = None, row_ids_divisor: int = 1, bias: Array | None = None,
                 row_weights: Array | None = None, out_dtype: DType = None, out: _np.ndarray | None = None, threads: int = 0,
                 strategy: str | None = None) -> _np.ndarray:
    """(a·b[e]ᵀ + bias[e])·row_weight for the rows of each expert e: the down projection.

    b: [E, N, K]; bias: [E, N]; everything else as in grouped_dual_gemm.
    """
    return _run_grouped(a, b, None, None, None, offsets, counts, row_ids, row_ids_divisor, bias, None, row_weights, out_dtype, out,
                    threads, strategy, ("b", "bias"))


def grouped_dual_gemm_packed(a: Operand, weights: Array, *, offsets: Array | None = None, counts: Array | None = None,
                             row_ids: Array | None = None, row_ids_divisor: int = 1, row_weights: Array | None = None,
                             activation: str = "silu", alpha: float = 1.702, limit: float = 7.0, up_offset: float = 1.0,
                             out_dtype: DType = None, out: _np.ndarray | None = None, threads: int = 0,
                             strategy: str | None = None) -> _np.ndarray:
    """grouped_dual_gemm with weights, biases among them, that pack_grouped gave: uint8 [bytes].

    Everything else as in grouped_dual_gemm and dual_gemm_packed.
    """
    return _run_grouped_packed(a, weights, _options.activation_of(activation, alpha, limit, up_offset), offsets, counts, row_ids,
                               row_ids_divisor, row_weights, out_dtype, out, threads, strategy)


def grouped_gemm_packed(a: Operand, weights: Array, *, offsets: Array | None = None, counts: Array | None = None,
                        row_ids: Array | None = None, row_ids_divisor: int = 1, row_weights: Array | None = None,
                        out_dtype: DType = None, out: _np.ndarray | None = None, threads: int = 0,
                        strategy: str | None = None) -> _np.ndarray:
    """grouped_gemm with weights, a bias among them, that pack_grouped gave: uint8 [bytes].

    Everything else as in grouped_gemm and dual_gemm_packed.
    """
    return _run_grouped_packed(a, weights, None, offsets, counts, row_ids, row_ids_divisor, row_weights, out_dtype, out, threads,
                               strategy)


def _grouped_weights(call, b1, b2, bias1, bias2, order, names):
    return _grouped.Weights(call.operand(names[0], b1), call.optional("b2", b2), call.optional(names[1], bias1),
                            call.optional("bias2", bias2), order)


def _run_grouped(a, b1, b2, activation, order, offsets, counts, row_ids, row_ids_divisor, bias1, bias2, row_weights, out_dtype, out,
             threads, strategy, names):
    call = _Call()
    a = call.operand("a", a)
    weights = _grouped_weights(call, b1, b2, bias1, bias2, order, names)
    _of.expect_rank(weights.b1, 3, "[E, N, K]")
    experts, columns = weights.b1.shape[:2]
    return _run_owned(call, a, weights, experts, columns if order is None else columns // 2, weights.b1.format, activation, offsets,
                      counts, row_ids, row_ids_divisor, row_weights, out_dtype, out, threads, strategy)


def _run_grouped_packed(a, weights, activation, offsets, counts, row_ids, row_ids_divisor, row_weights, out_dtype, out, threads,
                        strategy):
    call = _Call()
    a, block = call.operand("a", a), call.block(weights)
    held = _packed.opened("grouped", block)
    return _run_owned(call, a, block, held.info.experts, held.info.n, held.format, activation, offsets, counts, row_ids,
                      row_ids_divisor, row_weights, out_dtype, out, threads, strategy)


def _run_owned(call, a, weights, experts, columns, format, activation, offsets, counts, row_ids, row_ids_divisor, row_weights,
               out_dtype, out, threads, strategy):
    lists = {name: call.optional(name, array) for name, array in (("offsets", offsets), ("counts", counts), ("row_ids", row_ids))}
    layout, rows, _ = _grouped.rows_of(a, experts, **lists)
    result, c = call.output(out, (experts, rows, columns) if layout == _grouped.SLOTS else (rows, columns),
                            _format(out_dtype, out, _options.output_format(a.format, format)), zeros=True)
    owned = _grouped.Rows(**lists, row_ids_divisor=_options.whole_number("row_ids_divisor", row_ids_divisor, 1),
                          row_weights=call.optional("row_weights", row_weights))
    _grouped.run(a, weights, owned, c, activation, threads=_options.threads_of(threads), strategy=strategy)
    return result


def attention(q: Array, k: Array, v: Array, *, causal: bool = False, scale: float | None = None, softcap: float = 0.0,
              window: tuple[int, int] = (-1, -1), cu_seqlens_q: Array | None = None, cu_seqlens_k: Array | None = None,
              return_lse: bool = False, out: _np.ndarray | None = None, threads: int = 0,
              strategy: str | None = None) -> _np.ndarray | tuple[_np.ndarray, _np.ndarray]:
    """softmax(q·kᵀ·scale + mask)·v for each batch and head.

    q: [B, H, Sq, D]; k, v: [B, Hk, Sk, D] with H a multiple of Hk; float16 or bfloat16; D is 64 or 128. The last dimension
        is contiguous, the other strides are multiples of 8, so that [B, S, H, D] in memory is a transposed view.
    cu_seqlens_q, cu_seqlens_k: int32 [B + 1]: sequences of different lengths one behind the other; q is [T, H, D] then,
        k and v [Tk, Hk, D].
    causal: query i sees keys up to i + Sk − Sq. window: keys to the left and to the right that are visible, −1 for all.
    scale: 1/√D by default. softcap: 0 for none, else c·tanh(s/c) after the scale.
    out: of the shape and type of q; lies apart from the inputs.

    Returns the result, or with return_lse the result and the logarithm of the sum of exponentials, float32 [B, H, Sq] or [H, T].
    A row that may see no key gives 0 and −inf.
    """
    call = _Call()
    q, k, v = (call.operand(name, array) for name, array in (("q", q), ("k", k), ("v", v)))
    lengths_q, lengths_k = call.optional("cu_seqlens_q", cu_seqlens_q), call.optional("cu_seqlens_k", cu_seqlens_k)
    options = _attention.options_of(causal, scale, softcap, window)
    _attention.shape_of(q, k, v, lengths_q, lengths_k)
    result, o = call.output(out, q.shape, q.format)
    sums, lse = (call.output(None, _attention.lse_shape(q.shape, cu_seqlens_q is not None), _lib.FP32, name="lse") if return_lse
                 else (None, None))
    _attention.run(q, k, v, o, lse, lengths_q, lengths_k, options, threads=_options.threads_of(threads), strategy=strategy)
    return (result, sums) if return_lse else result
