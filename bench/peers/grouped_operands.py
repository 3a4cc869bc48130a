"""Input sets of one grouped problem: NVFP4 weights of every expert, and the same values in 16 bits; tokens in 16 bits."""
import dataclasses
import math
import random

import torch

import thresher_c
from fp8_operands import FP8_FORMATS, Fp8Tokens, Fp8Weights
from operands import MOST_SETS, WEIGHT_SCALE, Nvfp4, definition


@dataclasses.dataclass
class Case:
    name: str
    counts: list  # rows of each expert
    n: int
    k: int

    @property
    def experts(self):
        return len(self.counts)

    @property
    def rows(self):
        return sum(self.counts)

    @property
    def active(self):
        return sum(count > 0 for count in self.counts)

    @property
    def operations(self):
        return 4 * self.rows * self.n * self.k

    def bytes(self, weight_bits, token_bits=16, out_bits=16):
        """The least that a call reads and writes."""
        return (self.active * 2 * self.n * self.k * weight_bits / 8
                + self.rows * (self.k * token_bits / 8 + self.n * out_bits / 8))


def routed(tokens, top, of_experts, here, routing="uniform"):
    """Rows of the first `here` of `of_experts`, of which each token chooses `top`: all alike, after Zipf, or one that
    every token chooses beside others that are drawn."""
    generator = random.Random(0)
    weight = [1 / (i + 1) if routing == "zipf" else 1.0 for i in range(of_experts)]
    counts = [0] * of_experts
    for _ in range(tokens):
        # The `top` largest of exponential races: without repetition, in proportion to the weights.
        races = [generator.expovariate(w) for w in weight]
        if routing == "one-hot":
            races[0] = -1.0
        for expert in sorted(range(of_experts), key=races.__getitem__)[:top]:
            counts[expert] += 1
    return counts[:here]


def cases(quick):
    """The origin's four lists, and gate and up of models as they are served."""
    yield Case("origin 1", [80, 176, 128, 72, 64, 248, 96, 160], 4096, 7168)
    yield Case("origin 2", [40, 76, 168, 72, 164, 148, 196, 160], 7168, 2048)
    yield Case("origin 3", [192, 320], 3072, 4096)
    yield Case("origin 4", [128, 384], 4096, 1536)
    models = [("DeepSeek-V3 EP8", 32, 256, 8, 2048, 7168, (16, 64, 512, 4096)),
              ("Qwen3-30B-A3B", 128, 128, 8, 768, 2048, (1, 16, 64, 1024, 4096)),
              ("gpt-oss-120b", 128, 128, 4, 2880, 2880, (1, 16, 1024)),
              ("Mixtral-8x7B", 8, 8, 2, 14336, 4096, (1, 16, 128, 1024)),
              ("Qwen3-Next", 512, 512, 10, 512, 2048, (16, 64)),
              ("GLM-4.5-Air", 128, 128, 8, 1408, 4096, (16, 512))]
    for name, here, of_experts, top, n, k, tokens in models[:4] if quick else models:
        for count in tokens:
            yield Case(f"{name} T={count}", routed(count, top, of_experts, here), n, k)
    if not quick:
        for routing in ("zipf", "one-hot"):
            yield Case(f"DeepSeek-V3 EP8 T=512 {routing}", routed(512, 8, 256, 32, routing), 2048, 7168)


class ExpertWeights:
    """Gate rows, then up's, of all experts one behind the other; made expert by expert, since whole they are large."""

    def __init__(self, experts, rows, k):
        self.codes = torch.empty(experts, rows, k // 2, dtype=torch.uint8, device="cuda")
        self.scales = torch.empty(experts, rows, k // 16, dtype=torch.float8_e4m3fn, device="cuda")
        self.values = torch.empty(experts, rows, k, dtype=torch.bfloat16, device="cuda")  # exact
        for expert in range(experts):
            one = Nvfp4(rows, k, WEIGHT_SCALE)
            self.codes[expert], self.values[expert] = one.codes, one.values()
            self.scales[expert].view(torch.uint8).copy_(one.scales.view(torch.uint8))


class GroupedSets:
    """Enough sets that their weights, in the smallest format, pass three times the L2 cache before one comes again."""

    def __init__(self, case):
        self.case = case
        n, k = case.n, case.k
        l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
        self.count = min(max(2, math.ceil(3 * l2_bytes / (case.active * n * k * 9 / 8)) + 1), MOST_SETS)
        self.w4 = [ExpertWeights(case.experts, 2 * n, k) for _ in range(self.count)]
        self.w16 = [w.values for w in self.w4]
        self.global_scales = torch.full((case.experts,), WEIGHT_SCALE, device="cuda")
        self.a4 = [Nvfp4(case.rows, k, 1.0) for _ in range(self.count)]
        self.a16 = {name: [a.values().to(dtype) for a in self.a4]
                    for name, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16))}
        self.w8 = {name: [Fp8Weights(w, name) for w in self.w16] for name in FP8_FORMATS}
        self.a8 = {name: [Fp8Tokens(a.values(), name) for a in self.a4] for name in FP8_FORMATS}
        self.starts = [0]
        for count in case.counts:
            self.starts.append(self.starts[-1] + count)
        self.offsets = torch.tensor(self.starts, dtype=torch.int32, device="cuda")

    def weights_c(self, i, format_name):
        if format_name in FP8_FORMATS:
            return self.w8[format_name][i].apart()
        return (self.w4[i].codes, self.w4[i].scales, self.global_scales) if format_name == "nvfp4" else self.w16[i]

    def tokens_c(self, i, format_name):
        if format_name in FP8_FORMATS:
            tokens = self.a8[format_name][i]
            return thresher_c.matrix(tokens.codes, format_name, self.case.k, tokens.scales)
        return self.a4[i].view() if format_name == "nvfp4" else thresher_c.matrix(self.a16[format_name][i], format_name,
                                                                                  self.case.k)

    def reference_fp8(self, format_name):
        """The definition on operands rounded to FP8."""
        return self.reference(self.a8[format_name][0].values(), self.w8[format_name][0].values)

    def expert_rows(self):
        """(expert, first row, end) of each that has rows."""
        for expert, (first, end) in enumerate(zip(self.starts, self.starts[1:])):
            if end > first:
                yield expert, first, end

    def reference(self, a=None, w_of=None):
        """float64; of set 0's operands, or of others: `a` [rows, K], `w_of(expert)` [2N, K]."""
        a = self.a4[0].values() if a is None else a
        w_of = w_of or (lambda expert: self.w16[0][expert])
        return torch.cat([definition(a[first:end].double(), w_of(expert).double())
                          for expert, first, end in self.expert_rows()])
