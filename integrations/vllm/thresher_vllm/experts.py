"""Methods of experts: vLLM's own create and load the weights, Thresher's computes with them."""

import torch
from thresher.torch import MoE, engines
from vllm.model_executor.layers.fused_moe.fused_moe_method_base import FusedMoEMethodBase
from vllm.model_executor.layers.quantization.fp8 import Fp8MoEMethod
from vllm.model_executor.layers.quantization.modelopt import ModelOptNvFp4FusedMoE
from vllm.model_executor.layers.quantization.mxfp4 import GptOssMxfp4MoEMethod

from .linear import max_rows

# The names of vLLM's activations that thresher has; SwiGLU of OpenAI's models with gate and up one behind the other is SiLU with a
# limit, alpha and an offset.
_ACTIVATIONS = {"silu": "silu", "gelu_tanh": "gelu_tanh", "swigluoai_uninterleave": "silu", "relu2_no_mul": "relu2"}


def activation_of(layer, moe) -> dict:
    name = layer.activation.value
    if name == "situ":
        return engines.activation_of(layer.layer_name, name, alpha=moe.activation_situ_beta, limit=moe.activation_situ_linear_beta,
                                     is_gated=moe.is_act_and_mul)
    return engines.activation_of(layer.layer_name, _ACTIVATIONS.get(name, name), limit=layer.swiglu_limit, alpha=layer.swiglu_alpha,
                                 up_offset=layer.swiglu_beta, is_gated=moe.is_act_and_mul)


class _Method:
    """What the methods share. They come before a method of vLLM's, whose create_weights they keep."""

    supports_pre_processed_weights = False
    supports_eplb = False
    takes_bias = False
    parameters: tuple[str, ...]

    def create_weights(self, layer, *arguments, **named):
        parallel = self.moe.moe_parallel_config
        engines.expect(layer.layer_name, bias=(bool(self.moe.has_bias), self.takes_bias),
                       apply_router_weight_on_input=(bool(layer.apply_router_weight_on_input), False),
                       use_all2all_kernels=(bool(parallel.use_all2all_kernels), False), lora=(bool(self.moe.is_lora_enabled), False))
        self.activation(layer)
        self.max_rows = max_rows()
        super().create_weights(layer, *arguments, **named)

    def activation(self, layer) -> dict:
        return activation_of(layer, self.moe)

    def process_weights_after_loading(self, layer) -> None:
        activation = self.activation(layer)
        engines.release(layer, lambda: self.experts(layer, **activation), *self.parameters, rows=self.max_rows,
                        choices=self.moe.experts_per_token)

    def get_fused_moe_quant_config(self, layer) -> None:
        """Of the kernels of vLLM, none of which is asked."""
        return None

    def apply(self, layer, x: torch.Tensor, topk_weights: torch.Tensor, topk_ids: torch.Tensor, shared_experts=None,
              shared_experts_input=None) -> torch.Tensor:
        """Shared experts are the runner's own business, since no kernel of vLLM's overlaps them."""
        return layer.thresher(x, engines.local_ids(topk_ids, layer.expert_map), topk_weights)


class Fp8Method(_Method, Fp8MoEMethod):
    parameters = ("w13_weight", "w2_weight", "w13_weight_scale_inv", "w2_weight_scale_inv")

    def __init__(self, quant_config, layer):
        """Without that of vLLM's method, which chooses a kernel."""
        FusedMoEMethodBase.__init__(self, layer.moe_config)
        self.quant_config = quant_config
        self.weight_block_size = self.moe_block_shape = quant_config.weight_block_size
        self.block_quant = True
        self.weight_scale_name = "weight_scale_inv"
        self.weight_scale_refine = None

    def experts(self, layer, **activation) -> MoE:
        return engines.fp8_experts((layer.w13_weight, layer.w13_weight_scale_inv), (layer.w2_weight, layer.w2_weight_scale_inv),
                                   self.moe.in_dtype, **activation)


class ModelOptNvfp4Method(_Method, ModelOptNvFp4FusedMoE):
    """The loader knows its format by ModelOpt in its name."""

    parameters = tuple(f"w{of}_{what}" for of in ("13", "2") for what in ("weight", "weight_scale", "weight_scale_2", "input_scale"))

    def __init__(self, quant_config, layer):
        """Without that of vLLM's method, which chooses a kernel."""
        FusedMoEMethodBase.__init__(self, layer.moe_config)
        self.quant_config = quant_config
        self.use_global_sf = False

    def experts(self, layer, **activation) -> MoE:
        parts = ([getattr(layer, f"w{of}_{what}") for what in ("weight", "weight_scale", "weight_scale_2")] for of in ("13", "2"))
        return engines.nvfp4_experts(*map(tuple, parts), self.moe.in_dtype, **activation)


class Mxfp4Method(_Method, GptOssMxfp4MoEMethod):
    """The loader knows its format by weight_dtype."""

    takes_bias = True
    parameters = tuple(f"w{of}_{what}" for of in ("13", "2") for what in ("weight", "weight_scale", "bias"))
    mxfp4_backend = None
    maybe_roundup_sizes = FusedMoEMethodBase.maybe_roundup_sizes

    def __init__(self, layer):
        """Without that of vLLM's method, which chooses a kernel."""
        FusedMoEMethodBase.__init__(self, layer.moe_config)
        self.weight_dtype = "gpt_oss_mxfp4"

    def activation(self, layer) -> dict:
        """vLLM's method has the constants in its code."""
        engines.expect(layer.layer_name, activation=(layer.activation.value, "swigluoai"), is_act_and_mul=(self.moe.is_act_and_mul, True))
        return dict(activation="swiglu_clamped", alpha=1.702, limit=7.0, up_offset=1.0)

    def experts(self, layer, **activation) -> MoE:
        parts = ([getattr(layer, f"w{of}_{what}") for what in ("weight", "weight_scale", "bias")] for of in ("13", "2"))
        return engines.mxfp4_experts(*map(tuple, parts), self.moe.in_dtype, **activation)
