"""What a user would pick today for the grouped dual GEMM, each as a function of the input set. None permutes tokens, all
of them include their separate SiLU-multiply kernel."""
import torch

from operands import folded
from peers import Peer, silu_mul

# A graph of one product for each expert: beyond so many it is only launches.
MOST_LOOPED_EXPERTS = 64
DEEPGEMM_ALIGNMENT = 128


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
    a8 = [folded(a.values()) for a in sets.a4]
    w8 = [fold_experts(w) for w in sets.w16]
    ends = sets.offsets[1:].contiguous()

    def call(i):
        (a, a_scale), (w, w_scale) = a8[i], w8[i]
        return silu_mul(torch._scaled_grouped_mm(a, w.transpose(1, 2), a_scale.view(-1), w_scale, offs=ends,
                                                 out_dtype=torch.bfloat16, use_fast_accum=True))

    def own_reference():
        (a, a_scale), (w, w_scale) = a8[0], w8[0]
        return sets.reference(a.double() * a_scale.double(),
                              lambda expert: w[expert].double() * w_scale[expert].double().unsqueeze(1))

    yield Peer("torch scaled_grouped_mm fp8, scales a row + Triton", "fp8", call, own_reference)


def fold_experts(w):
    """e4m3 [E, 2N, K] and float32 scales [E, 2N]."""
    codes = torch.empty(w.shape, dtype=torch.float8_e4m3fn, device="cuda")
    scales = torch.empty(w.shape[:2], device="cuda")
    for expert in range(w.shape[0]):
        one, scale = folded(w[expert].float())
        codes[expert].view(torch.uint8).copy_(one.view(torch.uint8))
        scales[expert] = scale.view(-1)
    return codes, scales


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
    from deep_gemm.utils import per_block_cast_to_fp8, per_token_cast_to_fp8
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
    a8 = [per_token_cast_to_fp8(x, False) for x in a]
    w8 = []
    for w in sets.w16:
        pairs = [per_block_cast_to_fp8(w[expert], False) for expert in range(sets.case.experts)]
        w8.append(tuple(torch.stack(part) for part in zip(*pairs)))

    def fp8(i):
        h = products()
        deep_gemm.m_grouped_fp8_gemm_nt_contiguous(a8[i], w8[i], h, padded.experts, disable_ue8m0_cast=True)
        return silu_mul(h)

    def own_reference():
        (codes, scale), (w, w_scale) = a8[0], w8[0]
        wide_a = (codes.double() * scale.double().repeat_interleave(128, dim=1)[:, :codes.shape[1]])[padded.places]
        return sets.reference(wide_a, lambda expert: w[expert].double() * w_scale[expert].double().repeat_interleave(
            128, dim=0).repeat_interleave(128, dim=1)[:, :w.shape[2]])

    yield Peer("DeepGEMM fp8, contiguous, 1x128 and 128x128 scales + Triton", "fp8", fp8, own_reference), rows_of


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


def available(sets):
    """(peer, what picks its rows) of every one that can be set up here; one that cannot is reported, not hidden."""
    for family in (torch_grouped, torch_loop, torch_grouped_fp8, deepgemm, humming):
        try:
            for made in family(sets):
                yield made if isinstance(made, tuple) else (made, lambda out: out)
        except Exception as error:
            print(f"  {family.__name__}: {(str(error).splitlines() or [repr(error)])[0][:160]}", flush=True)
