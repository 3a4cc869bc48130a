#!/usr/bin/env python3
"""Times Thresher's attention beside PyTorch's SDPA, cuDNN and FlashAttention pinned, in one process on one GPU.

Contenders are interleaved: every round times each of them once, so that clocks and temperature are the same for all.
Prints the median of the rounds in microseconds per call inside a CUDA graph, and for small problems one call between
two events from C++.

usage: attention_peers.py --library libthresher_attention_shim.so [--commit HASH] [--out results.json] [--only 0,3]

The commit is written into the results: --commit, or what git says of this file's repository.
"""
import argparse
import ctypes
import json
import os
import random
import statistics
import subprocess
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
import thresher_c

CASES = [  # batch, heads, kv heads, length, head dim, causal, format
    (1, 8, 8, 512, 64, False, "fp16"), (1, 8, 8, 512, 64, True, "fp16"), (1, 32, 8, 2048, 128, True, "bf16"),
    (4, 16, 16, 4096, 128, False, "bf16"), (4, 16, 16, 4096, 128, True, "bf16"),
    (1, 16, 16, 16384, 128, False, "bf16"), (1, 16, 16, 16384, 128, True, "bf16"),
    (4, 32, 32, 4096, 64, False, "bf16"), (4, 32, 32, 4096, 64, True, "bf16"),
    (4, 8, 8, 4096, 256, False, "bf16"), (4, 8, 8, 4096, 256, True, "bf16"),
    (1, 8, 8, 16384, 256, False, "bf16"), (1, 8, 8, 16384, 256, True, "bf16")]


class Library(thresher_c.Library):
    """The C interface and the clock, which libthresher_attention_shim.so both has."""

    def __init__(self, path):
        super().__init__(path)
        self.library.thresher_bench_one_call_us.restype = ctypes.c_double
        self.library.thresher_bench_one_call_us.argtypes = [ctypes.c_void_p] * 7 + [ctypes.c_int, ctypes.c_void_p]

    def one_call_us(self, attention, count=300):
        median = ctypes.c_double()
        tensors = (thresher_c.pointer(tensor) for tensor in (*attention.tensors, attention.workspace))
        least = self.library.thresher_bench_one_call_us(attention.plan, *tensors, count, ctypes.byref(median))
        if least < 0:
            raise RuntimeError("one call between two events failed")
        return least, median.value


def capture(call, calls):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    return graph


def time_interleaved(calls_by_name, calls, rounds):
    graphs = {name: capture(call, calls) for name, call in calls_by_name.items()}
    times = {name: [] for name in graphs}
    for graph in graphs.values():
        graph.replay()
    torch.cuda.synchronize()
    order = list(graphs.items())
    for _ in range(rounds):
        random.shuffle(order)  # a contender's clock depends on its predecessor
        for name, graph in order:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) * 1e3 / calls)
    return {name: statistics.median(values) for name, values in times.items()}


def variants_of(case, extra):
    """name -> (strategy, knobs, dependent launch, with lse)."""
    small = case[3] <= 512
    chosen = {"thresher": ("", "", 0, False), "thresher with lse": ("", "", 0, True)}
    if small:
        chosen["thresher dependent launch"] = ("", "", 1, False)
        chosen["thresher simple"] = ("simple", "", 0, False)
    for text in extra:
        strategy, _, knobs = text.partition(":")
        if int(dict(p.split("=") for p in knobs.split()).get("dim", case[4])) == case[4]:
            chosen[f"thresher {text}"] = (strategy, " ".join(p for p in knobs.split() if not p.startswith("dim=")), 0, False)
    return chosen


def run_case(library, case, arguments):
    b, h, hk, s, d, causal, fmt = case
    dtype = torch.bfloat16 if fmt == "bf16" else torch.float16
    q = torch.randn(b, h, s, d, device="cuda", dtype=dtype)
    k, v = (torch.randn(b, hk, s, d, device="cuda", dtype=dtype) for _ in range(2))
    o = torch.empty_like(q)
    lse = torch.empty(b, h, s, device="cuda", dtype=torch.float32)
    sdpa = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=h != hk)

    def pinned(backend):
        def call():
            with sdpa_kernel(backend):
                return sdpa()
        return call

    peers = {"cuDNN": pinned(SDPBackend.CUDNN_ATTENTION), "FlashAttention": pinned(SDPBackend.FLASH_ATTENTION)}
    expected = peers["FlashAttention"]().float()
    contenders, errors, plans = dict(peers), {}, {}
    for name, (strategy, knobs, dependent, with_lse) in variants_of(case, arguments.variant).items():
        try:
            plan = thresher_c.Attention(library, q, k, v, o, lse if with_lse else None, causal, strategy, knobs, dependent)
            o.fill_(float("nan"))
            plan.run()
            torch.cuda.synchronize()
            errors[name] = (o.float() - expected).norm().item() / expected.norm().item()
            if not errors[name] < 1e-2:
                raise RuntimeError(f"wrong: relative error {errors[name]:.3g}")
            contenders[name] = plan.run
            plans[name] = plan
        except RuntimeError as error:
            print(f"  {name}: {error}", flush=True)
    operations = 4 * b * h * s * s * d * (0.5 if causal else 1)
    calls = 200 if s <= 512 else max(2, min(20, int(2e13 / operations / 50)))
    medians = time_interleaved(contenders, calls, arguments.rounds)
    rows = []
    for name, us in medians.items():
        row = {"shape": f"b{b} h{h}/{hk} s{s} d{d}{' causal' if causal else ''} {fmt}", "contender": name, "us": us,
               "tflops": operations / us / 1e6, "speedup_over_cudnn": medians["cuDNN"] / us, "error": errors.get(name)}
        if name in plans and s <= 512:
            row["one_call_least_us"], row["one_call_median_us"] = library.one_call_us(plans[name])
        rows.append(row)
        print("  ".join(f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
                        for key, value in row.items() if value is not None), flush=True)
    return rows


def commit_of(argument):
    if argument:
        return argument
    try:
        asked = subprocess.run(["git", "-C", os.path.dirname(os.path.abspath(__file__)), "describe", "--always", "--dirty",
                                "--abbrev=12", "--exclude=*"], capture_output=True, text=True)
    except OSError:
        asked = None
    if asked is None or asked.returncode:
        sys.exit("attention_peers.py: git does not know the commit that is measured: name it with --commit HASH")
    return asked.stdout.strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--commit", help="of the library; asked of git when absent")
    parser.add_argument("--out")
    parser.add_argument("--only", default="", help="comma-separated indices of cases; all when empty")
    parser.add_argument("--rounds", type=int, default=61)
    parser.add_argument("--variant", action="append", default=[], help='e.g. "pipelined:stages=3 dim=128"')
    arguments = parser.parse_args()
    commit = commit_of(arguments.commit)
    torch.manual_seed(0)
    random.seed(0)
    torch.empty(1, device="cuda")
    library = Library(arguments.library)
    wanted = [int(i) for i in arguments.only.split(",") if i] or range(len(CASES))
    clocks = subprocess.run(["nvidia-smi", "--query-gpu=name,clocks.sm,power.draw,temperature.gpu,driver_version",
                             "--format=csv,noheader"], capture_output=True, text=True).stdout.strip()
    results = {"commit": commit, "gpu": clocks, "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "rows": []}
    print("commit", commit, clocks, "torch", results["torch"], "cuDNN", results["cudnn"], flush=True)
    for index in wanted:
        results["rows"] += run_case(library, CASES[index], arguments)
        if arguments.out:
            with open(arguments.out, "w") as out:
                json.dump(results, out, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
