#!/usr/bin/env python3
"""Times Thresher's grouped dual GEMM beside what a user would pick today, in one process on one NVIDIA GPU.

  grouped.py --library build/default/src/ops/libthresher.so --out measurements/NAME.json [--commit HASH] [--quick]
             [--cases "origin,Mixtral"] [--precision 16-bit] [--strategies]

Method, values and checks as in compare.py: graphs of calls over rotating input sets, contestants in random order in every
round, burst and sustained, the same NVFP4 values for all, dequantised or folded for those who need it, outputs held
against float64. Tokens lie sorted by expert for everybody, no contestant permutes them. Thresher is what its planner
chooses; with --strategies every strategy that plans the problem is there too. What cannot run is reported, not hidden.

Printed beside each time: how much of the least time it reaches, of the bytes that must be read and written at 4.30 TB/s or
of the products at 800 (FP8 1450) TFLOP/s. At the end, by rows of an active expert: Thresher against the best peer.
"""
import argparse
import datetime
import json
import math
import random
import statistics
import warnings

import torch

import compare
import grouped_peers
import thresher_c
from grouped_operands import GroupedSets, cases

warnings.filterwarnings("ignore")

DRAM_BYTES_A_US = 4.30e6
OPERATIONS_A_US = {"16-bit": 800e6, "nvfp4": 800e6, "fp8": 1450e6, "fp8 out": 1450e6, "fp8 fast": 1450e6,
                   "nvfp4 fast": 1450e6}
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
WEIGHT_BITS = {"16-bit": 16, "fp8": 8, "fp8 out": 8, "fp8 fast": 8, "nvfp4": 4.5, "nvfp4 fast": 4.5}
# The peers of Thresher's times. "fp8" has FP32 accumulation every 128 along K, "fp8 fast" has not; "fp8 out", from
# fp8_block.py, has FP8 outputs too.
RIVALS = {"16-bit": ("16-bit",), "fp8": ("fp8",), "fp8 out": ("fp8 out",), "fp8 fast": ("fp8 fast", "fp8"),
          "nvfp4": ("nvfp4", "16-bit"), "nvfp4 fast": ("nvfp4", "fp8")}
REGIMES = (("at most 16 rows", 0, 16), ("16 to 64", 16, 64), ("64 to 128", 64, 128), ("128 and more", 128, math.inf))


def least_us(case, precision):
    token_bits = 8 if precision.startswith("fp8") else 16
    out_bits = 8 if precision == "fp8 out" else 16
    return max(case.bytes(WEIGHT_BITS[precision], token_bits, out_bits) / DRAM_BYTES_A_US,
               case.operations / OPERATIONS_A_US[precision])


class Contestant(compare.Contestant):
    def __init__(self, name, kind, precision, calls, own_reference=None, pick=lambda out: out):
        super().__init__(name, kind, precision, calls, own_reference)
        self.pick = pick

    def row(self, case, exact):
        out = self.pick(self.calls[0]()).double()
        own = exact if self.own_reference is None else self.own_reference()
        errors = [((out - reference).norm() / reference.norm()).item() for reference in (own, exact)]
        row = {"case": case.name, "experts": case.experts, "active": case.active, "rows": case.rows, "n": case.n,
               "k": case.k, "name": self.name, "kind": self.kind, "precision": self.precision,
               "norm_error": errors[0], "norm_error_exact": errors[1],
               "correct": errors[0] <= compare.NORM_BOUNDS[self.precision], "least_us": least_us(case, self.precision),
               "calls_in_graph": self.calls_in_graph, "input_sets": len(self.calls)}
        for mode, samples in self.samples.items():
            quartiles = statistics.quantiles(samples, n=4)
            row[mode] = {"median_us": statistics.median(samples), "quartiles_us": [quartiles[0], quartiles[2]],
                         "samples_us": samples, "tflops": case.operations / statistics.median(samples) / 1e6,
                         **compare.summarise(self.states[mode])}
        return row


def thresher_contestants(library, sets, strategies):
    case = sets.case
    shape = case.experts, case.rows, case.n, case.k
    for a_format, b_format, numerics, precision in (("bf16", "bf16", None, "16-bit"),
                                                    ("fp8_block", "fp8_block", None, "fp8"),
                                                    ("fp8_row", "fp8_row", None, "fp8"),
                                                    ("fp8_row", "fp8_row", "fast", "fp8 fast"),
                                                    ("fp16", "nvfp4", "exact", "nvfp4"),
                                                    ("fp16", "nvfp4", "fast", "nvfp4 fast"),
                                                    ("nvfp4", "nvfp4", "fast", "nvfp4 fast")):
        is_fp8 = b_format.startswith("fp8")
        out_format = "bf16" if a_format == "bf16" or is_fp8 else "fp16"
        # FP8 weights are not packed: numerics is a knob.
        packed_for, knobs = (None, f"numerics={numerics}" if numerics else "") if is_fp8 else (numerics, "")
        for strategy in strategies:
            name = f"thresher {strategy} {a_format} x {b_format}" + (" fast" if numerics == "fast" else "")
            try:
                plans = [thresher_c.Grouped(library, shape, a_format, b_format, out_format, sets.weights_c(i, b_format),
                                            packed_for, strategy, knobs) for i in range(sets.count)]
            except thresher_c.ThresherError as error:
                print(f"  {name}: {error}", flush=True)
                continue
            outputs = [torch.empty(case.rows, case.n, device="cuda", dtype=DTYPES[out_format]) for _ in range(sets.count)]

            def call(i, plans=plans, outputs=outputs, a_format=a_format, out_format=out_format):
                plans[i].run(sets.tokens_c(i, a_format), thresher_c.matrix(outputs[i], out_format, case.n), sets.offsets)
                return outputs[i]

            chosen = f" ({plans[0].strategy})" if strategy == "" else ""
            own = (lambda name=b_format: sets.reference_fp8(name)) if is_fp8 else None
            yield Contestant(" ".join(name.split()) + chosen, "thresher", precision,
                             [lambda i=i, call=call: call(i) for i in range(sets.count)], own)


def peer_contestants(sets):
    for peer, pick in grouped_peers.available(sets):
        yield Contestant(peer.name, "peer", peer.precision, [lambda i=i, f=peer.call: f(i) for i in range(sets.count)],
                         peer.own_reference, pick)


def compare_case(case, telemetry, rounds, contestants_of):
    """`contestants_of`: of a case's operands."""
    print(f"## {case.name}: {case.rows} rows, {case.active} of {case.experts} experts, N {case.n} K {case.k}", flush=True)
    sets = GroupedSets(case)
    contestants = []
    for contestant in contestants_of(sets):
        try:
            contestant.capture()
            contestants.append(contestant)
        except Exception as error:  # one that cannot run here is reported, not hidden
            torch.cuda.synchronize()
            print(f"  {contestant.name}: {(str(error).splitlines() or [repr(error)])[0][:160]}", flush=True)
    if not contestants:
        return []
    compare.measure(contestants, telemetry, rounds)
    exact = sets.reference()
    rows = [contestant.row(case, exact) for contestant in contestants]
    for row in rows:
        burst, sustained = row["burst"]["median_us"], row["sustained"]["median_us"]
        print(f"  {row['name']:<62} burst {burst:8.2f}  sustained {sustained:8.2f} us"
              f"  {100 * row['least_us'] / burst:5.1f} % of the least  error {row['norm_error']:.1e}"
              f"{'' if row['correct'] else '  WRONG'}", flush=True)
    return rows


def summary(rows):
    """Of each precision and regime: the geometric mean, and the worst, of the best peer's time over Thresher's."""
    by_case = {}
    for row in rows:
        if row["correct"]:
            by_case.setdefault(row["case"], []).append(row)
    ratios = {}
    for name, of_case in by_case.items():
        each = of_case[0]["rows"] / of_case[0]["active"]
        regime = next(words for words, least, most in REGIMES if least < each <= most)
        for precision, rivals in RIVALS.items():
            own = [row for row in of_case if row["kind"] == "thresher" and row["precision"] == precision]
            for rival in rivals:
                against = [row for row in of_case if row["kind"] == "peer" and row["precision"] == rival]
                for mode in compare.ROUNDS:
                    if own and against:
                        best = [min(row[mode]["median_us"] for row in some) for some in (against, own)]
                        ratios.setdefault((precision, rival, regime, mode), []).append((best[0] / best[1], name))
    found = []
    for (precision, rival, regime, mode), values in ratios.items():
        worst = min(values)
        found.append({"precision": precision, "against": rival, "rows_an_active_expert": regime, "mode": mode,
                      "cases": len(values), "geometric_mean": statistics.geometric_mean(v for v, _ in values),
                      "worst": worst[0], "worst_case": worst[1]})
        print(f"{precision:<10} against the best {rival:<6} {regime:<16} {mode:<9} {found[-1]['geometric_mean']:.3f}x"
              f" over {len(values)} cases, at worst {worst[0]:.3f}x ({worst[1]})", flush=True)
    return found


def described(what, args, library, rounds):
    """What a file of results begins with; its rows are still missing."""
    return {"what": what, "date": datetime.date.today().isoformat(),
            "thresher": {"version": library.version(), "commit": args.commit or compare.git_commit()},
            "machine": compare.machine(), "toolchain": compare.toolchain(),
            "method": {"rounds": rounds, "rest_s": compare.REST_S, "heat_s": compare.HEAT_S,
                       "norm_error_bounds": compare.NORM_BOUNDS, "seed": args.seed},
            "rows": []}


def compare_all(result, wanted, telemetry, contestants_of, out):
    """Every case into `result`, which is written to the file `out` after each; the status that the process ends with."""
    for case in wanted:
        result["rows"] += compare_case(case, telemetry, result["method"]["rounds"], contestants_of)
        torch.cuda.empty_cache()
        with open(out, "w") as file:
            json.dump(result, file, indent=1)
    result["summary"] = summary(result["rows"])
    with open(out, "w") as file:
        json.dump(result, file, indent=1)
    return 1 if any(not row["correct"] for row in result["rows"]) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="path of libthresher.so")
    parser.add_argument("--out", required=True, help="JSON file to write")
    parser.add_argument("--commit", default=None, help="the commit the library was built from (default: git's HEAD)")
    parser.add_argument("--cases", default="", help="parts of their names, separated by commas (default: all)")
    parser.add_argument("--quick", action="store_true", help="a third of the rounds, the first models")
    parser.add_argument("--precision", choices=sorted(set(OPERATIONS_A_US) - {"fp8 out"}),
                        help="contestants of this one (default: all)")
    parser.add_argument("--strategies", action="store_true", help="every strategy by name beside the planner's choice")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    library = thresher_c.Library(args.library)
    telemetry = compare.Telemetry()
    rounds = {mode: count // 3 if args.quick else count for mode, count in compare.ROUNDS.items()}
    strategies = ["", *library.strategies("grouped")] if args.strategies else [""]
    wanted = args.cases.split(",")

    def contestants_of(sets):
        for contestant in [*peer_contestants(sets), *thresher_contestants(library, sets, strategies)]:
            if args.precision in (None, contestant.precision):
                yield contestant

    return compare_all(described("grouped dual GEMM beside its peers", args, library, rounds),
                       [case for case in cases(args.quick) if any(part in case.name for part in wanted)], telemetry,
                       contestants_of, args.out)


if __name__ == "__main__":
    raise SystemExit(main())
