"""Dense gated MLPs: the layer `gate_up_proj` gives what the activation behind it would give.

A linear layer's method sees neither the activation nor the module that both belong to. PyTorch tells whoever asks when a module is
given a part; one with parts gate_up_proj, act_fn and down_proj, whose forward hands what the first gives to the second and does
nothing in between, is a gated MLP, and its act_fn is replaced by one that has nothing left to do. In all other modules the layer is a
linear one.
"""

import ast
import functools
import inspect
import itertools
import textwrap

import torch
from torch import nn
from torch.nn.modules.module import register_module_module_registration_hook
from vllm.model_executor.layers.activation import SiluAndMul
from vllm.model_executor.layers.linear import LinearMethodBase, register_weight_loader_v2_supported_method

from .linear import LinearMethod

_PARTS = ("gate_up_proj", "act_fn", "down_proj")


@register_weight_loader_v2_supported_method
class GateUpMethod(LinearMethod):
    """A linear layer until it is found to be part of a gated MLP."""

    def __init__(self, own: LinearMethodBase, linears, gate_up):
        """gate_up: makes the engines.GateUp of the layer for tokens of a type."""
        super().__init__(own, linears)
        self.gate_up = gate_up
        self.is_fused = False

    def process_weights_after_loading(self, layer) -> None:
        if self.is_fused:
            self.linears = lambda layer, rows, dtype, bias: self.gate_up(layer, dtype)
        super().process_weights_after_loading(layer)


class Activated(nn.Module):
    """In place of an activation that gate_up_proj has computed."""

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


@functools.cache
def _is_gated_mlp(kind: type) -> bool:
    """Whether the forward of these modules says `name, … = self.gate_up_proj(…)` and in the next statement activates that name."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind.forward)))
    except (OSError, TypeError, SyntaxError):
        return False
    parts = [_part_of(node) for node in ast.walk(tree)]
    if parts.count("gate_up_proj") != 1 or parts.count("act_fn") != 1:
        return False
    for one, after in itertools.pairwise(tree.body[0].body):
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and _part_of(one.value.func) == "gate_up_proj":
            target = one.targets[0]
            given = target.elts[0] if isinstance(target, ast.Tuple) else None
            return isinstance(given, ast.Name) and any(_activates(node, given.id) for node in ast.walk(after))
    return False


def _fuse(module: nn.Module, name: str, part: nn.Module | None) -> nn.Module | None:
    """Called when `module` is given `part` under `name`; gives back what it is given instead, None for `part` itself."""
    if name not in _PARTS:
        return None
    parts = {one: part if one == name else getattr(module, one, None) for one in _PARTS}
    gate_up = parts["gate_up_proj"]
    method = getattr(gate_up, "quant_method", None)
    if None in parts.values() or not isinstance(method, GateUpMethod) or not _may_fuse(module, gate_up, parts["act_fn"]):
        return None
    method.is_fused = True
    if name == "act_fn":
        return Activated()
    module.act_fn = Activated()
    return None


def _may_fuse(module: nn.Module, gate_up: nn.Module, activation: nn.Module) -> bool:
    return (type(activation) is SiluAndMul and gate_up.bias is None and not gate_up.gather_output and not gate_up.skip_bias_add
            and _is_gated_mlp(type(module)))


def register() -> None:
    register_module_module_registration_hook(_fuse)
