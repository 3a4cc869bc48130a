"""What a PyTorch user would pick today for the dual GEMM, each as a function of the input set."""
import dataclasses
import subprocess
from typing import Callable

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from operands import E2M1, definition, folded

# PyTorch's dequantization is slow and large: not timed beyond these rows of A.
MOST_DEQUANTISED_ROWS = 512


@dataclasses.dataclass
class Peer:
    name: str
    precision: str
    call: Callable
    own_reference: Callable = None  # float64 result of input set 0 on operands that were rounded


@triton.jit
def silu_mul_kernel(h, o, n, stride, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < n
    gate = tl.load(h + row * stride + column, mask=mask).to(tl.float32) * scale
    up = tl.load(h + row * stride + n + column, mask=mask).to(tl.float32) * scale
    tl.store(o + row * n + column, (gate * tl.sigmoid(gate) * up).to(o.dtype.element_ty), mask=mask)


def silu_mul(h, scale=1.0):
    n = h.shape[1] // 2
    o = torch.empty(h.shape[0], n, device=h.device, dtype=torch.bfloat16)
    silu_mul_kernel[(h.shape[0], triton.cdiv(n, 1024))](h, o, n, h.stride(0), scale, BLOCK=1024)
    return o


def bf16_peers(sets):
    n = sets.shape[1]
    a, w = sets.a16["bf16"], sets.w16
    yield Peer("torch bf16, two products", "16-bit", lambda i: F.silu(a[i] @ w[i][:n].t()) * (a[i] @ w[i][n:].t()))
    yield Peer("torch bf16, one concatenated product + Triton", "16-bit", lambda i: silu_mul(a[i] @ w[i].t()))


def fp8_peers(sets):
    a8 = [folded(a.values()) for a in sets.a4]
    w8 = [folded(w.float()) for w in sets.w16]

    def call(i, fast=True):
        (a, a_scale), (w, w_scale) = a8[i], w8[i]
        return silu_mul(torch._scaled_mm(a, w.t(), a_scale, w_scale.t(), out_dtype=torch.bfloat16, use_fast_accum=fast))

    def own_reference():
        (a, a_scale), (w, w_scale) = a8[0], w8[0]
        return definition(a.double() * a_scale.double(), w.double() * w_scale.double())

    yield Peer("torch fp8, scales a row, concatenated + Triton", "fp8 fast", call, own_reference)
    yield Peer("torch fp8, scales a row, promoted, concatenated + Triton", "fp8", lambda i: call(i, False), own_reference)


def nvfp4_peers(sets):
    """Dequantise to fp16 with PyTorch in every call, then one product."""
    if sets.shape[0] > MOST_DEQUANTISED_ROWS:
        return
    torch._dynamo.reset()  # every problem is compiled for its own shape
    table = torch.tensor(E2M1 + [-value for value in E2M1], device="cuda", dtype=torch.float16)
    codes = [torch.cat([w.codes for w in pair]) for pair in sets.w4]
    scales = [torch.cat([w.scales.view(torch.uint8) for w in pair]).view(torch.float8_e4m3fn) for pair in sets.w4]
    weight_scale = float(sets.w4[0][0].global_scale)

    def dequantised(q, s):
        values = torch.stack((table[(q & 15).int()], table[(q >> 4).int()]), -1).view(q.shape[0], -1, 16)
        return (values * s.to(torch.float16)[:, :, None]).view(q.shape[0], -1)

    def caller(dequantise):
        return lambda i: silu_mul(dequantise(sets.a4[i].codes, sets.a4[i].scales) @ dequantise(codes[i], scales[i]).t(),
                                  weight_scale)

    yield Peer("torch nvfp4, dequantised eagerly, two-pass", "nvfp4", caller(dequantised))
    yield Peer("torch nvfp4, dequantised by torch.compile, two-pass", "nvfp4", caller(torch.compile(dequantised)))


def deepgemm_peers(sets):
    import deep_gemm
    from deep_gemm.utils import per_block_cast_to_fp8, per_token_cast_to_fp8
    m, n = sets.shape[:2]
    a, w = sets.a16["bf16"], sets.w16

    def bf16(i):
        h = torch.empty(m, 2 * n, device="cuda", dtype=torch.bfloat16)
        deep_gemm.bf16_gemm_nt(a[i], w[i], h)
        return silu_mul(h)

    yield Peer("DeepGEMM bf16, concatenated + Triton", "16-bit", bf16)
    a8 = [per_token_cast_to_fp8(x, False) for x in a]
    w8 = [per_block_cast_to_fp8(x, False) for x in w]

    def fp8(i):
        h = torch.empty(m, 2 * n, device="cuda", dtype=torch.bfloat16)
        deep_gemm.fp8_gemm_nt(a8[i], w8[i], h, disable_ue8m0_cast=True)
        return silu_mul(h)

    def own_reference():
        (a_codes, a_scale), (w_codes, w_scale) = a8[0], w8[0]
        wide_a = a_codes.double() * a_scale.double().repeat_interleave(128, dim=1)
        wide_w_scale = w_scale.double().repeat_interleave(128, dim=0).repeat_interleave(128, dim=1)
        return definition(wide_a, w_codes.double() * wide_w_scale)

    yield Peer("DeepGEMM fp8, 1x128 and 128x128 scales + Triton", "fp8", fp8, own_reference)


def available(sets):
    """Every peer that can be set up here; one that cannot is reported, not hidden."""
    for family in (bf16_peers, fp8_peers, nvfp4_peers, deepgemm_peers):
        try:
            yield from family(sets)
        except Exception as error:
            print(f"  {family.__name__}: {str(error).splitlines()[0][:160]}", flush=True)


def cublaslt_version():
    return getattr(torch.backends.cuda, "cublas_version", lambda: None)() or torch.version.cuda


def driver_version():
    result = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True,
                            text=True)
    return result.stdout.splitlines()[0].strip() if result.stdout else "unknown"
