"""Modules of thresher.torch in place of a model's own, with a report of what was replaced and what was not."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import nn

from .._errors import Error
from .._library import refuse
from ..torch import GatedMLP, Linear
from ..torch._float_modules import activation_in, called, expect_as_written, expect_nothing_else, names_of
from ._experts import is_experts
from ._weights import FP8_TOKENS, Weights, weights_of

_GATED = (("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2"), ("gate_up_proj", "down_proj"))
_BY_REGISTRY = "experts_implementation='thresher' computes experts, and replace leaves them alone"


class Report(NamedTuple):
    """By the names of modules: what they became, and why others were kept."""

    replaced: dict[str, str]
    kept: dict[str, str]

    def __str__(self) -> str:
        """One line for each."""
        return "\n".join([*(f"{name}: {what}" for name, what in self.replaced.items()),
                          *(f"{name}: kept, {why}" for name, why in self.kept.items())])


@torch.no_grad()
def replace(model: nn.Module, *, gated_mlps: bool = True, linears: bool = True, ignore: Iterable[str] = ()) -> Report:
    """Replaces, in place, gated MLPs by `thresher.torch.GatedMLP` and the other linear layers by `thresher.torch.Linear`.

    Weights are float16 or bfloat16, or as transformers keeps a quantized checkpoint's: FP8 in blocks of 128 by 128 (fine-grained FP8), NVFP4
    or MXFP4 (compressed-tensors). Each is packed for its device, and the old module with its weights is given up.
    ignore: names of modules that are left alone, with all their parts.

    The report has a line for each module that was replaced, and for each gated MLP, linear layer and module of experts that was not.
    """
    ignored = names_of(ignore)
    report = Report({}, {})
    shared = _shared(model)
    for name in sorted(ignored - dict(model.named_modules()).keys()):
        refuse(f"ignore has {name!r}, which the model {called(model)} does not have")
    _walk(model, "", (gated_mlps, linears), ignored, shared, report)
    return report


def _walk(parent: nn.Module, prefix: str, wanted: tuple[bool, bool], ignored: frozenset[str], shared: dict, report: Report) -> None:
    for key, module in list(parent.named_children()):
        name = f"{prefix}{key}"
        if isinstance(module, (GatedMLP, Linear)):
            continue
        if name in ignored:
            report.kept[name] = "it is in ignore"
        elif is_experts(module):
            if module.config._experts_implementation != "thresher":
                report.kept[name] = _BY_REGISTRY
        elif not (wanted[0] and _names_in(module) and _try(parent, key, name, _gated, shared, report)):
            if wanted[1] and _is_linear(module):
                _try(parent, key, name, _linear, shared, report)
            _walk(module, f"{name}.", wanted, ignored, shared, report)


def _try(parent: nn.Module, key: str, name: str, make: Callable[[nn.Module], nn.Module], shared: dict, report: Report) -> bool:
    old = getattr(parent, key)
    owners = [owner for parameter in old.parameters() for owner in shared[id(parameter)] if owner.rpartition(".")[0] not in _inside(old, name)]
    if owners:
        report.kept[name] = f"it shares a weight with {owners[0].rpartition('.')[0]}"
        return False
    try:
        made = make(old)
    except Error as error:
        report.kept[name] = str(error)
        return False
    made.train(old.training)
    setattr(parent, key, made)
    report.kept.pop(name, None)
    report.replaced[name] = f"{called(made)}({made.extra_repr()})"
    return True


def _shared(model: nn.Module) -> dict[int, list[str]]:
    """The names of each parameter."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return names


def _inside(module: nn.Module, name: str) -> set[str]:
    return {f"{name}.{part}" if part else name for part, _ in module.named_modules()}


def _is_linear(module: nn.Module) -> bool:
    return isinstance(module, nn.Linear) or hasattr(module, "weight_packed") or called(module).endswith("Linear")


def _linear(layer: nn.Module) -> Linear:
    given = weights_of(layer)
    return Linear(given.weight, given.bias, tokens=given.tokens)


def _names_in(module: nn.Module) -> tuple[str, ...] | None:
    """The names of a gated MLP's layers."""
    return next((names for names in _GATED if all(_is_linear(getattr(module, name, None)) for name in names)), None)


def _gated(module: nn.Module) -> GatedMLP:
    names = _names_in(module)
    assert names is not None
    layers = [weights_of(getattr(module, name)) for name in names]
    if all(isinstance(one.weight, torch.Tensor) for one in layers):
        return GatedMLP.from_float(module)
    return _gated_of_quantized(module, names, layers)


def _gated_of_quantized(module: nn.Module, names: tuple[str, ...], layers: list[Weights]) -> GatedMLP:
    """Of quantized layers, which nothing but their parts is known of: they are not called."""
    expect_as_written(module, frozenset(names))
    if len(layers) != 3 or any(one.bias is not None for one in layers) or len({type(one.weight) for one in layers}) != 1:
        refuse(f"the layers {', '.join(names)} of the {called(module)} are not three without biases in one format, as a gated MLP has them")
    (activation, constants), read = activation_in(module, None, {})
    expect_nothing_else(module, (*names, *read), "GatedMLP")
    gate, up, down = (one.weight for one in layers)
    return GatedMLP(gate, up, down, activation=activation, tokens=FP8_TOKENS if layers[0].tokens else None, **constants)
