"""`torch.nn` modules on the operators, made from a float module or a checkpoint's tensors.

Weights are buffers: they move, save and load like any, and are not trained. A module that is made from another computes what that one does,
or is rejected with an error that names what would be left out.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from .._fp8 import Fp8
from .._library import refuse
from .._nvfp4 import Nvfp4
from .._plans import row_bucket
from .._quantize import BLOCK as COLUMNS
from . import pack, pack_gemm, pack_grouped
from ._module_activation import activation_of, described, is_gated
from ._attention_module import Attention
from ._experts import experts_of
from ._float_modules import expect_as_written, expect_linear, gated_layers
from ._native import call
from ._state import Stated
from ._module_weights import (
    aligned,
    bias_beside,
    bias_of,
    buckets,
    buffer_of,
    expect_beside,
    expect_floats,
    expect_one_device,
    in_one_type,
    in_own_type,
    operand_of,
    result_dtype,
    short,
    tokens_of,
)

__all__ = ["Attention", "GatedMLP", "Linear", "MoE"]


class _Layer(Stated):
    """What both feed-forward layers say and save beside their weights."""

    def _describe(self, activation: tuple[str, dict], dtype: torch.dtype, tokens: str | None) -> None:
        self.activation, self.constants = activation
        self.dtype = dtype
        self.tokens = tokens_of(tokens)

    def said(self) -> dict[str, Any]:
        return dict(activation=self.activation, **self.constants, tokens=self.tokens, dtype=short(self.dtype))

    def extra_repr(self) -> str:
        formats = [info.format for info in self._held.values()]
        tokens = "" if self.tokens is None else f", tokens={self.tokens!r}"
        return f"k={self.k}, n={self.n}, format={'/'.join(dict.fromkeys(formats))}, activation={described((self.activation, self.constants))}{tokens}"


class Linear(Stated):
    """weight·x + bias: weight [N, K], bias [N]; x [..., K] and the result [..., N] in the type of x.

    The weight is a float tensor, which is rounded to `dtype`, Nvfp4 or Fp8. The buffer `packed`, uint8, is it with the bias, in float32,
    packed (see pack_gemm) for their device.
    tokens: "fp8_block" rounds the rows of x to FP8, 128 along K with one scale, as FP8 weights need on a GPU.
    numerics: as in pack_gemm.
    Modules on meta and autocast: as in GatedMLP.
    """

    packed: torch.Tensor

    def __init__(self, weight: torch.Tensor | Nvfp4 | Fp8, bias: torch.Tensor | None = None, *, dtype: torch.dtype | None = None,
                 tokens: str | None = None, numerics: str = "exact"):
        super().__init__()
        expect_one_device(weight=weight, bias=bias)
        self.dtype, (weight,) = in_one_type(2, dtype, ("weight", weight))
        self.tokens = tokens_of(tokens)
        found = self.hold("packed", pack_gemm, weight, bias=None if bias is None else buffer_of("bias", bias, torch.float32, 1), numerics=numerics)
        self.n, self.k = found.n, found.k

    @classmethod
    def from_float(cls, layer: nn.Module, *, dtype: torch.dtype | None = None, tokens: str | None = None) -> "Linear":
        """From a torch.nn.Linear. One with hooks or a forward of its own is refused."""
        expect_as_written(layer, frozenset())
        expect_linear("given", layer)
        return cls(layer.weight, layer.bias, dtype=dtype, tokens=tokens)

    def said(self) -> dict[str, Any]:
        return dict(tokens=self.tokens, dtype=short(self.dtype))

    def extra_repr(self) -> str:
        held = self._held["packed"]
        return f"k={self.k}, n={self.n}, format={held.format}{', bias' if held.has_bias else ''}"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        expect_floats(x, packed=self.packed)
        if x.dim() == 0 or x.shape[-1] != self.k:
            refuse(f"x is {list(x.shape)}, expected [..., {self.k}]")
        with in_own_type(x):
            values, scales = operand_of(x.reshape(-1, self.k).to(self.dtype), self.tokens)
            result = call(torch.ops.thresher.gemm_packed, values, self.packed, self.n, out_dtype=self.dtype, **scales)
        return result.reshape(*x.shape[:-1], self.n).to(result_dtype(x))

    def warm(self, rows: list[int], choices: int) -> None:
        """As thresher.torch.warm, which calls it."""
        for count in buckets(rows):
            self(torch.zeros(count, self.k, dtype=self.dtype, device=self.packed.device))


class GatedMLP(_Layer):
    """down·(activation(gate·x) ∘ up·x): gate, up [N, K]; down [K, N]; x and the result [..., K] in the type of x. With the activation
    "relu2" gate is None: down·max(up·x, 0)².

    Weights are float tensors, which are rounded to `dtype`, Nvfp4 or Fp8; gate and up are of one kind. The buffers `gate_up` and
    `down`, uint8, are they packed (see pack and pack_gemm) for their device, the only copies of them; of weights on meta they are on meta.
    activation, alpha, limit, up_offset: as in dual_gemm, or "relu2". "swish" and "gelu_pytorch_tanh" are
        other names of "silu" and "gelu_tanh".
    tokens: "fp8_block" rounds the rows of both products to FP8, 128 along K with one scale, as FP8 weights need on a GPU: between
        them once, where N is a multiple of 128; else what was rounded to `dtype` before.
    numerics: as in pack.
    Under autocast the result is of the type that a linear layer would give.
    """

    gate_up: torch.Tensor
    down: torch.Tensor

    def __init__(self, gate: torch.Tensor | Nvfp4 | Fp8 | None, up: torch.Tensor | Nvfp4 | Fp8, down: torch.Tensor | Nvfp4 | Fp8, *,
                 activation: str = "silu", alpha: float | None = None, limit: float | None = None, up_offset: float | None = None,
                 dtype: torch.dtype | None = None, tokens: str | None = None, numerics: str = "exact"):
        super().__init__()
        chosen = activation_of(activation, alpha, limit, up_offset)
        if (gate is not None) != is_gated(chosen):
            refuse(f"gate is {'given' if gate is not None else 'None'} beside the activation {activation!r}, expected "
                   f"{'None: it has no gate' if gate is not None else 'a matrix'}")
        named = dict(gate=gate, up=up, down=down) if gate is not None else dict(up=up, down=down)
        expect_one_device(**named)
        dtype, (*first, down) = in_one_type(2, dtype, *named.items())
        self._describe(chosen, dtype, tokens)
        found = self.hold("gate_up", pack if len(first) == 2 else pack_gemm, *first, numerics=numerics)
        below = self.hold("down", pack_gemm, down, numerics=numerics)
        if (below.n, below.k) != (found.k, found.n):
            refuse(f"{' and '.join(list(named)[:-1])} are [{found.n}, {found.k}] and down [{below.n}, {below.k}], expected [N, K] and [K, N]")
        self.n, self.k = found.n, found.k

    @classmethod
    def from_float(cls, module: nn.Module, *, activation: str | None = None, alpha: float | None = None, limit: float | None = None,
                   up_offset: float | None = None, dtype: torch.dtype | None = None, tokens: str | None = None,
                   ignore: Iterable[str] = ()) -> "GatedMLP":
        """From a module with linear layers gate_proj, up_proj and down_proj (or w1, w3 and w2; or gate_up_proj, gate first, and down_proj),
        without biases.

        activation: what the module's `act_fn` computes, or its configuration names (`hidden_activation`, `hidden_act`). A module that says
            none needs it here; one that says another refuses it. alpha, limit, up_offset: as of GatedMLP.
        ignore: names of the module's parts that change nothing. Any other part that is not taken over is refused.

        The module is called once, on three rows, and refused where it computes something else. One that cannot be called so, on meta or with
        other arguments, is judged by its parts alone.
        """
        gate, up, down, (name, constants) = gated_layers(module, activation, ignore, alpha=alpha, limit=limit, up_offset=up_offset)
        return cls(gate, up, down, activation=name, dtype=dtype, tokens=tokens, **constants)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.expect_rows(x)
        with in_own_type(x):
            result = self.products(x)
        return result.to(result_dtype(x))

    def expect_rows(self, x: torch.Tensor) -> None:
        expect_floats(x, gate_up=self.gate_up, down=self.down)
        if x.dim() == 0 or x.shape[-1] != self.k:
            refuse(f"x is {list(x.shape)}, expected [..., {self.k}]")

    def products(self, x: torch.Tensor) -> torch.Tensor:
        """The result in the type of the weights."""
        rows = x.reshape(-1, x.shape[-1]).to(self.dtype)
        if self.tokens is not None and self.n % COLUMNS != 0:
            return self._by_products(rows).reshape(x.shape)
        values, named = operand_of(rows, self.tokens, "x")
        result = call(torch.ops.thresher.gated_mlp, values, self.gate_up, self.down, activation=self.activation, out_dtype=self.dtype,
                      intermediate_format=self.tokens, **named, **self.constants)
        return result.reshape(x.shape)

    def _by_products(self, rows: torch.Tensor) -> torch.Tensor:
        """The layer where what lies between its products has no whole blocks."""
        values, scales = operand_of(rows, self.tokens)
        first = torch.ops.thresher.dual_gemm_packed if is_gated((self.activation, {})) else torch.ops.thresher.gemm_packed
        hidden = call(first, values, self.gate_up, self.n, activation=self.activation, out_dtype=self.dtype,
                      **self.constants, **scales)
        values, scales = operand_of(hidden, self.tokens)
        return call(torch.ops.thresher.gemm_packed, values, self.down, self.k, out_dtype=self.dtype, **scales)

    def warm(self, rows: list[int], choices: int) -> None:
        """As thresher.torch.warm, which calls it."""
        for count in buckets(rows):
            self.products(torch.zeros(count, self.k, dtype=self.dtype, device=self.down.device))


class MoE(_Layer):
    """Σ over a token's experts e of weight·(down[e]·(activation(gate[e]·x + bias) ∘ (up[e]·x + bias)) + bias).

    gate_up: [E, 2·N, K], with `order` their order in it: "gate_first", "up_first" or "interleaved"; or the pair of gate and up,
    each [E, N, K], without an order; with the activation "relu2" up alone, [E, N, K]. down: [E, K, N]. All are float tensors, which are
    rounded to `dtype`, Nvfp4 or Fp8; the buffers of these names, uint8, are they packed (see pack_grouped) for their device, the only
    copies of them.
    bias1, bias2: those of gate and up, [E, N] each; of one gate_up bias1 [E, 2·N] alone, in its order. down_bias: [E, K]. They are kept
        in float32, packed with the weights.
    activation and its constants, tokens, numerics, and modules on meta: as in GatedMLP.
    """

    gate_up: torch.Tensor
    down: torch.Tensor

    def __init__(self, gate_up: torch.Tensor | Nvfp4 | Fp8 | tuple, down: torch.Tensor | Nvfp4 | Fp8, *, order: str | None = None,
                 bias1: torch.Tensor | None = None, bias2: torch.Tensor | None = None, down_bias: torch.Tensor | None = None,
                 activation: str = "silu", alpha: float | None = None, limit: float | None = None, up_offset: float | None = None,
                 dtype: torch.dtype | None = None, tokens: str | None = None, numerics: str = "exact"):
        super().__init__()
        chosen = activation_of(activation, alpha, limit, up_offset)
        first = gate_up if isinstance(gate_up, tuple) else (gate_up,)
        has_gate = is_gated(chosen)
        if has_gate and (len(first) not in (1, 2) or (len(first) == 1) != (order is not None)):
            refuse(f"gate_up is {'one tensor' if len(first) == 1 else f'{len(first)} tensors'} and order is {order!r}, expected one "
                   "with an order, or gate and up without")
        if not has_gate and (len(first) != 1 or order is not None):
            refuse(f"gate_up is {'one tensor' if len(first) == 1 else f'{len(first)} tensors'} and order is {order!r} beside the activation "
                   f"{activation!r}, expected up alone without an order: it has no gate")
        named = dict(zip(("gate_up",) if len(first) == 1 else ("gate", "up"), first))
        expect_one_device(**named, down=down, bias1=bias1, bias2=bias2, down_bias=down_bias)
        dtype, (*first, down) = in_one_type(3, dtype, *(("gate_up", one) for one in first), ("down", down))
        self._describe(chosen, dtype, tokens)
        found = self.hold("gate_up", pack_grouped, *first, order=order, bias1=bias_of("bias1", bias1), bias2=bias_of("bias2", bias2),
                          numerics=numerics)
        below = self.hold("down", pack_grouped, down, bias1=bias_beside("down_bias", down_bias, down), numerics=numerics)
        if found.matrices != (2 if has_gate else 1) or below.experts != found.experts or (below.n, below.k) != (found.k, found.n):
            refuse(f"gate_up is [{found.experts}, {found.matrices} * {found.n}, {found.k}] and down [{below.experts}, {below.n}, "
                   f"{below.k}], expected [E, {'2 ' if has_gate else ''}N, K] and [E, K, N]")
        self.experts, self.n, self.k = found.experts, found.n, found.k

    @classmethod
    def from_float(cls, experts: Any, *, activation: str | None = None, alpha: float | None = None, limit: float | None = None,
                   up_offset: float | None = None, order: str | None = None, dtype: torch.dtype | None = None, tokens: str | None = None,
                   ignore: Iterable[str] = ()) -> "MoE":
        """From a sequence of modules, each as GatedMLP.from_float takes one; or from one module with all experts' weights, as transformers 5
        has it: gate_up_proj [E, 2·N, K] and down_proj [E, K, N], or both transposed, and gate_up_proj_bias and down_proj_bias.

        order: of one module, where its `_apply_gate` and `is_concatenated` do not say it. Everything else as in GatedMLP.from_float.
        """
        given = experts_of(experts, activation, order, ignore, alpha=alpha, limit=limit, up_offset=up_offset)
        return cls(given.gate_up, given.down, order=given.order, bias1=given.bias, down_bias=given.down_bias, activation=given.activation[0],
                   dtype=dtype, tokens=tokens, **given.activation[1])

    def said(self) -> dict[str, Any]:
        return dict(super().said(), experts=self.experts)

    def extra_repr(self) -> str:
        biases = ", biases" if any(info.has_bias for info in self._held.values()) else ""
        return f"experts={self.experts}, {super().extra_repr()}{biases}"

    def forward(self, x: torch.Tensor, topk_ids: torch.Tensor, topk_weights: torch.Tensor) -> torch.Tensor:
        """x: [T, K]; topk_ids: [T, k], integers, those outside [0, E) are skipped; topk_weights: [T, k], floating point. Returns [T, K] in
        the type of x. Each choice's row is rounded to the type of the weights, and rows are summed in float32 in the order of the choices."""
        expect_routing(topk_ids, topk_weights, x, self.down)
        dtype = result_dtype(x)
        out_dtype = dtype if dtype in (torch.float16, torch.bfloat16) else torch.float32
        if topk_ids.dtype != torch.int32:  # what int32 cannot hold is nobody's id
            topk_ids = topk_ids.to(torch.int64).clamp(-1, self.experts).to(torch.int32)
        weights = topk_weights.to(torch.float32).contiguous()
        with in_own_type(x):
            return self.mixed(x.to(self.dtype), topk_ids.contiguous(), weights, out_dtype).to(dtype)

    def mixed(self, x: torch.Tensor, topk_ids: torch.Tensor, topk_weights: torch.Tensor, out_dtype: torch.dtype) -> torch.Tensor:
        """The result for x in the type of the weights, topk_ids int32 and topk_weights float32, in `out_dtype` or float32."""
        if self.tokens is not None and self.n % COLUMNS != 0:
            return self._by_products(x, topk_ids, topk_weights)
        return call(torch.ops.thresher.moe, aligned(x) if self.tokens else x, self.gate_up, self.down, topk_ids, topk_weights,
                    activation=self.activation, out_dtype=out_dtype, rows_dtype=self.dtype, intermediate_format=self.tokens,
                    quantized_x=self.tokens, **self.constants)

    def _by_products(self, x: torch.Tensor, topk_ids: torch.Tensor, topk_weights: torch.Tensor) -> torch.Tensor:
        """The layer where what lies between its products has no whole blocks, float32."""
        tokens, choices = topk_ids.shape
        sorted_ids, rows = torch.sort(topk_ids.reshape(-1), stable=True)
        bounds = torch.arange(self.experts + 1, device=x.device, dtype=sorted_ids.dtype)
        offsets = torch.searchsorted(sorted_ids, bounds, out_int32=True)
        hidden = self.hidden(x, offsets=offsets, row_ids=rows.to(torch.int32), row_ids_divisor=choices)
        weighted = self.downs(hidden, offsets=offsets, row_weights=topk_weights.reshape(-1)[rows])
        by_choice = torch.zeros_like(weighted).index_copy(0, rows, weighted)
        return by_choice.reshape(tokens, choices, self.k).sum(1)

    def hidden(self, rows: torch.Tensor, **groups) -> torch.Tensor:
        """Gate and up of rows in the type of the weights, and in it; groups: as grouped_dual_gemm takes rows."""
        values, scales = operand_of(rows, self.tokens)
        first = torch.ops.thresher.grouped_dual_gemm_packed if is_gated((self.activation, {})) else torch.ops.thresher.grouped_gemm_packed
        return call(first, values, self.gate_up, self.n, activation=self.activation,
                    out_dtype=self.dtype, **self.constants, **scales, **groups)

    def downs(self, hidden: torch.Tensor, **groups) -> torch.Tensor:
        """The second product of what `hidden` gave, float32."""
        values, scales = operand_of(hidden, self.tokens)
        return call(torch.ops.thresher.grouped_gemm_packed, values, self.down, self.k, out_dtype=torch.float32, **scales, **groups)

    def warm(self, rows: list[int], choices: int) -> None:
        """As thresher.torch.warm, which calls it: with tokens whose experts are on other devices."""
        device = self.down.device
        for count in sorted({(row_bucket(one), row_bucket(one * choices)): one for one in rows}.values()):
            nowhere = torch.full((count, choices), -1, device=device)
            self(torch.zeros(count, self.k, dtype=self.dtype, device=device), nowhere, torch.zeros(count, choices, device=device))


def expect_routing(topk_ids: torch.Tensor, topk_weights: torch.Tensor, x: torch.Tensor, weights: torch.Tensor) -> None:
    """Refuses what torch would convert without a word, the two of a router swapped among it. weights: a buffer of the module."""
    expect_floats(x, down=weights)
    for name, one, wanted in (("topk_ids", topk_ids, "integers"), ("topk_weights", topk_weights, "floating point")):
        is_right = isinstance(one, torch.Tensor) and (one.is_floating_point() if wanted == "floating point" else _are_integers(one))
        if not is_right:
            refuse(f"{name} is {short(one.dtype) if isinstance(one, torch.Tensor) else type(one).__name__}, expected {wanted}")
        expect_beside(name, one, "x", x)
    if x.dim() != 2 or topk_ids.dim() != 2 or topk_weights.shape != topk_ids.shape or topk_ids.shape[0] != x.shape[0]:
        refuse(f"x is {list(x.shape)}, topk_ids {list(topk_ids.shape)} and topk_weights {list(topk_weights.shape)}, expected [T, K], [T, k] "
               "and [T, k]")


def _are_integers(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)
