"""FlashAttention-3 as vLLM builds it: its operators, loaded out of a folder. It is built for variable lengths alone.

Causal masks are aligned bottom-right."""
import dataclasses

import torch


@dataclasses.dataclass
class Sequences:
    """What sequences take beside q [T, H, D] and k, v: [pages, page, Hk, D] with a `table`, [Tk, Hk, D] with `k_starts`."""
    q_starts: torch.Tensor  # int32 [B + 1]
    lengths: torch.Tensor  # int32 [B], of the keys
    most_queries: int
    most_keys: int
    table: torch.Tensor | None = None  # int32 [B, columns]
    k_starts: torch.Tensor | None = None  # int32 [B + 1]


def load(vllm):
    """`vllm`: the folder that vLLM's wheel unpacks to; vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so of it suffices."""
    if not hasattr(torch.ops._vllm_fa3_C, "fwd"):
        torch.ops.load_library(str(vllm / "vllm" / "vllm_flash_attn" / "_vllm_fa3_C.abi3.so"))


def metadata(q, k, sequences, causal, splits):
    """The schedule of calls of these lengths, made ahead; `splits`: at most so many, 0 for its own choice."""
    one = sequences
    page = None if one.table is None else k.shape[1]
    return torch.ops._vllm_fa3_C.get_scheduler_metadata(
        len(one.lengths), one.most_queries, one.most_keys, q.shape[-2], k.shape[-2], q.shape[-1], q.shape[-1], q.dtype,
        one.lengths, one.q_starts, one.k_starts, None, None, None, page, 0, causal, -1, -1, False, splits, None, 0)


def forward(q, k, v, out, scale, causal, descales, sequences, schedule=None, splits=0):
    """q, k and v as `sequences` says, out as q in 16 bits; descales of q, k and v: None, or float32 [B, Hk]."""
    one = sequences
    lengths = None if one.table is None else one.lengths  # packed keys have starts instead
    torch.ops._vllm_fa3_C.fwd(
        q, k, v, None, None, None, out, one.q_starts, one.k_starts, None, None, lengths, one.most_queries, one.most_keys,
        one.table, None, None, None, None, None, *descales, scale, causal, -1, -1, 0.0, True, schedule, splits, None, 0,
        None, 1, 0, None)
