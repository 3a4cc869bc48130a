"""Contestants of one problem in CUDA graphs, launched in random order in every round, each after a short rest."""
import datetime
import random
import statistics
import time

import torch

L2_BYTES = 60 << 20
REST_S = 0.004
ENQUEUEING_CYCLES = 200_000  # some 100 us: the GPU stays busy until all of a graph is enqueued


def copies_of(weight_bytes):
    """So many copies of the weights fill more than three times the L2 cache: every call reads cold weights."""
    return max(2, -(-3 * L2_BYTES // weight_bytes))


class Contestant:
    """`call(i)` computes with copy i of the weights; a graph holds `count` calls."""

    def __init__(self, call, count):
        self.call = call  # with the inputs that the graph reads
        self.out = call(0).clone()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())  # which makes the call's inputs
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


def race(calls, copies, calls_in_graph, rounds):
    """Contestants by name, with their samples in microseconds for a call."""
    count = -(-calls_in_graph // copies) * copies
    contestants = {name: Contestant(call, count) for name, call in calls.items()}
    interleave(contestants, rounds)
    return contestants


def interleave(contestants, rounds):
    """Every round launches each contestant's graph once, in random order."""
    for _ in range(rounds):
        for name in random.sample(sorted(contestants), len(contestants)):
            contestants[name].sample()


def medians(contestants):
    return {name: statistics.median(one.samples) for name, one in contestants.items()}


def norm_error(out, exact):
    """The norm of the difference over that of `exact`, in float64."""
    return ((out.double() - exact).norm() / exact.norm()).item()


def described(what, commit, **method):
    """The head of a results file: what ran, on which machine, with which toolchain."""
    properties = torch.cuda.get_device_properties(0)
    return {"what": what, "date": datetime.date.today().isoformat(), "commit": commit,
            "machine": {"gpu": properties.name, "multiprocessors": properties.multi_processor_count},
            "toolchain": {"torch": torch.__version__, "cuda": torch.version.cuda}, "method": {"rest_s": REST_S, **method},
            "rows": []}
