"""Reading a float attention module: all that its function depends on, as the arguments of Attention."""

import dis
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from .._library import refuse
from ._float_calls import STEPS, Call, can_be_called, expect_same, wide
from ._float_modules import (
    called,
    configured,
    expect_as_written,
    expect_module,
    expect_nothing_else,
    forward_of,
    linear,
    names_of,
    words_of,
)

_PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj")
_READ = ("q_norm", "k_norm", "head_dim", "is_causal", "scaling", "attn_logit_softcapping", "sliding_window", "is_sliding")
# What a forward may be given: tokens under any name first, and what Attention is given or refuses in its calls.
_ARGUMENTS = frozenset(("position_embeddings", "attention_mask", "position_ids", "cache", "past_key_values", "past_key_value", "cache_position",
                        "use_cache", "output_attentions"))
_UNSEEN = "unseen"  # how a forward turns whose function is not found
_TOLERANCE = 2.0**-6  # of norms that round to bfloat16
_MAY_BE_IGNORED = ("attn_logit_softcapping", "sliding_window")
_ROWS = 5


def parts_of(module: nn.Module, ignore: Iterable[str], **given: Any) -> dict[str, Any]:
    expect_module(module)
    forward, ignored = forward_of(module), names_of(ignore)
    expect_as_written(module, ignored)
    layers = [linear(module, name)[1] for name in _PROJECTIONS]
    expect_nothing_else(module, (*_PROJECTIONS, *(name for name in _READ if name not in ignored or name not in _MAY_BE_IGNORED)), "Attention",
                        ignored)
    if forward is not None:
        _expect_arguments(module, forward)
    found = dict(head_dim=getattr(module, "head_dim", None), causal=getattr(module, "is_causal", None), scale=_scale(module),
                 softcap=_softcap(module, ignored), window=_window(module, ignored), pairs=_pairs(module, forward))
    if found["pairs"] == _UNSEEN:
        if given["pairs"] in (None, "none"):
            refuse(f"the module {called(module)} takes position_embeddings, but how it turns by them cannot be seen, expected it in pairs")
        found["pairs"] = None
    made = {name: _agreed(module, name, given[name], value) for name, value in found.items()}
    if made["head_dim"] is None:
        refuse(f"the module {called(module)} does not say its head_dim, expected it in head_dim")
    weights = {name[0]: layer.weight for name, layer in zip(_PROJECTIONS, layers)}
    biases = {f"{name[0]}_bias": getattr(layer, "bias", None) for name, layer in zip(_PROJECTIONS, layers)}
    return {**weights, **biases, **_norms(module, made["head_dim"]), **{name: value for name, value in made.items() if value is not None}}


def _agreed(module: nn.Module, name: str, given: Any, found: Any) -> Any:
    if given is not None and found is not None and given != found:
        refuse(f"{name} is {given!r}, but that of the module {called(module)} is {found!r}")
    return found if given is None else given


def _expect_arguments(module: nn.Module, forward: Callable) -> None:
    given = [one for one in inspect.signature(forward).parameters.values() if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
    for argument in given[2:]:  # behind self and the tokens
        if argument.name not in _ARGUMENTS or argument.name == "position_ids" and _reads(forward, argument.name):
            refuse(f"the forward of the module {called(module)} takes {argument.name}, which Attention does not take")


def _reads(forward: Callable, variable: str) -> bool:
    """Whether the code of a function reads its argument of this name."""
    return any("LOAD_FAST" in one.opname and (one.argval == variable or isinstance(one.argval, tuple) and variable in one.argval)
               for one in dis.get_instructions(forward))


def _number(module: nn.Module, name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        refuse(f"{name} of the module {called(module)} is a {called(value)}, expected a number")
    return float(value)


def _scale(module: nn.Module) -> float | None:
    scale = getattr(module, "scaling", None)
    if scale is not None:
        return _number(module, "scaling", scale)
    scalar = configured(module, "query_pre_attn_scalar")
    return None if scalar is None else _number(module, "query_pre_attn_scalar", scalar) ** -0.5


def _read(module: nn.Module, name: str, is_ignored: bool) -> tuple[bool, Any]:
    """(whether the module says it, what it says): in an attribute, or in its configuration where its methods look for it there."""
    is_mentioned = forward_of(module) is None or name in words_of(module)
    value = getattr(module, name, None)
    if value is None:
        return hasattr(module, name), configured(module, name) if is_mentioned and not hasattr(module, name) else None
    if is_ignored:
        return False, None
    if not is_mentioned:
        refuse(f"the module {called(module)} has {name} {value!r}, which its forward does not read: give its name in ignore if it changes nothing")
    return True, value


def _softcap(module: nn.Module, ignored: frozenset[str]) -> float | None:
    _, softcap = _read(module, "attn_logit_softcapping", "attn_logit_softcapping" in ignored)
    return None if softcap is None else _number(module, "attn_logit_softcapping", softcap)


def _window(module: nn.Module, ignored: frozenset[str]) -> tuple[int, int] | None:
    is_said, keys = _read(module, "sliding_window", "sliding_window" in ignored)
    is_sliding = getattr(module, "is_sliding", keys is not None)
    if is_sliding != (keys is not None):
        refuse(f"is_sliding of the module {called(module)} is {is_sliding}, but its sliding_window is {keys}")
    if keys is None:
        return (-1, -1) if is_said else None
    if isinstance(keys, bool) or not isinstance(keys, int) or keys < 1:
        refuse(f"sliding_window of the module {called(module)} is {keys!r}, expected a number of keys")
    if not getattr(module, "is_causal", True):
        refuse(f"the module {called(module)} has sliding_window {keys} and is not causal, expected a causal one")
    return (keys - 1, 0)


def _pairs(module: nn.Module, forward: Callable | None) -> str | None:
    """Which columns the forward turns together, as the function of rotary embeddings that it calls does."""
    if forward is None:
        return None
    names = [name for name in forward.__code__.co_names if ("rotary" in name or "rope" in name) and callable(forward.__globals__.get(name))]
    takes_positions = "position_embeddings" in inspect.signature(forward).parameters
    if not names and not takes_positions:
        return "none"
    if not takes_positions or len(names) > 1:
        refuse(f"the forward of the module {called(module)} calls {' and '.join(names)}{'' if takes_positions else ' without position_embeddings'}, "
               "expected one function that turns queries and keys by position_embeddings")
    if not names or "unsqueeze_dim" in words_of(module):  # other dimensions of positions than the probe's
        return _UNSEEN
    return _turning(forward.__globals__[names[0]], names[0])


def _turning(function: Callable, name: str) -> str:
    from ._attention_module import turned

    generator = torch.Generator("cpu").manual_seed(0)
    q, k, angles = (torch.randn(*shape, generator=generator, device="cpu") for shape in ((1, 2, 3, 16), (1, 1, 3, 16), (1, 3, 16)))
    cos, sin = angles.cos(), angles.sin()
    try:
        with torch.no_grad(), torch.device("cpu"):
            found = function(q, k, cos, sin)
    except Exception:  # whatever it raises, it is not the function that is looked for
        found = ()
    for pairs in ("halves", "interleaved"):
        expected = [turned(one, cos.unsqueeze(1), sin.unsqueeze(1), pairs) for one in (q, k)]
        if len(found) == 2 and all(one.shape == wanted.shape and torch.allclose(one, wanted, 1e-4, 1e-4) for one, wanted in zip(found, expected)):
            return pairs
    refuse(f"{name} of the module's forward turns queries and keys neither in halves nor interleaved, which Attention does not take over")


def _norms(module: nn.Module, head_dim: int) -> dict[str, Any]:
    found = {name: _norm(name, getattr(module, name), head_dim) for name in ("q_norm", "k_norm") if getattr(module, name, None) is not None}
    if not found:
        return {}
    epsilons = {eps for _, eps in found.values()}
    if len(epsilons) > 1:
        refuse(f"q_norm and k_norm have the eps {' and '.join(map(str, sorted(epsilons)))}, expected the same")
    return {**{name: weight for name, (weight, _) in found.items()}, "norm_eps": epsilons.pop()}


def _norm(name: str, norm: nn.Module, head_dim: int) -> tuple[torch.Tensor, float]:
    """(what multiplies, eps) of an RMSNorm of each head, as its own results say: some multiply by 1 + weight."""
    weight, eps = getattr(norm, "weight", None), getattr(norm, "variance_epsilon", getattr(norm, "eps", None))
    if not isinstance(weight, torch.Tensor) or tuple(weight.shape) != (head_dim,) or not isinstance(eps, float):
        shape = list(weight.shape) if isinstance(weight, torch.Tensor) else None
        refuse(f"{name} is a {called(norm)} with a weight {shape} and eps {eps}, expected an RMSNorm of each head with a weight [{head_dim}]")
    if weight.is_meta:
        refuse(f"{name} is on meta, where how it multiplies cannot be seen: give Attention its parts")
    rows = torch.randn(6, head_dim, generator=torch.Generator("cpu").manual_seed(0), device="cpu")
    rows = (rows + 0.5) * torch.tensor([1.0, 1.0, 8.0, 8.0, eps**0.5, eps**0.5]).unsqueeze(1)  # eps counts in the last two
    rows = rows.to(weight.device)
    try:
        with torch.no_grad():
            result = norm(rows.to(weight.dtype)).float()
    except Exception:  # whatever it raises, it is not the norm that is looked for
        result = None
    for multiplier in (weight.detach().float(), 1 + weight.detach().float()):
        rounded = rows.to(weight.dtype).float()
        expected = rounded * torch.rsqrt(rounded.square().mean(-1, keepdim=True) + eps) * multiplier
        if result is not None and result.shape == expected.shape and torch.allclose(result, expected, _TOLERANCE, 1e-5):
            return multiplier, eps
    refuse(f"{name} is a {called(norm)} that computes another function, expected x / sqrt(mean(x²) + eps) times weight or 1 + weight")


def expect_attention(module: nn.Module, parts: dict[str, Any], options: dict[str, Any], head_dim: int, pairs: str) -> None:
    """That the module computes what Attention does with parts and options, which fit. Where its mask is given in calls, with such a mask."""
    forward = forward_of(module)
    if forward is None or not can_be_called(module):
        return
    # Rows of one size: larger ones have logits whose rounding decides.
    x = torch.randn(1, _ROWS, parts["q"].shape[1], generator=torch.Generator("cpu").manual_seed(0), dtype=torch.float32, device="cpu")
    x = x.to(parts["q"].device, parts["q"].dtype)
    turns = None if pairs == "none" else _positions(x, head_dim, pairs)
    hidden = _hidden(options, x.device)
    expect_same(module, _calls(forward, x, turns, hidden), lambda: _attended(parts, options, head_dim, pairs, wide(x), turns, hidden),
                f"attention of its projections with head_dim {head_dim}, pairs {pairs!r} and {_listed(options)}")


def _listed(options: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in options.items())


def _positions(x: torch.Tensor, head_dim: int, pairs: str) -> tuple[torch.Tensor, torch.Tensor]:
    half = head_dim // 2
    angles = torch.arange(_ROWS, device="cpu").unsqueeze(1) * 100.0 ** -(torch.arange(half, device="cpu") / half)
    both = torch.cat([angles, angles], -1) if pairs == "halves" else angles.repeat_interleave(2, -1)
    return both.cos().unsqueeze(0).to(x.device, x.dtype), both.sin().unsqueeze(0).to(x.device, x.dtype)


def _hidden(options: dict[str, Any], device: torch.device) -> torch.Tensor:
    """Which keys a row does not see, of as many of either."""
    places = torch.arange(_ROWS, device=device)
    distance = places - places.unsqueeze(1)
    left, right = options["window_left"], options["window_right"]
    hidden = (distance > 0) if options["causal"] else torch.zeros_like(distance, dtype=torch.bool)
    return hidden | (distance < -left if left >= 0 else hidden) | (distance > right if right >= 0 else hidden)


def _calls(forward: Callable, x: torch.Tensor, turns: Any, hidden: torch.Tensor) -> list[Call]:
    taken = [one for one in inspect.signature(forward).parameters.values() if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)][2:]
    named = {one.name: None for one in taken if one.default is one.empty}
    names = {one.name for one in taken}
    if "position_embeddings" in names:
        named["position_embeddings"] = turns
    calls: list[Call] = [((x,), named)]
    if "attention_mask" in names:
        mask = torch.zeros(hidden.shape, dtype=x.dtype, device=x.device).masked_fill(hidden, torch.finfo(x.dtype).min)
        calls.append(((x,), {**named, "attention_mask": mask[None, None]}))
    return calls


def _attended(parts: dict[str, Any], options: dict[str, Any], head_dim: int, pairs: str, x: torch.Tensor, turns: Any,
              hidden: torch.Tensor) -> tuple[torch.Tensor, float]:
    """The definition, in the type of x, and the roundings: more where logits are large."""
    from ._attention_module import turned

    def projected(rows: torch.Tensor, name: str) -> torch.Tensor:
        bias = parts.get(f"{name}_bias")
        return nn.functional.linear(rows, parts[name].detach().to(x.dtype), None if bias is None else bias.detach().to(x.dtype))

    q, k, v = (projected(x, name).unflatten(-1, (-1, head_dim)).transpose(1, 2) for name in ("q", "k", "v"))
    placed = []
    for heads, norm in ((q, parts.get("q_norm")), (k, parts.get("k_norm"))):
        if norm is not None:
            heads = heads * torch.rsqrt(heads.square().mean(-1, keepdim=True) + parts["norm_eps"]) * norm.to(x.dtype)
        placed.append(heads if turns is None else turned(heads, *(one.to(x.dtype).unsqueeze(1) for one in turns), pairs))
    q, k = placed
    k, v = (one.repeat_interleave(q.shape[1] // one.shape[1], 1) for one in (k, v))
    logits = q @ k.transpose(2, 3) * (head_dim**-0.5 if options["scale"] is None else options["scale"])
    if options["softcap"]:
        logits = options["softcap"] * torch.tanh(logits / options["softcap"])
    weights = logits.masked_fill(hidden, -torch.inf).softmax(-1).nan_to_num(0.0)
    return projected((weights @ v).transpose(1, 2).flatten(2), "o"), STEPS + logits.abs().max().item() / 8
