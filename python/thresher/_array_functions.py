"""The operations on arrays of a library like NumPy: what its calls are made of, and the functions on them."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as _np

from . import _append, _attention, _dual_gemm, _gemm, _grouped, _layers, _options, _packed
from . import _library as _lib
from . import _operands as _of
from ._fp8 import Fp8
from ._library import refuse as _refuse
from ._nvfp4 import Nvfp4
from ._packed import PackedInfo
from ._plans import HOST, Place

Array: TypeAlias = Any  # of the library, or what it takes for one
Operand: TypeAlias = Any  # Array | Nvfp4 | Fp8
DType: TypeAlias = Any  # what numpy.dtype takes, or "bfloat16"


class Call:
    """The operands of one call, whose owners it keeps alive."""

    place: Place = HOST

    def __init__(self):
        self._owners = []
        self._bfloat16 = None

    def array(self, name: str, array: Any) -> _of.Operand:
        """The operand that an array is."""
        raise NotImplementedError

    def output(self, out: Any, shape: tuple, format: int, *, zeros: bool = False, name: str = "out") -> tuple:
        """(the array, its operand): `out`, or a new one."""
        raise NotImplementedError

    def written_to(self, name: str, array: Any) -> _of.Operand:
        """The operand of an array of the caller's that a call writes to."""
        raise NotImplementedError

    def written(self, weights: _packed.Handle) -> Array:
        """Packed weights as a new array."""
        raise NotImplementedError

    def settled(self) -> "Call":
        """This call, once what was computed before it is there."""
        return self

    def block(self, array: Any, name: str = "weights") -> _packed.Block:
        """Packed weights and their header."""
        raise NotImplementedError

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
        return self.array(name, array)

    def threads(self, threads: int) -> int:
        return _options.threads_of(threads)

    def layer(self, gate_up: Any, down: Any) -> _layers.Weights:
        return _layers.Weights(self.block(gate_up, "gate_up"), self.block(down, "down"))

    def optional(self, name: str, array: Any, operand: Callable[[str, Any], _of.Operand] | None = None) -> _of.Operand | None:
        return None if array is None else (operand or self.operand)(name, array)

    def tokens(self, name: str, array: Any) -> _of.Operand:
        given = self.operand(name, array)
        _of.expect_format(given, *_options.OPERAND_FORMATS)
        return given

    def integers(self, name: str, array: Any) -> _of.Operand:
        """Ids, offsets, counts: int32, or what is made into it."""
        return self.operand(name, array)

    def numbers(self, name: str, array: Any) -> _of.Operand:
        """Whole numbers that may be int64."""
        return self.operand(name, array)

    def factors(self, name: str, array: Any) -> _of.Operand:
        """Weights of rows: float32, or what is made into it."""
        return self.operand(name, array)

    def of_array(self, name: str, array: Any, pointer: int, device: tuple) -> _of.Operand:
        """Of an array with NumPy's attributes that lies at `pointer`."""
        self._owners.append(array)
        format = _of.format_of_array(array)
        if format == _lib.BF16:
            self._bfloat16 = array.dtype
        size = array.itemsize
        if any(stride % size for stride in array.strides):
            _refuse(f"{name} has strides of {list(array.strides)} bytes, expected multiples of its element's {size}")
        return _of.Operand(name, pointer, format, array.shape, tuple(stride // size for stride in array.strides), device)

    def dtype(self, format: int) -> _np.dtype:
        if format != _lib.BF16:
            return _np.dtype(_of.FORMAT_NAMES[format])
        if self._bfloat16 is None:
            try:
                import ml_dtypes
            except ImportError:
                _refuse("NumPy has no bfloat16 for the output: install ml_dtypes, or give out_dtype or out")
            self._bfloat16 = _np.dtype(ml_dtypes.bfloat16)
        return self._bfloat16


def kind(value: Any) -> str:
    return "None" if value is None else f"of the type {type(value).__name__}"


def _format(out_dtype: Any, out: Any, default: int) -> int:
    if out_dtype is None:
        return default
    if out is not None:
        _refuse("out and out_dtype are both given, expected one of them")
    return _of.FORMATS[dtype_name("out_dtype", out_dtype)]


def dtype_name(argument: str, dtype: Any, expected: tuple = ("float16", "bfloat16", "float32")) -> str:
    try:
        name = dtype if isinstance(dtype, str) else "None" if dtype is None else _np.dtype(dtype).name
    except TypeError:
        name = repr(dtype)
    if name not in expected:
        _refuse(f"{argument} is {name}, expected {', '.join(expected[:-1])} or {expected[-1]}")
    return name


class Functions:
    """The operations, by calls of one kind."""

    def __init__(self, call: Callable[[], Call]):
        self._call = call

    def dual_gemm(self, a: Operand, b1: Operand, b2: Operand, *, activation: str = "silu", alpha: float | None = None,
                  limit: float | None = None, up_offset: float | None = None, out_dtype: DType = None, out: Array | None = None,
                  threads: int = 0, strategy: str | None = None) -> Array:
        """activation(a·b1ᵀ) ∘ (a·b2ᵀ), the first half of a gated MLP. b1 is the gate, b2 is up.

        a: [M, K], float16, bfloat16, Nvfp4 or Fp8. K is a multiple of 8, with Nvfp4 and Fp8 of 16; M and N may be 0.
        b1, b2: [N, K], both float16, both bfloat16, both Nvfp4 or both Fp8 of one `per`.
        activation: of gate g and up u: "silu", g·σ(g)·u; "gelu_tanh"; "swiglu_clamped", with g' = min(g, limit) and
            u' = clamp(u, ±limit): g'·σ(alpha·g')·(u' + up_offset); or "situ", Kimi-K3's: alpha·tanh(g/alpha)·σ(g)·limit·tanh(u/limit).
        alpha, limit, up_offset: of "swiglu_clamped", 1.702, 7 and 1 by default; of "situ" alpha and limit, 4 and 25.
        out_dtype: float16, bfloat16 or float32; that of `a` by default (of Nvfp4 and Fp8 that of b1, else bfloat16).
        out: [M, N], written instead; must not overlap the inputs. Rows may have gaps, elements of a row may not.

        Products and activation are float32, rounded once. Returns [M, N].
        """
        call = self._call()
        a, b1, b2 = call.tokens("a", a), call.operand("b1", b1), call.operand("b2", b2)
        _of.expect_rank(a, 2, "[M, K]")
        _of.expect_rank(b1, 2, "[N, K]")
        result, c = call.output(out, (a.shape[0], b1.shape[0]), _format(out_dtype, out, _options.output_format(a.format, b1.format)))
        _dual_gemm.run(a, b1, b2, c, _options.activation_chosen(_options.expect_gated(activation), alpha, limit, up_offset),
                       place=call.place, threads=call.threads(threads), strategy=strategy)
        return result

    def pack(self, b1: Operand, b2: Operand, *, numerics: str = "exact") -> Array:
        """The weights of dual_gemm_packed as one uint8 array: a header that says what they are, and the weights.

        b1, b2: as dual_gemm takes them, [N, K].
        numerics: "exact", or "fast" of NVFP4 weights on a Hopper GPU.

        The array is their only copy: it can be saved, pickled and mapped from a file, and is read in place, which is at a
        multiple of 16 bytes, on a GPU of 256, as arrays of NumPy and CuPy do.
        """
        call = self._call().settled()
        return call.written(_dual_gemm.pack(call.operand("b1", b1), call.operand("b2", b2), numerics))

    def pack_grouped(self, b1: Operand, b2: Operand | None = None, *, order: str | None = None, bias1: Array | None = None,
                     bias2: Array | None = None, numerics: str = "exact") -> Array:
        """The weights of grouped_dual_gemm_packed or, of b1 alone without an order, of grouped_gemm_packed as one uint8 array.

        b1, b2, order, bias1, bias2: as grouped_dual_gemm takes them, or as `b` and `bias` of grouped_gemm. All else as in pack.
        """
        call = self._call().settled()
        return call.written(_grouped.pack(_grouped_weights(call, b1, b2, bias1, bias2, order, ("b1", "bias1")), numerics))

    def packed_info(self, weights: Array, *, check: bool = False) -> PackedInfo:
        """What packed weights hold: format, experts (None of the dual GEMM's), n, k, matrices, has_bias, numerics.

        weights: uint8, what pack or pack_grouped gave. check: every byte of the weights is looked at, else the header alone.
        Raises InvalidArgumentError for bytes that are no packed weights, are damaged or of another version, UnsupportedError for
        weights that were packed for a GPU.
        """
        return _packed.info_of(self._call().block(weights), check)

    def dual_gemm_packed(self, a: Operand, weights: Array, *, activation: str = "silu", alpha: float | None = None,
                         limit: float | None = None, up_offset: float | None = None, out_dtype: DType = None, out: Array | None = None,
                         threads: int = 0, strategy: str | None = None) -> Array:
        """dual_gemm with weights that pack gave.

        weights: uint8 [bytes], read in place: weights that are written over in place are seen, and so is their header.
        Everything else as in dual_gemm. Raises InvalidArgumentError besides for bytes that are no such weights.
        """
        call = self._call()
        a, block = call.tokens("a", a), call.block(weights)
        _of.expect_rank(a, 2, "[M, K]")
        held = _packed.opened("dual_gemm", block)
        result, c = call.output(out, (a.shape[0], held.info.n),
                                _format(out_dtype, out, _options.output_format(a.format, held.format)))
        _dual_gemm.run_packed(a, block, c, _options.activation_chosen(_options.expect_gated(activation), alpha, limit, up_offset),
                              place=call.place, threads=call.threads(threads), strategy=strategy)
        return result

    def gemm(self, a: Operand, b: Operand, *, bias: Array | None = None, activation: str | None = None, out_dtype: DType = None,
             out: Array | None = None, threads: int = 0, strategy: str | None = None) -> Array:
        """a·bᵀ + bias, as a down projection is.

        a: [M, K]; b: [N, K]; formats, out_dtype and out as in dual_gemm. bias: [N], float32, float16 or bfloat16.
        activation: "relu2" for max(c, 0)² of it, as the first half of an MLP without a gate; or None.
        The product is float32, rounded once. Returns [M, N].
        """
        call = self._call()
        a, b, offset = call.tokens("a", a), call.operand("b", b), call.optional("bias", bias)
        _of.expect_rank(a, 2, "[M, K]")
        _of.expect_rank(b, 2, "[N, K]")
        result, c = call.output(out, (a.shape[0], b.shape[0]), _format(out_dtype, out, _options.output_format(a.format, b.format)))
        _gemm.run(a, b, offset, c, place=call.place, threads=call.threads(threads), strategy=strategy,
                  activation=_options.activation_of_one(activation))
        return result

    def pack_gemm(self, b: Operand, *, bias: Array | None = None, numerics: str = "exact") -> Array:
        """The weights of gemm_packed, and of gated_mlp's down, as one uint8 array: b [N, K] and bias [N] as gemm takes them.

        They are those of a grouped GEMM of one expert. All else as in pack.
        """
        call = self._call().settled()
        return call.written(_gemm.pack(call.operand("b", b), call.optional("bias", bias), numerics))

    def gemm_packed(self, a: Operand, weights: Array, *, activation: str | None = None, out_dtype: DType = None,
                    out: Array | None = None, threads: int = 0, strategy: str | None = None) -> Array:
        """gemm with weights, a bias among them, that pack_gemm gave: uint8 [bytes]. Everything else as in gemm and dual_gemm_packed."""
        call = self._call()
        a, block = call.tokens("a", a), call.block(weights)
        _of.expect_rank(a, 2, "[M, K]")
        held = _gemm.expert(block)
        result, c = call.output(out, (a.shape[0], held.info.n),
                                _format(out_dtype, out, _options.output_format(a.format, held.format)))
        _gemm.run_packed(a, block, c, place=call.place, threads=call.threads(threads), strategy=strategy,
                         activation=_options.activation_of_one(activation))
        return result

    def gated_mlp(self, x: Operand, gate_up: Array, down: Array, *, activation: str = "silu", alpha: float | None = None,
                  limit: float | None = None, up_offset: float | None = None, intermediate_dtype: DType = None,
                  intermediate_scale: float = 1.0, out_dtype: DType = None, out: Array | None = None, threads: int = 0) -> Array:
        """activation(x·gateᵀ, x·upᵀ)·downᵀ, a dense feed-forward layer; with "relu2", which has no gate, activation(x·upᵀ)·downᵀ.

        x: [T, K], float16, bfloat16, Nvfp4 or Fp8. gate_up: uint8, what pack gave of gate and up [N, K], or pack_gemm of up alone;
            down: uint8, what pack_gemm gave of down [K, N].
        intermediate_dtype: float16 or bfloat16, the intermediate, rounded once; that of x by default (of Nvfp4 and Fp8
            that of the weights, else bfloat16). Or it is quantized: "fp8_block", N a multiple of 128, "fp8_row", "fp8_tensor" or
            "nvfp4"; FP8 weights of down need FP8 on a GPU.
        intermediate_scale: the one scale of "fp8_tensor", the global scale of "nvfp4"; 1 by default.
        activation, out_dtype, out: as in dual_gemm. Returns [T, K].
        """
        call = self._call()
        x, weights = call.tokens("x", x), call.layer(gate_up, down)
        chosen = _options.activation_chosen(activation, alpha, limit, up_offset)
        parts = _layers.gated_mlp_parts(weights, chosen)
        result, o = call.output(out, x.shape, _format(out_dtype, out, _options.output_format(x.format, parts[0].format)))
        _layers.gated_mlp(x, weights, o, _between(intermediate_dtype, intermediate_scale), chosen,
                          place=call.place, threads=call.threads(threads))
        return result

    def moe(self, x: Operand, gate_up: Array, down: Array, topk_ids: Array, topk_weights: Array, *, activation: str = "silu",
            alpha: float | None = None, limit: float | None = None, up_offset: float | None = None, intermediate_dtype: DType = None,
            intermediate_scale: float = 1.0, rows_dtype: DType = "float32", out_dtype: DType = None, out: Array | None = None,
            threads: int = 0) -> Array:
        """Σ over the choices c of a token of topk_weights[c] times the gated MLP of the expert topk_ids[c].

        x: [T, K]. gate_up, down: uint8, what pack_grouped gave of gate and up [E, N, K], and of down [E, K, N], with their biases.
        topk_ids: int32 or int64 [T, k]; those outside [0, E) are skipped. topk_weights: float32, float16 or bfloat16 [T, k].
        rows_dtype: float32, float16 or bfloat16, to which each choice's row is rounded before rows are added up in float32, in the
            order of the choices.
        Everything else as in gated_mlp. Returns [T, K].
        """
        call = self._call()
        x, weights = call.tokens("x", x), call.layer(gate_up, down)
        chosen = _options.activation_chosen(activation, alpha, limit, up_offset)
        parts = _layers.moe_parts(weights, chosen)
        ids, factors = call.integers("topk_ids", topk_ids), call.factors("topk_weights", topk_weights)
        result, o = call.output(out, x.shape, _format(out_dtype, out, _options.output_format(x.format, parts[0].format)))
        _layers.moe(x, weights, ids, factors, o, _between(intermediate_dtype, intermediate_scale), _of.FORMATS[dtype_name("rows_dtype", rows_dtype)],
                    chosen, place=call.place, threads=call.threads(threads))
        return result

    def grouped_dual_gemm(self, a: Operand, b1: Operand, b2: Operand | None = None, *, offsets: Array | None = None,
                          counts: Array | None = None, row_ids: Array | None = None, row_ids_divisor: int = 1,
                          order: str | None = None, bias1: Array | None = None, bias2: Array | None = None,
                          row_weights: Array | None = None, activation: str = "silu", alpha: float | None = None,
                          limit: float | None = None, up_offset: float | None = None, out_dtype: DType = None, out: Array | None = None,
                          threads: int = 0, strategy: str | None = None) -> Array:
        """activation(a·b1[e]ᵀ + bias1[e], a·b2[e]ᵀ + bias2[e])·row_weight for the rows of each expert e.

        Rows have one of three layouts, given by int32 or int64:
            offsets [E + 1]: rows offsets[e] … offsets[e + 1] − 1 of a [rows, K] and of the result [rows, N] are e's.
            offsets and row_ids [rows]: so are those of the result, whose row r takes row row_ids[r] // row_ids_divisor
                of a [tokens, K]; ids outside of it skip the row.
            counts [E]: the first counts[e] rows of slot e of a [E, capacity, K] and of the result [E, capacity, N].
        Invalid offsets are clamped.

        b1, b2: [E, N, K], gate and up; or b1 [E, 2·N, K] alone and `order`, their order in it: "gate_first", "up_first" or
            "interleaved". float16, bfloat16, Nvfp4 or Fp8.
        bias1, bias2: [E, N], of one tensor [E, 2·N]; float32, float16 or bfloat16.
        row_weights: float32, float16 or bfloat16 [rows], of slots [E, capacity].
        Everything else as in dual_gemm. Padding rows are 0 in a new result and left alone in `out`.
        """
        return _run_grouped(self._call(), a, b1, b2, _options.activation_chosen(_options.expect_gated(activation), alpha, limit, up_offset),
                        order, offsets, counts, row_ids, row_ids_divisor, bias1, bias2, row_weights, out_dtype, out, threads, strategy, ("b1", "bias1"))

    def grouped_gemm(self, a: Operand, b: Operand, *, offsets: Array | None = None, counts: Array | None = None,
                     row_ids: Array | None = None, row_ids_divisor: int = 1, bias: Array | None = None,
                     row_weights: Array | None = None, out_dtype: DType = None, out: Array | None = None, threads: int = 0,
                     strategy: str | None = None) -> Array:
        """(a·b[e]ᵀ + bias[e])·row_weight for the rows of each expert e: the down projection.

        b: [E, N, K]; bias: [E, N]; everything else as in grouped_dual_gemm.
        """
        return _run_grouped(self._call(), a, b, None, None, None, offsets, counts, row_ids, row_ids_divisor, bias, None, row_weights, out_dtype, out,
                        threads, strategy, ("b", "bias"))

    def grouped_dual_gemm_packed(self, a: Operand, weights: Array, *, offsets: Array | None = None, counts: Array | None = None,
                                 row_ids: Array | None = None, row_ids_divisor: int = 1, row_weights: Array | None = None,
                                 activation: str = "silu", alpha: float | None = None, limit: float | None = None,
                                 up_offset: float | None = None, out_dtype: DType = None, out: Array | None = None, threads: int = 0,
                                 strategy: str | None = None) -> Array:
        """grouped_dual_gemm with weights, biases among them, that pack_grouped gave: uint8 [bytes].

        Everything else as in grouped_dual_gemm and dual_gemm_packed.
        """
        return _run_grouped_packed(self._call(), a, weights, _options.activation_chosen(_options.expect_gated(activation), alpha, limit, up_offset),
                                   offsets, counts, row_ids, row_ids_divisor, row_weights, out_dtype, out, threads, strategy)

    def grouped_gemm_packed(self, a: Operand, weights: Array, *, offsets: Array | None = None, counts: Array | None = None,
                            row_ids: Array | None = None, row_ids_divisor: int = 1, row_weights: Array | None = None,
                            out_dtype: DType = None, out: Array | None = None, threads: int = 0,
                            strategy: str | None = None) -> Array:
        """grouped_gemm with weights, a bias among them, that pack_grouped gave: uint8 [bytes].

        Everything else as in grouped_gemm and dual_gemm_packed.
        """
        return _run_grouped_packed(self._call(), a, weights, None, offsets, counts, row_ids, row_ids_divisor, row_weights, out_dtype, out, threads,
                                   strategy)

    def attention(self, q: Array, k: Array, v: Array, *, causal: bool = False, scale: float | None = None, softcap: float = 0.0,
                  window: tuple[int, int] = (-1, -1), cu_seqlens_q: Array | None = None, cu_seqlens_k: Array | None = None,
                  block_table: Array | None = None, seqused_k: Array | None = None, sinks: Array | None = None,
                  q_descale: Array | None = None, k_descale: Array | None = None, v_descale: Array | None = None,
                  return_lse: bool = False, out: Array | None = None, threads: int = 0,
                  strategy: str | None = None) -> Array | tuple[Array, Array]:
        """softmax(q·kᵀ·scale + mask)·v for each batch and head.

        q: [B, H, Sq, D]; k, v: [B, Hk, Sk, D] with H a multiple of Hk; float16 or bfloat16; D is 64, 128, 192, 256 or 576,
            and that of v may be another, of 64, 128, 192, 256 and 512. A GPU takes neither 576 nor 512. The last dimension is
            contiguous, the other strides are multiples of 16 bytes, so that [B, S, H, D] in memory is a transposed view. k and v,
            and then q too, may be float8_e4m3fn, or its bytes as uint8.
        cu_seqlens_q, cu_seqlens_k: int32 or int64 [B + 1]: sequences of different lengths one behind the other; q is [T, H, D] then,
            k and v [Tk, Hk, D]. Rows of q behind the last sequence give none: theirs of out are not written, of a new one 0.
        block_table, seqused_k: int32 or int64 [B, pages of a sequence] and [B], with cu_seqlens_q alone: paged KV cache; k and v are
            [pages, page size, Hk, D] in any strides, and key j of sequence b is row j % page size of page
            block_table[b, j // page size].
        sinks: float32 [H]: an attention sink: an extra logit of each head in the softmax denominator.
        q_descale, k_descale, v_descale: float32 [B, Hk], with 1 where one is shared: they multiply queries, keys and values in
            FP8. The heads of a group share that of queries.
        causal: query i sees keys up to i + Sk − Sq. window: keys to the left and to the right that are visible, −1 for all.
        scale: 1/√D by default. softcap: 0 for none, else c·tanh(s/c) after the scale.
        out: of the type of q, with q in FP8 float16 or bfloat16, and of its shape, with the last dimension of v; must not overlap the
            inputs. A new one is bfloat16 where q is in FP8.

        Returns the result, or with return_lse the result and the logarithm of the sum of exponentials, float32 [B, H, Sq] or [H, T].
        A row that may see no key gives 0 and −inf, or its sink.
        """
        call = self._call()
        q, k, v = (call.operand(name, array) for name, array in (("q", q), ("k", k), ("v", v)))
        lengths_q, lengths_k = (
            call.optional(name, array, call.integers) for name, array in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)))
        options = _attention.options_of(causal, scale, softcap, window)
        _options.truth("return_lse", return_lse)
        serving = _attention.Serving(
            call.optional("block_table", block_table, call.integers), call.optional("seqused_k", seqused_k, call.integers),
            *(call.optional(name, array) for name, array in (("sinks", sinks), ("q_descale", q_descale), ("k_descale", k_descale),
                                                             ("v_descale", v_descale))))
        _attention.shape_of(q, k, v, lengths_q, lengths_k, serving)
        packed = cu_seqlens_q is not None
        result, o = call.output(out, _attention.out_shape(q.shape, v.shape), _attention.out_format(q), zeros=packed)
        sums, lse = (call.output(None, _attention.lse_shape(q.shape, packed), _lib.FP32, zeros=packed, name="lse") if return_lse
                     else (None, None))
        _attention.run(q, k, v, o, lse, lengths_q, lengths_k, options, serving, place=call.place,
                       threads=call.threads(threads), strategy=strategy)
        return (result, sums) if return_lse else result


    def append(self, k: Array, v: Array, k_cache: Array, v_cache: Array, slots: Array, *, positions: Array | None = None, q: Array | None = None,
               pairs: str = "halves", rotary_dim: int = 0, theta: float = 10000.0, cos_sin: Array | None = None, k_descale: Array | None = None,
               v_descale: Array | None = None, q_out: Array | None = None, k_out: Array | None = None, threads: int = 0) -> Array | None:
        """Turns queries and keys of new tokens by their positions, and writes keys and values to their rows of the pages, in place.

        k: [T, Hk, D], v: [T, Hk, D of values], float16 or bfloat16; D is a multiple of 16 up to 1024. The last dimension is contiguous,
            the other strides are multiples of 16 bytes.
        k_cache, v_cache: [pages, page size, Hk, D] in any such strides, as attention reads them; of the type of k, or float8_e4m3fn or
            its bytes as uint8. Rows that no slot names are left alone.
        slots: int32 or int64 [T]: token t is written to row slots[t] % page size of page slots[t] // page size, and nowhere where that
            is negative. No slot comes twice.
        positions: of the type of slots, [T], from 0 on. Not needed with pairs="none".
        pairs: which columns turn together, of rotary_dim: "halves", p and p + rotary_dim/2 (GPT-NeoX, Llama); "interleaved", 2p and
            2p + 1 (GPT-J); or "none". Pair p turns by position·theta^(−2p/rotary_dim).
        rotary_dim: even; 0 for D. Columns behind it stay as they are. theta: above 0, on a GPU from 1 on.
        cos_sin: float32 [positions, rotary_dim]: all cosines, then all sines, in place of theta.
        k_descale, v_descale: float32 [Hk], or [1] that all heads share, with FP8 pages alone: what is written is divided by them.
        q: [T, H, D]; after RoPE it is q_out, which may be q; a new array by default. k_out: as k, which it may be: the keys after RoPE too.

        RoPE is float32, rounded once. Outputs must not overlap anything else. A GPU looks at positions and slots when the call
        runs: a slot that does not exist is not written, and a position is clamped; on the CPU both are refused.
        Returns the queries after RoPE, or None without q. Raises InvalidArgumentError before anything is written.
        """
        call = self._call()
        rows, turned = call.optional("q", q), None
        if rows is not None:
            q_out, turned = call.output(q_out, rows.shape, rows.format, name="q_out")
        elif q_out is not None:
            _refuse("q_out is given without q, expected both or neither")
        keys = None if k_out is None else call.written_to("k_out", k_out)
        _append.run(
            _append.Tensors(rows, turned, call.operand("k", k), call.operand("v", v), keys, call.optional("positions", positions, call.numbers),
                            call.numbers("slots", slots), call.optional("cos_sin", cos_sin), call.written_to("k_cache", k_cache),
                            call.written_to("v_cache", v_cache), call.optional("k_descale", k_descale), call.optional("v_descale", v_descale)),
            _append.options_of(pairs, rotary_dim, theta), place=call.place, threads=call.threads(threads))
        return q_out


def _between(dtype: DType, scale: float) -> _layers.Between:
    format = None if dtype is None else _layers.INTERMEDIATES[dtype_name("intermediate_dtype", dtype, tuple(_layers.INTERMEDIATES))]
    return _layers.Between(format, _layers.scale_of(scale))


def _grouped_weights(call, b1, b2, bias1, bias2, order, names):
    return _grouped.Weights(call.operand(names[0], b1), call.optional("b2", b2), call.optional(names[1], bias1),
                            call.optional("bias2", bias2), order)


def _run_grouped(call, a, b1, b2, activation, order, offsets, counts, row_ids, row_ids_divisor, bias1, bias2, row_weights, out_dtype, out,
             threads, strategy, names):
    a = call.tokens("a", a)
    weights = _grouped_weights(call, b1, b2, bias1, bias2, order, names)
    _of.expect_rank(weights.b1, 3, "[E, N, K]")
    experts, columns = weights.b1.shape[:2]
    return _run_owned(call, a, weights, experts, columns if order is None else columns // 2, weights.b1.format, activation, offsets,
                      counts, row_ids, row_ids_divisor, row_weights, out_dtype, out, threads, strategy)


def _run_grouped_packed(call, a, weights, activation, offsets, counts, row_ids, row_ids_divisor, row_weights, out_dtype, out, threads,
                        strategy):
    a, block = call.tokens("a", a), call.block(weights)
    held = _packed.opened("grouped", block)
    return _run_owned(call, a, block, held.info.experts, held.info.n, held.format, activation, offsets, counts, row_ids,
                      row_ids_divisor, row_weights, out_dtype, out, threads, strategy)


def _run_owned(call, a, weights, experts, columns, format, activation, offsets, counts, row_ids, row_ids_divisor, row_weights,
               out_dtype, out, threads, strategy):
    lists = {name: call.optional(name, array, call.integers) for name, array in (("offsets", offsets), ("counts", counts), ("row_ids", row_ids))}
    layout, rows, _ = _grouped.rows_of(a, experts, **lists)
    result, c = call.output(out, (experts, rows, columns) if layout == _grouped.SLOTS else (rows, columns),
                            _format(out_dtype, out, _options.output_format(a.format, format)), zeros=True)
    owned = _grouped.Rows(**lists, row_ids_divisor=_options.whole_number("row_ids_divisor", row_ids_divisor, 1),
                          row_weights=call.optional("row_weights", row_weights, call.factors))
    _grouped.run(a, weights, owned, c, activation, place=call.place, threads=call.threads(threads), strategy=strategy)
    return result
