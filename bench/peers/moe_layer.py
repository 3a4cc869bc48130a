#!/usr/bin/env python3
"""Times Thresher's layer of experts beside SGLang's fused MoE and Humming, in one process on one NVIDIA GPU.

  moe_layer.py --library build/default/src/ops/libthresher.so --out measurements/NAME.json [--commit HASH] [--quick]
               [--cases "Mixtral,T=16"] [--precision "fp8 out"] [--beside OTHER/libthresher.so] [--no-peers]

Method and checks as in compare.py. A call is a whole layer from the chosen experts on: Thresher routes, gathers, multiplies,
weighs and adds up; the peers are given rows that are sorted, padded and gathered already, and only multiply, activate, weigh
and add up. Weights are the same NVFP4 values for all, in 16 bits or FP8 blocks for those who need it; with FP8 blocks tokens
are FP8 already, and what lies between the products is made FP8 by each. Outputs are held against float64.
"""
import argparse
import dataclasses
import datetime
import json
import math
import random
import statistics
import warnings

import torch
import triton.language as tl

import compare
import fp8_block
import grouped_peers
import peers
import thresher_c
from fastest import first_line
from fp8_operands import BLOCK, Fp8Tokens, Fp8Weights
from grouped_operands import ExpertWeights
from operands import MOST_SETS, WEIGHT_SCALE, Nvfp4

warnings.filterwarnings("ignore")


@dataclasses.dataclass
class Case:
    name: str
    tokens: int
    experts: int
    top_k: int
    hidden: int
    intermediate: int


def cases(quick):
    models = [("Qwen3-30B-A3B", 128, 8, 2048, 768, (1, 16, 64, 1024, 4096)),
              ("Mixtral-8x7B", 8, 2, 4096, 14336, (1, 16, 128, 1024)), ("gpt-oss-120b", 128, 4, 2880, 2880, (1, 16, 512))]
    for name, experts, top_k, hidden, intermediate, tokens in models:
        for count in tokens[1::2] if quick else tokens:
            yield Case(f"{name} T={count}", count, experts, top_k, hidden, intermediate)


class Sets:
    def __init__(self, case):
        self.case = case
        h, inner, experts = case.hidden, case.intermediate, case.experts
        scores = torch.rand(case.tokens, experts, device="cuda")
        weights, ids = scores.topk(case.top_k, dim=1)
        self.ids = ids.int().contiguous()
        self.weights = weights.softmax(dim=1).contiguous()
        self.counts = torch.bincount(self.ids.flatten().long(), minlength=experts).tolist()
        active = sum(count > 0 for count in self.counts)
        l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
        self.count = min(max(2, math.ceil(3 * l2_bytes / (active * h * inner * 27 / 16)) + 1), MOST_SETS)
        self.gate_up = [ExpertWeights(experts, 2 * inner, h) for _ in range(self.count)]
        self.down = [ExpertWeights(experts, h, inner) for _ in range(self.count)]
        self.global_scales = torch.full((experts,), WEIGHT_SCALE, device="cuda")
        self.x = [Nvfp4(case.tokens, h, 1.0).values() for _ in range(self.count)]
        self._fp8 = None
        # Rows sorted by expert; a row's assignment belongs to token assignment // top_k.
        self.choices = torch.argsort(self.ids.flatten(), stable=True)
        self.offsets = torch.tensor([0, *torch.tensor(self.counts).cumsum(0).tolist()], device="cuda")
        self.expert_rows = lambda: ((e, int(self.offsets[e]), int(self.offsets[e + 1])) for e in range(experts)
                                    if self.counts[e] > 0)

    def fp8(self):
        """(tokens, gate and up, down) of each set in blocks."""
        if self.case.intermediate % BLOCK or self.case.hidden % (2 * BLOCK):
            raise ValueError(f"FP8 blocks: {self.case.hidden} to {self.case.intermediate} are not whole ones")
        if self._fp8 is None:
            self._fp8 = [(Fp8Tokens(x, "fp8_block"), *(Fp8Weights(w.values, "fp8_block") for w in (gate_up, down)))
                         for x, gate_up, down in zip(self.x, self.gate_up, self.down)]
        return self._fp8

    def reference(self):
        return self.layer(self.x[0].double(), lambda e: self.gate_up[0].values[e].double(),
                          lambda e: self.down[0].values[e].double())

    def reference_fp8(self):
        """On operands rounded to FP8, with what lies between the products rounded once."""
        tokens, gate_up, down = self.fp8()[0]
        return self.layer(tokens.values(), gate_up.values, down.values,
                          lambda rows: Fp8Tokens(rows.float(), "fp8_block").values())

    def layer(self, x, gate_up_of, down_of, between=lambda rows: rows):
        """float64; of x [T, H] and functions of an expert."""
        case = self.case
        out = torch.zeros(case.tokens, case.hidden, device="cuda", dtype=torch.float64)
        for expert, first, end in self.expert_rows():
            choices = self.choices[first:end]
            gate, up = (x[choices // case.top_k] @ gate_up_of(expert).t()).chunk(2, dim=1)
            rows = between(gate * torch.sigmoid(gate) * up) @ down_of(expert).t()
            out.index_add_(0, choices // case.top_k, rows * self.weights.flatten()[choices].double().unsqueeze(1))
        return out


class Layer:
    """Thresher's; NVFP4 weights, 16-bit ones or FP8 blocks, which are fp8_block through and through."""

    def __init__(self, library, sets, i, token_format, weight_format, numerics):
        case, lib = sets.case, library.library
        self.library, self.plan, self.packed = library, thresher_c.P(), []
        for weights, n, k, order in self.matrices(sets, i, weight_format):
            codes, scales, global_scales, second, second_scales = weights
            view = thresher_c.thresher_grouped_weights_view.made(
                library, format=thresher_c.FORMATS[weight_format], device=thresher_c.Device(thresher_c.CUDA, 0),
                experts=case.experts, n=n, k=k, order=order, b1=thresher_c.pointer(codes),
                b1_scales=thresher_c.pointer(scales), b1_global_scales=thresher_c.pointer(global_scales),
                b2=thresher_c.pointer(second), b2_scales=thresher_c.pointer(second_scales))
            packed = thresher_c.P()
            library.check(lib.thresher_grouped_pack(thresher_c.c.byref(view), thresher_c.NUMERICS[numerics],
                                                    thresher_c.c.byref(packed)))
            self.packed.append(packed)
        formats = {name: thresher_c.FORMATS[value] for name, value in
                   (("x", token_format), ("gate_up", weight_format), ("intermediate", token_format),
                    ("down", weight_format), ("rows", "bf16" if token_format == "fp8_block" else token_format),
                    ("out", "bf16"))}
        problem = thresher_c.thresher_moe_problem.made(
            library, experts=case.experts, tokens=case.tokens, top_k=case.top_k, hidden_size=case.hidden,
            intermediate_size=case.intermediate, expected_rows=case.tokens * case.top_k, **formats)
        library.check(lib.thresher_moe_plan(thresher_c.Device(thresher_c.CUDA, 0), thresher_c.c.byref(problem), *self.packed,
                                            None, None, thresher_c.c.byref(self.plan)))
        self.workspace = torch.empty(max(lib.thresher_moe_workspace_bytes(self.plan), 1), dtype=torch.uint8, device="cuda")

    def matrices(self, sets, i, weight_format):
        """((values, scales, global scales, up apart, its scales), n, k, order) of gate and up, and of down."""
        case = sets.case
        if weight_format == "fp8_block":
            _, gate_up, down = sets.fp8()[i]
            gate, up, gate_scales, up_scales = gate_up.apart()
            self.kept = gate, up, gate_scales, up_scales
            both, one = (gate, gate_scales, None, up, up_scales), (down.codes, down.scales, None, None, None)
            gate_order = thresher_c.APART
        else:
            is_nvfp4 = weight_format == "nvfp4"
            both, one = ((w.codes, w.scales, sets.global_scales, None, None) if is_nvfp4 else (w.values, *[None] * 4)
                         for w in (sets.gate_up[i], sets.down[i]))
            gate_order = thresher_c.GATE_FIRST
        return (both, case.intermediate, case.hidden, gate_order), (one, case.hidden, case.intermediate, thresher_c.APART)

    def run(self, x, ids, weights, out, x_scales=None):
        as_matrix = thresher_c.thresher_matrix.of
        self.library.check(self.library.library.thresher_moe_run(
            self.plan, thresher_c.stream(), thresher_c.c.byref(as_matrix(x, x_scales)), ids.data_ptr(), weights.data_ptr(),
            thresher_c.c.byref(as_matrix(out)), self.workspace.data_ptr()))

    def __del__(self):
        self.library.library.thresher_moe_destroy(self.plan)
        for packed in self.packed:
            self.library.library.thresher_grouped_weights_destroy(packed)


def thresher_contestants(library, sets, wanted, whose=""):
    case = sets.case
    for token_format, weight_format, numerics, precision in (("bf16", "bf16", "exact", "16-bit"),
                                                             ("fp8_block", "fp8_block", "exact", "fp8 out"),
                                                             ("fp16", "nvfp4", "exact", "nvfp4"),
                                                             ("fp16", "nvfp4", "fast", "nvfp4 fast")):
        if precision not in wanted:
            continue
        name = f"thresher {token_format} x {weight_format}" + (" fast" if numerics == "fast" else "") + whose
        try:
            layers = [Layer(library, sets, i, token_format, weight_format, numerics) for i in range(sets.count)]
        except (thresher_c.ThresherError, ValueError) as error:
            print(f"  {name}: {error}", flush=True)
            continue
        is_fp8 = token_format == "fp8_block"
        dtype = torch.float16 if token_format == "fp16" else torch.bfloat16
        x = ([(tokens.codes, tokens.scales) for tokens, _, _ in sets.fp8()] if is_fp8
             else [(one.to(dtype), None) for one in sets.x])
        outs = [torch.empty(case.tokens, case.hidden, device="cuda", dtype=torch.bfloat16) for _ in range(sets.count)]

        def call(i, layers=layers, x=x, outs=outs):
            layers[i].run(x[i][0], sets.ids, sets.weights, outs[i], x[i][1])
            return outs[i]

        yield peers.Peer(name, precision, call, sets.reference_fp8 if is_fp8 else None)


def sorted_places(sets, tile_rows):
    """Choices in tiles of one expert each, as SGLang's kernel takes them: places, experts of tiles, the number of places."""
    choices = sets.case.tokens * sets.case.top_k
    places, experts = [], []
    for expert, first, end in sets.expert_rows():
        tiles = -(-(end - first) // tile_rows)
        places += [sets.choices[first:end].int(),
                   torch.full((tiles * tile_rows - (end - first),), choices, dtype=torch.int32, device="cuda")]
        experts += [expert] * tiles
    all_places = torch.cat(places)
    return (all_places, torch.tensor(experts, dtype=torch.int32, device="cuda"),
            torch.tensor([all_places.numel()], dtype=torch.int32, device="cuda"))


def triton_layer(kernels, sets, tile, operands_of, activate, block_shape):
    """`operands_of(i)`: tokens, gate and up, down, each (values, scales); `activate`: of gate and up to down's operand."""
    case = sets.case
    choices = case.tokens * case.top_k
    config = dict(zip(grouped_peers.TRITON_TILE_WORDS, tile))
    rows = sorted_places(sets, tile[0])

    def product(a, w, out, top_k, weighs):
        kernels.invoke_fused_moe_kernel(a[0], w[0], None, out, a[1], w[1], None, sets.weights, sets.ids, *rows, weighs, top_k,
                                        config, tl.bfloat16, block_shape is not None, False, False, False, False, block_shape,
                                        filter_expert=False)

    def call(i):
        x, gate_up, down = operands_of(i)
        inner = torch.empty(choices, 2 * case.intermediate, device="cuda", dtype=torch.bfloat16)
        product(x, gate_up, inner, case.top_k, False)
        out = torch.empty(case.tokens, case.top_k, case.hidden, device="cuda", dtype=torch.bfloat16)
        product(activate(inner), down, out.view(choices, case.hidden), 1, True)
        total = torch.empty(case.tokens, case.hidden, device="cuda", dtype=torch.bfloat16)
        kernels.moe_sum_reduce_triton(out, total, 1.0)
        return total

    return call


def triton_in(sets, precision, operands_of, activate, block_shape):
    """The fastest tile: its words and its call."""
    from sglang.kernels.ops.moe import fused_moe_triton_kernels
    timed = []
    for tile in grouped_peers.TRITON_TILES[precision]:
        try:
            call = triton_layer(fused_moe_triton_kernels, sets, tile, operands_of, activate, block_shape)
            timed.append((grouped_peers.median_us(call, sets.count), tile, call))
        except Exception as error:  # a tile that this case does not support
            print(f"  Triton fused MoE {tile}: {first_line(error)}", flush=True)
    if not timed:
        raise RuntimeError("Triton fused MoE: no tile works")
    return min(timed, key=lambda one: one[0])[1:]


def triton_fused_moe(sets):
    x = [one.bfloat16() for one in sets.x]
    operands = [[(one, None) for one in (x, gate_up.values, down.values)]
                for x, gate_up, down in zip(x, sets.gate_up, sets.down)]
    tile, call = triton_in(sets, "16-bit", operands.__getitem__, lambda inner: (peers.silu_mul(inner), None), None)
    yield peers.Peer(f"Triton fused MoE bf16 {tile}, sorted beforehand", "16-bit", call)


def triton_fused_moe_fp8(sets):
    operands = [[(one.codes, one.scales) for one in some] for some in sets.fp8()]
    rows = torch.zeros(sets.case.tokens * sets.case.top_k, dtype=torch.int32, device="cuda")  # all of them count

    def activate(inner):
        codes = torch.empty(1, rows.numel(), sets.case.intermediate, device="cuda", dtype=torch.float8_e4m3fn)
        scales = torch.empty(1, sets.case.intermediate // BLOCK, rows.numel(), device="cuda")
        fp8_block.silu_mul_quantise(inner, codes, scales, rows, False, 4)
        return codes[0], scales[0].t()

    tile, call = triton_in(sets, "fp8", operands.__getitem__, activate, [BLOCK, BLOCK])
    yield peers.Peer(f"Triton fused MoE fp8 blocks {tile}, sorted beforehand", "fp8 out", call, sets.reference_fp8)


def humming(sets):
    from humming.layer import HummingLayer
    case = sets.case

    def layer(weights, n, k):
        made = HummingLayer(shape_n=n, shape_k=k, num_experts=case.experts,
                            weight_config={"quant_method": "modelopt", "quant_algo": "NVFP4"},
                            torch_dtype=torch.float16).cuda()
        made.load_from_tensors({"weight": weights.codes, "weight_scale": weights.scales,
                                "weight_scale_2": sets.global_scales})
        made.transform()
        return made

    gate_up = [layer(w, 2 * case.intermediate, case.hidden) for w in sets.gate_up]
    down = [layer(w, case.hidden, case.intermediate) for w in sets.down]
    rows = [x.half()[sets.choices // case.top_k].contiguous() for x in sets.x]
    inverse = torch.argsort(sets.choices)
    layout, grouped = sets.offsets.long(), {"gemm_type": "grouped_contiguous"}

    def call(i):
        inner = peers.silu_mul(gate_up[i](rows[i], expert_layout=layout, compute_config=grouped)).half()
        out = down[i](inner, expert_layout=layout, compute_config=grouped)[inverse].view(case.tokens, case.top_k, -1)
        return torch.bmm(sets.weights.half().unsqueeze(1), out).squeeze(1)

    yield peers.Peer("Humming nvfp4 weights, fp16, gathered beforehand", "nvfp4", call)


FAMILIES = {"16-bit": (triton_fused_moe,), "fp8 out": (triton_fused_moe_fp8,), "nvfp4": (humming,), "nvfp4 fast": ()}


def contestants_of(library, beside, sets, precision, peers_too):
    wanted = FAMILIES if precision is None else [precision]
    families = [lambda s: thresher_contestants(library, s, wanted)]
    if beside is not None:
        families.append(lambda s: thresher_contestants(beside, s, wanted, " of the build beside"))
    if peers_too:
        families += [f for one in wanted for f in FAMILIES[one]]
    for family in families:
        try:
            for peer in family(sets):
                made = compare.Contestant(peer.name, "thresher" if peer.name.startswith("thresher") else "peer",
                                          peer.precision, [lambda i=i, f=peer.call: f(i) for i in range(sets.count)],
                                          peer.own_reference)
                made.capture()
                yield made
        except Exception as error:  # one that cannot run here is reported, not hidden
            torch.cuda.synchronize()
            print(f"  {first_line(error)}", flush=True)


def row_of(contestant, case, exact):
    out = contestant.calls[0]().double()
    own = contestant.own_reference() if contestant.own_reference else exact
    error = ((out - own).norm() / own.norm()).item()
    row = {"case": case.name, **dataclasses.asdict(case), "name": contestant.name, "kind": contestant.kind,
           "precision": contestant.precision, "norm_error": error,
           "correct": error <= compare.NORM_BOUNDS[contestant.precision]}
    for mode, samples in contestant.samples.items():
        quartiles = statistics.quantiles(samples, n=4)
        row[mode] = {"median_us": statistics.median(samples), "quartiles_us": [quartiles[0], quartiles[2]]}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="path of libthresher.so")
    parser.add_argument("--out", required=True, help="JSON file to write")
    parser.add_argument("--commit", default=None, help="the commit the library was built from (default: git's HEAD)")
    parser.add_argument("--cases", default="", help="parts of their names, separated by commas (default: all)")
    parser.add_argument("--quick", action="store_true", help="a third of the rounds, every second number of tokens")
    parser.add_argument("--beside", help="path of another build's libthresher.so, whose layers are timed, too")
    parser.add_argument("--no-peers", action="store_true", help="Thresher's layers alone")
    parser.add_argument("--precision", choices=("16-bit", "fp8 out", "nvfp4", "nvfp4 fast"),
                        help="contestants of this one, of which fp8 out are FP8 blocks (default: all)")
    args = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    library = thresher_c.Library(args.library)
    beside = thresher_c.Library(args.beside) if args.beside else None
    telemetry = compare.Telemetry()
    rounds = {mode: count // 3 if args.quick else count for mode, count in compare.ROUNDS.items()}
    result = {"what": "a layer of experts beside its peers", "date": datetime.date.today().isoformat(),
              "thresher": {"version": library.version(), "commit": args.commit or compare.git_commit()},
              "machine": {"gpu": torch.cuda.get_device_name(0), "driver": peers.driver_version()},
              "toolchain": compare.toolchain(), "method": {"rounds": rounds, "norm_error_bounds": compare.NORM_BOUNDS},
              "rows": []}
    for case in cases(args.quick):
        if not any(part in case.name for part in args.cases.split(",")):
            continue
        print(f"## {case.name}: {case.experts} experts, top {case.top_k}, {case.hidden} to {case.intermediate}", flush=True)
        sets = Sets(case)
        contestants = list(contestants_of(library, beside, sets, args.precision, not args.no_peers))
        if not contestants:
            continue
        compare.measure(contestants, telemetry, rounds)
        exact = sets.reference()
        for contestant in contestants:
            row = row_of(contestant, case, exact)
            result["rows"].append(row)
            print(f"  {row['name']:<62} burst {row['burst']['median_us']:8.2f}"
                  f"  sustained {row['sustained']['median_us']:8.2f} us  error {row['norm_error']:.1e}{'' if row['correct'] else '  WRONG'}", flush=True)
        del sets, contestants
        torch.cuda.empty_cache()
        with open(args.out, "w") as file:
            json.dump(result, file, indent=1)
    return 1 if any(not row["correct"] for row in result["rows"]) else 0


if __name__ == "__main__":
    raise SystemExit(main())
