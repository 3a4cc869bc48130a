"""Dense gated MLPs: the layer `gate_up_proj` gives what `down_proj` would give, and the two parts behind it have nothing left to do.

A linear layer's method sees neither the activation nor the module that both belong to. PyTorch tells whoever asks when a module is
given a part; one with parts gate_up_proj, act_fn and down_proj, whose forward hands what the first gives to the second, and that to the
third, and does nothing in between, is a gated MLP. In all other modules the layers are linear ones.
"""

import ast
import functools
import inspect
import itertools
import textwrap

import torch
from thresher.torch import engines
from torch import nn
from torch.nn.modules.module import register_module_module_registration_hook
from vllm.model_executor.layers.activation import SiluAndMul
from vllm.model_executor.layers.linear import LinearMethodBase, register_weight_loader_v2_supported_method

from .linear import LinearMethod

_PARTS = ("gate_up_proj", "act_fn", "down_proj")


@register_weight_loader_v2_supported_method
class GateUpMethod(LinearMethod):
    """A linear layer until it is found to be part of a gated MLP with the layer `down`."""

    def __init__(self, own: LinearMethodBase, format: str):
        super().__init__(own, format)
        self.down: list[nn.Module] = []

    def process_weights_after_loading(self, layer) -> None:
        if not self.down:
            super().process_weights_after_loading(layer)
            return
        down = self.down[0]
        self.has_bias = False
        self.release(layer, lambda: engines.gated_mlp_of(self.format, layer, down, self.dtype))
        engines.give_up(down)


@register_weight_loader_v2_supported_method
class DownMethod(LinearMethod):
    """A linear layer whose product that of gate_up_proj has in it, once `is_done`."""

    is_done = False

    def process_weights_after_loading(self, layer) -> None:
        if not self.is_done:
            super().process_weights_after_loading(layer)

    def apply(self, layer, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        return x if self.is_done else super().apply(layer, x, bias)


class Activated(nn.Module):
    """In place of an activation that gate_up_proj has computed, and more."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def _part_of(node: ast.AST) -> str | None:
    """"act_fn" of `self.act_fn`."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own and node.attr in _PARTS else None


def _activates(node: ast.AST, name: str) -> bool:
    """Whether it is `self.act_fn(name)`, or a call that is given both one behind the other."""
    if not isinstance(node, ast.Call):
        return False
    values = [node.func, *node.args]
    return any(_part_of(one) == "act_fn" and isinstance(value, ast.Name) and value.id == name for one, value in itertools.pairwise(values))


def _given_name(node: ast.stmt, part: str) -> str | None:
    """"x" of `x = self.part(…)` and of `x, … = self.part(…)`."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or _part_of(node.value.func) != part:
        return None
    target = node.targets[0]
    first = target.elts[0] if isinstance(target, ast.Tuple) else target
    return first.id if isinstance(first, ast.Name) else None


def _downs(node: ast.AST, name: str) -> bool:
    """Whether it is `self.down_proj(name)`."""
    return (isinstance(node, ast.Call) and _part_of(node.func) == "down_proj" and len(node.args) == 1 and not node.keywords
            and isinstance(node.args[0], ast.Name) and node.args[0].id == name)


@functools.cache
def _is_gated_mlp(kind: type) -> bool:
    """Whether the forward of these modules says `x, … = self.gate_up_proj(…)`, in the next statement `y = ` what activates x and nothing
    more, and in the next gives y to down_proj."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind.forward)))
    except (OSError, TypeError, SyntaxError):
        return False
    parts = [_part_of(node) for node in ast.walk(tree)]
    if parts.count("gate_up_proj") != 1 or parts.count("act_fn") != 1:
        return False
    body = tree.body[0].body
    for one, after, last in zip(body, body[1:], body[2:]):
        given = _given_name(one, "gate_up_proj")
        if given is not None and isinstance(after, ast.Assign) and isinstance(after.targets[0], ast.Name) and _activates(after.value, given):
            activated = after.targets[0].id
            return any(_downs(node, activated) for node in ast.walk(last))
    return False


def _fuse(module: nn.Module, name: str, part: nn.Module | None) -> nn.Module | None:
    """Called when `module` is given `part` under `name`; gives back what it is given instead, None for `part` itself."""
    if name not in _PARTS:
        return None
    parts = {one: part if one == name else getattr(module, one, None) for one in _PARTS}
    gate_up, down = parts["gate_up_proj"], parts["down_proj"]
    methods = [getattr(one, "quant_method", None) for one in (gate_up, down)]
    if not (isinstance(methods[0], GateUpMethod) and isinstance(methods[1], DownMethod) and _may_fuse(module, gate_up, down, parts["act_fn"])):
        return None
    methods[0].down, methods[1].is_done = [down], True
    if name == "act_fn":
        return Activated()
    module.act_fn = Activated()
    return None


def _may_fuse(module: nn.Module, gate_up: nn.Module, down: nn.Module, activation: nn.Module | None) -> bool:
    return (type(activation) is SiluAndMul and gate_up.bias is None and not gate_up.gather_output and down.bias is None and down.input_is_parallel
            and _is_gated_mlp(type(module)))


def register() -> None:
    register_module_module_registration_hook(_fuse)
