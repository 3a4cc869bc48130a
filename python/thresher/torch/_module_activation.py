"""Activations of modules: by name, and by what a function of a float module computes."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch

from .._library import refuse
from .._options import ACTIVATIONS, CONSTANTS, UNGATED, constants_of, finite, number, one_of, takers_of

_OTHER_NAMES = {"swish": "silu", "gelu_pytorch_tanh": "gelu_tanh"}

Activation = tuple[str, dict[str, float]]


def activation_of(name: str, alpha: float | None = None, limit: float | None = None, up_offset: float | None = None) -> Activation:
    """(name, constants) of a module, checked."""
    name = _OTHER_NAMES.get(name, name) if isinstance(name, str) else name
    one_of("activation", name, ACTIVATIONS)
    given = {key: value for key, value in dict(alpha=alpha, limit=limit, up_offset=up_offset).items() if value is not None}
    for key, value in given.items():
        if key not in CONSTANTS.get(name, {}):
            refuse(f"{key} is {value!r}, but the activation is {name!r}, expected it beside {takers_of(key)} alone")
        (number if key == "limit" else finite)(key, value)
    if limit is not None and not limit > 0:
        refuse(f"limit is {limit}, expected a number above 0")
    return name, constants_of(name, given)


def is_gated(activation: Activation) -> bool:
    return activation[0] != UNGATED


def given_activation(name: str | None, constants: dict[str, float | None]) -> Activation | None:
    """What a caller says it is, who may leave it to the module."""
    if name is not None:
        return activation_of(name, **constants)
    for key, value in constants.items():
        if value is not None:
            refuse(f"{key} is {value!r} without activation, expected it beside activation 'swiglu_clamped'")
    return None


def described(activation: Activation) -> str:
    name, constants = activation
    return repr(name) + "".join(f", {key} {value:g}" for key, value in constants.items())


def computed(activation: Activation, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """The definition, in the type of gate and up."""
    name, constants = activation
    if name == "silu":
        return gate * torch.sigmoid(gate) * up
    if name == "gelu_tanh":
        return 0.5 * gate * (1 + torch.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3))) * up
    if name == "relu2":
        return up.clamp(min=0) ** 2
    if name == "situ":
        alpha, limit = constants["alpha"], constants["limit"]
        return alpha * torch.tanh(gate / alpha) * torch.sigmoid(gate) * limit * torch.tanh(up / limit)
    gate, up = gate.clamp(max=constants["limit"]), up.clamp(-constants["limit"], constants["limit"])
    return gate * torch.sigmoid(constants["alpha"] * gate) * (up + constants["up_offset"])


_PLAIN = (("silu", {}), ("gelu_tanh", {}))


def _same(found: Any, expected: torch.Tensor) -> bool:
    """As far as float32 is from float64; the two GELUs are a hundred times further apart."""
    return (isinstance(found, torch.Tensor) and found.shape == expected.shape
            and bool(((found.double() - expected).abs() <= 2e-6 * expected.abs() + 2e-6).all()))


def _samples() -> torch.Tensor:
    """Numbers where activations differ, and where those with a limit reach it."""
    near = torch.linspace(-9, 9, 487, dtype=torch.float64, device="cpu")
    far = torch.tensor([-300.0, -60.0, -21.0, -11.0, 11.0, 21.0, 60.0, 300.0], dtype=torch.float64, device="cpu")
    return torch.cat([near, far, far.new_zeros(1)])  # even in number


def _tried(function: Callable, given: torch.Tensor) -> Any:
    """What a module's function gives, None where it cannot be called so."""
    try:
        with torch.no_grad(), torch.device("cpu"), torch.autocast("cpu", enabled=False):
            return function(given)
    except Exception:  # whatever a module raises, its function is not one that is known
        return None


def of_function(function: Callable) -> Activation | None:
    """Which activation of a gate a function computes."""
    gate = _samples()
    found = _tried(function, gate)
    return next((one for one in _PLAIN if _same(found, computed(one, gate, torch.ones_like(gate)))), None)


def parted(both: torch.Tensor, order: str) -> tuple[torch.Tensor, torch.Tensor]:
    if order == "interleaved":
        return both[..., ::2], both[..., 1::2]
    first, second = both.chunk(2, -1)
    return (first, second) if order == "gate_first" else (second, first)


def of_gating(function: Callable, clamped: Iterable[dict[str, float]]) -> tuple[str, Activation] | None:
    """(order, activation) of a function of gate and up in one tensor [..., 2·N]. clamped: constants that may be its own."""
    samples = _samples()
    both = torch.stack([samples, samples.flip(0), samples.roll(101), samples.roll(-37) / 4])
    found = _tried(function, both)
    candidates = (*_PLAIN, *(("swiglu_clamped", constants) for constants in clamped))
    return next(((order, one) for order in ("gate_first", "interleaved", "up_first") for one in candidates
                 if _same(found, computed(one, *parted(both, order)))), None)


def named(function: Any) -> str:
    """How a sentence calls an activation of a module."""
    return repr(function) if isinstance(function, str) else getattr(function, "__name__", type(function).__name__)
