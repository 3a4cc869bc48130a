#!/usr/bin/env python3
"""What an operator of thresher.torch costs the host, and its time under CUDA graphs beside the C interface's, on one NVIDIA GPU.

  scripts/record.sh python3 bench/python_host_cost.py --out measurements/python_host_cost_GPU_DATE.json >measurements/python_host_cost_GPU_DATE.txt

Host: microseconds until a call returns, the least mean of bursts short enough that the GPU's queue does not fill, in inference mode; by
libthresher_torch.so, and in a second process by ctypes; torch.mm and torch.nn.functional.linear of a like problem beside them.
Peers: the same of other libraries' Python calls, and what their kernels take in a CUDA graph; one that cannot run says why. The files
of engines that hold Triton kernels lie below --engine-files.
Graphs: calls captured by the operator and by the C interface, launched in turns; medians of microseconds a call.
Replay: of graphs captured once, whose offsets, counts or choices are then written over; every replay must give the bits of an eager call.
"""
import argparse
import contextlib
import ctypes
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import traceback

import torch

import thresher
import thresher.torch as tt
from thresher.torch import _native

sys.path.insert(0, str(pathlib.Path(__file__).parent / "peers"))
import host_calls  # noqa: E402

BURSTS = 40
CALLS_OF_A_BURST = 100
CALLS_OF_A_GRAPH = 20
ROUNDS = 31


def normal(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda").to(dtype)


def host_us(call):
    """The least mean of a burst."""
    for _ in range(CALLS_OF_A_BURST):
        call()
    best = float("inf")
    for _ in range(BURSTS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS_OF_A_BURST):
            call()
        best = min(best, time.perf_counter() - start)
    torch.cuda.synchronize()
    return best / CALLS_OF_A_BURST * 1e6


def choices(tokens, experts, top_k):
    ids = torch.rand(tokens, experts, device="cuda").topk(top_k).indices.to(torch.int32)
    return ids, torch.rand(tokens, top_k, device="cuda")


def even_offsets(rows, experts):
    return torch.linspace(0, rows, experts + 1, device="cuda").to(torch.int32)


def over_pages():
    """One token each of 4 sequences of 64 keys in pages of 16, and what lies where: pages and lists, tokens."""
    pages, lists = normal(16, 2, 16, 2, 64), torch.arange(16, device="cuda", dtype=torch.int32).reshape(4, 4)
    serving = dict(pages=(pages[:, 0], pages[:, 1]), slots=torch.arange(4, device="cuda") * 64 + 63,
                   lists=dict(cu_seqlens_q=torch.arange(5, device="cuda", dtype=torch.int32), block_table=lists,
                              seqused_k=torch.full((4,), 64, device="cuda", dtype=torch.int32)))
    return serving, dict(q=normal(4, 4, 64), k=normal(4, 2, 64), out=normal(4, 4, 64))


def calls_of_operators():
    """Of small problems, so that the GPU keeps up: the call by its operator, and by the function of thresher.torch."""
    rows, n, k = 16, 256, 256
    a, b1, b2, q = normal(rows, k), normal(n, k), normal(n, k), normal(1, 4, 64, 64)
    experts, down_experts, out = normal(4, 2 * n, k), normal(4, k, n), torch.empty(rows, n, device="cuda", dtype=torch.bfloat16)
    packed, down = tt.pack(b1, b2), tt.pack_gemm(normal(k, n))
    gate_up, below = tt.pack_grouped(experts, order="gate_first"), tt.pack_grouped(down_experts)
    offsets, (ids, weights) = even_offsets(rows, 4), choices(rows, 4, 2)
    ops, across = torch.ops.thresher, b1.t()
    serving, tokens = over_pages()
    return {
        "torch.mm": lambda: torch.mm(a, across),
        "torch.mm, out": lambda: torch.mm(a, across, out=out),
        "torch.nn.functional.linear": lambda: torch.nn.functional.linear(a, b1),
        "dual_gemm": lambda: ops.dual_gemm(a, b1, b2),
        "dual_gemm_out": lambda: ops.dual_gemm_out(out, a, b1, b2),
        "dual_gemm_packed": lambda: ops.dual_gemm_packed(a, packed, n),
        "gemm": lambda: ops.gemm(a, b1),
        "gemm_packed": lambda: ops.gemm_packed(a, down, k),
        "grouped_dual_gemm_packed": lambda: ops.grouped_dual_gemm_packed(a, gate_up, n, offsets=offsets),
        "grouped_gemm_packed": lambda: ops.grouped_gemm_packed(a, below, k, offsets=offsets),
        "gated_mlp": lambda: ops.gated_mlp(a, packed, down),
        "moe": lambda: ops.moe(a, gate_up, below, ids, weights),
        "attention": lambda: ops.attention(q, q, q),
        "attention, pages": lambda: ops.attention(tokens["q"], *serving["pages"], **serving["lists"]),
        "attention_out, pages": lambda: ops.attention_out(tokens["out"], None, tokens["q"], *serving["pages"], **serving["lists"]),
        "append": lambda: ops.append(*serving["pages"], tokens["k"], tokens["k"], serving["slots"], positions=serving["slots"], q=tokens["q"],
                                     q_out=tokens["out"]),
        "thresher.torch.dual_gemm": lambda: tt.dual_gemm(a, b1, b2),
        "thresher.torch.dual_gemm_packed": lambda: tt.dual_gemm_packed(a, packed, n),
        "thresher.torch.gated_mlp": lambda: tt.gated_mlp(a, packed, down),
        "thresher.torch.attention": lambda: tt.attention(q, q, q),
        "thresher.torch.attention, pages, out": lambda: tt.attention(tokens["q"], *serving["pages"], out=tokens["out"], **serving["lists"]),
        "thresher.torch.append": lambda: tt.append(tokens["k"], tokens["k"], *serving["pages"], serving["slots"], positions=serving["slots"], q=tokens["q"],
                                                   q_out=tokens["out"]),
    }


def binding():
    return "ctypes" if _native.native is None else "libthresher_torch.so"


def host_costs():
    with torch.inference_mode():
        return {name: round(host_us(call), 3) for name, call in calls_of_operators().items()}


def captured(call):
    """A graph of calls, which were made before."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(2):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS_OF_A_GRAPH):
            call()
    return graph


def launched_us(graph):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / CALLS_OF_A_GRAPH


def in_turns(graphs):
    """Medians by name, of samples taken in turns."""
    samples = {name: [] for name in graphs}
    for graph in graphs.values():
        for _ in range(5):
            graph.replay()
    for _ in range(ROUNDS):
        for name, graph in graphs.items():
            samples[name].append(launched_us(graph))
    return {name: statistics.median(of_one) for name, of_one in samples.items()}


class Direct:
    """thresher_dual_gemm, planned and run by the C interface alone, on packed weights."""

    def __init__(self, a, packed, out):
        from thresher import _library as lib

        self._library, self._check = lib.library(), lib.check
        device = lib.Device(lib.CUDA, a.get_device())
        weights, plan = ctypes.c_void_p(), ctypes.c_void_p()
        self._check(self._library.thresher_dual_gemm_weights_from_block(device, packed.data_ptr(), packed.numel(), 0, ctypes.byref(weights)))
        self._check(self._library.thresher_dual_gemm_plan_flat(weights, a.shape[0], lib.BF16, lib.BF16, 0, None, None, None, 0, ctypes.byref(plan)))
        self._plan, self._a, self._out = plan, a, out
        size = self._library.thresher_dual_gemm_workspace_bytes(plan)
        self._workspace = torch.empty(max(size, 1), dtype=torch.uint8, device="cuda")

    def __call__(self):
        stream = torch.cuda.current_stream().cuda_stream
        self._check(self._library.thresher_dual_gemm_run_flat(
            self._plan, stream, self._a.shape[0], self._a.data_ptr(), 0, None, 0, None, self._out.data_ptr(), 0, self._workspace.data_ptr()))


def nvfp4(rows, k):
    return thresher.Nvfp4(torch.randint(0, 256, (rows, k // 2), dtype=torch.uint8, device="cuda"),
                          torch.randint(40, 70, (rows, k // 16), dtype=torch.uint8, device="cuda"), torch.full((1,), 0.01, device="cuda"))


def under_graphs():
    found = []
    for kind, rows, n, k in (("bf16", 16, 4096, 4096), ("bf16", 256, 4096, 7168), ("nvfp4", 16, 4096, 7168), ("nvfp4", 256, 4096, 7168)):
        weights = [normal(n, k) if kind == "bf16" else nvfp4(n, k) for _ in range(2)]
        a, packed = normal(rows, k), tt.pack(*weights)
        out, own = (torch.empty(rows, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        direct = Direct(a, packed, own)
        with torch.inference_mode():
            times = in_turns({"operator": captured(lambda: torch.ops.thresher.dual_gemm_packed_out(out, a, packed, n)),
                              "new_output": captured(lambda: torch.ops.thresher.dual_gemm_packed(a, packed, n)), "c_interface": captured(direct)})
        torch.cuda.synchronize()
        assert torch.equal(out, own), "the operator and the C interface give different bits"
        found.append(dict(weights=kind, m=rows, n=n, k=k, us={name: round(us, 3) for name, us in times.items()},
                          operator_over_c=round(times["operator"] / times["c_interface"], 4)))
    return found


def replayed(name, call, contents):
    """call() reads tensors that `contents`, functions, write over in place."""
    with torch.inference_mode():
        call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = call()
        for change in contents:
            change()
            graph.replay()
            torch.cuda.synchronize()
            assert torch.equal(result, call()), f"{name}: a replay gave other bits than an eager call"
    return dict(call=name, replays=len(contents), bit_equal=True)


def replays():
    rows, experts, n, k = 64, 8, 512, 512
    a, gate_up = normal(rows, k), tt.pack_grouped(normal(experts, 2 * n, k), order="gate_first")
    below, offsets = tt.pack_grouped(normal(experts, k, n)), even_offsets(rows, experts)
    ids, weights = choices(rows, experts, 2)
    slots, counts = normal(experts, 16, k), torch.full((experts,), 3, dtype=torch.int32, device="cuda")

    def new_offsets():
        offsets.copy_(torch.cat([torch.zeros(1), torch.sort(torch.randint(0, rows + 1, (experts,))).values]).to(torch.int32))

    def new_counts():
        counts.copy_(torch.randint(0, 17, (experts,)))

    def new_choices():
        ids.copy_(torch.randint(-1, experts, ids.shape))

    return [
        replayed("grouped_dual_gemm_packed, offsets", lambda: torch.ops.thresher.grouped_dual_gemm_packed(a, gate_up, n, offsets=offsets), [new_offsets] * 8),
        replayed("grouped_dual_gemm_packed, counts", lambda: torch.ops.thresher.grouped_dual_gemm_packed(slots, gate_up, n, counts=counts), [new_counts] * 8),
        replayed("moe, choices", lambda: torch.ops.thresher.moe(a, gate_up, below, ids, weights), [new_choices] * 8),
    ]


def beside_peers(engine_files):
    """By problem and library: microseconds on the host and in a graph, or the sentence that it cannot be run for."""
    found = {}
    for problem, calls in host_calls.PROBLEMS.items():
        found[problem], graphs = {}, {}
        for name, make in calls(engine_files):
            with torch.inference_mode():
                try:
                    call = make()
                    found[problem][name] = dict(host_us=round(host_us(call), 3))
                    graphs[name] = captured(call)
                except Exception as error:
                    with contextlib.suppress(RuntimeError):
                        torch.cuda.synchronize()
                    traceback.print_exc()
                    found[problem].setdefault(name, {})["not_run"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        for name, us in in_turns(graphs).items():
            found[problem][name]["kernel_us"] = round(us, 3)
        del graphs
        torch.cuda.empty_cache()
    return found


def print_peers(found):
    print(f"{'beside peers':<60}{'host, us':>10}{'kernel, us':>12}")
    for problem, of_one in found.items():
        print(problem)
        for name, one in of_one.items():
            numbers = "".join(f"{one[key]:>{width}.2f}" if key in one else " " * width for key, width in (("host_us", 10), ("kernel_us", 12)))
            print(f"  {name:<58}{numbers}{'  ' + one['not_run'] if 'not_run' in one else ''}")


def by_ctypes():
    """The host's costs of a second process, which calls operators by ctypes."""
    done = subprocess.run([sys.executable, __file__, "--host-only"], env=os.environ | {"THRESHER_TORCH_BINDING": "ctypes"}, check=True,
                          stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="the JSON file to write")
    parser.add_argument("--commit", default="", help="of the sources, for the file")
    parser.add_argument("--engine-files", default="", help="a folder with files of SGLang's and vLLM's packages, at their places")
    parser.add_argument("--host-only", action="store_true", help="prints the host's costs as one line of JSON")
    arguments = parser.parse_args()
    torch.manual_seed(20261124)
    if arguments.host_only:
        print(json.dumps(host_costs()))
        return
    found = dict(commit=arguments.commit, date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes"),
                 gpu=torch.cuda.get_device_name(), torch=torch.__version__, python=sys.version.split()[0], binding=binding(),
                 host_us=host_costs(), host_us_by_ctypes=by_ctypes(), graphs=under_graphs(), replays=replays(),
                 peers=beside_peers(arguments.engine_files))
    print(f"{found['gpu']}, torch {found['torch']}, Python {found['python']}, operators by {found['binding']}")
    print(f"{'host, us a call':<40}{found['binding']:>22}{'ctypes':>10}")
    for name, us in found["host_us"].items():
        print(f"{name:<40}{us:>22.2f}{found['host_us_by_ctypes'][name]:>10.2f}")
    print("under graphs, us a call: operator with out, with a new output, C interface, operator over C")
    for one in found["graphs"]:
        times = one["us"]
        print(f"{one['weights']:<8}{one['m']:>6}{one['n']:>7}{one['k']:>7}{times['operator']:>10.2f}{times['new_output']:>10.2f}"
              f"{times['c_interface']:>10.2f}{one['operator_over_c']:>9.4f}")
    for one in found["replays"]:
        print(f"{one['replays']} replays of {one['call']}: the bits of eager calls")
    print_peers(found["peers"])
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump(found, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
