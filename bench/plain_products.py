#!/usr/bin/env python3
"""Times plain products of few and many rows beside cuBLAS (torch's linear), in one process on one NVIDIA GPU.

  plain_products.py --out measurements/NAME.json [--commit HASH]

C[m,n] = A[m,k] W[n,k]' in bfloat16, as an engine calls them: the planner's own choice, CUDA graphs, weights that rotate
over more than three times the L2 cache. Contestants are launched in random order in every round, each after a short
rest. Outputs are checked against float64. Printed for each problem: medians in microseconds and cuBLAS/Thresher.
"""
import argparse
import datetime
import json
import random
import statistics
import time

import torch
import torch.nn.functional as F

import thresher.torch as thresher_torch

L2_BYTES = 50 << 20
ROUNDS = 21
REST_S = 0.004
ENQUEUEING_CYCLES = 200_000  # some 100 us: the GPU stays busy until all of a graph is enqueued
ROWS = [1, 16, 64, 128, 256, 1024, 4096]
# The down products and the linears of attention of Llama-8B, Qwen3-0.6B, 8B and 32B, and Llama-70B on four GPUs.
WEIGHTS = [(4096, 14336), (6144, 4096), (4096, 4096), (1024, 3072), (4096, 12288), (5120, 25600), (8192, 7168)]


class Contestant:
    def __init__(self, call, count):
        self.out = call(0).clone()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for i in range(count):
                call(i)
        stream.synchronize()
        self.count, self.graph, self.samples = count, torch.cuda.CUDAGraph(), []
        with torch.cuda.graph(self.graph):
            self.kept = [call(i) for i in range(count)]

    def sample(self):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        time.sleep(REST_S)
        torch.cuda._sleep(ENQUEUEING_CYCLES)
        start.record()
        self.graph.replay()
        end.record()
        end.synchronize()
        self.samples.append(start.elapsed_time(end) * 1e3 / self.count)


def race(m, n, k):
    copies = max(2, -(-3 * L2_BYTES // (2 * n * k)))
    weights = [torch.randn(n, k, device="cuda", dtype=torch.bfloat16) / k**0.5 for _ in range(copies)]
    packed = [thresher_torch.pack_gemm(weight) for weight in weights]
    tokens = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    count = -(-(20 if m < 1024 else 8) // copies) * copies
    calls = {"cublas": lambda i: F.linear(tokens, weights[i % copies]),
             "thresher": lambda i: thresher_torch.gemm_packed(tokens, packed[i % copies], n)}
    contestants = {name: Contestant(call, count) for name, call in calls.items()}
    exact = tokens.double() @ weights[0].double().T
    errors = {name: ((one.out.double() - exact).norm() / exact.norm()).item() for name, one in contestants.items()}
    for _ in range(ROUNDS):
        for name in random.sample(sorted(contestants), len(contestants)):
            contestants[name].sample()
    medians = {name: statistics.median(one.samples) for name, one in contestants.items()}
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
    properties = torch.cuda.get_device_properties(0)
    result = {"what": "plain products in bfloat16 beside cuBLAS", "date": datetime.date.today().isoformat(),
              "commit": args.commit, "machine": {"gpu": properties.name, "multiprocessors": properties.multi_processor_count},
              "toolchain": {"torch": torch.__version__, "cuda": torch.version.cuda},
              "method": {"rounds": ROUNDS, "rest_s": REST_S}, "rows": []}
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
