"""The attention backend: queries of any lengths over keys in vLLM's pages, so that decode, prefill and both of them mixed are one call.

A layer's cache is [pages, Hk, page size, 2·D] in whatever order of memory the engine chose, each key before its value, FP8 as bytes.
Lengths and tables are read by the device alone, where the engine keeps them: a captured graph serves whatever batch fits it.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from thresher.torch import attention, engines
from vllm._custom_ops import reshape_and_cache_flash
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionCGSupport,
    AttentionImpl,
    AttentionMetadata,
    AttentionMetadataBuilder,
    AttentionType,
    CommonAttentionMetadata,
    MultipleOf,
)
from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

_HEAD_SIZES = [64, 128, 256]
_PAGE_ROWS = 16  # pages of a multiple of so many come by the copy engine
_HOPPER = (9, 0)
_FP8 = ("fp8", "fp8_e4m3")
_SIXTEEN_BITS = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def _refuse(what: str) -> None:
    engines.refuse(f"thresher's attention backend takes no {what}: choose another --attention-backend")


@dataclass
class ThresherAttentionMetadata(AttentionMetadata):
    """A batch, in tensors that the engine keeps and writes anew before a graph is replayed."""

    num_actual_tokens: int  # those of sequences and, of a batch padded for a graph, those of nobody behind them
    query_start_loc: torch.Tensor  # int32 [B + 1]
    seq_lens: torch.Tensor  # int32 [B], 0 of those that pad a batch
    block_table: torch.Tensor  # int32 [B, pages of a sequence]


class ThresherAttentionMetadataBuilder(AttentionMetadataBuilder[ThresherAttentionMetadata]):
    _cudagraph_support: ClassVar[AttentionCGSupport] = AttentionCGSupport.ALWAYS

    def __init__(self, kv_cache_spec, layer_names: list[str], vllm_config, device: torch.device):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        if kv_cache_spec.head_size_v != kv_cache_spec.head_size:
            _refuse(f"values of {kv_cache_spec.head_size_v} columns beside keys of {kv_cache_spec.head_size}")

    def build(self, common_prefix_len: int, common_attn_metadata: CommonAttentionMetadata,
              fast_build: bool = False) -> ThresherAttentionMetadata:
        given = common_attn_metadata
        if common_prefix_len:
            _refuse(f"common prefix of {common_prefix_len} keys that is attended to apart (cascade attention)")
        if given.causal is not True:
            _refuse("batch in which a query sees keys behind its own")
        return ThresherAttentionMetadata(given.num_actual_tokens, given.query_start_loc, given.seq_lens, given.block_table_tensor)


class ThresherAttentionBackend(AttentionBackend):
    supported_dtypes: ClassVar[list[torch.dtype]] = [torch.float16, torch.bfloat16]
    supported_kv_cache_dtypes: ClassVar[list[str]] = ["auto", *_SIXTEEN_BITS, *_FP8]
    forward_includes_kv_cache_update = False
    supports_kv_cache_update_bypass = True

    @staticmethod
    def get_name() -> str:
        """Of the member of AttentionBackendEnum, by which a layer finds it."""
        return AttentionBackendEnum.CUSTOM.name

    @staticmethod
    def get_impl_cls() -> type["ThresherAttentionImpl"]:
        return ThresherAttentionImpl

    @staticmethod
    def get_builder_cls() -> type[ThresherAttentionMetadataBuilder]:
        return ThresherAttentionMetadataBuilder

    @classmethod
    def get_supported_head_sizes(cls) -> list[int]:
        return _HEAD_SIZES

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec=None) -> list[int | MultipleOf]:
        return [MultipleOf(_PAGE_ROWS)]

    @classmethod
    def supports_sink(cls) -> bool:
        return True

    @classmethod
    def supports_sliding_window(cls) -> bool:
        return True

    @classmethod
    def supports_per_head_quant_scales(cls) -> bool:
        return True

    @classmethod
    def supports_compute_capability(cls, capability) -> bool:
        return (capability.major, capability.minor) == _HOPPER

    @classmethod
    def supports_combination(cls, head_size, dtype, kv_cache_dtype, block_size, use_mla, has_sink, use_sparse, use_mm_prefix,
                             device_capability) -> str | None:
        kept = _SIXTEEN_BITS.get(kv_cache_dtype, dtype)
        return None if kept == dtype else f"keys and values in {kv_cache_dtype} beside queries in {str(dtype).removeprefix('torch.')}"


class ThresherAttentionImpl(AttentionImpl[ThresherAttentionMetadata]):
    def __init__(self, num_heads: int, head_size: int, scale: float, num_kv_heads: int | None = None,
                 alibi_slopes: list[float] | None = None, sliding_window: int | None = None, kv_cache_dtype: str = "auto",
                 logits_soft_cap: float | None = None, attn_type: str = AttentionType.DECODER,
                 kv_sharing_target_layer_name: str | None = None, sinks: torch.Tensor | None = None):
        """A layer that shares another's cache (kv_sharing_target_layer_name) is given that cache and writes nothing into it."""
        if alibi_slopes is not None:
            _refuse("slopes of ALiBi")
        if attn_type != AttentionType.DECODER:
            _refuse(f"attention of the type {AttentionType(attn_type).value}")
        if head_size not in _HEAD_SIZES:
            _refuse(f"heads of {head_size} columns, which are {', '.join(map(str, _HEAD_SIZES))}")
        if kv_cache_dtype not in ThresherAttentionBackend.supported_kv_cache_dtypes:
            _refuse(f"cache in {kv_cache_dtype}")
        self.num_heads, self.head_size, self.num_kv_heads = num_heads, head_size, num_kv_heads or num_heads
        self.scale = float(scale)
        self.kv_cache_dtype = kv_cache_dtype
        self.window_left = -1 if sliding_window is None else sliding_window - 1
        self.softcap = logits_soft_cap or 0.0
        self.sinks = sinks
        self.sink_logits: torch.Tensor | None = None

    def process_weights_after_loading(self, act_dtype: torch.dtype) -> None:
        """Where graphs know the sinks' address, weights that are loaded again are written there."""
        if self.sinks is None:
            return
        if self.sink_logits is None:
            self.sink_logits = self.sinks.detach().float()
        else:
            self.sink_logits.copy_(self.sinks)

    def do_kv_cache_update(self, layer, key: torch.Tensor, value: torch.Tensor, kv_cache: torch.Tensor, slot_mapping: torch.Tensor) -> None:
        """key, value: [T, Hk, D]; slot_mapping: int64 [at most T], -1 for none."""
        reshape_and_cache_flash(key, value, *self._pages(kv_cache), slot_mapping, self.kv_cache_dtype, layer._k_scale, layer._v_scale)

    def forward(self, layer, query: torch.Tensor, key: torch.Tensor | None, value: torch.Tensor | None, kv_cache: torch.Tensor,
                attn_metadata: ThresherAttentionMetadata | None, output: torch.Tensor, output_scale: torch.Tensor | None = None,
                output_block_scale: torch.Tensor | None = None) -> torch.Tensor:
        """query, output: [T, H, D]; key and value are in the cache already. Rows of nobody are left alone."""
        if output_scale is not None or output_block_scale is not None:
            _refuse("result that is to be quantised on the way out")
        if attn_metadata is None:  # a run that measures memory
            return output.zero_()
        rows = attn_metadata.num_actual_tokens
        keys, values = self._pages(kv_cache)
        attention(query[:rows], keys, values, out=output[:rows], causal=True, scale=self.scale, softcap=self.softcap,
                  window=(self.window_left, -1), cu_seqlens_q=attn_metadata.query_start_loc, block_table=attn_metadata.block_table,
                  seqused_k=attn_metadata.seq_lens, sinks=self.sink_logits, **self._descales(layer))
        return output

    def _pages(self, kv_cache: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Keys and values [pages, page size, Hk, D]."""
        return kv_cache.transpose(1, 2).split(self.head_size, -1)

    def _descales(self, layer) -> dict:
        """Of the whole layer or of each head."""
        if self.kv_cache_dtype not in _FP8:
            return {}
        return dict(k_descale=layer._k_scale.reshape(1, -1), v_descale=layer._v_scale.reshape(1, -1))


def register() -> None:
    """As vLLM's backend CUSTOM, whose name every process knows before plugins are loaded, as configurations that are sent to it need."""
    custom = AttentionBackendEnum.CUSTOM
    own = ".".join(ThresherAttentionBackend.full_cls_name())
    if custom.is_overridden() and custom.get_path() != own:
        engines.refuse(f"the attention backend CUSTOM of vLLM is {custom.get_path()} already: uninstall its package or thresher-vllm, or say "
                       "in VLLM_PLUGINS which of them are loaded")
    register_backend(custom, own)
