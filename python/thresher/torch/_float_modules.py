"""Reading a float module: its layers, its activation, and that it has nothing that would be left out."""

import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin

from .._library import refuse
from . import _module_activation as _activation
from ._float_calls import expect_gated
from ._module_activation import Activation, described
from ._plain import short

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_ACTIVATIONS = ("act_fn", "activation_fn", "act", "activation", "hidden_act", "hidden_activation", "activation_func")
_LIMITS = ("limit", "swiglu_limit")
_IDENTITIES = (nn.Dropout.forward, nn.Identity.forward)  # outside of training
# Sizes, names and what counts in training alone.
_WITHOUT_EFFECT = frozenset((
    "training", "config", "name", "layer_idx", "layer_id", "layer_type", "hidden_size", "hidden_dim", "intermediate_size", "intermediate_dim",
    "ffn_dim", "dim", "embed_dim", "inner_dim", "num_experts", "num_heads", "num_attention_heads", "num_key_value_heads", "num_kv_heads",
    "num_key_value_groups", "attention_dropout", "residual_dropout", "dropout", "max_position_embeddings", "rope_theta"))


def called(module: Any) -> str:
    return type(module).__name__


def expect_module(module: Any) -> None:
    if not isinstance(module, nn.Module):
        refuse(f"module is a {called(module)}, expected a torch.nn.Module")


def configured(module: nn.Module, name: str) -> Any:
    """What the configuration of a module says, None where it says nothing."""
    try:
        return getattr(getattr(module, "config", None), name, None)
    except Exception as error:  # some that differ between layers raise errors of their own
        refuse(f"{name} of the configuration of the module {called(module)} cannot be read: {str(error).splitlines()[0]}")


def names_of(names: Iterable[str]) -> frozenset[str]:
    """What a caller says has no effect."""
    given = tuple(names) if isinstance(names, Iterable) and not isinstance(names, (str, bytes)) else (None,)
    if not all(isinstance(name, str) for name in given):
        refuse(f"ignore is {names!r}, expected the names of parts of the module")
    return frozenset(given)


def expect_ignored(module: nn.Module, ignored: frozenset[str], taken: Iterable[str], ours: str) -> None:
    """That a caller's ignored parts are there, and are not used all the same."""
    for name in sorted(ignored):
        if name in taken:
            refuse(f"ignore has {name!r}, which {ours} takes over from the module {called(module)}: leave it out of ignore")
        if not hasattr(module, name) and configured(module, name) is None:
            refuse(f"ignore has {name!r}, which the module {called(module)} does not have")


def expect_as_written(module: nn.Module, ignored: frozenset[str]) -> None:
    """That nothing was put before, behind or in place of a forward."""
    for name, part in module.named_modules():
        if name.partition(".")[0] in ignored:
            continue
        what = f"the part {name} of the module {called(module)}" if name else f"the module {called(module)}"
        if isinstance(part, LazyModuleMixin) and part.has_uninitialized_params():
            refuse(f"{what} is a {called(part)} without a weight yet, expected it to be called once before")
        if getattr(part, "_forward_hooks", None) or getattr(part, "_forward_pre_hooks", None):
            refuse(f"{what} has a forward hook, which is not taken over: remove it first")
        if "forward" in vars(part):
            refuse(f"{what} has a forward of its own in place of that of its class {called(part)}, which is not taken over: put that back first")


def parts_of(module: nn.Module) -> dict[str, Any]:
    """All that may change what a module computes, by name: layers, tensors and attributes that are not None."""
    tensors = {**dict(module.named_parameters(recurse=False)), **dict(module.named_buffers(recurse=False))}
    layers = {name: child for name, child in module.named_children() if type(child).forward not in _IDENTITIES}
    own = {name: value for name, value in vars(module).items() if not name.startswith("_") and value is not None}
    plain = _WITHOUT_EFFECT - ({"layer_type"} & words_of(module))
    return {**layers, **tensors, **{name: value for name, value in own.items() if name not in plain}}


def expect_nothing_else(module: nn.Module, taken: Iterable[str], ours: str, ignore: Iterable[str] = ()) -> None:
    ignored = names_of(ignore)
    expect_ignored(module, ignored, taken, ours)
    for name, part in parts_of(module).items():
        if name not in taken and name not in ignored:
            what = f"{name} {list(part.shape)}" if isinstance(part, torch.Tensor) else f"{name} ({named_value(part)})"
            refuse(f"the module {called(module)} has {what}, which {ours} does not take over: give its name in ignore if it changes nothing")


def named_value(part: Any) -> str:
    return repr(part) if isinstance(part, (bool, int, float, str)) else called(part)


def linear(module: nn.Module, *names: str) -> tuple[str, nn.Module]:
    """(name, layer) of the first linear layer of these names, that has a weight [out, in] and at most a bias."""
    for name in names:
        layer = getattr(module, name, None)
        if layer is not None:
            expect_linear(name, layer)
            return name, layer
    others = [name for name, _ in module.named_children()]
    refuse(f"the module has no layer {' or '.join(names)}" + (f", but {', '.join(others[:8])}" if others else ""))


def expect_linear(name: str, layer: Any) -> None:
    weight = getattr(layer, "weight", None)
    shape = (getattr(layer, "out_features", None), getattr(layer, "in_features", None))
    if not isinstance(weight, torch.Tensor) or tuple(weight.shape) != shape:
        refuse(f"the layer {name} is a {called(layer)}, expected torch.nn.Linear")
    if type(layer).forward is not nn.Linear.forward:
        refuse(f"the layer {name}, a {called(layer)}, has a forward of its own, expected that of torch.nn.Linear")
    if weight.dtype not in _FLOATS:
        refuse(f"the weight of the layer {name} is {short(weight.dtype)}, expected floating point of at least 16 bits")
    tensors = [key for key, _ in (*layer.named_parameters(), *layer.named_buffers())]
    for part in (*tensors, *(key for key, _ in layer.named_children())):
        if part not in ("weight", "bias"):
            refuse(f"the layer {name}, a {called(layer)}, has {part}, expected a weight and a bias alone")


def without_bias(name: str, layer: nn.Module) -> torch.Tensor:
    if getattr(layer, "bias", None) is not None:
        refuse(f"the layer {name} has a bias, expected none")
    return layer.weight


def gated_layers(module: nn.Module, activation: str | None = None, ignore: Iterable[str] = (),
                 **constants: float | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Activation]:
    """Gate, up and down of a module with layers of the names that GatedMLP.from_float takes, and its activation."""
    expect_module(module)
    ignored = names_of(ignore)
    expect_as_written(module, ignored)
    if getattr(module, "gate_up_proj", None) is not None:
        both, down = linear(module, "gate_up_proj"), linear(module, "down_proj")
        gate, up = without_bias(*both).chunk(2)
        layers = both, down
    else:
        layers = linear(module, "gate_proj", "w1"), linear(module, "up_proj", "w3"), linear(module, "down_proj", "w2")
        gate, up = without_bias(*layers[0]), without_bias(*layers[1])
    down = without_bias(*layers[-1])
    chosen, read = activation_in(module, activation, constants)
    expect_nothing_else(module, [*(name for name, _ in layers), *read], "GatedMLP", ignored)
    expect_gated(module, gate, up, down, chosen)
    return gate, up, down, chosen


def activation_in(module: nn.Module, name: str | None, constants: dict[str, float | None]) -> tuple[Activation, list[str]]:
    """(activation, the attributes that say it) of a module, which a caller's has to be."""
    given = _activation.given_activation(name, constants)
    read, function = next(((key, getattr(module, key)) for key in _ACTIVATIONS if getattr(module, key, None) is not None), (None, None))
    if function is None:
        said = (configured(module, key) for key in ("hidden_activation", "hidden_act"))
        function = next((one for one in said if one is not None), None)
    limits = {key: getattr(module, key) for key in _LIMITS if getattr(module, key, None) is not None}
    limit = next(iter(limits.values()), configured(module, "swiglu_limit"))
    found = None if function is None or limit is not None else _known(module, function)
    if limit is not None:
        _expect_limit(module, given, limit)
    if given is None and found is None:
        refuse(f"the module {called(module)} does not say its activation, expected it in activation")
    return agreed(module, given, found), [*([] if read is None else [read]), *limits]


def _known(module: nn.Module, function: Any) -> Activation:
    found = _by_name(function) if isinstance(function, str) else _activation.of_function(function)
    if found is None:
        refuse(f"the activation of the module {called(module)} is {_activation.named(function)}, expected 'silu' or 'gelu_tanh'")
    return found


def _by_name(name: str) -> Activation | None:
    try:
        return _activation.activation_of(name) if name != "swiglu_clamped" else None
    except ValueError:
        return None


def _expect_limit(module: nn.Module, given: Activation | None, limit: float) -> None:
    if given is None or given[1].get("limit") != limit:
        refuse(f"the module {called(module)} limits gate and up to {limit}, expected activation 'swiglu_clamped' with this limit, and its "
               "alpha and up_offset")


def agreed(module: nn.Module, given: Activation | None, found: Activation | None) -> Activation:
    if given is not None and found is not None and given != found:
        refuse(f"activation is {described(given)}, but that of the module {called(module)} is {described(found)}")
    chosen = found if given is None else given
    assert chosen is not None
    return chosen


def stacked_layers(experts: Any, activation: str | None = None, ignore: Iterable[str] = (),
                   **constants: float | None) -> tuple[torch.Tensor, torch.Tensor, Activation]:
    """Gate and up [E, 2·N, K], the gate first, and down [E, K, N] of a sequence of gated MLPs, and their one activation."""
    ignored = names_of(ignore)
    layers = [gated_layers(one, activation, ignored, **constants) for one in experts]
    for index, layer in enumerate(layers):
        if layer[3] != layers[0][3]:
            refuse(f"the activation of expert {index} is {described(layer[3])}, but that of expert 0 {described(layers[0][3])}")
        if layer[0].device != layers[0][0].device:
            refuse(f"gate of expert {index} is on {layer[0].device}, but that of expert 0 on {layers[0][0].device}, expected one device")
        if layer[0].shape != layers[0][0].shape or layer[2].shape != layers[0][2].shape:
            refuse(f"gate and down of expert {index} are {list(layer[0].shape)} and {list(layer[2].shape)}, but those of expert 0 "
                   f"{list(layers[0][0].shape)} and {list(layers[0][2].shape)}")
    both = torch.stack([torch.cat([gate, up]) for gate, up, _, _ in layers])
    return both, torch.stack([down for _, _, down, _ in layers]), layers[0][3]


def forward_of(module: nn.Module) -> Callable | None:
    """The function in Python that a module's class computes with, None where it has none."""
    forward = inspect.unwrap(type(module).forward)
    return forward if forward is not nn.Module.forward and hasattr(forward, "__code__") else None


def words_of(module: nn.Module) -> set[str]:
    """The names and texts that the methods of a module's class mention, its constructor's aside."""
    kinds = type(module).__mro__[: type(module).__mro__.index(nn.Module)]
    methods = [inspect.unwrap(one) for kind in kinds for name, one in vars(kind).items() if name != "__init__" and inspect.isfunction(one)]
    return set().union(*(_words(one.__code__) for one in methods))


def _words(code: types.CodeType) -> set[str]:
    found: set[str] = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _words(constant)
        found.update(one for one in (constant if isinstance(constant, tuple) else (constant,)) if isinstance(one, str))
    return found
