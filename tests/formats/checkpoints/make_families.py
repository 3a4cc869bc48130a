"""Makes families/NAME/, a model of one layer as a public tool writes it, and families/NAME.safetensors beside it: rows, the experts
chosen for them, and `expected`, what the model's own module gives in float64 with the weights as the tool reads them.

    pip install torch==2.15.0 compressed-tensors==0.20.0 nvidia-modelopt==0.47.0 transformers==5.23.0 accelerate safetensors==0.8.0
    pip install --no-deps --python-version 3.12 --only-binary :all: --target gpt_oss gpt-oss==0.0.9    # under older ones, too
    PYTHONPATH=gpt_oss python make_families.py
"""

import json
import pathlib
import shutil
from types import SimpleNamespace

import torch
from compressed_tensors.compressors.model_compressors import ModelCompressor
from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config
from gpt_oss.torch import model as gpt_oss_model
from gpt_oss.torch.weights import Checkpoint
from modelopt.torch import quantization
from modelopt.torch.export import export_hf_checkpoint
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, FineGrainedFP8Config
from transformers.integrations.finegrained_fp8 import Fp8Quantize

from make import calibrate, widened

HERE = pathlib.Path(__file__).parent / "families"
TOKENS = 5
SMALL = dict(vocab_size=8, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
             head_dim=16, max_position_embeddings=32, pad_token_id=0, bos_token_id=1, eos_token_id=None, tie_word_embeddings=True)
LATENT = dict(q_lora_rank=8, kv_lora_rank=8, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8, num_key_value_heads=2)


def made(family, dtype=torch.bfloat16, **options):
    """Weights for which rows of size one have results of that size or a little more: greater ones in the last columns."""
    torch.manual_seed(20261129)
    config = AutoConfig.for_model(family, **{**SMALL, **options})
    model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="eager")
    model.config.architectures = [type(model).__name__]
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                columns = weight.shape[-1]
                weight.copy_(torch.randn(weight.shape) * torch.linspace(0.25, 3, columns) * columns**-0.5)
    return model


def block_of(model):
    return model.model.layers[0].mlp


def record(name, run, hidden, experts=0):
    """`run` has (rows, ids, weights) of experts, or (rows), in float64. Two rows have an expert less, and one row has none."""
    rows = torch.randn(TOKENS, hidden).to(torch.bfloat16)
    tensors = {"x": rows}
    with torch.no_grad():
        if experts:
            ids = torch.stack([torch.randperm(experts)[:2] for _ in range(TOKENS)])
            weights = torch.rand(TOKENS, 2)
            weights[1, 0] = 0
            weights[3] = 0
            tensors["expected"] = run(rows.double(), ids, weights.double()).float()
            ids[weights == 0] = -1
            tensors.update(topk_ids=ids, topk_weights=weights)
        else:
            tensors["expected"] = run(rows.double()).float()
    save_file({key: tensor.contiguous() for key, tensor in tensors.items()}, HERE / f"{name}.safetensors")


def record_model(name, exact, experts=0):
    """Of a model with these weights in float32 or wider."""
    if experts:
        exact.set_experts_implementation("eager")
    block = block_of(exact.double())
    record(name, block.experts if experts else block, exact.config.hidden_size, experts)


def written(name, model):
    model.save_pretrained(HERE / name)
    (HERE / name / "generation_config.json").unlink(missing_ok=True)


def by_transformers(name, family, experts=0, **options):
    model = made(family, **options)
    written(name, model)
    record_model(name, model, experts)


def by_compressed_tensors(name, family, scheme, **options):
    model = made(family, torch.float32, **options)
    apply_quantization_config(model, QuantizationConfig(config_groups={scheme: ["Linear"]}, ignore=["lm_head"]))
    linears = [linear for linear in model.modules() if hasattr(linear, "quantization_scheme")]
    for linear in linears:
        calibrate(linear)
    compressor = ModelCompressor.from_pretrained_model(model)
    compressor.compress_model(model)
    (HERE / name).mkdir()
    save_file({key: tensor.contiguous() for key, tensor in model.state_dict().items() if key != "lm_head.weight"},
              HERE / name / "model.safetensors", {"format": "pt"})
    model.config.save_pretrained(HERE / name)
    compressor.update_config(HERE / name)
    exact = made(family, torch.float64, **options)
    others = [linear for key, linear in exact.named_modules() if isinstance(linear, torch.nn.Linear) and key != "lm_head"]
    for linear, other in zip(linears, others, strict=True):
        other.weight.data = widened(linear).double()
    record_model(name, exact)


def by_modelopt(name, family, experts=0, **options):
    model = made(family, **options)
    model = quantization.quantize(model, quantization.NVFP4_DEFAULT_CFG, lambda model: model(torch.arange(8)[None]))
    export_hf_checkpoint(model, export_dir=HERE / name)
    (HERE / name / "generation_config.json").unlink()
    stored = load_file(HERE / name / "model.safetensors")
    exact = made(family, torch.float64, **options)
    experts_of = block_of(exact).experts

    def weight(expert, matrix):
        place = f"model.layers.0.mlp.experts.{expert}.{matrix}_proj."
        codes = stored[place + "weight"]
        codes = torch.stack([codes & 15, codes >> 4], -1).flatten(-2).long()
        values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64)[codes & 7] * (1 - 2 * (codes >> 3))
        scales = stored[place + "weight_scale"].double() * stored[place + "weight_scale_2"].double()
        return values * scales.repeat_interleave(16, -1)

    for expert in range(experts):
        experts_of.gate_up_proj.data[expert] = torch.cat([weight(expert, "gate"), weight(expert, "up")])
        experts_of.down_proj.data[expert] = weight(expert, "down")
    record_model(name, exact, experts)


def in_fp8(name, family, scale_fmt, experts=0, **options):
    """Every matrix of the layers by transformers' quantiser, under the names that DeepSeek's own checkpoints have."""
    config = FineGrainedFP8Config(scale_fmt=scale_fmt)
    quantise = Fp8Quantize(SimpleNamespace(quantization_config=config))
    model = made(family, **options)
    model.config.quantization_config = config.to_dict()
    written(name, model)
    file = HERE / name / "model.safetensors"
    tensors = {}
    for key, tensor in load_file(file).items():
        is_quantised = "_proj" in key
        tensors.update(quantise.convert({key: tensor}) if is_quantised else {key: tensor})
    save_file(tensors, file, {"format": "pt"})
    config.dequantize = True
    record_model(name, AutoModelForCausalLM.from_pretrained(HERE / name, dtype=torch.float32, quantization_config=config), experts)


def mxfp4(experts, rows, k):
    return {"blocks": torch.randint(256, (experts, rows, k // 32, 16), dtype=torch.uint8),
            "scales": torch.randint(120, 125, (experts, rows, k // 32), dtype=torch.uint8)}


def gpt_oss(name, own, experts=3, size=32):
    """In the names of `own`, or in those of transformers, read by the package of gpt-oss."""
    torch.manual_seed(20261129)
    (HERE / name).mkdir()
    if own:
        one, two, sign, bias = "block.0.mlp.mlp1_weight", "block.0.mlp.mlp2_weight", ".", lambda place: place.replace("weight", "bias")
        (HERE / name / "config.json").write_text(json.dumps(
            dict(num_hidden_layers=1, num_experts=experts, experts_per_token=2, vocab_size=8, hidden_size=size, intermediate_size=size,
                 swiglu_limit=1.5, head_dim=16, num_attention_heads=2, num_key_value_heads=1, sliding_window=8,
                 initial_context_length=32, rope_theta=150000, rope_scaling_factor=32.0, rope_ntk_alpha=1, rope_ntk_beta=32), indent=2))
    else:
        one, two, sign, bias = *(f"model.layers.0.mlp.experts.{part}_proj" for part in ("gate_up", "down")), "_", lambda place: place + "_bias"
        config = AutoConfig.for_model("gpt_oss", **{**SMALL, "num_local_experts": experts, "num_experts_per_tok": 2,
                                                    "layer_types": ["full_attention"], "swiglu_limit": 1.5})
        config.quantization_config = dict(quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn", "model.layers.*.mlp.router"])
        config.save_pretrained(HERE / name)
    tensors, named = {}, {}
    for place, package, rows in ((one, "block.0.mlp.mlp1", 2 * size), (two, "block.0.mlp.mlp2", size)):
        for part, values in mxfp4(experts, rows, size).items():
            tensors[place + sign + part] = named[f"{package}_weight.{part}"] = values
        tensors[bias(place)] = named[f"{package}_bias"] = torch.randn(experts, rows).to(torch.bfloat16)
    if own:
        tensors.update({"block.0.mlp.norm.scale": torch.ones(size), "block.0.mlp.gate.weight": torch.zeros(experts, size, dtype=torch.bfloat16),
                        "block.0.mlp.gate.bias": torch.zeros(experts, dtype=torch.bfloat16)})
    else:
        tensors.update({"model.layers.0.mlp.router.weight": torch.zeros(experts, size, dtype=torch.bfloat16),
                        "model.layers.0.mlp.router.bias": torch.zeros(experts, dtype=torch.bfloat16)})
    save_file(tensors, HERE / name / "model.safetensors")
    as_read = HERE / "as_read"
    as_read.mkdir()
    save_file({key: values.clone() for key, values in named.items()}, as_read / "model.safetensors")
    read = Checkpoint(str(as_read), torch.device("cpu"))
    weight = {part: read.get(f"block.0.mlp.{part}").double() for part in ("mlp1_weight", "mlp1_bias", "mlp2_weight", "mlp2_bias")}
    shutil.rmtree(as_read)

    def run(rows, ids, weights):
        hidden = torch.einsum("beck,bk->bec", weight["mlp1_weight"][ids], rows) + weight["mlp1_bias"][ids]
        hidden = gpt_oss_model.swiglu(hidden, limit=1.5)
        out = torch.einsum("beck,bek->bec", weight["mlp2_weight"][ids], hidden) + weight["mlp2_bias"][ids]
        return torch.einsum("bec,be->bc", out, weights)

    record(name, run, size, experts)


if __name__ == "__main__":
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir()
    by_compressed_tensors("llama_nvfp4", "llama", "NVFP4")
    in_fp8("qwen3_fp8", "qwen3", "ue8m0", hidden_size=256, intermediate_size=128)
    by_modelopt("qwen3_moe_nvfp4", "qwen3_moe", 3, moe_intermediate_size=32, num_experts=3, num_experts_per_tok=2)
    by_transformers("mixtral", "mixtral", 3, intermediate_size=16, num_local_experts=3, num_experts_per_tok=2)
    gpt_oss("gpt_oss", own=False)
    gpt_oss("gpt_oss_own", own=True)
    in_fp8("deepseek_v3_fp8", "deepseek_v3", "float", 2, hidden_size=128, moe_intermediate_size=128, n_routed_experts=2, num_experts_per_tok=2,
           n_group=1, topk_group=1, first_k_dense_replace=0, n_shared_experts=1, **LATENT)
    by_transformers("gemma3", "gemma3_text", intermediate_size=16, layer_types=["full_attention"])
    by_transformers("phi3", "phi3", intermediate_size=16)
