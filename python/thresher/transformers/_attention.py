"""Attention as transformers' registry calls it: queries, keys and values [B, H, S, D], with whatever cache the keys come from."""

from typing import Any

import torch
from torch.nn.functional import pad

from .._attention import HEAD_DIMS
from .._errors import UnsupportedError
from ..torch import attention
from ._masks import Lengths, keys_in, lengths_in

_UNKNOWN = ("position_bias", "output_attentions")


def _refuse(what: str) -> None:
    raise UnsupportedError(f"attention 'thresher' takes no {what}: choose another attn_implementation")


def attend(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attention_mask: torch.Tensor | None,
           dropout: float = 0.0, scaling: float | None = None, sliding_window: int | None = None, softcap: float | None = None,
           s_aux: torch.Tensor | None = None, is_causal: bool | None = None, **others: Any) -> tuple[torch.Tensor, None]:
    """query: [B, H, S, D]; key, value: [B, Hk, Sk, D]; attention_mask: what `mask_of` gave. The result is [B, S, H, D of values]."""
    if dropout:
        _refuse(f"dropout of {dropout:g}")
    for name in _UNKNOWN:
        if others.get(name) is not None and others[name] is not False:
            _refuse(name)
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    options = dict(causal=bool(causal), scale=query.shape[-1] ** -0.5 if scaling is None else float(scaling), softcap=float(softcap or 0.0),
                   window=_window(sliding_window, causal), sinks=None if s_aux is None else s_aux.detach().float())
    columns = value.shape[-1]
    query, key, value = (_widened(one) for one in (query, key, value))
    return _attended(query, key, value, attention_mask, others, options)[..., :columns], None


def _window(width: int | None, causal: bool) -> tuple[int, int]:
    """Transformers counts a query's own key where it sees none behind it, and the keys to each side elsewhere."""
    if not width:
        return -1, -1
    return (width - 1, -1) if causal else (width, width)


def _widened(heads: torch.Tensor) -> torch.Tensor:
    """With columns of zeros up to a width that there is."""
    columns = heads.shape[-1]
    wider = next((width for width in HEAD_DIMS if width >= columns), columns)
    return heads if wider == columns else pad(heads, (0, wider - columns))


def _attended(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, others: dict, options: dict) -> torch.Tensor:
    if others.get("cu_seq_lens_q") is not None:
        if mask is not None:
            _refuse("mask beside cu_seq_lens_q")
        return _packed(query, key, value, others["cu_seq_lens_q"], others["cu_seq_lens_k"], options)
    if mask is None:
        return attention(query, key, value, **options).transpose(1, 2)
    keys = keys_in(mask)
    if keys is not None:
        return attention(query, key[:, :, :keys], value[:, :, :keys], **options).transpose(1, 2)
    lengths = lengths_in(mask, query.shape[0])
    if lengths is None:
        _refuse(f"mask of numbers, {str(mask.dtype).removeprefix('torch.')} {list(mask.shape)}")
    if lengths.first is None:
        return _in_pages(query, key.transpose(1, 2), value.transpose(1, 2), lengths, lengths.table, options)
    if query.shape[2] == 1:
        return _in_rows(query, key.contiguous(), value.contiguous(), lengths, options)
    return _behind_padding(query, key, value, lengths, options)


def _rows(heads: torch.Tensor) -> torch.Tensor:
    """[B, H, S, D] as [B·S, H, D]."""
    return heads.transpose(1, 2).reshape(-1, heads.shape[1], heads.shape[3])


def _packed(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, offsets_q: torch.Tensor, offsets_k: torch.Tensor,
            options: dict) -> torch.Tensor:
    """Sequences one behind the other."""
    result = attention(_rows(query), _rows(key), _rows(value), cu_seqlens_q=offsets_q, cu_seqlens_k=offsets_k, **options)
    return result.reshape(query.shape[0], query.shape[2], *result.shape[1:])


def _in_pages(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: Lengths, table: torch.Tensor,
              options: dict) -> torch.Tensor:
    """keys, values: [pages, page size, Hk, D]."""
    result = attention(_rows(query), keys, values, cu_seqlens_q=lengths.offsets, block_table=table, seqused_k=lengths.keys, **options)
    return result.reshape(query.shape[0], query.shape[2], *result.shape[1:])


def _in_rows(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, lengths: Lengths, options: dict) -> torch.Tensor:
    """Each row of a contiguous cache is a page, so that a sequence may begin at any; nothing of the cache is copied."""
    batch, heads, rows, _ = key.shape
    places = torch.arange(rows, dtype=torch.int32, device=key.device) + lengths.first.unsqueeze(1)
    table = places.clamp(max=rows - 1) + lengths.table * (heads * rows)
    return _in_pages(query, _pages_of_rows(key), _pages_of_rows(value), lengths, table, options)


def _pages_of_rows(cache: torch.Tensor) -> torch.Tensor:
    """[pages, 1, Hk, D] of [B, Hk, L, D]: page b·Hk·L + l has row l of sequence b. Pages between those have rows of several."""
    batch, heads, rows, columns = cache.shape
    return cache.as_strided((batch * heads * rows - (heads - 1) * rows, 1, heads, columns), (columns, columns, rows * columns, 1))


def _behind_padding(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, lengths: Lengths, options: dict) -> torch.Tensor:
    """Three sequences of each, whose lengths the device knows alone: all queries beside the keys behind the padding, and no queries beside the
    keys before them and after. The last query belongs to the last key, so that those of padding see none."""
    queries, keys = query.shape[2], key.shape[2]
    none = torch.zeros_like(lengths.first)
    stop = (lengths.first + lengths.keys).clamp(max=keys)
    return _packed(query, key, value, _offsets(lengths, queries, none, none + queries), _offsets(lengths, keys, lengths.first, stop), options)


def _offsets(lengths: Lengths, rows: int, first: torch.Tensor, stop: torch.Tensor) -> torch.Tensor:
    """[3·B + 1], of sequences of so many rows that are cut at first and at stop."""
    begin = lengths.table.view(-1) * rows
    return torch.cat([torch.stack([begin, begin + first, begin + stop], 1).view(-1), begin[-1:] + rows]).to(torch.int32)


def attend_paged(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attention_mask: torch.Tensor | None,
                 cache: Any = None, **options: Any) -> tuple[torch.Tensor, None]:
    """Of continuous batching in releases of transformers in which the attention writes to the cache."""
    if cache is None:
        _refuse("call without the cache of continuous batching by its paged form")
    key, value = cache.update(key_states=key, value_states=value, layer_idx=module.layer_idx, read_index=options.pop("read_index"),
                              write_index=options.pop("write_index"))
    lengths = options["cu_seq_lens_k"]
    if isinstance(lengths, dict):
        kind = "sliding_attention" if options.get("sliding_window") else "full_attention"
        options["cu_seq_lens_k"] = lengths[kind] if len(lengths) > 1 else next(iter(lengths.values()))
    key, value = (one.transpose(0, 1).unsqueeze(0) for one in (key, value))
    return attend(module, query, key, value, attention_mask, **options)
