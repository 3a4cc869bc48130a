"""Makes the checkpoints beside it with the public packages of their formats, each a few kB.

    pip install torch==2.15.0 compressed-tensors==0.20.0 nvidia-modelopt==0.47.0 transformers==5.23.0 safetensors==0.8.0 requests
    python make.py

Each has a gate and an up projection [8, 32]; those of NVFP4 and MXFP4 also `expected.*`, the weights as the package widens them to F32.
"""

import pathlib
import shutil

import torch
from compressed_tensors.compressors import compress_module
from compressed_tensors.compressors.mx_utils import decompress_mx_scale
from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config
from compressed_tensors.quantization.lifecycle.forward import dequantize
from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
from modelopt.torch.quantization.qtensor import NVFP4QTensor
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

HERE = pathlib.Path(__file__).parent
ROWS, K = 8, 32
PROJECTIONS = ("gate_proj", "up_proj")


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for name in PROJECTIONS:
            setattr(self, name, torch.nn.Linear(K, ROWS, bias=False, dtype=torch.float32))


class Model(torch.nn.Module):
    """One layer, under the names that checkpoints of language models use."""

    def __init__(self):
        super().__init__()
        layer = torch.nn.Module()
        layer.mlp = Mlp()
        self.model = torch.nn.Module()
        self.model.layers = torch.nn.ModuleList([layer])
        torch.manual_seed(14)
        with torch.no_grad():
            for scale, linear in enumerate(self.linears(), start=1):
                linear.weight.copy_(torch.randn(ROWS, K) * 0.03 * scale)

    def linears(self):
        return [getattr(self.model.layers[0].mlp, name) for name in PROJECTIONS]


def calibrate(linear):
    """What LLM Compressor observes of a weight: its global scale and the scales of its groups."""
    args = linear.quantization_scheme.weights
    weight = linear.weight.detach()
    if hasattr(linear, "weight_global_scale"):
        linear.weight_global_scale.data = generate_gparam(weight.min(), weight.max())
    group = args.group_size or weight.numel()
    groups = weight.reshape(len(weight), -1, group) if args.group_size else weight.reshape(1, 1, group)
    scale, _ = calculate_qparams(
        groups.amin(-1), groups.amax(-1), args, global_scale=getattr(linear, "weight_global_scale", None)
    )
    linear.weight_scale.data = scale.reshape(linear.weight_scale.shape).to(linear.weight_scale.dtype)
    for name in ("input_scale", "input_global_scale"):
        if hasattr(linear, name):
            getattr(linear, name).data.fill_(0.25)


def widened(linear):
    """As the package decompresses NVFP4 and MXFP4, but in F32, where it takes BF16."""
    packed = linear.weight_packed
    values = unpack_fp4_from_uint8(packed, packed.shape[0], 2 * packed.shape[1], dtype=torch.float32)
    scale = linear.weight_scale
    return dequantize(
        x_q=values, scale=(decompress_mx_scale(scale) if scale.dtype == torch.uint8 else scale).float(),
        args=linear.quantization_scheme.weights, global_scale=getattr(linear, "weight_global_scale", None), dtype=torch.float32,
    ).detach()


def compressed_tensors(scheme, file):
    model = Model()
    apply_quantization_config(model, QuantizationConfig(config_groups={scheme: ["Linear"]}))
    for linear in model.linears():
        calibrate(linear)
        compress_module(linear)
    tensors = {name: tensor.contiguous().clone() for name, tensor in model.state_dict().items()}
    for name, linear in zip(PROJECTIONS, model.linears()):
        if hasattr(linear, "weight_packed"):
            tensors["expected." + name] = widened(linear)
    save_file(tensors, HERE / file, {"format": "pt"})


def modelopt(file):
    tensors = {}
    for name, linear in zip(PROJECTIONS, Model().linears()):
        quantized, scale, scale_2 = NVFP4QTensor.quantize(linear.weight.detach(), 16)
        prefix = f"model.layers.0.mlp.{name}."
        tensors[prefix + "weight"] = quantized._quantized_data
        tensors[prefix + "weight_scale"] = scale
        tensors[prefix + "weight_scale_2"] = scale_2
        tensors[prefix + "input_scale"] = torch.tensor(0.25)
        tensors["expected." + name] = quantized.dequantize(
            dtype=torch.float32, scale=scale, double_scale=scale_2, block_sizes={-1: 16}
        )
    save_file(tensors, HERE / file, {"format": "pt"})


def sharded(folder):
    """A whole model in bfloat16, in several files with an index."""
    shutil.rmtree(HERE / folder, ignore_errors=True)
    torch.manual_seed(14)
    config = LlamaConfig(
        vocab_size=32, hidden_size=K, intermediate_size=ROWS, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, tie_word_embeddings=False,
    )
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(HERE / folder, max_shard_size="3KB")
    for other in (HERE / folder).glob("*config.json"):
        other.unlink()


if __name__ == "__main__":
    compressed_tensors("NVFP4A16", "compressed_tensors_nvfp4a16.safetensors")
    compressed_tensors("NVFP4", "compressed_tensors_nvfp4.safetensors")
    compressed_tensors("MXFP4A16", "compressed_tensors_mxfp4.safetensors")
    compressed_tensors("FP8", "compressed_tensors_fp8.safetensors")
    modelopt("modelopt_nvfp4.safetensors")
    sharded("llama")
