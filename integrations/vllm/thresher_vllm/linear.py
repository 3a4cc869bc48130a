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

# Layers that are these and nothing more: a class of a model's own may read its weights.
KINDS = (ReplicatedLinear, ColumnParallelLinear, MergedColumnParallelLinear, QKVParallelLinear, RowParallelLinear)
# Latent attention reads the weights of this one.
_READ = "kv_b_proj"


def most_rows() -> int:
    """Tokens of a step at the most."""
    scheduler = getattr(get_current_vllm_config_or_none(), "scheduler_config", None)
    return getattr(scheduler, "max_num_batched_tokens", None) or 1


def has_lora() -> bool:
    return getattr(get_current_vllm_config_or_none(), "lora_config", None) is not None


def is_taken(layer, prefix: str) -> bool:
    return type(layer) in KINDS and prefix.rpartition(".")[2] != _READ and not has_lora()


@register_weight_loader_v2_supported_method
class LinearMethod(LinearMethodBase):
    def __init__(self, own: LinearMethodBase, linears):
        """linears: makes the engines.Linears of a layer of matrices of so many rows, for tokens of a type, with a bias or None."""
        self.own = own
        self.linears = linears

    def create_weights(self, layer, input_size_per_partition: int, output_partition_sizes: list[int], input_size: int, output_size: int,
                       params_dtype: torch.dtype, **named):
        self.rows, self.dtype, self.most_rows = output_partition_sizes, params_dtype, most_rows()
        self.own.create_weights(layer, input_size_per_partition, output_partition_sizes, input_size, output_size, params_dtype, **named)
        layer.requires_unquantized_input = True  # whatever the own method's kernel would take; models ask before weights are loaded

    def process_weights_after_loading(self, layer) -> None:
        bias = _bias_of(layer)
        self.has_bias = bias is not None
        self.release(layer, lambda: self.linears(layer, self.rows, self.dtype, bias))

    def release(self, layer, make) -> None:
        engines.release(layer, make, rows=self.most_rows)
        give_up(layer)

    def apply(self, layer, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        if (bias is None) == self.has_bias:
            engines.refuse(f"a linear layer was made {'with' if bias is None else 'without'} its bias and is called otherwise")
        return layer.thresher(x)


def give_up(layer) -> None:
    """Its parameters, but a bias, which the layer hands on."""
    for name in [name for name, _ in layer.named_parameters(recurse=False) if name != "bias"]:
        delattr(layer, name)


def _bias_of(layer) -> torch.Tensor | None:
    """What the layer hands its method: of a sum over processes one alone has it."""
    adds = not layer.skip_bias_add and not (isinstance(layer, RowParallelLinear) and layer.tp_rank > 0)
    return layer.bias if adds else None
