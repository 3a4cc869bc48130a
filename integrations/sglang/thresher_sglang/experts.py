"""The runner, and the methods that load weights for it.

SGLang asks a layer's quantisation for a method; those of its own know the runners of its own alone. So the methods here load weights
as those do, and a layer is given one of them while the chosen runner is this one (the layer's argument `quant_method`).
"""

import inspect
from dataclasses import dataclass
from typing import Any

from sglang.srt.arg_groups.choices import add_moe_runner_backend_choices
from sglang.srt.layers.moe.fused_moe_triton.layer import FusedMoE
from sglang.srt.layers.moe.moe_runner import MoeRunner, MoeRunnerConfig, register_moe_runner_core
from sglang.srt.layers.moe.moe_runner.base import DispatchMoeRunnerCore, MoeQuantInfo
from sglang.srt.layers.moe.token_dispatcher.standard import StandardCombineInput
from sglang.srt.layers.moe.topk import TopKOutputChecker
from sglang.srt.layers.moe.utils import get_moe_a2a_backend, get_moe_runner_backend, resolve_moe_runner_backend
from sglang.srt.layers.quantization.fp8 import Fp8Config, Fp8MoEMethod
from sglang.srt.layers.quantization.modelopt_quant import ModelOptFp4Config, ModelOptNvFp4FusedMoEMethod
from sglang.srt.layers.quantization.unquant import UnquantizedFusedMoEMethod
from sglang.srt.layers.quantization.utils import is_layer_skipped
from sglang.srt.plugins.hook_registry import HookRegistry, HookType
from sglang.srt.runtime_context import get_exec
from thresher.torch import MoE, engines

from . import NAME


@dataclass
class QuantInfo(MoeQuantInfo):
    """What a call brings to the runner."""

    experts: MoE
    routed_scaling_factor: float  # of the result


class RunnerCore(DispatchMoeRunnerCore):
    """Takes tokens as the standard dispatcher hands them over: unsorted, with ids of this process's experts and −1 for others'."""

    @property
    def runner_backend(self):
        return resolve_moe_runner_backend(NAME)

    def run_from_dispatch(self, dispatch_output, quant_info: QuantInfo, runner_config: MoeRunnerConfig, hooks: Any = None):
        if not dispatch_output.format.is_standard() or dispatch_output.hidden_states_scale is not None:
            engines.refuse(f"tokens come as {dispatch_output.format.value}, but thresher takes unquantised ones of the standard dispatcher "
                           "alone: use --moe-a2a-backend none")
        if not TopKOutputChecker.format_is_standard(dispatch_output.topk_output):
            engines.refuse(f"routing comes as {type(dispatch_output.topk_output).__name__}, but thresher takes experts' ids and weights")
        if hooks is not None:
            engines.refuse("LoRA adds to the products of experts, which thresher does not show: choose another --moe-runner-backend")
        routing = dispatch_output.topk_output
        result = quant_info.experts(dispatch_output.hidden_states, routing.topk_ids, routing.topk_weights)
        if quant_info.routed_scaling_factor != 1.0:
            result *= quant_info.routed_scaling_factor
        return StandardCombineInput(hidden_states=result)


class _Method:
    """What the methods share. They come before a method of SGLang's, whose create_weights and weight loader they keep."""

    load_up_proj_weight_first = False
    parameters: tuple[str, ...]

    def create_weights(self, layer, *arguments, with_bias: bool = False, **more):
        config, name = layer.moe_runner_config, _name(layer)
        engines.expect(name, bias=(bool(with_bias), False), no_combine=(config.no_combine, False),
                       apply_router_weight_on_input=(config.apply_router_weight_on_input, False),
                       enable_eplb=(bool(get_exec().moe.enable_eplb), False), moe_a2a_backend=(get_moe_a2a_backend().value, "none"),
                       inference_moe_w13_interleaved=(getattr(layer, "inference_moe_w13_interleaved", False), False))
        activation_of(config, name)
        super().create_weights(layer, *arguments, with_bias=with_bias, **more)

    def create_moe_runner(self, layer, moe_runner_config: MoeRunnerConfig):
        self.moe_runner_config = moe_runner_config
        self.runner = MoeRunner(resolve_moe_runner_backend(NAME), moe_runner_config)

    def get_moe_runner_backend(self, layer):
        return self.runner.runner_backend

    def get_moe_routing_method_type(self, layer, requested_method):
        return requested_method

    def process_weights_after_loading(self, layer):
        activation = activation_of(layer.moe_runner_config, _name(layer))
        engines.release(layer, lambda: self.experts(layer, **activation), *self.parameters)

    def apply(self, layer, dispatch_output):
        factor = 1.0 if layer.should_fuse_routed_scaling_factor_in_topk else self.moe_runner_config.routed_scaling_factor
        return self.runner.run(dispatch_output, QuantInfo(layer.thresher, 1.0 if factor is None else factor))


class PlainMethod(_Method, UnquantizedFusedMoEMethod):
    parameters = ("w13_weight", "w2_weight")

    def experts(self, layer, **activation) -> MoE:
        return engines.plain_experts(layer.w13_weight, layer.w2_weight, **activation)


class Fp8Method(_Method, Fp8MoEMethod):
    parameters = ("w13_weight", "w2_weight", "w13_weight_scale_inv", "w2_weight_scale_inv")

    def experts(self, layer, **activation) -> MoE:
        return engines.fp8_experts((layer.w13_weight, layer.w13_weight_scale_inv), (layer.w2_weight, layer.w2_weight_scale_inv),
                                   layer.moe_runner_config.params_dtype, **activation)


class ModelOptNvfp4Method(_Method, ModelOptNvFp4FusedMoEMethod):
    """The loader knows its format by ModelOpt in its name."""

    parameters = tuple(f"w{of}_{what}" for of in ("13", "2") for what in ("weight", "weight_scale", "weight_scale_2", "input_scale",
                                                                         "blockscale_swizzled"))
    enable_flashinfer_trtllm_moe = False
    use_flashinfer_trtllm_weight_layout = False

    def __init__(self, quant_config: ModelOptFp4Config):
        """Without that of SGLang's method, which takes no other runner on a Hopper GPU."""
        self.quant_config = quant_config

    def experts(self, layer, **activation) -> MoE:
        parts = ([getattr(layer, f"w{of}_{what}") for what in ("weight", "weight_scale", "weight_scale_2")] for of in ("13", "2"))
        return engines.nvfp4_experts(*map(tuple, parts), layer.moe_runner_config.params_dtype, **activation)


def activation_of(config: MoeRunnerConfig, name: str) -> dict:
    limit = config.swiglu_limit if config.gemm1_clamp_limit is None else config.gemm1_clamp_limit
    if config.activation == "situ":  # its constants have the names of SwiGLU's
        return engines.activation_of(name, "situ", limit=config.gemm1_clamp_limit, alpha=config.gemm1_alpha, is_gated=config.is_gated)
    if config.gemm1_alpha is not None:
        engines.expect(name, gate_up_interleaved=(config.gate_up_interleaved, False))
    return engines.activation_of(name, config.activation, limit=limit, alpha=config.gemm1_alpha,
                                 up_offset=None if config.gemm1_alpha is None else 1.0, is_gated=config.is_gated)


def _name(layer) -> str:
    return getattr(layer, "layer_name", "") or f"layer {layer.moe_runner_config.layer_id}"


def method_of(quant_config, prefix: str) -> _Method:
    """How the experts of the layer `prefix` are loaded."""
    if quant_config is None:
        return PlainMethod()
    if isinstance(quant_config, Fp8Config):
        if is_layer_skipped(prefix, quant_config.ignored_layers, fused_mapping=quant_config.packed_modules_mapping):
            return PlainMethod()
        engines.expect(prefix, is_checkpoint_fp8_serialized=(quant_config.is_checkpoint_fp8_serialized, True),
                       use_mxfp8=(bool(quant_config.use_mxfp8), False), is_fp4_experts=(bool(quant_config.is_fp4_experts), False))
        engines.expect_block(prefix, quant_config.weight_block_size)
        return Fp8Method(quant_config)
    if isinstance(quant_config, ModelOptFp4Config) and quant_config.get_name() == "modelopt_fp4":
        if quant_config.is_layer_excluded(prefix):
            return PlainMethod()
        engines.expect(prefix, is_checkpoint_nvfp4_serialized=(quant_config.is_checkpoint_nvfp4_serialized, True),
                       is_awq=(bool(quant_config.is_awq), False))
        engines.expect_group(prefix, quant_config.group_size)
        return ModelOptNvfp4Method(quant_config)
    engines.refuse(f"{prefix}: the quantisation {quant_config.get_name()} is not one that thresher computes experts in: it takes none, fp8 "
                   "with blocks of 128 by 128, and modelopt_fp4")


_arguments = inspect.signature(FusedMoE.__init__)


def give_method(*arguments, **named):
    """Before a layer of experts is made: its method, where the runner is this one and nobody gave another."""
    if get_moe_runner_backend().value != NAME:
        return None
    given = _arguments.bind(*arguments, **named).arguments
    if given.get("quant_method") is None:
        named["quant_method"] = method_of(given.get("quant_config"), given.get("prefix", ""))
    return arguments, named


def register() -> None:
    add_moe_runner_backend_choices([NAME])
    register_moe_runner_core(NAME, RunnerCore)
    HookRegistry.register("sglang.srt.layers.moe.fused_moe_triton.layer.FusedMoE.__init__", give_method, HookType.BEFORE)
