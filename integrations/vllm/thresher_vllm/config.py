"""The quantisation: a checkpoint's own, with Thresher's methods where it has experts, gated MLPs and linear layers."""

from typing import Any

import torch
from thresher.torch import engines
from vllm.model_executor.layers.fused_moe import RoutedExperts, UnquantizedFusedMoEMethod
from vllm.model_executor.layers.linear import LinearBase, MergedColumnParallelLinear, RowParallelLinear, UnquantizedLinearMethod
from vllm.model_executor.layers.quantization import register_quantization_config
from vllm.model_executor.layers.quantization.base_config import QuantizationConfig
from vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors import CompressedTensorsConfig, CompressedTensorsLinearMethod
from vllm.model_executor.layers.quantization.compressed_tensors.schemes import CompressedTensorsW4A4Mxfp4
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

    format: str  # of linear layers, as engines.FORMATS has it

    @classmethod
    def get_min_capability(cls) -> int:
        return _OLDEST

    def of_linear(self, layer, prefix: str, method) -> Any:
        """`method`, which is the checkpoint's own, or Thresher's around it."""
        if not is_taken(layer, prefix) or isinstance(method, UnquantizedLinearMethod):
            return method
        is_gate_up = type(layer) is MergedColumnParallelLinear and prefix.endswith("gate_up_proj") and len(layer.output_sizes) == 2
        if is_gate_up:
            return GateUpMethod(method, self.format)
        is_down = type(layer) is RowParallelLinear and prefix.endswith("down_proj")
        return (DownMethod if is_down else LinearMethod)(method, self.format)


class ThresherFp8Config(_Checkpoint, Fp8Config):
    """FP8 with scales of blocks."""

    format = "fp8_block"

    def get_quant_method(self, layer, prefix: str):
        if isinstance(layer, RoutedExperts) and not is_layer_skipped(
                prefix=prefix, ignored_layers=self.ignored_layers, fused_mapping=self.packed_modules_mapping,
                match_mode=self.ignored_layers_match_mode):
            return Fp8Method(self, layer)
        return self.of_linear(layer, prefix, super().get_quant_method(layer, prefix))


class ThresherNvfp4Config(_Checkpoint, ModelOptNvFp4Config):
    """NVFP4 of ModelOpt."""

    format = "nvfp4"

    def get_quant_method(self, layer, prefix: str):
        if isinstance(layer, RoutedExperts) and not self.is_layer_excluded(prefix):
            return ModelOptNvfp4Method(self, layer)
        return self.of_linear(layer, prefix, super().get_quant_method(layer, prefix))


class ThresherMxfp4Config(GptOssMxfp4Config):
    """MXFP4 of gpt-oss, whose experts alone are quantized."""

    get_min_capability = _Checkpoint.get_min_capability

    def get_quant_method(self, layer, prefix: str):
        return Mxfp4Method(layer) if isinstance(layer, RoutedExperts) else super().get_quant_method(layer, prefix)


class ThresherCompressedConfig(_Checkpoint, CompressedTensorsConfig):
    """MXFP4 of compressed-tensors, in linear layers."""

    format = "mxfp4"

    def get_quant_method(self, layer, prefix: str):
        method = super().get_quant_method(layer, prefix)
        if not isinstance(layer, (LinearBase, RoutedExperts)) or isinstance(method, (UnquantizedLinearMethod, UnquantizedFusedMoEMethod)):
            return method
        is_mxfp4 = type(method) is CompressedTensorsLinearMethod and isinstance(layer.scheme, CompressedTensorsW4A4Mxfp4)
        if not is_mxfp4:
            found = type(getattr(layer, "scheme", None) or method).__name__
            engines.refuse(f"{prefix}: vLLM has {found} for it, but of compressed-tensors thresher computes linear layers in MXFP4 alone: leave "
                           "--quantization thresher out")
        return self.of_linear(layer, prefix, method)


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
        if method == "compressed-tensors":
            return ThresherCompressedConfig.from_config(config)
        if method != "fp8":
            engines.refuse(f"the checkpoint's quantisation is {method or 'not named'}{' ' + algorithm if algorithm else ''}, but thresher takes fp8 "
                           "with blocks of 128 by 128, NVFP4 of ModelOpt, MXFP4 of gpt-oss and, in linear layers, of compressed-tensors: leave "
                           "--quantization thresher out")
        found = ThresherFp8Config.from_config(config)
        engines.expect("the checkpoint", store_dtype=(found.store_dtype, None))
        engines.expect_block("the checkpoint", found.weight_block_size)
        return found

    def get_quant_method(self, layer, prefix: str):
        raise AssertionError("from_config gives another config")


def register() -> None:
    register_quantization_config(NAME)(ThresherConfig)
