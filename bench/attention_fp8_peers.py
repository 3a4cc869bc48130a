#!/usr/bin/env python3
"""Times Thresher's prefill with FP8 queries, keys and values beside its peers', in one process on one NVIDIA GPU.

  attention_fp8_peers.py --library build/default/src/ops/libthresher.so --out measurements/NAME.json [--commit HASH]
                         [--vllm FOLDER] [--cases "d128,pages"] [--variants "keys=128 stages=3" "dim=64 keys=160" ...]
                         [--rounds 25] [--budget-s 240]

--vllm names what vLLM's wheel unpacks to (vllm/...), of which vllm_flash_attn/_vllm_fa3_C.abi3.so suffices; cuDNN's frontend
(cudnn) is imported where it is installed. Whatever cannot run is reported and written into the results, not hidden.
--variants are knobs of the strategy `pipelined`, each a contestant of its own, with FP8 queries or with "kind=16-bit" in 16
bits, "dim=..." for one head dimension alone.

Calls of a CUDA graph read the same operands; in every round each contestant's graph is launched once, in random order,
between two events, after 0.25 s of back-to-back work. All contestants compute the same values: FP8 codes with one scale a
tensor, a power of two, or those in bfloat16. Outputs are held against float64 for sampled rows, of which the relative rms
error is printed beside each time; weights that are multiplied as e4m3 make it a few per cent.

  16-bit        bfloat16 throughout
  fp8 keys      keys and values in e4m3, queries in bfloat16
  fp8 queries   queries in e4m3 too
"""
import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import random
import statistics
import sys
import time
from typing import Callable

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
import compare
import prefill_peers
import thresher_c
from fastest import first_line
from prefill_operands import KINDS, cases, operands_of

GRAPH_OPERATIONS = 4e12  # some 5 ms
LEAST_CALLS, MOST_CALLS = 2, 20
BOUNDS = {"16-bit": 5e-3, "fp8 keys": 5e-3, "fp8 queries": 8e-2}  # of Thresher's relative rms error
MODE = "sustained"


class Contestant(compare.Contestant):
    def __init__(self, name, entrant, operands, call):
        count = min(MOST_CALLS, max(LEAST_CALLS, int(GRAPH_OPERATIONS / operands.case.operations)))
        super().__init__(name, entrant.who, entrant.kind, [lambda: call(0)] * count)
        self.operands, self.entrant = operands, entrant

    def capture(self):
        """As many calls as `calls` has; one warms up."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.calls[0]()
        stream.synchronize()
        self.calls_in_graph = len(self.calls)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.kept = [call() for call in self.calls]

    def row(self):
        case, times = self.operands.case, self.samples[MODE]
        self.operands.o.fill_(float("nan"))
        error, worst, finite = self.operands.errors(self.calls[0]().float() / self.entrant.output_scale)
        quartiles, median = statistics.quantiles(times, n=4), statistics.median(times)
        return {"case": case.name, "batch": case.batch, "heads": case.heads, "kv_heads": case.kv_heads,
                "queries": case.queries, "keys": case.keys, "head_dim": case.head_dim, "causal": case.causal,
                "page": case.page, "kind": self.precision, "who": self.kind, "what": self.entrant.what,
                "name": self.name, "median_us": median, "quartiles_us": [quartiles[0], quartiles[2]], "samples_us": times,
                "tflops": case.operations / median / 1e6, "rms_error": error, "worst_row_error": worst, "finite": finite,
                "correct": finite and error <= BOUNDS[self.precision] if self.kind == "thresher" else None,
                "calls_in_graph": self.calls_in_graph, **compare.summarise(self.states[MODE])}


def thresher_call(library, operands, kind, strategy="", knobs=""):
    """(name, call) of a plan: the strategy that it chose, or knobs of a strategy that is named."""
    case, (q, k, v), descales = operands.case, operands.tensors(kind), operands.descales(kind)
    if case.page:
        plan = thresher_c.PagedAttention(library, q, k, v, case.batch, operands.columns, strategy, knobs)
        q_descale, k_descale, v_descale = descales

        def run():
            plan.run(q, k, v, operands.o, operands.q_starts, operands.table, operands.lengths, k_descale=k_descale,
                     v_descale=v_descale, q_descale=q_descale)
    else:
        plan = thresher_c.Attention(library, q, k, v, operands.o, None, case.causal, strategy, knobs, descales=descales)
        run = plan.run

    def call(_):
        run()
        return operands.o

    return f"thresher {plan.strategy}{f', {knobs}' if knobs else ''}", call


def knobs_for(variants, head_dim):
    """Of each variant that is meant for this head dimension, its kind and its knobs."""
    for text in variants:
        knobs = dict(knob.split("=", 1) for knob in text.split())
        if knobs.pop("dim", str(head_dim)) == str(head_dim):
            yield knobs.pop("kind", "fp8 queries"), " ".join(f"{name}={value}" for name, value in knobs.items())


@dataclasses.dataclass
class Entrant:
    """One who may take part in a case: `make` gives name and call, or raises where it cannot."""
    who: str
    what: str
    kind: str
    make: Callable
    output_scale: float = 1.0  # what the output is to be divided by


def entrants_of(library, operands, args):
    for kind in KINDS:
        yield Entrant("thresher", "Thresher", kind, lambda kind=kind: thresher_call(library, operands, kind))
    for kind, knobs in knobs_for(args.variants, operands.case.head_dim):
        yield Entrant("thresher", f"Thresher, {knobs}", kind,
                      lambda kind=kind, knobs=knobs: thresher_call(library, operands, kind, "pipelined", knobs))
    for kind in ("16-bit", "fp8 queries"):
        yield Entrant("peer", "FlashAttention-3", kind,
                      lambda kind=kind: prefill_peers.flash_attention_3(args.vllm, operands, kind))
    yield Entrant("peer", "cuDNN (SDPA)", "16-bit", lambda: prefill_peers.cudnn_sdpa(operands))
    for output, format_name in prefill_peers.OUTPUTS.items():
        yield Entrant("peer", f"cuDNN, {format_name} out", "fp8 queries",
                      lambda output=output: prefill_peers.cudnn_fp8(operands, output), prefill_peers.output_scale(output))


class Field:
    """Who takes part in a case, and all that could not: one reason is printed once."""

    def __init__(self):
        self.refused, self.reported = [], set()

    def enter(self, entrant, operands):
        try:
            name, call = entrant.make()
            contestant = Contestant(name, entrant, operands, call)
            contestant.capture()
            return [contestant]
        except Exception as error:
            torch.cuda.synchronize()
            reason = {"kind": entrant.kind, "what": entrant.what, "why": first_line(error)}
            self.refused.append({"case": operands.case.name, **reason})
            line = ", ".join(reason.values())
            if line not in self.reported:
                self.reported.add(line)
                print(f"  {operands.case.name}: {line}", flush=True)
            return []

    def of_case(self, library, operands, args):
        return [one for entrant in entrants_of(library, operands, args) for one in self.enter(entrant, operands)]


def print_rows(rows):
    for row in sorted(rows, key=lambda row: (row["kind"], row["median_us"])):
        verdict = "" if row["correct"] is not False else "  WRONG"
        print(f"  {row['kind']:<12}{row['name']:<66}{row['median_us']:10.2f} us {row['tflops']:7.1f} TFLOP/s  error"
              f" {row['rms_error']:.1e}, worst row {row['worst_row_error']:.1e}"
              f"{'' if row['finite'] else '  NOT FINITE'}{verdict}", flush=True)


COLUMNS = [(kind, who) for who in ("thresher", "peer") for kind in KINDS if (kind, who) != ("fp8 keys", "peer")]


def cell(who, text, what=""):
    """A time or its title; behind a peer's, which peer's it is."""
    return f"{text:>22}" + (f" {what:<17}" if who == "peer" else "")


HEADER = "".join([f"{'microseconds':<44}", *(cell(who, f"{who} {kind}") for kind, who in COLUMNS), f"{'16/8':>8}{'peer/8':>8}"])


def line_of(case, rows):
    """The fastest of each kind; what FP8 queries bring Thresher, and how much longer the fastest peer takes with them."""
    usable = [row for row in rows if row["finite"] and row["correct"] is not False]
    best = {column: min((row for row in usable if (row["kind"], row["who"]) == column), key=lambda row: row["median_us"],
                        default=None) for column in COLUMNS}
    cells = [cell(who, f"{row['median_us']:.2f}", row["what"]) if row else cell(who, "-") for (_, who), row in best.items()]
    own = best["fp8 queries", "thresher"]
    ratios = [f"{above['median_us'] / own['median_us']:7.2f}x" if above and own else f"{'-':>8}"
              for above in (best["16-bit", "thresher"], best["fp8 queries", "peer"])]
    return f"{case.name:<44}{''.join(cells + ratios)}"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="path of libthresher.so")
    parser.add_argument("--out", required=True, help="JSON file to write")
    parser.add_argument("--commit", default=None, help="the commit the library was built from (default: git's HEAD)")
    parser.add_argument("--vllm", type=pathlib.Path, default=pathlib.Path("vllm-wheel"), help="folder of vLLM's files")
    parser.add_argument("--cases", default="", help="parts of their names, separated by commas (default: all)")
    parser.add_argument("--variants", nargs="*", default=[], help='knobs of `pipelined`, e.g. "dim=128 keys=128 stages=3"')
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--budget-s", type=float, default=240, help="no case begins later than this (default: 240)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.wanted = [case for case in cases() if any(part in case.name for part in args.cases.split(","))]
    if not args.wanted:
        parser.error(f"--cases {args.cases!r} is part of no case's name, expected one of {[case.name for case in cases()]}")
    if args.rounds < 2:
        parser.error(f"--rounds is {args.rounds}, expected at least 2")
    for knob in " ".join(args.variants).split():
        if "=" not in knob:
            parser.error(f"--variants has {knob!r}, expected name=value")
    return args


def run_case(library, case, args, field, telemetry):
    """The rows of a case; what its contestants held is given back."""
    operands = operands_of(case)
    contestants = field.of_case(library, operands, args)
    if not contestants:
        return []
    compare.measure(contestants, telemetry, {"burst": 0, MODE: args.rounds})
    return [contestant.row() for contestant in contestants]


def write(result, path):
    with open(path, "w") as file:
        json.dump(result, file, indent=1)


def main():
    args = arguments()
    began = time.monotonic()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    library, telemetry = thresher_c.Library(args.library), compare.Telemetry()
    field, lines = Field(), []
    result = {"what": "prefill with FP8 queries, keys and values beside its peers", "date": datetime.date.today().isoformat(),
              "thresher": {"version": library.version(), "commit": args.commit or compare.git_commit()},
              "machine": compare.machine(), "toolchain": {**compare.toolchain(), "cudnn": torch.backends.cudnn.version()},
              "method": {"rounds": args.rounds, "heat_s": compare.HEAT_S, "rms_error_bounds_of_thresher": BOUNDS,
                         "seed": args.seed},
              "rows": [], "refused": field.refused, "left_out": []}
    for case in args.wanted:
        if time.monotonic() - began > args.budget_s:
            result["left_out"].append(case.name)
            continue
        print(f"## {case.name}, {time.monotonic() - began:.0f} s", flush=True)
        rows = run_case(library, case, args, field, telemetry)
        torch.cuda.empty_cache()
        print_rows(rows)
        result["rows"] += rows
        lines.append(line_of(case, rows))
        write(result, args.out)
    print("\n".join([HEADER, *lines]))
    if result["left_out"]:
        print(f"no time for {len(result['left_out'])}: {', '.join(result['left_out'])}")
        write(result, args.out)
    return 1 if any(row["correct"] is False for row in result["rows"]) else 0


if __name__ == "__main__":
    raise SystemExit(main())
