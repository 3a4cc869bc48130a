"""Weights of a layer in one format, the numbers that they are, and the layer's definition in float64 on these numbers."""
import dataclasses
import pathlib
import sys

import torch

import thresher

sys.path.insert(0, str(pathlib.Path(__file__).parent / "peers"))
from fp8_operands import BLOCK, E4M3_MAX, Fp8Tokens, block_scales, row_scales, rounded, spread  # noqa: E402

LEVELS = (0, 0.5, 1, 1.5, 2, 3, 4, 6)
LIMIT, ALPHA = 7.0, 1.702  # of gpt-oss's activation


def power_of_two(values, rounding):
    """The exponents of numbers above 0."""
    return rounding(torch.log2(values.clamp(min=2.0**-100)))


def four_bits(scaled):
    """(packed e2m1 codes, their numbers) of the nearest ones."""
    levels = torch.tensor(LEVELS, device=scaled.device)
    nearest = torch.bucketize(scaled.abs(), (levels[1:] + levels[:-1]) / 2)
    codes = (nearest | ((scaled < 0).long() << 3)).to(torch.uint8).flatten(1)
    return codes[:, 0::2] | (codes[:, 1::2] << 4), levels[nearest] * scaled.sign()


def in_nvfp4(weight):
    """A scale is the largest magnitude of 16 over 6. The global scale is a power of two: bfloat16 holds the numbers."""
    global_scale = torch.exp2(power_of_two(weight.abs().amax() / (6 * 448), torch.ceil)).reshape(1)
    groups = weight.view(weight.shape[0], -1, 16)
    scales = (groups.abs().amax(-1) / 6 / global_scale).to(torch.float8_e4m3fn)
    factors = (scales.float() * global_scale)[..., None]
    codes, numbers = four_bits(groups / factors.clamp(min=1e-30))
    return (codes, scales, global_scale), (numbers * factors).view_as(weight).bfloat16()


def in_mxfp4(weight):
    """An exponent is that of the largest magnitude of 32, less 2, and at most 10 below the matrix's greatest."""
    blocks = weight.view(weight.shape[0], -1, 32)
    exponents = power_of_two(blocks.abs().amax(-1), torch.floor) - 2
    exponents = exponents.clamp(min=exponents.max() - 10)
    factors = torch.exp2(exponents)[..., None]
    codes, numbers = four_bits(blocks / factors)
    return (codes, (exponents + 127).to(torch.uint8)), (numbers * factors).view_as(weight).bfloat16()


def in_fp8(weight, format_name):
    if format_name == "fp8_row":
        scales = row_scales(weight)
        wide = scales[:, None]
    else:
        scales = block_scales(weight, BLOCK)
        wide = spread(spread(scales, 0, weight.shape[0]), 1, weight.shape[1])
    codes = rounded(weight, wide)
    return (codes, scales), codes.float() * wide


def rounded_to(weight, format_name):
    """(tensors of the format, the numbers that they are) of a float32 matrix."""
    if format_name == "bf16":
        weight = weight.bfloat16()
        return (weight,), weight
    if format_name == "nvfp4":
        return in_nvfp4(weight)
    return in_mxfp4(weight) if format_name == "mxfp4" else in_fp8(weight, format_name)


def operand_of(tensors, format_name):
    """The operand that Thresher takes."""
    if format_name == "bf16":
        return tensors[0]
    if format_name == "nvfp4":
        return thresher.Nvfp4(*tensors)
    if format_name == "mxfp4":
        return thresher.Nvfp4.of_mxfp4(*tensors)
    return thresher.Fp8(*tensors, per=format_name.removeprefix("fp8_"))


class Matrix:
    """[rows, columns], or a stack [experts, rows, columns]: its tensors in the format, and its numbers of each expert."""

    def __init__(self, format_name, rows, columns, experts):
        self.format, self.numbers, parts = format_name, [], []
        for _ in range(experts or 1):
            tensors, numbers = rounded_to(torch.randn(rows, columns, device=DEVICE) / columns**0.5, format_name)
            parts.append(tensors)
            self.numbers.append(numbers)
        self.tensors = tuple(map(stacked, zip(*parts))) if experts else parts[0]

    def operand(self):
        return operand_of(self.tensors, self.format)

    def halves(self):
        """Gate and up as Thresher takes them, whose rows lie one behind the other."""
        shared = 1 if self.format == "nvfp4" else 0  # the global scale
        parts = [tensor.chunk(2) for tensor in self.tensors[:len(self.tensors) - shared]]
        return [operand_of((*half, *self.tensors[len(parts):]), self.format) for half in zip(*parts)]


def stacked(tensors):
    """One stack; of global scales [1] a vector."""
    if tensors[0].dtype == torch.float8_e4m3fn:
        return torch.stack([one.view(torch.uint8) for one in tensors]).view(torch.float8_e4m3fn)
    return torch.cat(tensors) if tensors[0].numel() == 1 else torch.stack(tensors)


DEVICE = "cuda"


class Weights:
    """A layer's matrices by name, and biases [experts, rows] where the model has them."""

    def __init__(self, layer, format_name):
        self.layer, self.format = layer, format_name
        self.matrices = {name: Matrix(format_name, *shape, layer.experts) for name, shape in layer.shapes.items()}
        self.biases = {}
        if layer.has_bias:
            self.biases = {name: torch.randn(layer.experts, rows, device=DEVICE).bfloat16() / 4 for name, (rows, _) in layer.shapes.items()}

    def __getitem__(self, name):
        return self.matrices[name]


@dataclasses.dataclass
class Call:
    """The tokens of a call in bfloat16 and, with experts, its choices: int32 ids, of which those of other GPUs are `experts` and more."""
    x: torch.Tensor
    ids: torch.Tensor = None
    weights: torch.Tensor = None


def call_of(layer, tokens):
    x = torch.randn(tokens, next(iter(layer.shapes.values()))[1], device=DEVICE, dtype=torch.bfloat16)
    if not layer.experts:
        return Call(x)
    scores, ids = torch.rand(tokens, layer.routed_experts, device=DEVICE).topk(layer.top_k)
    if int(ids.min()) >= layer.experts:
        ids[0, 0] = 0  # so that this GPU has something to do
    return Call(x, ids.int(), torch.softmax(scores, -1))


def activated(layer, both):
    """The activation of gate and up, which lie one behind the other."""
    gate, up = both.chunk(2, -1)
    if layer.activation == "silu":
        return torch.nn.functional.silu(gate) * up
    gate, up = gate.clamp(max=LIMIT), up.clamp(-LIMIT, LIMIT)
    return gate * torch.sigmoid(ALPHA * gate) * (up + 1)


def rows_rounded(rows, format_name):
    """The float64 numbers that a product of this format reads."""
    return Fp8Tokens(rows.float(), format_name).values() if format_name.startswith("fp8") else rows


def definition(weights, call, between):
    """The layer in float64 on the format's numbers. In FP8 the rows of the first product are rounded to the format, and those of the
    second to the format `between`."""
    layer, x = weights.layer, rows_rounded(call.x.double(), weights.format)
    if layer.kind == "linears":
        return x @ weights["weight"].numbers[0].double().T
    if not layer.experts:
        return through(weights, x, 0, between)
    out = torch.zeros_like(x)
    for expert in range(layer.experts):
        tokens, choices = (call.ids == expert).nonzero(as_tuple=True)
        if len(tokens):
            out.index_add_(0, tokens, through(weights, x[tokens], expert, between) * call.weights[tokens, choices, None].double())
    return out


def through(weights, x, expert, between):
    """The output of one expert, or of the gated MLP, for rows."""
    for name in ("gate_up", "down"):
        if name == "down":
            x = rows_rounded(activated(weights.layer, x), between)
        x = x @ weights[name].numbers[expert].double().T
        if name in weights.biases:
            x = x + weights.biases[name][expert].double()
    return x
