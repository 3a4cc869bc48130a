"""Linear layers: vLLM's own method of a checkpoint creates and loads the weights, Thresher's product computes with them."""

import torch
from thresher.torch import engines
from vllm.config import get_current_vllm_config_or_none
from vllm.model_executor.layers.linear import (
    ColumnParallelLinear,
    LinearMethodBase,
    MergedColumnParallelLinear,
    QKVParallelLinear,
    ReplicatedLinear,
    RowParallelLinear,
    register_weight_loader_v2_supported_method,
)

KINDS = (ReplicatedLinear, ColumnParallelLinear, MergedColumnParallelLinear, QKVParallelLinear, RowParallelLinear)


def max_rows() -> int:
    """Tokens of a step at the most."""
    scheduler = getattr(get_current_vllm_config_or_none(), "scheduler_config", None)
    return getattr(scheduler, "max_num_batched_tokens", None) or 1


def has_lora() -> bool:
    return getattr(get_current_vllm_config_or_none(), "lora_config", None) is not None


def is_taken(layer, prefix: str) -> bool:
    return engines.is_taken(layer, prefix, KINDS) and not has_lora()


@register_weight_loader_v2_supported_method
class LinearMethod(engines.LinearMethod, LinearMethodBase):
    def max_rows(self) -> int:
        return max_rows()

    def adds_bias(self, layer) -> bool:
        return super().adds_bias(layer) and not (isinstance(layer, RowParallelLinear) and layer.tp_rank > 0)

    def create_weights(self, layer, input_size_per_partition: int, output_partition_sizes: list[int], input_size: int, output_size: int,
                       params_dtype: torch.dtype, **named):
        super().create_weights(layer, input_size_per_partition, output_partition_sizes, input_size, output_size, params_dtype, **named)
        layer.requires_unquantized_input = True  # whatever the own method's kernel would take; models ask before weights are loaded
