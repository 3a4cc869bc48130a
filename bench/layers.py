#!/usr/bin/env python3
"""Times whole layers beside what they replace, as an engine calls them, in one process on one NVIDIA GPU.

  layers.py --out PART.json [--commit HASH] [--rounds N] [--layers dense,moe,linears] [--models Qwen3,Mixtral] [--tokens 1,16]
            [--formats bf16,nvfp4] [--peers torch,humming] [--engine-files FOLDER] [--budget-s 60] [--deterministic batch]

Gated MLPs, layers of experts and the linear layers of attention of models, in each format of weights. Tokens are bfloat16, and rounding
them is inside the clock of FP8 contestants, all of which share the kernels for it. So are routing and adding up with experts. Thresher is what
its planner chooses; `thresher_module` rounds with its own operator. Contestants are CUDA graphs of calls over copies of the weights of more
than three times the L2 cache, launched in random order in every round. No time counts before the output was held against float64 on the
format's numbers; in FP8 rows are rounded there, too. Between the products Thresher's have a scale for 128 columns, and those of peers the
scales of the format. Products of a layer are timed alone in the same rounds.

--models are parts of names of models and parts, --peers of names of peers ("none": no peer). No case begins after --budget-s.
--engine-files is a folder with SGLang's files at their places, whose Triton kernels are loaded without SGLang.
bench/layer_results.py puts the parts of a measurement into one file.
Printed: each case's medians in microseconds, then geometric means by format and number of tokens, and what did not run.
"""
import argparse
import random
import time

import torch

import graph_race
import layer_four_bit_peers as four_bit_peers
import layer_models
import layer_own
import layer_peers
import layer_results
import thresher
from layer_weights import Weights, call_of, definition

BOUNDS = {"bf16": 1e-2, "fp8_block": 4e-2, "fp8_row": 4e-2, "nvfp4": 1e-2, "mxfp4": 1e-2}  # of the relative error of the output's norm
CALLS = 12
BEGAN = time.monotonic()


def reason_of(error):
    return " ".join(str(error).split())[:160] or repr(error)


FAMILIES = {
    ("dense", "bf16"): [layer_peers.torch_bf16, layer_peers.deepgemm, layer_peers.quack, layer_peers.torch_launches],
    ("linears", "bf16"): [layer_peers.torch_bf16, layer_peers.deepgemm],
    ("moe", "bf16"): [layer_peers.torch_bf16, layer_peers.triton_experts],
    ("moe", "fp8_row"): [layer_peers.torch_grouped_rows, layer_peers.triton_experts],
    ("moe", "fp8_block"): [layer_peers.deepgemm_experts, layer_peers.triton_experts],
}
for kind in ("dense", "linears"):
    FAMILIES[kind, "fp8_row"] = [layer_peers.torch_rows]
    FAMILIES[kind, "fp8_block"] = [layer_peers.torch_blocks, layer_peers.deepgemm]
for format_name in ("nvfp4", "mxfp4"):
    FAMILIES["moe", format_name] = [four_bit_peers.humming_experts]
    FAMILIES["dense", format_name] = FAMILIES["linears", format_name] = [four_bit_peers.humming, four_bit_peers.marlin]


class Field:
    """The contestants of a layer in one format: (name, role, what makes a call), each with so many copies of the weights."""

    def __init__(self, layer, format_name, least_tokens, peers, not_run):
        self.layer, self.format, self.least_tokens, self.not_run = layer, format_name, least_tokens, not_run
        self.weights = Weights(layer, format_name)
        self.members = []
        self.enter(layer_own.FAMILIES[layer.kind], self.weights)
        for family in FAMILIES[layer.kind, format_name]:
            if layer_models.has_part(family.__name__, peers):
                self.enter(family, self.weights)
        if format_name != "bf16" and layer_models.has_part("torch", peers):
            self.enter(layer_peers.torch_bf16, Weights(layer, "bf16"), "anchor")

    def enter(self, family, weights, role=None):
        """Adds a family's contestants; one that cannot be set up is named with its reason."""
        copies = graph_race.copies_of(self.layer.weight_bytes(weights.format, self.least_tokens))
        try:
            for name, own_role, maker in family(weights, copies):
                if role is None:
                    self.members.append((name, own_role, maker, copies))
                elif "compiled" not in name:
                    self.members.append((f"{name}_bf16", role, maker, copies))
        except Exception as error:
            self.not_run.append({"layer": self.layer.name, "format": self.format, "who": family.__name__, "reason": reason_of(error)})

    def contestants(self, call, count):
        """(name, role, contestant) of all that run."""
        for name, role, maker, copies in self.members:
            try:
                yield name, role, graph_race.Contestant(maker(call), -(-count // copies) * copies)
            except Exception as error:
                torch.cuda.synchronize()
                self.not_run.append({"layer": f"{self.layer.name}, {len(call.x)}", "format": self.format, "who": name, "reason": reason_of(error)})


def errors_of(found, weights, call):
    """The errors of whole layers; anchors compute with other numbers and products alone with other rows."""
    between = {role: weights.format for role in ("peer", "fast peer")} | {"own": layer_own.between_format(weights.format)}
    exact = {one: definition(weights, call, one) for one in dict.fromkeys(between.values())}
    return {name: graph_race.norm_error(one.out, exact[between[role]]) for name, role, one in found if role in between}


def measured(field, tokens, rounds):
    layer, call = field.layer, call_of(field.layer, tokens)
    found = list(field.contestants(call, CALLS if tokens < 1024 else 4))
    errors = errors_of(found, field.weights, call)
    wrong = [name for name, error in errors.items() if not error <= BOUNDS[field.format]]
    raced = {name: one for name, _, one in found if name not in wrong}
    graph_race.interleave(raced, rounds)
    return {"kind": layer.kind, "model": layer.model, "part": layer.part, "format": field.format, "tokens": tokens, "shapes": layer.shapes,
            "experts": layer.experts, "top_k": layer.top_k, "roles": {name: role for name, role, _ in found if name in raced},
            "median_us": graph_race.medians(raced), "norm_errors": errors, "wrong": wrong,
            "samples_us": {name: one.samples for name, one in raced.items()}}


def rows_of(layer, format_name, arguments, tokens, not_run):
    """The rows of one layer in one format, as far as the time goes."""
    field = None
    for count in tokens:
        if time.monotonic() - BEGAN > arguments.budget_s:
            not_run.append({"layer": f"{layer.name}, {count}", "format": format_name, "who": "all", "reason": "no time was left"})
            continue
        field = field or Field(layer, format_name, min(tokens), layer_models.words_of(arguments.peers), not_run)
        row = measured(field, count, arguments.rounds)
        print(layer_results.row_line(row), flush=True)
        yield row
    del field
    torch.cuda.empty_cache()


def arguments_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="JSON file to write")
    parser.add_argument("--commit", default="", help="what was built")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--budget-s", type=float, default=float("inf"), help="seconds after which no case begins (default: none)")
    for name, words in (("layers", ", ".join(layer_models.KINDS)), ("models", "parts of names"), ("tokens", "numbers"),
                        ("formats", ", ".join(layer_models.FORMATS)), ("peers", "parts of names, or none")):
        parser.add_argument(f"--{name}", default="", help=f"{words}, separated by commas (default: all)")
    parser.add_argument("--engine-files", default="", help="folder with files of SGLang")
    parser.add_argument("--deterministic", choices=("batch",), help="Thresher's bits do not depend on the batch")
    return parser.parse_args()


def main():
    arguments = arguments_of()
    layers, tokens = layer_models.selected(arguments.layers, arguments.models, arguments.formats, arguments.tokens)
    layer_peers.ENGINE_FILES["folder"] = arguments.engine_files
    if arguments.deterministic:
        thresher.set_deterministic(arguments.deterministic)
    random.seed(0)
    torch.manual_seed(0)
    torch._dynamo.config.recompile_limit = 64  # compiled contestants stay compiled for every shape
    result = graph_race.described("whole layers of bfloat16 tokens beside what they replace", arguments.commit, rounds=arguments.rounds,
                                  bounds=BOUNDS, deterministic=arguments.deterministic)
    not_run = result["not_run"] = []
    with torch.inference_mode():
        for layer, formats in layers:
            for format_name in formats:
                for row in rows_of(layer, format_name, arguments, tokens, not_run):
                    result["rows"].append(row)
                    layer_results.write(arguments.out, result)
    layer_results.print_summary(result["rows"], not_run)
    print(f"{time.monotonic() - BEGAN:.0f} s")
    return 1 if any(row["wrong"] for row in result["rows"]) else 0


if __name__ == "__main__":
    raise SystemExit(main())
