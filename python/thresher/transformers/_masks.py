"""Which keys the queries of a batch see, as a few lengths in place of a mask of queries by keys.

A model asks for its mask once for each kind of layer, and every attention layer is given the answer. None says that all keys are
there and the last query belongs to the last key. Otherwise it is int32 [1, 1, …]:

- [1, 1, keys, 0]: so many keys are there, the same of all sequences, and the others of a static cache are not;
- [1, 1, 1, 3·B + 1]: `Lengths` without `first`, [1, 1, 1, 4·B + 1]: with it.

Lengths are read by the device alone, so that a captured graph or a compiled step serves caches of any length.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from transformers import masking_utils as _of

from .._library import refuse

_INSTEAD = "choose another attn_implementation"


class Lengths(NamedTuple):
    """int32, views of one tensor."""

    keys: torch.Tensor  # [B], that each sequence has
    table: torch.Tensor  # [B, 1], the sequence's number: a block table where a sequence is one page
    offsets: torch.Tensor  # [B + 1], of the queries
    first: torch.Tensor | None  # [B], the place of the first key, behind the padding


def lengths_in(mask: torch.Tensor, batch: int) -> Lengths | None:
    """None of a mask of another kind."""
    count = mask.shape[-1]
    if mask.dtype != torch.int32 or mask.dim() != 4 or count not in (3 * batch + 1, 4 * batch + 1):
        return None
    flat = mask.view(-1)
    first = flat[3 * batch + 1:] if count > 3 * batch + 1 else None
    return Lengths(flat[:batch], flat[batch: 2 * batch].view(batch, 1), flat[2 * batch: 3 * batch + 1], first)


def keys_in(mask: torch.Tensor) -> int | None:
    """How many keys all sequences have, where the mask says that."""
    return mask.shape[2] if mask.dtype == torch.int32 and mask.dim() == 4 and mask.shape[3] == 0 else None


def mask_of(batch_size: int, q_length: int, kv_length: int, q_offset: int | torch.Tensor = 0, kv_offset: int = 0,
            mask_function: Callable = _of.causal_mask_function, attention_mask: torch.Tensor | None = None,
            device: torch.device | str = "cpu", **_: Any) -> torch.Tensor | None:
    """As transformers' registry of masks calls it. attention_mask: bool [B, keys], false of padding."""
    is_causal = _expect_known(mask_function)
    device = attention_mask.device if attention_mask is not None else torch.device(device)
    is_read_here = not _is_recorded(device)
    keys = q_offset + (q_length - kv_offset) if is_causal else kv_length
    if isinstance(keys, torch.Tensor) and is_read_here and q_length > 1:
        keys = int(keys)
    present = None if attention_mask is None else _present(attention_mask, kv_length, kv_offset)
    if present is not None and is_read_here and not _has_padding(present, keys, q_length):
        present = None
    if present is None and not isinstance(keys, torch.Tensor):
        keys = min(keys, kv_length)
        if keys == kv_length:
            return None
        if q_length > 1:
            return torch.empty(1, 1, keys, 0, dtype=torch.int32, device=device)
    return _lengths(batch_size, q_length, kv_length, keys, present, device)


def _lengths(batch: int, q_length: int, kv_length: int, keys: int | torch.Tensor, present: torch.Tensor | None,
             device: torch.device) -> torch.Tensor:
    numbers = torch.arange(batch + 1, dtype=torch.int32, device=device)
    last = keys if isinstance(keys, torch.Tensor) else torch.full((), keys, device=device)
    last = last.to(torch.int32).clamp(max=kv_length).expand(batch)
    parts = [last, numbers[:-1], numbers * q_length]
    if present is not None:
        # Argmax gives the first of equal ones. A sequence of padding alone has no key.
        first = torch.where(present.any(-1), present.to(torch.int32).argmax(-1), kv_length).to(torch.int32)
        parts = [(last - first).clamp(min=0), *parts[1:], first]
    return torch.cat(parts).view(1, 1, 1, -1)


def _present(attention_mask: torch.Tensor, kv_length: int, kv_offset: int) -> torch.Tensor:
    """bool [B, kv_length]; of keys that a mask does not reach yet, true."""
    wanted = kv_offset + kv_length
    if attention_mask.shape[-1] < wanted:
        attention_mask = torch.nn.functional.pad(attention_mask, (0, wanted - attention_mask.shape[-1]), value=True)
    return attention_mask[:, kv_offset:wanted]


def _has_padding(present: torch.Tensor, keys: int | torch.Tensor, q_length: int) -> bool:
    """Whether a sequence begins with padding. Padding elsewhere is refused, but behind sequences that have no other keys: no query
    but that of padding sees it."""
    places = torch.arange(present.shape[1], device=present.device)
    there = present & (places < keys)
    count = there.sum(-1)
    if bool((count == keys).all()):
        return False
    first, last = there.to(torch.int32).argmax(-1), present.shape[1] - 1 - there.flip(-1).to(torch.int32).argmax(-1)
    is_whole = (last - first + 1 == count) | (count == 0)
    is_at_end = (last + 1 == keys) | (count == 0) | torch.as_tensor(keys == q_length, device=present.device)
    if not bool((is_whole & is_at_end).all()):
        refuse("attention_mask leaves out keys behind the first one that it has, expected padding before each sequence alone "
               f"(padding_side='left'), or {_INSTEAD}")
    return bool((first > 0).any()) or bool((count == 0).any())


def _is_recorded(device: torch.device) -> bool:
    """Whether what is done now is done again later, with other numbers in the same tensors."""
    return torch.compiler.is_compiling() or (device.type == "cuda" and torch.cuda.is_current_stream_capturing())


def _expect_known(mask_function: Callable) -> bool:
    """Whether the pattern of a mask is causal, else it is of all keys. Windows are the layers' own."""
    kinds = set(_kinds(mask_function))
    if not kinds <= {"causal", "all", "window"} or not kinds & {"causal", "all"}:
        refuse("the mask of this model is neither causal nor of all keys, within a window or not, which attention 'thresher' has alone: "
               f"{_INSTEAD}")
    return "causal" in kinds


def _kinds(mask_function: Callable) -> Iterator[str]:
    code = mask_function.__code__
    if code is _AND:
        for part in dict(zip(code.co_freevars, mask_function.__closure__))["mask_functions"].cell_contents:
            yield from _kinds(part)
    else:
        yield _KINDS.get(code, "other")


_AND = _of.and_masks().__code__
_KINDS = {
    _of.causal_mask_function.__code__: "causal",
    _of.bidirectional_mask_function.__code__: "all",
    _of.sliding_window_overlay(1).__code__: "window",
    _of.sliding_window_bidirectional_overlay(1).__code__: "window",
}
