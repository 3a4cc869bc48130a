"""The layers, a gated MLP and a mixture of experts, of packed weights. What the C interface cannot check is checked here."""

import ctypes as c
from typing import NamedTuple

from . import _gemm
from . import _library as lib
from ._library import refuse
from ._operands import FORMAT_NAMES, Operand, expect_contiguous, expect_format, expect_rank, expect_same_device, expect_shape, row_stride
from ._options import ACTIVATIONS, OPERAND_FORMATS, OUTPUT_FORMATS, UNGATED, finite
from ._packed import Block, Handle, Part, opened
from ._plans import HOST, Place, Plan, RowsCall, calls, knobs, made, planned, row_bucket

INTERMEDIATE_FORMATS = (lib.FP16, lib.BF16)
# What may lie between the products, by the names that callers say; of which those of 16 bits are the first.
INTERMEDIATES = {FORMAT_NAMES[format]: format
                 for format in (*INTERMEDIATE_FORMATS, lib.NVFP4, lib.FP8_TENSOR, lib.FP8_ROW, lib.FP8_BLOCK)}


class Between(NamedTuple):
    """What lies between the products: None is what intermediate_format says."""

    format: int | None = None
    scale: float = 1.0


def scale_of(scale: float) -> float:
    """Of what lies between the products."""
    given = finite("intermediate_scale", scale)
    if given <= 0:
        refuse(f"intermediate_scale is {given:g}, expected a finite number above 0")
    return given


class Weights(NamedTuple):
    gate_up: Block
    down: Block

    def key(self) -> tuple:
        return tuple((one.operand[1:6], one.header) for one in self)


def intermediate_format(x: int, gate_up: int) -> int:
    """What lies between the products where nobody says: the format of x, or of the weights beside x of 4 or 8 bits."""
    return next((format for format in (x, gate_up) if format in INTERMEDIATE_FORMATS), lib.BF16)


def is_gated(activation: tuple) -> bool:
    return activation[0] != ACTIVATIONS[UNGATED]


def gated_mlp_parts(weights: Weights, activation: tuple) -> tuple[Handle, Handle]:
    """Without a gate `gate_up` is what pack_gemm gave of up."""
    return opened("dual_gemm", weights.gate_up) if is_gated(activation) else _gemm.expert(weights.gate_up), _gemm.expert(weights.down)


def moe_parts(weights: Weights, activation: tuple) -> tuple[Handle, Handle]:
    gate_up, down = opened("grouped", weights.gate_up), opened("grouped", weights.down)
    wanted, said = (2, "gate and up") if is_gated(activation) else (1, "up")
    if gate_up.info.matrices != wanted or down.info.matrices != 1 or gate_up.info.experts != down.info.experts:
        refuse(f"gate_up holds {gate_up.info.matrices} matrices of {gate_up.info.experts} experts and down {down.info.matrices} of "
               f"{down.info.experts}, expected {said}, and one matrix, of as many experts")
    return gate_up, down


def expect_choices(x: Operand, topk_ids: Operand, topk_weights: Operand) -> None:
    expect_rank(topk_ids, 2, "[tokens, choices]")
    expect_format(topk_ids, lib.INT32)
    expect_format(topk_weights, lib.FP32)
    expect_shape(topk_ids, (x.shape[0], topk_ids.shape[1]), "the choices of each row of x")
    expect_shape(topk_weights, topk_ids.shape, "that of topk_ids")
    for one in (topk_ids, topk_weights):
        expect_contiguous(one)


def gated_mlp(x: Operand, weights: Weights, out: Operand, intermediate: Between, activation: tuple, *, place: Place = HOST,
              threads: int = 0) -> RowsCall:
    """out = activation(x·gateᵀ, x·upᵀ)·downᵀ, or without a gate activation(x·upᵀ)·downᵀ."""
    key = ("gated_mlp", x[2:6], weights.key(), out[2:6], intermediate, activation, threads)
    call = calls.get(key) or calls.make(key, lambda: _prepared_mlp(x, weights, out, intermediate, activation, place, threads))
    call.run(x, out, place)
    return call


def moe(x: Operand, weights: Weights, topk_ids: Operand, topk_weights: Operand, out: Operand, intermediate: Between, rows: int,
        activation: tuple, *, quantized_x: int = 0, place: Place = HOST, threads: int = 0) -> RowsCall:
    """out = Σ over the choices of a row of x of their weights times what their experts make of it. quantized_x: the format to which x
    is quantized first, or 0."""
    key = ("moe", x[2:6], weights.key(), topk_ids[2:6], topk_weights[2:6], out[2:6], intermediate, rows, activation, quantized_x, threads)
    call = calls.get(key) or calls.make(
        key, lambda: _prepared_moe(x, weights, topk_ids, topk_weights, out, intermediate, rows, activation, quantized_x, place, threads))
    plan = call.plan
    lib.check(plan.run(plan.handle, place.stream, x.shape[0], x.pointer, call.a_stride, x.scales, x.scale_layout, x.global_scale,
                       topk_ids.pointer, topk_weights.pointer, out.pointer, call.out_stride, place.workspace(plan.workspace_bytes)))
    return call


def _expect_layer(x: Operand, weights: Weights, gate_up: Handle, down: Handle, out: Operand, intermediate: Between) -> Between:
    """What lies between the products."""
    expect_rank(x, 2, "[tokens, hidden size]")
    expect_format(x, *OPERAND_FORMATS)
    expect_format(out, *OUTPUT_FORMATS)
    expect_same_device(x, weights.gate_up.operand, weights.down.operand, out)
    hidden, between = gate_up.info.k, gate_up.info.n
    if (down.info.n, down.info.k) != (hidden, between):
        refuse(f"gate and up are [{between}, {hidden}] and down [{down.info.n}, {down.info.k}], expected [N, K] and [K, N]")
    if x.shape[1] != hidden:
        refuse(f"x has rows of {x.shape[1]} elements, but the weights have K = {hidden}")
    expect_shape(out, x.shape, "that of x")
    return intermediate._replace(format=intermediate_format(x.format, gate_up.format)) if intermediate.format is None else intermediate


def _shared(x: Operand, gate_up: Handle, down: Handle, out: Operand, between: Between, activation: tuple) -> dict:
    """What the problems of both layers have."""
    kind, (alpha, limit, up_offset) = activation
    return dict(x=x.format, tokens=row_bucket(x.shape[0]), hidden_size=gate_up.info.k, intermediate_size=gate_up.info.n,
                gate_up=gate_up.format, intermediate=between.format, intermediate_scale=between.scale, down=down.format, out=out.format, activation=kind, alpha=alpha,
                limit=limit, up_offset=up_offset)


def _prepared_mlp(x: Operand, weights: Weights, out: Operand, intermediate: Between, activation: tuple, place: Place,
                  threads: int) -> RowsCall:
    gate_up, down = gated_mlp_parts(weights, activation)
    shared = _shared(x, gate_up, down, out, _expect_layer(x, weights, gate_up, down, out, intermediate), activation)
    if down.info.has_bias:
        refuse("down has a bias, expected none of a gated MLP")
    if not is_gated(activation) and gate_up.info.has_bias:
        refuse("up has a bias, expected none of a gated MLP")

    def make() -> Plan:
        library = lib.library()
        of_down = _gemm.part(down)
        if is_gated(activation):
            both = Part("gated_mlp", library.thresher_gated_mlp_weights_of_parts, gate_up.handle, of_down.handle)
        else:
            of_up = _gemm.part(gate_up)
            both = Part("gated_mlp", library.thresher_gated_mlp_weights_of_up, of_up.handle, of_down.handle)
        problem = lib.thresher_gated_mlp_problem.made(**shared)
        options = lib.thresher_dual_gemm_options.made(threads=threads, knobs=knobs())
        return made("gated_mlp", library.thresher_gated_mlp_plan, lib.Device(*x.device), c.byref(problem), both.handle,
                    c.byref(options), c.byref(options))

    key = ("gated_mlp", weights.key(), tuple(shared.values()), threads)
    return RowsCall(planned(key, place, make), row_stride(x), row_stride(out))


def _prepared_moe(x: Operand, weights: Weights, topk_ids: Operand, topk_weights: Operand, out: Operand, intermediate: Between,
                  rows: int, activation: tuple, quantized_x: int, place: Place, threads: int) -> RowsCall:
    gate_up, down = moe_parts(weights, activation)
    shared = _shared(x, gate_up, down, out, _expect_layer(x, weights, gate_up, down, out, intermediate), activation)
    expect_choices(x, topk_ids, topk_weights)
    expect_same_device(x, topk_ids, topk_weights)
    shared |= dict(quantized_x=quantized_x, experts=gate_up.info.experts, top_k=topk_ids.shape[1], rows=rows, gate_up_bias=int(gate_up.info.has_bias),
                   down_bias=int(down.info.has_bias))

    def make() -> Plan:
        problem = lib.thresher_moe_problem.made(**shared)
        options = lib.thresher_dual_gemm_options.made(threads=threads, knobs=knobs())
        return made("moe", lib.library().thresher_moe_plan, lib.Device(*x.device), c.byref(problem), gate_up.handle, down.handle,
                    c.byref(options), c.byref(options))

    key = ("moe", weights.key(), tuple(shared.values()), threads)
    return RowsCall(planned(key, place, make), row_stride(x), row_stride(out))
