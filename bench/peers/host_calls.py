"""The Python calls of other libraries, and Thresher's for the same problem, for bench/python_host_cost.py: by name, what makes a call ready."""
import torch
import triton.language as tl

import thresher
import thresher.torch as tt
from engine_files import engine_file

ROWS, N, K, EXPERTS, CHOICES = 16, 4096, 4096, 8, 2
SGLANG = "sglang.kernels.ops.moe.fused_moe_triton_kernels"
VLLM = "vllm.model_executor.layers.fused_moe.fused_moe"
# The default of both engines for so few rows, where they have not tuned the shape.
TILE = {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 128, "GROUP_SIZE_M": 1, "num_warps": 4, "num_stages": 4}


def normal(*shape, dtype=torch.bfloat16):
    return (torch.randn(*shape, device="cuda") / 8).to(dtype)


def nvfp4(outer, rows, k):
    return thresher.Nvfp4(torch.randint(0, 256, (*outer, rows, k // 2), dtype=torch.uint8, device="cuda"),
                          torch.randint(24, 40, (*outer, rows, k // 16), dtype=torch.uint8, device="cuda"),
                          torch.full(outer or (1,), 0.01, device="cuda"))


def dense(_):
    """c = a·bᵀ in bfloat16: [16, 4096] from K = 4096."""
    a, b = normal(ROWS, K), normal(N, K)
    packed, across = tt.pack_gemm(b), b.t()
    yield "torch.mm", lambda: lambda: torch.mm(a, across)
    yield "thresher gemm_packed", lambda: lambda: torch.ops.thresher.gemm_packed(a, packed, N)


def dense_nvfp4(_):
    """c = a·bᵀ of float16 tokens and NVFP4 weights."""
    a, b = normal(ROWS, K, dtype=torch.float16), nvfp4((), N, K)
    packed = tt.pack_gemm(b)
    yield "thresher gemm_packed", lambda: lambda: torch.ops.thresher.gemm_packed(a, packed, N)

    def of_humming():
        layer = humming_layer(b, 0)
        return lambda: layer(a)

    yield "Humming", of_humming


def humming_layer(weights, experts):
    from humming.layer import HummingLayer

    layer = HummingLayer(shape_n=weights.values.shape[-2], shape_k=2 * weights.values.shape[-1], num_experts=experts,
                         weight_config={"quant_method": "modelopt", "quant_algo": "NVFP4"}, torch_dtype=torch.float16).cuda()
    layer.load_from_tensors({"weight": weights.values, "weight_scale": weights.scales.view(torch.float8_e4m3fn),
                             "weight_scale_2": weights.global_scale})
    layer.transform()
    return layer


def grouped(engine_files):
    """One product of 32 rows, which are sorted by expert, with 8 experts' [4096, 4096] in bfloat16."""
    rows = ROWS * CHOICES
    a, w = normal(rows, K), normal(EXPERTS, N, K)
    each = rows // EXPERTS
    packed, offsets = tt.pack_grouped(w), torch.arange(0, rows + 1, each, device="cuda", dtype=torch.int32)
    yield "thresher grouped_gemm_packed", lambda: lambda: torch.ops.thresher.grouped_gemm_packed(a, packed, N, offsets=offsets)
    yield from triton_products(engine_files, a, w, each)


def triton_products(engine_files, a, w, each):
    """The launchers of both engines' fused MoE, with rows sorted and padded beforehand: without the kernel that does that."""
    rows = len(a)
    place = torch.full((EXPERTS, TILE["BLOCK_SIZE_M"]), rows, dtype=torch.int32, device="cuda")
    place[:, :each] = torch.arange(rows, dtype=torch.int32, device="cuda").reshape(EXPERTS, each)
    place, experts = place.reshape(-1), torch.arange(EXPERTS, dtype=torch.int32, device="cuda")
    count = torch.tensor([place.numel()], dtype=torch.int32, device="cuda")
    ones, ids = torch.ones(rows, 1, device="cuda"), torch.zeros(rows, 1, dtype=torch.int32, device="cuda")
    out = torch.empty(rows, 1, N, dtype=torch.bfloat16, device="cuda")

    def of_sglang():
        launch = engine_file(engine_files, SGLANG).invoke_fused_moe_kernel
        return lambda: launch(a, w, None, out[:, 0], None, None, None, ones, ids, place, experts, count, False, 1, TILE, tl.bfloat16, False, False,
                              False, False, False, None, filter_expert=False)

    def of_vllm():
        launch = engine_file(engine_files, VLLM).invoke_fused_moe_triton_kernel
        return lambda: launch(a, w, out, None, None, ones, place, experts, count, False, 1, TILE, tl.bfloat16, False, False, False, False, False)

    yield "SGLang's fused MoE (Triton), sorted beforehand", of_sglang
    yield "vLLM's fused MoE (Triton), sorted beforehand", of_vllm


def grouped_nvfp4(_):
    """The same of float16 tokens and NVFP4 weights."""
    rows = ROWS * CHOICES
    a, w = normal(rows, K, dtype=torch.float16), nvfp4((EXPERTS,), N, K)
    offsets = torch.arange(0, rows + 1, rows // EXPERTS, device="cuda", dtype=torch.int32)
    packed, layout = tt.pack_grouped(w), offsets.long()
    yield "thresher grouped_gemm_packed", lambda: lambda: torch.ops.thresher.grouped_gemm_packed(a, packed, N, offsets=offsets)

    def of_humming():
        layer = humming_layer(w, EXPERTS)
        return lambda: layer(a, expert_layout=layout, compute_config={"gemm_type": "grouped_contiguous"})

    yield "Humming", of_humming


def decoding(_):
    """One new token each of 16 sequences over 1024 keys in pages of 16, 32 heads over 8 of keys, D = 128, bfloat16."""
    sequences, keys, page = 16, 1024, 16
    q = normal(sequences, 32, 128)
    pages = normal(sequences * keys // page, 2, page, 8, 128)
    table = torch.arange(len(pages), dtype=torch.int32, device="cuda").reshape(sequences, -1)
    used, starts = torch.full((sequences,), keys, dtype=torch.int32, device="cuda"), torch.arange(sequences + 1, dtype=torch.int32, device="cuda")
    k, v = pages[:, 0], pages[:, 1]
    yield "thresher attention", lambda: lambda: torch.ops.thresher.attention(q, k, v, cu_seqlens_q=starts, block_table=table, seqused_k=used)

    def of_flashinfer():
        import flashinfer

        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(128 << 20, dtype=torch.uint8, device="cuda"), "NHD")
        ends = torch.arange(0, len(pages) + 1, keys // page, dtype=torch.int32, device="cuda")
        wrapper.plan(ends, table.reshape(-1), torch.full((sequences,), page, dtype=torch.int32, device="cuda"), 32, 8, 128, page, q_data_type=torch.bfloat16)
        return lambda: wrapper.run(q, pages)

    yield "FlashInfer, BatchDecodeWithPagedKVCacheWrapper.run", of_flashinfer


PROBLEMS = {"dense, bf16": dense, "dense, NVFP4 weights": dense_nvfp4, "experts, bf16": grouped, "experts, NVFP4 weights": grouped_nvfp4,
            "attention over pages": decoding}
