"""The modules over the processes of `torch.distributed`, on whatever backend: a gated MLP of which each holds a part of the hidden
layer (tensor parallelism), and a mixture of which each holds some of the experts (expert parallelism).

Every process of the group makes the module and calls it at the same time; on a GPU each has set its device. Weights may be
whole tensors or anything that is cut like one and says its shape, such as a slice of a safetensors file: a process cuts its
part out and reads no more.
"""

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from .._fp8 import Fp8
from .._library import refuse
from .._nvfp4 import Nvfp4
from . import modules
from ._experts import experts_of
from ._float_modules import gated_layers
from ._module_weights import buckets, in_own_type, result_dtype
from .modules import expect_routing

__all__ = ["GatedMLP", "MoE", "shard"]

Group = dist.ProcessGroup


def _place_in(group: Group | None) -> tuple[int, int]:
    """(rank, size)."""
    if not dist.is_available() or not dist.is_initialized():
        refuse("torch.distributed is not initialised: call torch.distributed.init_process_group first")
    rank = dist.get_rank(group)
    if rank < 0:
        refuse("this process is not in the group, expected a group that it is in")
    return rank, dist.get_world_size(group)


def _shape(weight: Any) -> tuple[int, ...]:
    shape = weight.get_shape() if hasattr(weight, "get_shape") else getattr(weight, "shape", None)
    if shape is None:
        refuse(f"a weight is of the type {type(weight).__name__}, expected a tensor, Nvfp4, Fp8 or what is cut like a tensor")
    return tuple(shape)


def _values(weight: Any) -> Any:
    return weight.values if isinstance(weight, (Nvfp4, Fp8)) else weight


def _grain(weight: Any) -> int:
    """Rows that stay together: those that share scales, and else so many that what is cut begins at a multiple of 16 bytes."""
    is_in_blocks = isinstance(weight, Nvfp4) and weight.scale_layout == "blocked" or isinstance(weight, Fp8) and weight.per == "block"
    return 128 if is_in_blocks else 8


def _bounds(count: int, grain: int, rank: int, size: int, what: str) -> tuple[int, int]:
    pieces = -(-count // grain)
    if pieces < size:
        refuse(f"{count} {what} are to be dealt among {size} processes" + (f", {grain} together" if grain > 1 else "") +
               ", expected enough for each to have some")
    return pieces * rank // size * grain, min(count, pieces * (rank + 1) // size * grain)


def _scale_rows(weight: Nvfp4 | Fp8, start: int, stop: int) -> Any:
    """The scales of some rows of a matrix [rows, K]."""
    if isinstance(weight, Fp8):
        grain = {"tensor": None, "row": 1, "block": 128}[weight.per]
        return weight.scales if grain is None else weight.scales[start // grain: -(-stop // grain)]
    if weight.scale_layout == "row_major":
        return weight.scales[start:stop]
    blocks = -(-_shape(weight.values)[0] // 128)
    return weight.scales.reshape(blocks, -1)[start // 128: -(-stop // 128)].reshape(-1)


def _cut(weight: Any, start: int, stop: int) -> Any:
    """Rows of a matrix [rows, K], or experts of a stack [E, rows, K]."""
    if not isinstance(weight, (Nvfp4, Fp8)):
        return weight[start:stop]
    is_stack = len(_shape(weight.values)) == 3
    if is_stack:
        experts = _shape(weight.values)[0]
        scales = weight.scales[start:stop] if _shape(weight.scales)[0] == experts else weight.scales.reshape(experts, -1)[start:stop]
    else:
        scales = _scale_rows(weight, start, stop)
    values = weight.values[start:stop]
    if isinstance(weight, Fp8):
        return Fp8(values, scales.contiguous(), per=weight.per, scale_layout=weight.scale_layout)
    of_each = is_stack and weight.global_scale is not None
    return Nvfp4(values, scales.contiguous(), weight.global_scale[start:stop] if of_each else weight.global_scale,
                 scale_layout=weight.scale_layout)


def shard(weight: Any, *, rank: int, size: int, dim: int = 0) -> Any:
    """The part of a weight that process `rank` of `size` holds.

    weight: [N, K], of which rows are dealt, as many of gate and up as columns of down (dim=1); or [E, N, K], of which experts are.
        A tensor, Nvfp4, Fp8, or anything that is cut like a tensor and has `shape` or `get_shape()`.
    dim: 0, or of a matrix that is a tensor 1.

    Rows are dealt 8 together, 128 where scales are of blocks. Raises InvalidArgumentError where there are too few.
    """
    shape = _shape(_values(weight))
    if isinstance(rank, bool) or not isinstance(rank, int) or not isinstance(size, int) or not 0 <= rank < size:
        refuse(f"rank is {rank!r} and size {size!r}, expected 0 <= rank < size")
    if len(shape) == 3 and dim == 0:
        return _cut(weight, *_bounds(shape[0], 1, rank, size, "experts"))
    if len(shape) != 2 or dim not in (0, 1) or dim == 1 and isinstance(weight, (Nvfp4, Fp8)):
        refuse(f"a weight is {list(shape)} and dim {dim!r}, expected [N, K] and 0, of a tensor 0 or 1, or [E, N, K] and 0")
    start, stop = _bounds(shape[dim], _grain(weight), rank, size, "rows" if dim == 0 else "columns")
    return _cut(weight, start, stop) if dim == 0 else weight[:, start:stop]


class GatedMLP(modules.GatedMLP):
    """modules.GatedMLP with the hidden layer dealt over the processes of a group: each has some rows of gate and up and the
    same columns of down, computes with them, and all add their results up (one all-reduce, in the type of the weights).

    gate, up: this process's [N_part, K]; down: its [K, N_part]. `sharded` cuts them out of whole weights. x and the result are the
    same in every process.
    """

    def __init__(self, gate: Any, up: Any, down: torch.Tensor, *, group: Group | None = None, **options: Any):
        _place_in(group)
        super().__init__(gate, up, down, **options)
        self.group = group

    @classmethod
    def sharded(cls, gate: Any, up: Any, down: Any, *, group: Group | None = None, **options: Any) -> "GatedMLP":
        """From the whole gate and up [N, K] and down [K, N], of which the own part alone is read; options as of GatedMLP."""
        rank, size = _place_in(group)
        count, of_down = _shape(_values(gate))[0], _shape(down)
        if len(of_down) != 2 or of_down[1] != count or _shape(_values(up)) != _shape(_values(gate)):
            refuse(f"gate is {list(_shape(_values(gate)))}, up {list(_shape(_values(up)))} and down {list(of_down)}, expected [N, K], the "
                   f"same, and [K, N]")
        start, stop = _bounds(count, _grain(gate), rank, size, "rows")
        return cls(_cut(gate, start, stop), _cut(up, start, stop), down[:, start:stop], group=group, **options)

    @classmethod
    def from_float(cls, module: nn.Module, *, group: Group | None = None, activation: str | None = None, alpha: float | None = None,
                   limit: float | None = None, up_offset: float | None = None, ignore: Iterable[str] = (), **options: Any) -> "GatedMLP":
        """From a whole module, as modules.GatedMLP.from_float takes it."""
        *layers, (name, constants) = gated_layers(module, activation, ignore, alpha=alpha, limit=limit, up_offset=up_offset)
        return cls.sharded(*layers, group=group, activation=name, **constants, **options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.expect_rows(x)
        with in_own_type(x):
            result = self.products(x)
        dist.all_reduce(result, group=self.group)
        return result.to(result_dtype(x))


class MoE(modules.MoE):
    """modules.MoE with the experts dealt over the processes of a group, and each process's own tokens.

    Rows go to the processes that have their experts and come back (two all-to-all, and one of counts, which this host reads: a
    call is not for CUDA graphs). They go in the type of the weights and come back in float32, so that the result is that of one process
    but for the last bit of sums in float32.

    gate_up, down: as of MoE, of this process's experts, which are contiguous, one process after the other. `sharded` cuts them out.
    """

    def __init__(self, gate_up: Any, down: Any, *, order: str, group: Group | None = None, **options: Any):
        rank, size = _place_in(group)
        super().__init__(gate_up, down, order=order, **options)
        self.group = group
        counts = torch.zeros(size, dtype=torch.int64, device=self.down.device)
        counts[rank] = self.experts
        dist.all_reduce(counts, group=group)
        self.experts_of: list[int] = counts.tolist()  # by process
        self.all_experts = sum(self.experts_of)

    @classmethod
    def sharded(cls, gate_up: Any, down: Any, *, order: str, group: Group | None = None, bias1: Any = None, down_bias: Any = None,
                **options: Any) -> "MoE":
        """From the whole gate_up [E, 2·N, K], down [E, K, N] and their biases, of which the own experts alone are read; options as of MoE."""
        rank, size = _place_in(group)
        start, stop = _bounds(_shape(_values(gate_up))[0], 1, rank, size, "experts")
        biases = {name: one[start:stop] for name, one in (("bias1", bias1), ("down_bias", down_bias)) if one is not None}
        return cls(shard(gate_up, rank=rank, size=size), shard(down, rank=rank, size=size), order=order, group=group, **biases, **options)

    @classmethod
    def from_float(cls, experts: Any, *, group: Group | None = None, activation: str | None = None, alpha: float | None = None,
                   limit: float | None = None, up_offset: float | None = None, order: str | None = None, ignore: Iterable[str] = (),
                   **options: Any) -> "MoE":
        """From all experts, as modules.MoE.from_float takes them."""
        rank, size = _place_in(group)
        given = experts_of(experts, activation, order, ignore, alpha=alpha, limit=limit, up_offset=up_offset,
                           part=lambda count: _bounds(count, 1, rank, size, "experts"))
        return cls(given.gate_up, given.down, order=given.order, group=group, bias1=given.bias, down_bias=given.down_bias,
                   activation=given.activation[0], **given.activation[1], **options)

    def forward(self, x: torch.Tensor, topk_ids: torch.Tensor, topk_weights: torch.Tensor) -> torch.Tensor:
        """x: [T, K]; topk_ids: [T, k], integers, those outside [0, E) of all experts are skipped; topk_weights: [T, k]; all of this
        process's tokens, of which there may be none. Returns [T, K] in the type of x, summed in float32 in the order of the choices."""
        expect_routing(topk_ids, topk_weights, x, self.down)
        tokens, choices = topk_ids.shape
        flat = topk_ids.reshape(-1).to(torch.int64)
        is_owned = (flat >= 0) & (flat < self.all_experts)
        sorted_ids, rows = torch.sort(torch.where(is_owned, flat, self.all_experts), stable=True)
        wanted = torch.bincount(sorted_ids, minlength=self.all_experts + 1)[: self.all_experts]
        rows = rows[: int(wanted.sum())]
        exchange = _Exchange(wanted, self.experts_of, self.experts, self.group)
        with in_own_type(x):
            computed = self._own(exchange.there(x.to(self.dtype)[rows // choices]), exchange)
        weighted = exchange.back(computed) * topk_weights.reshape(-1)[rows].to(torch.float32).unsqueeze(1)
        by_choice = torch.zeros(tokens * choices, self.k, dtype=torch.float32, device=x.device).index_copy(0, rows, weighted)
        return by_choice.reshape(tokens, choices, self.k).sum(1).to(result_dtype(x))

    def _own(self, rows: torch.Tensor, exchange: "_Exchange") -> torch.Tensor:
        """What this process's experts make of rows [R, K]: float32 [R, K], in the same order."""
        return self.mixed(rows, exchange.experts.unsqueeze(1), torch.ones(len(rows), 1, device=rows.device), torch.float32)

    def warm(self, rows: list[int], choices: int) -> None:
        most = max(rows) * choices * len(self.experts_of)
        for count in buckets(range(1, most + 1)):
            nobody = _Exchange.of_nobody(count, self.down.device)
            self._own(torch.zeros(count, self.k, dtype=self.dtype, device=self.down.device), nobody)


class _Exchange:
    """Rows on their way to the processes that have their experts and back. Rows arrive one process behind the other, and each
    process's in the order of their experts."""

    def __init__(self, wanted: torch.Tensor, experts_of: list[int], own: int, group: Group | None):
        """wanted: int64 [E], how many rows this process sends to each of all experts."""
        size = len(experts_of)
        self._group = group
        coming = torch.empty(size * own, dtype=wanted.dtype, device=wanted.device)
        dist.all_to_all_single(coming, wanted, [own] * size, experts_of, group=group)
        by_process = coming.reshape(size, own)
        self._sent = [int(part.sum()) for part in wanted.cpu().split(experts_of)]
        self._received = by_process.sum(1).tolist()
        # Of each row that arrived.
        self.experts = torch.arange(own, dtype=torch.int32, device=wanted.device).repeat(size).repeat_interleave(coming)

    @classmethod
    def of_nobody(cls, count: int, device: torch.device) -> "_Exchange":
        """`count` rows that no expert owns."""
        one = object.__new__(cls)
        one.experts = torch.full((count,), -1, dtype=torch.int32, device=device)
        return one

    def there(self, rows: torch.Tensor) -> torch.Tensor:
        return self._moved(rows, self._received, self._sent)

    def back(self, rows: torch.Tensor) -> torch.Tensor:
        return self._moved(rows, self._sent, self._received)

    def _moved(self, rows: torch.Tensor, received: list[int], sent: list[int]) -> torch.Tensor:
        """As bytes, since not every backend takes every type."""
        moved = rows.new_empty(sum(received), rows.shape[1])
        dist.all_to_all_single(moved.view(torch.uint8), rows.contiguous().view(torch.uint8), received, sent, group=self._group)
        return moved
