"""Whether a float module computes what is taken over of it: it is called once, on a few rows, and compared with the definition.

A module that cannot be called so, on meta for one, or that needs other arguments, is judged by its parts alone.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn

from .._library import refuse
from ._module_activation import Activation, computed, parted

_SIZES = (0.25, 1.0, 8.0)  # of rows: what saturates does so in the last
STEPS = 8  # roundings that a result may be off by
_LEAST = 2.0**-14  # what sums in float32 may be off by
_REDUCED = 2.0**-7  # and where PyTorch may multiply float32 in fewer bits

Call = tuple[tuple, dict[str, Any]]


def rows_for(weight: torch.Tensor) -> torch.Tensor:
    """[3, K] of the type of a weight [N, K] and on its device, the same each time."""
    rows = torch.randn(len(_SIZES), weight.shape[-1], generator=torch.Generator("cpu").manual_seed(0), dtype=torch.float32, device="cpu")
    return (rows * torch.tensor(_SIZES, device="cpu").unsqueeze(1)).to(weight.device, weight.dtype)


def wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to(torch.promote_types(tensor.dtype, torch.float32))


def can_be_called(module: nn.Module) -> bool:
    """Whether its tensors are there, whole and on one device."""
    tensors = [*module.parameters(), *module.buffers()]
    return (all(type(one) in (torch.Tensor, nn.Parameter) and not one.is_meta for one in tensors)
            and len({one.device for one in tensors}) == 1)


def expect_same(module: nn.Module, calls: Iterable[Call], exact: Callable[[], tuple[torch.Tensor, float]], what: str) -> None:
    """Refuses a module that gives something else than `exact` in all calls that it can be called in. exact: (what it should give, of 32 bits or
    more, and how many roundings of the module's type it may be off by)."""
    least, expected, allowed = None, None, 0.0
    for arguments, named in calls:
        found = _result(module, arguments, named)
        if found is None:
            continue
        if expected is None:
            with torch.no_grad(), _as_written(found.device):
                expected, steps = exact()
            allowed = _allowed(module, steps)
        difference = _difference(found, expected)
        if difference <= allowed:
            return
        least = difference if least is None else min(least, difference)
    if least is not None:
        refuse(f"the module {type(module).__name__} computes something else than {what}: on a few rows its result differs by {least:.2g} of the "
               "largest output")


def _allowed(module: nn.Module, steps: float) -> float:
    types = {one.dtype for one in module.parameters() if one.is_floating_point()}
    is_reduced = torch.float32 in types and torch.get_float32_matmul_precision() != "highest"
    return max(_REDUCED if is_reduced else _LEAST, *(steps * torch.finfo(one).eps for one in types))


def _difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Relative to the largest element of a row; rows that overflow are left out."""
    if found.numel() != expected.numel():
        return float("inf")
    found = found.to(expected.dtype).reshape(expected.shape)
    is_there = (found.isfinite() & expected.isfinite()).all(-1)
    largest = expected.abs().amax(-1).clamp(min=torch.finfo(expected.dtype).tiny)
    relative = ((found - expected).abs().amax(-1) / largest)[is_there]
    return relative.max().item() if relative.numel() else 0.0


def _result(module: nn.Module, arguments: tuple, named: dict[str, Any]) -> torch.Tensor | None:
    """What it gives, the first of several; None where it cannot be called so. Nothing of it remains."""
    device = next(module.parameters()).device
    try:
        with torch.no_grad(), _in_evaluation(module), _as_written(device), torch.random.fork_rng([device] if device.type == "cuda" else []):
            found = module.forward(*arguments, **named)
    except Exception:  # whatever a module raises, it is not called so
        return None
    found = found[0] if isinstance(found, (tuple, list)) and found else found
    return found if isinstance(found, torch.Tensor) and found.is_floating_point() and not found.is_meta else None


@contextlib.contextmanager
def _as_written(device: torch.device) -> Iterator[None]:
    """Outside of autocast, and new tensors on this device."""
    with torch.device(device), torch.autocast(device.type, enabled=False):
        yield


@contextlib.contextmanager
def _in_evaluation(module: nn.Module) -> Iterator[None]:
    flags = [(one, one.training) for one in module.modules()]
    try:
        for one, _ in flags:
            one.training = False
        yield
    finally:
        for one, flag in flags:
            one.training = flag


def expect_gated(module: nn.Module, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor, activation: Activation) -> None:
    """Of matrices that fit, the definition of a gated MLP."""
    if not can_be_called(module) or gate.shape != up.shape or down.shape != gate.shape[::-1]:
        return
    x = rows_for(gate)

    def exact() -> tuple[torch.Tensor, float]:
        return computed(activation, wide(x) @ wide(gate).T, wide(x) @ wide(up).T) @ wide(down).T, STEPS

    expect_same(module, (((x.unsqueeze(0),), {}), ((x,), {})), exact,
                f"down of activation {activation[0]!r} of gate times up, by its layers of these names")


def expect_mixture(module: nn.Module, gate_up: torch.Tensor, down: torch.Tensor, order: str, activation: Activation,
                   bias: torch.Tensor | None, down_bias: torch.Tensor | None) -> None:
    """gate_up: [E, 2·N, K], down: [E, K, N]. The module is called with rows, ids and weights; older ones take a weight of each expert."""
    if not can_be_called(module):
        return
    x, experts = rows_for(gate_up[0]), gate_up.shape[0]
    choices = min(2, experts)
    ids = torch.tensor([[(choice * (experts // choices) - row - 1) % experts for choice in range(choices)] for row in range(len(x))], device=x.device)
    weights = torch.tensor([[0.75, 0.5][:choices]] * len(x), dtype=x.dtype, device=x.device)
    of_all = torch.zeros(len(x), experts, dtype=x.dtype, device=x.device).scatter(1, ids, weights)

    def of_expert(row: torch.Tensor, expert: int) -> torch.Tensor:
        both = wide(row) @ wide(gate_up[expert]).T + (0 if bias is None else wide(bias[expert]))
        return computed(activation, *parted(both, order)) @ wide(down[expert]).T + (0 if down_bias is None else wide(down_bias[expert]))

    def exact() -> tuple[torch.Tensor, float]:
        return torch.stack([sum(wide(weight) * of_expert(row, expert) for weight, expert in zip(of_row, chosen))
                            for row, of_row, chosen in zip(x, weights, ids.tolist())]), STEPS

    expect_same(module, (((x, ids, weights), {}), ((x, ids, of_all), {})), exact,
                f"its experts' gated MLPs with activation {activation[0]!r}, gate and up {order!r}")
