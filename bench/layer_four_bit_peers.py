"""Other libraries' layers with weights in four bits and bfloat16 tokens; families as in layer_peers.py."""
import copy

import torch

import layer_kernels as kernels
from layer_peers import activation_into, peers


class HummingProduct:
    """Copies of one product in Humming's own order of weights; its own choice of kernel, compiled for the rows of a call alone."""

    def __init__(self, matrix, copies, bias=None):
        from humming.layer import HummingLayer
        values = matrix.tensors[0]
        scheme = {"quant_method": "mxfp4"} if matrix.format == "mxfp4" else {"quant_method": "modelopt", "quant_algo": "NVFP4"}
        made = HummingLayer(shape_n=values.shape[-2], shape_k=2 * values.shape[-1], num_experts=len(values) if values.dim() == 3 else 0,
                            pad_n_to_multiple=128, pad_k_to_multiple=128, weight_config=scheme, has_bias=bias is not None,
                            torch_dtype=torch.bfloat16).cuda()
        given = dict(zip(("weight", "weight_scale", "weight_scale_2"), matrix.tensors))
        made.load_from_tensors(given if bias is None else {**given, "bias": bias})
        made.transform()
        self.layers = [made, *(copy.deepcopy(made) for _ in range(copies - 1))]

    def config(self, rows, gemm_type):
        from humming.tune import get_heuristics_config
        return get_heuristics_config(self.layers[0].humming_config, shape_m=rows, gemm_type=gemm_type)

    def dense(self, x, i):
        return self.layers[i % len(self.layers)](x, tuning_config=self.config(len(x), "dense"))

    def indexed(self, rows, places, top_k, i):
        """Reads the token of each choice in place, and writes a row for each choice."""
        return self.layers[i % len(self.layers)](
            rows, sorted_ids=places.places, expert_ids=places.tile_experts, num_tokens_padded=places.count, top_k=top_k,
            valid_shape_m=places.total, compute_config={"gemm_type": "indexed"}, tuning_config=self.config(places.total, "indexed"))


def humming(weights, copies):
    yield from chained("humming", [HummingProduct(matrix, copies).dense for matrix in weights.matrices.values()])


def humming_experts(weights, copies):
    """Tiles are as high as each product's kernel asks for: choices are placed once for each height."""
    layer = weights.layer
    gate_up, down = (HummingProduct(weights[name], copies, weights.biases.get(name)) for name in ("gate_up", "down"))

    def prepared(call):
        heights = [one.config(call.ids.numel(), "indexed")["block_shape"][0] for one in (gate_up, down)]
        places = {height: kernels.Places(call.ids, layer.experts, height) for height in heights}

        def whole(i):
            for one in places.values():
                one.find()
            both = gate_up.indexed(call.x, places[heights[0]], layer.top_k, i)
            rows = down.indexed(activation_into(both, layer, weights.format), places[heights[1]], 1, i)
            return kernels.combined(rows, call, layer.experts)

        return whole

    yield "humming", "peer", prepared


def marlin_product(matrix, copies):
    """Copies of one product in Marlin's order, by vLLM."""
    from vllm.model_executor.layers.quantization.utils import marlin_utils_fp4 as marlin
    made = torch.nn.Module()
    made.params_dtype = torch.bfloat16
    made.output_size_per_partition, made.input_size_per_partition = matrix.tensors[0].shape[0], 2 * matrix.tensors[0].shape[1]
    for name, tensor in zip(("weight", "weight_scale", "weight_global_scale"), matrix.tensors):
        setattr(made, name, tensor)
    marlin.prepare_fp4_layer_for_marlin(made)
    layers = [made, *(copy.deepcopy(made) for _ in range(copies - 1))]

    def product(x, i):
        one = layers[i % copies]
        return marlin.apply_fp4_marlin_linear(x, one.weight, one.weight_scale, getattr(one, "weight_global_scale", None), one.workspace,
                                              made.output_size_per_partition, made.input_size_per_partition)

    return product


def marlin(weights, copies):
    yield from chained("marlin", [marlin_product(matrix, copies) for matrix in weights.matrices.values()])


def chained(name, products):
    """A linear layer, or a gated MLP, of functions of rows and a copy."""
    def chain(x, i):
        out = products[0](x, i)
        return products[1](peers.silu_mul(out), i) if len(products) > 1 else out

    yield name, "peer", lambda call: lambda i: chain(call.x, i)
