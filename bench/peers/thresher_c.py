"""Thresher's C interface (include/thresher/thresher.h) for PyTorch tensors on a GPU, by ctypes."""
import ctypes as c

import torch

FORMATS = {"fp32": 0, "fp16": 1, "bf16": 2, "nvfp4": 4}
NUMERICS = {"exact": 0, "fast": 1}


class Device(c.Structure):
    _fields_ = [("kind", c.c_int32), ("ordinal", c.c_int32)]


class Matrix(c.Structure):
    _fields_ = [("data", c.c_void_p), ("format", c.c_int32), ("shape", c.c_int64 * 2), ("row_stride", c.c_int64),
                ("device", Device), ("scales", c.c_void_p), ("scale_layout", c.c_int32), ("global_scale", c.c_void_p)]


class Problem(c.Structure):
    _fields_ = [("m", c.c_int64), ("n", c.c_int64), ("k", c.c_int64), ("a", c.c_int32), ("b", c.c_int32),
                ("out", c.c_int32), ("activation", c.c_int32), ("alpha", c.c_float), ("limit", c.c_float),
                ("up_offset", c.c_float)]


GPU = Device(1, 0)


class ThresherError(RuntimeError):
    pass


class Library:
    def __init__(self, path):
        self.library = c.CDLL(path)
        for name in ("thresher_version", "thresher_last_error", "thresher_strategy"):
            getattr(self.library, name).restype = c.c_char_p
        self.library.thresher_workspace_bytes.restype = c.c_size_t
        for name in ("thresher_strategy", "thresher_workspace_bytes", "thresher_dual_gemm_destroy",
                     "thresher_weights_destroy"):
            getattr(self.library, name).argtypes = [c.c_void_p]
        self.library.thresher_run.argtypes = [c.c_void_p] * 5
        self.library.thresher_prepare.argtypes = [c.c_void_p] * 4
        self.library.thresher_run_prepared.argtypes = [c.c_void_p] * 5

    def check(self, status):
        if status != 0:
            raise ThresherError(self.library.thresher_last_error().decode())

    def version(self):
        return self.library.thresher_version().decode()

    def strategies(self):
        names = c.create_string_buffer(1024)
        self.check(self.library.thresher_dual_gemm_strategies(GPU, names, c.c_size_t(len(names))))
        return names.value.decode().split(",")


def matrix(tensor, format_name, columns, scales=None, global_scale=None):
    """`tensor` [rows, columns], or [rows, columns / 2] bytes for nvfp4 with `scales` [rows, columns / 16] bytes."""
    view = Matrix()
    view.data = tensor.data_ptr()
    view.format = FORMATS[format_name]
    view.shape[0], view.shape[1] = tensor.shape[0], columns
    view.device = GPU
    view.scales = scales.data_ptr() if scales is not None else None
    view.global_scale = global_scale.data_ptr() if global_scale is not None else None
    return view


class DualGemm:
    """A plan with its workspace. two_pass reads `gate` and `up` in every call, the others a packed copy."""

    def __init__(self, library, m, n, k, a_format, b_format, out_format, gate, up, strategy, numerics="exact"):
        self.library = library
        self.weights = c.c_void_p()
        self.plan = c.c_void_p()
        problem = Problem(m=m, n=n, k=k, a=FORMATS[a_format], b=FORMATS[b_format], out=FORMATS[out_format])
        lib = library.library
        if strategy == "two_pass":
            library.check(lib.thresher_plan_raw(GPU, c.byref(problem), c.byref(gate), c.byref(up), strategy.encode(),
                                                c.byref(self.plan)))
        else:
            library.check(lib.thresher_pack(GPU, c.byref(gate), c.byref(up), c.c_int32(NUMERICS[numerics]),
                                            c.byref(self.weights)))
            library.check(lib.thresher_plan(GPU, c.byref(problem), self.weights, strategy.encode(),
                                            c.byref(self.plan)))
        bytes_needed = lib.thresher_workspace_bytes(self.plan)
        self.workspace = torch.empty(max(bytes_needed, 1), dtype=torch.uint8, device="cuda")
        self.strategy = lib.thresher_strategy(self.plan).decode()

    def run(self, a, out):
        stream = torch.cuda.current_stream().cuda_stream
        self.library.check(self.library.library.thresher_run(self.plan, stream, c.addressof(a), c.addressof(out),
                                                             self.workspace.data_ptr()))

    def prepare(self, a):
        stream = torch.cuda.current_stream().cuda_stream
        self.library.check(self.library.library.thresher_prepare(self.plan, stream, c.addressof(a),
                                                                 self.workspace.data_ptr()))

    def run_prepared(self, a, out):
        stream = torch.cuda.current_stream().cuda_stream
        self.library.check(self.library.library.thresher_run_prepared(self.plan, stream, c.addressof(a),
                                                                      c.addressof(out), self.workspace.data_ptr()))

    def __del__(self):
        self.library.library.thresher_dual_gemm_destroy(self.plan)
        self.library.library.thresher_weights_destroy(self.weights)
