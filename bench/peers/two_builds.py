#!/usr/bin/env python3
"""Times two builds of Thresher side by side, in one process on one NVIDIA GPU: what a change cost or brought.

  two_builds.py --before CHECKOUT --after CHECKOUT --out measurements/NAME.json [--quick]

A checkout is a folder with that version's bench/ and its built libraries (build/default). Each build is called through
the bindings of its own checkout, bench/peers/thresher_c.py and bench/attention_peers.py. Both compute the same inputs;
each call is captured in a CUDA graph of its own, and in every round the two graphs are launched in random order, each
after a short rest. Printed for each problem: both medians and after/before, with a bootstrap interval of 95 %.
"""
import argparse
import datetime
import glob
import importlib.util
import json
import math
import os
import random
import statistics
import sys
import time

import torch

import compare
import grouped_operands
from operands import Sets

ROUNDS = 41
REST_S = 0.004
CASES = [("bf16", "bf16", "exact"), ("fp16", "nvfp4", "exact"), ("nvfp4", "nvfp4", "exact"), ("fp16", "nvfp4", "fast"),
         ("nvfp4", "nvfp4", "fast")]


def module(checkout, path):
    """A module of a checkout, under a name of its own."""
    name = f"{os.path.basename(os.path.abspath(checkout))}_{os.path.basename(path)[:-3]}"
    spec = importlib.util.spec_from_file_location(name, os.path.join(checkout, path))
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


class Build:
    def __init__(self, checkout):
        self.dual_gemm = module(checkout, "bench/peers/thresher_c.py")
        self.attention = module(checkout, "bench/attention_peers.py")
        [library] = glob.glob(os.path.join(checkout, "build/default/**/libthresher.so"), recursive=True)
        shims = glob.glob(os.path.join(checkout, "build/default/**/libthresher_attention_shim.so"), recursive=True)
        self.library = self.dual_gemm.Library(library)
        self.attention_library = self.attention.Library(shims[0]) if shims else None

    def nvfp4(self, matrix):
        return self.dual_gemm.matrix(matrix.codes, "nvfp4", matrix.columns, matrix.scales, matrix.global_scale)

    def dual_gemm_calls(self, sets, a_format, b_format, numerics):
        """A call of the chosen strategy for each input set, and where each writes."""
        m, n, k = sets.shape
        matrix = self.dual_gemm.matrix
        calls = []
        for i in range(sets.count):
            weights = ([self.nvfp4(w) for w in sets.w4[i]] if b_format == "nvfp4" else
                       [matrix(half, b_format, k) for half in (sets.w16[i][:n], sets.w16[i][n:])])
            tokens = self.nvfp4(sets.a4[i]) if a_format == "nvfp4" else matrix(sets.a16[a_format][i], a_format, k)
            plan = self.dual_gemm.DualGemm(self.library, m, n, k, a_format, b_format, "bf16", *weights, "", numerics)
            out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
            view = matrix(out, "bf16", n)
            calls.append(lambda plan=plan, tokens=tokens, view=view, out=out: (plan.run(tokens, view), out)[1])
        return calls

    def attention_call(self, case, tensors, dependent):
        q, k, v = tensors
        out = torch.empty_like(q)
        if hasattr(self.attention_library, "plan"):  # version 0.1 had attention only in the bench's own library
            handle = self.attention_library.plan(case, q, k, v, out, None, "", "", dependent)
            return lambda: (self.attention_library.run(handle), out)[1]
        plan = self.dual_gemm.Attention(self.library, q, k, v, out, None, case[5], "", "", dependent)
        return lambda: (plan.run(), out)[1]


class Side:
    def __init__(self, calls, count):
        torch.cuda.synchronize()
        self.out = calls[0]().clone()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for call in calls:
                call()
        stream.synchronize()
        self.calls_in_graph = math.ceil(count / len(calls)) * len(calls)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.kept = [calls[i % len(calls)]() for i in range(self.calls_in_graph)]
        self.samples = []

    def sample(self):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(compare.ENQUEUEING_CYCLES)
        start.record()
        self.graph.replay()
        end.record()
        end.synchronize()
        self.samples.append(start.elapsed_time(end) * 1e3 / self.calls_in_graph)


def interval(before, after):
    """95 % of the ratio of medians, by a bootstrap over rounds."""
    rounds = range(len(before))
    ratios = []
    for _ in range(400):
        drawn = random.choices(rounds, k=len(before))
        ratios.append(statistics.median(after[i] for i in drawn) / statistics.median(before[i] for i in drawn))
    ratios.sort()
    return ratios[10], ratios[-11]


def race(title, calls, count, rounds):
    sides = {name: Side(made, count) for name, made in calls.items()}
    for _ in range(rounds):
        for name in random.sample(sorted(sides), 2):
            time.sleep(REST_S)
            sides[name].sample()
    before, after = sides["before"].samples, sides["after"].samples
    low, high = interval(before, after)
    row = {"problem": title, "before_us": statistics.median(before), "after_us": statistics.median(after),
           "after_over_before": statistics.median(after) / statistics.median(before), "low": low, "high": high,
           "bitwise_equal": bool(torch.equal(sides["before"].out.view(torch.int16), sides["after"].out.view(torch.int16))),
           "samples_us": {name: side.samples for name, side in sides.items()}}
    print(f"{title:<52} {row['before_us']:9.2f} {row['after_us']:9.2f} us  {row['after_over_before']:.4f} "
          f"[{low:.4f}, {high:.4f}]{'' if row['bitwise_equal'] else '  OTHER BITS'}", flush=True)
    return row


def dual_gemm_rows(builds, rounds):
    for shape in compare.SHAPES:
        sets = Sets(shape)
        for a_format, b_format, numerics in CASES:
            title = f"{'x'.join(map(str, shape))} {a_format} x {b_format}{' fast' if numerics == 'fast' else ''}"
            calls = {name: build.dual_gemm_calls(sets, a_format, b_format, numerics) for name, build in builds.items()}
            yield race(title, calls, compare.CALLS, rounds)
        torch.cuda.empty_cache()


def attention_rows(builds, rounds):
    for case in builds["after"].attention.CASES:
        b, h, hk, s, d, causal, fmt = case
        dtype = torch.bfloat16 if fmt == "bf16" else torch.float16
        tensors = [torch.randn(b, heads, s, d, device="cuda", dtype=dtype) for heads in (h, hk, hk)]
        for dependent in (0, 1) if s <= 512 else (0,):
            title = (f"attention {b}x{h}/{hk}x{s}x{d} {fmt}{' causal' if causal else ''}"
                     f"{' dependent launch' if dependent else ''}")
            calls = {name: [build.attention_call(case, tensors, dependent)] for name, build in builds.items()}
            yield race(title, calls, 200 if s <= 512 else 8, rounds)


GROUPED = [("8 experts of 8", [8] * 8, 14336, 4096), ("8 experts of 128", [128] * 8, 14336, 4096),
           ("128 experts, 64 tokens of 8", grouped_operands.routed(64, 8, 128, 128), 768, 2048),
           ("8 experts, ragged", [80, 176, 128, 72, 64, 248, 96, 160], 4096, 7168)]


def grouped_rows(builds, rounds):
    for name, counts, n, k in GROUPED:
        rows, experts = sum(counts), len(counts)
        weights = torch.randn(experts, 2 * n, k, device="cuda", dtype=torch.bfloat16) / k**0.5
        tokens = torch.randn(rows, k, device="cuda", dtype=torch.bfloat16)
        offsets = torch.tensor([sum(counts[:i]) for i in range(experts + 1)], device="cuda", dtype=torch.int32)
        calls = {}
        for side, build in builds.items():
            plan = build.dual_gemm.Grouped(build.library, (experts, rows, n, k), "bf16", "bf16", "bf16", weights)
            out = torch.empty(rows, n, device="cuda", dtype=torch.bfloat16)
            a, c = build.dual_gemm.matrix(tokens, "bf16", k), build.dual_gemm.matrix(out, "bf16", n)
            calls[side] = [lambda plan=plan, a=a, c=c, out=out: (plan.run(a, c, offsets), out)[1]]
        yield race(f"{name}, {n}x{k} bf16", calls, compare.CALLS, rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="a checkout with its build")
    parser.add_argument("--after", required=True, help="another")
    parser.add_argument("--before-commit", required=True)
    parser.add_argument("--after-commit", required=True)
    parser.add_argument("--out", required=True, help="JSON file to write")
    parser.add_argument("--quick", action="store_true", help="a third of the rounds")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.empty(1, device="cuda")
    builds = {"before": Build(args.before), "after": Build(args.after)}
    rounds = ROUNDS // 3 if args.quick else ROUNDS
    properties = torch.cuda.get_device_properties(0)
    result = {"what": "two builds of Thresher side by side", "date": datetime.date.today().isoformat(),
              "before": {"version": builds["before"].library.version(), "commit": args.before_commit},
              "after": {"version": builds["after"].library.version(), "commit": args.after_commit},
              "machine": {"gpu": properties.name, "multiprocessors": properties.multi_processor_count,
                          "driver": compare.peers.driver_version()},
              "toolchain": compare.toolchain(),
              "method": {"rounds": rounds, "rest_s": REST_S, "seed": args.seed}, "rows": []}
    for rows in (attention_rows, grouped_rows, dual_gemm_rows):
        for row in rows(builds, rounds):
            result["rows"].append(row)
            with open(args.out, "w") as file:
                json.dump(result, file, indent=1)
    slower = [row["problem"] for row in result["rows"] if row["low"] > 1.01]
    print(f"{len(result['rows'])} problems, {len(slower)} slower by more than 1 % beyond doubt", *slower, sep="\n  ")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
