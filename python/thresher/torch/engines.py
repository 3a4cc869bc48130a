"""What the packages for serving engines share (docs/guides/engines.md): an engine's tensors as modules, and what is refused.

vLLM and SGLang keep the weights of experts alike: `w13` [E, 2·N, K], all of gate and then all of up, and `w2` [E, K', N], with
the scales of each beside it in the same order.
"""

import importlib.metadata
import itertools
import logging
import operator
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import nn

from .._errors import InvalidArgumentError, UnsupportedError
from .._fp8 import Fp8
from .._nvfp4 import Nvfp4
from .._options import NUMERICS, one_of
from ._state import Stated
from .modules import GatedMLP, Linear, MoE

_BLOCK = 128
_GROUP = 16


def refuse(what: str) -> None:
    raise UnsupportedError(what)


def is_for(package: str, engine: str, written_for: tuple[str, ...]) -> bool:
    """Whether the engine is of a release that `package` was written for. If not, one line is logged, and the package has to stay out:
    an engine that calls every plugin at its start would not start otherwise."""
    try:
        found = importlib.metadata.version(engine)
    except importlib.metadata.PackageNotFoundError:
        found = None
    if found is not None and found.partition("+")[0] in written_for:
        return True
    logging.getLogger(package).warning(
        "%s is for %s %s, but %s is installed: it stays out, and the options that it adds are unknown", package, engine,
        " and ".join(written_for), f"{engine} {found}" if found else f"no {engine}")
    return False


def expect(layer: str, **given: tuple) -> None:
    """Refuses the first of (value, what it must be) that is something else, by its name."""
    for name, (value, wanted) in given.items():
        if value != wanted:
            refuse(f"{layer}: {name} is {value!r}, but thresher computes experts with {name} {wanted!r} alone: choose another backend")


def activation_of(layer: str, name: str, *, limit: float | None = None, alpha: float | None = None,
                  up_offset: float | None = None, is_gated: bool = True) -> dict:
    """An engine's activation as the arguments of a module. limit: gate from above and up from both sides, None for no limit; alpha
    and up_offset: of gate·σ(alpha·gate)·(up + up_offset), None for those of SiLU, 1 and 0. Of situ alpha is the bound of the gate and
    limit that of up. relu2 is of up alone."""
    if not is_gated:
        if name != "relu2":
            refuse(f"{layer}: the activation is {name!r} and there is no gate, but without one thresher has relu2: choose another backend")
        return dict(activation="relu2")
    if name == "situ":
        if alpha is None:
            refuse(f"{layer}: the activation is 'situ' without its bound of the gate: choose another backend")
        return dict(activation="situ", alpha=float(alpha), limit=float("inf") if limit is None else float(limit))
    if name == "gelu_tanh" and limit is None and alpha is None and up_offset is None:
        return dict(activation="gelu_tanh")
    if name != "silu":
        refuse(f"{layer}: the activation is {name!r}, but thresher has silu, silu with a limit, gelu_tanh and situ: choose another backend")
    if limit is None and alpha in (None, 1.0) and up_offset in (None, 0.0):
        return dict(activation="silu")
    return dict(activation="swiglu_clamped", alpha=1.0 if alpha is None else float(alpha), up_offset=float(up_offset or 0.0),
                limit=float("inf") if limit is None else float(limit))


def numerics_of_four_bits() -> str:
    """How NVFP4 and MXFP4 weights are multiplied, as the environment says: "exact", or "fast" with tokens and weights rounded to FP8."""
    given = os.environ.get("THRESHER_NUMERICS") or "exact"
    one_of("THRESHER_NUMERICS", given, NUMERICS)
    return given


def _halves(both: torch.Tensor, dim: int) -> tuple[torch.Tensor, ...]:
    return tuple(one.contiguous() for one in both.detach().chunk(2, dim))


def _nvfp4(values: torch.Tensor, scales: torch.Tensor, global_scales: torch.Tensor) -> Nvfp4:
    return Nvfp4(values.detach().view(torch.uint8).contiguous(), scales.detach().contiguous(), global_scales.detach().float().contiguous())


def _fp8(values: torch.Tensor, scales: torch.Tensor) -> Fp8:
    """scales: float32, or powers of two as their exponents alone."""
    return Fp8(values.detach().contiguous(), scales.detach().float().contiguous(), per="block")


def nvfp4_gate_up(w13: torch.Tensor, scales: torch.Tensor, global_scales: torch.Tensor) -> tuple[Nvfp4, Nvfp4]:
    """Gate and up of [..., 2·N, K/2], e4m3 [..., 2·N, K/16] and float32 [..., 2], or [...] where both share one."""
    dim = w13.dim() - 2
    of_gate, of_up = (global_scales, global_scales) if global_scales.dim() == dim else global_scales.unbind(-1)
    gate, up = zip(_halves(w13, dim), _halves(scales, dim))
    return _nvfp4(*gate, of_gate), _nvfp4(*up, of_up)


def fp8_gate_up(w13: torch.Tensor, scales: torch.Tensor) -> tuple[Fp8, Fp8]:
    """Gate and up of e4m3 [..., 2·N, K] and float32 [..., 2·⌈N/128⌉, ⌈K/128⌉]."""
    gate, up = zip(_halves(w13, w13.dim() - 2), _halves(scales, w13.dim() - 2))
    return _fp8(*gate), _fp8(*up)


def _is_gated(activation: dict) -> bool:
    return activation.get("activation") != "relu2"


def nvfp4_experts(w13: tuple, w2: tuple, dtype: torch.dtype, **activation) -> MoE:
    """Of (values, scales, global scales) of either, with 16-bit tokens."""
    first = nvfp4_gate_up(*w13) if _is_gated(activation) else _nvfp4(w13[0], w13[1], w13[2].flatten())
    return MoE(first, _nvfp4(*w2), dtype=dtype, numerics=numerics_of_four_bits(), **activation)


def fp8_experts(w13: tuple, w2: tuple, dtype: torch.dtype, **activation) -> MoE:
    """Of (values, scales of blocks of 128 by 128) of either. Tokens are rounded to FP8, with a scale for 128 of a row."""
    first = fp8_gate_up(*w13) if _is_gated(activation) else _fp8(*w13)
    return MoE(first, _fp8(*w2), dtype=dtype, tokens="fp8_block", **activation)


def fp8_gated_mlp(gate_up: tuple, down: tuple, dtype: torch.dtype) -> GatedMLP:
    """Of (values, scales of blocks of 128 by 128) of either, gate before up. Tokens are rounded to FP8, with a scale for 128 of a row."""
    return GatedMLP(*fp8_gate_up(*gate_up), _fp8(*down), dtype=dtype, tokens="fp8_block")


def nvfp4_gated_mlp(gate_up: tuple, down: tuple, dtype: torch.dtype) -> GatedMLP:
    """Of (values, scales, global scales) of either, gate before up, with 16-bit tokens."""
    return GatedMLP(*nvfp4_gate_up(*gate_up), _nvfp4(*down), dtype=dtype, numerics=numerics_of_four_bits())


def mxfp4_gated_mlp(gate_up: tuple, down: tuple, dtype: torch.dtype) -> GatedMLP:
    """Of (values, exponents) of either, gate before up, with 16-bit tokens. Values are kept exactly, in NVFP4."""
    gate, up = zip(*(_halves(one, 0) for one in gate_up))
    return GatedMLP(*(Nvfp4.of_mxfp4(*one) for one in (gate, up, _detached(down))), dtype=dtype, numerics=numerics_of_four_bits())


def plain_experts(w13: torch.Tensor, w2: torch.Tensor, **activation) -> MoE:
    """Of 16-bit weights, with tokens of their type."""
    return MoE(w13, w2, order="gate_first" if _is_gated(activation) else None, **activation)


def mxfp4_experts(w13: tuple, w2: tuple, dtype: torch.dtype, **activation) -> MoE:
    """Of (values, exponents, biases or None) of either, gate and up interleaved as gpt-oss has them, with 16-bit tokens. Values are kept
    exactly, in NVFP4."""
    gate_up, down = (Nvfp4.of_mxfp4(values.detach(), exponents.detach()) for values, exponents, _ in (w13, w2))
    return MoE(gate_up, down, order="interleaved", bias1=w13[2], down_bias=w2[2], dtype=dtype, numerics=numerics_of_four_bits(), **activation)


def _detached(parts: Iterable[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    return tuple(one.detach().contiguous() for one in parts)


def expect_block(layer: str, block: list[int] | None) -> None:
    if list(block or []) != [_BLOCK, _BLOCK]:
        refuse(f"{layer}: FP8 weights have scales of blocks {block}, but thresher's of experts are of [128, 128]: choose another backend")


def expect_group(layer: str, group: int) -> None:
    if group != _GROUP:
        refuse(f"{layer}: NVFP4 weights have scales of {group}, expected {_GROUP}")


class Linears(nn.Module):
    """weight·x + bias, [..., N], of weights one above another, each a product of its own. x and the result are of the 16-bit type `dtype`."""

    def __init__(self, weights: Iterable[Nvfp4 | Fp8], bias: torch.Tensor | None, dtype: torch.dtype):
        super().__init__()
        weights = list(weights)
        rows = [one.values.shape[0] for one in weights]
        biases = [None] * len(rows) if bias is None else bias.detach().split(rows)
        how: dict[str, Any] = dict(tokens="fp8_block") if isinstance(weights[0], Fp8) else dict(numerics=numerics_of_four_bits())
        self.parts = nn.ModuleList(Linear(weight, of, dtype=dtype, **how) for weight, of in zip(weights, biases))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        results = [part(x) for part in self.parts]
        return results[0] if len(results) == 1 else torch.cat(results, -1)

    def warm(self, rows: list[int], choices: int) -> None:
        """As MoE.warm."""
        for part in self.parts:
            part.warm(rows, choices)


def _together(ends: list[bool]) -> list[slice]:
    """Neighbours of matrices that are one product: an end is behind the last of each."""
    return [slice(*one) for one in itertools.pairwise([0, *(at for at, is_end in enumerate(ends, 1) if is_end)])]


def fp8_linears(values: torch.Tensor, scales: torch.Tensor, rows: list[int], dtype: torch.dtype, bias: torch.Tensor | None = None) -> Linears:
    """Of e4m3 [N, K] and scales of blocks of 128 by 128, which begin anew in each of the matrices that lie one above another, of `rows`
    each. Those whose blocks lie as those of one matrix are one product."""
    blocks = [-(-one // _BLOCK) for one in rows]
    found = _together([*(one % _BLOCK != 0 for one in rows[:-1]), True])
    parts = (one.split([sum(counts[some]) for some in found]) for one, counts in ((values, rows), (scales, blocks)))
    return Linears(map(_fp8, *parts), bias, dtype)


def nvfp4_linears(values: torch.Tensor, scales: torch.Tensor, global_scales: torch.Tensor, rows: list[int], dtype: torch.dtype,
                  bias: torch.Tensor | None = None) -> Linears:
    """Of [N, K/2], e4m3 [N, K/16] and float32 [matrices], or one for all. Neighbours with one global scale are one product."""
    of_rows = global_scales.detach().flatten().expand(len(rows))
    numbers = of_rows.tolist()
    found = _together([*map(operator.ne, numbers, numbers[1:]), True])
    parts = (one.split([sum(rows[some]) for some in found]) for one in (values, scales))
    return Linears(map(_nvfp4, *parts, (of_rows[some.start] for some in found)), bias, dtype)


def mxfp4_linears(values: torch.Tensor, exponents: torch.Tensor, rows: list[int], dtype: torch.dtype,
                  bias: torch.Tensor | None = None) -> Linears:
    """Of [N, K/2] and exponents [N, K/32]. Matrices above one another are one product, unless NVFP4 holds them one by one alone."""
    whole = _detached((values, exponents))
    try:
        weights = [Nvfp4.of_mxfp4(*whole)]
    except InvalidArgumentError:
        weights = [Nvfp4.of_mxfp4(*one) for one in zip(*(part.split(rows) for part in whole))]
    return Linears(weights, bias, dtype)


class LayerFormat(NamedTuple):
    """What the parameters of a linear layer are called in both engines, and what is made of those of one layer, and of two that are a
    gated MLP."""

    names: tuple[str, ...]
    linears: Callable[..., Linears]
    gated_mlp: Callable[..., GatedMLP]


# By whose checkpoints they are: FP8 with scales of blocks, NVFP4 of ModelOpt, MXFP4 of compressed-tensors.
FORMATS = {
    "fp8_block": LayerFormat(("weight", "weight_scale_inv"), fp8_linears, fp8_gated_mlp),
    "nvfp4": LayerFormat(("weight", "weight_scale", "weight_scale_2"), nvfp4_linears, nvfp4_gated_mlp),
    "mxfp4": LayerFormat(("weight_packed", "weight_scale"), mxfp4_linears, mxfp4_gated_mlp),
}


def linears_of(format: str, layer: Any, rows: list[int], dtype: torch.dtype, bias: torch.Tensor | None) -> Linears:
    found = FORMATS[format]
    return found.linears(*(getattr(layer, name) for name in found.names), rows, dtype, bias)


def gated_mlp_of(format: str, gate_up: Any, down: Any, dtype: torch.dtype) -> GatedMLP:
    found = FORMATS[format]
    return found.gated_mlp(*(tuple(getattr(layer, name) for name in found.names) for layer in (gate_up, down)), dtype)


class LinearMethod:
    """How both engines' linear layers load and compute: the engine's own method of a checkpoint creates and loads the weights, Thresher's
    product computes with them. A package puts its engine's base class behind this one."""

    def __init__(self, own: Any, format: str):
        self.own = own
        self.format = format

    def max_rows(self) -> int:
        """Tokens of a step at the most."""
        return 1

    def adds_bias(self, layer: Any) -> bool:
        """Whether the layer hands its bias to its method: of a sum over processes one alone does."""
        return not layer.skip_bias_add

    def create_weights(self, layer: Any, input_size_per_partition: int, output_partition_sizes: list[int], input_size: int,
                       output_size: int, params_dtype: torch.dtype, **named: Any) -> None:
        self.rows, self.dtype, self.rows_at_most = output_partition_sizes, params_dtype, self.max_rows()
        self.own.create_weights(layer, input_size_per_partition=input_size_per_partition, output_partition_sizes=output_partition_sizes,
                                input_size=input_size, output_size=output_size, params_dtype=params_dtype, **named)

    def process_weights_after_loading(self, layer: Any) -> None:
        bias = layer.bias if self.adds_bias(layer) else None
        self.has_bias = bias is not None
        self.release(layer, lambda: linears_of(self.format, layer, self.rows, self.dtype, bias))

    def release(self, layer: Any, make: Callable[[], nn.Module]) -> None:
        release(layer, make, rows=self.rows_at_most)
        give_up(layer)

    def apply(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        if (bias is None) == self.has_bias:
            refuse(f"a linear layer was made {'with' if bias is None else 'without'} its bias and is called otherwise")
        return layer.thresher(x)


def give_up(layer: nn.Module) -> None:
    """The parameters of a linear layer, but a bias, which the layer hands on."""
    for name in [name for name, _ in layer.named_parameters(recurse=False) if name != "bias"]:
        delattr(layer, name)


# Latent attention reads the weights of this one.
_READ = "kv_b_proj"


def is_taken(layer: nn.Module, prefix: str, kinds: tuple[type, ...]) -> bool:
    """Whether a linear layer is one of these and nothing more: a class of a model's own may read its weights."""
    return type(layer) in kinds and prefix.rpartition(".")[2] != _READ


def local_ids(topk_ids: torch.Tensor, expert_map: torch.Tensor | None) -> torch.Tensor:
    """Ids of this process's experts, -1 of others': topk_ids [T, k] are of all experts, of which expert_map [E] says the place
    here or -1; those outside [0, E) belong to nobody. Without a map they are of this process's already."""
    if expert_map is None:
        return topk_ids
    most = expert_map.shape[0] - 1
    is_expert = (topk_ids >= 0) & (topk_ids <= most)
    return torch.where(is_expert, expert_map[topk_ids.clamp(0, most).long()], -1)


# Of modules whose kernels are compiled for all numbers of rows that their engine has.
_warmed: set[tuple] = set()


def _alike(made: nn.Module) -> tuple:
    """What kernels depend on beside the numbers of rows."""
    stated = [one for one in made.modules() if isinstance(one, Stated)]
    return type(made), str([(*one._held.values(), one.said()) for one in stated])


def _warm(made: nn.Module, rows: int, choices: int) -> None:
    """Layers alike share their kernels, so the first of them compiles for all. Most are those of a plan for the most rows, which compiles
    them side by side."""
    place = next(made.buffers())
    key = (_alike(made), choices, place.device)
    if key in _warmed or not place.is_cuda:
        made.warm([1], 1)
        return
    made.warm([rows], choices)
    made.warm(list(range(1, rows + 1)), choices)
    _warmed.add(key)


def release(layer: nn.Module, make: Callable[[], nn.Module], *names: str, rows: int = 1, choices: int = 1) -> None:
    """Makes the module of a layer once its weights are loaded, and gives up the parameters that it was made from. What this device
    cannot run is refused here, by a call of one row. On a GPU the kernels for up to `rows` tokens of `choices` experts are compiled here
    too, once for all layers alike: a kernel that is compiled while tokens are served makes them wait for seconds."""
    if hasattr(layer, "thresher"):
        refuse("the weights of a layer were packed when they were loaded and cannot be loaded again: start the engine anew")
    with torch.no_grad():
        made = make()
        _warm(made, rows, choices)
    layer.thresher = made
    for name in names:
        delattr(layer, name)
