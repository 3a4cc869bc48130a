"""Input sets of one problem: NVFP4 operands, and the same values in 16 bits and folded into e4m3."""
import math

import torch

import thresher_c
from fp8_operands import FP8_FORMATS, Fp8Tokens, Fp8Weights

E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
MOST_SETS = 16
# A power of two: multiplying it in keeps dequantized values exact.
WEIGHT_SCALE = 2.0**-6


def values_of(codes, scales):
    """float32 [rows, columns] of packed e2m1 codes and e4m3 scales, exact."""
    table = torch.tensor(E2M1 + [-value for value in E2M1], device=codes.device)
    values = torch.stack((table[(codes & 15).long()], table[(codes >> 4).long()]), -1).reshape(codes.shape[0], -1)
    return values * scales.float().repeat_interleave(16, dim=1)


class Nvfp4:
    """A random matrix [rows, columns] whose values are about normally distributed."""

    def __init__(self, rows, columns, global_scale):
        self.columns = columns
        # NVFP4 values of a normal variable whose block maximum is near 6, as after quantization.
        normal = torch.randn(rows, columns, device="cuda") * 2.6
        table = torch.tensor(E2M1, device="cuda")
        middle = (table[1:] + table[:-1]) / 2
        codes = torch.bucketize(normal.abs().clamp(max=6), middle).to(torch.uint8) | ((normal < 0).to(torch.uint8) << 3)
        self.codes = (codes[:, 0::2] | (codes[:, 1::2] << 4)).contiguous()
        self.scales = (0.25 + 0.5 * torch.rand(rows, columns // 16, device="cuda")).to(torch.float8_e4m3fn)
        self.global_scale = torch.tensor([global_scale], device="cuda")

    def values(self):
        return values_of(self.codes, self.scales) * self.global_scale

    def view(self):
        return thresher_c.matrix(self.codes, "nvfp4", self.columns, self.scales, self.global_scale)


def folded(values):
    """e4m3 codes and one float32 scale a row."""
    scales = values.abs().amax(dim=1, keepdim=True) / 448
    return (values / scales).to(torch.float8_e4m3fn), scales


def definition(a, w):
    """silu(gate) * up in the operands' precision; w holds the rows of B1, then those of B2."""
    gate, up = (a @ w.t()).chunk(2, dim=1)
    return gate * torch.sigmoid(gate) * up


class Sets:
    """Enough sets that their weights, in the smallest format, pass three times the L2 cache before one comes again."""

    def __init__(self, shape):
        self.shape = shape
        m, n, k = shape
        l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
        self.count = min(max(2, math.ceil(3 * l2_bytes / (n * k * 9 / 8)) + 1), MOST_SETS)
        self.a4 = [Nvfp4(m, k, 1.0) for _ in range(self.count)]
        self.w4 = [[Nvfp4(n, k, WEIGHT_SCALE) for _ in range(2)] for _ in range(self.count)]
        self.a16 = {name: [a.values().to(dtype) for a in self.a4]
                    for name, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16))}
        self.w16 = [torch.cat([w.values() for w in pair]).bfloat16() for pair in self.w4]
        self.a_views = {name: [thresher_c.matrix(a, name, k) for a in tensors] for name, tensors in self.a16.items()}
        self.a_views["nvfp4"] = [a.view() for a in self.a4]
        self.w8 = {name: [Fp8Weights(w.unsqueeze(0), name) for w in self.w16] for name in FP8_FORMATS}
        self.a8 = {name: [Fp8Tokens(a.values(), name) for a in self.a4] for name in FP8_FORMATS}
        for name, tensors in self.a8.items():
            self.a_views[name] = [thresher_c.matrix(a.codes, name, k, a.scales) for a in tensors]
        # gate, up [N, K] and the scales of each
        self.w8_halves = {name: [[part[0] for part in w.apart()] for w in all_w] for name, all_w in self.w8.items()}

    def weights_c(self, i, format_name):
        n, k = self.shape[1:]
        if format_name == "nvfp4":
            return self.w4[i][0].view(), self.w4[i][1].view()
        if format_name in FP8_FORMATS:
            gate, up, gate_scales, up_scales = self.w8_halves[format_name][i]
            return (thresher_c.matrix(gate, format_name, k, gate_scales), thresher_c.matrix(up, format_name, k, up_scales))
        return (thresher_c.matrix(self.w16[i][:n], format_name, k), thresher_c.matrix(self.w16[i][n:], format_name, k))

    def activations_c(self, i, format_name):
        return self.a_views[format_name][i]

    def reference(self, i):
        """float64 on the exact values."""
        return definition(self.a4[i].values().double(), self.w16[i].double())

    def reference_fp8(self, format_name):
        """The definition on operands rounded to FP8."""
        return definition(self.a8[format_name][0].values(), self.w8[format_name][0].values(0))
