"""The packages for serving engines: what they compute from the lists that engines hand over, and what they refuse, with stand-ins of
the engines' interfaces; and the engines themselves where they are installed."""

import ast
import importlib
import importlib.metadata
import json
import pathlib
import subprocess
import sys
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: the packages for serving engines are left out")
import definition
import ml_dtypes
import thresher
import thresher.torch
from engines import record, stand_in_sglang, stand_in_vllm
from thresher.torch import engines

HERE = pathlib.Path(__file__).parent
INTEGRATIONS = HERE.parents[1] / "integrations"
CASES = json.loads(record.FILE.read_text())
BATCHES = json.loads(record.BATCHES.read_text())
BF16 = ml_dtypes.bfloat16
N, K = 144, 160


# What an engine's checkpoint holds, and the same in float64.


def numbers(random, *shape):
    return torch.from_numpy((random.standard_normal(shape) * 0.5).astype(np.float32)).bfloat16()


def plain_weights(random, experts, halves=2):
    w13, w2 = numbers(random, experts, halves * N, K), numbers(random, experts, K, N)
    return dict(w13_weight=w13, w2_weight=w2), w13.double().numpy(), w2.double().numpy()


def fp8_matrix(random, halves, *shape):
    """e4m3 and float32 scales of blocks of each of so many matrices, one above the other; and their values."""
    *outer, rows, columns = shape
    values = torch.from_numpy(random.standard_normal(shape).astype(np.float32)).to(torch.float8_e4m3fn)
    blocks = -(-rows // halves // 128), -(-columns // 128)
    scales = random.uniform(0.1, 0.4, (*outer, halves, *blocks)).astype(np.float32)
    wide = np.repeat(np.repeat(scales, 128, -2)[..., : rows // halves, :], 128, -1)[..., :columns].reshape(shape)
    return values, torch.from_numpy(scales.reshape(*outer, halves * blocks[0], blocks[1])), values.double().numpy() * wide


def fp8_weights(random, experts, halves=2):
    (w13, s13, dense13), (w2, s2, dense2) = fp8_matrix(random, halves, experts, halves * N, K), fp8_matrix(random, 1, experts, K, N)
    return dict(w13_weight=w13, w13_weight_scale_inv=s13, w2_weight=w2, w2_weight_scale_inv=s2), dense13, dense2


def nvfp4_matrix(random, halves, *shape):
    *outer, rows, columns = shape
    values = random.integers(0, 256, (*outer, rows, columns // 2), np.uint8)
    scales = random.integers(0x28, 0x38, (*outer, rows, columns // 16), np.uint8)
    global_scales = random.uniform(0.1, 0.9, (*outer, halves)).astype(np.float32)
    dense = definition.nvfp4(values, scales) * np.repeat(global_scales.astype(np.float64), rows // halves, -1)[..., None]
    return torch.from_numpy(values), torch.from_numpy(scales).view(torch.float8_e4m3fn), torch.from_numpy(global_scales), dense


def nvfp4_weights(random, experts, halves=2):
    (w13, s13, g13, dense13), (w2, s2, g2, dense2) = nvfp4_matrix(random, halves, experts, halves * N, K), nvfp4_matrix(random, 1, experts, K, N)
    return dict(w13_weight=w13, w13_weight_scale=s13, w13_weight_scale_2=g13, w2_weight=w2, w2_weight_scale=s2,
                w2_weight_scale_2=g2[:, 0]), dense13, dense2


WEIGHTS = {"plain": plain_weights, "fp8": fp8_weights, "nvfp4": nvfp4_weights}


# What they are to compute.


def fp8_tokens(rows):
    """Rows in FP8 with a scale for 128 of a row, in float64."""
    found = np.empty(rows.shape)
    for at in range(0, rows.shape[-1], 128):
        part = rows[:, at : at + 128].astype(np.float32)
        largest = np.abs(part).max(1, initial=0)
        scale = np.where(largest == 0, np.float32(1), largest / np.float32(448))[:, None]
        found[:, at : at + 128] = np.clip(part / scale, -448, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float64) * scale
    return found


def experts_of(x, ids, weights, w13, w2, kind="silu", tokens=lambda rows: rows.astype(np.float64), **constants):
    """(Σ over a token's experts, how far the float32 computation may be from it); between the products rows are bf16 and then what
    `tokens` makes of them, on whichever side of a rounding they came to lie. Rows are bf16 before they are added up, too."""
    total, error = np.zeros((len(x), w2.shape[1])), np.zeros((len(x), w2.shape[1]))
    for token, choice in np.argwhere((ids >= 0) & (ids < len(w2))):
        first = w13[ids[token, choice]]
        gate, up = (first, first) if kind == "relu2" else np.split(first, 2)
        exact, slack = definition.dual_gemm(tokens(x[token : token + 1]), gate, up, kind, **constants)
        low, hidden, high = (tokens(one.astype(BF16)) for one in (exact - slack, exact, exact + slack))
        down = w2[ids[token, choice]]
        result, of_sum = definition.product(hidden, down)
        of_hidden = np.maximum(np.abs(low - hidden), np.abs(high - hidden)) @ np.abs(down).T
        weight = float(weights[token, choice])
        total[token] += (weight * result)[0]
        of_row = definition.rounding(BF16)[0] * np.abs(result)
        error[token] += (weight * (of_sum + of_hidden + of_row) + 2.0**-22 * np.abs(weight * result))[0]
    return total, error


def expect_experts(result, x, ids, weights, dense13, dense2, format, factor=1.0, **activation):
    tokens = fp8_tokens if format == "fp8" else lambda rows: rows.astype(np.float64)
    exact, error = experts_of(floats(x), ids, weights, dense13, dense2, tokens=tokens, **activation)
    given = floats(result)
    if factor == 1.0:
        definition.check(given, exact, error)
        return
    relative, _ = definition.rounding(BF16)  # the factor multiplies what was rounded, and is rounded again
    definition.check(given, exact * factor, abs(factor) * (error + relative * (np.abs(exact) + error)))


def floats(tensor):
    return tensor.view(torch.uint16).numpy().view(BF16)


class Routing(types.SimpleNamespace):
    def __init__(self, case, seed=11):
        shape = (-1, case["choices"])
        super().__init__(experts=case["experts"], local=case["local"], ids=np.array(case["topk_ids"], np.int32).reshape(shape),
                         places=np.array(case["local_ids"], np.int32).reshape(shape),
                         weights=np.array(case["topk_weights"], np.float32).reshape(shape),
                         expert_map=None if case["expert_map"] is None else torch.tensor(case["expert_map"], dtype=torch.int32))
        self.x = numbers(np.random.default_rng(seed), len(self.ids), K)
        self.x[:1, :128] = 0  # a block of FP8 without an amax


def fill(layer, values):
    for name, value in values.items():
        parameter = getattr(layer, name)
        assert (parameter.shape, parameter.dtype) == (value.shape, value.dtype), name
        parameter.data.copy_(value)


def put(monkeypatch, engine, version, modules):
    """The stand-in of an engine, of that version, and the package for it, newly loaded."""
    package = f"thresher_{engine}"
    for name in [name for name in sys.modules if name.partition(".")[0] in (engine, package)]:
        monkeypatch.delitem(sys.modules, name)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, child = name.rpartition(".")
        if parent:
            monkeypatch.setattr(modules[parent], child, module, raising=False)
    real = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version if name == engine else real(name))
    monkeypatch.syspath_prepend(str(INTEGRATIONS / engine))
    return importlib.import_module(package)


@pytest.fixture
def vllm(monkeypatch):
    hooks = torch.nn.modules.module._global_module_registration_hooks
    known = list(hooks)
    modules = stand_in_vllm.modules()
    package = put(monkeypatch, "vllm", "0.33.0+cu130", modules)
    package.register()
    layers = {name.removeprefix("vllm.model_executor.layers."): module for name, module in modules.items()}
    yield types.SimpleNamespace(modules=modules, layers=layers, package=package,
                                config=layers["quantization"].registered["thresher"])
    for one in [one for one in hooks if one not in known]:
        del hooks[one]
    for name in [name for name in sys.modules if name.startswith("thresher_vllm")]:
        del sys.modules[name]


@pytest.fixture
def sglang(monkeypatch):
    chosen = stand_in_sglang.Chosen()
    modules = stand_in_sglang.modules(chosen)
    package = put(monkeypatch, "sglang", "0.5.23", modules)
    package.register()
    chosen.runner = "thresher"
    layers = {name.removeprefix("sglang.srt.layers."): module for name, module in modules.items()}
    yield types.SimpleNamespace(modules=modules, layers=layers, package=package, chosen=chosen)
    for name in [name for name in sys.modules if name.startswith("thresher_sglang")]:
        del sys.modules[name]


# The lists.


def test_the_recorded_lists_are_those_of_the_script():
    assert record.FILE.read_text() == record.text(record.cases())
    assert record.BATCHES.read_text() == record.text(record.batches())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_ids_of_this_process(case):
    one = Routing(case)
    assert (engines.local_ids(torch.from_numpy(one.ids), one.expert_map).numpy() == one.places).all()
    far = torch.tensor([[one.experts, 2**31 - 1, -7]], dtype=torch.int32)
    assert one.expert_map is None or (engines.local_ids(far, one.expert_map) == -1).all()


# vLLM.

MXFP4 = dict(quant_method="mxfp4")
CHECKPOINTS = {"fp8": dict(quant_method="fp8", activation_scheme="dynamic", weight_block_size=[128, 128]),
               "nvfp4": dict(quant_method="modelopt", quant_algo="NVFP4", group_size=16),
               "mxfp4": dict(quant_method="compressed-tensors", format="mxfp4-pack-quantized")}


def moe_config(one, **changed):
    parallel = types.SimpleNamespace(use_all2all_kernels=changed.pop("use_all2all_kernels", False))
    return types.SimpleNamespace(**{**dict(num_experts=one.experts, num_local_experts=one.local, hidden_dim=K, in_dtype=torch.bfloat16,
                                           experts_per_token=2, intermediate_size_per_partition=N, moe_parallel_config=parallel, has_bias=False,
                                           is_act_and_mul=True, is_lora_enabled=False, activation_situ_beta=None,
                                           activation_situ_linear_beta=None), **changed})


def vllm_layer(vllm, one, format, config=None, **options):
    quantisation = vllm.config.from_config(CHECKPOINTS[format])
    return vllm.layers["fused_moe"].RoutedExperts("model.layers.3.mlp.experts", config or moe_config(one), quantisation,
                                                  expert_map=one.expert_map, **options)


@torch.inference_mode()
def vllm_result(vllm, one, format, halves=2, **options):
    layer = vllm_layer(vllm, one, format, **options)
    values, dense13, dense2 = WEIGHTS[format](np.random.default_rng(5), one.local, halves)
    fill(layer, values)
    layer.quant_method.process_weights_after_loading(layer)
    assert not list(layer.parameters())
    result = layer.forward_modular(one.x, torch.from_numpy(one.weights), torch.from_numpy(one.ids))
    assert result.shape == one.x.shape and result.dtype == torch.bfloat16
    return result, dense13, dense2


@pytest.mark.parametrize("format", ["fp8", "nvfp4"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_vllm_experts(vllm, case, format):
    one = Routing(case)
    result, *dense = vllm_result(vllm, one, format)
    expect_experts(result, one.x, one.places, one.weights, *dense, format)
    assert not result[(one.places < 0).all(1)].any()


@pytest.mark.parametrize("options, meant", [
    (dict(swiglu_limit=0.5), dict(alpha=1.0, limit=0.5, up_offset=0.0)),
    (dict(activation="swigluoai_uninterleave", swiglu_limit=0.75, swiglu_alpha=1.702, swiglu_beta=1.0),
     dict(alpha=1.702, limit=0.75, up_offset=1.0)),
])
def test_vllm_activations(vllm, options, meant):
    one = Routing(CASES[1])
    result, *dense = vllm_result(vllm, one, "nvfp4", **options)
    expect_experts(result, one.x, one.places, one.weights, *dense, "nvfp4", kind="swiglu_clamped", **meant)


@pytest.mark.parametrize("format", ["fp8", "nvfp4"])
def test_vllm_experts_of_kimi_and_nemotron(vllm, format):
    one = Routing(CASES[1])
    bounds = dict(activation_situ_beta=0.75, activation_situ_linear_beta=0.5)
    result, *dense = vllm_result(vllm, one, format, activation="situ", config=moe_config(one, **bounds))
    expect_experts(result, one.x, one.places, one.weights, *dense, format, kind="situ", alpha=0.75, limit=0.5)
    result, *dense = vllm_result(vllm, one, format, halves=1, activation="relu2_no_mul", config=moe_config(one, is_act_and_mul=False))
    expect_experts(result, one.x, one.places, one.weights, *dense, format, kind="relu2")


def mxfp4_matrix(random, *shape):
    """Values, exponents and float64 of each."""
    *outer, rows, columns = shape
    values = random.integers(0, 256, (*outer, rows, columns // 2), np.uint8)
    exponents = random.integers(120, 126, (*outer, rows, columns // 32), np.uint8)
    ones = np.full((*outer, rows, columns // 16), 0x38, np.uint8)
    dense = definition.nvfp4(values, ones) * np.repeat(np.exp2(exponents.astype(np.float64) - 127), 32, -1)
    return torch.from_numpy(values), torch.from_numpy(exponents), dense


@torch.inference_mode()
def test_vllm_experts_of_gpt_oss(vllm):
    """Gate and up interleaved, with biases, in MXFP4."""
    random, tokens, experts, n, k, choices = np.random.default_rng(12), 9, 5, 96, 160, 2
    config = vllm.config.from_config(MXFP4)
    routing = types.SimpleNamespace(experts=experts, local=experts)
    layer = vllm.layers["fused_moe"].RoutedExperts(
        "model.layers.3.mlp.experts", moe_config(routing, has_bias=True, hidden_dim=k, intermediate_size_per_partition=n), config,
        activation="swigluoai")
    (w13, s13, dense13), (w2, s2, dense2) = mxfp4_matrix(random, experts, 2 * n, k), mxfp4_matrix(random, experts, k, n)
    b13, b2 = numbers(random, experts, 2 * n), numbers(random, experts, k)
    fill(layer, dict(w13_weight=w13, w13_weight_scale=s13, w13_bias=b13, w2_weight=w2, w2_weight_scale=s2, w2_bias=b2))
    layer.quant_method.process_weights_after_loading(layer)
    assert not list(layer.parameters()) and layer.quant_method.weight_dtype == "gpt_oss_mxfp4"
    assert layer.quant_method.maybe_roundup_sizes(k, n, torch.bfloat16, None) == (k, n)
    x, ids, weights = numbers(random, tokens, k), random.integers(0, experts, (tokens, choices)), random.random((tokens, choices), np.float32)
    result = layer.forward_modular(x, torch.from_numpy(weights), torch.from_numpy(ids))
    wide = thresher.torch.MoE(*(torch.from_numpy(one).bfloat16() for one in (dense13, dense2)), order="interleaved", bias1=b13, down_bias=b2,
                              activation="swiglu_clamped", alpha=1.702, limit=7.0, up_offset=1.0)
    meant = wide(x, torch.from_numpy(ids), torch.from_numpy(weights))
    assert (result.float() - meant.float()).abs().max() <= 2.0**-7 * meant.float().abs().max() and meant.any()


def test_vllm_experts_of_gpt_oss_have_biases_and_their_activation(vllm):
    one, config = Routing(CASES[0]), vllm.config.from_config(MXFP4)
    for options, changed, sentence in ((dict(activation="swigluoai"), {}, "bias is False"), ({}, dict(has_bias=True), "activation is 'silu'")):
        with pytest.raises(thresher.UnsupportedError, match=sentence):
            vllm.layers["fused_moe"].RoutedExperts("experts", moe_config(one, **changed), config, **options)
    linear = _bare(vllm.layers["linear"].MergedColumnParallelLinear)
    assert isinstance(config.get_quant_method(linear, "a.gate_up_proj"), vllm.layers["linear"].UnquantizedLinearMethod)
    assert config.get_min_capability() == 90 and config.get_name() == "gpt_oss_mxfp4"


def mlp_kinds(vllm, n=N):
    """Modules as models have them, with what the activation is given as it is, and changed on the way."""
    linear, silu = vllm.layers["linear"].MergedColumnParallelLinear, vllm.layers["activation"].SiluAndMul
    row = vllm.layers["linear"].RowParallelLinear

    class Gated(torch.nn.Module):
        def __init__(self, config, bias=False, activation=silu, down_bias=False):
            super().__init__()
            self.gate_up_proj = linear(K, [n, n], bias, config, "model.layers.0.mlp.gate_up_proj")
            self.down_proj = row(n, [K], down_bias, config, "model.layers.0.mlp.down_proj")
            self.act_fn = activation()

        def forward(self, x):
            x, _ = self.gate_up_proj(x)
            x = self.act_fn(x)
            x, _ = self.down_proj(x)
            return x

    class Fused(Gated):
        def forward(self, x):
            gate_up, _ = self.gate_up_proj(x)
            x = (lambda act_fn, x, linear: act_fn(x))(self.act_fn, gate_up, self.down_proj)
            return self.down_proj(x)[0]

    class Multiplied(Gated):
        def forward(self, x):
            x, _ = self.gate_up_proj(x)
            x[:, :N] *= 0.5
            x = self.act_fn(x)
            return self.down_proj(x)

    class Scaled(Gated):
        def forward(self, x):
            gate_up, _ = self.gate_up_proj(x)
            x = self.act_fn(gate_up)
            x *= 0.5
            return self.down_proj(x)

    class ScaledThere(Gated):
        def forward(self, x):
            gate_up, _ = self.gate_up_proj(x)
            x = self.act_fn(gate_up)
            return self.down_proj(0.5 * x)

    class Chosen(Gated):
        def forward(self, x):
            gate_up, _ = self.gate_up_proj(x) if x.dim() == 2 else (x, None)
            x = self.act_fn(gate_up)
            return self.down_proj(x)

    class Read(Gated):
        def forward(self, x):
            first = self.gate_up_proj.weight[0]
            gate_up, _ = self.gate_up_proj(x)
            x = self.act_fn(gate_up)
            return self.down_proj(x + first[: x.shape[-1]])

    return Gated, Fused, Multiplied, Scaled, ScaledThere, Chosen, Read


@pytest.mark.parametrize("format", ["fp8", "nvfp4", "mxfp4"])
@pytest.mark.parametrize("kind", [0, 1])
@torch.inference_mode()
def test_vllm_dense_gated_mlp(vllm, format, kind):
    assert "GateUpMethod" in vllm.layers["linear"].WEIGHT_LOADER_V2_SUPPORTED
    n = 96 if format == "mxfp4" else N  # whole blocks along K
    module = mlp_kinds(vllm, n)[kind](vllm.config.from_config(CHECKPOINTS[format]))
    random, dense = np.random.default_rng(6), []
    for layer, halves, rows, columns in ((module.gate_up_proj, 2, 2 * n, K), (module.down_proj, 1, K, n)):
        made = dense_matrix(format, random, halves, rows, columns)
        fill(layer, dict(zip(PARAMETERS[format], made[:-1])))
        dense.append(made[-1][None])
    for layer in (module.gate_up_proj, module.down_proj):
        layer.quant_method.process_weights_after_loading(layer)
        assert layer.requires_unquantized_input
    assert not list(module.parameters())
    x, tokens = numbers(random, 7, K), fp8_tokens if format == "fp8" else lambda rows: rows.astype(np.float64)
    definition.check(floats(module(x)), *experts_of(floats(x), np.zeros((7, 1), int), np.ones((7, 1)), *dense, tokens=tokens))
    assert module(x.reshape(1, 7, K)).shape == (1, 7, K)


PARAMETERS = {"fp8": ("weight", "weight_scale_inv"), "nvfp4": ("weight", "weight_scale", "weight_scale_2"),
              "mxfp4": ("weight_packed", "weight_scale")}


def dense_matrix(format, random, halves, rows, columns):
    """The parameters of so many matrices, one above the other, and their values."""
    if format == "mxfp4":
        return mxfp4_matrix(random, rows, columns)
    return (fp8_matrix if format == "fp8" else nvfp4_matrix)(random, halves, rows, columns)


def linear_weights(format, rows, depth=K, seed=6):
    """Parameters of matrices one above another, each in blocks of its own, and their values in float64."""
    made = [dense_matrix(format, np.random.default_rng(seed + i), 1, one, depth) for i, one in enumerate(rows)]
    joined = [torch.cat([one.view(torch.uint8) if one.element_size() == 1 else one for one in parts]).view(parts[0].dtype)
              for parts in zip(*(one[:-1] for one in made))]
    return dict(zip(PARAMETERS[format], joined)), np.concatenate([one[-1] for one in made])


def expect_linear(layer, format, rows, bias=None):
    values, dense = linear_weights(format, rows)
    fill(layer, values)
    if layer.bias is not None:
        layer.bias.data.copy_(torch.linspace(-4, 4, sum(rows)))
    layer.quant_method.process_weights_after_loading(layer)
    assert [name for name, _ in layer.named_parameters()] == ([] if layer.bias is None else ["bias"])
    x = numbers(np.random.default_rng(9), 7, K)
    tokens = fp8_tokens(floats(x)) if format == "fp8" else floats(x)
    result, beside = layer(x)
    exact, error = definition.product(tokens, dense, None if bias is None else bias(layer).float().numpy())
    definition.check(floats(result), exact, error)
    assert layer(x.reshape(1, 7, K))[0].shape == (1, 7, sum(rows))
    return beside


KINDS = pytest.mark.parametrize("kind, rows, products", [
    ("ReplicatedLinear", [96], None), ("ColumnParallelLinear", [N], None), ("RowParallelLinear", [N], None),
    # Blocks of the third matrix begin within one of the second's; the global scales of all three differ, where there are any.
    ("QKVParallelLinear", [128, 48, 48], dict(fp8=2, nvfp4=3)),
])


@pytest.mark.parametrize("format", ["fp8", "nvfp4", "mxfp4"])
@KINDS
@torch.inference_mode()
def test_vllm_linear_layers(vllm, format, kind, rows, products):
    layer = getattr(vllm.layers["linear"], kind)(K, rows, False, vllm.config.from_config(CHECKPOINTS[format]), "model.layers.0.self_attn.some_proj")
    assert layer.requires_unquantized_input  # before weights are loaded
    expect_linear(layer, format, rows)
    assert len(layer.thresher.parts) == (products or {}).get(format, 1)


@torch.inference_mode()
def test_vllm_matrices_in_mxfp4_that_nvfp4_does_not_hold_together(vllm):
    config = vllm.config.from_config(CHECKPOINTS["mxfp4"])
    layer = vllm.layers["linear"].ColumnParallelLinear(K, [32, 32], False, config, "a.some_proj")
    values, dense = linear_weights("mxfp4", [32, 32])
    values["weight_scale"][:32] -= 20
    dense[:32] /= 2.0**20
    fill(layer, values)
    layer.quant_method.process_weights_after_loading(layer)
    assert len(layer.thresher.parts) == 2
    x = numbers(np.random.default_rng(9), 7, K)
    definition.check(floats(layer(x)[0]), *definition.product(floats(x), dense))


@torch.inference_mode()
def test_vllm_refuses_what_else_compressed_tensors_has(vllm):
    read, linear = vllm.config.from_config, vllm.layers["linear"].ColumnParallelLinear
    for changed, sentence in ((dict(format="pack-quantized"), "a.some_proj: vLLM has CompressedTensorsW4A16 for it, but of compressed-tensors"),
                              (dict(transform_config={}), "a.some_proj: vLLM has CompressedTensorsW4A4Mxfp4 for it, but")):
        with pytest.raises(thresher.UnsupportedError, match=sentence):
            linear(K, [N], False, read(CHECKPOINTS["mxfp4"] | changed), "a.some_proj")
    with pytest.raises(thresher.UnsupportedError, match="vLLM has CompressedTensorsW4A4Mxfp4MoEMethod for it"):
        vllm.layers["fused_moe"].RoutedExperts("experts", moe_config(Routing(CASES[0])), read(CHECKPOINTS["mxfp4"]))
    config = read(CHECKPOINTS["mxfp4"])
    assert isinstance(config.get_quant_method(_bare(linear), "lm_head"), vllm.layers["linear"].UnquantizedLinearMethod)


@pytest.mark.parametrize("format", ["fp8", "nvfp4", "mxfp4"])
@torch.inference_mode()
def test_fast_numerics_are_an_option_of_four_bits(vllm, monkeypatch, format):
    """A CPU has none, and says so."""
    layer = vllm.layers["linear"].ColumnParallelLinear(K, [N], False, vllm.config.from_config(CHECKPOINTS[format]), "a.some_proj")
    fill(layer, linear_weights(format, [N])[0])
    monkeypatch.setenv("THRESHER_NUMERICS", "fast")
    if format == "fp8":
        layer.quant_method.process_weights_after_loading(layer)
        return
    with pytest.raises(thresher.Error, match="fast"):
        layer.quant_method.process_weights_after_loading(layer)
    monkeypatch.setenv("THRESHER_NUMERICS", "quick")
    with pytest.raises(thresher.InvalidArgumentError, match="THRESHER_NUMERICS is 'quick', expected one of exact, fast"):
        layer.quant_method.process_weights_after_loading(layer)


@torch.inference_mode()
def test_vllm_matrices_with_one_global_scale_are_one_product(vllm):
    layer = vllm.layers["linear"].QKVParallelLinear(K, [128, 48, 48], False, vllm.config.from_config(CHECKPOINTS["nvfp4"]), "a.qkv_proj")
    values, _ = linear_weights("nvfp4", [128, 48, 48])
    fill(layer, values | dict(weight_scale_2=torch.tensor([0.5, 0.25, 0.25])))
    layer.quant_method.process_weights_after_loading(layer)
    assert [part.n for part in layer.thresher.parts] == [128, 96]


@pytest.mark.parametrize("kind, options, adds", [
    ("ColumnParallelLinear", {}, True), ("ColumnParallelLinear", dict(skip_bias_add=True), False), ("ColumnParallelLinear", dict(tp_rank=1), True),
    ("RowParallelLinear", {}, True), ("RowParallelLinear", dict(tp_rank=1), False),
])
@torch.inference_mode()
def test_vllm_biases_of_linear_layers(vllm, kind, options, adds):
    layer = getattr(vllm.layers["linear"], kind)(K, [N], True, vllm.config.from_config(CHECKPOINTS["fp8"]), "a.some_proj", **options)
    beside = expect_linear(layer, "fp8", [N], (lambda layer: layer.bias) if adds else None)
    assert (beside is layer.bias) == options.get("skip_bias_add", False)
    with pytest.raises(thresher.UnsupportedError, match="is called otherwise"):
        layer.quant_method.apply(layer, torch.ones(2, K).bfloat16(), None if adds else layer.bias)


@torch.inference_mode()
def test_vllm_leaves_linear_layers_whose_weights_are_read(vllm, monkeypatch):
    class OfAModel(vllm.layers["linear"].ReplicatedLinear):
        pass

    config, column = vllm.config.from_config(CHECKPOINTS["fp8"]), vllm.layers["linear"].ColumnParallelLinear
    left = [OfAModel(K, [N], False, config, "a.some_proj"), column(K, [N], False, config, "model.layers.0.self_attn.kv_b_proj")]
    lora = types.SimpleNamespace(lora_config=object())
    monkeypatch.setattr(importlib.import_module("thresher_vllm.linear"), "get_current_vllm_config_or_none", lambda: lora)
    left.append(column(K, [N], False, config, "a.some_proj"))
    for layer in left:
        layer.quant_method.process_weights_after_loading(layer)
        assert layer.is_processed and type(layer.quant_method).__name__ == "Fp8LinearMethod"


def test_scales_that_are_powers_of_two_as_exponents():
    values, scales, _ = fp8_matrix(np.random.default_rng(6), 1, N, K)
    powers = torch.exp2(torch.floor(torch.log2(scales)))
    x = numbers(np.random.default_rng(9), 7, K)
    plain, short = (engines.fp8_linears(values, one, [N], torch.bfloat16) for one in (powers, powers.to(torch.float8_e8m0fnu)))
    assert torch.equal(plain(x), short(x))
    assert torch.equal(thresher.Fp8(values, powers.to(torch.float8_e8m0fnu), per="block").scales, powers)
    weights = {name: one if one.dtype != torch.float32 else torch.exp2(torch.floor(torch.log2(one)))
               for name, one in fp8_weights(np.random.default_rng(7), 2)[0].items()}
    results = []
    for dtype in (torch.float32, torch.float8_e8m0fnu):
        w13, w2 = ((weights[f"w{of}_weight"], weights[f"w{of}_weight_scale_inv"].to(dtype)) for of in ("13", "2"))
        layer = engines.fp8_experts(w13, w2, torch.bfloat16)
        results.append(layer(x, torch.arange(7)[:, None] % 2, torch.ones(7, 1)))
    assert torch.equal(*results)


@torch.inference_mode()
def test_vllm_gate_up_of_what_is_no_gated_mlp_is_linear(vllm):
    class Other(vllm.layers["activation"].SiluAndMul):
        pass

    gated, _, *others = mlp_kinds(vllm)
    config = vllm.config.from_config(CHECKPOINTS["fp8"])
    made = [kind(config) for kind in others]
    for module in (*made, gated(config, bias=True), gated(config, activation=Other), gated(config, down_bias=True)):
        layer = module.gate_up_proj
        assert not layer.quant_method.down and type(module.act_fn) in (vllm.layers["activation"].SiluAndMul, Other)
        expect_linear(layer, "fp8", [N, N], (lambda layer: layer.bias) if layer.bias is not None else None)
        assert not module.down_proj.quant_method.is_done


@torch.inference_mode()
def test_kernels_are_compiled_for_all_rows_once_for_layers_alike(monkeypatch):
    """As on a GPU."""
    monkeypatch.setattr(engines, "_warmed", set())
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda tensor: True))
    warmed = []

    class Made(torch.nn.Module):
        def __init__(self, size):
            super().__init__()
            self.register_buffer("weights", torch.zeros(size))
            self.said = size

        def warm(self, rows, choices):
            warmed.append((self.said, rows, choices))

    for size in (1, 2, 1):
        monkeypatch.setattr(engines, "_alike", lambda made: made.said)
        engines.release(torch.nn.Module(), lambda size=size: Made(size), rows=3, choices=2)
    assert warmed == [(1, [3], 2), (1, [1, 2, 3], 2), (2, [3], 2), (2, [1, 2, 3], 2), (1, [1], 1)]


def test_vllm_layers_that_a_checkpoint_excludes_are_its_own(vllm):
    name = "model.layers.3.mlp.experts"
    linear, unquantised = vllm.layers["linear"].MergedColumnParallelLinear, vllm.layers["linear"].UnquantizedLinearMethod
    for format, key in (("fp8", "ignored_layers"), ("nvfp4", "ignore")):
        config = vllm.config.from_config(CHECKPOINTS[format] | {key: [name, "a.gate_up_proj"]})
        layer = vllm.layers["fused_moe"].RoutedExperts(name, moe_config(Routing(CASES[0])), config)
        assert layer.quant_method is None or isinstance(layer.quant_method, unquantised)
        assert isinstance(config.get_quant_method(_bare(linear), "a.gate_up_proj"), unquantised)


def _bare(kind):
    one = kind.__new__(kind)
    torch.nn.Module.__init__(one)
    one.output_sizes = [N, N]
    return one


@pytest.mark.parametrize("changed, sentence", [
    (dict(has_bias=True), "experts: bias is True, but thresher computes experts with bias False alone"),
    (dict(is_act_and_mul=False), "the activation is 'silu' and there is no gate, but without one thresher has relu2"),
    (dict(is_lora_enabled=True), "lora is True"),
    (dict(use_all2all_kernels=True), "use_all2all_kernels is True"),
])
def test_vllm_refuses_configurations(vllm, changed, sentence):
    one = Routing(CASES[0])
    with pytest.raises(thresher.UnsupportedError, match=sentence):
        vllm_layer(vllm, one, "fp8", moe_config(one, **changed))


@pytest.mark.parametrize("options, sentence", [
    (dict(activation="gelu"), "the activation is 'gelu', but thresher has silu, silu with a limit, gelu_tanh and situ"),
    (dict(activation="relu2"), "the activation is 'relu2', but thresher has"),
    (dict(activation="situ"), "'situ' without its bound of the gate"),
    (dict(apply_router_weight_on_input=True), "apply_router_weight_on_input is True"),
])
def test_vllm_refuses_layers(vllm, options, sentence):
    with pytest.raises(thresher.UnsupportedError, match=sentence):
        vllm_layer(vllm, Routing(CASES[0]), "nvfp4", **options)


@pytest.mark.parametrize("checkpoint, sentence", [
    (dict(quant_method="awq"), "the checkpoint's quantisation is awq, but thresher takes fp8 with blocks of 128 by 128, NVFP4"),
    (dict(quant_method="modelopt", quant_algo="FP8"), "is modelopt FP8, but"),
    (dict(quant_method="fp8"), "scales of blocks None, but"),
    (dict(quant_method="fp8", weight_block_size=[64, 128]), "scales of blocks .64, 128., but"),
    (dict(quant_method="fp8", weight_block_size=[128, 128], store_dtype="mxfp4"), "store_dtype is 'mxfp4'"),
    (dict(quant_method="modelopt", quantization=dict(quant_algo="NVFP4"), group_size=32), "scales of 32, expected 16"),
])
def test_vllm_refuses_checkpoints(vllm, checkpoint, sentence):
    with pytest.raises(thresher.UnsupportedError, match=sentence):
        vllm.config.from_config(checkpoint)


def test_vllm_names(vllm):
    assert vllm.config.override_quantization_method({}, "thresher") == "thresher"
    assert vllm.config.override_quantization_method({}, "fp8") is None and vllm.config.override_quantization_method({}, None) is None
    configs = [vllm.config.from_config(one) for one in CHECKPOINTS.values()]
    assert [one.get_name() for one in (vllm.config, *configs)] == ["thresher", "fp8", "modelopt_fp4", "compressed-tensors"]
    assert {one.get_min_capability() for one in (vllm.config, *configs)} == {90}
    vllm.package.register()  # again, as in a process that loads plugins twice


@torch.inference_mode()
def test_weights_are_loaded_once(vllm):
    layer = vllm_layer(vllm, Routing(CASES[0]), "fp8")
    fill(layer, fp8_weights(np.random.default_rng(5), 4)[0])
    layer.quant_method.process_weights_after_loading(layer)
    with pytest.raises(thresher.UnsupportedError, match="cannot be loaded again: start the engine anew"):
        layer.quant_method.process_weights_after_loading(layer)


def test_what_the_device_cannot_run_is_refused_when_weights_are_loaded(vllm, monkeypatch):
    layer = vllm_layer(vllm, Routing(CASES[0]), "nvfp4")
    fill(layer, nvfp4_weights(np.random.default_rng(5), 4)[0])

    def refuse(self, rows, choices):
        assert (rows, choices) == ([1], 1)
        raise thresher.UnsupportedError("no strategy takes these")

    monkeypatch.setattr(engines.MoE, "warm", refuse)
    with pytest.raises(thresher.UnsupportedError, match="no strategy takes these"):
        layer.quant_method.process_weights_after_loading(layer)
    assert layer.w13_weight.shape == (4, 2 * N, K // 2) and not hasattr(layer, "thresher")


# vLLM's attention.


HEADS, KV_HEADS, SCALE = 4, 2, 0.11
LAYOUTS = {  # of [pages, Hk, page size, C]
    "LBNHC": lambda p, h, n, c, dtype: torch.empty(p, n, h, c, dtype=dtype).transpose(1, 2),
    "LBHNC": lambda p, h, n, c, dtype: torch.empty(p, h, n, c, dtype=dtype),
    "BLNHC": lambda p, h, n, c, dtype: torch.empty(p, 3, n, h, c, dtype=dtype)[:, 1].transpose(1, 2),
}


def attention_module():
    return importlib.import_module("thresher_vllm.attention")


def attention_layer(vllm, head_size=64, cache_dtype="auto", **options):
    return vllm.layers["attention"].Attention(HEADS, head_size, SCALE, KV_HEADS, prefix="model.layers.3.self_attn.attn",
                                              cache_config=types.SimpleNamespace(cache_dtype=cache_dtype), **options)


def bind_cache(layer, case, dtype, layout="LBNHC"):
    """Nothing but NaN, so that what nobody wrote is seen in a result."""
    dtype = torch.uint8 if layer.impl.kv_cache_dtype.startswith("fp8") else dtype
    layer.kv_cache = LAYOUTS[layout](case["pages"], KV_HEADS, case["page_size"], 2 * layer.impl.head_size, dtype=dtype)
    layer.kv_cache.fill_(0x7F if dtype == torch.uint8 else torch.nan)


LISTS = ("query_start_loc", "seq_lens", "block_table")


def lists_of(case):
    return [torch.tensor(case[name], dtype=torch.int32) for name in LISTS]


def metadata_of(vllm, case, *, lists=None, values=None, prefix=0, **changed):
    """lists: the tensors that the engine keeps, in place of new ones."""
    common = vllm.modules["vllm.v1.attention.backend"].CommonAttentionMetadata
    starts, lengths, table = lists or lists_of(case)
    spec = types.SimpleNamespace(head_size=64, head_size_v=values or 64)
    builder = attention_module().ThresherAttentionBackend.get_builder_cls()(spec, ["attn"], None, torch.device("cpu"))
    return builder.build(prefix, common(**{**dict(
        query_start_loc=starts, query_start_loc_cpu=starts.clone(), seq_lens=lengths, num_reqs=len(lengths), block_table_tensor=table,
        num_actual_tokens=case["num_actual_tokens"], max_query_len=int(starts.diff().max()), max_seq_len=int(lengths.max()),
        slot_mapping=torch.tensor(case["slot_mapping"])), **changed}))


class Tokens:
    """Queries of a batch, and what lies in each slot of the pool: keys and values of the same bits for all who share a page."""

    def __init__(self, case, head_size, dtype, seed=31):
        random = np.random.default_rng(seed)
        self.case, self.slots = case, torch.tensor(case["slot_mapping"])
        self.context = torch.tensor(case["context_slots"], dtype=torch.int64)
        self.k, self.v = (numbers(random, case["pages"] * case["page_size"], KV_HEADS, head_size).to(dtype) for _ in range(2))
        self.qkv = numbers(random, len(self.slots), (HEADS + 2 * KV_HEADS) * head_size).to(dtype)
        self.q, key, value = self.qkv.split([HEADS * head_size, KV_HEADS * head_size, KV_HEADS * head_size], -1)
        key.copy_(self.k[self.slots].flatten(1))
        value.copy_(self.v[self.slots].flatten(1))
        self.key, self.value = key, value

    def write_context(self, layer):
        layer.impl.do_kv_cache_update(layer, self.k[self.context], self.v[self.context], layer.kv_cache, self.context)

    def run(self, layer, metadata):
        return layer(self.q, self.key, self.value, metadata, self.slots)

    def expect(self, result, stored=lambda rows, scale: as_float64(rows), scales=(1.0, 1.0), sinks=None, **options):
        """Against the float64 definition for each sequence and head; rows of nobody are as they were."""
        starts, size = self.case["query_start_loc"], self.case["page_size"]
        heads = result.view(len(self.slots), HEADS, -1)
        q = self.q.reshape(heads.shape)
        for at, length in enumerate(self.case["seq_lens"]):
            rows = slice(starts[at], starts[at + 1])
            if rows.start == rows.stop:
                continue
            slots = [self.case["block_table"][at][j // size] * size + j % size for j in range(length)]
            for head in range(HEADS):
                of = head * KV_HEADS // HEADS
                k, v = (stored(rows_of[slots, of], np.broadcast_to(scale, KV_HEADS)[of])
                        for rows_of, scale in zip((self.k, self.v), scales))
                sink = -np.inf if sinks is None else float(sinks[head])
                exact, error, *_ = definition.attention(as_float64(q[rows, head]), k, v, causal=True, scale=SCALE, sink=sink, **options)
                definition.check(as_numpy(heads[rows, head]), exact, error)
        assert heads[starts[-1]:].isnan().all()


def as_numpy(tensor):
    return floats(tensor.contiguous()) if tensor.dtype == torch.bfloat16 else tensor.numpy()


def as_float64(tensor):
    return tensor.double().numpy()


def through_fp8(rows, scale):
    return (rows.float() / float(scale)).to(torch.float8_e4m3fn).double().numpy() * float(scale)


@pytest.fixture
def rows_of_nobody(vllm, monkeypatch):
    """How many rows there were, by call; those that are no sequence's have to stay as they were."""
    seen = []

    def seeing(q, k, v, *, out, cu_seqlens_q, **options):
        rows = int(cu_seqlens_q[-1])
        assert out.shape == q.shape
        seen.append(len(q))
        before = out[rows:].clone()
        result = thresher.torch.attention(q, k, v, out=out, cu_seqlens_q=cu_seqlens_q, **options)
        torch.testing.assert_close(out[rows:], before, rtol=0, atol=0, equal_nan=True)
        return result

    monkeypatch.setattr(attention_module(), "attention", seeing)
    return seen


@pytest.mark.parametrize("form", ["bfloat16", "float16", "fp8"])
@pytest.mark.parametrize("case", BATCHES, ids=lambda case: case["name"])
@torch.inference_mode()
def test_vllm_attention(vllm, rows_of_nobody, case, form):
    dtype = torch.float16 if form == "float16" else torch.bfloat16
    sinks = torch.linspace(-1, 2, HEADS).bfloat16()
    options, meant, scales = {
        "bfloat16": (dict(), dict(), (1.0, 1.0)),
        "float16": (dict(head_size=128, per_layer_sliding_window=20, logits_soft_cap=5.0), dict(window=(19, 0), softcap=5.0), (1.0, 1.0)),
        "fp8": (dict(head_size=256, sinks=sinks, cache_dtype="fp8"), dict(sinks=sinks, stored=through_fp8), (0.25, 0.03125)),
    }[form]
    layer = attention_layer(vllm, **options)
    layer.process_weights_after_loading(dtype)
    layer._k_scale.fill_(scales[0])
    layer._v_scale.fill_(scales[1])
    bind_cache(layer, case, dtype, dict(zip(("bfloat16", "float16", "fp8"), LAYOUTS))[form])
    tokens = Tokens(case, layer.impl.head_size, dtype)
    tokens.write_context(layer)
    tokens.expect(tokens.run(layer, metadata_of(vllm, case)), scales=scales, **meant)
    assert rows_of_nobody == [case["num_actual_tokens"]]


@torch.inference_mode()
def test_vllm_attention_takes_a_scale_of_each_head(vllm):
    case, layer = BATCHES[2], attention_layer(vllm, cache_dtype="fp8_e4m3")
    layer._k_scale, layer._v_scale = torch.tensor([0.25, 0.03125]), torch.tensor([0.5, 0.0625])
    bind_cache(layer, case, torch.bfloat16)
    tokens = Tokens(case, 64, torch.bfloat16)
    tokens.write_context(layer)
    tokens.expect(tokens.run(layer, metadata_of(vllm, case)), stored=through_fp8, scales=(layer._k_scale.numpy(), layer._v_scale.numpy()))


@torch.inference_mode()
def test_vllm_attention_keeps_nothing_of_a_batch_that_a_graph_would_not_see_change(vllm, rows_of_nobody):
    """A graph is made with some batch and replayed after the engine wrote another one into the same tensors."""
    case = BATCHES[3]
    other = case | dict(query_start_loc=[0, 1] + [1] * 7, seq_lens=[1] + [0] * 7, block_table=[[0] * len(case["block_table"][0])] * 8,
                        slot_mapping=[0] + [-1] * 7, context_slots=[])
    layer = attention_layer(vllm)
    lists = lists_of(other)
    metadata = metadata_of(vllm, other, lists=lists)
    for one in (other, case):
        bind_cache(layer, one, torch.bfloat16)
        tokens = Tokens(one, 64, torch.bfloat16)
        tokens.write_context(layer)
        for kept, new in zip(lists, lists_of(one)):
            kept.copy_(new)
        tokens.expect(tokens.run(layer, metadata))
    builder = attention_module().ThresherAttentionMetadataBuilder
    assert builder._cudagraph_support is vllm.modules["vllm.v1.attention.backend"].AttentionCGSupport.ALWAYS


@torch.inference_mode()
def test_vllm_attention_over_the_cache_of_another_layer(vllm):
    case, owner = BATCHES[2], attention_layer(vllm)
    bind_cache(owner, case, torch.bfloat16)
    tokens = Tokens(case, 64, torch.bfloat16)
    tokens.write_context(owner)
    metadata = metadata_of(vllm, case)
    result = tokens.run(owner, metadata)
    sharing = attention_layer(vllm, kv_sharing_target_layer_name="model.layers.2.self_attn.attn")
    sharing.kv_cache = owner.kv_cache
    before = owner.kv_cache.clone()
    page, row = divmod(case["slot_mapping"][3], case["page_size"])
    assert torch.equal(before[page, :, row].flatten(), torch.cat([tokens.key[3].view(KV_HEADS, -1), tokens.value[3].view(KV_HEADS, -1)], 1).flatten())
    assert torch.equal(sharing(tokens.q, -tokens.key, -tokens.value, metadata, tokens.slots), result)
    assert owner.attn_backend.supports_kv_cache_update_bypass
    assert torch.equal(owner(tokens.q, None, None, metadata, tokens.slots), result)  # written by whoever left them out
    assert torch.equal(owner.kv_cache.view(torch.uint16), before.view(torch.uint16))


@torch.inference_mode()
def test_vllm_attention_in_a_run_that_measures_memory(vllm):
    tokens = Tokens(BATCHES[0], 64, torch.bfloat16)
    result = attention_layer(vllm)(tokens.q, tokens.key, tokens.value, None, None)
    assert result.shape == tokens.q.shape and not result.any()


def test_vllm_sinks_that_are_loaded_again_stay_where_graphs_know_them(vllm):
    sinks = torch.nn.Parameter(torch.linspace(-1, 2, HEADS).bfloat16(), requires_grad=False)
    layer = attention_layer(vllm, sinks=sinks)
    layer.process_weights_after_loading(torch.bfloat16)
    at = layer.impl.sink_logits.data_ptr()
    sinks.data.fill_(3)
    assert (layer.impl.sink_logits == torch.linspace(-1, 2, HEADS).bfloat16()).all()
    layer.process_weights_after_loading(torch.bfloat16)
    assert layer.impl.sink_logits.data_ptr() == at and (layer.impl.sink_logits == 3).all()


@pytest.mark.parametrize("options, sentence", [
    (dict(alibi_slopes=[0.5] * HEADS), "takes no slopes of ALiBi: choose another --attention-backend"),
    (dict(attn_type="encoder_decoder"), "takes no attention of the type encoder_decoder"),
    (dict(attn_type="encoder_only"), "takes no attention of the type encoder_only"),
    (dict(head_size=96), "takes no heads of 96 columns, which are 64, 128, 256"),
    (dict(cache_dtype="fp8_e5m2"), "takes no cache in fp8_e5m2"),
])
def test_vllm_attention_refuses_layers(vllm, options, sentence):
    with pytest.raises(thresher.UnsupportedError, match=sentence):
        attention_layer(vllm, **options)


@pytest.mark.parametrize("options, sentence", [
    (dict(causal=False), "takes no batch in which a query sees keys behind its own"),
    (dict(causal=torch.ones(4, dtype=torch.int32)), "takes no batch in which a query sees keys behind its own"),
    (dict(prefix=32), "takes no common prefix of 32 keys that is attended to apart .cascade attention."),
    (dict(values=128), "takes no values of 128 columns beside keys of 64"),
])
def test_vllm_attention_refuses_batches(vllm, options, sentence):
    with pytest.raises(thresher.UnsupportedError, match=sentence):
        metadata_of(vllm, BATCHES[0], **options)


def test_vllm_attention_refuses_to_quantise_its_result(vllm):
    q = torch.zeros(1, HEADS, 64)
    for scales in ((torch.ones(1), None), (None, torch.ones(1))):
        with pytest.raises(thresher.UnsupportedError, match="takes no result that is to be quantised on the way out"):
            attention_layer(vllm).impl.forward(None, q, None, None, None, None, q, *scales)


def test_vllm_attention_says_what_it_takes(vllm):
    impl = attention_layer(vllm).impl
    assert (impl.num_heads, impl.head_size, impl.num_kv_heads, impl.scale, impl.kv_cache_dtype) == (HEADS, 64, KV_HEADS, SCALE, "auto")
    assert not impl.supports_quant_query_input
    backend = vllm.modules["vllm.v1.attention.backends.registry"].AttentionBackendEnum.CUSTOM.get_class()
    assert backend is attention_module().ThresherAttentionBackend and backend.get_supported_head_sizes() == [64, 128, 256]
    assert [one.base for one in backend.get_supported_kernel_block_sizes(None)] == [16]
    for capability, is_taken in (((9, 0), True), ((8, 9), False), ((10, 0), False), ((12, 0), False)):
        assert backend.supports_compute_capability(types.SimpleNamespace(major=capability[0], minor=capability[1])) == is_taken
    for dtype, cache, reason in ((torch.bfloat16, "auto", None), (torch.bfloat16, None, None), (torch.float16, "fp8", None),
                                 (torch.bfloat16, "bfloat16", None),
                                 (torch.bfloat16, "float16", "keys and values in float16 beside queries in bfloat16")):
        assert backend.supports_combination(64, dtype, cache, 16, False, False, False, False, None) == reason


def test_vllm_backend_of_another_package_is_not_replaced(vllm):
    registry, module = vllm.modules["vllm.v1.attention.backends.registry"], attention_module()
    module.register()  # again, its own
    registry.register_backend(registry.AttentionBackendEnum.CUSTOM, "other.Backend")
    with pytest.raises(thresher.UnsupportedError, match="the attention backend CUSTOM of vLLM is other.Backend already"):
        module.register()
    assert registry.AttentionBackendEnum.CUSTOM.get_path() == "other.Backend"


# SGLang.


def quantisation_of(sglang, format, **options):
    kinds = {"plain": lambda: None, "fp8": sglang.layers["quantization.fp8"].Fp8Config,
             "nvfp4": sglang.layers["quantization.modelopt_quant"].ModelOptFp4Config}
    return kinds[format](**options)


def sglang_layer(sglang, one, format="plain", quantisation=None, prefix="model.layers.3.mlp.experts", **options):
    return sglang.layers["moe.fused_moe_triton.layer"].FusedMoE(
        one.experts, K, N, 3, quant_config=quantisation or quantisation_of(sglang, format), prefix=prefix, local=one.local, **options)


@torch.inference_mode()
def sglang_result(sglang, one, format, halves=2, **options):
    layer = sglang_layer(sglang, one, format, **options)
    values, dense13, dense2 = WEIGHTS[format](np.random.default_rng(5), one.local, halves)
    if halves == 1 and format == "nvfp4":
        values["w13_weight_scale_2"] = values["w13_weight_scale_2"].flatten()
    fill(layer, values)
    layer.quant_method.process_weights_after_loading(layer)
    assert not list(layer.parameters())
    routing = sglang.layers["moe.topk"].StandardTopKOutput(torch.from_numpy(one.weights), torch.from_numpy(one.places), torch.empty(0))
    standard = sglang.layers["moe.token_dispatcher.standard"]
    given = one.x.clone()
    found = layer.run_moe_core(standard.StandardDispatchOutput(given, None, routing))
    assert isinstance(found, standard.StandardCombineInput) and torch.equal(given, one.x)
    return found.hidden_states, dense13, dense2


@pytest.mark.parametrize("format", list(WEIGHTS))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_sglang_experts(sglang, case, format):
    one = Routing(case)
    result, *dense = sglang_result(sglang, one, format)
    expect_experts(result, one.x, one.places, one.weights, *dense, format)


@pytest.mark.parametrize("options, meant", [
    (dict(swiglu_limit=0.5), dict(alpha=1.0, limit=0.5, up_offset=0.0)),
    (dict(gemm1_clamp_limit=0.75, swiglu_limit=0.5), dict(alpha=1.0, limit=0.75, up_offset=0.0)),
    (dict(gemm1_alpha=1.5, gemm1_clamp_limit=0.75, gate_up_interleaved=False), dict(alpha=1.5, limit=0.75, up_offset=1.0)),
])
def test_sglang_activations(sglang, options, meant):
    one = Routing(CASES[1])
    result, *dense = sglang_result(sglang, one, "plain", **options)
    expect_experts(result, one.x, one.places, one.weights, *dense, "plain", kind="swiglu_clamped", **meant)


@pytest.mark.parametrize("format", list(WEIGHTS))
def test_sglang_experts_of_kimi_and_nemotron(sglang, format):
    one = Routing(CASES[1])
    result, *dense = sglang_result(sglang, one, format, activation="situ", gemm1_alpha=0.75, gemm1_clamp_limit=0.5)
    expect_experts(result, one.x, one.places, one.weights, *dense, format, kind="situ", alpha=0.75, limit=0.5)
    result, *dense = sglang_result(sglang, one, format, halves=1, activation="relu2", is_gated=False)
    expect_experts(result, one.x, one.places, one.weights, *dense, format, kind="relu2")


@pytest.mark.parametrize("fuses", [False, True])
def test_sglang_scales_the_result_unless_the_router_did(sglang, fuses):
    one = Routing(CASES[1])
    result, *dense = sglang_result(sglang, one, "plain", routed_scaling_factor=2.5, fuses_factor=fuses)
    expect_experts(result, one.x, one.places, one.weights, *dense, "plain", factor=1.0 if fuses else 2.5)


def test_sglang_another_runner_or_method_is_left_alone(sglang):
    one = Routing(CASES[0])
    with pytest.raises(AssertionError, match="no runner was chosen"):
        sglang.chosen.runner = "triton"
        sglang_layer(sglang, one)
    sglang.chosen.runner = "thresher"
    mine = importlib.import_module("thresher_sglang.experts").PlainMethod()
    assert sglang_layer(sglang, one, quant_method=mine).quant_method is mine
    assert "thresher" in sglang.modules["sglang.srt.arg_groups.choices"].MOE_RUNNER_BACKEND_CHOICES


@pytest.mark.parametrize("format, option", [("fp8", "ignored_layers"), ("nvfp4", "exclude_modules")])
def test_sglang_layers_that_a_checkpoint_excludes_have_sixteen_bits(sglang, format, option):
    layer = sglang_layer(sglang, Routing(CASES[0]), quantisation=quantisation_of(sglang, format, **{option: ["a"]}), prefix="a")
    assert layer.w13_weight.dtype == torch.bfloat16


@pytest.mark.parametrize("options, sentence", [
    (dict(activation="gelu"), "experts: the activation is 'gelu', but thresher has"),
    (dict(is_gated=False), "the activation is 'silu' and there is no gate"),
    (dict(activation="relu2"), "the activation is 'relu2', but thresher has"),
    (dict(activation="situ"), "'situ' without its bound of the gate"),
    (dict(with_bias=True), "bias is True"),
    (dict(no_combine=True), "no_combine is True"),
    (dict(apply_router_weight_on_input=True), "apply_router_weight_on_input is True"),
    (dict(gemm1_alpha=1.702, gemm1_clamp_limit=7.0), "gate_up_interleaved is True"),
])
def test_sglang_refuses_layers(sglang, options, sentence):
    with pytest.raises(thresher.UnsupportedError, match=sentence):
        sglang_layer(sglang, Routing(CASES[0]), **options)


@pytest.mark.parametrize("format, options, sentence", [
    ("fp8", dict(weight_block_size=None), "scales of blocks None"),
    ("fp8", dict(weight_block_size=[1, 32]), "scales of blocks .1, 32."),
    ("fp8", dict(use_mxfp8=True), "use_mxfp8 is True"),
    ("fp8", dict(is_fp4_experts=True), "is_fp4_experts is True"),
    ("nvfp4", dict(is_awq=True), "is_awq is True"),
])
def test_sglang_refuses_formats(sglang, format, options, sentence):
    with pytest.raises(thresher.UnsupportedError, match=sentence):
        sglang_layer(sglang, Routing(CASES[0]), quantisation=quantisation_of(sglang, format, **options))


def test_sglang_refuses_other_quantisations_and_placements(sglang):
    one = Routing(CASES[0])
    with pytest.raises(thresher.UnsupportedError, match="the quantisation awq is not one"):
        sglang_layer(sglang, one, quantisation=sglang.layers["quantization.unquant"].OtherConfig())
    for name, value, sentence in (("a2a", "deepep", "moe_a2a_backend is 'deepep'"), ("eplb", True, "enable_eplb is True")):
        before = getattr(sglang.chosen, name)
        setattr(sglang.chosen, name, value)
        with pytest.raises(thresher.UnsupportedError, match=sentence):
            sglang_layer(sglang, one)
        setattr(sglang.chosen, name, before)


@pytest.mark.parametrize("format", ["fp8", "nvfp4"])
@KINDS
@torch.inference_mode()
def test_sglang_linear_layers(sglang, format, kind, rows, products):
    assert "ThresherLinearMethod" in sglang.layers["linear"].WEIGHT_LOADER_V2_SUPPORTED
    config = sglang_config(sglang, format)
    layer = getattr(sglang.layers["linear"], kind)(K, rows, False, config, "model.layers.0.self_attn.some_proj")
    assert layer.quant_method.quant_config is config and layer.quant_method.max_rows() == 8192
    expect_linear(layer, format, rows)
    assert len(layer.thresher.parts) == (products or {}).get(format, 1)


@pytest.mark.parametrize("kind, options, adds", [
    ("ColumnParallelLinear", {}, True), ("ColumnParallelLinear", dict(skip_bias_add=True), False), ("ColumnParallelLinear", dict(rank=1), True),
    ("RowParallelLinear", {}, True), ("RowParallelLinear", dict(rank=1), False),
])
@torch.inference_mode()
def test_sglang_biases_of_linear_layers(sglang, kind, options, adds):
    layer = getattr(sglang.layers["linear"], kind)(K, [N], True, sglang_config(sglang, "fp8"), "a.some_proj", **options)
    beside = expect_linear(layer, "fp8", [N], (lambda layer: layer.bias) if adds else None)
    assert (beside is layer.bias) == options.get("skip_bias_add", False)


def test_sglang_leaves_linear_layers(sglang):
    class OfAModel(sglang.layers["linear"].ReplicatedLinear):
        pass

    column, quantization = sglang.layers["linear"].ColumnParallelLinear, sglang.layers["quantization.fp8"]
    fp8, name = sglang_config(sglang, "fp8"), "a.some_proj"
    left = [OfAModel(K, [N], False, fp8, name), column(K, [N], False, fp8, "model.layers.0.self_attn.kv_b_proj"),
            column(K, [N], False, quantization.Fp8Config(use_mxfp8=True), name), column(K, [N], False, quantization.Fp8Config((64, 128)), name),
            column(K, [N], False, sglang.layers["quantization.modelopt_quant"].ModelOptFp4Config(is_awq=True), name),
            column(K, [N], False, quantization.Fp8Config(ignored_layers=(name,)), name)]
    sglang.chosen.lora = True
    left.append(column(K, [N], False, fp8, name))
    sglang.chosen.lora, sglang.chosen.runner = False, "triton"
    left.append(column(K, [N], False, fp8, name))
    assert not any(isinstance(one.quant_method, engines.LinearMethod) for one in left)


def sglang_config(sglang, format):
    return (sglang.layers["quantization.fp8"].Fp8Config() if format == "fp8" else
            sglang.layers["quantization.modelopt_quant"].ModelOptFp4Config())


def test_sglang_refuses_calls(sglang):
    one = Routing(CASES[0])
    standard, topk = sglang.layers["moe.token_dispatcher.standard"], sglang.layers["moe.topk"]
    runner = sglang_layer(sglang, one).quant_method.runner
    info = importlib.import_module("thresher_sglang.experts").QuantInfo(None, 1.0)
    usual = topk.StandardTopKOutput(torch.from_numpy(one.weights), torch.from_numpy(one.places), torch.empty(0))
    for given, hooks, sentence in (
            ((one.x, None, usual, standard.Format.DEEPEP_LL), None, "tokens come as deepep_ll, but"),
            ((one.x, torch.ones(1), usual), None, "tokens come as standard, but thresher takes unquantised ones"),
            ((one.x, None, topk.BypassedTopKOutput(torch.empty(0))), None, "routing comes as BypassedTopKOutput, but"),
            ((one.x, None, usual), object(), "LoRA adds to the products")):
        with pytest.raises(thresher.UnsupportedError, match=sentence):
            runner.run(standard.StandardDispatchOutput(*given), info, hooks)


# The packages.


@pytest.mark.parametrize("engine, version", [("vllm", "0.31.0"), ("vllm", "0.33.1"), ("sglang", "0.5.21"), ("sglang", "0.5.24")])
def test_beside_another_version_of_the_engine_the_package_stays_out_with_one_line(monkeypatch, caplog, engine, version):
    package = put(monkeypatch, engine, version, {})
    package.register()
    package.register()  # as an engine does that loads its plugins twice
    (line,) = [one.getMessage() for one in caplog.records]
    assert line.startswith(f"thresher-{engine} is for {engine} ") and f"but {engine} {version} is installed: it stays out" in line
    assert engine not in sys.modules


@pytest.mark.parametrize("engine, group", [("vllm", "vllm.general_plugins"), ("sglang", "sglang.srt.plugins")])
def test_the_packages_are_installed_with_their_entry_points(engine, group):
    try:
        found = importlib.metadata.distribution(f"thresher-{engine}")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"thresher-{engine} is not installed here")
    assert found.version == thresher.__version__
    points = [one for one in importlib.metadata.entry_points(group=group) if one.name == "thresher"]
    assert [one.value for one in points] == [f"thresher_{engine}:register"]
    files = {one.name for one in found.files if one.parts[0] == f"thresher_{engine}" and one.suffix == ".py"}
    assert files == {one.name for one in (INTEGRATIONS / engine / f"thresher_{engine}").glob("*.py")}


def imported(file):
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.partition(".")[0]


def test_a_package_stands_on_thresher_and_its_engine_alone():
    for engine in ("vllm", "sglang"):
        for file in (INTEGRATIONS / engine).rglob("*.py"):
            assert set(imported(file)) - set(sys.stdlib_module_names) <= {"torch", "thresher", engine}, file
    for file in (HERE.parent / "thresher").rglob("*.py"):
        assert not set(imported(file)) & {"vllm", "sglang", "thresher_vllm", "thresher_sglang"}, file


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_engine_itself_takes_the_package(engine):
    try:
        importlib.metadata.version(engine)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{engine} is not installed: its package was tested with a stand-in alone")
    done = subprocess.run([sys.executable, str(HERE / "engines" / "installed.py"), engine], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
