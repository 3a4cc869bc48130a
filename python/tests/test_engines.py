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
from engines import record, stand_in_sglang, stand_in_vllm
from thresher.torch import engines

HERE = pathlib.Path(__file__).parent
INTEGRATIONS = HERE.parents[1] / "integrations"
CASES = json.loads(record.FILE.read_text())
BF16 = ml_dtypes.bfloat16
N, K = 144, 160


# What an engine's checkpoint holds, and the same in float64.


def numbers(random, *shape):
    return torch.from_numpy((random.standard_normal(shape) * 0.5).astype(np.float32)).bfloat16()


def plain_weights(random, experts):
    w13, w2 = numbers(random, experts, 2 * N, K), numbers(random, experts, K, N)
    return dict(w13_weight=w13, w2_weight=w2), w13.double().numpy(), w2.double().numpy()


def fp8_matrix(random, halves, *shape):
    """e4m3 and float32 scales of blocks of each of so many matrices, one above the other; and their values."""
    *outer, rows, columns = shape
    values = torch.from_numpy(random.standard_normal(shape).astype(np.float32)).to(torch.float8_e4m3fn)
    blocks = -(-rows // halves // 128), -(-columns // 128)
    scales = random.uniform(0.1, 0.4, (*outer, halves, *blocks)).astype(np.float32)
    wide = np.repeat(np.repeat(scales, 128, -2)[..., : rows // halves, :], 128, -1)[..., :columns].reshape(shape)
    return values, torch.from_numpy(scales.reshape(*outer, halves * blocks[0], blocks[1])), values.double().numpy() * wide


def fp8_weights(random, experts):
    (w13, s13, dense13), (w2, s2, dense2) = fp8_matrix(random, 2, experts, 2 * N, K), fp8_matrix(random, 1, experts, K, N)
    return dict(w13_weight=w13, w13_weight_scale_inv=s13, w2_weight=w2, w2_weight_scale_inv=s2), dense13, dense2


def nvfp4_matrix(random, halves, *shape):
    *outer, rows, columns = shape
    values = random.integers(0, 256, (*outer, rows, columns // 2), np.uint8)
    scales = random.integers(0x28, 0x38, (*outer, rows, columns // 16), np.uint8)
    global_scales = random.uniform(0.1, 0.9, (*outer, halves)).astype(np.float32)
    dense = definition.nvfp4(values, scales) * np.repeat(global_scales.astype(np.float64), rows // halves, -1)[..., None]
    return torch.from_numpy(values), torch.from_numpy(scales).view(torch.float8_e4m3fn), torch.from_numpy(global_scales), dense


def nvfp4_weights(random, experts):
    (w13, s13, g13, dense13), (w2, s2, g2, dense2) = nvfp4_matrix(random, 2, experts, 2 * N, K), nvfp4_matrix(random, 1, experts, K, N)
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
    `tokens` makes of them, on whichever side of a rounding they came to lie."""
    total, error = np.zeros((len(x), w2.shape[1])), np.zeros((len(x), w2.shape[1]))
    for token, choice in np.argwhere((ids >= 0) & (ids < len(w2))):
        gate, up = np.split(w13[ids[token, choice]], 2)
        exact, slack = definition.dual_gemm(tokens(x[token : token + 1]), gate, up, kind, **constants)
        low, hidden, high = (tokens(one.astype(BF16)) for one in (exact - slack, exact, exact + slack))
        down = w2[ids[token, choice]]
        result, of_sum = definition.product(hidden, down)
        of_hidden = np.maximum(np.abs(low - hidden), np.abs(high - hidden)) @ np.abs(down).T
        weight = float(weights[token, choice])
        total[token] += (weight * result)[0]
        error[token] += (weight * (of_sum + of_hidden) + 2.0**-22 * np.abs(weight * result))[0]
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
    assert record.FILE.read_text() == record.text()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_ids_of_this_process(case):
    one = Routing(case)
    assert (engines.local_ids(torch.from_numpy(one.ids), one.expert_map).numpy() == one.places).all()
    far = torch.tensor([[one.experts, 2**31 - 1, -7]], dtype=torch.int32)
    assert one.expert_map is None or (engines.local_ids(far, one.expert_map) == -1).all()


# vLLM.

CHECKPOINTS = {"fp8": dict(quant_method="fp8", activation_scheme="dynamic", weight_block_size=[128, 128]),
               "nvfp4": dict(quant_method="modelopt", quant_algo="NVFP4", group_size=16)}


def moe_config(one, **changed):
    parallel = types.SimpleNamespace(use_all2all_kernels=changed.pop("use_all2all_kernels", False))
    return types.SimpleNamespace(**{**dict(num_experts=one.experts, num_local_experts=one.local, hidden_dim=K, in_dtype=torch.bfloat16,
                                           intermediate_size_per_partition=N, moe_parallel_config=parallel, has_bias=False,
                                           is_act_and_mul=True, is_lora_enabled=False), **changed})


def vllm_layer(vllm, one, format, config=None, **options):
    quantisation = vllm.config.from_config(CHECKPOINTS[format])
    return vllm.layers["fused_moe"].RoutedExperts("model.layers.3.mlp.experts", config or moe_config(one), quantisation,
                                                  expert_map=one.expert_map, **options)


@torch.inference_mode()
def vllm_result(vllm, one, format, **options):
    layer = vllm_layer(vllm, one, format, **options)
    values, dense13, dense2 = WEIGHTS[format](np.random.default_rng(5), one.local)
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


def mlp_kinds(vllm):
    """Modules as models have them, with what the activation is given as it is, and changed on the way."""
    linear, silu = vllm.layers["linear"].MergedColumnParallelLinear, vllm.layers["activation"].SiluAndMul

    class Gated(torch.nn.Module):
        def __init__(self, config, bias=False, activation=silu):
            super().__init__()
            self.gate_up_proj = linear(K, [N, N], bias, config, "model.layers.0.mlp.gate_up_proj")
            self.down_proj = torch.nn.Identity()
            self.act_fn = activation()

        def forward(self, x):
            x, _ = self.gate_up_proj(x)
            x = self.act_fn(x)
            return self.down_proj(x)

    class Fused(Gated):
        def forward(self, x):
            gate_up, _ = self.gate_up_proj(x)
            x = (lambda act_fn, x, linear: act_fn(x))(self.act_fn, gate_up, self.down_proj)
            return self.down_proj(x)

    class Multiplied(Gated):
        def forward(self, x):
            x, _ = self.gate_up_proj(x)
            x[:, :N] *= 0.5
            x = self.act_fn(x)
            return self.down_proj(x)

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

    return Gated, Fused, Multiplied, Chosen, Read


@pytest.mark.parametrize("format", ["fp8", "nvfp4"])
@pytest.mark.parametrize("kind", [0, 1])
@torch.inference_mode()
def test_vllm_dense_gated_mlp(vllm, format, kind):
    assert "GateUpMethod" in vllm.layers["linear"].WEIGHT_LOADER_V2_SUPPORTED
    module = mlp_kinds(vllm)[kind](vllm.config.from_config(CHECKPOINTS[format]))
    layer = module.gate_up_proj
    random = np.random.default_rng(6)
    if format == "fp8":
        values, scales, dense = fp8_matrix(random, 2, 2 * N, K)
        fill(layer, dict(weight=values, weight_scale_inv=scales))
    else:
        values, scales, global_scales, dense = nvfp4_matrix(random, 2, 2 * N, K)
        fill(layer, dict(weight=values, weight_scale=scales, weight_scale_2=global_scales))
    layer.quant_method.process_weights_after_loading(layer)
    assert not list(module.parameters()) and layer.requires_unquantized_input
    x = numbers(random, 7, K)
    rows = fp8_tokens(floats(x)) if format == "fp8" else floats(x)
    definition.check(floats(module(x)), *definition.dual_gemm(rows, *np.split(dense, 2)))
    assert module(x.reshape(1, 7, K)).shape == (1, 7, N)


@torch.inference_mode()
def test_vllm_leaves_what_is_no_gated_mlp(vllm):
    class Other(vllm.layers["activation"].SiluAndMul):
        pass

    gated, _, *others = mlp_kinds(vllm)
    config = vllm.config.from_config(CHECKPOINTS["fp8"])
    for module in (*(kind(config) for kind in others), gated(config, bias=True), gated(config, activation=Other)):
        layer = module.gate_up_proj
        assert not layer.quant_method.is_fused and type(module.act_fn) in (vllm.layers["activation"].SiluAndMul, Other)
        layer.quant_method.process_weights_after_loading(layer)
        assert layer.is_processed and layer(torch.ones(2, K).bfloat16())[0].shape == (2, 2 * N)


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
    (dict(is_act_and_mul=False), "is_act_and_mul is False"),
    (dict(is_lora_enabled=True), "lora is True"),
    (dict(use_all2all_kernels=True), "use_all2all_kernels is True"),
])
def test_vllm_refuses_configurations(vllm, changed, sentence):
    one = Routing(CASES[0])
    with pytest.raises(thresher.UnsupportedError, match=sentence):
        vllm_layer(vllm, one, "fp8", moe_config(one, **changed))


@pytest.mark.parametrize("options, sentence", [
    (dict(activation="gelu"), "the activation is 'gelu', but thresher has silu, silu with a limit, and gelu_tanh"),
    (dict(apply_router_weight_on_input=True), "apply_router_weight_on_input is True"),
])
def test_vllm_refuses_layers(vllm, options, sentence):
    with pytest.raises(thresher.UnsupportedError, match=sentence):
        vllm_layer(vllm, Routing(CASES[0]), "nvfp4", **options)


@pytest.mark.parametrize("checkpoint, sentence", [
    (dict(quant_method="awq"), "the checkpoint's quantisation is awq, but thresher takes fp8 with blocks of 128 by 128 and NVFP4"),
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
    assert [one.get_name() for one in (vllm.config, *configs)] == ["thresher", "fp8", "modelopt_fp4"]
    assert {one.get_min_capability() for one in (vllm.config, *configs)} == {90}
    vllm.package.register()  # again, as in a process that loads plugins twice
    attention = importlib.import_module("thresher_vllm.attention")
    with pytest.raises(thresher.UnsupportedError, match="takes no keys and values in pages"):
        attention.register()


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


# SGLang.


def quantisation_of(sglang, format, **options):
    kinds = {"plain": lambda: None, "fp8": sglang.layers["quantization.fp8"].Fp8Config,
             "nvfp4": sglang.layers["quantization.modelopt_quant"].ModelOptFp4Config}
    return kinds[format](**options)


def sglang_layer(sglang, one, format="plain", quantisation=None, prefix="model.layers.3.mlp.experts", **options):
    return sglang.layers["moe.fused_moe_triton.layer"].FusedMoE(
        one.experts, K, N, 3, quant_config=quantisation or quantisation_of(sglang, format), prefix=prefix, local=one.local, **options)


@torch.inference_mode()
def sglang_result(sglang, one, format, **options):
    layer = sglang_layer(sglang, one, format, **options)
    values, dense13, dense2 = WEIGHTS[format](np.random.default_rng(5), one.local)
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
    (dict(is_gated=False), "is_gated is False, but thresher computes experts with is_gated True alone"),
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


@pytest.mark.parametrize("engine, version", [("vllm", "0.32.0"), ("vllm", "0.33.1"), ("sglang", "0.5.24")])
def test_another_version_of_the_engine_is_refused(monkeypatch, engine, version):
    package = put(monkeypatch, engine, version, {})
    with pytest.raises(thresher.UnsupportedError, match=f"thresher-{engine} is for {engine} .*, but {engine} {version} is installed"):
        package.register()
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
