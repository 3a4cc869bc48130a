"""As much of vLLM 0.32.0 and 0.33.0 as thresher-vllm touches, written anew: who calls a method when, with what, and which parameters are there.

The names, the arguments and the shapes of the parameters are vLLM's; `installed.py` compares them where vLLM is installed.
"""

import importlib
import types
from dataclasses import dataclass
from enum import Enum

import torch
from torch import nn


def modules() -> dict[str, types.ModuleType]:
    """By name; made anew in each call, so that what a test registers is gone in the next."""
    made: dict[str, types.ModuleType] = {}

    def module(name: str, **members) -> types.ModuleType:
        found = made.setdefault(name, types.ModuleType(name))
        found.__path__ = []
        vars(found).update(members)
        return found

    def parameters(layer, **shapes) -> None:
        for name, (shape, dtype) in shapes.items():
            layer.register_parameter(name, nn.Parameter(torch.empty(shape, dtype=dtype), requires_grad=False))

    class QuantizationConfig:
        def __init__(self):
            self.packed_modules_mapping = {}

    class LinearMethodBase:
        pass

    class UnquantizedLinearMethod(LinearMethodBase):
        pass

    class _Linear(LinearMethodBase):
        """The method of a quantised checkpoint: computes from what it finds after loading."""

        def process_weights_after_loading(self, layer):
            layer.is_processed = True

        def apply(self, layer, x, bias=None):
            assert layer.is_processed
            return torch.cat([x.float().sum(-1, keepdim=True)] * sum(layer.output_sizes), -1).to(x.dtype)

    class Fp8LinearMethod(_Linear):
        def create_weights(self, layer, input_size_per_partition, output_partition_sizes, input_size, output_size, params_dtype,
                           **extra_weight_attrs):
            n, k = sum(output_partition_sizes), input_size_per_partition
            parameters(layer, weight=((n, k), torch.float8_e4m3fn),
                       weight_scale_inv=((sum(-(-one // 128) for one in output_partition_sizes), -(-k // 128)), torch.float32))

    class ModelOptLinearMethod(_Linear):
        def create_weights(self, layer, input_size_per_partition, output_partition_sizes, input_size, output_size, params_dtype,
                           **extra_weight_attrs):
            n, k = sum(output_partition_sizes), input_size_per_partition
            parameters(layer, weight=((n, k // 2), torch.uint8), weight_scale=((n, k // 16), torch.float8_e4m3fn),
                       weight_scale_2=((len(output_partition_sizes),), torch.float32),
                       input_scale=((len(output_partition_sizes),), torch.float32))

    class CompressedTensorsW4A4Mxfp4:
        pass

    class CompressedTensorsLinearMethod(_Linear):
        """Weights are the business of the layer's scheme."""

        def create_weights(self, layer, input_size_per_partition, output_partition_sizes, input_size, output_size, params_dtype,
                           **extra_weight_attrs):
            assert isinstance(layer.scheme, CompressedTensorsW4A4Mxfp4)
            n, k = sum(output_partition_sizes), input_size_per_partition
            parameters(layer, weight_packed=((n, k // 2), torch.uint8), weight_scale=((n, k // 32), torch.uint8))

    class CompressedTensorsLinearTransformMethod(LinearMethodBase):
        """Of a layer whose tokens are turned first."""

    class LinearBase(nn.Module):
        pass

    class ReplicatedLinear(LinearBase):
        """Of matrices one above another."""

        def __init__(self, input_size, output_sizes, bias=False, quant_config=None, prefix="", skip_bias_add=False, tp_rank=0):
            super().__init__()
            self.output_sizes, self.gather_output, self.skip_bias_add, self.tp_rank = output_sizes, False, skip_bias_add, tp_rank
            self.quant_method = quant_config.get_quant_method(self, prefix)
            self.quant_method.create_weights(layer=self, input_size_per_partition=input_size, output_partition_sizes=output_sizes,
                                             input_size=input_size, output_size=sum(output_sizes), params_dtype=torch.bfloat16,
                                             weight_loader=None)
            self.bias = nn.Parameter(torch.zeros(sum(output_sizes)).bfloat16(), requires_grad=False) if bias else None

        def given_bias(self):
            return None if self.skip_bias_add else self.bias

        def forward(self, x):
            return self.quant_method.apply(self, x, self.given_bias()), self.bias if self.skip_bias_add else None

    class ColumnParallelLinear(ReplicatedLinear):
        pass

    class MergedColumnParallelLinear(ColumnParallelLinear):
        pass

    class QKVParallelLinear(ColumnParallelLinear):
        pass

    class RowParallelLinear(ReplicatedLinear):
        input_is_parallel = True

        def given_bias(self):
            return None if self.tp_rank > 0 else super().given_bias()

    class SiluAndMul(nn.Module):
        def forward(self, x):
            gate, up = x.chunk(2, -1)
            return nn.functional.silu(gate) * up

    class FusedMoEMethodBase:
        def __init__(self, moe):
            self.moe = moe
            self.moe_quant_config = self.moe_kernel = None

        def maybe_roundup_sizes(self, hidden_size, intermediate_size_per_partition, act_dtype, moe_parallel_config):
            return hidden_size, intermediate_size_per_partition

    class Fp8MoEMethod(FusedMoEMethodBase):
        def __init__(self, quant_config, layer):
            raise AssertionError("no kernel of vLLM's is chosen")

        def create_weights(self, layer, num_experts, hidden_size, intermediate_size_per_partition, params_dtype, **extra_weight_attrs):
            e, n, k, w = num_experts, intermediate_size_per_partition, hidden_size, 2 if self.moe.is_act_and_mul else 1
            assert self.block_quant and self.weight_scale_refine is None
            block = self.weight_block_size[0]
            parameters(layer, w13_weight=((e, w * n, k), torch.float8_e4m3fn), w2_weight=((e, k, n), torch.float8_e4m3fn))
            for name, shape in (("w13", (e, w * -(-n // block), -(-k // block))), ("w2", (e, -(-k // block), -(-n // block)))):
                parameters(layer, **{f"{name}_{self.weight_scale_name}": (shape, torch.float32)})

    class ModelOptNvFp4FusedMoE(FusedMoEMethodBase):
        def __init__(self, quant_config, moe_config):
            raise AssertionError("no kernel of vLLM's is chosen")

        def create_weights(self, layer, num_experts, hidden_size, intermediate_size_per_partition, params_dtype, **extra_weight_attrs):
            e, n, k, w = num_experts, intermediate_size_per_partition, hidden_size, 2 if self.moe.is_act_and_mul else 1
            assert self.quant_config.group_size == 16 and not self.use_global_sf
            parameters(layer, w13_weight=((e, w * n, k // 2), torch.uint8), w2_weight=((e, k, n // 2), torch.uint8),
                       w13_weight_scale=((e, w * n, k // 16), torch.float8_e4m3fn), w2_weight_scale=((e, k, n // 16), torch.float8_e4m3fn),
                       w13_weight_scale_2=((e, w), torch.float32), w2_weight_scale_2=((e,), torch.float32),
                       w13_input_scale=((e, w), torch.float32), w2_input_scale=((e,), torch.float32))

    class GptOssMxfp4MoEMethod(FusedMoEMethodBase):
        def __init__(self, moe):
            raise AssertionError("no kernel of vLLM's is chosen")

        def create_weights(self, layer, num_experts, hidden_size, intermediate_size_per_partition, params_dtype, **extra_weight_attrs):
            e, n, k = num_experts, intermediate_size_per_partition, hidden_size
            for name, rows, columns in (("w13", 2 * n, k), ("w2", k, n)):
                parameters(layer, **{f"{name}_weight": ((e, rows, columns // 2), torch.uint8),
                                     f"{name}_weight_scale": ((e, rows, columns // 32), torch.uint8), f"{name}_bias": ((e, rows), torch.bfloat16)})

    class MoEActivation(Enum):
        SILU = "silu"
        GELU = "gelu"
        SWIGLUOAI = "swigluoai"
        SWIGLUOAI_UNINTERLEAVE = "swigluoai_uninterleave"
        SITU = "situ"
        RELU2 = "relu2"
        RELU2_NO_MUL = "relu2_no_mul"

    class RoutedExperts(nn.Module):
        def __init__(self, layer_name, moe_config, quant_config, *, expert_map=None, activation="silu", swiglu_limit=None, swiglu_alpha=None,
                     swiglu_beta=None, apply_router_weight_on_input=False):
            super().__init__()
            self.layer_name, self.moe_config, self.activation = layer_name, moe_config, MoEActivation(activation)
            self.swiglu_limit, self.swiglu_alpha, self.swiglu_beta = swiglu_limit, swiglu_alpha, swiglu_beta
            self.apply_router_weight_on_input = apply_router_weight_on_input
            self.register_buffer("expert_map", expert_map, persistent=False)
            self.quant_method = quant_config.get_quant_method(self, layer_name)
            if not isinstance(self.quant_method, FusedMoEMethodBase):
                return
            self.quant_method.create_weights(layer=self, num_experts=moe_config.num_local_experts, hidden_size=moe_config.hidden_dim,
                                             intermediate_size_per_partition=moe_config.intermediate_size_per_partition,
                                             params_dtype=moe_config.in_dtype, weight_loader=None, global_num_experts=moe_config.num_experts)

        def forward_modular(self, x, topk_weights, topk_ids):
            assert self.quant_method.get_fused_moe_quant_config(self) is None and self.quant_method.moe_kernel is None
            return self.quant_method.apply(layer=self, x=x, topk_weights=topk_weights, topk_ids=topk_ids, shared_experts=None,
                                           shared_experts_input=None)

    class Fp8Config(QuantizationConfig):
        def __init__(self, weight_block_size, ignored_layers, store_dtype):
            super().__init__()
            self.weight_block_size, self.store_dtype, self.ignored_layers = weight_block_size, store_dtype, ignored_layers
            self.ignored_layers_match_mode = "exact"

        @classmethod
        def get_name(cls):
            return "fp8"

        @classmethod
        def get_supported_act_dtypes(cls):
            return [torch.bfloat16, torch.half]

        @classmethod
        def from_config(cls, config):
            return cls(config.get("weight_block_size"), config.get("ignored_layers", []), config.get("store_dtype"))

        def get_quant_method(self, layer, prefix):
            if prefix in self.ignored_layers:
                return UnquantizedLinearMethod()
            return Fp8LinearMethod() if isinstance(layer, ReplicatedLinear) else Fp8MoEMethod(self, layer)

    class ModelOptNvFp4Config(QuantizationConfig):
        def __init__(self, group_size, exclude_modules):
            super().__init__()
            self.group_size, self.exclude_modules = group_size, exclude_modules

        def get_name(self):
            return "modelopt_fp4"

        @staticmethod
        def get_config_filenames():
            return ["hf_quant_config.json"]

        @classmethod
        def from_config(cls, config):
            return cls(config.get("group_size", 16), config.get("ignore", []))

        def is_layer_excluded(self, prefix):
            return prefix in self.exclude_modules

        def get_quant_method(self, layer, prefix):
            if self.is_layer_excluded(prefix):
                return UnquantizedLinearMethod() if isinstance(layer, ReplicatedLinear) else None
            return ModelOptLinearMethod() if isinstance(layer, ReplicatedLinear) else ModelOptNvFp4FusedMoE(self, layer.moe_config)

    class GptOssMxfp4Config(QuantizationConfig):
        @classmethod
        def get_name(cls):
            return "gpt_oss_mxfp4"

        @classmethod
        def from_config(cls, config):
            return cls()

        def get_quant_method(self, layer, prefix):
            return UnquantizedLinearMethod() if isinstance(layer, ReplicatedLinear) else None

    class CompressedTensorsConfig(QuantizationConfig):
        def __init__(self, scheme, is_turned):
            super().__init__()
            self.scheme, self.is_turned = scheme, is_turned

        def get_name(self):
            return "compressed-tensors"

        @classmethod
        def from_config(cls, config):
            return cls(CompressedTensorsW4A4Mxfp4 if config["format"] == "mxfp4-pack-quantized" else type("CompressedTensorsW4A16", (), {}),
                       "transform_config" in config)

        def get_quant_method(self, layer, prefix):
            if isinstance(layer, RoutedExperts):
                return type("CompressedTensorsW4A4Mxfp4MoEMethod", (FusedMoEMethodBase,), {})(layer.moe_config)
            if prefix.endswith("lm_head"):
                return UnquantizedLinearMethod()
            layer.scheme = self.scheme()
            return (CompressedTensorsLinearTransformMethod if self.is_turned else lambda: CompressedTensorsLinearMethod())()

    class UnquantizedFusedMoEMethod(FusedMoEMethodBase):
        pass

    registered: dict[str, type] = {}

    def register_quantization_config(name):
        return lambda kind: registered.setdefault(name, kind)

    def is_layer_skipped(prefix, ignored_layers, fused_mapping, match_mode):
        return prefix in ignored_layers

    supported: list[str] = []

    def register_weight_loader_v2_supported_method(kind):
        supported.append(kind.__name__)
        return kind

    add_attention(module)
    layers = "vllm.model_executor.layers"
    for parent in ("vllm", "vllm.model_executor", layers, f"{layers}.quantization.utils"):
        module(parent)
    module("vllm.config", get_current_vllm_config_or_none=lambda: None)
    module(f"{layers}.activation", SiluAndMul=SiluAndMul)
    module(f"{layers}.linear", LinearBase=LinearBase, LinearMethodBase=LinearMethodBase, UnquantizedLinearMethod=UnquantizedLinearMethod,
           ReplicatedLinear=ReplicatedLinear, ColumnParallelLinear=ColumnParallelLinear, MergedColumnParallelLinear=MergedColumnParallelLinear,
           QKVParallelLinear=QKVParallelLinear, RowParallelLinear=RowParallelLinear, WEIGHT_LOADER_V2_SUPPORTED=supported,
           register_weight_loader_v2_supported_method=register_weight_loader_v2_supported_method)
    module(f"{layers}.fused_moe", RoutedExperts=RoutedExperts, UnquantizedFusedMoEMethod=UnquantizedFusedMoEMethod)
    module(f"{layers}.fused_moe.fused_moe_method_base", FusedMoEMethodBase=FusedMoEMethodBase)
    module(f"{layers}.quantization", register_quantization_config=register_quantization_config, registered=registered)
    module(f"{layers}.quantization.base_config", QuantizationConfig=QuantizationConfig)
    compressed = f"{layers}.quantization.compressed_tensors"
    module(compressed)
    module(f"{compressed}.compressed_tensors", CompressedTensorsConfig=CompressedTensorsConfig,
           CompressedTensorsLinearMethod=CompressedTensorsLinearMethod)
    module(f"{compressed}.schemes", CompressedTensorsW4A4Mxfp4=CompressedTensorsW4A4Mxfp4)
    module(f"{layers}.quantization.fp8", Fp8Config=Fp8Config, Fp8MoEMethod=Fp8MoEMethod)
    module(f"{layers}.quantization.modelopt", ModelOptNvFp4Config=ModelOptNvFp4Config, ModelOptNvFp4FusedMoE=ModelOptNvFp4FusedMoE)
    module(f"{layers}.quantization.mxfp4", GptOssMxfp4Config=GptOssMxfp4Config, GptOssMxfp4MoEMethod=GptOssMxfp4MoEMethod)
    module(f"{layers}.quantization.utils.quant_utils", is_layer_skipped=is_layer_skipped)
    return made


def add_attention(module) -> None:
    """module: makes a module of that name and members."""

    class AttentionType(str, Enum):
        DECODER = "decoder"
        ENCODER = "encoder"
        ENCODER_ONLY = "encoder_only"
        ENCODER_DECODER = "encoder_decoder"

    @dataclass(frozen=True)
    class MultipleOf:
        base: int

    class AttentionCGSupport(Enum):
        ALWAYS = 3
        NEVER = 0

    class AttentionBackend:
        @classmethod
        def full_cls_name(cls):
            return cls.__module__, cls.__qualname__

        @classmethod
        def supports_combination(cls, head_size, dtype, kv_cache_dtype, block_size, use_mla, has_sink, use_sparse, use_mm_prefix,
                                 device_capability):
            return None

    class AttentionMetadata:
        pass

    @dataclass
    class CommonAttentionMetadata:
        query_start_loc: torch.Tensor
        query_start_loc_cpu: torch.Tensor
        seq_lens: torch.Tensor
        num_reqs: int
        num_actual_tokens: int
        max_query_len: int
        max_seq_len: int
        block_table_tensor: torch.Tensor
        slot_mapping: torch.Tensor
        causal: object = True

    class _Of:
        def __class_getitem__(cls, metadata):
            return cls

    class AttentionMetadataBuilder(_Of):
        _cudagraph_support = AttentionCGSupport.NEVER

        def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
            pass

        def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
            raise NotImplementedError

    class AttentionImpl(_Of):
        supports_quant_query_input = False

        def __init__(self, num_heads, head_size, scale, num_kv_heads=None, alibi_slopes=None, sliding_window=None, kv_cache_dtype="auto",
                     logits_soft_cap=None, attn_type=AttentionType.DECODER, kv_sharing_target_layer_name=None):
            raise NotImplementedError

        def forward(self, layer, query, key, value, kv_cache, attn_metadata, output, output_scale=None, output_block_scale=None):
            raise NotImplementedError

    overrides: dict[Enum, str] = {}

    class AttentionBackendEnum(Enum):
        FLASH_ATTN = "vllm.v1.attention.backends.flash_attn.FlashAttentionBackend"
        CUSTOM = None

        def is_overridden(self):
            return self in overrides

        def get_path(self):
            return overrides.get(self, self.value)

        def get_class(self):
            where, _, name = self.get_path().rpartition(".")
            return getattr(importlib.import_module(where), name)

    def register_backend(backend, class_path=None, is_mamba=False):
        overrides[backend] = class_path

    def reshape_and_cache_flash(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
        """Tokens beyond the slots, and those whose slot is negative, go nowhere."""
        is_kept = slot_mapping >= 0
        slots = slot_mapping[is_kept]
        for new, cache, scale in ((key, key_cache, k_scale), (value, value_cache, v_scale)):
            rows = new[:len(slot_mapping)][is_kept]
            if kv_cache_dtype.startswith("fp8"):
                rows = (rows.float() / scale.reshape(-1, 1)).to(torch.float8_e4m3fn).view(torch.uint8)
            cache[slots // cache.shape[1], slots % cache.shape[1]] = rows

    class Attention(nn.Module):
        """A layer with its backend, which vLLM chooses; its cache is bound to it later."""

        def __init__(self, num_heads, head_size, scale, num_kv_heads=None, alibi_slopes=None, use_alibi_sqrt=None, cache_config=None,
                     quant_config=None, logits_soft_cap=None, per_layer_sliding_window=None, prefix="", attn_type=AttentionType.DECODER,
                     kv_sharing_target_layer_name=None, **extra_impl_args):
            super().__init__()
            self.attn_backend = AttentionBackendEnum.CUSTOM.get_class()
            assert AttentionBackendEnum[self.attn_backend.get_name()] is AttentionBackendEnum.CUSTOM
            self.impl = self.attn_backend.get_impl_cls()(
                num_heads, head_size, scale, num_kv_heads, alibi_slopes, per_layer_sliding_window, cache_config.cache_dtype,
                logits_soft_cap, attn_type, kv_sharing_target_layer_name, **extra_impl_args)
            self.shape, self.kv_shape = (num_heads, head_size), (num_kv_heads, head_size)
            self.shares = kv_sharing_target_layer_name is not None
            self.kv_cache = torch.tensor([])
            for name in ("_q_scale", "_k_scale", "_v_scale"):
                self.register_buffer(name, torch.tensor(1.0))

        def process_weights_after_loading(self, act_dtype):
            self.impl.process_weights_after_loading(act_dtype)

        def forward(self, query, key, value, attn_metadata, slot_mapping):
            """vLLM has the last two in the context of a step."""
            output = torch.full((query.shape[0], *self.shape), torch.nan, dtype=query.dtype)
            if key is not None:
                key, value = key.view(-1, *self.kv_shape), value.view(-1, *self.kv_shape)
            writes = not self.attn_backend.forward_includes_kv_cache_update and not self.shares and key is not None
            if writes and slot_mapping is not None:
                self.impl.do_kv_cache_update(self, key, value, self.kv_cache, slot_mapping)
            self.impl.forward(self, query.view(-1, *self.shape), key, value, self.kv_cache, attn_metadata, output=output, output_scale=None,
                              output_block_scale=None)
            return output.view(query.shape[0], -1)

    for parent in ("vllm.v1", "vllm.v1.attention", "vllm.v1.attention.backends"):
        module(parent)
    module("vllm._custom_ops", reshape_and_cache_flash=reshape_and_cache_flash)
    module("vllm.model_executor.layers.attention", Attention=Attention)
    module("vllm.v1.attention.backend", AttentionBackend=AttentionBackend, AttentionCGSupport=AttentionCGSupport, AttentionImpl=AttentionImpl,
           AttentionMetadata=AttentionMetadata, AttentionMetadataBuilder=AttentionMetadataBuilder, AttentionType=AttentionType,
           CommonAttentionMetadata=CommonAttentionMetadata, MultipleOf=MultipleOf)
    module("vllm.v1.attention.backends.registry", AttentionBackendEnum=AttentionBackendEnum, register_backend=register_backend)
