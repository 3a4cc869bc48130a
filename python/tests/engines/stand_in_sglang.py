"""As much of SGLang 0.5.22 and 0.5.23 as thresher-sglang touches, written anew: who calls a method when, with what, and which parameters are there.

The names, the arguments and the shapes of the parameters are SGLang's; `installed.py` compares them where SGLang is installed.
"""

import types
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import torch
from torch import nn


class Chosen:
    """What the command line of a server chose."""

    def __init__(self):
        self.runner, self.a2a, self.eplb, self.lora = "auto", "none", False, False


def modules(chosen: Chosen) -> dict[str, types.ModuleType]:
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

    class Backend(NamedTuple):
        value: str

    names: set[str] = set()
    factories: dict[str, Any] = {}

    def resolve_moe_runner_backend(name):
        assert name in names
        return Backend(name)

    def register_moe_runner_core(backend_name, factory):
        assert backend_name not in factories
        names.add(backend_name)
        factories[backend_name] = factory

    @dataclass
    class MoeRunnerConfig:
        num_experts: int
        num_local_experts: int
        hidden_size: int
        intermediate_size_per_partition: int
        layer_id: int = 3
        params_dtype: torch.dtype = torch.bfloat16
        activation: str = "silu"
        is_gated: bool = True
        apply_router_weight_on_input: bool = False
        no_combine: bool = False
        routed_scaling_factor: float | None = None
        gemm1_alpha: float | None = None
        gemm1_clamp_limit: float | None = None
        swiglu_limit: float | None = None
        gate_up_interleaved: bool = True

    class MoeQuantInfo:
        pass

    class DispatchMoeRunnerCore:
        def __init__(self, config):
            self.config = config

    class MoeRunner:
        def __init__(self, runner_backend, config, lora_enabled=False):
            self.runner_backend, self.config = runner_backend, config
            self.runner_core = factories[runner_backend.value](config)

        def run(self, dispatch_output, quant_info, lora_info=None):
            assert isinstance(self.runner_core, DispatchMoeRunnerCore) and isinstance(quant_info, MoeQuantInfo)
            return self.runner_core.run_from_dispatch(dispatch_output, quant_info, self.config, hooks=lora_info)

    class Format(Enum):
        STANDARD = "standard"
        DEEPEP_LL = "deepep_ll"

        def is_standard(self):
            return self is Format.STANDARD

    class StandardDispatchOutput(NamedTuple):
        hidden_states: torch.Tensor
        hidden_states_scale: torch.Tensor | None
        topk_output: Any
        format: Format = Format.STANDARD

    class StandardCombineInput(NamedTuple):
        hidden_states: torch.Tensor

    class StandardTopKOutput(NamedTuple):
        topk_weights: torch.Tensor
        topk_ids: torch.Tensor
        router_logits: torch.Tensor

    class BypassedTopKOutput(NamedTuple):
        router_logits: torch.Tensor

    class TopKOutputChecker:
        @staticmethod
        def format_is_standard(topk_output):
            return isinstance(topk_output, StandardTopKOutput)

    class FusedMoEMethodBase:
        runner = None

    class UnquantizedFusedMoEMethod(FusedMoEMethodBase):
        def create_weights(self, layer, num_experts, hidden_size, intermediate_size_per_partition, params_dtype, with_bias=False,
                           **extra_weight_attrs):
            e, n, k = num_experts, intermediate_size_per_partition, hidden_size
            w = 2 if layer.moe_runner_config.is_gated else 1
            parameters(layer, w13_weight=((e, w * n, k), params_dtype), w2_weight=((e, k, n), params_dtype))

    class Fp8MoEMethod(FusedMoEMethodBase):
        def __init__(self, quant_config):
            self.quant_config = quant_config

        def create_weights(self, layer, num_experts, hidden_size, intermediate_size_per_partition, params_dtype, with_bias=False,
                           **extra_weight_attrs):
            e, n, k = num_experts, intermediate_size_per_partition, hidden_size
            w = 2 if layer.moe_runner_config.is_gated else 1
            block = self.quant_config.weight_block_size[0]
            parameters(layer, w13_weight=((e, w * n, k), torch.float8_e4m3fn), w2_weight=((e, k, n), torch.float8_e4m3fn),
                       w13_weight_scale_inv=((e, w * -(-n // block), -(-k // block)), torch.float32),
                       w2_weight_scale_inv=((e, -(-k // block), -(-n // block)), torch.float32))

    class ModelOptNvFp4FusedMoEMethod(FusedMoEMethodBase):
        def __init__(self, quant_config):
            raise ValueError("no NVFP4 with this runner on a Hopper GPU")

        def create_weights(self, layer, num_experts, hidden_size, intermediate_size_per_partition, params_dtype, **extra_weight_attrs):
            e, n, k = num_experts, intermediate_size_per_partition, hidden_size
            w = 2 if layer.moe_runner_config.is_gated else 1
            assert not self.enable_flashinfer_trtllm_moe and self.quant_config.group_size == 16
            parameters(layer, w13_weight=((e, w * n, k // 2), torch.uint8), w2_weight=((e, k, n // 2), torch.uint8),
                       w13_weight_scale=((e, w * n, k // 16), torch.float8_e4m3fn), w2_weight_scale=((e, k, n // 16), torch.float8_e4m3fn),
                       w13_blockscale_swizzled=((e, w * n, k // 16), torch.float8_e4m3fn),
                       w2_blockscale_swizzled=((e, k, n // 16), torch.float8_e4m3fn),
                       w13_weight_scale_2=((e, 2) if w == 2 else (e,), torch.float32), w2_weight_scale_2=((e,), torch.float32),
                       w13_input_scale=((e, w), torch.float32), w2_input_scale=((e,), torch.float32))

    class Fp8Config:
        def __init__(self, weight_block_size=(128, 128), *, use_mxfp8=False, is_fp4_experts=False, ignored_layers=()):
            self.weight_block_size, self.use_mxfp8, self.is_fp4_experts = weight_block_size, use_mxfp8, is_fp4_experts
            self.is_checkpoint_fp8_serialized, self.ignored_layers, self.packed_modules_mapping = True, ignored_layers, {}

        def get_name(self):
            return "fp8"

    class ModelOptFp4Config:
        is_checkpoint_nvfp4_serialized, group_size = True, 16

        def __init__(self, exclude_modules=(), is_awq=False):
            self.exclude_modules, self.is_awq = exclude_modules, is_awq

        def get_name(self):
            return "modelopt_fp4"

        def is_layer_excluded(self, prefix):
            return prefix in self.exclude_modules

    class OtherConfig:
        def get_name(self):
            return "awq"

    class FusedMoE(nn.Module):
        def __init__(self, num_experts, hidden_size, intermediate_size, layer_id, quant_config=None, prefix="", with_bias=False,
                     quant_method=None, local=None, fuses_factor=False, **config):
            super().__init__()
            assert quant_method is not None, "no runner was chosen"
            self.layer_name, self.num_local_experts = prefix, local or num_experts
            self.moe_runner_config = MoeRunnerConfig(num_experts, self.num_local_experts, hidden_size, intermediate_size, layer_id, **config)
            self.quant_method = quant_method
            quant_method.create_weights(layer=self, num_experts=self.num_local_experts, hidden_size=hidden_size,
                                        intermediate_size_per_partition=intermediate_size, params_dtype=self.moe_runner_config.params_dtype,
                                        weight_loader=None, with_bias=with_bias, moe_intermediate_size=intermediate_size)
            quant_method.create_moe_runner(self, self.moe_runner_config)
            assert quant_method.get_moe_runner_backend(self).value == chosen.runner
            assert quant_method.get_moe_routing_method_type(self, None) is None
            self.should_fuse_routed_scaling_factor_in_topk = fuses_factor

        def run_moe_core(self, dispatch_output):
            return self.quant_method.apply(layer=self, dispatch_output=dispatch_output)

    class LinearMethodBase:
        pass

    class UnquantizedLinearMethod(LinearMethodBase):
        pass

    class Fp8LinearMethod(LinearMethodBase):
        def __init__(self, quant_config):
            self.quant_config, self.use_mxfp8 = quant_config, quant_config.use_mxfp8
            self.block_quant = self.use_mxfp8 or quant_config.weight_block_size is not None
            self.is_checkpoint_fp8_serialized = quant_config.is_checkpoint_fp8_serialized

        def create_weights(self, layer, input_size_per_partition, output_partition_sizes, input_size, output_size, params_dtype,
                           skip_block_quant_check=False, **extra_weight_attrs):
            n, k = sum(output_partition_sizes), input_size_per_partition
            parameters(layer, weight=((n, k), torch.float8_e4m3fn),
                       weight_scale_inv=((sum(-(-one // 128) for one in output_partition_sizes), -(-k // 128)), torch.float32))

    class ModelOptFp4LinearMethod(LinearMethodBase):
        def __init__(self, quant_config):
            self.quant_config = quant_config

        def create_weights(self, layer, input_size_per_partition, output_partition_sizes, input_size, output_size, params_dtype,
                           **extra_weight_attrs):
            n, k = sum(output_partition_sizes), input_size_per_partition
            parameters(layer, weight=((n, k // 2), torch.uint8), weight_scale=((n, k // 16), torch.float8_e4m3fn),
                       weight_scale_2=((len(output_partition_sizes),), torch.float32),
                       input_scale=((len(output_partition_sizes),), torch.float32))

    class LinearBase(nn.Module):
        def __init__(self, input_size, output_size, skip_bias_add=False, params_dtype=None, quant_config=None, prefix=""):
            super().__init__()
            self.skip_bias_add = skip_bias_add
            excluded = () if quant_config is None else getattr(quant_config, "ignored_layers", getattr(quant_config, "exclude_modules", ()))
            of_config = Fp8LinearMethod if isinstance(quant_config, Fp8Config) else ModelOptFp4LinearMethod
            kind = UnquantizedLinearMethod if prefix in excluded else of_config
            self.quant_method = kind() if kind is UnquantizedLinearMethod else kind(quant_config)

    class ReplicatedLinear(LinearBase):
        """Of matrices one above another."""

        def __init__(self, input_size, output_sizes, bias=False, quant_config=None, prefix="", skip_bias_add=False, rank=0):
            super().__init__(input_size, sum(output_sizes), skip_bias_add, torch.bfloat16, quant_config, prefix)
            self.tp_group = types.SimpleNamespace(rank=rank)
            if not isinstance(self.quant_method, UnquantizedLinearMethod):
                self.quant_method.create_weights(layer=self, input_size_per_partition=input_size, output_partition_sizes=output_sizes,
                                                 input_size=input_size, output_size=sum(output_sizes), params_dtype=torch.bfloat16,
                                                 weight_loader=None)
            self.bias = nn.Parameter(torch.zeros(sum(output_sizes)).bfloat16(), requires_grad=False) if bias else None

        def forward(self, x):
            bias = None if self.skip_bias_add or (isinstance(self, RowParallelLinear) and self.tp_group.rank > 0) else self.bias
            return self.quant_method.apply(self, x, bias), self.bias if self.skip_bias_add else None

    class ColumnParallelLinear(ReplicatedLinear):
        pass

    class MergedColumnParallelLinear(ColumnParallelLinear):
        pass

    class QKVParallelLinear(ColumnParallelLinear):
        pass

    class RowParallelLinear(ReplicatedLinear):
        pass

    class HookType(Enum):
        BEFORE = "before"
        AFTER = "after"

    class HookRegistry:
        @staticmethod
        def register(target, hook, hook_type):
            kind = {f"{layers}.moe.fused_moe_triton.layer.FusedMoE.__init__": FusedMoE, f"{layers}.linear.LinearBase.__init__": LinearBase}[target]
            original = kind.__init__

            def before(*args, **kwargs):
                changed = hook(*args, **kwargs)
                args, kwargs = (args, kwargs) if changed is None else changed
                original(*args, **kwargs)

            def after(*args, **kwargs):
                hook(original(*args, **kwargs), *args, **kwargs)

            kind.__init__ = before if hook_type is HookType.BEFORE else after

    choices: list[str] = ["auto", "triton"]
    layers = "sglang.srt.layers"
    for parent in ("sglang", "sglang.srt", "sglang.srt.distributed", "sglang.srt.arg_groups", "sglang.srt.plugins", layers, f"{layers}.moe",
                   f"{layers}.moe.fused_moe_triton", f"{layers}.moe.token_dispatcher", f"{layers}.quantization"):
        module(parent)
    module("sglang.srt.arg_groups.choices", add_moe_runner_backend_choices=choices.extend, MOE_RUNNER_BACKEND_CHOICES=choices)
    module("sglang.srt.plugins.hook_registry", HookRegistry=HookRegistry, HookType=HookType)
    module("sglang.srt.runtime_context", get_exec=lambda: types.SimpleNamespace(moe=types.SimpleNamespace(enable_eplb=chosen.eplb)),
           get_lora=lambda: types.SimpleNamespace(enable_lora=chosen.lora), get_schedule=lambda: types.SimpleNamespace(chunked_prefill_size=8192))
    module("sglang.srt.distributed.utils", get_group_rank_size=lambda group: (group.rank, 2))
    module(f"{layers}.linear", ReplicatedLinear=ReplicatedLinear, ColumnParallelLinear=ColumnParallelLinear,
           MergedColumnParallelLinear=MergedColumnParallelLinear, QKVParallelLinear=QKVParallelLinear, RowParallelLinear=RowParallelLinear,
           WEIGHT_LOADER_V2_SUPPORTED=["Fp8LinearMethod"])
    module(f"{layers}.quantization.base_config", LinearMethodBase=LinearMethodBase)
    module(f"{layers}.moe.fused_moe_triton.layer", FusedMoE=FusedMoE)
    module(f"{layers}.moe.moe_runner", MoeRunner=MoeRunner, MoeRunnerConfig=MoeRunnerConfig, register_moe_runner_core=register_moe_runner_core)
    module(f"{layers}.moe.moe_runner.base", DispatchMoeRunnerCore=DispatchMoeRunnerCore, MoeQuantInfo=MoeQuantInfo)
    module(f"{layers}.moe.token_dispatcher.standard", StandardCombineInput=StandardCombineInput,
           StandardDispatchOutput=StandardDispatchOutput, Format=Format)
    module(f"{layers}.moe.topk", TopKOutputChecker=TopKOutputChecker, StandardTopKOutput=StandardTopKOutput, BypassedTopKOutput=BypassedTopKOutput)
    module(f"{layers}.moe.utils", get_moe_a2a_backend=lambda: Backend(chosen.a2a), get_moe_runner_backend=lambda: Backend(chosen.runner),
           resolve_moe_runner_backend=resolve_moe_runner_backend)
    module(f"{layers}.quantization.fp8", Fp8Config=Fp8Config, Fp8MoEMethod=Fp8MoEMethod, Fp8LinearMethod=Fp8LinearMethod)
    module(f"{layers}.quantization.modelopt_quant", ModelOptFp4Config=ModelOptFp4Config, ModelOptNvFp4FusedMoEMethod=ModelOptNvFp4FusedMoEMethod,
           ModelOptFp4LinearMethod=ModelOptFp4LinearMethod)
    module(f"{layers}.quantization.unquant", UnquantizedFusedMoEMethod=UnquantizedFusedMoEMethod, OtherConfig=OtherConfig)
    module(f"{layers}.quantization.utils", is_layer_skipped=lambda prefix, ignored, fused_mapping: prefix in ignored)
    return made
