#!/usr/bin/env python3
"""Times plain products of few and many rows beside cuBLAS (torch's linear), in one process on one NVIDIA GPU.

  plain_products.py --out measurements/NAME.json [--commit HASH]

C[m,n] = A[m,k] W[n,k]' in bfloat16, as an engine calls them: the planner's own choice, CUDA graphs, weights that rotate
over more than three times the L2 cache. Contestants are launched in random order in every round, each after a short
rest. Outputs are checked against float64. Printed for each problem: medians in microseconds and cuBLAS/Thresher.
"""
import argparse
import json
import random

import torch
import torch.nn.functional as F

import graph_race
import thresher.torch as thresher_torch

ROUNDS = 21
ROWS = [1, 16, 64, 128, 256, 1024, 4096]
# The down products and the linears of attention of Llama-8B, Qwen3-0.6B, 8B and 32B, and Llama-70B on four GPUs.
WEIGHTS = [(4096, 14336), (6144, 4096), (4096, 4096), (1024, 3072), (4096, 12288), (5120, 25600), (8192, 7168)]


def race(m, n, k):
    copies = graph_race.copies_of(2 * n * k)
    weights = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) / k**0.5 for _ in range(copies)]
    packed = [thresher_torch.pack_gemm(weight) for weight in weights]
    tokens = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    calls = {"cublas": lambda i: F.linear(tokens, weights[i % copies]),
             "thresher": lambda i: thresher_torch.gemm_packed(tokens, packed[i % copies], n)}
    contestants = graph_race.race(calls, copies, 20 if m < 1024 else 8, ROUNDS)
    exact = tokens.double() @ weights[0].double().T
    errors = {name: graph_race.norm_error(one.out, exact) for name, one in contestants.items()}
    medians = graph_race.medians(contestants)
    row = {"m": m, "n": n, "k": k, "median_us": medians, "norm_errors": errors,
           "cublas_over_thresher": medians["cublas"] / medians["thresher"],
           "samples_us": {name: one.samples for name, one in contestants.items()}}
    print(f"{m:>5}x{n}x{k}: cublas {medians['cublas']:8.2f}  thresher {medians['thresher']:8.2f} us  "
          f"{row['cublas_over_thresher']:.3f}x  error {errors['thresher']:.1e}", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="JSON file to write")
    parser.add_argument("--commit", default="", help="what was built")
    args = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    result = graph_race.described("plain products in bfloat16 beside cuBLAS", args.commit, rounds=ROUNDS)
    with torch.inference_mode():
        for n, k in WEIGHTS:
            for m in ROWS:
                result["rows"].append(race(m, n, k))
                with open(args.out, "w") as file:
                    json.dump(result, file, indent=1)
            torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
