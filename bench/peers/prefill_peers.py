"""Who else prefills in FP8, and in 16 bits: FlashAttention-3 of vLLM and cuDNN.

A family is a function of operands that returns (name, call), where call(0) returns the output in q's shape, or raises where
it cannot. Of contiguous operands cuDNN is given both orders of memory, of which the faster is taken before the clock starts;
FlashAttention-3 takes them as sequences of one length, packed in the order [B,S,H,D]."""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import vllm_fa3
from fastest import fastest, first_line
from prefill_operands import starts

WEIGHT_SCALE = 256.0  # cuDNN's weights, up to 1, as e4m3
OUTPUT_SCALE = 64.0  # cuDNN's outputs, hardly above those values, as e4m3
OUTPUTS = {torch.bfloat16: "bf16", torch.float8_e4m3fn: "e4m3"}  # cuDNN's, with FP8 queries


def faster_order(family, tensors, make):
    """`make` gives a call from q, k and v [B, H, S, D], which lie as in that order or as in [B, S, H, D]."""
    ways, failed = {}, []
    orders = {"[B,H,S,D]": tensors, "[B,S,H,D]": [one.transpose(1, 2).contiguous().transpose(1, 2) for one in tensors]}
    for order, ordered in orders.items():
        try:
            ways[order] = make(*ordered)
        except Exception as error:
            failed.append(f"{order}: {first_line(error)}")
    if not ways:
        raise RuntimeError("; ".join(failed))
    order, call = fastest(ways, 1)
    return f"{family}, {order}", call


def packed(case, tensors):
    """q [B * Sq, H, D] and k, v [B * Sk, Hk, D] of tensors [B, H, S, D], copied before the clock starts; their sequences."""
    lengths = torch.full((case.batch,), case.keys, device="cuda", dtype=torch.int32)
    sequences = vllm_fa3.Sequences(starts(case.batch, case.queries), lengths, case.queries, case.keys,
                                   k_starts=starts(case.batch, case.keys))
    return [one.transpose(1, 2).flatten(0, 1) for one in tensors], sequences


def flash_attention_3(vllm, operands, kind):
    """`kind`: 16-bit or fp8 queries. The wheel's FP8 kernels are built to accumulate on two levels; no argument says so."""
    vllm_fa3.load(vllm)
    case, tensors = operands.case, operands.tensors(kind)
    descales = [None if one is None else one.expand(case.batch, case.kv_heads).contiguous()
                for one in operands.descales(kind)]
    if case.page:
        sequences = vllm_fa3.Sequences(operands.q_starts, operands.lengths, case.queries, case.keys, operands.table)
        out = output = torch.empty_like(operands.o)
    else:
        tensors, sequences = packed(case, tensors)
        out = torch.empty_like(tensors[0], dtype=torch.bfloat16)
        output = out.unflatten(0, (case.batch, case.queries)).transpose(1, 2)

    def way(splits, schedule=None):
        def call(_):
            vllm_fa3.forward(*tensors, out, operands.scale, case.causal, descales, sequences, schedule, splits)
            return output
        return call

    def scheduled(splits):
        return way(splits, vllm_fa3.metadata(*tensors[:2], sequences, case.causal, splits))

    ways = {"its own splits": way(0), "its own splits, scheduled ahead": scheduled(0),
            "no splits, scheduled ahead": scheduled(1)}
    name, call = fastest(ways, 1)
    return f"FlashAttention-3{'' if case.page else ', packed'} ({name})", call


def cudnn_sdpa(operands):
    """PyTorch's SDPA with cuDNN; 16 bits and contiguous alone."""
    case = operands.case
    if case.page:
        raise ValueError("left out for pages")

    def make(q, k, v):
        def call(_):
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=case.causal,
                                                                        enable_gqa=case.heads != case.kv_heads)
        return call

    return faster_order("cuDNN (SDPA)", operands.tensors("16-bit"), make)


def cudnn_fp8(operands, output):
    """cuDNN's FP8 forward through its frontend; `output`: torch.bfloat16, or torch.float8_e4m3fn times OUTPUT_SCALE."""
    if operands.case.page:
        raise ValueError("left out for pages")
    name, call = faster_order("cuDNN", operands.tensors("fp8 queries"), lambda *qkv: CudnnFp8(operands, qkv, output))
    return f"{name}, {OUTPUTS[output]} out", call


def output_scale(output):
    """What cudnn_fp8's output of this dtype is to be divided by."""
    return OUTPUT_SCALE if output == torch.float8_e4m3fn else 1.0


class CudnnFp8:
    """A graph of cuDNN's for q, k and v [B, H, S, D] in FP8; called, it returns the output, times its scale."""

    def __init__(self, operands, qkv, output):
        import cudnn
        self.cudnn, self.handle = cudnn, cudnn.create_handle()
        self.out = torch.empty_like(qkv[0], dtype=output)
        types = cudnn.data_type
        formats = {torch.bfloat16: types.BFLOAT16, torch.float8_e4m3fn: types.FP8_E4M3}
        self.graph = graph = cudnn.pygraph(io_data_type=types.FP8_E4M3, intermediate_data_type=types.FLOAT,
                                           compute_data_type=types.FLOAT, handle=self.handle)
        number = dict(dim=[1] * 4, stride=[1] * 4, data_type=types.FLOAT)
        ends = [graph.tensor(dim=list(one.shape), stride=list(one.stride()), data_type=types.FP8_E4M3) for one in qkv]
        scales = {"descale_s": 1 / WEIGHT_SCALE, "scale_s": WEIGHT_SCALE, "scale_o": output_scale(output)}
        values = dict(zip(("descale_q", "descale_k", "descale_v"), operands.descales("fp8 queries")))
        values |= {name: torch.full((1,), value, device="cuda") for name, value in scales.items()}
        inputs = {name: graph.tensor(**number) for name in values}
        o, _, *largest = graph.sdpa_fp8(*ends, **inputs, generate_stats=False, attn_scale=operands.scale,
                                        use_causal_mask=operands.case.causal)
        o.set_output(True).set_dim(list(self.out.shape)).set_stride(list(self.out.stride())).set_data_type(formats[output])
        for one in largest:
            one.set_output(True).set_dim(number["dim"]).set_stride(number["stride"]).set_data_type(types.FLOAT)
        self.build()
        self.tensors = {**dict(zip(ends, qkv)), **{inputs[name]: value for name, value in values.items()}, o: self.out,
                        **{one: torch.zeros(1, device="cuda") for one in largest}}
        self.workspace = torch.empty(max(graph.get_workspace_size(), 1), dtype=torch.uint8, device="cuda")

    def build(self):
        self.graph.validate()
        self.graph.build_operation_graph()
        self.graph.create_execution_plans([self.cudnn.heur_mode.A])
        self.graph.check_support()
        self.graph.build_plans()

    def __call__(self, _):
        self.cudnn.set_stream(handle=self.handle, stream=torch.cuda.current_stream().cuda_stream)
        self.graph.execute(self.tensors, self.workspace, handle=self.handle)
        return self.out
