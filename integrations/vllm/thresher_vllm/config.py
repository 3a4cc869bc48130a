"""The quantisation: a checkpoint's own, with Thresher's methods where it has experts, gated MLPs and linear layers."""

from typing import Any

import torch
from thresher.torch import GatedMLP, engines
from vllm.model_executor.layers.fused_moe import RoutedExperts
from vllm.model_executor.layers.linear import MergedColumnParallelLinear, RowParallelLinear, UnquantizedLinearMethod
from vllm.model_executor.layers.quantization import register_quantization_config
from vllm.model_executor.layers.quantization.base_config import QuantizationConfig
from vllm.model_executor.layers.quantization.fp8 import Fp8Config
from vllm.model_executor.layers.quantization.modelopt import ModelOptNvFp4Config
from vllm.model_executor.layers.quantization.mxfp4 import GptOssMxfp4Config
from vllm.model_executor.layers.quantization.utils.quant_utils import is_layer_skipped

from . import NAME
from .experts import Fp8Method, ModelOptNvfp4Method, Mxfp4Method
from .gated_mlp import DownMethod, GateUpMethod
from .linear import LinearMethod, is_taken

_OLDEST = 90  # a Hopper


class _Checkpoint:
    """What the configs of checkpoints share. They keep their names in vLLM, by which models know what a checkpoint leaves out."""

    @classmethod
    def get_min_capability(cls) -> int:
        return _OLDEST

    def of_linear(self, layer, prefix: str, method) -> Any:
        """`method`, which is the checkpoint's own, or Thresher's around it."""
        if not is_taken(layer, prefix) or isinstance(method, UnquantizedLinearMethod):
            return method
        is_gate_up = type(layer) is MergedColumnParallelLinear and prefix.endswith("gate_up_proj") and len(layer.output_sizes) == 2
        if is_gate_up:
            return GateUpMethod(method, self.linears, self.gated_mlp)
        is_down = type(layer) is RowParallelLinear and prefix.endswith("down_proj")
        return (DownMethod if is_down else LinearMethod)(method, self.linears)


class ThresherFp8Config(_Checkpoint, Fp8Config):
    """FP8 with scales of blocks."""

    def get_quant_method(self, layer, prefix: str):
        if isinstance(layer, RoutedExperts) and not is_layer_skipped(
                prefix=prefix, ignored_layers=self.ignored_layers, fused_mapping=self.packed_modules_mapping,
                match_mode=self.ignored_layers_match_mode):
            return Fp8Method(self, layer)
        return self.of_linear(layer, prefix, super().get_quant_method(layer, prefix))

    @staticmethod
    def linears(layer, rows, dtype, bias) -> engines.Linears:
        return engines.fp8_linears(layer.weight, layer.weight_scale_inv, rows, dtype, bias)

    @staticmethod
    def gated_mlp(gate_up, down, dtype) -> GatedMLP:
        return engines.fp8_gated_mlp(*((one.weight, one.weight_scale_inv) for one in (gate_up, down)), dtype)


class ThresherNvfp4Config(_Checkpoint, ModelOptNvFp4Config):
    """NVFP4 of ModelOpt."""

    def get_quant_method(self, layer, prefix: str):
        if isinstance(layer, RoutedExperts) and not self.is_layer_excluded(prefix):
            return ModelOptNvfp4Method(self, layer)
        return self.of_linear(layer, prefix, super().get_quant_method(layer, prefix))

    @staticmethod
    def linears(layer, rows, dtype, bias) -> engines.Linears:
        return engines.nvfp4_linears(layer.weight, layer.weight_scale, layer.weight_scale_2, rows, dtype, bias)

    @staticmethod
    def gated_mlp(gate_up, down, dtype) -> GatedMLP:
        return engines.nvfp4_gated_mlp(*((one.weight, one.weight_scale, one.weight_scale_2) for one in (gate_up, down)), dtype)


class ThresherMxfp4Config(GptOssMxfp4Config):
    """MXFP4 of gpt-oss, whose experts alone are quantized."""

    get_min_capability = _Checkpoint.get_min_capability

    def get_quant_method(self, layer, prefix: str):
        return Mxfp4Method(layer) if isinstance(layer, RoutedExperts) else super().get_quant_method(layer, prefix)


class ThresherConfig(QuantizationConfig):
    """What `--quantization thresher` names: reads the checkpoint's own config and becomes the one that fits."""

    @classmethod
    def get_name(cls) -> str:
        return NAME

    @classmethod
    def get_min_capability(cls) -> int:
        return _OLDEST

    @classmethod
    def get_supported_act_dtypes(cls) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]

    @staticmethod
    def get_config_filenames() -> list[str]:
        return ModelOptNvFp4Config.get_config_filenames()

    @classmethod
    def override_quantization_method(cls, hf_quant_cfg, user_quant, hf_config=None) -> str | None:
        return NAME if user_quant == NAME else None

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> QuantizationConfig:
        method = str(config.get("quant_method", ""))
        algorithm = str(config.get("quantization", config).get("quant_algo", "")).upper()
        if "NVFP4" in algorithm:
            found = ThresherNvfp4Config.from_config(config)
            engines.expect_group("the checkpoint", found.group_size)
            return found
        if method in ("mxfp4", "gpt_oss_mxfp4"):
            return ThresherMxfp4Config.from_config(config)
        if method != "fp8":
            engines.refuse(f"the checkpoint's quantisation is {method or 'not named'}{' ' + algorithm if algorithm else ''}, but thresher takes "
                           "fp8 with blocks of 128 by 128, NVFP4 of ModelOpt and MXFP4 of gpt-oss: leave --quantization thresher out")
        found = ThresherFp8Config.from_config(config)
        engines.expect("the checkpoint", store_dtype=(found.store_dtype, None))
        engines.expect_block("the checkpoint", found.weight_block_size)
        return found

    def get_quant_method(self, layer, prefix: str):
        raise AssertionError("from_config gives another config")


def register() -> None:
    register_quantization_config(NAME)(ThresherConfig)
