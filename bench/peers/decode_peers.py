"""Who else decodes over keys in pages: FlashAttention-3, vLLM's unified attention in Triton, FlashInfer, cuDNN, FlashMLA.

Each comes from a folder that the caller names or from an installed package, and is called through its own operators. A family
is a function of operands that returns (name, function of the copy that returns its output), or raises where it cannot. Of
several ways to call it, the fastest here is taken, found before the clock starts."""
import dataclasses
import enum
import importlib.util
import pathlib
import sys
import types

import torch

import vllm_fa3
from fastest import fastest, first_line

NHD, NO_MASK = 0, 0  # FlashInfer's constants


@dataclasses.dataclass
class Sources:
    """Folders: of vLLM's wheel unpacked (parts of it suffice), and of FlashInfer's built modules."""
    vllm: pathlib.Path
    flashinfer: pathlib.Path


def flash_attention_3(sources, operands, fp8_queries=None):
    """fp8_queries: [copies] of q in FP8, which FlashAttention-3 needs beside keys in FP8."""
    if operands.fp8 and fp8_queries is None:
        raise ValueError("keys in FP8 need queries in FP8")
    if operands.case.value_dim:
        raise ValueError("left out for values among the keys")
    vllm_fa3.load(sources.vllm)
    case, k, v = operands.case, operands.k, operands.v
    q = fp8_queries or operands.q
    descales = [torch.full((case.batch, case.kv_heads), value, device="cuda") if operands.fp8 else None
                for value in (1.0, operands.k_descale, 1.0)]
    pages = [vllm_fa3.Sequences(operands.q_starts, operands.lengths, 1, max(operands.host_lengths), table)
             for table in operands.tables]

    def way(splits, schedule=None):
        def call(i):
            vllm_fa3.forward(q[i], k, v, operands.o[i], operands.scale, False, descales, pages[i], schedule, splits)
            return operands.o[i]
        return call

    def scheduled(splits):
        return way(splits, vllm_fa3.metadata(q[0], k, pages[0], False, splits))

    ways = {"its own splits": way(0), "its own splits, scheduled ahead": scheduled(0),
            "up to 32 splits, scheduled ahead": scheduled(32)}
    name, call = fastest(ways, operands.copies)
    return f"FlashAttention-3 ({name})", call


class KVQuantMode(enum.IntEnum):
    """Of vLLM's kernel: the modes that its host function names."""
    NONE = 0
    FP8_PER_TENSOR = 1
    INT8_PER_TOKEN_HEAD = 2
    FP8_PER_TOKEN_HEAD = 3
    INT4_PER_TOKEN_HEAD = 4


def stand_in(name, **members):
    module = types.ModuleType(name)
    module.__path__ = []
    for key, value in members.items():
        setattr(module, key, value)
    sys.modules[name] = module
    return module


def loaded(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def unified_attention_of(vllm):
    """The function out of vLLM's file, with stand-ins for what it imports of the engine: nothing of that computes."""
    name = "vllm.v1.attention.ops.triton_unified_attention"
    if name in sys.modules:
        return sys.modules[name].unified_attention
    import logging
    import triton
    import triton.language as tl
    platform = types.SimpleNamespace(fp8_dtype=lambda: torch.float8_e4m3fn,
                                     is_device_capability_family=lambda family: family == 90)
    for package in ("vllm", "vllm.v1", "vllm.v1.attention", "vllm.v1.attention.ops"):
        stand_in(package)
    sys.modules["vllm"].envs = stand_in("vllm.envs", VLLM_BATCH_INVARIANT=False)
    stand_in("vllm.logger", init_logger=logging.getLogger)
    stand_in("vllm.platforms", current_platform=platform)
    stand_in("vllm.triton_utils", tl=tl, triton=triton)
    stand_in("vllm.v1.kv_cache_interface", KVQuantMode=KVQuantMode)
    folder = vllm / "vllm" / "v1" / "attention" / "ops"
    loaded("vllm.v1.attention.ops.triton_attention_helpers", folder / "triton_attention_helpers.py")
    return loaded(name, folder / "triton_unified_attention.py").unified_attention


def triton_unified(sources, operands):
    """The parts of a sequence that vLLM takes for few sequences, and none, which it takes for many."""
    case = operands.case
    if case.value_dim:
        raise ValueError("left out for values among the keys")
    unified_attention = unified_attention_of(sources.vllm)
    k_descale, v_descale = [torch.full((1,), value, device="cuda") if operands.fp8 else None
                            for value in (operands.k_descale, 1.0)]
    mode = KVQuantMode.FP8_PER_TENSOR if operands.fp8 else KVQuantMode.NONE

    def way(parts):
        shape = case.batch, case.heads, parts
        buffers = dict(seq_threshold_3D=case.batch, num_par_softmax_segments=parts,
                       softmax_segm_output=torch.empty(*shape, case.head_dim, device="cuda"),
                       softmax_segm_max=torch.empty(shape, device="cuda"),
                       softmax_segm_expsum=torch.empty(shape, device="cuda")) if parts else {}

        def call(i):
            unified_attention(operands.q[i], operands.k, operands.v, operands.o[i], operands.q_starts, 1, operands.lengths,
                              max(operands.host_lengths), operands.scale, True, (-1, -1), operands.tables[i], 0.0, None,
                              k_descale, v_descale, kv_quant_mode=mode, **buffers)
            return operands.o[i]
        return call

    name, call = fastest({"whole sequences": way(0), "16 parts": way(16)}, operands.copies)
    return f"Triton unified attention ({name})", call


class PageList:
    """FlashInfer's pages: [B + 1] starts, the pages of all sequences one behind the other, keys in the last page of each."""

    def __init__(self, operands):
        counts = [-(-length // operands.page) for length in operands.host_lengths]
        self.starts = torch.tensor([0, *torch.tensor(counts).cumsum(0).tolist()], dtype=torch.int32)
        self.starts_cuda = self.starts.cuda()
        self.pages = [torch.cat([table[row, :count] for row, count in enumerate(counts)]) for table in operands.tables]
        self.last = torch.tensor([(length - 1) % operands.page + 1 for length in operands.host_lengths], dtype=torch.int32,
                                 device="cuda")


def flashinfer(sources, operands):
    """Its modules for the matrix unit (of one warp) and, where built, for none; planned on the host ahead for these lengths."""
    import tvm_ffi
    case = operands.case
    if case.value_dim:
        raise ValueError("left out for values among the keys")
    kv = "e4m3" if operands.fp8 else "bf16"
    tail = f"_dtype_q_bf16_dtype_kv_{kv}_dtype_o_bf16_dtype_idx_i32_head_dim_qk_{case.head_dim}_head_dim_vo_{case.head_dim}"
    pages = PageList(operands)
    work = torch.empty(1 << 29, dtype=torch.uint8, device="cuda")
    lists = [torch.empty(1 << 23, dtype=torch.uint8, device="cuda") for _ in range(2)]
    pinned = torch.empty(1 << 23, dtype=torch.uint8, pin_memory=True)
    q_starts = operands.q_starts.cpu()
    scale = operands.scale * operands.k_descale

    def module(kind):
        found = sorted(sources.flashinfer.glob(f"{kind}{tail}*.so"))
        if not found:
            raise ValueError(f"no module {kind}{tail} was built")
        return tvm_ffi.load_module(str(found[0]))

    def tensor_cores():
        built = module("batch_prefill_with_kv_cache")
        plan = built["plan"](work, lists[0], pinned, q_starts, pages.starts, operands.lengths.cpu(), case.batch, case.batch,
                             case.heads, case.kv_heads, operands.page, False, case.head_dim, case.head_dim, False, -1, -1,
                             False, 0)
        run = built["paged_run"]

        def call(i):
            run(work, lists[0], plan, operands.q[i], operands.k, operands.v, operands.q_starts, pages.starts_cuda,
                pages.pages[i], pages.last, operands.o[i], None, NO_MASK, NHD, -1, True, *[None] * 8, 0.0, scale, 1.0, 1e-4,
                0)
            return operands.o[i]
        return call

    def cuda_cores():
        built = module("batch_decode_with_kv_cache")
        empty_kv = torch.empty(0, dtype=operands.k.dtype)
        plan = built["plan"](work, lists[1], pinned, pages.starts, case.batch, case.heads, case.kv_heads, operands.page, False,
                             -1, 0.0, case.head_dim, case.head_dim, torch.empty(0, dtype=torch.bfloat16), empty_kv)
        run = built["run"]

        def call(i):
            run(work, lists[1], plan, operands.q[i], operands.k, operands.v, pages.starts_cuda, pages.pages[i], pages.last,
                operands.o[i], None, NHD, -1, True, None, 0.0, scale, 1.0, 1e-4)
            return operands.o[i]
        return call

    ways, failed = {}, []
    for name, make in (("matrix unit", tensor_cores), ("no matrix unit", cuda_cores)):
        if name == "no matrix unit" and case.group > 4:
            continue
        try:
            ways[name] = make()
            torch.cuda.synchronize()  # the next plan overwrites the memory that this one's lists are copied from
        except Exception as error:
            failed.append(first_line(error))
    if not ways:
        raise RuntimeError("; ".join(failed))
    name, call = fastest(ways, operands.copies)
    return f"FlashInfer ({name})", call


def cudnn_paged(operands):
    import cudnn
    case = operands.case
    if operands.fp8 or case.value_dim:
        raise ValueError("left out for FP8 and for values among the keys")
    handle = cudnn.create_handle()
    graph = cudnn.pygraph(io_data_type=cudnn.data_type.BFLOAT16, intermediate_data_type=cudnn.data_type.FLOAT,
                          compute_data_type=cudnn.data_type.FLOAT, handle=handle)
    b, h, d = case.batch, case.heads, case.head_dim
    rows = dict(dim=[b, h, 1, d], stride=[h * d, d, h * d, 1], data_type=cudnn.data_type.BFLOAT16)
    page_strides = [operands.k.stride(0), operands.k.stride(2), operands.k.stride(1), 1]
    pool = dict(dim=[operands.k.shape[0], case.kv_heads, operands.page, d], stride=page_strides,
                data_type=cudnn.data_type.BFLOAT16)
    numbers = dict(dim=[b, 1, 1, 1], stride=[1, 1, 1, 1], data_type=cudnn.data_type.INT32)
    table = dict(dim=[b, 1, operands.columns, 1], stride=[operands.columns, operands.columns, 1, 1],
                 data_type=cudnn.data_type.INT32)
    q, k, v = graph.tensor(**rows), graph.tensor(**pool), graph.tensor(**pool)
    table_k, table_v = graph.tensor(**table), graph.tensor(**table)
    lengths_q, lengths_k = graph.tensor(**numbers), graph.tensor(**numbers)
    o, _ = graph.sdpa(q=q, k=k, v=v, generate_stats=False, attn_scale=operands.scale, use_padding_mask=True,
                      seq_len_q=lengths_q, seq_len_kv=lengths_k, paged_attention_k_table=table_k,
                      paged_attention_v_table=table_v, paged_attention_max_seq_len_kv=operands.columns * operands.page)
    o.set_output(True).set_dim(rows["dim"]).set_stride(rows["stride"])
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A])
    graph.check_support()
    graph.build_plans()
    workspace = torch.empty(max(graph.get_workspace_size(), 1), dtype=torch.uint8, device="cuda")
    ones = torch.ones(b, dtype=torch.int32, device="cuda")

    def call(i):
        cudnn.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
        graph.execute({q: operands.q[i], k: operands.k, v: operands.v, table_k: operands.tables[i],
                       table_v: operands.tables[i], lengths_q: ones, lengths_k: operands.lengths, o: operands.o[i]},
                      workspace, handle=handle)
        return operands.o[i]

    return "cuDNN, pages", call


def cudnn_contiguous(operands):
    """PyTorch's SDPA with cuDNN: takes no pages. `operands` lie one behind the other in theirs."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    case = operands.case
    shape = operands.copies, case.batch, case.keys, case.kv_heads, case.head_dim
    k, v = (pool.view(shape).transpose(2, 3) for pool in (operands.k, operands.v))

    def call(i):
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(operands.q[i].unsqueeze(2), k[i], v[i],
                                                                    enable_gqa=case.group > 1).squeeze(2)

    return "cuDNN (SDPA), contiguous keys", call


def flash_mla(operands):
    import flash_mla
    case = operands.case
    if case.head_dim != 576 or operands.page != 64 or operands.fp8:
        raise ValueError("takes 576 and 512 columns, 16 bits and pages of 64 alone")
    decode = flash_mla._loader.get_ops(True).dense_decode_fwd
    plan = [None, None]

    def call(i):
        out, _, *plan[:] = decode(operands.q[i].unsqueeze(1), operands.k, case.value_dim, operands.lengths,
                                  operands.tables[i], operands.scale, False, *plan)
        return out.squeeze(1)

    call(0)
    torch.cuda.synchronize()
    return "FlashMLA", call
