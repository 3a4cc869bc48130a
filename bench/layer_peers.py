"""Other libraries' layers. Each peer is given bfloat16 tokens: rounding, routing, activation and adding up are inside its clock.

A family is a generator of (name, role, function), whose function takes a `Call` and returns the call of copy i of the weights.
"""
import pathlib
import sys

import torch
import torch.nn.functional as F

import layer_kernels as kernels
from layer_weights import activated

sys.path.insert(0, str(pathlib.Path(__file__).parent / "peers"))
import peers  # noqa: E402
from fastest import fastest  # noqa: E402
from fp8_block import silu_mul_quantise  # noqa: E402
from grouped_peers import QUACK_TILES, TRITON_TILE_WORDS, TRITON_TILES  # noqa: E402

ENGINE_FILES = {"folder": ""}


def tensors_of(weights, copies):
    """So many copies of the tensors of all matrices, in their order."""
    tensors = [tensor for matrix in weights.matrices.values() for tensor in matrix.tensors]
    return [tensors, *([tensor.clone() for tensor in tensors] for _ in range(copies - 1))]


# PyTorch in BF16

def eager_mlp(x, gate_up, down):
    gate, up = F.linear(x, gate_up).chunk(2, -1)
    return F.linear(F.silu(gate) * up, down)


def experts_of_torch(layer, x, ids, weights, gate_up, down, biases):
    """Sorted by expert, two grouped products, and added up, as transformers has it."""
    flat, order = ids.flatten().sort()
    ends = torch.searchsorted(flat, torch.arange(layer.experts, device=x.device, dtype=flat.dtype), right=True, out_int32=True)
    both = torch._grouped_mm(x[order // layer.top_k], gate_up.transpose(1, 2), offs=ends)
    if biases:
        both = both + biases["gate_up"][flat]
    rows = torch._grouped_mm(activated(layer, both), down.transpose(1, 2), offs=ends)
    if biases:
        rows = rows + biases["down"][flat]
    rows = rows * weights.flatten()[order, None].to(rows.dtype)
    if layer.routed_experts > layer.experts:
        rows = torch.where(flat[:, None] < layer.experts, rows, 0)
    return torch.empty_like(rows).index_copy_(0, order, rows).view(*ids.shape, -1).sum(1)


COMPILED = {}


def compiled(function):
    """One compiled form for all shapes."""
    return COMPILED.setdefault(function, torch.compile(function))


def torch_bf16(weights, copies):
    """Eager and compiled; of linear layers cuBLAS."""
    layer, operands = weights.layer, tensors_of(weights, copies)
    if layer.kind == "linears":
        yield "torch", "peer", lambda call: lambda i: F.linear(call.x, operands[i % copies][0])
        return
    for name, form in (("torch", lambda function: function), ("torch_compiled", compiled)):
        if layer.kind == "dense":
            yield name, "peer", lambda call, form=form: lambda i: form(eager_mlp)(call.x, *operands[i % copies])
        else:
            yield name, "peer", lambda call, form=form: lambda i: form(experts_of_torch)(
                layer, call.x, call.ids, call.weights, *operands[i % copies], weights.biases)


def torch_launches(weights, copies):
    """PyTorch's products of a gated MLP, each alone."""
    operands = tensors_of(weights, copies)
    inner = weights.layer.shapes["down"][1]

    def down(call):
        rows = torch.randn(len(call.x), inner, device=call.x.device, dtype=torch.bfloat16)
        return lambda i: F.linear(rows, operands[i % copies][1])

    yield "torch gate_up", "launch", lambda call: lambda i: peers.silu_mul(F.linear(call.x, operands[i % copies][0]))
    yield "torch down", "launch", down


def quack(weights, copies):
    """The activation in the product's epilogue, with rows of gate and up in turns; the tile that is the fastest here."""
    from quack.gemm_config import GemmConfig
    from quack.gemm_interface import _gemm_act_call
    inner = weights.layer.shapes["down"][1]
    operands = [(torch.stack(gate_up.chunk(2), 1).flatten(0, 1).t(), down) for gate_up, down in tensors_of(weights, copies)]

    def way(call, tile_rows, tile_columns, takes_turns, cluster):
        config = GemmConfig(tile_m=tile_rows, tile_n=tile_columns, pingpong=takes_turns, cluster_m=cluster[0], cluster_n=cluster[1],
                            is_dynamic_persistent=False, device_capacity=9)

        def whole(i):
            gate_up, down = operands[i % copies]
            rows = torch.empty(len(call.x), inner, device=call.x.device, dtype=torch.bfloat16)
            _gemm_act_call(call.x, gate_up, None, rows, None, None, activation="swiglu", dynamic_scheduler=False, tuned=False, config=config)
            return F.linear(rows, down)

        return whole

    yield "quack", "peer", lambda call: fastest({str(tile): way(call, *tile) for tile in QUACK_TILES}, copies)[1]


# FP8 with a scale a row

def scaled_mm(x, weight, scales, fast):
    codes, row_scales = x
    return torch._scaled_mm(codes, weight.t(), row_scales, scales.view(1, -1), out_dtype=torch.bfloat16, use_fast_accum=fast)


def torch_rows(weights, copies):
    """cuBLASLt with FP32 accumulation, and without ("fast"), which is another numerics."""
    operands = tensors_of(weights, copies)

    def chain(call, i, fast):
        tensors = operands[i % copies]
        out = scaled_mm(kernels.in_rows(call.x), *tensors[:2], fast)
        return scaled_mm(kernels.in_rows(out, gated=True), *tensors[2:], fast) if len(tensors) > 2 else out

    for name, role, fast in (("scaled_mm", "peer", False), ("scaled_mm_fast", "fast peer", True)):
        yield name, role, lambda call, fast=fast: lambda i: chain(call, i, fast)


def torch_grouped_rows(weights, copies):
    """Sorted by expert, and `torch._scaled_grouped_mm`, which has fast accumulation alone."""
    layer, operands = weights.layer, tensors_of(weights, copies)

    def product(codes, scales, weight, weight_scales, ends):
        return torch._scaled_grouped_mm(codes, weight.transpose(1, 2), scales.flatten(), weight_scales, offs=ends, out_dtype=torch.bfloat16,
                                        use_fast_accum=True)

    def whole(call, i):
        gate_up, gate_up_scales, down, down_scales = operands[i % copies]
        flat, order = call.ids.flatten().sort()
        ends = torch.searchsorted(flat, torch.arange(layer.experts, device=flat.device, dtype=flat.dtype), right=True, out_int32=True)
        codes, scales = kernels.in_rows(call.x)
        tokens = order // layer.top_k
        both = product(codes.view(torch.uint8)[tokens].view(codes.dtype), scales[tokens], gate_up, gate_up_scales, ends)
        rows = product(*kernels.in_rows(both, gated=True), down, down_scales, ends)
        inverse = torch.empty_like(order).index_copy_(0, order, torch.arange(len(order), device=order.device))
        return kernels.combined(rows, call, layer.experts, inverse)

    yield "scaled_grouped_mm_fast", "fast peer", lambda call: lambda i: whole(call, i)


# FP8 in blocks

def torch_blocks(weights, copies):
    """cuBLASLt's products of 1 x 128 and 128 x 128 scales."""
    operands = tensors_of(weights, copies)

    def product(x, weight, scales):
        codes, block_scales = x
        return torch._scaled_mm(codes, weight.t(), block_scales, scales.t(), out_dtype=torch.bfloat16)

    yield "scaled_mm_blocks", "peer", lambda call: lambda i: block_chain(call, operands[i % copies], product)


def block_chain(call, tensors, product):
    """A linear layer, or a gated MLP, of products of (codes, scales), a weight and its scales."""
    out = product(kernels.in_blocks(call.x, column_major=True), *tensors[:2])
    return product(blocks_of_activation(out), *tensors[2:]) if len(tensors) > 2 else out


def blocks_of_activation(both, experts=None):
    """silu(gate) * up in blocks, scales column by column; `experts` of rows are negative for those that do not count."""
    rows, n = both.shape[0], both.shape[1] // 2
    if experts is None:
        experts = VALID.setdefault(rows, torch.zeros(rows, dtype=torch.int32, device=both.device))
    codes = torch.empty(1, rows, n, device=both.device, dtype=torch.float8_e4m3fn)
    scales = torch.empty(1, n // 128, -(-rows // 4) * 4, device=both.device)
    silu_mul_quantise(both, codes, scales, experts, False, 1 if rows <= 256 else 4)
    return codes[0], scales[0].t()[:rows]


VALID = {}


def deepgemm(weights, copies):
    import deep_gemm
    operands = tensors_of(weights, copies)

    def bf16(x, weight):
        out = torch.empty(len(x), len(weight), device=x.device, dtype=torch.bfloat16)
        deep_gemm.bf16_gemm_nt(x, weight, out)
        return out

    def fp8(x, weight, scales):
        out = torch.empty(len(x[0]), len(weight), device=weight.device, dtype=torch.bfloat16)
        deep_gemm.fp8_gemm_nt(x, (weight, scales), out, disable_ue8m0_cast=True)
        return out

    def chain(call, tensors):
        if weights.format == "fp8_block":
            return block_chain(call, tensors, fp8)
        out = bf16(call.x, tensors[0])
        return bf16(peers.silu_mul(out), tensors[1]) if len(tensors) > 1 else out

    yield "deepgemm", "peer", lambda call: lambda i: chain(call, operands[i % copies])


def deepgemm_experts(weights, copies):
    """Rows of each expert from a multiple of 128 on; those between them have no expert and are passed over."""
    import deep_gemm
    layer, operands = weights.layer, tensors_of(weights, copies)

    def product(rows, weight, scales, experts):
        out = torch.empty(len(rows[0]), weight.shape[1], device=weight.device, dtype=torch.bfloat16)
        deep_gemm.m_grouped_fp8_gemm_nt_contiguous(rows, (weight, scales), out, experts, disable_ue8m0_cast=True)
        return out

    def prepared(call):
        places = kernels.Places(call.ids, layer.experts, 128)

        def whole(i):
            gate_up, gate_up_scales, down, down_scales = operands[i % copies]
            experts = places.find().tile_experts.repeat_interleave(128)
            rows = kernels.gathered(*kernels.in_blocks(call.x), places, layer.top_k)
            both = product(rows, gate_up, gate_up_scales, experts)
            rows = product(blocks_of_activation(both, experts), down, down_scales, experts)
            return kernels.combined(rows, call, layer.experts, places.inverse)

        return whole

    yield "deepgemm", "peer", prepared


# Triton's fused MoE, of SGLang

def triton_experts(weights, copies):
    """SGLang's kernel in the tile that is the fastest here."""
    from engine_files import engine_file
    module = "sglang.kernels.ops.moe.fused_moe_triton_kernels"
    launcher = engine_file(ENGINE_FILES["folder"], module)
    launcher.scaled_fp8_quant = lambda rows, scales, **_: (rows, scales)  # rows come rounded
    layer, operands = weights.layer, tensors_of(weights, copies)
    is_fp8 = weights.format.startswith("fp8")
    half = len(operands[0]) // 2

    def prepared(call):
        tiles = likely_tiles(TRITON_TILES["fp8" if is_fp8 else "16-bit"], call.ids.numel() / layer.routed_experts)
        ways = {str(tile): triton_way(launcher, weights, call, tile, [(one[:half], one[half:]) for one in operands]) for tile in tiles}
        return fastest(ways, copies)[1]

    yield "triton", "peer", prepared


def likely_tiles(tiles, rows):
    """Those whose height is near the rows of an expert: others are compiled in vain."""
    return [tile for tile in tiles if min(rows, 256) / 4 <= tile[0] <= max(32, 2 * rows)]


def triton_way(launcher, weights, call, tile, operands):
    """The whole layer with one tile."""
    layer, format_name = weights.layer, weights.format
    places = kernels.Places(call.ids, layer.experts, tile[0])
    config = dict(zip(TRITON_TILE_WORDS, tile))
    is_fp8, is_row = format_name.startswith("fp8"), format_name == "fp8_row"
    bias = weights.biases.get

    def product(rows, weight, name, top_k):
        codes, scales = rows if is_fp8 else (rows, None)
        out = torch.empty(call.ids.numel(), weight[0].shape[1], device=codes.device, dtype=torch.bfloat16)
        launcher.invoke_fused_moe_kernel(
            codes, weight[0], bias(name), out, scales, weight[1] if is_fp8 else None, None, call.weights, call.ids, places.places,
            places.tile_experts, places.count, False, top_k, config, launcher.tl.bfloat16, is_fp8, False, False, False, is_row,
            [128, 128] if format_name == "fp8_block" else None, filter_expert=False)
        return out

    def whole(i):
        gate_up, down = operands[i % len(operands)]
        places.find()
        both = product(into(call.x, format_name), gate_up, "gate_up", layer.top_k)
        rows = product(activation_into(both, layer, format_name), down, "down", 1)
        return kernels.combined(rows, call, layer.experts)

    return whole


def into(x, format_name):
    return {"fp8_block": kernels.in_blocks, "fp8_row": kernels.in_rows}.get(format_name, lambda rows: rows)(x)


def activation_into(both, layer, format_name):
    if format_name == "fp8_block":
        return blocks_of_activation(both)
    if format_name == "fp8_row":
        return kernels.in_rows(both, gated=True)
    return kernels.clamped(both) if layer.activation == "swiglu_clamped" else peers.silu_mul(both)
