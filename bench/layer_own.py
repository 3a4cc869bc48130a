"""Thresher's layers as an engine calls them, and each of a layer's products alone: (name, role, what makes a call of a `Call`)."""
import copy

import torch

import thresher
import thresher.torch as thresher_torch
from layer_kernels import in_blocks, in_rows


def rounded(x, format_name):
    """bfloat16 rows as a product of this format takes them."""
    if not format_name.startswith("fp8"):
        return x
    return thresher.Fp8(*(in_blocks(x) if format_name == "fp8_block" else in_rows(x)), per=format_name.removeprefix("fp8_"))


def between_format(format_name):
    """The format of rows between the products of a layer: in FP8 with a scale for 128 columns, which a tile finds by itself."""
    return "fp8_block" if format_name.startswith("fp8") else format_name


def between(format_name):
    """The named arguments of a layer of FP8 weights."""
    return {"intermediate_dtype": between_format(format_name), "out_dtype": torch.bfloat16} if format_name.startswith("fp8") else {}


def copied(module, copies):
    return [module, *(copy.deepcopy(module) for _ in range(copies - 1))]


def options_of(weights):
    """Named arguments that both modules share."""
    tokens = {"tokens": "fp8_block"} if weights.format == "fp8_block" else {}
    return {"dtype": torch.bfloat16, "activation": weights.layer.activation, **tokens}


def random_rows(count, columns, like):
    return torch.randn(count, columns, device=like.device, dtype=torch.bfloat16)


def dense(weights, copies):
    """`thresher_module` rounds tokens with its own operator."""
    module = thresher_torch.GatedMLP(*weights["gate_up"].halves(), weights["down"].operand(), **options_of(weights))
    modules, format_name, (hidden, inner) = copied(module, copies), weights.format, weights.layer.shapes["down"]

    def whole(call, i):
        one = modules[i % copies]
        return thresher_torch.gated_mlp(rounded(call.x, format_name), one.gate_up, one.down, **between(format_name))

    def gate_up(call):
        x = rounded(call.x, format_name)
        return lambda i: thresher_torch.dual_gemm_packed(x, modules[i % copies].gate_up, inner, out_dtype=torch.bfloat16)

    def down(call):
        rows = rounded(random_rows(len(call.x), inner, call.x), format_name)
        return lambda i: thresher_torch.gemm_packed(rows, modules[i % copies].down, hidden, out_dtype=torch.bfloat16)

    yield "thresher", "own", lambda call: lambda i: whole(call, i)
    yield "gate_up", "launch", gate_up
    yield "down", "launch", down
    if format_name == "fp8_block":
        yield "thresher_module", "own", lambda call: lambda i: modules[i % copies](call.x)


def moe(weights, copies):
    """Rows are bfloat16 before they are added up, as the peers' are. `thresher_module` rounds tokens with PyTorch's operations."""
    layer, format_name, biases = weights.layer, weights.format, weights.biases
    module = thresher_torch.MoE(weights["gate_up"].operand(), weights["down"].operand(), order="gate_first", bias1=biases.get("gate_up"),
                                down_bias=biases.get("down"), **options_of(weights))
    modules, (hidden, inner) = copied(module, copies), layer.shapes["down"]

    def whole(call, i):
        one = modules[i % copies]
        return thresher_torch.moe(rounded(call.x, format_name), one.gate_up, one.down, call.ids, call.weights, rows_dtype=torch.bfloat16,
                                  activation=layer.activation, **between(format_name))

    def gate_up(call):
        offsets, tokens = sorted_rows(layer, call)
        rows = rounded(call.x[tokens], format_name)
        return lambda i: thresher_torch.grouped_dual_gemm_packed(rows, modules[i % copies].gate_up, inner, offsets=offsets, out_dtype=torch.bfloat16,
                                                                 activation=layer.activation)

    def down(call):
        offsets, tokens = sorted_rows(layer, call)
        rows = rounded(random_rows(len(tokens), inner, call.x), format_name)
        return lambda i: thresher_torch.grouped_gemm_packed(rows, modules[i % copies].down, hidden, offsets=offsets, out_dtype=torch.bfloat16)

    yield "thresher", "own", lambda call: lambda i: whole(call, i)
    yield "gate_up", "launch", gate_up
    yield "down", "launch", down
    if format_name != "fp8_row":
        yield "thresher_module", "own", lambda call: lambda i: modules[i % copies](call.x, call.ids, call.weights)


def sorted_rows(layer, call):
    """(offsets of this GPU's experts, the tokens of their choices one behind the other)."""
    ids, order = call.ids.flatten().sort(stable=True)
    offsets = torch.searchsorted(ids, torch.arange(layer.experts + 1, device=ids.device, dtype=ids.dtype)).int()
    return offsets, order[:int(offsets[-1])] // layer.top_k


def linears(weights, copies):
    rows = weights.layer.shapes["weight"][0]
    first = thresher_torch.pack_gemm(weights["weight"].operand())
    packed = [first, *(first.clone() for _ in range(copies - 1))]

    def product(x, i):
        return thresher_torch.gemm_packed(x, packed[i % copies], rows, out_dtype=torch.bfloat16)

    def alone(call):
        x = rounded(call.x, weights.format)
        return lambda i: product(x, i)

    yield "thresher", "own", lambda call: lambda i: product(rounded(call.x, weights.format), i)
    if weights.format.startswith("fp8"):
        yield "product", "launch", alone


FAMILIES = {"dense": dense, "moe": moe, "linears": linears}
