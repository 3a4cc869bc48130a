#!/usr/bin/env python3
"""Times Thresher's decoding over keys in pages beside its peers', in one process on one NVIDIA GPU.

  attention_decode_peers.py --library build/default/src/ops/libthresher.so --out measurements/NAME.json [--commit HASH]
                            [--vllm FOLDER] [--flashinfer FOLDER] [--cases "b8 ,d256"] [--kinds "16-bit,mixed"] [--quick]
                            [--budget-s 240]

FOLDERs hold what the peers need: --vllm what vllm_flash_attn/_vllm_fa3_C.abi3.so and v1/attention/ops/triton_*.py of vLLM's
wheel unpack to (vllm/...), --flashinfer modules that FlashInfer built. FlashMLA (flash_mla) and cuDNN's frontend (cudnn) are
imported where they are installed. Whatever cannot run is reported, not hidden.

One query for each sequence. Calls of a CUDA graph read different pages of more than the L2 cache holds, so keys come from
DRAM; in every round each contestant's graph is launched once, in random order, between two events. Outputs are held against
float64 on the values that a contestant was given: of a case's sequences up to 32, and no output may be NaN.

  16-bit        bfloat16 throughout, sequences of the same length
  mixed         the same sum of lengths, from a quarter to seven quarters of it
  fp8 keys      keys and values in e4m3, queries in bfloat16
  fp8 queries   queries in e4m3 too
"""
import argparse
import datetime
import json
import os
import pathlib
import random
import statistics
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
import compare
import decode_peers
import thresher_c
from decode_operands import COLD_BYTES, Operands, Pool, cases
from fastest import first_line

DRAM_BYTES_A_US = 4.30e6
LARGE_BYTES = 64 << 20  # from here on memory bandwidth is the bottleneck
BOUNDS = {"16-bit": 5e-3, "mixed": 5e-3, "fp8 keys": 5e-3, "fp8 queries": 8e-2}  # of the output's norm
MLA_PAGE = 64  # the only one that FlashMLA supports
LEAST_CALLS = 20
MOST_GRAPH_BYTES = 8 << 30
ROOM_BYTES = 14 << 30  # for workspaces and the framework
LAST_PAGES_ELEMENTS = 16 << 20  # unused parts of the last pages with mixed lengths
MODE = "sustained"


class Contestant(compare.Contestant):
    def __init__(self, name, who, kind, operands, call, own_reference=None):
        calls = [lambda i=i: call(i) for i in range(operands.copies)]
        super().__init__(name, who, kind, calls, own_reference or operands.reference)
        self.operands = operands

    def capture(self):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for call in self.calls[:2]:
                call()
        stream.synchronize()
        copies = len(self.calls)
        turns = min(-(-LEAST_CALLS // copies), max(1, MOST_GRAPH_BYTES // (self.operands.bytes * copies)))
        self.calls_in_graph = turns * copies
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.kept = [call() for _ in range(turns) for call in self.calls]

    def row(self, case):
        self.operands.o[0].fill_(float("nan"))
        out, reference = self.calls[0]().double(), self.own_reference()
        error = ((out[self.operands.checked] - reference).norm() / reference.norm()).item()
        times = self.samples[MODE]
        quartiles = statistics.quantiles(times, n=4)
        median = statistics.median(times)
        return {"case": case.name, "batch": case.batch, "keys": case.keys, "heads": case.heads, "kv_heads": case.kv_heads,
                "head_dim": case.head_dim, "page": self.operands.page, "kind": self.precision, "who": self.kind,
                "name": self.name, "median_us": median, "quartiles_us": [quartiles[0], quartiles[2]], "samples_us": times,
                "bytes": self.operands.bytes, "bytes_a_second": self.operands.bytes / median * 1e6, "norm_error": error,
                "correct": error <= BOUNDS[self.precision] and bool(out.isfinite().all()),
                "calls_in_graph": self.calls_in_graph, "copies": len(self.calls), **compare.summarise(self.states[MODE])}


def thresher_call(library, operands, strategy="", dependent=0):
    plan = thresher_c.PagedAttention(library, operands.q[0], operands.k, operands.v, operands.case.batch, operands.columns,
                                     strategy, "", dependent)
    descale = torch.full((1,), operands.k_descale, device="cuda") if operands.fp8 else None

    def call(i):
        plan.run(operands.q[i], operands.k, operands.v, operands.o[i], operands.q_starts, operands.tables[i],
                 operands.lengths, descale)
        return operands.o[i]

    return f"thresher {plan.strategy}{', dependent launch' if dependent else ''}", call


def makers_of(library, sources, operands, kind):
    """(who, function that gives name and call) of everybody who decodes these operands."""
    yield "thresher", lambda: thresher_call(library, operands)
    if kind == "16-bit" and operands.bytes < LARGE_BYTES:
        yield "thresher dependent", lambda: thresher_call(library, operands, dependent=1)
    if kind != "fp8 keys":
        yield "peer", lambda: decode_peers.flash_attention_3(sources, operands)
        yield "peer", lambda: decode_peers.cudnn_paged(operands)
    yield "peer", lambda: decode_peers.triton_unified(sources, operands)
    yield "peer", lambda: decode_peers.flashinfer(sources, operands)
    if operands.case.value_dim:
        yield "peer", lambda: decode_peers.flash_mla(operands)


class Entrants:
    """Who takes part in a case. One that cannot run here is reported once, not hidden."""

    def __init__(self):
        self.reported = set()
        self.of_case = []

    def enter(self, who, kind, operands, make, own_reference=None):
        try:
            name, call = make()
            contestant = Contestant(name, who, kind, operands, call, own_reference)
            contestant.capture()
            self.of_case.append(contestant)
        except Exception as error:
            torch.cuda.synchronize()
            failure = f"{kind}, {who}: {first_line(error)}"
            if failure not in self.reported:
                self.reported.add(failure)
                print(f"  {failure}", flush=True)

    def enter_kind(self, library, sources, case, pool, page, kind):
        operands = Operands(case, pool, page, kind == "mixed")
        if kind == "fp8 queries":
            q8 = [q.to(torch.float8_e4m3fn) for q in operands.q]
            self.enter("peer", kind, operands, lambda: decode_peers.flash_attention_3(sources, operands, q8),
                       lambda: operands.definition(q8[0]))
            return
        for who, make in makers_of(library, sources, operands, kind):
            self.enter(who, kind, operands, make)
        if kind == "16-bit" and not case.value_dim and not any(one.name.startswith("cuDNN") for one in self.of_case):
            in_order = Operands(case, pool, page, shuffled=False)
            self.enter("peer", kind, in_order, lambda: decode_peers.cudnn_contiguous(in_order))

    def enter_all(self, library, sources, case, pools, page, kinds):
        self.of_case = []
        for kind in kinds:
            if (kind == "mixed" and case.batch == 1) or (kind != "16-bit" and case.value_dim):
                continue
            self.enter_kind(library, sources, case, pools[kind.startswith("fp8")], MLA_PAGE if case.value_dim else page, kind)
        return self.of_case


def measure(contestants, telemetry, rounds):
    for contestant in contestants:
        contestant.graph.replay()
    torch.cuda.synchronize()
    for _ in range(rounds):
        for contestant in random.sample(contestants, len(contestants)):
            contestant.sample(MODE, telemetry)


def best(rows, kind, who):
    times = [row["median_us"] for row in rows if row["kind"] == kind and row["who"] == who and row["correct"]]
    return min(times, default=None)


def line_of(case, rows):
    """One line of the table: Thresher, the best peer of each kind and what they say about each other."""
    def cell(time_us):
        return f"{time_us:9.2f}" if time_us else "        -"

    def ratio(above, below):
        return f"{above / below:5.2f}x" if above and below else "     -"

    own, peer = best(rows, "16-bit", "thresher"), best(rows, "16-bit", "peer")
    own8, mixed, mixed_peer = best(rows, "fp8 keys", "thresher"), best(rows, "mixed", "thresher"), best(rows, "mixed", "peer")
    rate = f"{next(row['bytes'] for row in rows) / own / 1e6:5.2f}" if own else "    -"
    return (f"{case.name:<24}{cell(own)} {rate} TB/s {cell(peer)} {ratio(peer, own)} |{cell(own8)} {ratio(own, own8)}"
            f" {cell(best(rows, 'fp8 keys', 'peer'))} {cell(best(rows, 'fp8 queries', 'peer'))} |{cell(mixed)}"
            f" {ratio(mixed, own)} {cell(mixed_peer)} {ratio(mixed_peer, mixed)}")


HEADER = (f"{'':<24}{'16-bit':>9} {'':10} {'best peer':>9} {'over':>6} |{'fp8 keys':>9} {'16/8':>6} {'peer':>9} {'fp8 q':>9} |"
          f"{'mixed':>9} {'/equal':>6} {'peer':>9} {'over':>6}")


def ratios_of(by_case, above, below, wanted=lambda rows: True):
    """(ratio, case) of two (kind, who)."""
    found = []
    for name, rows in by_case.items():
        times = best(rows, *above), best(rows, *below)
        if all(times) and wanted(rows):
            found.append((times[0] / times[1], name))
    return found


def summary(rows):
    """Of each question: over how many cases, geometric mean, least and most with their cases."""
    by_case = {}
    for row in rows:
        by_case.setdefault(row["case"], []).append(row)

    def large(of_case):
        return any(row["kind"] == "16-bit" and row["bytes"] >= LARGE_BYTES for row in of_case)

    def grid(of_case):
        return of_case[0]["head_dim"] == 128 and of_case[0]["kv_heads"] == 8

    own = "16-bit", "thresher"
    asked = {"best peer over thresher, 16-bit, the grid": ratios_of(by_case, ("16-bit", "peer"), own, grid),
             "best peer over thresher, 16-bit, others": ratios_of(by_case, ("16-bit", "peer"), own, lambda r: not grid(r)),
             "best peer over thresher, mixed lengths": ratios_of(by_case, ("mixed", "peer"), ("mixed", "thresher")),
             "best peer over thresher, fp8 keys": ratios_of(by_case, ("fp8 keys", "peer"), ("fp8 keys", "thresher")),
             "fp8 queries of a peer over fp8 keys of thresher": ratios_of(by_case, ("fp8 queries", "peer"),
                                                                          ("fp8 keys", "thresher")),
             "thresher, 16-bit over fp8 keys, from 64 MB": ratios_of(by_case, own, ("fp8 keys", "thresher"), large),
             "thresher, mixed over equal lengths": ratios_of(by_case, ("mixed", "thresher"), own),
             "thresher, share of 4.30 TB/s from 64 MB, 16-bit": [
                 (next(row["bytes"] for row in of_case) / best(of_case, *own) / DRAM_BYTES_A_US, name)
                 for name, of_case in by_case.items() if large(of_case) and best(of_case, *own)]}
    for peer in sorted({row["name"].split(" (")[0] for row in rows if row["who"] == "peer" and row["kind"] == "16-bit"}):
        only = {name: [row for row in of_case if row["who"] == "thresher" or row["name"].startswith(peer)]
                for name, of_case in by_case.items()}
        asked[f"{peer} over thresher, 16-bit, all"] = ratios_of(only, ("16-bit", "peer"), own)
    found = {}
    for question, values in asked.items():
        if values:
            least, most = min(values), max(values)
            found[question] = {"cases": len(values), "geometric_mean": statistics.geometric_mean(v for v, _ in values),
                               "least": least[0], "least_case": least[1], "most": most[0], "most_case": most[1]}
    return found


def print_summary(found):
    for question, values in found.items():
        print(f"{question:<50} {values['geometric_mean']:6.3f} over {values['cases']:>2}, least {values['least']:.3f}"
              f" ({values['least_case']}), most {values['most']:.3f} ({values['most_case']})", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="path of libthresher.so")
    parser.add_argument("--out", required=True, help="JSON file to write")
    parser.add_argument("--commit", default=None, help="the commit the library was built from (default: git's HEAD)")
    parser.add_argument("--vllm", type=pathlib.Path, default=pathlib.Path("vllm-wheel"), help="folder of vLLM's files")
    parser.add_argument("--flashinfer", type=pathlib.Path, default=pathlib.Path("flashinfer-modules"),
                        help="folder of FlashInfer's built modules")
    parser.add_argument("--cases", default="", help="parts of their names, separated by commas (default: all)")
    parser.add_argument("--kinds", default=",".join(BOUNDS), help="of operands, separated by commas (default: all)")
    parser.add_argument("--page", type=int, default=16, help="keys of a page (default: 16)")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--quick", action="store_true", help="a part of the grid")
    parser.add_argument("--budget-s", type=float, default=240, help="no case begins later than this (default: 240)")
    args = parser.parse_args()
    args.kinds = args.kinds.split(",")
    unknown = set(args.kinds) - set(BOUNDS)
    if unknown:
        parser.error(f"--kinds has {sorted(unknown)}, expected of {list(BOUNDS)}")
    return args


def that_fit(wanted, kinds, total_bytes):
    """Cases whose keys, in every format that is asked for, leave room for everything else."""
    element_bytes = sum({1 if kind.startswith("fp8") else 2 for kind in kinds})
    for case in wanted:
        if case.elements * element_bytes + ROOM_BYTES <= total_bytes:
            yield case
        else:
            print(f"  {case.name} does not fit", flush=True)


def pools_for(wanted, kinds):
    """By whether it holds FP8: keys and values of every case, as often as its calls have copies."""
    most = max(case.elements // (1 if case.value_dim else 2) for case in wanted) + COLD_BYTES // 2
    return {fp8: Pool(most + LAST_PAGES_ELEMENTS, fp8) for fp8 in sorted({kind.startswith("fp8") for kind in kinds})}


def main():
    args = arguments()
    began = time.monotonic()
    random.seed(0)
    torch.manual_seed(0)
    library = thresher_c.Library(args.library)
    telemetry = compare.Telemetry()
    sources = decode_peers.Sources(args.vllm, args.flashinfer)
    result = {"what": "decoding over keys in pages beside its peers", "date": datetime.date.today().isoformat(),
              "thresher": {"version": library.version(), "commit": args.commit or compare.git_commit()},
              "machine": compare.machine(),
              "toolchain": {**compare.toolchain(), "cudnn": torch.backends.cudnn.version()},
              "method": {"rounds": args.rounds, "norm_error_bounds": BOUNDS, "page": args.page}, "rows": []}
    wanted = [case for case in cases(args.quick) if any(part in case.name for part in args.cases.split(","))]
    wanted = list(that_fit(wanted, args.kinds, torch.cuda.get_device_properties(0).total_memory))
    pools = pools_for(wanted, args.kinds)
    entrants, lines, left_out = Entrants(), [], []
    for case in wanted:
        if time.monotonic() - began > args.budget_s:
            left_out.append(case.name)
            continue
        contestants = entrants.enter_all(library, sources, case, pools, args.page, args.kinds)
        if not contestants:
            continue
        measure(contestants, telemetry, args.rounds)
        rows = [contestant.row(case) for contestant in contestants]
        result["rows"] += rows
        print(f"## {case.name}, {time.monotonic() - began:.0f} s", flush=True)
        for row in sorted(rows, key=lambda row: (row["kind"], row["median_us"])):
            print(f"  {row['kind']:<12}{row['name']:<66}{row['median_us']:9.2f} us {row['bytes_a_second'] / 1e12:5.2f} TB/s"
                  f"  error {row['norm_error']:.1e}{'' if row['correct'] else '  WRONG'}", flush=True)
        lines.append(line_of(case, rows))
        contestants.clear()  # frees graphs and their memory
        torch.cuda.empty_cache()
        result["left_out"] = left_out
        with open(args.out, "w") as file:
            json.dump(result, file, indent=1)
    result["summary"] = summary(result["rows"])
    result["left_out"] = left_out
    with open(args.out, "w") as file:
        json.dump(result, file, indent=1)
    print("\n".join([HEADER, *lines]))
    if left_out:
        print(f"no time for {len(left_out)}: {', '.join(left_out)}")
    print_summary(result["summary"])
    return 1 if any(not row["correct"] for row in result["rows"]) else 0


if __name__ == "__main__":
    raise SystemExit(main())
