#!/usr/bin/env python3
"""Times whole gated MLPs beside PyTorch's, as an engine calls them, in one process on one NVIDIA GPU.

  layers.py --out measurements/NAME.json [--commit HASH] [--rounds N]

down (silu(gate x) * (up x)) of bfloat16 tokens: PyTorch's two linear layers with gate and up in one, eager and
compiled, beside thresher.torch.GatedMLP in BF16 and with NVFP4 weights. The planner's own choice, CUDA graphs, weights
that rotate over more than three times the L2 cache. Outputs are checked against float64 on the weights that each
contestant has. Printed for each problem: medians in microseconds, and PyTorch's best time over Thresher's.
"""
import argparse
import json
import random

import torch
import torch.nn.functional as F

import graph_race
import thresher
import thresher.torch as thresher_torch

ROWS = [1, 16, 64, 128, 256, 1024, 4096]
# Hidden and intermediate size of Llama-8B, Qwen3-0.6B, 8B and 32B, and of Llama-70B on four GPUs.
SIZES = {"Llama-8B": (4096, 14336), "Qwen3-0.6B": (1024, 3072), "Qwen3-8B": (4096, 12288), "Qwen3-32B": (5120, 25600),
         "Llama-70B, 1 of 4 GPUs": (8192, 7168)}
LEVELS = [0, 0.5, 1, 1.5, 2, 3, 4, 6]


def in_nvfp4(weight):
    """The weight in NVFP4, and the numbers that this is: a scale is the largest magnitude of 16 values over 6."""
    levels = torch.tensor(LEVELS, device=weight.device)
    global_scale = (weight.abs().amax().float() / (6 * 448)).reshape(1)
    groups = weight.float().view(weight.shape[0], -1, 16)
    scales = (groups.abs().amax(-1) / 6 / global_scale).to(torch.float8_e4m3fn)
    factors = (scales.float() * global_scale)[..., None]
    nearest = torch.bucketize(groups.abs() / factors.clamp(min=1e-30), (levels[1:] + levels[:-1]) / 2)
    codes = (nearest | ((groups < 0).long() << 3)).to(torch.uint8).view(weight.shape[0], -1)
    numbers = (levels[nearest] * factors * groups.sign()).view_as(weight)
    return thresher.Nvfp4(codes[:, 0::2] | (codes[:, 1::2] << 4), scales, global_scale), numbers


def eager(x, gate_up, down):
    gate, up = F.linear(x, gate_up).chunk(2, -1)
    return F.linear(F.silu(gate) * up, down)


def definition(x, gate, up, down):
    x, gate, up, down = (one.double() for one in (x, gate, up, down))
    return (F.silu(x @ gate.T) * (x @ up.T)) @ down.T


class Layers:
    """Copies of one layer: its weights for PyTorch, and Thresher's modules of them."""

    def __init__(self, hidden, intermediate):
        self.copies = graph_race.copies_of(6 * hidden * intermediate)
        self.compiled = torch.compile(eager)
        self.weights, self.modules, self.first_numbers = [], {"thresher_bf16": [], "thresher_nvfp4": []}, {}
        for i in range(self.copies):
            shapes = ((intermediate, hidden), (intermediate, hidden), (hidden, intermediate))
            of_layer = [torch.randn(shape, device="cuda", dtype=torch.bfloat16) / shape[1] ** 0.5 for shape in shapes]
            four_bits = [in_nvfp4(one) for one in of_layer]
            if i == 0:
                self.first_numbers = {"bf16": of_layer, "nvfp4": [numbers for _, numbers in four_bits]}
            self.weights.append((torch.cat(of_layer[:2]), of_layer[2]))
            self.modules["thresher_bf16"].append(thresher_torch.GatedMLP(*of_layer))
            self.modules["thresher_nvfp4"].append(
                thresher_torch.GatedMLP(*(one for one, _ in four_bits), dtype=torch.bfloat16))

    def calls(self, x):
        calls = {"torch": lambda i: eager(x, *self.weights[i % self.copies]),
                 "torch_compiled": lambda i: self.compiled(x, *self.weights[i % self.copies])}
        for name, modules in self.modules.items():
            calls[name] = lambda i, modules=modules: modules[i % self.copies](x)
        return calls


def measured(model, layers, m, hidden, intermediate, rounds):
    x = torch.randn(m, hidden, device="cuda", dtype=torch.bfloat16)
    contestants = graph_race.race(layers.calls(x), layers.copies, 12 if m < 1024 else 4, rounds)
    exact = {numbers: definition(x, *of_layer) for numbers, of_layer in layers.first_numbers.items()}
    errors = {}
    for name, one in contestants.items():
        errors[name] = graph_race.norm_error(one.out, exact["nvfp4" if name.endswith("nvfp4") else "bf16"])
    medians = graph_race.medians(contestants)
    best = min(medians["torch"], medians["torch_compiled"])
    row = {"model": model, "m": m, "hidden": hidden, "intermediate": intermediate, "median_us": medians,
           "norm_errors": errors, "torch_over_bf16": best / medians["thresher_bf16"],
           "torch_over_nvfp4": best / medians["thresher_nvfp4"],
           "samples_us": {name: one.samples for name, one in contestants.items()}}
    print(f"{model:<24}{m:>5}: " + "  ".join(f"{name} {us:8.2f}" for name, us in medians.items()) +
          f"  bf16 {row['torch_over_bf16']:.3f}x  nvfp4 {row['torch_over_nvfp4']:.3f}x"
          f"  errors {max(errors.values()):.1e}", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="JSON file to write")
    parser.add_argument("--commit", default="", help="what was built")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    result = graph_race.described("gated MLPs of bfloat16 tokens beside PyTorch", args.commit, rounds=args.rounds)
    with torch.inference_mode():
        for model, (hidden, intermediate) in SIZES.items():
            layers = Layers(hidden, intermediate)
            for m in ROWS:
                result["rows"].append(measured(model, layers, m, hidden, intermediate, args.rounds))
                with open(args.out, "w") as file:
                    json.dump(result, file, indent=1)
            del layers
            torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
