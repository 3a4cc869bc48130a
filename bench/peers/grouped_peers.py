"""What a user would pick today for the grouped dual GEMM, each as a function of the input set. None permutes tokens, all
of them but QuACK's include their separate SiLU-multiply kernel."""
import statistics

import torch
import triton.language as tl

from peers import Peer, silu_mul

# A graph of one product per expert: beyond this number launches dominate.
MOST_LOOPED_EXPERTS = 64
DEEPGEMM_ALIGNMENT = 128
# Rows, columns (gate and up), whether the schedule is ping-pong, and the cluster.
QUACK_TILES = ((128, 128, True, (2, 1)), (128, 192, True, (2, 1)), (128, 192, True, (1, 2)), (256, 128, False, (2, 1)),
               (128, 256, False, (2, 1)), (256, 192, False, (1, 2)))


def torch_grouped(sets):
    a, ends = sets.a16["bf16"], sets.offsets[1:].contiguous()
    grouped_mm = getattr(torch.nn.functional, "grouped_mm", None) or torch._grouped_mm
    yield Peer("torch grouped_mm bf16 + Triton", "16-bit",
               lambda i: silu_mul(grouped_mm(a[i], sets.w16[i].transpose(1, 2), offs=ends)))


def torch_loop(sets):
    """The host knows the counts, which no user's graph can."""
    if sets.case.active > MOST_LOOPED_EXPERTS:
        return
    a = sets.a16["bf16"]
    places = list(sets.expert_rows())

    def call(i):
        h = torch.empty(sets.case.rows, 2 * sets.case.n, device="cuda", dtype=torch.bfloat16)
        for expert, first, end in places:
            torch.mm(a[i][first:end], sets.w16[i][expert].t(), out=h[first:end])
        return silu_mul(h)

    yield Peer("torch bf16, cuBLAS expert by expert + Triton", "16-bit", call)


def torch_grouped_fp8(sets):
    a8, w8 = sets.a8["fp8_row"], sets.w8["fp8_row"]
    ends = sets.offsets[1:].contiguous()

    def call(i):
        return silu_mul(torch._scaled_grouped_mm(a8[i].codes, w8[i].codes.transpose(1, 2), a8[i].scales.view(-1),
                                                 w8[i].scales, offs=ends, out_dtype=torch.bfloat16,
                                                 use_fast_accum=True))

    yield Peer("torch scaled_grouped_mm fp8, scales a row + Triton", "fp8 fast", call,
               lambda: sets.reference_fp8("fp8_row"))


class Padded:
    """Rows of each expert from a multiple of DeepGEMM's alignment on; -1 for rows between."""

    def __init__(self, sets):
        sizes = [-(-count // DEEPGEMM_ALIGNMENT) * DEEPGEMM_ALIGNMENT for count in sets.case.counts]
        self.rows = sum(sizes)
        self.experts = torch.full((self.rows,), -1, device="cuda", dtype=torch.int32)
        places = []
        first = 0
        for expert, (size, count) in enumerate(zip(sizes, sets.case.counts)):
            self.experts[first:first + count] = expert
            places.append(torch.arange(first, first + count))
            first += size
        self.places = torch.cat(places).cuda()

    def spread(self, a):
        out = torch.zeros(self.rows, a.shape[1], device="cuda", dtype=a.dtype)
        out[self.places] = a
        return out


def deepgemm(sets):
    import deep_gemm
    padded = Padded(sets)
    a = [padded.spread(x) for x in sets.a16["bf16"]]

    def products():
        return torch.empty(padded.rows, 2 * sets.case.n, device="cuda", dtype=torch.bfloat16)

    def rows_of(out):
        return out[padded.places]

    def bf16(i):
        h = products()
        deep_gemm.m_grouped_bf16_gemm_nt_contiguous(a[i], sets.w16[i], h, padded.experts)
        return silu_mul(h)

    yield Peer("DeepGEMM bf16, contiguous + Triton", "16-bit", bf16), rows_of
    require_blocks_of_one_matrix(sets)
    a8 = [(padded.spread(x.codes.view(torch.uint8)).view(torch.float8_e4m3fn), padded.spread(x.scales))
          for x in sets.a8["fp8_block"]]
    w8 = [(w.codes, w.scales) for w in sets.w8["fp8_block"]]

    def fp8(i):
        h = products()
        deep_gemm.m_grouped_fp8_gemm_nt_contiguous(a8[i], w8[i], h, padded.experts, disable_ue8m0_cast=True)
        return silu_mul(h)

    yield Peer("DeepGEMM fp8, contiguous, 1x128 and 128x128 scales + Triton", "fp8", fp8,
               lambda: sets.reference_fp8("fp8_block")), rows_of


def require_blocks_of_one_matrix(sets):
    if sets.case.n % 128 != 0:
        raise ValueError(f"N {sets.case.n} is no multiple of 128: a block of scales has gate rows and up rows")


class SortedRows:
    """Places of tokens in tiles of one expert each, as SGLang's kernel takes them; the number of rows where a tile has none."""

    def __init__(self, sets, tile_rows):
        places, experts = [], []
        for expert, first, end in sets.expert_rows():
            tiles = -(-(end - first) // tile_rows)
            places += [*range(first, end), *[sets.case.rows] * (tiles * tile_rows - (end - first))]
            experts += [expert] * tiles
        self.places = torch.tensor(places, dtype=torch.int32, device="cuda")
        self.experts = torch.tensor(experts, dtype=torch.int32, device="cuda")
        self.count = torch.tensor([len(places)], dtype=torch.int32, device="cuda")


# Tiles of SGLang's kernel: rows, outputs, K, consecutive row tiles, warps, stages.
TRITON_TILES = {"16-bit": ((16, 64, 128, 1, 4, 4), (16, 128, 128, 1, 4, 4), (32, 128, 128, 1, 4, 3), (64, 128, 64, 8, 4, 4),
                           (128, 128, 64, 16, 8, 4), (128, 256, 64, 16, 8, 3)),
                "fp8": ((16, 64, 128, 1, 4, 4), (16, 128, 128, 1, 4, 4), (32, 128, 128, 1, 4, 4), (64, 128, 128, 16, 4, 3),
                        (128, 128, 128, 16, 8, 3))}
TRITON_TILE_WORDS = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages")


def triton_fused_moe(sets):
    """The kernel of SGLang's fused MoE, in the tile that is the fastest here; tokens are sorted and padded beforehand."""
    from sglang.kernels.ops.moe.fused_moe_triton_kernels import invoke_fused_moe_kernel
    ones = torch.ones(sets.case.rows, 1, device="cuda")
    ids = torch.zeros(sets.case.rows, 1, device="cuda", dtype=torch.int32)

    def call_with(tile, operands, block_shape):
        rows = SortedRows(sets, tile[0])
        config = dict(zip(TRITON_TILE_WORDS, tile))

        def call(i):
            (a, a_scale), (w, w_scale) = operands(i)
            h = torch.empty(sets.case.rows, 2 * sets.case.n, device="cuda", dtype=torch.bfloat16)
            invoke_fused_moe_kernel(
                a, w, None, h, a_scale, w_scale, None, ones, ids, rows.places, rows.experts, rows.count, False, 1, config,
                tl.bfloat16, block_shape is not None, False, False, False, False, block_shape, filter_expert=False)
            return silu_mul(h)

        return call

    def fastest(precision, operands, block_shape):
        timed = []
        for tile in TRITON_TILES[precision]:
            call = call_with(tile, operands, block_shape)
            try:
                timed.append((median_us(call, sets.count), tile, call))
            except Exception as error:  # a tile that this case does not support
                print(f"  Triton fused MoE {tile}: {(str(error).splitlines() or [repr(error)])[0][:120]}", flush=True)
        return min(timed)[1:]

    tile, call = fastest("16-bit", lambda i: ((sets.a16["bf16"][i], None), (sets.w16[i], None)), None)
    yield Peer(f"Triton fused MoE bf16 {tile} + Triton", "16-bit", call)
    require_blocks_of_one_matrix(sets)
    a8, w8 = sets.a8["fp8_block"], sets.w8["fp8_block"]
    tile, call = fastest("fp8", lambda i: ((a8[i].codes, a8[i].scales), (w8[i].codes, w8[i].scales)), [128, 128])
    yield Peer(f"Triton fused MoE fp8, 1x128 and 128x128 scales {tile} + Triton", "fp8", call,
               lambda: sets.reference_fp8("fp8_block"))


def median_us(call, sets_count, rounds=9):
    times = []
    call(0)
    for at in range(rounds):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for i in range(sets_count):
            call(i)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / sets_count)
    return statistics.median(times)


def humming(sets):
    from humming.layer import HummingLayer
    layers = []
    for w in sets.w4:
        layer = HummingLayer(shape_n=2 * sets.case.n, shape_k=sets.case.k, num_experts=sets.case.experts,
                             weight_config={"quant_method": "modelopt", "quant_algo": "NVFP4"},
                             torch_dtype=torch.float16).cuda()
        layer.load_from_tensors({"weight": w.codes, "weight_scale": w.scales, "weight_scale_2": sets.global_scales})
        layer.transform()
        layers.append(layer)
    layout = sets.offsets.long()
    yield Peer("Humming nvfp4 weights, fp16 tokens + Triton", "nvfp4",
               lambda i: silu_mul(layers[i](sets.a16["fp16"][i], expert_layout=layout,
                                            compute_config={"gemm_type": "grouped_contiguous"})))


def quack(sets):
    """The activation in the product's epilogue, which takes gate and up row by row: the weights are interleaved before
    the clock starts. The fastest of QUACK_TILES, found before the clock starts too."""
    from quack.gemm_config import GemmConfig
    from quack.gemm_interface import _gemm_act_call
    case = sets.case
    weights = [w.view(case.experts, 2, case.n, case.k).transpose(1, 2).reshape(case.experts, 2 * case.n, case.k)
               .transpose(1, 2) for w in sets.w16]
    outputs = [torch.empty(case.rows, case.n, device="cuda", dtype=torch.bfloat16) for _ in range(sets.count)]

    def call_with(tile_rows, tile_columns, takes_turns, cluster):
        config = GemmConfig(tile_m=tile_rows, tile_n=tile_columns, pingpong=takes_turns, cluster_m=cluster[0],
                            cluster_n=cluster[1], is_dynamic_persistent=False, device_capacity=9)

        def call(i):
            _gemm_act_call(sets.a16["bf16"][i], weights[i], None, outputs[i], None, None, activation="swiglu",
                           cu_seqlens_m=sets.offsets, dynamic_scheduler=False, tuned=False, config=config)
            return outputs[i]

        return call

    timed = {tile: median_us(call_with(*tile), sets.count) for tile in QUACK_TILES}
    best = min(timed, key=timed.get)
    yield Peer(f"QuACK gated bf16, tile {best[0]}x{best[1]}", "16-bit", call_with(*best))


def available(sets):
    """(peer, what picks its rows) of every one that can be set up here; one that cannot is reported, not hidden."""
    for family in (torch_grouped, torch_loop, torch_grouped_fp8, deepgemm, triton_fused_moe, quack, humming):
        try:
            for made in family(sets):
                yield made if isinstance(made, tuple) else (made, lambda out: out)
        except Exception as error:
            print(f"  {family.__name__}: {(str(error).splitlines() or [repr(error)])[0][:160]}", flush=True)
