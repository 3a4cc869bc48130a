"""`torch.nn` modules on the operators, made from a float module or a checkpoint's tensors.

Weights are buffers: they move, save and load like any, and are not trained.
"""

from collections.abc import Iterable

import torch
from torch import nn

from .._fp8 import Fp8
from .._library import refuse
from .._nvfp4 import Nvfp4
from .._plans import row_bucket
from . import pack, pack_gemm, pack_grouped, packed_info
from ._native import call
from ._requantise import COLUMNS, fp8_blocks

_TOKENS = (None, "fp8_block")


def _buffer(name: str, tensor: torch.Tensor, dtype: torch.dtype, rank: int) -> torch.Tensor:
    if not isinstance(tensor, torch.Tensor) or tensor.dim() != rank:
        refuse(f"{name} is {list(tensor.shape) if isinstance(tensor, torch.Tensor) else tensor!r}, expected a tensor of {rank} "
               f"dimensions")
    return tensor.detach().to(dtype).contiguous()


def _sixteen_bit(tensor: torch.Tensor, dtype: torch.dtype | None) -> torch.dtype:
    """What weights are kept in: `dtype`, else their own type, or bfloat16 of wider ones."""
    dtype = dtype or (tensor.dtype if tensor.dtype in (torch.float16, torch.bfloat16) else torch.bfloat16)
    if dtype not in (torch.float16, torch.bfloat16):
        refuse(f"dtype is {dtype}, expected torch.float16 or torch.bfloat16")
    return dtype


def _in_one_type(rank: int, dtype: torch.dtype | None, *weights: tuple) -> tuple[torch.dtype, list]:
    """(what is computed in, the weights) of (name, weight): float tensors are rounded to it, and the first of them says it where
    nobody does."""
    tensors = [one for _, one in weights if isinstance(one, torch.Tensor)]
    dtype = _sixteen_bit(tensors[0], dtype) if tensors else dtype or torch.bfloat16
    return dtype, [one if isinstance(one, (Nvfp4, Fp8)) else _buffer(name, one, dtype, rank) for name, one in weights]


def _linear(module: nn.Module, *names: str) -> torch.Tensor:
    """The weight of the first layer of these names, which must have no bias."""
    for name in names:
        layer = getattr(module, name, None)
        if layer is not None:
            if getattr(layer, "bias", None) is not None:
                refuse(f"the layer {name} has a bias, expected none")
            return layer.weight
    refuse(f"the module has no layer {' or '.join(names)}")


def gated_layers(module: nn.Module) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gate, up and down of a module with layers of the names that from_float takes."""
    return _linear(module, "gate_proj", "w1"), _linear(module, "up_proj", "w3"), _linear(module, "down_proj", "w2")


def stacked_layers(experts) -> tuple[torch.Tensor, torch.Tensor]:
    """Gate and up [E, 2·N, K], the gate first, and down [E, K, N] of a sequence of such modules."""
    layers = [gated_layers(one) for one in experts]
    if not layers:
        refuse("there are no experts, expected at least one")
    return torch.stack([torch.cat([gate, up]) for gate, up, _ in layers]), torch.stack([down for _, _, down in layers])


def buckets(rows: Iterable[int]) -> list[int]:
    """One number of rows for each plan that these numbers need."""
    return sorted({row_bucket(one): one for one in rows}.values())


def tokens_of(tokens: str | None) -> str | None:
    """What a module multiplies rows in, checked."""
    if tokens not in _TOKENS:
        refuse(f"tokens is {tokens!r}, expected None or 'fp8_block'")
    return tokens


def operand_of(rows: torch.Tensor, tokens: str | None, name: str = "a") -> tuple[torch.Tensor, dict]:
    """(values, named arguments) of rows as the operand `name` of a product, or of a layer."""
    if tokens is None:
        return rows, {}
    given = fp8_blocks(rows)
    return given.values, {f"{name}_scales": given.scales, f"{name}_format": given.format}


@torch.no_grad()
def _packed(make, *weights, **options) -> torch.Tensor:
    return make(*weights, **options)


class GatedMLP(nn.Module):
    """down·(activation(gate·x) ∘ up·x): gate, up [N, K]; down [K, N]; x and the result [..., K] in the type of x.

    Weights are float tensors, which are rounded to `dtype`, Nvfp4 or Fp8; gate and up are of one kind. The buffers `gate_up` and
    `down`, uint8, are they packed (see pack and pack_gemm) for their device, the only copies of them.
    """

    gate_up: torch.Tensor
    down: torch.Tensor

    def __init__(self, gate: torch.Tensor | Nvfp4 | Fp8, up: torch.Tensor | Nvfp4 | Fp8, down: torch.Tensor | Nvfp4 | Fp8, *,
                 activation: str = "silu", dtype: torch.dtype | None = None, **constants: float):
        super().__init__()
        self.dtype, (gate, up, down) = _in_one_type(2, dtype, ("gate", gate), ("up", up), ("down", down))
        self.register_buffer("gate_up", _packed(pack, gate, up))
        self.register_buffer("down", _packed(pack_gemm, down))
        self.activation = activation
        self.constants = constants
        found, below = packed_info(self.gate_up), packed_info(self.down)
        if (below.n, below.k) != (found.k, found.n):
            refuse(f"gate and up are [{found.n}, {found.k}] and down [{below.n}, {below.k}], expected [N, K] and [K, N]")
        self.n, self.k = found.n, found.k

    @classmethod
    def from_float(cls, module: nn.Module, *, activation: str = "silu", dtype: torch.dtype | None = None,
                   **constants: float) -> "GatedMLP":
        """From a module with linear layers gate_proj, up_proj and down_proj (or w1, w3 and w2), without biases."""
        return cls(*gated_layers(module), activation=activation, dtype=dtype, **constants)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.products(x).to(x.dtype)

    def products(self, x: torch.Tensor) -> torch.Tensor:
        """The result in the type of the weights."""
        rows = x.reshape(-1, x.shape[-1]).to(self.dtype)
        result = call(torch.ops.thresher.gated_mlp, rows, self.gate_up, self.down, activation=self.activation, **self.constants)
        return result.reshape(x.shape)

    def warm(self, rows: list[int], choices: int) -> None:
        """As thresher.torch.warm, which calls it."""
        for count in buckets(rows):
            self.products(torch.zeros(count, self.k, dtype=self.dtype, device=self.down.device))


class MoE(nn.Module):
    """Σ over a token's experts e of weight·down[e]·(activation(gate[e]·x) ∘ up[e]·x).

    gate_up: [E, 2·N, K], with `order` how both lie in it: "gate_first", "up_first" or "interleaved"; or the pair of gate and up,
    each [E, N, K], without an order. down: [E, K, N]. All are float tensors, which are rounded to `dtype`, Nvfp4 or Fp8; the
    buffers of these names, uint8, are they packed (see pack_grouped) for their device, the only copies of them.
    tokens: "fp8_block" rounds the rows of both products to FP8, 128 along K with one scale, as FP8 weights need on a GPU: between
        them once, where N is a multiple of 128; else what was rounded to `dtype` before.
    """

    gate_up: torch.Tensor
    down: torch.Tensor

    def __init__(self, gate_up: torch.Tensor | Nvfp4 | Fp8 | tuple, down: torch.Tensor | Nvfp4 | Fp8, *, order: str | None = None,
                 activation: str = "silu", dtype: torch.dtype | None = None, tokens: str | None = None, **constants: float):
        super().__init__()
        first = gate_up if isinstance(gate_up, tuple) else (gate_up,)
        if len(first) not in (1, 2) or (len(first) == 1) != (order is not None):
            refuse(f"gate_up is {'one tensor' if len(first) == 1 else f'{len(first)} tensors'} and order is {order!r}, expected one "
                   "with an order, or gate and up without")
        self.dtype, (*first, down) = _in_one_type(3, dtype, *(("gate_up", one) for one in first), ("down", down))
        self.register_buffer("gate_up", _packed(pack_grouped, *first, order=order))
        self.register_buffer("down", _packed(pack_grouped, down))
        self.activation = activation
        self.tokens = tokens_of(tokens)
        self.constants = constants
        found, below = packed_info(self.gate_up), packed_info(self.down)
        if found.matrices != 2 or below.experts != found.experts or (below.n, below.k) != (found.k, found.n):
            refuse(f"gate_up is [{found.experts}, {found.matrices} * {found.n}, {found.k}] and down [{below.experts}, {below.n}, "
                   f"{below.k}], expected [E, 2 N, K] and [E, K, N]")
        self.experts, self.n, self.k = found.experts, found.n, found.k

    @classmethod
    def from_float(cls, experts, *, activation: str = "silu", dtype: torch.dtype | None = None, **constants: float) -> "MoE":
        """From a sequence of modules, each as GatedMLP.from_float takes one."""
        gate_up, down = stacked_layers(experts)
        return cls(gate_up, down, order="gate_first", activation=activation, dtype=dtype, **constants)

    def forward(self, x: torch.Tensor, topk_ids: torch.Tensor, topk_weights: torch.Tensor) -> torch.Tensor:
        """x: [T, K]; topk_ids: [T, k], integers, those outside [0, E) are skipped; topk_weights: [T, k]. Returns [T, K] in
        the type of x, summed in float32 in the order of the choices."""
        out_dtype = x.dtype if x.dtype in (torch.float16, torch.bfloat16) else torch.float32
        if topk_ids.dtype != torch.int32:  # what int32 cannot hold is nobody's id
            topk_ids = topk_ids.clamp(-1, self.experts).to(torch.int32)
        weights = topk_weights.to(torch.float32).contiguous()
        return self.mixed(x.to(self.dtype), topk_ids.contiguous(), weights, out_dtype).to(x.dtype)

    def mixed(self, x: torch.Tensor, topk_ids: torch.Tensor, topk_weights: torch.Tensor, out_dtype: torch.dtype) -> torch.Tensor:
        """The result for x in the type of the weights, topk_ids int32 and topk_weights float32, in `out_dtype` or float32."""
        if self.tokens is not None and self.n % COLUMNS != 0:
            return self._by_products(x, topk_ids, topk_weights)
        rows, named = operand_of(x, self.tokens, "x")
        return call(torch.ops.thresher.moe, rows, self.gate_up, self.down, topk_ids, topk_weights, activation=self.activation,
                    out_dtype=out_dtype, intermediate_format=self.tokens, **named, **self.constants)

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
        return call(torch.ops.thresher.grouped_dual_gemm_packed, values, self.gate_up, self.n, activation=self.activation,
                    out_dtype=self.dtype, **self.constants, **scales, **groups)

    def downs(self, hidden: torch.Tensor, **groups) -> torch.Tensor:
        """The second product of what `hidden` gave, float32."""
        values, scales = operand_of(hidden, self.tokens)
        return call(torch.ops.thresher.grouped_gemm_packed, values, self.down, self.k, out_dtype=torch.float32, **scales, **groups)

    def warm(self, rows: list[int], choices: int) -> None:
        """As thresher.torch.warm, which calls it: with tokens whose experts lie elsewhere."""
        device = self.down.device
        for count in sorted({(row_bucket(one), row_bucket(one * choices)): one for one in rows}.values()):
            nowhere = torch.full((count, choices), -1, device=device)
            self(torch.zeros(count, self.k, dtype=self.dtype, device=device), nowhere, torch.zeros(count, choices, device=device))


class Attention(nn.Module):
    """Projections, attention and the output's projection: q [H·D, C], k and v [Hk·D, C], o [C', H·D]; x [B, S, C]."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    o: torch.Tensor

    def __init__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor, *, head_dim: int, causal: bool = True,
                 scale: float | None = None, window: tuple[int, int] = (-1, -1), softcap: float = 0.0,
                 dtype: torch.dtype | None = None):
        super().__init__()
        dtype = _sixteen_bit(q, dtype)
        for name, tensor in (("q", q), ("k", k), ("v", v), ("o", o)):
            self.register_buffer(name, _buffer(name, tensor, dtype, 2))
        self.head_dim = head_dim
        self.options = dict(causal=causal, scale=scale, window_left=window[0], window_right=window[1], softcap=softcap)
        if self.q.shape[0] % head_dim or self.k.shape[0] % head_dim or self.v.shape != self.k.shape:
            refuse(f"q, k and v have {self.q.shape[0]}, {self.k.shape[0]} and {self.v.shape[0]} rows, expected multiples of "
                   f"head_dim, {head_dim}, and as many of k as of v")

    @classmethod
    def from_float(cls, module: nn.Module, *, head_dim: int, dtype: torch.dtype | None = None, **options) -> "Attention":
        """From a module with linear layers q_proj, k_proj, v_proj and o_proj, without biases."""
        return cls(*(_linear(module, f"{name}_proj") for name in "qkvo"), head_dim=head_dim, dtype=dtype, **options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        rows = x.to(self.q.dtype)
        q, k, v = (nn.functional.linear(rows, weight).reshape(batch, length, -1, self.head_dim).transpose(1, 2)
                   for weight in (self.q, self.k, self.v))
        result = call(torch.ops.thresher.attention, q, k, v, **self.options)
        return nn.functional.linear(result.transpose(1, 2).reshape(batch, length, -1), self.o).to(x.dtype)
