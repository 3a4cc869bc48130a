"""Linear layers: SGLang's own method of a checkpoint creates and loads the weights, Thresher's product computes with them."""

from sglang.srt.distributed.utils import get_group_rank_size
from sglang.srt.layers import linear
from sglang.srt.layers.linear import ColumnParallelLinear, MergedColumnParallelLinear, QKVParallelLinear, ReplicatedLinear, RowParallelLinear
from sglang.srt.layers.moe.utils import get_moe_runner_backend
from sglang.srt.layers.quantization.base_config import LinearMethodBase
from sglang.srt.layers.quantization.fp8 import Fp8LinearMethod
from sglang.srt.layers.quantization.modelopt_quant import ModelOptFp4LinearMethod
from sglang.srt.plugins.hook_registry import HookRegistry, HookType
from sglang.srt.runtime_context import get_lora, get_schedule
from thresher.torch import engines

from . import NAME

KINDS = (ReplicatedLinear, ColumnParallelLinear, MergedColumnParallelLinear, QKVParallelLinear, RowParallelLinear)


class ThresherLinearMethod(engines.LinearMethod, LinearMethodBase):
    def __init__(self, own: LinearMethodBase, format: str):
        super().__init__(own, format)
        self.quant_config = own.quant_config  # loaders and models read the size of blocks there

    def max_rows(self) -> int:
        return max(get_schedule().chunked_prefill_size or 0, 1)

    def adds_bias(self, layer) -> bool:
        return super().adds_bias(layer) and not (isinstance(layer, RowParallelLinear) and get_group_rank_size(layer.tp_group)[0] > 0)


def format_of(method) -> str | None:
    """How the checkpoint of a method of SGLang's has weights; None of those that stay its own."""
    if type(method) is Fp8LinearMethod:
        config = method.quant_config
        is_ours = method.block_quant and method.is_checkpoint_fp8_serialized and not method.use_mxfp8
        return "fp8_block" if is_ours and list(config.weight_block_size) == [128, 128] else None
    if type(method) is ModelOptFp4LinearMethod:
        return None if method.quant_config.is_awq or method.quant_config.group_size != 16 else "nvfp4"
    return None


def give_method(_, layer, *arguments, prefix: str = "", **named) -> None:
    """Behind LinearBase.__init__, where the runner of experts is this one: the method that SGLang chose, or Thresher's around it."""
    prefix = arguments[5] if len(arguments) > 5 else prefix
    if get_moe_runner_backend().value != NAME or not engines.is_taken(layer, prefix, KINDS) or get_lora().enable_lora:
        return
    format = format_of(layer.quant_method)
    if format is not None:
        layer.quant_method = ThresherLinearMethod(layer.quant_method, format)


def register() -> None:
    linear.WEIGHT_LOADER_V2_SUPPORTED.append(ThresherLinearMethod.__name__)
    HookRegistry.register("sglang.srt.layers.linear.LinearBase.__init__", give_method, HookType.AFTER)
