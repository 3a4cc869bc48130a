"""The operations on JAX's arrays, under `jax.jit` too, by this CPU.

Outside of a transformation a function computes at once; traced, it is a call of the host (`jax.pure_callback`) in the compiled
program, and `jax.vmap` makes one call after the other. There is no derivative: `jax.grad` through a function is refused.

Every function raises InvalidArgumentError with one sentence when shapes, types or options do not fit together, while it is
traced too; what only values tell (the header of packed weights) is raised where the compiled program is run, by JAX, with the
sentence in its text. `Nvfp4` and `Fp8` are pytrees. `pack`, `pack_grouped` and `packed_info` are those of thresher.numpy, for
arrays that are not traced.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as _np

from . import _attention, _gemm, _grouped, _layers
from . import _dual_gemm as _dual
from . import _library as _lib
from . import _operands as _of
from . import _options
from . import numpy as _on_host
from ._errors import UnsupportedError
from ._fp8 import Fp8
from ._library import refuse as _refuse
from ._nvfp4 import Nvfp4
from ._packed import PackedInfo

Array: TypeAlias = Any  # jax.Array, or what jax.numpy.asarray takes
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

jax.tree_util.register_pytree_node(
    Nvfp4, lambda one: ((one.values, one.scales, one.global_scale), one.scale_layout),
    lambda layout, parts: Nvfp4(*parts, scale_layout=layout))
jax.tree_util.register_pytree_node(
    Fp8, lambda one: ((one.values, one.scales), (one.per, one.scale_layout)),
    lambda how, parts: Fp8(*parts, per=how[0], scale_layout=how[1]))


def _array(name: str, value: Any) -> Any:
    if isinstance(value, (jax.Array, _np.ndarray)):
        return value
    _refuse(f"{name} is {'None' if value is None else 'of the type ' + type(value).__name__}, expected an array")


def _operand(name: str, value: Any) -> _of.Operand:
    """What is known of an array while it is traced, in place of where it lies."""
    if isinstance(value, Nvfp4):
        return _of.nvfp4(_operand(f"{name}.values", value.values), _operand(f"{name}.scales", value.scales),
                         _optional(f"{name}.global_scale", value.global_scale), value.scale_layout)
    if isinstance(value, Fp8):
        return _of.fp8(_operand(f"{name}.values", value.values), _operand(f"{name}.scales", value.scales), value.per,
                       value.scale_layout, are_tokens=name in _of.TOKENS)
    array = _array(name, value)
    format = _of.FORMATS.get(array.dtype.name)
    if format is None or format == _lib.NVFP4:
        _refuse(f"{name} has the type {array.dtype.name}, expected float16, bfloat16, float32, int32 or uint8")
    strides, step = [], 1
    for extent in reversed(array.shape):
        strides.append(step)
        step *= extent
    return _of.Operand(name, 0, format, tuple(array.shape), tuple(reversed(strides)), (_lib.CPU, 0))


def _optional(name: str, value: Any) -> _of.Operand | None:
    return None if value is None else _operand(name, value)


def _dtype(out_dtype: DType, *formats: int) -> Any:
    if out_dtype is None:
        return jnp.dtype(_of.FORMAT_NAMES[_options.output_format(*formats)])
    try:
        made = jnp.dtype(out_dtype)
    except TypeError:
        made = None
    if made is None or made.name not in ("float16", "bfloat16", "float32"):
        _refuse(f"out_dtype is {out_dtype!r}, expected float16, bfloat16 or float32")
    return made


def _expect_cpu(leaves: list) -> None:
    platforms = {device.platform for one in leaves if isinstance(one, jax.Array) and not isinstance(one, jax.core.Tracer)
                 for device in one.devices()}
    if platforms - {"cpu"}:
        raise UnsupportedError(f"an array lies on {', '.join(sorted(platforms))}, and thresher.jax computes on the CPU alone: put it there "
                               f"with jax.device_put")


def _call(compute: Callable, result: Any, *operands: Any) -> Any:
    """compute(*operands) on the host, where `result` is a pytree of the shapes that come back."""
    leaves = jax.tree_util.tree_leaves(operands)
    _expect_cpu(leaves)

    def on_host(*given):
        return compute(*jax.tree_util.tree_map(_np.asarray, given))

    if not any(isinstance(one, jax.core.Tracer) for one in leaves):
        return jax.tree_util.tree_map(jnp.asarray, on_host(*operands))

    @jax.custom_jvp
    def traced(*given):
        return jax.pure_callback(on_host, result, *given, vmap_method="sequential")

    @traced.defjvp
    def no_derivative(primals, tangents):
        raise UnsupportedError("thresher has no backward pass, but a derivative of its result is asked for: put jax.lax.stop_gradient "
                               "around its inputs")

    return traced(*operands)


def _shaped(shape: tuple, dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def dual_gemm(a: Operand, b1: Operand, b2: Operand, *, activation: str = "silu", alpha: float = 1.702, limit: float = 7.0,
              up_offset: float = 1.0, out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """activation(a·b1ᵀ) ∘ (a·b2ᵀ), the first half of a gated MLP. b1 is the gate, b2 is up.

    a: [M, K], float16, bfloat16, Nvfp4 or Fp8; b1, b2: [N, K]. Everything as in thresher.numpy.dual_gemm. Returns [M, N].
    """
    tokens, gate, up = _operand("a", a), _operand("b1", b1), _operand("b2", b2)
    _of.expect_rank(tokens, 2, "[M, K]")
    columns, depth = _dual._shape_of_weights(gate, up)
    _of.expect_shape(tokens, (tokens.shape[0], depth), "[M, K] with the K of b1")
    options = _activation(activation, alpha, limit, up_offset, threads)
    dtype = _dtype(out_dtype, tokens.format, gate.format)
    return _call(lambda *given: _on_host.dual_gemm(*given, out_dtype=dtype.name, **options), _shaped((tokens.shape[0], columns), dtype), a, b1, b2)


def _activation(activation: str, alpha: float, limit: float, up_offset: float, threads: int) -> dict:
    _options.activation_of(activation, alpha, limit, up_offset)
    return dict(activation=activation, alpha=alpha, limit=limit, up_offset=up_offset, threads=_options.threads_of(threads))


def pack(b1: Operand, b2: Operand, *, numerics: str = "exact") -> jax.Array:
    """The weights of dual_gemm_packed as one uint8 array [bytes], as thresher.numpy.pack makes them."""
    return _packed_here(_on_host.pack, b1, b2, numerics=numerics)


def pack_gemm(b: Operand, *, bias: Array | None = None, numerics: str = "exact") -> jax.Array:
    """The weights of gemm_packed and of gated_mlp's down, uint8 [bytes], as thresher.numpy.pack_gemm makes them."""
    return _packed_here(_on_host.pack_gemm, b, bias=bias, numerics=numerics)


def pack_grouped(b1: Operand, b2: Operand | None = None, *, order: str | None = None, bias1: Array | None = None,
                 bias2: Array | None = None, numerics: str = "exact") -> jax.Array:
    """The weights of grouped_dual_gemm_packed or grouped_gemm_packed, uint8 [bytes], as thresher.numpy.pack_grouped makes them."""
    return _packed_here(_on_host.pack_grouped, b1, b2, order=order, bias1=bias1, bias2=bias2, numerics=numerics)


def _packed_here(make: Callable, *operands: Any, **options: Any) -> jax.Array:
    leaves = jax.tree_util.tree_leaves((operands, options))
    if any(isinstance(one, jax.core.Tracer) for one in leaves):
        _refuse("weights are packed while they are traced, expected that to be done once, outside of jax.jit")
    _expect_cpu(leaves)
    on_host = [jax.tree_util.tree_map(_np.asarray, one) for one in operands]
    return jnp.asarray(make(*on_host, **{name: _np.asarray(one) if isinstance(one, jax.Array) else one for name, one in options.items()}))


def packed_info(weights: Array, *, check: bool = False) -> PackedInfo:
    """What packed weights hold, as thresher.numpy.packed_info says it."""
    return _on_host.packed_info(_np.asarray(_array("weights", weights)), check=check)


def dual_gemm_packed(a: Operand, weights: Array, n: int, *, activation: str = "silu", alpha: float = 1.702, limit: float = 7.0,
                     up_offset: float = 1.0, out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """dual_gemm with weights that pack gave.

    weights: uint8 [bytes]. n: N of the weights, as packed_info says, since a traced array cannot be looked into.
    Everything else as in dual_gemm. Returns [M, n].
    """
    tokens = _operand("a", a)
    _of.expect_rank(tokens, 2, "[M, K]")
    options = _activation(activation, alpha, limit, up_offset, threads)
    dtype = _dtype(out_dtype, tokens.format, tokens.format)
    return _call(_held_to(n, lambda *given: _on_host.dual_gemm_packed(*given, out_dtype=dtype.name, **options)),
                 _shaped((tokens.shape[0], _columns(n)), dtype), a, _weights(weights))


def _columns(n: int) -> int:
    return _options.whole_number("n", n, 0, 2**62)


def _weights(weights: Array) -> Array:
    _of.expect_format(_operand("weights", weights), _lib.UINT8)
    return weights


def _held_to(n: int, compute: Callable) -> Callable:
    def checked(a, weights, *rest):
        held = _on_host.packed_info(weights).n
        if held != n:
            _refuse(f"n is {n}, but the weights have N = {held}")
        return compute(a, weights, *rest)

    return checked


def gemm(a: Operand, b: Operand, *, bias: Array | None = None, out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """a·bᵀ + bias, as a down projection is.

    a: [M, K]; b: [N, K]; bias: [N]. Everything as in thresher.numpy.gemm. Returns [M, N].
    """
    tokens, weights, offset = _operand("a", a), _operand("b", b), _optional("bias", bias)
    _of.expect_rank(tokens, 2, "[M, K]")
    _of.expect_rank(weights, 2, "[N, K]")
    _gemm.expect_weights(weights, offset)
    columns, depth = weights.shape
    _of.expect_shape(tokens, (tokens.shape[0], depth), "[M, K] with the K of b")
    dtype, threads = _dtype(out_dtype, tokens.format, weights.format), _options.threads_of(threads)
    named = {} if bias is None else dict(bias=bias)
    return _call(lambda a, b, named: _on_host.gemm(a, b, **named, out_dtype=dtype.name, threads=threads),
                 _shaped((tokens.shape[0], columns), dtype), a, b, named)


def gemm_packed(a: Operand, weights: Array, n: int, *, out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """gemm with weights, a bias among them, that pack_gemm gave: uint8 [bytes]; `n` is theirs. Returns [M, n]."""
    tokens = _operand("a", a)
    _of.expect_rank(tokens, 2, "[M, K]")
    dtype, threads = _dtype(out_dtype, tokens.format, tokens.format), _options.threads_of(threads)
    return _call(_held_to(n, lambda *given: _on_host.gemm_packed(*given, out_dtype=dtype.name, threads=threads)),
                 _shaped((tokens.shape[0], _columns(n)), dtype), a, _weights(weights))


def gated_mlp(x: Operand, gate_up: Array, down: Array, *, activation: str = "silu", alpha: float = 1.702, limit: float = 7.0,
              up_offset: float = 1.0, intermediate_dtype: DType = None, out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """activation(x·gateᵀ, x·upᵀ)·downᵀ, a dense feed-forward layer, of what pack and pack_gemm gave: uint8 [bytes].

    x: [T, K]. Everything as in thresher.numpy.gated_mlp, but that out_dtype is that of x by default, of Nvfp4 and Fp8 bfloat16.
    """
    options = _activation(activation, alpha, limit, up_offset, threads) | _between(intermediate_dtype)
    return _layer(_on_host.gated_mlp, x, (gate_up, down), out_dtype, options)


def moe(x: Operand, gate_up: Array, down: Array, topk_ids: Array, topk_weights: Array, *, activation: str = "silu", alpha: float = 1.702,
        limit: float = 7.0, up_offset: float = 1.0, intermediate_dtype: DType = None, rows_dtype: DType = "float32",
        out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """Σ over the choices c of a token of topk_weights[c] times the gated MLP of the expert topk_ids[c].

    gate_up, down: what pack_grouped gave: uint8 [bytes]; topk_ids: int32 [T, k]; topk_weights: float32 [T, k]. Everything as in
    thresher.numpy.moe and gated_mlp. Returns [T, K].
    """
    options = _activation(activation, alpha, limit, up_offset, threads) | _between(intermediate_dtype)
    options["rows_dtype"] = _dtype(rows_dtype).name
    tokens, ids, factors = _operand("x", x), _operand("topk_ids", topk_ids), _operand("topk_weights", topk_weights)
    _layers.expect_choices(tokens, ids, factors)
    return _layer(_on_host.moe, x, (gate_up, down), out_dtype, options, topk_ids, topk_weights)


def _between(dtype: DType) -> dict:
    return dict(intermediate_dtype=None if dtype is None else _on_host._dtype_name("intermediate_dtype", dtype, ("float16", "bfloat16")))


def _layer(compute: Callable, x: Operand, weights: tuple, out_dtype: DType, options: dict, *choices: Array) -> jax.Array:
    tokens = _operand("x", x)
    _of.expect_rank(tokens, 2, "[tokens, hidden size]")
    for one in weights:
        _weights(one)
    dtype = _dtype(out_dtype, tokens.format, tokens.format)
    return _call(lambda *given: compute(*given, out_dtype=dtype.name, **options), _shaped(tokens.shape, dtype), x, *weights, *choices)


_ROWS = ("offsets", "counts", "row_ids", "row_weights")


def _grouped_call(compute: Callable, a: Operand, experts: int | None, columns: int, dtype: Any, weights: tuple, lists: dict,
                  named: dict, options: dict) -> jax.Array:
    """`weights` by place, `lists` and `named` arrays by name."""
    rows = {name: _optional(name, lists[name]) for name in _ROWS[:3]}
    tokens = _operand("a", a)
    groups = rows["counts"] if rows["offsets"] is None else rows["offsets"]
    if experts is None:  # of packed weights, whose number is looked at where they are
        experts = 0 if groups is None or len(groups.shape) != 1 else groups.shape[0] - (rows["offsets"] is not None)
    layout, count, _ = _grouped.rows_of(tokens, experts, **rows)
    shape = (experts, count, columns) if layout == _grouped.SLOTS else (count, columns)
    arrays = {name: array for name, array in {**lists, **named}.items() if array is not None}
    for name, array in arrays.items():
        _operand(name, array)

    def on_host(a, weights, arrays):
        return compute(a, *weights, **arrays, out_dtype=dtype.name, **options)

    return _call(on_host, _shaped(shape, dtype), a, weights, arrays)


def grouped_dual_gemm(a: Operand, b1: Operand, b2: Operand | None = None, *, offsets: Array | None = None,
                      counts: Array | None = None, row_ids: Array | None = None, row_ids_divisor: int = 1,
                      order: str | None = None, bias1: Array | None = None, bias2: Array | None = None,
                      row_weights: Array | None = None, activation: str = "silu", alpha: float = 1.702, limit: float = 7.0,
                      up_offset: float = 1.0, out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """activation(a·b1[e]ᵀ + bias1[e], a·b2[e]ᵀ + bias2[e])·row_weight for the rows of each expert e.

    Everything as in thresher.numpy.grouped_dual_gemm. Rows that nobody owns are 0.
    """
    operands = {"b1": b1} if b2 is None else {"b1": b1, "b2": b2}
    weights = _grouped.Weights(*(_optional(name, one) for name, one in (("b1", b1), ("b2", b2), ("bias1", bias1), ("bias2", bias2))), order)
    if b1 is None:
        _refuse("b1 is None, expected an array")
    if order is not None:
        _options.one_of("order", order, _options.ORDERS)
    view = _grouped._view(weights, has_activation=True)
    dtype = _dtype(out_dtype, _operand("a", a).format, weights.b1.format)
    options = _activation(activation, alpha, limit, up_offset, threads) | dict(row_ids_divisor=row_ids_divisor, order=order)
    return _grouped_call(_on_host.grouped_dual_gemm, a, view["experts"], view["n"], dtype, tuple(operands.values()),
                         dict(offsets=offsets, counts=counts, row_ids=row_ids, row_weights=row_weights),
                         dict(bias1=bias1, bias2=bias2), options)


def grouped_gemm(a: Operand, b: Operand, *, offsets: Array | None = None, counts: Array | None = None,
                 row_ids: Array | None = None, row_ids_divisor: int = 1, bias: Array | None = None,
                 row_weights: Array | None = None, out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """(a·b[e]ᵀ + bias[e])·row_weight for the rows of each expert e: the down projection.

    b: [E, N, K]; everything as in thresher.numpy.grouped_gemm. Rows that nobody owns are 0.
    """
    weights = _grouped.Weights(_operand("b", b), None, _optional("bias", bias), None, None)
    view = _grouped._view(weights, has_activation=False)
    dtype = _dtype(out_dtype, _operand("a", a).format, weights.b1.format)
    return _grouped_call(_on_host.grouped_gemm, a, view["experts"], view["n"], dtype, (b,),
                         dict(offsets=offsets, counts=counts, row_ids=row_ids, row_weights=row_weights), dict(bias=bias),
                         dict(row_ids_divisor=row_ids_divisor, threads=_options.threads_of(threads)))


def grouped_dual_gemm_packed(a: Operand, weights: Array, n: int, *, offsets: Array | None = None, counts: Array | None = None,
                             row_ids: Array | None = None, row_ids_divisor: int = 1, row_weights: Array | None = None,
                             activation: str = "silu", alpha: float = 1.702, limit: float = 7.0, up_offset: float = 1.0,
                             out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """grouped_dual_gemm with weights, biases among them, that pack_grouped gave: uint8 [bytes]; `n` is theirs."""
    options = _activation(activation, alpha, limit, up_offset, threads) | dict(row_ids_divisor=row_ids_divisor)
    return _grouped_packed(_on_host.grouped_dual_gemm_packed, a, weights, n, out_dtype, options, offsets, counts, row_ids, row_weights)


def grouped_gemm_packed(a: Operand, weights: Array, n: int, *, offsets: Array | None = None, counts: Array | None = None,
                        row_ids: Array | None = None, row_ids_divisor: int = 1, row_weights: Array | None = None,
                        out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """grouped_gemm with weights, a bias among them, that pack_grouped gave: uint8 [bytes]; `n` is theirs."""
    options = dict(row_ids_divisor=row_ids_divisor, threads=_options.threads_of(threads))
    return _grouped_packed(_on_host.grouped_gemm_packed, a, weights, n, out_dtype, options, offsets, counts, row_ids, row_weights)


def _grouped_packed(compute, a, weights, n, out_dtype, options, offsets, counts, row_ids, row_weights):
    def checked(a, weights, **rest):
        return _held_to(n, lambda a, weights: compute(a, weights, **rest))(a, weights)

    tokens = _operand("a", a)
    return _grouped_call(checked, a, None, _columns(n), _dtype(out_dtype, tokens.format, tokens.format), (_weights(weights),),
                         dict(offsets=offsets, counts=counts, row_ids=row_ids, row_weights=row_weights), {}, options)


def attention(q: Array, k: Array, v: Array, *, causal: bool = False, scale: float | None = None, softcap: float = 0.0,
              window: tuple[int, int] = (-1, -1), cu_seqlens_q: Array | None = None, cu_seqlens_k: Array | None = None,
              return_lse: bool = False, threads: int = 0) -> jax.Array | tuple[jax.Array, jax.Array]:
    """softmax(q·kᵀ·scale + mask)·v for each batch and head.

    q: [B, H, Sq, D]; k, v: [B, Hk, Sk, D]; everything as in thresher.numpy.attention. Returns the result in the shape and type of q,
    or with return_lse that and the logarithm of the sum of exponentials, float32 [B, H, Sq] or [H, T].
    """
    given = [_operand(name, one) for name, one in (("q", q), ("k", k), ("v", v))]
    _attention.options_of(causal, scale, softcap, window)
    _attention.shape_of(*given, _optional("cu_seqlens_q", cu_seqlens_q), _optional("cu_seqlens_k", cu_seqlens_k))
    options = dict(causal=causal, scale=scale, softcap=softcap, window=window, return_lse=return_lse, threads=_options.threads_of(threads))
    lengths = {} if cu_seqlens_q is None else dict(cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k)
    out = _shaped(given[0].shape, jnp.dtype(_of.FORMAT_NAMES[given[0].format]))
    lse = _shaped(_attention.lse_shape(given[0].shape, bool(lengths)), jnp.dtype("float32"))
    return _call(lambda q, k, v, lengths: _on_host.attention(q, k, v, **lengths, **options), (out, lse) if return_lse else out, q, k, v, lengths)
