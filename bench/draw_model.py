#!/usr/bin/env python3
"""Writes a model of a real shape with weights that are drawn by the names of its tensors, so that every format holds the same model.

  draw_model.py MODEL FOLDER [--empty]      --empty writes the configuration and a tokenizer alone, as dummy weights need

The tokenizer has a word for each id: engines' own benchmarks draw ids and send words.
"""

import argparse
import hashlib
import json
import pathlib

_QWEN3 = dict(vocab_size=151936, max_position_embeddings=40960, rms_norm_eps=1e-6, rope_theta=1e6, hidden_act="silu", attention_bias=False,
              tie_word_embeddings=False, torch_dtype="bfloat16", head_dim=128, num_attention_heads=32, bos_token_id=1, eos_token_id=2,
              initializer_range=0.02)
_DENSE = dict(_QWEN3, architectures=["Qwen3ForCausalLM"], model_type="qwen3", hidden_size=4096, intermediate_size=12288,
              num_hidden_layers=36, num_key_value_heads=8)
_EXPERTS = dict(_QWEN3, architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", hidden_size=2048, intermediate_size=6144,
                num_hidden_layers=48, num_key_value_heads=4, num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768,
                norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[], router_aux_loss_coef=0.001)
_GPT_OSS = dict(
    architectures=["GptOssForCausalLM"], model_type="gpt_oss", vocab_size=201088, hidden_size=2880, intermediate_size=2880, num_hidden_layers=24,
    num_attention_heads=64, num_key_value_heads=8, head_dim=64, num_local_experts=32, num_experts_per_tok=4, sliding_window=128,
    layer_types=["sliding_attention", "full_attention"] * 12, attention_bias=True, attention_dropout=0.0, hidden_act="silu", swiglu_limit=7.0,
    rms_norm_eps=1e-5, rope_theta=150000.0, max_position_embeddings=131072, initial_context_length=4096, tie_word_embeddings=False,
    rope_scaling=dict(rope_type="yarn", factor=32.0, beta_fast=32.0, beta_slow=1.0, truncate=False, original_max_position_embeddings=4096),
    torch_dtype="bfloat16", router_aux_loss_coef=0.9, output_router_logits=False, bos_token_id=1, eos_token_id=2, initializer_range=0.02)
SHAPES = {"qwen3-8b": _DENSE, "qwen3-30b-a3b": _EXPERTS, "gpt-oss-20b": _GPT_OSS}
MODELS = [f"{name}{format}" for name in ("qwen3-8b", "qwen3-30b-a3b") for format in ("", "-fp8", "-nvfp4")] + ["gpt-oss-20b-mxfp4"]
_LARGEST_FP8, _LARGEST_FP4 = 448.0, 6.0
_FILE_BYTES = 4 << 30


def split_name(model: str) -> tuple[str, str]:
    """("qwen3-8b", "fp8") of qwen3-8b-fp8; the format of none is bf16."""
    shape = next(name for name in sorted(SHAPES, key=len, reverse=True) if model.startswith(name))
    return shape, model[len(shape) + 1 :] or "bf16"


def config_of(model: str) -> dict:
    shape, format = split_name(model)
    config = dict(SHAPES[shape])
    left = ["lm_head", *(f"model.layers.{at}.mlp.gate" for at in range(config["num_hidden_layers"]) if "num_experts" in config)]
    if format == "fp8":
        config["quantization_config"] = dict(quant_method="fp8", fmt="e4m3", activation_scheme="dynamic", weight_block_size=[128, 128],
                                             modules_to_not_convert=left)
    if format == "nvfp4":
        config["quantization_config"] = dict(quant_method="modelopt", quant_algo="NVFP4", group_size=16, kv_cache_quant_algo=None, ignore=left,
                                             producer=dict(name="modelopt", version="0.39.0"))
    if format == "mxfp4":
        config["quantization_config"] = dict(quant_method="mxfp4", modules_to_not_convert=[
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"])
    return config


def of_gpt_oss(config: dict, layer: str):
    """What a layer of it has beside those of all models."""
    hidden, inner, experts, heads = (config[name] for name in ("hidden_size", "intermediate_size", "num_local_experts", "num_attention_heads"))
    kv_heads, width = config["num_key_value_heads"], config["head_dim"]
    for name, count in (("q_proj", heads * width), ("k_proj", kv_heads * width), ("v_proj", kv_heads * width), ("o_proj", hidden)):
        yield f"{layer}.self_attn.{name}.bias", (count,), "small"
    yield f"{layer}.self_attn.sinks", (heads,), "small"
    yield f"{layer}.mlp.router.weight", (experts, hidden), "plain"
    yield f"{layer}.mlp.router.bias", (experts,), "small"
    for name, rows, columns in (("gate_up_proj", 2 * inner, hidden), ("down_proj", hidden, inner)):
        yield f"{layer}.mlp.experts.{name}_blocks", (experts, rows, columns // 32, 16), "four bits"
        yield f"{layer}.mlp.experts.{name}_scales", (experts, rows, columns // 32), "exponents"
        yield f"{layer}.mlp.experts.{name}_bias", (experts, rows), "small"


def tensors_of(config: dict):
    """(name, shape, kind) of each tensor of the model. Kinds: "weight", which formats quantize; "plain"; "norm"; "small" numbers; "four bits" and
    "exponents" of MXFP4."""
    hidden, heads, kv_heads, width = (config[name] for name in ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"))

    def gated(prefix: str, inner: int):
        for name, shape in (("gate_proj", (inner, hidden)), ("up_proj", (inner, hidden)), ("down_proj", (hidden, inner))):
            yield f"{prefix}.{name}.weight", shape, "weight"

    yield "model.embed_tokens.weight", (config["vocab_size"], hidden), "plain"
    for at in range(config["num_hidden_layers"]):
        layer = f"model.layers.{at}"
        for name, shape in (("q", (heads * width, hidden)), ("k", (kv_heads * width, hidden)), ("v", (kv_heads * width, hidden)),
                            ("o", (hidden, heads * width))):
            yield f"{layer}.self_attn.{name}_proj.weight", shape, "weight"
        for name, count in (("input_layernorm", hidden), ("post_attention_layernorm", hidden)):
            yield f"{layer}.{name}.weight", (count,), "norm"
        if config["model_type"] == "gpt_oss":
            yield from of_gpt_oss(config, layer)
            continue
        for name in ("q_norm", "k_norm"):
            yield f"{layer}.self_attn.{name}.weight", (width,), "norm"
        if "num_experts" in config:
            yield f"{layer}.mlp.gate.weight", (config["num_experts"], hidden), "plain"
            for expert in range(config["num_experts"]):
                yield from gated(f"{layer}.mlp.experts.{expert}", config["moe_intermediate_size"])
        else:
            yield from gated(f"{layer}.mlp", config["intermediate_size"])
    yield "model.norm.weight", (hidden,), "norm"
    yield "lm_head.weight", (config["vocab_size"], hidden), "plain"


def drawn(name: str, shape: tuple, kind: str, device: str):
    """Matrices have the deviation 1/√K, so that layers keep the size of what goes through them; norms are ones."""
    import torch

    if kind == "norm":
        return torch.ones(shape, dtype=torch.bfloat16, device=device)
    draw = torch.Generator(device).manual_seed(int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "little"))
    if kind in ("four bits", "exponents"):  # the values have the root mean square 2.9, so 2^-7 and 2^-8 give about 1/√2880
        bounds = (0, 256) if kind == "four bits" else (119, 121)
        return torch.randint(*bounds, shape, generator=draw, device=device, dtype=torch.uint8)
    deviation = 0.02 if kind == "small" else 1.0 if name == "model.embed_tokens.weight" else shape[-1] ** -0.5
    return (torch.randn(shape, generator=draw, device=device) * deviation).bfloat16()


def fp8(name: str, weight) -> dict:
    import torch

    rows, columns = weight.shape
    padded = torch.nn.functional.pad(weight.float(), (0, -columns % 128, 0, -rows % 128))
    blocks = padded.unflatten(0, (-1, 128)).unflatten(2, (-1, 128))
    scales = (blocks.abs().amax((1, 3)) / _LARGEST_FP8).clamp_min(2.0**-126)
    values = (blocks / scales[:, None, :, None]).to(torch.float8_e4m3fn).flatten(2).flatten(0, 1)[:rows, :columns]
    return {name: values.contiguous(), f"{name}_scale_inv": scales}


def nvfp4(name: str, weight) -> dict:
    """One global scale for all, so that matrices that an engine fuses share theirs."""
    import torch

    global_scale = torch.tensor(8.0 / _LARGEST_FP8 / _LARGEST_FP4 * weight.shape[1] ** -0.5, dtype=torch.float32, device=weight.device)
    groups = weight.float().unflatten(1, (-1, 16))
    scales = (groups.abs().amax(-1) / _LARGEST_FP4 / global_scale).clamp(2.0**-6, _LARGEST_FP8).to(torch.float8_e4m3fn)
    scaled = groups / (scales.float() * global_scale)[..., None]
    steps = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0], device=weight.device)
    values = (torch.bucketize(scaled.abs(), steps) | (scaled < 0).int() << 3).to(torch.uint8).flatten(1)
    return {name: values[:, ::2] | values[:, 1::2] << 4, f"{name}_scale": scales, f"{name}_scale_2": global_scale,
            f"{name.removesuffix('weight')}input_scale": torch.ones((), dtype=torch.float32)}


def write_tokenizer(folder: pathlib.Path, size: int) -> None:
    words = {f"t{at}": at for at in range(size)}
    (folder / "tokenizer.json").write_text(json.dumps(dict(
        version="1.0", truncation=None, padding=None, added_tokens=[], normalizer=None, pre_tokenizer=dict(type="WhitespaceSplit"),
        post_processor=None, decoder=None, model=dict(type="WordLevel", vocab=words, unk_token="t0"))))
    (folder / "tokenizer_config.json").write_text(json.dumps(dict(
        tokenizer_class="PreTrainedTokenizerFast", unk_token="t0", bos_token="t1", eos_token="t2", clean_up_tokenization_spaces=False)))


def write(model: str, folder: pathlib.Path, *, is_empty: bool = False, device: str = "cuda") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    config = config_of(model)
    (folder / "config.json").write_text(json.dumps(config))
    write_tokenizer(folder, config["vocab_size"])
    if is_empty:
        return
    from safetensors.torch import save_file

    quantize = {"fp8": fp8, "nvfp4": nvfp4}.get(split_name(model)[1])
    index, held, held_bytes = {}, {}, 0

    def flush() -> None:
        nonlocal held, held_bytes
        file = f"model-{len(set(index.values())):05}.safetensors"
        save_file(held, folder / file)
        index.update({name: file for name in held})
        held, held_bytes = {}, 0

    for name, shape, kind in tensors_of(config):
        weight = drawn(name, shape, kind, device)
        for part, tensor in (quantize(name, weight) if quantize and kind == "weight" else {name: weight}).items():
            held[part] = tensor.cpu()
            held_bytes += tensor.numel() * tensor.element_size()
        if held_bytes > _FILE_BYTES:
            flush()
    flush()
    (folder / "model.safetensors.index.json").write_text(json.dumps(dict(metadata={}, weight_map=index)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--empty", action="store_true")
    given = parser.parse_args()
    write(given.model, given.folder, is_empty=given.empty)


if __name__ == "__main__":
    main()
