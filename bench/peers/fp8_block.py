#!/usr/bin/env python3
"""Times Thresher's grouped dual GEMM from FP8 blocks to FP8 blocks beside DeepGEMM, in one process on one NVIDIA GPU.

  fp8_block.py --library build/default/src/ops/libthresher.so --out measurements/NAME.json [--commit HASH] [--quick]
               [--cases "Mixtral,T=16"] [--budget-s 240]

Method, values and checks as in grouped.py. Tokens are e4m3 with a float32 scale for 1 x 128, weights with one for 128 x 128;
the result is silu(gate) * up in e4m3 with a scale for 1 x 128, as the down projection takes it. Two forms, as serving engines
have them: rows of all experts one behind the other, which DeepGEMM takes padded to its alignment (contiguous), and a slot for
each expert (masked). DeepGEMM writes gate and up in bf16, and a Triton kernel makes the FP8 of them, in the tile of rows that
is the fastest here. Peers get their scales in the order that they ask for. A result is held against float64, rounded to FP8.
"""
import argparse
import random
import time

import torch
import triton
import triton.language as tl

import compare
import grouped
import grouped_peers
import thresher_c
from fastest import fastest, first_line
from fp8_operands import BLOCK, E4M3_MAX, Fp8Tokens, blocks_of
from grouped_operands import Case, routed
from peers import Peer

PRECISION = "fp8 out"
SLOT_ROWS = 64  # the capacity of a slot is a multiple
ROW_TILES = (1, 4, 16)


def cases(quick):
    """Gate and up of models as they are served: up to 16 rows an active expert, 16 to 64, and 128 and more."""
    models = [("DeepSeek-V3 EP8", 32, 256, 8, 2048, 7168, (16, 64, 256, 1024, 2048, 6144)),
              ("Qwen3-30B-A3B", 128, 128, 8, 768, 2048, (1, 16, 64, 512, 1024, 4096)),
              ("Mixtral-8x7B", 8, 8, 2, 14336, 4096, (1, 16, 64, 128, 256, 1024))]
    for name, here, of_experts, top, n, k, tokens in models:
        for count in tokens[1::2] if quick else tokens:
            yield Case(f"{name} T={count}", routed(count, top, of_experts, here), n, k)


@triton.jit
def silu_mul_quantise_kernel(h, codes, scales, counts, slot_rows, n, scale_columns, scale_slots, MASKED: tl.constexpr,
                             ROWS: tl.constexpr, BLOCK: tl.constexpr, MOST: tl.constexpr):
    """h [slots, slot_rows, 2n], gate first; scales [slots, n / BLOCK, slot_rows]. MASKED: `counts` has the rows of each slot
    that count; else its words are experts of rows, -1 for none."""
    slot = tl.program_id(2).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    if MASKED:
        count = tl.load(counts + slot)
        if tl.program_id(0) * ROWS >= count:
            return
        valid = row < count
    else:
        valid = tl.load(counts + row, mask=row < slot_rows, other=-1) >= 0
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    whole_row = slot * slot_rows + row
    at = h + whole_row[:, None] * (2 * n) + column[None, :]
    gate = tl.load(at, mask=valid[:, None], other=0.0).to(tl.float32)
    up = tl.load(at + n, mask=valid[:, None], other=0.0).to(tl.float32)
    value = gate * tl.sigmoid(gate) * up
    scale = tl.maximum(tl.max(tl.abs(value), axis=1), 1e-10) / MOST
    code = tl.clamp(value / scale[:, None], -MOST, MOST).to(codes.dtype.element_ty)
    tl.store(codes + whole_row[:, None] * n + column[None, :], code, mask=valid[:, None])
    tl.store(scales + slot * scale_slots + tl.program_id(1) * scale_columns + row, scale, mask=valid)


def silu_mul_quantise(h, codes, scales, counts, masked, tile_rows):
    """h [slots, rows, 2n] into codes [slots, rows, n] and scales [slots, n / 128, rows rounded up to 4]."""
    slots, rows, n = codes.shape
    silu_mul_quantise_kernel[(triton.cdiv(rows, tile_rows), n // BLOCK, slots)](
        h, codes, scales, counts, rows, n, scales.stride(1), scales.stride(0), MASKED=masked, ROWS=tile_rows, BLOCK=BLOCK,
        MOST=float(E4M3_MAX))


def result_buffers(slots, rows, n):
    """codes [slots, rows, n] and scales column-major, as the next product asks for them."""
    return (torch.zeros(slots, rows, n, device="cuda", dtype=torch.float8_e4m3fn),
            torch.zeros(slots, n // BLOCK, -(-rows // 4) * 4, device="cuda"))


def values_of(codes, scales):
    """float64 [rows, n] of codes [rows, n] and scales [n / 128, rows or more]."""
    wide = scales[:, :codes.shape[0]].t().double().repeat_interleave(BLOCK, dim=1)
    return codes.double() * wide


class Slots:
    """Rows of each expert in a slot of its own."""

    def __init__(self, sets):
        self.places = list(sets.expert_rows())
        self.capacity = -(-max(sets.case.counts) // SLOT_ROWS) * SLOT_ROWS
        self.counts = torch.tensor(sets.case.counts, dtype=torch.int32, device="cuda")

    def spread(self, a):
        out = torch.zeros(self.counts.numel(), self.capacity, a.shape[1], device="cuda", dtype=a.dtype)
        for expert, first, end in self.places:
            out[expert, :end - first] = a[first:end]
        return out

    def rows_of(self, result):
        codes, scales = result
        return torch.cat([values_of(codes[e, :end - first], scales[e]) for e, first, end in self.places])


def bytes_spread(spread, codes):
    return spread(codes.view(torch.uint8)).view(torch.float8_e4m3fn)


def own_reference(sets):
    """float64, rounded to FP8 blocks once."""
    return lambda: Fp8Tokens(sets.reference_fp8("fp8_block").float(), "fp8_block").values()


def followed_by_silu(sets, product, counts, slots, rows, masked, name):
    """(peer's name, call): `product(i, h)` writes gate and up into h."""
    results = [result_buffers(slots, rows, sets.case.n) for _ in range(sets.count)]

    def way(tile_rows):
        def call(i):
            h = torch.empty(slots, rows, 2 * sets.case.n, device="cuda", dtype=torch.bfloat16)
            product(i, h)
            silu_mul_quantise(h, *results[i], counts, masked, tile_rows)
            return results[i]
        return call

    tile, call = fastest({f"{tile} rows": way(tile) for tile in ROW_TILES}, sets.count)
    return f"{name} + Triton silu, quantise ({tile})", call


def deepgemm_contiguous(sets):
    import deep_gemm
    from deep_gemm.utils.layout import get_mn_major_tma_aligned_tensor
    padded = grouped_peers.Padded(sets)
    a8 = [(bytes_spread(padded.spread, x.codes), get_mn_major_tma_aligned_tensor(padded.spread(x.scales)))
          for x in sets.a8["fp8_block"]]
    w8 = [(w.codes, w.scales) for w in sets.w8["fp8_block"]]

    def product(i, h):
        deep_gemm.m_grouped_fp8_gemm_nt_contiguous(a8[i], w8[i], h[0], padded.experts, disable_ue8m0_cast=True)

    name, call = followed_by_silu(sets, product, padded.experts, 1, padded.rows, False, "DeepGEMM contiguous")

    def rows_of(result):
        codes, scales = result
        return values_of(codes[0], scales[0])[padded.places]

    yield Peer(name, PRECISION, call, own_reference(sets)), rows_of


def deepgemm_masked(sets):
    import deep_gemm
    from deep_gemm.utils.layout import get_mn_major_tma_aligned_tensor
    slots = Slots(sets)
    a8 = [(bytes_spread(slots.spread, x.codes), get_mn_major_tma_aligned_tensor(slots.spread(x.scales)))
          for x in sets.a8["fp8_block"]]
    w8 = [(w.codes, w.scales) for w in sets.w8["fp8_block"]]
    expected = -(-sets.case.rows // sets.case.active)

    def product(i, h):
        deep_gemm.fp8_m_grouped_gemm_nt_masked(a8[i], w8[i], h, slots.counts, expected, disable_ue8m0_cast=True)

    name, call = followed_by_silu(sets, product, slots.counts, sets.case.experts, slots.capacity, True, "DeepGEMM masked")
    yield Peer(name, PRECISION, call, own_reference(sets)), slots.rows_of


def plans_of(library, sets, rows, layout):
    case = sets.case
    return [thresher_c.Grouped(library, (case.experts, rows, case.n, case.k), "fp8_block", "fp8_block", "fp8_block",
                               sets.weights_c(i, "fp8_block"), layout=layout, expected_rows=case.rows)
            for i in range(sets.count)]


def column_major(scales):
    """[rows, C] to [C, rows rounded up to 4]"""
    rows, columns = scales.shape
    out = torch.zeros(columns, -(-rows // 4) * 4, device="cuda")
    out[:, :rows] = scales.t()
    return out


def thresher_packed(library, sets):
    plans = plans_of(library, sets, sets.case.rows, thresher_c.PACKED)
    a_scales = [column_major(a.scales) for a in sets.a8["fp8_block"]]
    results = [result_buffers(1, sets.case.rows, sets.case.n) for _ in plans]
    tensors = [thresher_c.thresher_grouped_tensors.made(
        library, rows=sets.case.rows, a=a.codes.data_ptr(), a_scales=scales.data_ptr(),
        a_scale_layout=thresher_c.COLUMN_MAJOR, c=codes.data_ptr(), c_scales=c_scales.data_ptr(),
        c_scale_layout=thresher_c.COLUMN_MAJOR, groups=sets.offsets.data_ptr())
        for a, scales, (codes, c_scales) in zip(sets.a8["fp8_block"], a_scales, results)]

    def call(i, kept=a_scales):
        plans[i].run_tensors(tensors[i])
        return results[i]

    yield (Peer(f"thresher rows one behind the other ({plans[0].strategy})", PRECISION, call, own_reference(sets)),
           lambda result: values_of(result[0][0], result[1][0]))


def thresher_slots(library, sets):
    slots, case = Slots(sets), sets.case
    plans = plans_of(library, sets, slots.capacity, thresher_c.SLOTS)
    a = [bytes_spread(slots.spread, x.codes) for x in sets.a8["fp8_block"]]
    a_scales = [slots.spread(x.scales) for x in sets.a8["fp8_block"]]
    results = [(torch.zeros(case.experts, slots.capacity, case.n, device="cuda", dtype=torch.float8_e4m3fn),
                torch.zeros(case.experts, slots.capacity, blocks_of(case.n), device="cuda")) for _ in plans]
    tensors = [thresher_c.thresher_grouped_tensors.made(
        library, rows=slots.capacity, a=codes.data_ptr(), a_scales=scales.data_ptr(), c=c.data_ptr(),
        c_scales=c_scales.data_ptr(), groups=slots.counts.data_ptr())
        for codes, scales, (c, c_scales) in zip(a, a_scales, results)]

    def call(i, kept=(a, a_scales)):
        plans[i].run_tensors(tensors[i])
        return results[i]

    yield (Peer(f"thresher slots ({plans[0].strategy})", PRECISION, call, own_reference(sets)),
           lambda result: slots.rows_of((result[0], result[1].transpose(1, 2))))


def contestants_of(library, sets):
    families = {"peer": (deepgemm_contiguous, deepgemm_masked),
                "thresher": (lambda s: thresher_packed(library, s), lambda s: thresher_slots(library, s))}
    for kind, makers in families.items():
        for family in makers:
            try:
                for peer, rows_of in family(sets):
                    yield grouped.Contestant(peer.name, kind, peer.precision,
                                             [lambda i=i, f=peer.call: f(i) for i in range(sets.count)], peer.own_reference,
                                             rows_of)
            except Exception as error:  # one that cannot be set up here is reported, not hidden
                torch.cuda.synchronize()
                print(f"  {kind} {getattr(family, '__name__', '')}: {first_line(error)}", flush=True)


def within(budget_s, wanted):
    began = time.monotonic()
    for case in wanted:
        if time.monotonic() - began > budget_s:
            print(f"  no time for {case.name}", flush=True)
            continue
        yield case


def print_table(rows):
    """A line for each case: Thresher and DeepGEMM in both forms, in bursts."""
    print(f"{'burst, us':<26}{'rows each':>10}{'packed':>9}{'contig.':>9}{'over':>7}{'slots':>9}{'masked':>9}{'over':>7}"
          f"{'least':>8}")
    names = ("thresher rows", "DeepGEMM contiguous", "thresher slots", "DeepGEMM masked")
    for case in dict.fromkeys(row["case"] for row in rows):
        of_case = [row for row in rows if row["case"] == case]
        times = [next((row["burst"]["median_us"] for row in of_case if row["name"].startswith(name) and row["correct"]), None)
                 for name in names]
        cells = [f"{one:9.2f}" if one else f"{'-':>9}" for one in times]
        over = [f"{peer / own:6.2f}x" if own and peer else f"{'-':>7}" for own, peer in (times[:2], times[2:])]
        print(f"{case:<26}{of_case[0]['rows'] / of_case[0]['active']:10.1f}{cells[0]}{cells[1]}{over[0]}{cells[2]}{cells[3]}"
              f"{over[1]}{of_case[0]['least_us']:8.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="path of libthresher.so")
    parser.add_argument("--out", required=True, help="JSON file to write")
    parser.add_argument("--commit", default=None, help="the commit the library was built from (default: git's HEAD)")
    parser.add_argument("--cases", default="", help="parts of their names, separated by commas (default: all)")
    parser.add_argument("--quick", action="store_true", help="a third of the rounds, every second number of tokens")
    parser.add_argument("--budget-s", type=float, default=240, help="no case begins later than this (default: 240)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    library = thresher_c.Library(args.library)
    rounds = {mode: count // 3 if args.quick else count for mode, count in compare.ROUNDS.items()}
    result = grouped.described("grouped dual GEMM from FP8 blocks to FP8 blocks beside DeepGEMM", args, library, rounds)
    wanted = [case for case in cases(args.quick) if any(part in case.name for part in args.cases.split(","))]
    status = grouped.compare_all(result, within(args.budget_s, wanted), compare.Telemetry(),
                                 lambda sets: contestants_of(library, sets), args.out)
    print_table(result["rows"])
    return status


if __name__ == "__main__":
    raise SystemExit(main())
