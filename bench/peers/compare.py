#!/usr/bin/env python3
"""Times Thresher's dual GEMM beside what a PyTorch user would pick today, in one process on one NVIDIA GPU.

  compare.py --library build/default/src/ops/libthresher.so --out measurements/NAME.json [--commit HASH] [--quick]

Every contestant computes silu(A B1') * (A B2') on the same values: NVFP4 weights, which the others get dequantised (16-bit
peers, exactly) or folded into e4m3 with a scale a row (FP8 peers), because power depends on the data. Calls are captured in
a CUDA graph that rotates over input sets of more than three times the L2 cache, so weights come from DRAM. In each round
every contestant's graph is launched once, in random order, between two events:
  burst      the GPU rests 20 ms before each sample
  sustained  without rest, after 0.25 s of back-to-back work
Clock, power, temperature and throttle reasons are read while each sample runs. All outputs are checked against float64.
"""
import argparse
import datetime
import json
import math
import platform
import random
import statistics
import subprocess
import time
import warnings

import torch

import peers
import thresher_c
from operands import Sets

warnings.filterwarnings("ignore")

SHAPES = [(256, 4096, 7168), (512, 4096, 7168), (256, 3072, 4096), (512, 3072, 7168), (128, 4096, 7168),
          (1, 14336, 4096), (16, 14336, 4096), (64, 14336, 4096), (2048, 14336, 4096)]
ROUNDS = {"burst": 15, "sustained": 25}
REST_S = 0.02
HEAT_S = 0.25
CALLS = 20
ENQUEUEING_CYCLES = 200_000  # some 100 us
# Largest relative error of the output's norm. FP8 peers are compared with float64 on their own rounded operands; the rest
# comes from the tensor cores' accumulation and bf16 intermediates. Thresher's fast numerics round inside, so they are
# compared with the exact operands here, and with the rounded ones by the arena.
# FP8 outputs are compared with the exact ones in FP8: a value between two FP8 values may become either.
NORM_BOUNDS = {"16-bit": 5e-3, "nvfp4": 5e-3, "fp8": 2e-2, "fp8 out": 3e-2, "fp8 fast": 2e-2, "nvfp4 fast": 1e-1}


class Telemetry:
    """NVML's view of the GPU; empty where pynvml is missing."""

    def __init__(self):
        try:
            import pynvml
            pynvml.nvmlInit()
            self.nvml = pynvml
            properties = torch.cuda.get_device_properties(0)
            address = f"{properties.pci_domain_id:08x}:{properties.pci_bus_id:02x}:{properties.pci_device_id:02x}.0"
            self.handle = pynvml.nvmlDeviceGetHandleByPciBusId(address)
        except Exception:
            self.nvml = None

    def read(self):
        if self.nvml is None:
            return {}
        n = self.nvml
        reasons = n.nvmlDeviceGetCurrentClocksThrottleReasons(self.handle)
        return {"clock_mhz": n.nvmlDeviceGetClockInfo(self.handle, n.NVML_CLOCK_SM),
                "power_w": n.nvmlDeviceGetPowerUsage(self.handle) / 1e3,
                "temperature_c": n.nvmlDeviceGetTemperature(self.handle, n.NVML_TEMPERATURE_GPU),
                "throttle": reasons & ~1}  # bit 0 is idleness


class Contestant:
    """One way to compute the problem: `calls[i]` computes input set i into its own output and returns it."""

    def __init__(self, name, kind, precision, calls, own_reference=None):
        self.name, self.kind, self.precision, self.calls = name, kind, precision, calls
        self.own_reference = own_reference
        self.samples = {mode: [] for mode in ROUNDS}
        self.states = {mode: [] for mode in ROUNDS}

    def capture(self):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for call in self.calls:
                call()
        stream.synchronize()
        self.calls_in_graph = math.ceil(CALLS / len(self.calls)) * len(self.calls)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.kept = [self.calls[i % len(self.calls)]() for i in range(self.calls_in_graph)]

    def sample(self, mode, telemetry):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(ENQUEUEING_CYCLES)  # keeps the GPU busy until all of this is enqueued: no gap is measured
        start.record()
        self.graph.replay()
        end.record()
        state = telemetry.read()
        end.synchronize()
        self.samples[mode].append(start.elapsed_time(end) * 1e3 / self.calls_in_graph)
        self.states[mode].append(state)

    def errors(self, exact):
        """Of the output's norm: against the operands it was given, and against the exact ones."""
        out = self.calls[0]().double()
        own = exact if self.own_reference is None else self.own_reference()
        return [((out - reference).norm() / reference.norm()).item() for reference in (own, exact)]

    def row(self, shape, exact):
        norm_error, norm_error_exact = self.errors(exact)
        row = {"shape": "x".join(map(str, shape)), "name": self.name, "kind": self.kind, "precision": self.precision,
               "norm_error": norm_error, "norm_error_exact": norm_error_exact,
               "correct": norm_error <= NORM_BOUNDS[self.precision],
               "calls_in_graph": self.calls_in_graph, "input_sets": len(self.calls)}
        for mode, samples in self.samples.items():
            quartiles = statistics.quantiles(samples, n=4)
            row[mode] = {"median_us": statistics.median(samples), "quartiles_us": [quartiles[0], quartiles[2]],
                         "samples_us": samples, "tflops": 4 * math.prod(shape) / statistics.median(samples) / 1e6,
                         **summarise(self.states[mode])}
        return row


def summarise(states):
    known = [state for state in states if state]
    if not known:
        return {}
    summary = {key: statistics.median(state[key] for state in known) for key in ("clock_mhz", "power_w", "temperature_c")}
    summary["throttled_samples"] = sum(1 for state in known if state["throttle"])
    return summary


def thresher_contestants(library, sets):
    """Every strategy of Thresher that plans this problem, for 16-bit and for NVFP4 operands."""
    m, n, k = sets.shape
    cases = [("bf16", "bf16", "exact", "16-bit"), ("fp16", "nvfp4", "exact", "nvfp4"), ("nvfp4", "nvfp4", "exact", "nvfp4"),
             ("fp16", "nvfp4", "fast", "nvfp4 fast"), ("nvfp4", "nvfp4", "fast", "nvfp4 fast"),
             ("fp8_row", "fp8_row", "exact", "fp8"), ("fp8_row", "fp8_row", "fast", "fp8 fast"),
             ("fp8_block", "fp8_block", "exact", "fp8")]
    for a_format, b_format, numerics, precision in cases:
        for strategy in library.strategies():
            if numerics == "fast" and strategy == "two_pass":  # it is always exact
                continue
            name = f"thresher {strategy} {a_format} x {b_format}" + (" fast" if numerics == "fast" else "")
            try:
                plans = [thresher_c.DualGemm(library, m, n, k, a_format, b_format, "bf16", *sets.weights_c(i, b_format),
                                             strategy, numerics) for i in range(sets.count)]
            except thresher_c.ThresherError as error:
                print(f"  {name}: {error}", flush=True)
                continue
            outputs = [torch.empty(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(sets.count)]

            def call(i, plans=plans, outputs=outputs, a_format=a_format):
                plans[i].run(sets.activations_c(i, a_format), thresher_c.matrix(outputs[i], "bf16", n))
                return outputs[i]

            own = (lambda name=b_format: sets.reference_fp8(name)) if b_format.startswith("fp8") else None
            yield Contestant(name, "thresher", precision, [lambda i=i, call=call: call(i) for i in range(sets.count)], own)
            if strategy != "packed" or (a_format != "nvfp4" and numerics != "fast"):
                continue

            def product(i, plans=plans, outputs=outputs, a_format=a_format):
                plans[i].run_prepared(sets.activations_c(i, a_format), thresher_c.matrix(outputs[i], "bf16", n))
                return outputs[i]

            for i, plan in enumerate(plans):  # as peers get pre-quantized FP8 tokens
                plan.prepare(sets.activations_c(i, a_format))
            torch.cuda.synchronize()
            yield Contestant(name + ", tokens prepared", "thresher", precision,
                             [lambda i=i, call=product: call(i) for i in range(sets.count)])


def peer_contestants(sets):
    for peer in peers.available(sets):
        yield Contestant(peer.name, "peer", peer.precision, [lambda i=i, f=peer.call: f(i) for i in range(sets.count)],
                         peer.own_reference)


def heat(contestants):
    until = time.monotonic() + HEAT_S
    while time.monotonic() < until:
        random.choice(contestants).graph.replay()
        torch.cuda.synchronize()


def measure(contestants, telemetry, rounds):
    for mode in ROUNDS:
        if mode == "sustained":
            heat(contestants)
        for _ in range(rounds[mode]):
            for contestant in random.sample(contestants, len(contestants)):
                if mode == "burst":
                    time.sleep(REST_S)
                contestant.sample(mode, telemetry)


def compare_shape(library, shape, telemetry, rounds):
    print(f"## {shape[0]}x{shape[1]}x{shape[2]}", flush=True)
    sets = Sets(shape)
    reference = sets.reference(0)
    contestants = []
    for contestant in [*peer_contestants(sets), *thresher_contestants(library, sets)]:
        try:
            contestant.capture()
            contestants.append(contestant)
        except Exception as error:  # one that cannot run here is reported, not hidden
            torch.cuda.synchronize()
            print(f"  {contestant.name}: {str(error).splitlines()[0][:160]}", flush=True)
    measure(contestants, telemetry, rounds)
    rows = [contestant.row(shape, reference) for contestant in contestants]
    for row in rows:
        print(f"  {row['name']:<48} burst {row['burst']['median_us']:8.2f}  sustained {row['sustained']['median_us']:8.2f} us"
              f"  error {row['norm_error']:.1e}{'' if row['correct'] else '  WRONG'}", flush=True)
    return rows


def toolchain():
    import triton
    return {"torch": torch.__version__, "cuda": torch.version.cuda, "triton": triton.__version__,
            "cublaslt": peers.cublaslt_version(), "python": platform.python_version()}


def machine():
    properties = torch.cuda.get_device_properties(0)
    return {"gpu": properties.name, "multiprocessors": properties.multi_processor_count,
            "l2_bytes": properties.L2_cache_size, "driver": peers.driver_version()}


def git_commit():
    result = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    return result.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="path of libthresher.so")
    parser.add_argument("--out", required=True, help="JSON file to write")
    parser.add_argument("--commit", default=None, help="the commit the library was built from (default: git's HEAD)")
    parser.add_argument("--shapes", default=None, help="e.g. 256x4096x7168,1x14336x4096 (default: all)")
    parser.add_argument("--quick", action="store_true", help="a third of the rounds")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    library = thresher_c.Library(args.library)
    telemetry = Telemetry()
    shapes = [tuple(map(int, text.split("x"))) for text in args.shapes.split(",")] if args.shapes else SHAPES
    rounds = {mode: count // 3 if args.quick else count for mode, count in ROUNDS.items()}
    result = {"what": "dual GEMM beside its peers", "date": datetime.date.today().isoformat(),
              "thresher": {"version": library.version(), "commit": args.commit or git_commit()},
              "machine": machine(), "toolchain": toolchain(),
              "method": {"rounds": rounds, "rest_s": REST_S, "heat_s": HEAT_S, "norm_error_bounds": NORM_BOUNDS,
                         "seed": args.seed},
              "rows": []}
    for shape in shapes:
        result["rows"] += compare_shape(library, shape, telemetry, rounds)
        torch.cuda.empty_cache()
        with open(args.out, "w") as file:
            json.dump(result, file, indent=1)
    wrong = [row for row in result["rows"] if not row["correct"]]
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
