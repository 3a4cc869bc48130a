"""torch.ops.thresher: schemas, kernels and fake kernels.

Kernels here call the C interface by ctypes, which every torch from 2.4 on takes alike. Where there is libthresher_torch.so they are
those of thresher_python, to which its kernels give what they have not seen (_native.py).
"""

import ctypes as c
from collections.abc import Iterable

import torch
from torch.autograd import forward_ad

from .. import _append, _attention, _dual_gemm, _gemm, _grouped, _layers, _quantize
from .. import _library as lib
from .. import _operands as of
from .. import _options
from .._errors import UnsupportedError
from .._packed import opened
from . import _native
from ._native import native
from ._place import FORMATS, block, operand, optional, place
from ._plain import expect_together, short

library = torch.library.Library("thresher", "DEF")
in_python = library if native is None else torch.library.Library("thresher_python", "DEF")

_ACTIVATION = 'str activation="silu", float? alpha=None, float? limit=None, float? up_offset=None'
_OF_ONE = "str? activation=None"
# What values of 4 or 8 bits have beside them. A format is "nvfp4", "fp8_tensor", "fp8_row" or "fp8_block", and None that of values
# of 16 bits or, beside scales, "nvfp4".
_SCALES = ("Tensor? b1_scales=None, Tensor? b2_scales=None, Tensor? b1_global_scale=None, Tensor? b2_global_scale=None, "
           'str scale_layout="row_major", str? b_format=None')
_TOKENS = 'Tensor? a_scales=None, Tensor? a_global_scale=None, str a_scale_layout="row_major", str? a_format=None'
_LAYER_TOKENS = _TOKENS.replace("a_", "x_")
_WEIGHTS = 'Tensor? b_scales=None, Tensor? b_global_scale=None, str scale_layout="row_major", str? b_format=None'
_GROUPS = ("Tensor? offsets=None, Tensor? counts=None, Tensor? row_ids=None, int row_ids_divisor=1, "
           "Tensor? row_weights=None")
_ATTENTION = ("bool causal=False, float? scale=None, float softcap=0.0, int window_left=-1, int window_right=-1, "
              "Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_k=None, Tensor? block_table=None, Tensor? seqused_k=None, "
              "Tensor? sinks=None, Tensor? q_descale=None, Tensor? k_descale=None, Tensor? v_descale=None")

# Of each operation the arguments that come first, and those that are named.
_SCHEMAS = {
    "dual_gemm": ("Tensor a, Tensor b1, Tensor b2", f"{_SCALES}, {_TOKENS}, {_ACTIVATION}"),
    "gemm": ("Tensor a, Tensor b", f"Tensor? bias=None, {_WEIGHTS}, {_TOKENS}, {_OF_ONE}"),
    "grouped_dual_gemm": (
        "Tensor a, Tensor b1, Tensor? b2=None",
        f"{_GROUPS}, str? order=None, Tensor? bias1=None, Tensor? bias2=None, {_SCALES}, {_TOKENS}, {_ACTIVATION}",
    ),
    "grouped_gemm": (
        "Tensor a, Tensor b",
        f"{_GROUPS}, Tensor? bias=None, {_WEIGHTS}, {_TOKENS}, {_OF_ONE}",
    ),
}

# The same of packed weights, which are a list of bytes: whoever traces a call cannot look into it and is told n.
_SCHEMAS |= {
    "dual_gemm_packed": ("Tensor a, Tensor weights, int n", f"{_TOKENS}, {_ACTIVATION}"),
    "gemm_packed": ("Tensor a, Tensor weights, int n", f"{_TOKENS}, {_OF_ONE}"),
    "grouped_dual_gemm_packed": ("Tensor a, Tensor weights, int n", f"{_GROUPS}, {_TOKENS}, {_ACTIVATION}"),
    "grouped_gemm_packed": ("Tensor a, Tensor weights, int n", f"{_GROUPS}, {_TOKENS}, {_OF_ONE}"),
}

# Layers, of packed weights; a None of intermediate_dtype is what thresher.numpy.gated_mlp says, or a quantized format has its name.
_BETWEEN = "ScalarType? intermediate_dtype=None, str? intermediate_format=None, float intermediate_scale=1.0"
_SCHEMAS |= {
    "gated_mlp": ("Tensor x, Tensor gate_up, Tensor down", f"{_BETWEEN}, {_LAYER_TOKENS}, {_ACTIVATION}"),
    "moe": (
        "Tensor x, Tensor gate_up, Tensor down, Tensor topk_ids, Tensor topk_weights",
        f"{_BETWEEN}, ScalarType? rows_dtype=None, str? quantized_x=None, {_LAYER_TOKENS}, {_ACTIVATION}",
    ),
}

_exact_strides = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)
_TAGS = (torch.Tag.pt2_compliant_tag, _exact_strides)


def _define(name: str, schema: str, kernel, fake) -> None:
    library.define(f"{name}{schema}", tags=_TAGS)
    into = library
    kernel = _counting(kernel, getattr(torch.ops.thresher, name).default)
    if native is not None and native.describe(name, getattr(torch.ops.thresher, name).default._schema):
        into, kernel = in_python, _said(kernel, schema)
        into.define(f"{name}{schema}")
    for key in ("CPU", "CUDA"):
        into.impl(name, kernel, key)
        if name != "append":
            library.impl(name, _autocast(getattr(torch.ops.thresher, name).default, key), f"Autocast{key}")
    passing = _refusing_derivatives(getattr(torch.ops.thresher, name).default)
    library.impl(name, passing, "Autograd")
    if into is not library:
        into.impl(name, _said(passing, schema), "Autograd")
    torch.library.register_fake(f"thresher::{name}", _on_one_device(getattr(torch.ops.thresher, name).default, fake), lib=library)


def _counting(kernel, operator):
    """The kernel, which tells autograd what it wrote, so that what an earlier operation saved of that is not used."""
    names = [argument.name for argument in operator._schema.arguments]
    written = {argument.name for argument in operator._schema.arguments if _native.is_written(argument)}
    if not written:
        return kernel

    def run(*arguments, **options):
        kernel(*arguments, **options)
        for name, one in (*zip(names, arguments), *options.items()):
            if name in written and one is not None and not one.is_inference():
                torch.autograd.graph.increment_version(one)

    return run


def _on_one_device(operator, fake):
    """The fake kernel of tensors that lie together: where one is on meta PyTorch asks it in place of every other kernel."""
    names = [argument.name for argument in operator._schema.arguments]

    def run(*arguments, **options):
        expect_together((*zip(names, arguments), *options.items()))
        return fake(*arguments, **options)

    return run


# What autocast casts, as it does of a linear layer and of scaled_dot_product_attention; append writes what it is given.
_CAST = ("a", "x", "b", "b1", "b2", "q", "k", "v")


def _autocast(operator, key: str):
    """The kernel of an operator under autocast: operands in float32 are taken in the type of autocast."""
    names = [argument.name for argument in operator._schema.arguments]
    here = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, f"Autocast{key}"))

    def run(*arguments, **options):
        dtype = torch.get_autocast_dtype(key.lower())
        given = [one.to(dtype) if name in _CAST and one is not None and one.dtype == torch.float32 else one for name, one in zip(names, arguments)]
        with torch._C._ExcludeDispatchKeyGuard(here):
            return _native.call(operator, *given, **options)

    return run


def _refusing_derivatives(operator):
    """The kernel of an operator at the keys of autograd, which tracing and torch.func ask before all others."""
    names = [argument.name for argument in operator._schema.arguments]

    def run(*arguments, **options):
        refuse_derivatives(zip(names, arguments))
        refuse_derivatives(options.items())
        with torch._C._AutoDispatchBelowAutograd():
            return _native.call(operator, *arguments, **options)

    return run


def _said(kernel, schema: str):
    """The kernel, whose exceptions the operator in C++ throws."""
    outputs = schema.rpartition("->")[2].count("Tensor")

    def run(*arguments, **options):
        try:
            return kernel(*arguments, **options)
        except Exception as error:  # whatever it is, it goes to who called the operator
            native.fail(error)
            nothing = tuple(torch.empty(0) for _ in range(outputs))
            return nothing[0] if outputs == 1 else nothing or None

    return run


def _keep_rows(call, tokens: of.Operand, convention: int = _native.ROWS) -> None:
    if native is not None:
        native.keep(call.plan, convention, operand=tokens, rows=tokens.shape[0], a_stride=call.a_stride, out_stride=call.out_stride)


def refuse_derivatives(given: Iterable[tuple[str, object]]) -> None:
    """given: the names and values of arguments."""
    is_recording, level = torch.is_grad_enabled(), forward_ad._current_level
    if not is_recording and level < 0:
        return
    for name, value in given:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            continue
        if is_recording and value.requires_grad:
            raise UnsupportedError(f"thresher has no backward pass, but {name} requires a gradient: call it under torch.no_grad() or "
                                   "torch.inference_mode(), or detach the input")
        if level >= 0 and forward_ad.unpack_dual(value, level=level).tangent is not None:
            raise UnsupportedError(f"thresher has no backward pass and no forward-mode derivative, but {name} has a tangent: give the "
                                   "primal of torch.autograd.forward_ad.unpack_dual")


def scaled(name: str, values: torch.Tensor, scales, global_scale, scale_layout: str, format: str | None) -> of.Operand:
    """An operand of its parts."""
    if scales is None:
        if global_scale is not None:
            lib.refuse(f"{name}_global_scale is given without {name}_scales, expected both of NVFP4 weights or neither")
        if format is not None:
            lib.refuse(f"the format of {name} is {format!r}, but {name}_scales are missing")
        return operand(name, values)
    parts = operand(f"{name}.values", values), operand(f"{name}.scales", scales)
    if format is None or format == "nvfp4":
        return of.nvfp4(*parts, optional(f"{name}.global_scale", global_scale), scale_layout)
    if not format.startswith("fp8_"):
        lib.refuse(f"the format of {name} is {format!r}, expected 'nvfp4', 'fp8_tensor', 'fp8_row' or 'fp8_block'")
    if global_scale is not None:
        lib.refuse(f"{name}_global_scale is given of FP8, expected its scales in {name}_scales")
    return of.fp8(*parts, format.removeprefix("fp8_"), scale_layout, are_tokens=name in of.TOKENS)


def _tokens(a: torch.Tensor, a_scales=None, a_global_scale=None, a_scale_layout="row_major", a_format=None) -> of.Operand:
    return scaled("a", a, a_scales, a_global_scale, a_scale_layout, a_format)


def _threads(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_cuda else torch.get_num_threads()


def _dual_gemm_out(out, a, b1, b2, *, b1_scales=None, b2_scales=None, b1_global_scale=None, b2_global_scale=None,
                   scale_layout="row_major", b_format=None, activation="silu", alpha=None, limit=None, up_offset=None, **tokens):
    given = _tokens(a, **tokens)
    call = _dual_gemm.run(given, scaled("b1", b1, b1_scales, b1_global_scale, scale_layout, b_format),
                          scaled("b2", b2, b2_scales, b2_global_scale, scale_layout, b_format), operand("out", out),
                          _options.activation_of(_options.expect_gated(activation), alpha, limit, up_offset), place=place(a), threads=_threads(a))
    _keep_rows(call, given)


def _shape_of_product(a, b, name):
    if a.dim() != 2 or b.dim() != 2:
        of.expect_rank(operand("a", a), 2, "[M, K]")
        of.expect_rank(operand(name, b), 2, "[N, K]")
    return (a.shape[0], b.shape[0])


_WIDE = (torch.float16, torch.bfloat16, torch.float32)


def _new(a, shape, out_dtype, zeros=False, b=None):
    """Of the type of the tokens, or of the weights beside tokens of 4 or 8 bits, where nobody says."""
    dtypes = [one.dtype for one in (a, b) if one is not None and one.dtype in _WIDE]
    dtype = out_dtype or (dtypes[0] if dtypes else torch.bfloat16)
    return (a.new_zeros if zeros else a.new_empty)(shape, dtype=dtype)


def _dual_gemm_new(a, b1, b2, *, out_dtype=None, **options):
    out = _new(a, _shape_of_product(a, b1, "b1"), out_dtype, b=b1)
    _dual_gemm_out(out, a, b1, b2, **options)
    return out


def _fake_dual_gemm(a, b1, b2, *, out_dtype=None, **_):
    torch._check(a.dim() == 2 and b1.dim() == 2, lambda: "a and b1 have two dimensions")
    return _new(a, (a.shape[0], b1.shape[0]), out_dtype, b=b1)


def _block(weights, n, kind):
    """Packed weights that have n columns, as the call says."""
    given = block(weights)
    _expect_n(n, opened(kind, given))
    return given


def _expect_n(n, held) -> None:
    if held.info.n != n:
        lib.refuse(f"n is {n}, but the weights have N = {held.info.n}")


def _expect_out_dtype(tokens, format: int, out_dtype) -> None:
    """Packed weights, into which no trace can look, do not decide the type of a new output: where they would, it has to be said."""
    if out_dtype is None and tokens.dtype not in _WIDE and format == lib.FP16:
        lib.refuse("out_dtype is missing: the weights are float16 and the tokens have none of 16 bits, expected out_dtype or out")


def _dual_gemm_packed_out(out, a, weights, n, *, activation="silu", alpha=None, limit=None, up_offset=None, **tokens):
    given = _tokens(a, **tokens)
    call = _dual_gemm.run_packed(given, _block(weights, n, "dual_gemm"), operand("out", out),
                                 _options.activation_of(_options.expect_gated(activation), alpha, limit, up_offset), place=place(a),
                                 threads=_threads(a))
    _keep_rows(call, given)


def _rows_packed(kernel, kind):
    def new(a, weights, n, *, out_dtype=None, **options):
        if a.dim() != 2:
            of.expect_rank(operand("a", a), 2, "[M, K]")
        held = opened(kind, block(weights))
        _expect_n(n, held)
        _expect_out_dtype(a, held.format, out_dtype)
        out = _new(a, (a.shape[0], n), out_dtype)
        kernel(out, a, weights, n, **options)
        return out

    return new


def _fake_rows_packed(a, weights, n, *, out_dtype=None, **_):
    torch._check(a.dim() == 2, lambda: "a has two dimensions")
    return _new(a, (a.shape[0], n), out_dtype)


def _gemm_out(out, a, b, *, bias=None, b_scales=None, b_global_scale=None, scale_layout="row_major", b_format=None,
              activation=None, **tokens):
    given = _tokens(a, **tokens)
    call = _gemm.run(given, scaled("b", b, b_scales, b_global_scale, scale_layout, b_format), optional("bias", bias),
                     operand("out", out), place=place(a), threads=_threads(a), activation=_options.activation_of_one(activation))
    _keep_rows(call, given)


def _gemm_new(a, b, *, out_dtype=None, **options):
    out = _new(a, _shape_of_product(a, b, "b"), out_dtype, b=b)
    _gemm_out(out, a, b, **options)
    return out


def _fake_gemm(a, b, *, out_dtype=None, **_):
    torch._check(a.dim() == 2 and b.dim() == 2, lambda: "a and b have two dimensions")
    return _new(a, (a.shape[0], b.shape[0]), out_dtype, b=b)


def _gemm_packed_out(out, a, weights, n, *, activation=None, **tokens):
    given = _tokens(a, **tokens)
    _keep_rows(_gemm.run_packed(given, _block(weights, n, "grouped"), operand("out", out), place=place(a), threads=_threads(a),
                                activation=_options.activation_of_one(activation)), given)


def _layer_tokens(x, x_scales=None, x_global_scale=None, x_scale_layout="row_major", x_format=None):
    return scaled("x", x, x_scales, x_global_scale, x_scale_layout, x_format)


def _format(name, dtype, *expected):
    if dtype is not None and dtype not in expected:
        lib.refuse(f"{name} is {short(dtype)}, expected {' or '.join(short(one) for one in expected)}")
    return None if dtype is None else FORMATS[dtype]


def _layer_weights(gate_up, down):
    return _layers.Weights(block(gate_up, "gate_up"), block(down, "down"))


def _between(intermediate_dtype, intermediate_format, intermediate_scale):
    if intermediate_format is None:
        format = _format("intermediate_dtype", intermediate_dtype, torch.float16, torch.bfloat16)
    else:
        format = _options.one_of("intermediate_dtype", intermediate_format, _layers.INTERMEDIATES)
    return _layers.Between(format, intermediate_scale)


def _gated_mlp_out(out, x, gate_up, down, *, intermediate_dtype=None, intermediate_format=None, intermediate_scale=1.0,
                   activation="silu", alpha=None, limit=None, up_offset=None, **tokens):
    given = _layer_tokens(x, **tokens)
    call = _layers.gated_mlp(given, _layer_weights(gate_up, down), operand("out", out),
                             _between(intermediate_dtype, intermediate_format, intermediate_scale),
                             _options.activation_of(activation, alpha, limit, up_offset), place=place(x), threads=_threads(x))
    _keep_rows(call, given)


def _moe_out(out, x, gate_up, down, topk_ids, topk_weights, *, intermediate_dtype=None, intermediate_format=None,
             intermediate_scale=1.0, rows_dtype=None, quantized_x=None, activation="silu", alpha=None, limit=None, up_offset=None,
             **tokens):
    given = _layer_tokens(x, **tokens)
    call = _layers.moe(given, _layer_weights(gate_up, down), operand("topk_ids", topk_ids), operand("topk_weights", topk_weights),
                       operand("out", out), _between(intermediate_dtype, intermediate_format, intermediate_scale),
                       _format("rows_dtype", rows_dtype or torch.float32, *_WIDE),
                       _options.activation_of(activation, alpha, limit, up_offset),
                       quantized_x=0 if quantized_x is None else _options.one_of("quantized_x", quantized_x, _quantize.FORMATS),
                       place=place(x), threads=_threads(x))
    _keep_rows(call, given, _native.MOE)


def _elements(x, x_format):
    """The shape of x in elements, of which a byte of NVFP4 holds two."""
    if x.dim() != 2:
        lib.refuse(f"x has {x.dim()} dimensions, expected 2: [tokens, hidden size]")
    is_nvfp4 = x.dtype == torch.uint8 and x_format in (None, "nvfp4")
    return (x.shape[0], x.shape[1] * (2 if is_nvfp4 else 1))


def _layer(kernel, kind):
    def new(x, *weights, out_dtype=None, **options):
        out = _new(x, _elements(x, options.get("x_format")), out_dtype)
        held = "grouped" if options.get("activation") == _options.UNGATED else kind
        _expect_out_dtype(x, opened(held, block(weights[0], "gate_up")).format, out_dtype)
        kernel(out, x, *weights, **options)
        return out

    return new


def _fake_layer(x, *_, out_dtype=None, x_format=None, **__):
    return _new(x, _elements(x, x_format), out_dtype)


def _grouped_out(out, a, b1, b2, *, order, bias1, bias2, activation, b_names=("bias1", "bias2"), **rows):
    weights = _grouped.Weights(b1, b2, optional(b_names[0], bias1), optional(b_names[1], bias2), order)
    _owned_out(out, a, weights, activation, **rows)


def _owned_out(out, a, weights, activation, *, offsets=None, counts=None, row_ids=None, row_ids_divisor=1, row_weights=None,
               **tokens):
    rows = _grouped.Rows(optional("offsets", offsets), optional("counts", counts), optional("row_ids", row_ids),
                         _options.whole_number("row_ids_divisor", row_ids_divisor, 1), optional("row_weights", row_weights))
    given = _tokens(a, **tokens)
    call = _grouped.run(given, weights, rows, operand("out", out), activation, place=place(a), threads=_threads(a))
    if native is not None:
        native.keep(call.plan, _native.GROUPED, operand=given, rows=call.count, tokens=call.tokens, a_stride=call.a_stride, out_stride=call.out_stride,
                    zeros=1)


def _grouped_dual_gemm_out(out, a, b1, b2=None, *, offsets=None, counts=None, row_ids=None, row_ids_divisor=1, row_weights=None,
                           order=None, bias1=None, bias2=None, b1_scales=None, b2_scales=None, b1_global_scale=None,
                           b2_global_scale=None, scale_layout="row_major", b_format=None, activation="silu", alpha=None,
                           limit=None, up_offset=None, **tokens):
    gate = scaled("b1", b1, b1_scales, b1_global_scale, scale_layout, b_format)
    up = None if b2 is None else scaled("b2", b2, b2_scales, b2_global_scale, scale_layout, b_format)
    _grouped_out(out, a, gate, up, offsets=offsets, counts=counts, row_ids=row_ids, row_ids_divisor=row_ids_divisor,
                 row_weights=row_weights, order=order, bias1=bias1, bias2=bias2,
                 activation=_options.activation_of(_options.expect_gated(activation), alpha, limit, up_offset), **tokens)


def _of_one(activation):
    """As _grouped.run takes it."""
    kind = _options.activation_of_one(activation)
    return (kind, tuple(_options.UNUSED.values())) if kind else None


def _grouped_gemm_out(out, a, b, *, offsets=None, counts=None, row_ids=None, row_ids_divisor=1, row_weights=None, bias=None,
                      b_scales=None, b_global_scale=None, scale_layout="row_major", b_format=None, activation=None, **tokens):
    _grouped_out(out, a, scaled("b", b, b_scales, b_global_scale, scale_layout, b_format), None, offsets=offsets, counts=counts,
                 row_ids=row_ids, row_ids_divisor=row_ids_divisor, row_weights=row_weights, order=None, bias1=bias, bias2=None,
                 activation=_of_one(activation), b_names=("bias", "bias2"), **tokens)


def _grouped_dual_gemm_packed_out(out, a, weights, n, *, activation="silu", alpha=None, limit=None, up_offset=None, **rows):
    _owned_out(out, a, _block(weights, n, "grouped"), _options.activation_of(_options.expect_gated(activation), alpha, limit, up_offset), **rows)


def _grouped_gemm_packed_out(out, a, weights, n, *, activation=None, **rows):
    _owned_out(out, a, _block(weights, n, "grouped"), _of_one(activation), **rows)


def _packed_shape(a, n, row_ids):
    if a.dim() not in (2, 3):
        lib.refuse(f"a has {a.dim()} dimensions, expected 2, or 3 of slots")
    return (a.shape[0], a.shape[1], n) if a.dim() == 3 else ((a if row_ids is None else row_ids).shape[0], n)


def _grouped_packed(kernel):
    def new(a, weights, n, *, out_dtype=None, **options):
        held = opened("grouped", block(weights))
        _expect_n(n, held)
        _expect_out_dtype(a, held.format, out_dtype)
        out = _new(a, _packed_shape(a, n, options.get("row_ids")), out_dtype, zeros=True)
        kernel(out, a, weights, n, **options)
        return out

    return new


def _fake_grouped_packed(a, weights, n, *, out_dtype=None, row_ids=None, **_):
    return _new(a, _packed_shape(a, n, row_ids), out_dtype)


def _grouped_shape(a, b, row_ids, fused):
    if b.dim() != 3 or a.dim() not in (2, 3):
        lib.refuse(f"a has {a.dim()} dimensions and the weights {b.dim()}, expected 2, or 3 of slots, and 3: [E, N, K]")
    columns = b.shape[1] // 2 if fused else b.shape[1]
    if a.dim() == 3:
        return (a.shape[0], a.shape[1], columns)
    return ((a if row_ids is None else row_ids).shape[0], columns)


def _grouped_dual_gemm(a, b1, b2=None, *, out_dtype=None, **options):
    out = _new(a, _grouped_shape(a, b1, options.get("row_ids"), options.get("order") is not None), out_dtype, zeros=True, b=b1)
    _grouped_dual_gemm_out(out, a, b1, b2, **options)
    return out


def _fake_grouped_dual_gemm(a, b1, b2=None, *, out_dtype=None, row_ids=None, order=None, **_):
    return _new(a, _grouped_shape(a, b1, row_ids, order is not None), out_dtype, b=b1)


def _grouped_gemm(a, b, *, out_dtype=None, **options):
    out = _new(a, _grouped_shape(a, b, options.get("row_ids"), False), out_dtype, zeros=True, b=b)
    _grouped_gemm_out(out, a, b, **options)
    return out


def _fake_grouped_gemm(a, b, *, out_dtype=None, row_ids=None, **_):
    return _new(a, _grouped_shape(a, b, row_ids, False), out_dtype, b=b)


_KERNELS = {
    "dual_gemm": (_dual_gemm_new, _dual_gemm_out, _fake_dual_gemm),
    "grouped_dual_gemm": (_grouped_dual_gemm, _grouped_dual_gemm_out, _fake_grouped_dual_gemm),
    "grouped_gemm": (_grouped_gemm, _grouped_gemm_out, _fake_grouped_gemm),
    "gemm": (_gemm_new, _gemm_out, _fake_gemm),
    "dual_gemm_packed": (_rows_packed(_dual_gemm_packed_out, "dual_gemm"), _dual_gemm_packed_out, _fake_rows_packed),
    "gemm_packed": (_rows_packed(_gemm_packed_out, "grouped"), _gemm_packed_out, _fake_rows_packed),
    "gated_mlp": (_layer(_gated_mlp_out, "dual_gemm"), _gated_mlp_out, _fake_layer),
    "moe": (_layer(_moe_out, "grouped"), _moe_out, _fake_layer),
    "grouped_dual_gemm_packed": (
        _grouped_packed(_grouped_dual_gemm_packed_out),
        _grouped_dual_gemm_packed_out,
        _fake_grouped_packed,
    ),
    "grouped_gemm_packed": (_grouped_packed(_grouped_gemm_packed_out), _grouped_gemm_packed_out, _fake_grouped_packed),
}


def _fake_out(*_, **__):
    return None


for _name, (_first, _named) in _SCHEMAS.items():
    _functional, _out, _fake = _KERNELS[_name]
    _define(_name, f"({_first}, *, {_named}, ScalarType? out_dtype=None) -> Tensor", _functional, _fake)
    _define(f"{_name}_out", f"(Tensor(z!) out, {_first}, *, {_named}) -> ()", _out, _fake_out)


def _attention_out(out, lse, q, k, v, *, causal=False, scale=None, softcap=0.0, window_left=-1, window_right=-1,
                   cu_seqlens_q=None, cu_seqlens_k=None, block_table=None, seqused_k=None, sinks=None, q_descale=None,
                   k_descale=None, v_descale=None):
    serving = _attention.Serving(optional("block_table", block_table), optional("seqused_k", seqused_k), optional("sinks", sinks),
                                 optional("q_descale", q_descale), optional("k_descale", k_descale), optional("v_descale", v_descale))
    made = _attention.run(
        operand("q", q), operand("k", k), operand("v", v), operand("out", out), optional("lse", lse),
        optional("cu_seqlens_q", cu_seqlens_q), optional("cu_seqlens_k", cu_seqlens_k),
        _attention.options_of(causal, scale, softcap, (window_left, window_right)), serving, place=place(q), threads=_threads(q))
    if native is not None:
        native.keep(made.plan, _native.ATTENTION, strides=made.strides, table_stride=made.table_stride,
                    descale_strides=made.descale_strides)


def _new_lse(q, cu_seqlens_q):
    return q.new_empty(_attention.lse_shape(q.shape, cu_seqlens_q is not None), dtype=torch.float32)


def _new_out(q, v):
    return _new(q, _attention.out_shape(q.shape, v.shape), None)


def _attention_new(q, k, v, **options):
    out = _new_out(q, v)
    _attention_out(out, None, q, k, v, **options)
    return out


def _attention_with_lse(q, k, v, **options):
    if q.dim() not in (3, 4):
        lib.refuse(f"q has {q.dim()} dimensions, expected 4, [B, H, Sq, D], or 3 where lengths vary")
    out, lse = _new_out(q, v), _new_lse(q, options.get("cu_seqlens_q"))
    _attention_out(out, lse, q, k, v, **options)
    return out, lse


def _fake_attention(q, k, v, **_):
    return _new_out(q, v)


def _fake_attention_with_lse(q, k, v, *, cu_seqlens_q=None, **_):
    return _new_out(q, v), _new_lse(q, cu_seqlens_q)


_QKV = "Tensor q, Tensor k, Tensor v"
_define("attention", f"({_QKV}, *, {_ATTENTION}) -> Tensor", _attention_new, _fake_attention)
_define("attention_with_lse", f"({_QKV}, *, {_ATTENTION}) -> (Tensor, Tensor)", _attention_with_lse, _fake_attention_with_lse)
_define("attention_out", f"(Tensor(y!) out, Tensor(z!)? lse, {_QKV}, *, {_ATTENTION}) -> ()", _attention_out, _fake_out)


def _append_rows(k_cache, v_cache, k, v, slots, *, positions=None, q=None, q_out=None, k_out=None, cos_sin=None, k_descale=None,
                 v_descale=None, pairs="halves", rotary_dim=0, theta=10000.0):
    call, tensors, _views = _append.run(
        _append.Tensors(optional("q", q), optional("q_out", q_out), operand("k", k), operand("v", v), optional("k_out", k_out),
                        optional("positions", positions), operand("slots", slots), optional("cos_sin", cos_sin), operand("k_cache", k_cache),
                        operand("v_cache", v_cache), optional("k_descale", k_descale), optional("v_descale", v_descale)),
        _append.options_of(pairs, rotary_dim, theta), place=place(k), threads=_threads(k))
    if native is not None:
        native.keep(call.plan, _native.APPEND, append=c.addressof(tensors))


_define("append", "(Tensor(a!) k_cache, Tensor(b!) v_cache, Tensor k, Tensor v, Tensor slots, *, Tensor? positions=None, Tensor? q=None, "
        "Tensor(c!)? q_out=None, Tensor(d!)? k_out=None, Tensor? cos_sin=None, Tensor? k_descale=None, Tensor? v_descale=None, "
        'str pairs="halves", int rotary_dim=0, float theta=10000.0) -> ()', _append_rows, _fake_out)


def _new_quantized(x, options):
    if x.dim() != 2:
        of.expect_rank(operand("x", x), 2, "[rows, K]")
    return x.new_empty(x.shape, dtype=torch.float8_e4m3fn), x.new_empty(options.scales_shape(*x.shape), dtype=torch.float32)


def _quantize_rows(x, format="fp8_block", *, scale_layout="row_major", powers_of_two=False):
    options = _quantize.options_of(format, scale_layout, powers_of_two)
    values, scales = _new_quantized(x, options)
    call = _quantize.run(operand("x", x), operand("values", values), operand("scales", scales), options, place=place(x), threads=_threads(x))
    if native is not None:
        native.keep(call.plan, _native.QUANTIZE, rows=x.shape[0], a_stride=call.x_stride, a_scale_layout=options.scale_layout,
                    scales_are_powers_of_two=powers_of_two)
    return values, scales


def _fake_quantize(x, format="fp8_block", *, scale_layout="row_major", powers_of_two=False):
    return _new_quantized(x, _quantize.options_of(format, scale_layout, powers_of_two))


_define("quantize", '(Tensor x, str format="fp8_block", *, str scale_layout="row_major", bool powers_of_two=False) -> (Tensor, Tensor)',
        _quantize_rows, _fake_quantize)
