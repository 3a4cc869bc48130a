"""Where an engine is installed, also without a GPU: its own plugin loader takes the package, the stand-in of the tests has its names,
arguments and parameters, and the package's methods compute with the weights that the engine's own create.

usage: python installed.py vllm|sglang
"""

import dataclasses
import importlib
import importlib.metadata
import inspect
import json
import sys
import types

import record
import stand_in_sglang
import stand_in_vllm
import torch
from thresher.torch import attention, engines
from torch import nn

EXPERTS, N, K = 4, 128, 256
WEIGHTS = dict(num_experts=EXPERTS, hidden_size=K, intermediate_size_per_partition=N, params_dtype=torch.bfloat16)
FP8 = dict(quant_method="fp8", activation_scheme="dynamic", weight_block_size=[128, 128])
NVFP4 = dict(quant_method="modelopt", quant_algo="NVFP4", group_size=16)
MXFP4 = dict(quant_method="gpt_oss_mxfp4")
COMPRESSED = dict(quant_method="compressed-tensors", format="mxfp4-pack-quantized", ignore=["lm_head"], config_groups=dict(group_0=dict(
    targets=["Linear"], input_activations=None, format="mxfp4-pack-quantized",
    weights=dict(num_bits=4, type="float", strategy="group", group_size=32, symmetric=True, dynamic=False, scale_dtype="torch.uint8"))))
METHODS = ("create_weights", "apply", "create_moe_runner", "run_from_dispatch", "get_quant_method", "from_config", "build",
           "supports_combination")
IDS = torch.tensor([[0, 1], [2, -1], [1, 0]], dtype=torch.int32)


def arguments(function) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def expect_like(modules: dict, own: tuple[str, ...]) -> None:
    """Every name of the stand-in is there, and methods that the package is called by, or calls, take those arguments in the engine."""
    for name, stand_in in modules.items():
        real = importlib.import_module(name)
        for member, value in vars(stand_in).items():
            if member.startswith("__") or isinstance(value, type(sys)) or member in own:
                continue
            found = getattr(real, member)
            for method in METHODS:
                given = value.__dict__.get(method) if isinstance(value, type) else None
                if given is not None and method in vars(found):
                    given = getattr(value, method)
                    assert arguments(given) == arguments(getattr(found, method)), (name, member, method, arguments(getattr(found, method)))


def filled(layer: nn.Module) -> dict:
    """Some weights, in copies."""
    torch.manual_seed(20261124)
    for parameter in layer.parameters():
        if parameter.dtype == torch.uint8:
            parameter.data.random_(0, 256)
        else:
            parameter.data.copy_(torch.rand(parameter.shape) / 4 + 0.01)
    return {name: parameter.detach().clone() for name, parameter in layer.named_parameters()}


def meant(weights: dict, x: torch.Tensor, routing: torch.Tensor, **activation) -> torch.Tensor:
    """What a layer with these weights is to give."""
    w13, w2 = ([weights[name] for name in (f"{of}_weight", f"{of}_weight_scale_inv", f"{of}_weight_scale", f"{of}_weight_scale_2")
                if name in weights] for of in ("w13", "w2"))
    made = {1: lambda: engines.plain_experts(*w13, *w2, **activation),
            2: lambda: engines.fp8_experts(w13, w2, torch.bfloat16, **activation),
            3: lambda: engines.nvfp4_experts(w13, w2, torch.bfloat16, **activation)}[len(w13)]()
    return made(x, IDS, routing)


def expect_layer(layer: nn.Module, method, stand_in, call, **activation) -> None:
    """The method creates the parameters that the stand-in's does, and computes with them what it is to."""
    parameters = {name: (parameter.shape, parameter.dtype) for name, parameter in layer.named_parameters()}
    assert parameters == {name: (one.shape, one.dtype) for name, one in stand_in.named_parameters()}, parameters
    weights, x, routing = filled(layer), torch.randn(3, K).bfloat16(), torch.rand(3, 2)
    with torch.inference_mode():
        method.process_weights_after_loading(layer)
        assert not list(layer.parameters())
        assert torch.equal(call(x, routing), meant(weights, x, routing, **activation))


def vllm_layer(config, kind, activation: str = "silu", **changed) -> tuple:
    """A layer of experts with what a method asks of it, in one process that has no others."""
    import vllm.distributed.parallel_state as state
    from vllm.model_executor.layers.fused_moe.activation import MoEActivation
    from vllm.model_executor.layers.fused_moe.config import FusedMoEConfig, FusedMoEParallelConfig, RoutingMethodType

    state._TP = types.SimpleNamespace(world_size=1, rank_in_group=0)
    alone = FusedMoEParallelConfig(tp_size=1, pcp_size=1, dp_size=1, ep_size=1, tp_rank=0, pcp_rank=0, dp_rank=0, ep_rank=0, sp_size=1,
                                   use_ep=False, all2all_backend="allgather_reducescatter", enable_eplb=False)
    layer = nn.Module()
    layer.moe_config = FusedMoEConfig(
        num_experts=EXPERTS, experts_per_token=2, hidden_dim=K, intermediate_size=N, num_local_experts=EXPERTS,
        num_logical_experts=EXPERTS, activation=MoEActivation.SILU, device="cpu", routing_method=RoutingMethodType.Default,
        moe_parallel_config=alone, in_dtype=torch.bfloat16, **changed)
    layer.moe_config.activation = MoEActivation(activation)  # by itself it takes none without a gate on a CPU
    layer.layer_name, layer.activation, layer.expert_map = "experts", MoEActivation(activation), None
    layer.swiglu_limit = layer.swiglu_alpha = layer.swiglu_beta = None
    layer.apply_router_weight_on_input = False
    method = kind(*(one for one in (config, layer) if one is not None))
    assert not method.is_monolithic and not method.supports_internal_mk and method.topk_indices_dtype is None
    assert method.maybe_roundup_sizes(K, N, torch.bfloat16, alone) == (K, N)
    method.create_weights(layer=layer, **WEIGHTS, unpadded_hidden_size=K, weight_loader=lambda *_: None, global_num_experts=EXPERTS)
    return layer, method


def vllm_stand_in(modules: dict, kind: str, is_gated: bool = True) -> nn.Module:
    layer = nn.Module()
    method = types.SimpleNamespace(moe=types.SimpleNamespace(is_act_and_mul=is_gated), block_quant=True, weight_scale_refine=None,
                                   weight_block_size=[128, 128], use_global_sf=False,
                                   weight_scale_name="weight_scale_inv", quant_config=types.SimpleNamespace(group_size=16))
    where = {"Fp8": "fp8", "Mod": "modelopt", "Gpt": "mxfp4"}[kind[:3]]
    getattr(modules[f"vllm.model_executor.layers.quantization.{where}"], kind).create_weights(method, layer, **WEIGHTS)
    return layer


def vllm_gpt_oss(modules: dict) -> None:
    from thresher_vllm.experts import Mxfp4Method

    layer, method = vllm_layer(None, Mxfp4Method, "swigluoai", has_bias=True)
    stand_in = vllm_stand_in(modules, "GptOssMxfp4MoEMethod")
    parameters = {name: (parameter.shape, parameter.dtype) for name, parameter in layer.named_parameters()}
    assert parameters == {name: (one.shape, one.dtype) for name, one in stand_in.named_parameters()}, parameters
    assert not method.skip_forward_padding and not method.has_unpadded_output
    for name, parameter in layer.named_parameters():
        parameter.data.copy_(torch.randint(118, 126, parameter.shape) if parameter.dtype == torch.uint8 else torch.randn(parameter.shape))
    parts = [[getattr(layer, f"{of}_{what}").detach().clone() for what in ("weight", "weight_scale", "bias")] for of in ("w13", "w2")]
    x, routing = torch.randn(3, K).bfloat16(), torch.rand(3, 2)
    with torch.inference_mode():
        method.process_weights_after_loading(layer)
        wanted = engines.mxfp4_experts(*parts, torch.bfloat16, activation="swiglu_clamped", alpha=1.702, limit=7.0, up_offset=1.0)(x, IDS, routing)
        assert torch.equal(method.apply(layer, x, routing, IDS), wanted) and not list(layer.parameters())


class NoKernel:
    """In place of a kernel that vLLM chooses for a linear layer, since this machine may have none."""

    def input_quant_key(self):
        return None


def vllm_model(config, make):
    """A part of a model, where vLLM chooses no kernel for its linear layers."""
    import vllm.model_executor.layers.quantization.compressed_tensors.schemes.compressed_tensors_w4a4_mxfp4 as of_mxfp4
    import vllm.model_executor.layers.quantization.fp8 as of_fp8
    import vllm.model_executor.layers.quantization.modelopt as of_modelopt
    from vllm.config import DeviceConfig, VllmConfig, set_current_vllm_config

    of_fp8.init_fp8_linear_kernel = of_modelopt.select_linear_kernel = of_mxfp4.init_mxfp4_linear_kernel = lambda *_, **__: NoKernel()
    of_fp8.is_deep_gemm_supported = lambda: False
    of_fp8.get_current_vllm_config = lambda: types.SimpleNamespace(model_config=types.SimpleNamespace(dtype=torch.bfloat16))
    config.packed_modules_mapping = {"gate_up_proj": ["gate_proj", "up_proj"], "qkv_proj": ["q_proj", "k_proj", "v_proj"]}
    torch.set_default_dtype(torch.bfloat16)
    with set_current_vllm_config(VllmConfig(device_config=DeviceConfig(device="cpu"))):
        module = make()
    torch.set_default_dtype(torch.float32)
    return module


def loaded(layer, ids: list, rows: list[int]) -> types.SimpleNamespace:
    """The layer's parameters, filled by their loaders from one matrix of so many rows for each id, as a checkpoint has them."""
    weights = {}
    for name, parameter in layer.named_parameters():
        parts = []
        for count in rows:
            of_rows = parameter.shape[0] * count // sum(rows)
            shape = parameter.shape[1:] if parameter.dim() == 1 else (of_rows, *parameter.shape[1:])
            least, most = (118, 126) if name == "weight_scale" else (0, 256)  # exponents, and codes of values
            parts.append(torch.randint(least, most, shape, dtype=torch.uint8) if parameter.dtype == torch.uint8 else
                         (torch.rand(shape, dtype=torch.float32) / 4 + 0.01).to(parameter.dtype))
        for id, part in zip(ids, parts):
            parameter.weight_loader(parameter, part, *([] if id is None else [id]))
        weights[name] = torch.stack(parts) if parameter.dim() == 1 else torch.cat([one.view(torch.uint8) for one in parts]).view(parameter.dtype)
    return types.SimpleNamespace(**weights)


def vllm_gated_mlp(config) -> None:
    """A model's own gated MLP."""
    from vllm.model_executor.models.llama import LlamaMLP

    module = vllm_model(config, lambda: LlamaMLP(K, N, "silu", quant_config=config, prefix="model.layers.0.mlp"))
    given, below = loaded(module.gate_up_proj, [0, 1], [N, N]), loaded(module.down_proj, [None], [K])
    x = torch.randn(3, K).bfloat16()
    with torch.inference_mode():
        for layer in (module.gate_up_proj, module.down_proj):
            layer.quant_method.process_weights_after_loading(layer)
        assert not list(module.parameters())
        assert torch.equal(module(x), engines.gated_mlp_of(config.format, given, below, torch.bfloat16)(x))


def vllm_linear_layers(config) -> None:
    """Layers of every kind; queries, keys and values in one."""
    from vllm.model_executor.layers import linear

    heads, kv_heads, width = 4, 2, 64
    rows = [heads * width, kv_heads * width, kv_heads * width]
    prefix = "model.layers.0.self_attn"
    made = [
        (rows, ["q", "k", "v"],
         lambda: linear.QKVParallelLinear(K, width, heads, kv_heads, bias=False, quant_config=config, prefix=f"{prefix}.qkv_proj")),
        ([N], [None], lambda: linear.RowParallelLinear(K, N, bias=False, quant_config=config, prefix=f"{prefix}.o_proj")),
        ([N], [None], lambda: linear.ColumnParallelLinear(K, N, bias=False, quant_config=config, prefix=f"{prefix}.q_b_proj")),
        ([N], [None], lambda: linear.ReplicatedLinear(K, N, bias=False, quant_config=config, prefix=f"{prefix}.q_a_proj")),
    ]
    x = torch.randn(3, K).bfloat16()
    for counts, ids, make in made:
        layer = vllm_model(config, make)
        given = loaded(layer, ids, counts)
        with torch.inference_mode():
            layer.quant_method.process_weights_after_loading(layer)
            assert torch.equal(layer(x)[0], engines.linears_of(config.format, given, counts, torch.bfloat16, None)(x)) and not list(layer.parameters())
    left = vllm_model(config, lambda: linear.ColumnParallelLinear(K, N, bias=False, quant_config=config, prefix=f"{prefix}.kv_b_proj"))
    assert type(left.quant_method).__module__.startswith("vllm.")


def vllm_attention(modules: dict) -> None:
    """Chosen by vLLM's own validation, in a layer of vLLM's own, over a cache that vLLM laid out."""
    from vllm.config import AttentionConfig
    from vllm.platforms.interface import DeviceCapability
    from vllm.v1.attention import backend as interface
    from vllm.v1.attention.backends.registry import AttentionBackendEnum
    from vllm.v1.attention.selector import AttentionSelectorConfig

    stand_in = modules["vllm.v1.attention.backend"]
    fields = ({one.name for one in dataclasses.fields(where.CommonAttentionMetadata)} for where in (stand_in, interface))
    assert next(fields) <= next(fields)
    for name in ("AttentionType", "AttentionCGSupport"):
        assert {one.name: one.value for one in getattr(stand_in, name)}.items() <= {one.name: one.value for one in getattr(interface, name)}.items()
    for kind in ("AttentionImpl", "AttentionMetadataBuilder"):
        assert arguments(getattr(stand_in, kind).__init__) == arguments(getattr(interface, kind).__init__), kind
    assert arguments(stand_in.AttentionImpl.forward) == arguments(interface.AttentionImpl.forward)
    custom = importlib.import_module("vllm._custom_ops")
    assert arguments(modules["vllm._custom_ops"].reshape_and_cache_flash) == arguments(custom.reshape_and_cache_flash)

    assert AttentionConfig(backend="custom").backend is AttentionBackendEnum.CUSTOM
    backend = AttentionBackendEnum.CUSTOM.get_class()
    assert issubclass(backend, interface.AttentionBackend) and backend.__name__ == "ThresherAttentionBackend"
    assert not any(getattr(kind, "__abstractmethods__", None) for kind in (backend, backend.get_impl_cls(), backend.get_builder_cls()))
    assert backend.get_builder_cls().get_cudagraph_support(None, None) is interface.AttentionCGSupport.ALWAYS

    def reasons(capability=(9, 0), **changed) -> list[str]:
        usual = AttentionSelectorConfig(head_size=128, dtype=torch.bfloat16, kv_cache_dtype="auto", block_size=16)
        return backend.validate_configuration(device_capability=DeviceCapability(*capability), **usual._replace(**changed)._asdict())

    for taken in ({}, dict(head_size=64, has_sink=True, has_sliding_window=True), dict(head_size=256, kv_cache_dtype="fp8"),
                  dict(kv_cache_dtype="fp8_e4m3", use_per_head_quant_scales=True), dict(dtype=torch.float16, block_size=None),
                  dict(block_size=528), dict(use_kv_connector=True), dict(use_adaptive_verification=True)):
        assert not reasons(**taken), (taken, reasons(**taken))
    for refused in (dict(head_size=96), dict(head_size=512), dict(dtype=torch.float32), dict(kv_cache_dtype="fp8_e5m2"), dict(kv_cache_dtype="nvfp4"),
                    dict(kv_cache_dtype="float16"), dict(block_size=8), dict(use_mla=True), dict(use_sparse=True), dict(use_mm_prefix=True),
                    dict(attn_type="encoder"), dict(attn_type="encoder_only"), dict(attn_type="encoder_decoder"), dict(use_non_causal=True),
                    dict(use_batch_invariant=True), dict(use_pcp=True), dict(use_dcp=True), dict(use_rswa=True), dict(capability=(8, 9)),
                    dict(capability=(10, 0))):
        assert len(reasons(**refused)) == 1, (refused, reasons(**refused))
    for layout in ("LBNHC", "LBHNC", "BLNHC", "BLHNC", "BHLNC"):
        for cache_dtype in ("auto", "fp8"):
            vllm_attention_layer(modules, backend, layout, cache_dtype)


def vllm_attention_layer(modules: dict, backend, layout: str, cache_dtype: str) -> None:
    """A batch that mixes a chunk of a prefill, decode and drafts. vLLM's operator that writes keys runs on GPUs: here the stand-in's."""
    from thresher_vllm import attention as own
    from vllm.config import CacheConfig, DeviceConfig, VllmConfig, set_current_vllm_config
    from vllm.forward_context import set_forward_context
    from vllm.model_executor.layers.attention import Attention
    from vllm.v1.attention.backend import CommonAttentionMetadata
    from vllm.v1.kv_cache_interface import KVCacheLayout, compute_layer_kv_cache_shape_bytes, compute_layout_strides

    write = own.reshape_and_cache_flash = modules["vllm._custom_ops"].reshape_and_cache_flash
    case, name, (heads, kv_heads, width) = json.loads(record.BATCHES.read_text())[2], "model.layers.0.self_attn.attn", (4, 2, 64)
    cache_config = CacheConfig(block_size=case["page_size"], cache_dtype=cache_dtype)
    config = VllmConfig(device_config=DeviceConfig(device="cpu"), cache_config=cache_config)
    sinks = nn.Parameter(torch.linspace(-1, 2, heads).bfloat16(), requires_grad=False)
    torch.set_default_dtype(torch.bfloat16)
    with set_current_vllm_config(config):
        layer = Attention(heads, width, width**-0.5, kv_heads, cache_config=cache_config, logits_soft_cap=20.0, prefix=name, attn_backend=backend,
                          sinks=sinks)
    torch.set_default_dtype(torch.float32)
    layer.process_weights_after_loading(torch.bfloat16)
    layer.kv_cache_torch_dtype = torch.uint8 if cache_dtype == "fp8" else torch.bfloat16  # without a model it would be float16
    spec = layer.get_kv_cache_spec(config)
    raw = torch.zeros(3 * case["pages"] * spec.page_size_bytes, dtype=torch.int8)
    shape, (of_layer, *strides) = compute_layer_kv_cache_shape_bytes(spec, case["pages"]), compute_layout_strides(
        spec, case["pages"], 3, KVCacheLayout[layout])
    layer.bind_kv_cache(torch.as_strided(raw, shape, strides, of_layer).view(spec.dtype))

    torch.manual_seed(20261124)
    slots, context = torch.tensor(case["slot_mapping"]), torch.tensor(case["context_slots"])
    k, v = (torch.randn(case["pages"] * case["page_size"], kv_heads, width).bfloat16() for _ in range(2))
    q = torch.randn(len(slots), heads * width).bfloat16()
    starts, lengths, table = (torch.tensor(case[one], dtype=torch.int32) for one in ("query_start_loc", "seq_lens", "block_table"))
    common = CommonAttentionMetadata(
        query_start_loc=starts, query_start_loc_cpu=starts, seq_lens=lengths, num_reqs=len(lengths), num_actual_tokens=len(slots),
        max_query_len=int(starts.diff().max()), max_seq_len=int(lengths.max()), block_table_tensor=table, slot_mapping=slots)
    builder = backend.get_builder_cls()(spec, [name], config, torch.device("cpu"))
    with torch.inference_mode():
        layer.impl.do_kv_cache_update(layer, k[context], v[context], layer.kv_cache, context)
        with set_forward_context({name: builder.build_for_cudagraph_capture(common)}, config, slot_mapping={name: slots}):
            result = layer(q, k[slots].flatten(1), v[slots].flatten(1))
        pools = [torch.zeros(case["pages"], case["page_size"], kv_heads, width, dtype=spec.dtype) for _ in range(2)]
        written = torch.cat([context, slots])
        write(k[written], v[written], *pools, written, cache_dtype, layer._k_scale, layer._v_scale)
        meant = attention(q.view(-1, heads, width), *pools, causal=True, scale=width**-0.5, softcap=20.0, cu_seqlens_q=starts, block_table=table,
                          seqused_k=lengths, sinks=sinks.float())
    assert torch.equal(result, meant.flatten(1)), (layout, cache_dtype)


def vllm() -> None:
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS, get_quantization_config

    assert "thresher" in QUANTIZATION_METHODS
    config = get_quantization_config("thresher")
    assert config.override_quantization_method({}, "thresher") == "thresher"
    made = fp8, nvfp4, _, compressed = [config.from_config(one) for one in (FP8, NVFP4, MXFP4, COMPRESSED)]
    assert [type(one).__name__ for one in made] == ["ThresherFp8Config", "ThresherNvfp4Config", "ThresherMxfp4Config", "ThresherCompressedConfig"]
    assert [one.get_name() for one in (config, *made)] == ["thresher", "fp8", "modelopt_fp4", "gpt_oss_mxfp4", "compressed-tensors"]
    from thresher_vllm.gated_mlp import _is_gated_mlp

    for name, kind, expected in (("llama", "LlamaMLP", True), ("qwen2", "Qwen2MLP", True), ("qwen3_moe", "Qwen3MoeMLP", True),
                                 ("deepseek_v2", "DeepseekV2MLP", True), ("falcon_h1", "FalconH1MLP", False)):
        module = importlib.import_module(f"vllm.model_executor.models.{name}")
        assert _is_gated_mlp(getattr(module, kind)) == expected, kind
    modules = stand_in_vllm.modules()
    expect_like(modules, own=("registered",))
    vllm_attention(modules)
    vllm_gpt_oss(modules)
    from thresher_vllm.experts import Fp8Method, ModelOptNvfp4Method

    for given, kind, name in ((fp8, Fp8Method, "Fp8MoEMethod"), (nvfp4, ModelOptNvfp4Method, "ModelOptNvFp4FusedMoE")):
        for activation, changed, wanted in (
                ("silu", {}, {}), ("relu2_no_mul", {}, dict(activation="relu2")),
                ("situ", dict(activation_situ_beta=2.0, activation_situ_linear_beta=3.0), dict(activation="situ", alpha=2.0, limit=3.0))):
            layer, method = vllm_layer(given, kind, activation, **changed)
            expect_layer(layer, method, vllm_stand_in(modules, name, activation != "relu2_no_mul"),
                         lambda x, routing: method.apply(layer=layer, x=x, topk_weights=routing, topk_ids=IDS, shared_experts=None,
                                                         shared_experts_input=None), **wanted)
        vllm_gated_mlp(given)
        vllm_linear_layers(given)
    vllm_gated_mlp(compressed)
    vllm_linear_layers(compressed)


def sglang() -> None:
    from sglang.srt.plugins import load_plugins

    load_plugins()
    from sglang.srt.arg_groups.choices import MOE_RUNNER_BACKEND_CHOICES
    from sglang.srt.layers.linear import LinearBase
    from sglang.srt.layers.moe.fused_moe_triton.layer import FusedMoE
    from sglang.srt.layers.moe.moe_runner import runner
    from sglang.srt.layers.moe.utils import resolve_moe_runner_backend
    from thresher_sglang import experts

    assert "thresher" in MOE_RUNNER_BACKEND_CHOICES and resolve_moe_runner_backend("thresher").value == "thresher"
    assert runner._CUSTOM_RUNNER_CORE_FACTORIES["thresher"] is experts.RunnerCore
    assert experts.RunnerCore(None).runner_backend.value == "thresher"
    assert hasattr(FusedMoE.__init__, "__wrapped__") and hasattr(LinearBase.__init__, "__wrapped__"), "a hook was not applied"
    modules = stand_in_sglang.modules(stand_in_sglang.Chosen())
    expect_like(modules, own=("OtherConfig", "Format"))
    sglang_layers(modules)
    sglang_linear_layers()


def sglang_linear_layers() -> None:
    """Layers of SGLang's own, loaded by its own loaders; queries, keys and values in one."""
    from sglang.srt.layers import linear
    from sglang.srt.layers.quantization.fp8 import Fp8Config
    from sglang.srt.layers.quantization.modelopt_quant import ModelOptFp4Config
    from thresher_sglang import linear as own

    own.get_moe_runner_backend = lambda: types.SimpleNamespace(value="thresher")
    own.get_lora = lambda: types.SimpleNamespace(enable_lora=False)
    linear.get_parallel = lambda: types.SimpleNamespace(tp_group=None, tp_size=1, tp_rank=0)
    own.get_schedule = lambda: types.SimpleNamespace(chunked_prefill_size=8)
    fp8 = Fp8Config(is_checkpoint_fp8_serialized=True, activation_scheme="dynamic", weight_block_size=[128, 128])
    nvfp4 = ModelOptFp4Config(is_checkpoint_nvfp4_serialized=True, group_size=16, exclude_modules=[], packed_modules_mapping={})
    alone = dict(params_dtype=torch.bfloat16, bias=False)
    x = torch.randn(3, K).bfloat16()
    heads, kv_heads, width = 4, 2, 64
    made = [
        ([heads * width, kv_heads * width, kv_heads * width], ["q", "k", "v"],
         lambda config: linear.QKVParallelLinear(K, width, heads, kv_heads, quant_config=config, prefix="a.qkv_proj", **alone)),
        ([N, N], [0, 1], lambda config: linear.MergedColumnParallelLinear(K, [N, N], quant_config=config, prefix="a.gate_up_proj", **alone)),
        ([N], [None], lambda config: linear.RowParallelLinear(K, N, quant_config=config, prefix="a.o_proj", **alone)),
        ([N], [None], lambda config: linear.ReplicatedLinear(K, N, quant_config=config, prefix="a.q_a_proj", **alone)),
    ]
    for config in (fp8, nvfp4):
        for counts, ids, make in made:
            layer = make(config)
            assert isinstance(layer.quant_method, own.ThresherLinearMethod), type(layer.quant_method)
            given = loaded(layer, ids, counts)
            with torch.inference_mode():
                layer.quant_method.process_weights_after_loading(layer)
                meant = engines.linears_of(layer.quant_method.format, given, counts, torch.bfloat16, None)(x)
                assert torch.equal(layer.quant_method.apply(layer, x), meant) and not list(layer.parameters())
        left = linear.ColumnParallelLinear(K, N, quant_config=config, prefix="a.kv_b_proj", **alone)
        assert type(left.quant_method).__module__.startswith("sglang.")


def sglang_layers(modules: dict) -> None:
    from sglang.srt.layers.moe.moe_runner import MoeRunnerConfig
    from sglang.srt.layers.moe.token_dispatcher.standard import StandardDispatchOutput
    from sglang.srt.layers.moe.topk import StandardTopKOutput
    from sglang.srt.layers.quantization.fp8 import Fp8Config
    from sglang.srt.layers.quantization.modelopt_quant import ModelOptFp4Config
    from thresher_sglang import experts

    experts.get_exec = lambda: types.SimpleNamespace(moe=types.SimpleNamespace(enable_eplb=False))  # a server's configuration
    fp8 = Fp8Config(is_checkpoint_fp8_serialized=True, activation_scheme="dynamic", weight_block_size=[128, 128])
    nvfp4 = ModelOptFp4Config(is_checkpoint_nvfp4_serialized=True, group_size=16)
    for config, where, kind in ((None, "unquant", "UnquantizedFusedMoEMethod"), (fp8, "fp8", "Fp8MoEMethod"),
                                (nvfp4, "modelopt_quant", "ModelOptNvFp4FusedMoEMethod")):
        for changed, wanted in (({}, {}), (dict(activation="relu2", is_gated=False), dict(activation="relu2")),
                                (dict(activation="situ", gemm1_alpha=2.0, gemm1_clamp_limit=3.0), dict(activation="situ", alpha=2.0, limit=3.0))):
            method, layer, stand_in = experts.method_of(config, "experts"), nn.Module(), nn.Module()
            layer.moe_runner_config = MoeRunnerConfig(num_experts=EXPERTS, num_local_experts=EXPERTS, hidden_size=K, layer_id=0, top_k=2,
                                                      intermediate_size_per_partition=N, params_dtype=torch.bfloat16, **changed)
            stand_in.moe_runner_config = layer.moe_runner_config
            layer.layer_name, layer.num_experts, layer.num_local_experts = "experts", EXPERTS, EXPERTS
            layer.moe_tp_size, layer.moe_ep_rank, layer.num_fused_shared_experts = 1, 0, 0
            layer.should_fuse_routed_scaling_factor_in_topk = False
            method.create_weights(layer=layer, **WEIGHTS, weight_loader=lambda *_: None, with_bias=False, moe_intermediate_size=N)
            method.create_moe_runner(layer, layer.moe_runner_config)
            given = types.SimpleNamespace(quant_config=config, enable_flashinfer_trtllm_moe=False)
            getattr(modules[f"sglang.srt.layers.quantization.{where}"], kind).create_weights(given, stand_in, **WEIGHTS)
            expect_layer(layer, method, stand_in, lambda x, routing: method.apply(
                layer, StandardDispatchOutput(x, None, StandardTopKOutput(routing, IDS, torch.empty(0)))).hidden_states, **wanted)


if __name__ == "__main__":
    importlib.metadata.version(f"thresher-{sys.argv[1]}")
    {"vllm": vllm, "sglang": sglang}[sys.argv[1]]()
