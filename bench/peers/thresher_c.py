"""Thresher's C interface (include/thresher/thresher.h) for PyTorch tensors on a GPU, by ctypes."""
import collections
import ctypes as c

import torch

FORMATS = {"fp32": 0, "fp16": 1, "bf16": 2, "fp8_e4m3": 3, "nvfp4": 4, "fp8_row": 8, "fp8_block": 9}
NUMERICS = {"exact": 0, "fast": 1}
ATTENTION_FORMATS = {torch.float16: FORMATS["fp16"], torch.bfloat16: FORMATS["bf16"],
                     torch.float8_e4m3fn: FORMATS["fp8_e4m3"]}
CUDA, ROW_MAJOR, SILU = 1, 0, 0
COLUMN_MAJOR = 2  # scales of tokens in FP8 blocks: [C, rows rounded up to 4]

I, L, P, S = c.c_int32, c.c_int64, c.c_void_p, c.c_char_p
MATRIX = [P, L, P, P]  # data, row stride, scales, global scale
TOKENS = [L, P, L, P, I, P]  # rows, data, row stride, scales, their layout, global scale


class Device(c.Structure):
    _fields_ = [("kind", I), ("ordinal", I)]


SIGNATURES = {
    "thresher_version": (S, []),
    "thresher_last_error": (S, []),
    "thresher_dual_gemm_pack_flat": (I, [I, I, I, L, L, *MATRIX, *MATRIX, I, I, P]),
    "thresher_dual_gemm_weights_destroy": (None, [P]),
    "thresher_dual_gemm_plan_flat": (I, [P, L, I, I, I, P, S, S, I, P]),
    "thresher_dual_gemm_plan_raw_flat": (I, [I, I, L, L, L, I, I, I, I, P, *MATRIX, *MATRIX, I, S, S, I, P]),
    "thresher_dual_gemm_run_flat": (I, [P, P, *TOKENS, P, L, P]),
    "thresher_dual_gemm_prepare_flat": (I, [P, P, *TOKENS, P]),
    "thresher_dual_gemm_run_prepared_flat": (I, [P, P, *TOKENS, P, L, P]),
    "thresher_dual_gemm_workspace_bytes": (c.c_size_t, [P]),
    "thresher_dual_gemm_strategy": (S, [P]),
    "thresher_dual_gemm_destroy": (None, [P]),
    "thresher_grouped_pack": (I, [P, I, P]),
    "thresher_grouped_weights_destroy": (None, [P]),
    "thresher_grouped_workspace_bytes": (c.c_size_t, [P]),
    "thresher_grouped_strategy": (S, [P]),
    "thresher_grouped_run_flat": (I, [P, P, I, L, L, P, L, P, P, P, L, P, P, P, P]),
    "thresher_grouped_run": (I, [P, P, P, P]),
    "thresher_grouped_destroy": (None, [P]),
    "thresher_moe_plan": (I, [Device, P, P, P, P, P, P]),
    "thresher_moe_workspace_bytes": (c.c_size_t, [P]),
    "thresher_moe_run": (I, [P, P, P, P, P, P, P]),
    "thresher_moe_destroy": (None, [P]),
    "thresher_attention_plan_serving_flat": (I, [*[I] * 5, *[L] * 7, I, P, L, L, P, I, L, L, I, S, S, I, I, P]),
    "thresher_attention_run_serving_flat": (I, [*[P] * 14, L, *[P] * 9]),
    "thresher_attention_strategy": (S, [P]),
    "thresher_attention_workspace_bytes": (c.c_size_t, [P]),
    "thresher_attention_destroy": (None, [P]),
}


class Versioned(c.Structure):
    """A structure of the header that begins with its own size; `made` fills it with the library's defaults."""

    @classmethod
    def made(cls, library, **values):
        one = cls()
        getattr(library.library, cls.__name__ + "_init")(c.byref(one), c.c_uint32(c.sizeof(cls)))
        for name, value in values.items():
            setattr(one, name, value)
        return one


class thresher_matrix(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("format", I), ("data", P), ("shape", L * 2), ("device", Device),
                ("row_stride", L), ("scales", P), ("global_scale", P), ("scale_layout", I), ("reserved", I)]

    @classmethod
    def of(cls, tensor, block_scales=None):
        """A contiguous matrix of 16 bits, or with `block_scales` [rows, K / 128] of e4m3."""
        format_name = "fp8_block" if block_scales is not None else "bf16" if tensor.dtype == torch.bfloat16 else "fp16"
        return cls(c.sizeof(cls), FORMATS[format_name], tensor.data_ptr(), (L * 2)(*tensor.shape), Device(CUDA, 0), 0,
                   pointer(block_scales), None, ROW_MAJOR, 0)


class thresher_grouped_problem(Versioned):
    _fields_ = [("struct_size", c.c_uint32), ("layout", I), ("experts", L), ("rows", L), ("n", L), ("k", L),
                ("tokens", L), ("expected_rows", L), ("row_ids_divisor", L), ("a", I), ("b", I), ("out", I),
                ("activation", I), ("alpha", c.c_float), ("limit", c.c_float), ("up_offset", c.c_float), ("bias", I),
                ("row_weights", I), ("reserved", I)]


class thresher_grouped_tensors(Versioned):
    _fields_ = [("struct_size", c.c_uint32), ("a_scale_layout", I), ("rows", L), ("tokens", L), ("a", P),
                ("a_row_stride", L), ("a_scales", P), ("a_global_scale", P), ("c", P), ("c_row_stride", L), ("groups", P),
                ("row_ids", P), ("row_weights", P), ("c_scales", P), ("c_global_scale", P), ("c_scale_layout", I),
                ("c_scales_are_powers_of_two", I)]


class thresher_grouped_weights_view(Versioned):
    _fields_ = [("struct_size", c.c_uint32), ("format", I), ("device", Device), ("experts", L), ("n", L), ("k", L),
                ("order", I), ("scale_layout", I), ("b1", P), ("b2", P), ("expert_stride", L), ("row_stride", L),
                ("b1_scales", P), ("b2_scales", P), ("b1_global_scales", P), ("b2_global_scales", P), ("bias1", P),
                ("bias2", P), ("bias_format", I), ("reserved", I)]


class thresher_moe_problem(Versioned):
    _fields_ = [("struct_size", c.c_uint32), ("x", I), ("experts", L), ("tokens", L), ("top_k", L), ("hidden_size", L),
                ("intermediate_size", L), ("expected_rows", L), ("gate_up", I), ("intermediate", I), ("down", I),
                ("rows", I), ("out", I), ("activation", I), ("alpha", c.c_float), ("limit", c.c_float),
                ("up_offset", c.c_float), ("gate_up_bias", I), ("down_bias", I), ("reserved", I)]


class thresher_dual_gemm_options(Versioned):
    _fields_ = [("struct_size", c.c_uint32), ("threads", I), ("strategy", S), ("knobs", S)]


class ThresherError(RuntimeError):
    pass


class Library:
    def __init__(self, path):
        self.library = c.CDLL(path)
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments

    def check(self, status):
        if status != 0:
            raise ThresherError(self.library.thresher_last_error().decode())

    def version(self):
        return self.library.thresher_version().decode()

    def strategies(self, operation="dual_gemm"):
        names = c.create_string_buffer(1024)
        of = getattr(self.library, f"thresher_{operation}_strategies")
        self.check(of(Device(CUDA, 0), names, c.c_size_t(len(names))))
        return names.value.decode().split(",")


def pointer(tensor):
    return tensor.data_ptr() if tensor is not None else None


# Contiguous rows; `scales` and `global_scale` are addresses or None.
Matrix = collections.namedtuple("Matrix", "rows data format scales global_scale")


def matrix(tensor, format_name, columns, scales=None, global_scale=None):
    """`tensor` [rows, columns], or [rows, columns / 2] bytes for nvfp4 with `scales` [rows, columns / 16] bytes."""
    assert tensor.is_contiguous() and tensor.shape[1] * (2 if format_name == "nvfp4" else 1) == columns
    return Matrix(tensor.shape[0], tensor.data_ptr(), FORMATS[format_name], pointer(scales), pointer(global_scale))


def whole(weights):
    return weights.data, 0, weights.scales, weights.global_scale


def tokens(a):
    return a.rows, a.data, 0, a.scales, ROW_MAJOR, a.global_scale


def stream():
    return torch.cuda.current_stream().cuda_stream


class DualGemm:
    """A plan with its workspace. two_pass and FP8's strategies read `gate` and `up` in every call, the others a packed
    copy."""

    def __init__(self, library, m, n, k, a_format, b_format, out_format, gate, up, strategy, numerics="exact"):
        self.library = library
        self.weights = P()
        self.plan = P()
        lib = library.library
        a, b, out = FORMATS[a_format], FORMATS[b_format], FORMATS[out_format]
        is_fp8 = b_format.startswith("fp8")
        if strategy == "two_pass" or is_fp8:
            knobs = f"numerics={numerics}".encode() if is_fp8 and strategy != "two_pass" else None
            library.check(lib.thresher_dual_gemm_plan_raw_flat(
                CUDA, 0, m, n, k, a, b, out, SILU, None, *whole(gate), *whole(up), ROW_MAJOR, strategy.encode(), knobs,
                0, c.byref(self.plan)))
        else:
            library.check(lib.thresher_dual_gemm_pack_flat(CUDA, 0, b, n, k, *whole(gate), *whole(up), ROW_MAJOR,
                                                           NUMERICS[numerics], c.byref(self.weights)))
            library.check(lib.thresher_dual_gemm_plan_flat(self.weights, m, a, out, SILU, None, strategy.encode(), None,
                                                           0, c.byref(self.plan)))
        bytes_needed = lib.thresher_dual_gemm_workspace_bytes(self.plan)
        self.workspace = torch.empty(max(bytes_needed, 1), dtype=torch.uint8, device="cuda")
        self.strategy = lib.thresher_dual_gemm_strategy(self.plan).decode()

    def run(self, a, out):
        self.library.check(self.library.library.thresher_dual_gemm_run_flat(
            self.plan, stream(), *tokens(a), out.data, 0, self.workspace.data_ptr()))

    def prepare(self, a):
        self.library.check(self.library.library.thresher_dual_gemm_prepare_flat(
            self.plan, stream(), *tokens(a), self.workspace.data_ptr()))

    def run_prepared(self, a, out):
        self.library.check(self.library.library.thresher_dual_gemm_run_prepared_flat(
            self.plan, stream(), *tokens(a), out.data, 0, self.workspace.data_ptr()))

    def __del__(self):
        self.library.library.thresher_dual_gemm_destroy(self.plan)
        self.library.library.thresher_dual_gemm_weights_destroy(self.weights)


APART, GATE_FIRST = 0, 1
PACKED, SLOTS = 0, 1


class Grouped:
    """A plan of the grouped dual GEMM with its workspace. `weights`, which it keeps, is [E, 2N, K], gate first; for nvfp4
    its codes, scales and a global scale for each expert; for FP8 gate, up [E, N, K] and the scales of each. numerics None:
    it is read where it lies. With slots the rows of `shape` are those of one, and `expected_rows` those that all own."""

    def __init__(self, library, shape, a_format, b_format, out_format, weights, numerics=None, strategy="", knobs="",
                 device=CUDA, layout=PACKED, expected_rows=None):
        experts, rows, n, k = shape
        is_fp8 = b_format.startswith("fp8")
        gate, up, gate_scales, up_scales = weights if is_fp8 else (weights, None, None, None)
        codes, scales, global_scales = weights if b_format == "nvfp4" else (gate, gate_scales, None)
        self.library, self.kept, self.rows = library, weights, rows
        self.packed, self.plan = P(), P()
        lib = library.library
        problem = thresher_grouped_problem.made(
            library, layout=layout, experts=experts, rows=rows, n=n, k=k, expected_rows=expected_rows or rows,
            a=FORMATS[a_format], b=FORMATS[b_format], out=FORMATS[out_format])
        view = thresher_grouped_weights_view.made(
            library, format=FORMATS[b_format], device=Device(device, 0), experts=experts, n=n, k=k,
            order=APART if is_fp8 else GATE_FIRST, b1=pointer(codes), b1_scales=pointer(scales), b2=pointer(up),
            b2_scales=pointer(up_scales), b1_global_scales=pointer(global_scales))
        options = thresher_dual_gemm_options.made(library, strategy=strategy.encode(), knobs=knobs.encode())
        if numerics is None:
            library.check(lib.thresher_grouped_plan_raw(Device(device, 0), c.byref(problem), c.byref(view),
                                                        c.byref(options), c.byref(self.plan)))
        else:
            library.check(lib.thresher_grouped_pack(c.byref(view), NUMERICS[numerics], c.byref(self.packed)))
            library.check(lib.thresher_grouped_plan(Device(device, 0), c.byref(problem), self.packed, c.byref(options),
                                                    c.byref(self.plan)))
        bytes_needed = lib.thresher_grouped_workspace_bytes(self.plan)
        self.workspace = torch.empty(max(bytes_needed, 4), dtype=torch.uint8, device="cuda")
        self.strategy = lib.thresher_grouped_strategy(self.plan).decode()

    def run(self, a, out, offsets):
        """`a` and `out` are matrices, `offsets` int32 [E + 1] on the device."""
        self.library.check(self.library.library.thresher_grouped_run_flat(
            self.plan, stream(), ROW_MAJOR, self.rows, 0, a.data, 0, a.scales, a.global_scale, out.data, 0,
            offsets.data_ptr(), None, None, self.workspace.data_ptr()))

    def run_tensors(self, tensors):
        """`tensors` is a thresher_grouped_tensors."""
        self.library.check(self.library.library.thresher_grouped_run(self.plan, stream(), c.byref(tensors),
                                                                     self.workspace.data_ptr()))

    def __del__(self):
        self.library.library.thresher_grouped_destroy(self.plan)
        self.library.library.thresher_grouped_weights_destroy(self.packed)


class Attention:
    """A plan of contiguous [B,H,S,D] tensors, which it keeps, with its workspace; `lse` None: not wanted. q, k and v may be
    in FP8 where o is not; the descales of q, k and v are one float32 each for all, None for 1."""

    def __init__(self, library, q, k, v, o, lse, causal, strategy="", knobs="", dependent_launch=0,
                 descales=(None, None, None)):
        self.library = library
        self.plan = P()
        self.tensors = q, k, v, o, lse
        self.descales = descales
        b, h, queries, d = q.shape
        lib = library.library
        library.check(lib.thresher_attention_plan_serving_flat(
            CUDA, 0, *(ATTENTION_FORMATS[one.dtype] for one in (o, q, k)), b, h, k.shape[1], queries, k.shape[2], d, 0,
            int(causal), None, -1, -1, None, 0, 0, 0, 0, strategy.encode(), knobs.encode(), int(dependent_launch), 0,
            c.byref(self.plan)))
        bytes_needed = lib.thresher_attention_workspace_bytes(self.plan)
        self.workspace = torch.empty(max(bytes_needed, 1), dtype=torch.uint8, device="cuda")
        self.strategy = lib.thresher_attention_strategy(self.plan).decode()
        self.shared = (L * 2)(0, 0)
        rows = [one for tensor in (q, k, v, o) for one in (tensor.data_ptr(), None)]
        scales = [one for descale in descales for one in (pointer(descale), self.shared)]
        self.arguments = *rows, pointer(lse), None, None, None, 0, None, None, *scales, self.workspace.data_ptr()

    def run(self):
        self.library.check(self.library.library.thresher_attention_run_serving_flat(self.plan, stream(), *self.arguments))

    def __del__(self):
        self.library.library.thresher_attention_destroy(self.plan)


class PagedAttention:
    """A plan of attention with a paged KV cache, with its workspace: q [T, H, D], k [pages, page, Hk, D] and v, which may be
    views; k and v in FP8 or as q, which may be FP8 where they are. `columns` is the most pages of one of `batch` sequences,
    `out_dtype` that of o beside q in FP8, torch.bfloat16 or torch.float16."""

    def __init__(self, library, q, k, v, batch, columns, strategy="", knobs="", dependent_launch=0, out_dtype=torch.bfloat16):
        self.library = library
        self.plan = P()
        queries, heads, head_dim = q.shape
        pages, page, kv_heads, value_dim = v.shape
        lib = library.library
        out_dtype = out_dtype if q.dtype == torch.float8_e4m3fn else q.dtype
        out_format = FORMATS["bf16" if out_dtype == torch.bfloat16 else "fp16"]
        q_format, k_format = (FORMATS["fp8_e4m3"] if one.dtype == torch.float8_e4m3fn else out_format for one in (q, k))
        library.check(lib.thresher_attention_plan_serving_flat(
            CUDA, 0, out_format, q_format, k_format, batch, heads, kv_heads, queries, columns * page, head_dim, value_dim, 1,
            None, -1, -1, None, 1, page, pages, 0, strategy.encode(), knobs.encode(), dependent_launch, 0, c.byref(self.plan)))
        bytes_needed = lib.thresher_attention_workspace_bytes(self.plan)
        self.workspace = torch.empty(max(bytes_needed, 1), dtype=torch.uint8, device="cuda")
        self.strategy = lib.thresher_attention_strategy(self.plan).decode()
        self.strides = [(L * len(one.shape))(*one.stride()) for one in (k, v)]
        self.shared = (L * 2)(0, 0)

    def run(self, q, k, v, o, q_starts, table, lengths, k_descale=None, v_descale=None, q_descale=None):
        """q_starts int32 [B + 1], table int32 [B, columns], lengths int32 [B]; a descale is one float32 for all."""
        self.library.check(self.library.library.thresher_attention_run_serving_flat(
            self.plan, stream(), q.data_ptr(), None, k.data_ptr(), self.strides[0], v.data_ptr(), self.strides[1],
            o.data_ptr(), None, None, q_starts.data_ptr(), None, table.data_ptr(), 0, lengths.data_ptr(), None,
            pointer(q_descale), self.shared, pointer(k_descale), self.shared, pointer(v_descale), self.shared,
            self.workspace.data_ptr()))

    def __del__(self):
        self.library.library.thresher_attention_destroy(self.plan)
