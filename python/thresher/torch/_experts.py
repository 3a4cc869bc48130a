"""Reading the experts of a float model: a sequence of gated MLPs, or one module that holds all their weights."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, NamedTuple

import torch
from torch import nn

from .._library import refuse
from .._options import ORDERS, one_of
from ._module_activation import Activation, given_activation, named, of_gating
from ._float_calls import expect_mixture
from ._float_modules import activation_in, agreed, called, expect_as_written, expect_module, expect_nothing_else, forward_of, names_of, stacked_layers

_SAID = ("is_transposed", "is_concatenated", "has_bias", "has_gate", "has_post_expert_norm")
_TENSORS = ("gate_up_proj", "down_proj", "gate_up_proj_bias", "down_proj_bias")
_CONSTANTS = ("alpha", "limit", "swiglu_alpha", "swiglu_limit")


class Experts(NamedTuple):
    """As MoE takes them."""

    gate_up: torch.Tensor
    down: torch.Tensor
    order: str
    activation: Activation
    bias: torch.Tensor | None = None
    down_bias: torch.Tensor | None = None


def _all(count: int) -> tuple[int, int]:
    return 0, count


def experts_of(experts: Any, activation: str | None, order: str | None, ignore: Iterable[str],
               part: Callable[[int], tuple[int, int]] = _all, **constants: float | None) -> Experts:
    """part: of how many experts there are, the first that is wanted and the one behind the last."""
    ignore = names_of(ignore)
    if isinstance(getattr(experts, "gate_up_proj", None), torch.Tensor):
        return _cut(_of_one_module(experts, activation, order, ignore, constants), *part(len(experts.gate_up_proj)))
    has_no_order = isinstance(experts, (Set, Mapping)) or isinstance(experts, nn.Module) and not isinstance(experts, nn.ModuleList)
    if has_no_order or not isinstance(experts, Iterable):
        parts = ", ".join(name for name, _ in experts.named_children()) if isinstance(experts, nn.Module) else ""
        refuse(f"experts is a {called(experts)}{f' of {parts}' if parts else ''}, expected a sequence of gated MLPs, or a module with "
               "gate_up_proj and down_proj of all experts")
    if order is not None:
        refuse(f"order is {order!r}, but each expert has gate and up of its own")
    experts = list(experts)
    if not experts:
        refuse("there are no experts, expected at least one")
    start, stop = part(len(experts))
    both, down, chosen = stacked_layers(experts[start:stop], activation, ignore, **constants)
    return Experts(both, down, "gate_first", chosen)


def _cut(given: Experts, start: int, stop: int) -> Experts:
    gate_up, down, bias, down_bias = (None if one is None else one[start:stop] for one in (given.gate_up, given.down, given.bias, given.down_bias))
    assert gate_up is not None and down is not None
    return given._replace(gate_up=gate_up, down=down, bias=bias, down_bias=down_bias)


def _of_one_module(module: Any, activation: str | None, order: str | None, ignore: Iterable[str], constants: dict) -> Experts:
    expect_module(module)
    expect_as_written(module, names_of(ignore))
    for name, wanted in (("has_gate", True), ("has_post_expert_norm", False), ("_is_expert_parallel", False)):
        if getattr(module, name, wanted) != wanted:
            refuse(f"{name} of the module {called(module)} is {not wanted}, expected {wanted}")
    if order is not None:
        one_of("order", order, ORDERS)
    both, down, is_transposed = _matrices(module)
    chosen, found, read = gating(module, activation, constants)
    if order is not None and found is not None and order != found:
        refuse(f"order is {order!r}, but gate and up of the module {called(module)} lie {found!r}")
    order = order or found
    if order is None:
        refuse(f"the module {called(module)} does not say how gate and up lie in gate_up_proj, expected it in order")
    expect_nothing_else(module, (*_TENSORS, *_SAID, *read), "MoE", ignore)
    if is_transposed:
        both, down = both.transpose(1, 2), down.transpose(1, 2)
    made = Experts(both, down, order, chosen, getattr(module, "gate_up_proj_bias", None), getattr(module, "down_proj_bias", None))
    if _takes_routing(module):
        expect_mixture(module, both, down, order, chosen, made.bias, made.down_bias)
    return made


def _takes_routing(module: Any) -> bool:
    """Whether its forward takes rows, the ids of their experts and their weights."""
    forward = forward_of(module)
    taken = [] if forward is None else [one for one in inspect.signature(forward).parameters.values() if one.kind == one.POSITIONAL_OR_KEYWORD][1:]
    names = [one.name for one in taken]
    needs_more = any(one.default is one.empty for one in taken[3:])
    return len(names) >= 3 and ("ind" in names[1] or "ids" in names[1]) and "weight" in names[2] and not needs_more


def _matrices(module: Any) -> tuple[torch.Tensor, torch.Tensor, bool]:
    """(gate and up, down, whether both are transposed), as their shapes say: one of 2·N is twice the other's N in one way alone."""
    both, down = module.gate_up_proj, getattr(module, "down_proj", None)
    if isinstance(down, torch.Tensor) and both.dim() == 3 and down.dim() == 3 and both.shape[0] == down.shape[0]:
        (_, a, b), (_, c, d) = both.shape, down.shape
        if (a, b) == (2 * d, c):
            return both, down, False
        if (a, b) == (d, 2 * c):
            return both, down, True
    found = list(down.shape) if isinstance(down, torch.Tensor) else called(down)
    refuse(f"gate_up_proj of the module {called(module)} is {list(both.shape)} and down_proj {found}, expected [E, 2 N, K] and [E, K, N], or "
           "[E, K, 2 N] and [E, N, K]")


def gating(module: Any, name: str | None, constants: dict) -> tuple[Activation, str | None, list[str]]:
    """(activation, order where the module says it, the attributes that say both)."""
    of_module = {key: getattr(module, key) for key in _CONSTANTS if isinstance(getattr(module, key, None), (int, float))}
    apply_gate = getattr(module, "_apply_gate", None)
    is_concatenated = getattr(module, "is_concatenated", None)
    order = None if is_concatenated is None else "gate_first" if is_concatenated else "interleaved"
    if apply_gate is None:
        chosen, read = activation_in(module, name, constants)
        return chosen, order, read
    found = of_gating(apply_gate, _candidates(of_module))
    function = getattr(module, "act_fn", None)
    if found is None:
        refuse(f"_apply_gate of the module {called(module)}{'' if function is None else f' with {named(function)}'} is no activation that is "
               "computed, expected 'silu', 'gelu_tanh' or 'swiglu_clamped'")
    given = given_activation(name, constants)
    read = [*of_module, *(["act_fn"] if function is not None else [])]
    return agreed(module, given, found[1]), found[0], read


def _candidates(of_module: dict[str, float]) -> list[dict[str, float]]:
    """Constants that a module's limit and alpha may stand for."""
    limit = of_module.get("limit", of_module.get("swiglu_limit"))
    alphas = {float(of_module.get("alpha", of_module.get("swiglu_alpha", 1.0))), 1.0}
    return [] if limit is None else [dict(alpha=alpha, limit=float(limit), up_offset=offset) for alpha in sorted(alphas) for offset in (0.0, 1.0)]
