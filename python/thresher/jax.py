"""The operations on JAX's arrays, under `jax.jit` too, by this CPU or a GPU.

Outside of a transformation a function of arrays on the CPU computes at once; traced, it is a foreign function of XLA in the compiled
program (libthresher_jax.so), on a GPU in the program's stream and XLA's memory, and without that library a call of the host
(`jax.pure_callback`) on the CPU alone. `jax.vmap` makes one call after the other. There is no derivative: `jax.grad` is refused.

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

from . import _attention, _conversions, _gemm, _grouped, _layers
from . import _dual_gemm as _dual
from . import _library as _lib
from . import _operands as _of
from . import _options
from . import numpy as _on_host
from ._errors import Error, UnsupportedError
from ._array_functions import dtype_name as _dtype_name
from ._fp8 import Fp8
from ._jax_native import native
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

_INTEGERS = ("offsets", "counts", "row_ids", "topk_ids", "cu_seqlens_q", "cu_seqlens_k", "block_table", "seqused_k")
_FACTORS = ("row_weights", "topk_weights")

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
    format = _of.format_of_array(array)
    strides, step = [], 1
    for extent in reversed(array.shape):
        strides.append(step)
        step *= extent
    given = _of.Operand(name, 0, format, tuple(array.shape), tuple(reversed(strides)), (_lib.CPU, 0))
    for names, formats in ((_INTEGERS, (_lib.INT32, _of.INT64)), (_FACTORS, (_lib.FP32, _lib.FP16, _lib.BF16))):
        if name in names:
            _of.expect_format(given, *formats)
            given = given._replace(format=formats[0])
    return given


def _tokens(name: str, value: Any) -> _of.Operand:
    given = _operand(name, value)
    _of.expect_format(given, *_options.OPERAND_FORMATS)
    return given


def _converted(name: str, value: Any) -> Any:
    """As foreign functions take it: ids and offsets in int32, where numbers that it does not hold stay outside of what they count;
    weights of rows in float32."""
    if name in _FACTORS:
        return value.astype("float32")
    if name not in _INTEGERS or value.dtype.name != "int64":
        return value
    if isinstance(value, jax.core.Tracer):
        return jnp.clip(value, _conversions.LEAST, _conversions.MOST).astype(jnp.int32)
    return _conversions.narrowed(name, _np.asarray(value))


def _optional(name: str, value: Any) -> _of.Operand | None:
    return None if value is None else _operand(name, value)


def _dtype(out_dtype: DType, *formats: int | str) -> Any:
    if out_dtype is None:
        return jnp.dtype(_of.FORMAT_NAMES[_options.output_format(*formats)])
    try:
        made = jnp.dtype(out_dtype)
    except TypeError:
        made = None
    if made is None or made.name not in ("float16", "bfloat16", "float32"):
        _refuse(f"out_dtype is {out_dtype!r}, expected float16, bfloat16 or float32")
    return made


def _dtype_of_packed(out_dtype: DType, tokens: _of.Operand, weights: Array) -> tuple[Any, bool]:
    """(what comes back, whether weights that cannot be looked at may say otherwise)."""
    if out_dtype is not None or tokens.format in _options.OUTPUT_FORMATS:
        return _dtype(out_dtype, tokens.format), False
    if isinstance(weights, jax.core.Tracer) or _platforms([weights]) - {"cpu"}:
        return _dtype(None, tokens.format), True
    return _dtype(None, tokens.format, _of.format_of(_on_host.packed_info(_np.asarray(weights)).format)), False


def _expect_cpu(leaves: list) -> None:
    platforms = _platforms(leaves)
    if platforms - {"cpu"}:
        raise UnsupportedError(f"an array lies on {', '.join(sorted(platforms))}, and is needed on the CPU: put it there with jax.device_put")


def _platforms(leaves: list) -> set:
    return {device.platform for one in leaves if isinstance(one, jax.Array) and not isinstance(one, jax.core.Tracer)
            for device in one.devices()}


def _rows_first(array: Any) -> _np.ndarray:
    """On the host, row-major: an array of JAX may be stored in another order, which is no property that its user sees."""
    return _np.asarray(array, order="C")


def _call(function: str, result: Any, operands: dict, options: dict, n: int | None = None, is_assumed: bool = False) -> Any:
    """The function of thresher.numpy of that name, where `result` is a pytree of the shapes that come back. n: what packed weights
    must have. is_assumed: the type of the result is right unless packed weights turn out to decide it."""
    operands = {name: one for name, one in operands.items() if one is not None}
    leaves = jax.tree_util.tree_leaves(operands)

    def on_host(given):
        arrays = jax.tree_util.tree_map(_rows_first, given)
        try:
            if n is not None:
                _expect_columns(arrays["weights"], n)
            if is_assumed:
                _options.expect_assumed_output(_of.FORMATS.get(_packed_format(arrays)))
            return getattr(_on_host, function)(**arrays, **options)
        except Error as error:  # JAX shows every frame that it went through, beside the sentence
            raise error.with_traceback(None) from None

    is_traced = any(isinstance(one, jax.core.Tracer) for one in leaves)
    if native is None:
        _expect_cpu(leaves)
    if not is_traced and _platforms(leaves) <= {"cpu"}:
        return _beside(leaves, jax.tree_util.tree_map(jnp.asarray, on_host(operands)))

    @jax.custom_jvp
    def in_program(given):
        if native is not None:
            return native.call(function, result, given, options | (dict(is_assumed=True) if is_assumed else {}))
        return jax.pure_callback(on_host, result, given, vmap_method="sequential")

    @in_program.defjvp
    def no_derivative(primals, tangents):
        raise UnsupportedError("thresher has no backward pass, but a derivative of its result is asked for: put jax.lax.stop_gradient "
                               "around its inputs")

    made = in_program({name: _converted(name, one) for name, one in operands.items()})
    axes = frozenset().union(*map(_varying_axes, leaves))
    return jax.tree_util.tree_map(lambda one: _vary(one, axes), made)


def _beside(leaves: list, results: Any) -> Any:
    """Results on the one device of the CPU that arrays of a call were put on."""
    devices = frozenset().union(*(one.devices() for one in leaves if isinstance(one, jax.Array) and one.committed))
    if len(devices) != 1 or all(one.devices() == devices for one in jax.tree_util.tree_leaves(results)):
        return results
    return jax.device_put(results, next(iter(devices)))


def _varying_axes(value: Any) -> frozenset:
    """The axes of a mesh over which a value varies inside of jax.shard_map; none where this jax does not say."""
    kind = jax.typeof(value) if hasattr(jax, "typeof") else None
    return frozenset(getattr(kind, "vma", None) or getattr(getattr(kind, "manual_axis_type", None), "varying", ()))


def _vary(result: Any, axes: frozenset) -> Any:
    """A result that varies over these axes, which a foreign function's does not by itself."""
    missing = tuple(axes - _varying_axes(result))
    if not missing:
        return result
    return jax.lax.pcast(result, missing, to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(result, missing)


def _packed_format(operands: dict) -> str:
    """The format of the packed weights that tokens meet first, which lie on the CPU."""
    return _on_host.packed_info(operands["weights" if "weights" in operands else "gate_up"]).format


def _expect_columns(weights: Any, n: int) -> None:
    held = _on_host.packed_info(weights).n
    if held != n:
        _refuse(f"n is {n}, but the weights have N = {held}")


def _shaped(shape: tuple, dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def dual_gemm(a: Operand, b1: Operand, b2: Operand, *, activation: str = "silu", alpha: float | None = None,
              limit: float | None = None, up_offset: float | None = None, out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """activation(a·b1ᵀ) ∘ (a·b2ᵀ), the first half of a gated MLP. b1 is the gate, b2 is up.

    a: [M, K], float16, bfloat16, Nvfp4 or Fp8; b1, b2: [N, K]. Everything as in thresher.numpy.dual_gemm. Returns [M, N].
    """
    tokens, gate, up = _tokens("a", a), _operand("b1", b1), _operand("b2", b2)
    _of.expect_rank(tokens, 2, "[M, K]")
    columns, depth = _dual._shape_of_weights(gate, up)
    _of.expect_shape(tokens, (tokens.shape[0], depth), "[M, K] with the K of b1")
    _options.expect_depth(depth, tokens.format, gate.format)
    options = _activation(activation, alpha, limit, up_offset, threads)
    dtype = _dtype(out_dtype, tokens.format, gate.format)
    return _call("dual_gemm", _shaped((tokens.shape[0], columns), dtype), dict(a=a, b1=b1, b2=b2), dict(out_dtype=dtype.name, **options))


def _activation(activation: str, alpha: float | None, limit: float | None, up_offset: float | None, threads: int,
                has_gate: bool = True) -> dict:
    _options.activation_chosen(_options.expect_gated(activation) if has_gate else activation, alpha, limit, up_offset)
    constants = {name: None if one is None else float(one) for name, one in (("alpha", alpha), ("limit", limit), ("up_offset", up_offset))}
    return dict(activation=activation, **constants, threads=_options.threads_of(threads))


def pack(b1: Operand, b2: Operand, *, numerics: str = "exact") -> jax.Array:
    """The weights of dual_gemm_packed as one uint8 array [bytes], as thresher.numpy.pack makes them: on the host, wherever they are."""
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
    on_host = [jax.tree_util.tree_map(_rows_first, one) for one in operands]
    return jnp.asarray(make(*on_host, **{name: _rows_first(one) if isinstance(one, jax.Array) else one for name, one in options.items()}))


def packed_info(weights: Array, *, check: bool = False) -> PackedInfo:
    """What packed weights hold, as thresher.numpy.packed_info says it."""
    if isinstance(weights, jax.core.Tracer):
        _refuse("weights are traced, expected an array whose bytes are there: call packed_info outside of jax.jit")
    return _on_host.packed_info(_np.asarray(_array("weights", weights)), check=check)


def dual_gemm_packed(a: Operand, weights: Array, n: int, *, activation: str = "silu", alpha: float | None = None,
                     limit: float | None = None, up_offset: float | None = None, out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """dual_gemm with weights that pack gave.

    weights: uint8 [bytes]. n: N of the weights, as packed_info says, since a traced array cannot be looked into.
    Everything else as in dual_gemm. Returns [M, n].
    """
    tokens = _tokens("a", a)
    _of.expect_rank(tokens, 2, "[M, K]")
    options = _activation(activation, alpha, limit, up_offset, threads)
    dtype, is_assumed = _dtype_of_packed(out_dtype, tokens, _weights(weights))
    return _call("dual_gemm_packed", _shaped((tokens.shape[0], _columns(n)), dtype), dict(a=a, weights=weights),
                 dict(out_dtype=dtype.name, **options), n, is_assumed)


def _columns(n: int) -> int:
    return _options.whole_number("n", n, 0, 2**62)


def _weights(weights: Array, name: str = "weights") -> Array:
    _of.expect_format(_operand(name, weights), _lib.UINT8)
    return weights


def gemm(a: Operand, b: Operand, *, bias: Array | None = None, out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """a·bᵀ + bias, as a down projection is.

    a: [M, K]; b: [N, K]; bias: [N]. Everything as in thresher.numpy.gemm. Returns [M, N].
    """
    tokens, weights, offset = _tokens("a", a), _operand("b", b), _optional("bias", bias)
    _of.expect_rank(tokens, 2, "[M, K]")
    _of.expect_rank(weights, 2, "[N, K]")
    _gemm.expect_weights(weights, offset)
    columns, depth = weights.shape
    _of.expect_shape(tokens, (tokens.shape[0], depth), "[M, K] with the K of b")
    _options.expect_depth(depth, tokens.format, weights.format)
    dtype, threads = _dtype(out_dtype, tokens.format, weights.format), _options.threads_of(threads)
    return _call("gemm", _shaped((tokens.shape[0], columns), dtype), dict(a=a, b=b, bias=bias), dict(out_dtype=dtype.name, threads=threads))


def gemm_packed(a: Operand, weights: Array, n: int, *, out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """gemm with weights, a bias among them, that pack_gemm gave: uint8 [bytes]; `n` is theirs. Returns [M, n]."""
    tokens = _tokens("a", a)
    _of.expect_rank(tokens, 2, "[M, K]")
    dtype, is_assumed = _dtype_of_packed(out_dtype, tokens, _weights(weights))
    return _call("gemm_packed", _shaped((tokens.shape[0], _columns(n)), dtype), dict(a=a, weights=weights),
                 dict(out_dtype=dtype.name, threads=_options.threads_of(threads)), n, is_assumed)


def gated_mlp(x: Operand, gate_up: Array, down: Array, *, activation: str = "silu", alpha: float | None = None,
              limit: float | None = None, up_offset: float | None = None, intermediate_dtype: DType = None,
              intermediate_scale: float = 1.0, out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """activation(x·gateᵀ, x·upᵀ)·downᵀ, a dense feed-forward layer, of what pack and pack_gemm gave: uint8 [bytes]; with "relu2"
    activation(x·upᵀ)·downᵀ of what pack_gemm gave of up and of down.

    x: [T, K]. Everything as in thresher.numpy.gated_mlp.
    """
    options = _activation(activation, alpha, limit, up_offset, threads, has_gate=False) | _between(intermediate_dtype, intermediate_scale)
    return _layer("gated_mlp", dict(x=x, gate_up=gate_up, down=down), out_dtype, options)


def moe(x: Operand, gate_up: Array, down: Array, topk_ids: Array, topk_weights: Array, *, activation: str = "silu",
        alpha: float | None = None, limit: float | None = None, up_offset: float | None = None, intermediate_dtype: DType = None,
        intermediate_scale: float = 1.0, rows_dtype: DType = "float32", out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """Σ over the choices c of a token of topk_weights[c] times the gated MLP of the expert topk_ids[c].

    gate_up, down: what pack_grouped gave: uint8 [bytes]; topk_ids: [T, k]; topk_weights: [T, k]. Everything as in thresher.numpy.moe and
    gated_mlp. Returns [T, K].
    """
    options = _activation(activation, alpha, limit, up_offset, threads, has_gate=False) | _between(intermediate_dtype, intermediate_scale)
    options["rows_dtype"] = _dtype_name("rows_dtype", rows_dtype)
    tokens, ids, factors = _tokens("x", x), _operand("topk_ids", topk_ids), _operand("topk_weights", topk_weights)
    _layers.expect_choices(tokens, ids, factors)
    return _layer("moe", dict(x=x, gate_up=gate_up, down=down, topk_ids=topk_ids, topk_weights=topk_weights), out_dtype, options)


def _between(dtype: DType, scale: float) -> dict:
    name = None if dtype is None else _dtype_name("intermediate_dtype", dtype, tuple(_layers.INTERMEDIATES))
    return dict(intermediate_dtype=name, intermediate_scale=_layers.scale_of(scale))


def _layer(function: str, operands: dict, out_dtype: DType, options: dict) -> jax.Array:
    tokens = _tokens("x", operands["x"])
    _of.expect_rank(tokens, 2, "[tokens, hidden size]")
    for name in ("gate_up", "down"):
        _weights(operands[name], name)
    dtype, is_assumed = _dtype_of_packed(out_dtype, tokens, operands["gate_up"])
    return _call(function, _shaped(tokens.shape, dtype), operands, dict(out_dtype=dtype.name, **options), is_assumed=is_assumed)


_ROWS = ("offsets", "counts", "row_ids", "row_weights")


def _grouped_call(function: str, operands: dict, experts: int | None, columns: int, dtype: Any, options: dict,
                  n: int | None = None, is_assumed: bool = False) -> jax.Array:
    rows = {name: _optional(name, operands[name]) for name in _ROWS[:3]}
    tokens = _tokens("a", operands["a"])
    groups = rows["counts"] if rows["offsets"] is None else rows["offsets"]
    if experts is None:  # of packed weights, whose number is looked at where they are
        experts = 0 if groups is None or len(groups.shape) != 1 else groups.shape[0] - (rows["offsets"] is not None)
    layout, count, _ = _grouped.rows_of(tokens, experts, **rows)
    shape = (experts, count, columns) if layout == _grouped.SLOTS else (count, columns)
    if operands["row_weights"] is not None:
        _of.expect_shape(_operand("row_weights", operands["row_weights"]), shape[:-1], "one number for each row of the output")
    return _call(function, _shaped(shape, dtype), operands, dict(out_dtype=dtype.name, **options), n, is_assumed)


def _divisor(row_ids_divisor: int, row_ids: Array | None) -> int:
    _options.whole_number("row_ids_divisor", row_ids_divisor, 1)
    if row_ids is None and row_ids_divisor != 1:
        _refuse(f"row_ids_divisor is {row_ids_divisor}, but row_ids are missing, which it divides")
    return row_ids_divisor


def grouped_dual_gemm(a: Operand, b1: Operand, b2: Operand | None = None, *, offsets: Array | None = None,
                      counts: Array | None = None, row_ids: Array | None = None, row_ids_divisor: int = 1,
                      order: str | None = None, bias1: Array | None = None, bias2: Array | None = None,
                      row_weights: Array | None = None, activation: str = "silu", alpha: float | None = None,
                      limit: float | None = None, up_offset: float | None = None, out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """activation(a·b1[e]ᵀ + bias1[e], a·b2[e]ᵀ + bias2[e])·row_weight for the rows of each expert e.

    Everything as in thresher.numpy.grouped_dual_gemm. Padding rows are 0.
    """
    weights = _grouped.Weights(*(_optional(name, one) for name, one in (("b1", b1), ("b2", b2), ("bias1", bias1), ("bias2", bias2))), order)
    if b1 is None:
        _refuse("b1 is None, expected an array")
    if order is not None:
        _options.one_of("order", order, _options.ORDERS)
    view = _grouped._view(weights, has_activation=True)
    tokens = _tokens("a", a)
    _options.expect_depth(weights.b1.shape[2], tokens.format, weights.b1.format)
    dtype = _dtype(out_dtype, tokens.format, weights.b1.format)
    options = _activation(activation, alpha, limit, up_offset, threads) | dict(row_ids_divisor=_divisor(row_ids_divisor, row_ids), order=order)
    operands = dict(a=a, b1=b1, b2=b2, offsets=offsets, counts=counts, row_ids=row_ids, row_weights=row_weights, bias1=bias1, bias2=bias2)
    return _grouped_call("grouped_dual_gemm", operands, view["experts"], view["n"], dtype, options)


def grouped_gemm(a: Operand, b: Operand, *, offsets: Array | None = None, counts: Array | None = None,
                 row_ids: Array | None = None, row_ids_divisor: int = 1, bias: Array | None = None,
                 row_weights: Array | None = None, out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """(a·b[e]ᵀ + bias[e])·row_weight for the rows of each expert e: the down projection.

    b: [E, N, K]; everything as in thresher.numpy.grouped_gemm. Padding rows are 0.
    """
    weights = _grouped.Weights(_operand("b", b), None, _optional("bias", bias), None, None)
    view = _grouped._view(weights, has_activation=False)
    tokens = _tokens("a", a)
    _options.expect_depth(weights.b1.shape[2], tokens.format, weights.b1.format)
    dtype = _dtype(out_dtype, tokens.format, weights.b1.format)
    operands = dict(a=a, b=b, offsets=offsets, counts=counts, row_ids=row_ids, row_weights=row_weights, bias=bias)
    return _grouped_call("grouped_gemm", operands, view["experts"], view["n"], dtype,
                         dict(row_ids_divisor=_divisor(row_ids_divisor, row_ids), threads=_options.threads_of(threads)))


def grouped_dual_gemm_packed(a: Operand, weights: Array, n: int, *, offsets: Array | None = None, counts: Array | None = None,
                             row_ids: Array | None = None, row_ids_divisor: int = 1, row_weights: Array | None = None,
                             activation: str = "silu", alpha: float | None = None, limit: float | None = None,
                             up_offset: float | None = None, out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """grouped_dual_gemm with weights, biases among them, that pack_grouped gave: uint8 [bytes]; `n` is theirs."""
    options = _activation(activation, alpha, limit, up_offset, threads) | dict(row_ids_divisor=_divisor(row_ids_divisor, row_ids))
    return _grouped_packed("grouped_dual_gemm_packed", a, weights, n, out_dtype, options, offsets, counts, row_ids, row_weights)


def grouped_gemm_packed(a: Operand, weights: Array, n: int, *, offsets: Array | None = None, counts: Array | None = None,
                        row_ids: Array | None = None, row_ids_divisor: int = 1, row_weights: Array | None = None,
                        out_dtype: DType = None, threads: int = 0) -> jax.Array:
    """grouped_gemm with weights, a bias among them, that pack_grouped gave: uint8 [bytes]; `n` is theirs."""
    options = dict(row_ids_divisor=_divisor(row_ids_divisor, row_ids), threads=_options.threads_of(threads))
    return _grouped_packed("grouped_gemm_packed", a, weights, n, out_dtype, options, offsets, counts, row_ids, row_weights)


def _grouped_packed(function, a, weights, n, out_dtype, options, offsets, counts, row_ids, row_weights):
    tokens = _tokens("a", a)
    operands = dict(a=a, weights=_weights(weights), offsets=offsets, counts=counts, row_ids=row_ids, row_weights=row_weights)
    dtype, is_assumed = _dtype_of_packed(out_dtype, tokens, weights)
    return _grouped_call(function, operands, None, _columns(n), dtype, options, n, is_assumed)


def attention(q: Array, k: Array, v: Array, *, causal: bool = False, scale: float | None = None, softcap: float = 0.0,
              window: tuple[int, int] = (-1, -1), cu_seqlens_q: Array | None = None, cu_seqlens_k: Array | None = None,
              block_table: Array | None = None, seqused_k: Array | None = None, sinks: Array | None = None,
              q_descale: Array | None = None, k_descale: Array | None = None, v_descale: Array | None = None,
              return_lse: bool = False, threads: int = 0) -> jax.Array | tuple[jax.Array, jax.Array]:
    """softmax(q·kᵀ·scale + mask)·v for each batch and head.

    q: [B, H, Sq, D]; k, v: [B, Hk, Sk, D]; everything as in thresher.numpy.attention. Returns the result in the type of q, with q in FP8
    bfloat16, or with return_lse that and the logarithm of the sum of exponentials, float32 [B, H, Sq] or [H, T].
    """
    operands = dict(q=q, k=k, v=v, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, block_table=block_table, seqused_k=seqused_k,
                    sinks=sinks, q_descale=q_descale, k_descale=k_descale, v_descale=v_descale)
    queries, keys, values = (_operand(name, operands[name]) for name in ("q", "k", "v"))
    lengths = [_optional(name, operands[name]) for name in ("cu_seqlens_q", "cu_seqlens_k")]
    serving = _attention.Serving(*(_optional(name, operands[name]) for name in _attention.Serving._fields))
    shape = _attention.shape_of(queries, keys, values, *lengths, serving)
    _attention.expect_widths(shape)
    _attention.expect_serving(queries, keys, shape, serving)
    chosen = _attention.options_of(causal, scale, softcap, window)
    options = dict(causal=causal, scale=chosen.scale, softcap=chosen.softcap, window=(chosen.window_left, chosen.window_right),
                   return_lse=_options.truth("return_lse", return_lse), threads=_options.threads_of(threads))
    out = _shaped(_attention.out_shape(queries.shape, values.shape), jnp.dtype(_of.FORMAT_NAMES[_attention.out_format(queries)]))
    lse = _shaped(_attention.lse_shape(queries.shape, cu_seqlens_q is not None), jnp.dtype("float32"))
    return _call("attention", (out, lse) if return_lse else out, operands, options)
