"""Bad input to the NumPy functions: one sentence that names the argument, and nothing written."""

import ml_dtypes
import numpy as np
import pytest

import thresher
import thresher.numpy as tn
from thresher import Fp8, Nvfp4

F16, U8, I32 = np.float16, np.uint8, np.int32


def ones(*shape, dtype=F16):
    return np.ones(shape, dtype)


A, B = ones(4, 32), ones(8, 32)
E = ones(2, 8, 32)
OFFSETS = np.array([0, 2, 4], I32)
Q, K = ones(1, 2, 5, 64), ones(1, 1, 7, 64)
Q8, K8 = ones(1, 2, 5, 64, dtype=U8), ones(1, 1, 7, 64, dtype=U8)
FP4 = Nvfp4(ones(8, 16, dtype=U8), ones(8, 2, dtype=U8))
READ_ONLY = ones(4, 8)
READ_ONLY.flags.writeable = False


def misaligned(shape):
    size = int(np.prod(shape)) * 2
    return np.frombuffer(bytearray(size + 1), F16, offset=1, count=size // 2).reshape(shape)


class BadExporter:
    def __dlpack__(self, **_):
        raise BufferError("no\nand why")


class NoCapsule:
    def __dlpack__(self, **_):
        return 7


class Interface:
    def __init__(self, **said):
        self.__array_interface__ = said


class Exported:
    """An array that DLPack alone shows."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **_):
        return self.array.__dlpack__()


def fp4(values=(8, 16), scales=(8, 2), global_scale=None, **more):
    return Nvfp4(ones(*values, dtype=U8), ones(*scales, dtype=U8), global_scale, **more)


def fp8(values=(8, 32), scales=(8,), per="row", **more):
    return Fp8(ones(*values, dtype=U8), ones(*scales, dtype=np.float32), per=per, **more)


FP8 = fp8()

DUAL = [
    (dict(a=None), "a is None, expected a NumPy array"),
    (dict(a=[[1.0]]), "a is of the type list"),
    (dict(a=BadExporter()), "a cannot be had by DLPack: no$"),
    (dict(a=NoCapsule()), "a cannot be had by DLPack"),
    (dict(a=A.astype(np.float64)), "a is float64, expected float16, bfloat16, Nvfp4 or Fp8"),
    (dict(a=Exported(A.astype(np.float64))), "a is float64, expected float16, bfloat16, Nvfp4 or Fp8"),
    (dict(a=Exported(A.astype(bool))), "a is bool, expected float16"),
    (dict(a=np.ma.masked_array(A, A > 0)), "a is masked float16, expected float16"),
    (dict(out=np.ma.masked_array(ones(4, 8))), "out is masked float16, expected float16"),
    (dict(a=A.astype(">f2")), "a is float16 in another byte order than this machine's, expected float16"),
    (dict(a=np.array([["x"]])), "a is str32, expected float16"),
    (dict(a=np.zeros((4, 32), [("x", "<f2")])), "a is void16, expected float16"),
    (dict(a=A.astype(np.float32)), "a is float32, expected float16, bfloat16, Nvfp4 or Fp8"),
    (dict(b1=B.astype(ml_dtypes.bfloat16)), "b2 is float16, expected bfloat16"),
    (dict(a=F16(1).reshape(())), "a has 0 dimensions, expected 2"),
    (dict(a=ones(1, 4, 32)), "a has 3 dimensions, expected 2"),
    (dict(b1=ones(8)), "b1 has 1 dimensions, expected 2"),
    (dict(b1=ones(8, 40)), r"b1 has the shape \[8, 40\], expected \[8, 32\]"),
    (dict(b2=ones(9, 32)), r"b2 has the shape \[9, 32\], expected \[8, 32\]"),
    (dict(b2=None), "b2 is None"),
    (dict(a=ones(4, 30), b1=ones(8, 30), b2=ones(8, 30)), "^K is 30, expected a multiple of 8 for float16 operands"),
    (dict(a=ones(4, 0), b1=ones(8, 0), b2=ones(8, 0)), "^K is 0, expected at least 1"),
    (dict(a=np.asfortranarray(ones(4, 32))), r"a has the strides \[1, 4\], expected 1 in its last dimension"),
    (dict(a=A[::-1]), "a has row stride -32"),
    (dict(a=np.broadcast_to(ones(1, 32), (4, 32))), "a repeats one row"),
    (dict(b1=B[:, ::-1]), "b1 has the strides"),
    (dict(a=np.lib.stride_tricks.as_strided(A, (4, 32), (2, 2))), "a has row stride 1, which is less than its row length 32"),
    (dict(a=misaligned((4, 32))), "a has strides|a starts at"),
    (dict(out=ones(4, 9)), r"out has the shape \[4, 9\], expected \[4, 8\]"),
    (dict(out=ones(4, 8, dtype=I32)), "out is int32, expected float16, bfloat16 or float32"),
    (dict(out=READ_ONLY), "out is read-only"),
    (dict(out=A[:, :8]), "out shares memory with a,"),
    (dict(out=B[:4, :8]), "out shares memory with b1"),
    (dict(out=[1]), "out is of the type list, expected a NumPy array"),
    (dict(out_dtype="int8"), "out_dtype is int8, expected float16, bfloat16 or float32"),
    (dict(out_dtype=object()), "out_dtype is "),
    (dict(out_dtype="float32", out=ones(4, 8)), "out and out_dtype are both given"),
    (dict(activation="relu"), "activation is 'relu', expected one of silu, gelu_tanh, swiglu_clamped"),
    (dict(activation=None), "activation is None"),
    (dict(activation=["silu"]), "activation is"),
    (dict(activation="swiglu_clamped", limit=0), "limit is 0, expected"),
    (dict(activation="swiglu_clamped", limit=float("nan")), "limit is nan"),
    (dict(alpha="x"), "alpha is 'x', expected a number"),
    (dict(alpha=1.5), "alpha is 1.5, but the activation is 'silu', which has none: it is of 'swiglu_clamped' and 'situ' alone"),
    (dict(limit=7.0), "limit is 7.0, but the activation is 'silu'"),
    (dict(activation="gelu_tanh", up_offset=0), "up_offset is 0.0, but the activation is 'gelu_tanh'"),
    (dict(activation="swiglu_clamped", alpha=float("nan")), "^alpha is nan and up_offset 1, expected finite numbers"),
    (dict(activation="situ", alpha=0), "alpha is 0 and limit 25, expected finite numbers above 0 for 'situ'"),
    (dict(activation="situ", up_offset=1), "up_offset is 1.0, but the activation is 'situ', which has none: it is of 'swiglu_clamped' alone"),
    (dict(activation="relu2"), "activation is 'relu2', which is of one matrix, expected one of gate and up: use gemm or grouped_gemm"),
    (dict(threads=-1), "threads is -1, expected 0 to 1024"),
    (dict(threads="two"), "threads is 'two', expected a whole number"),
    (dict(threads=1.5), "threads is 1.5, expected a whole number"),
    (dict(strategy="fastest"), "strategy fastest is not known"),
    (dict(strategy=3), "strategy is 3, expected the name of one or None"),
    (dict(strategy=""), "strategy is '', expected the name of one or None"),
    (dict(strategy="two_pass\0xyz"), r"strategy is 'two_pass\\x00xyz', expected the name of one or None"),
    (dict(strategy="x\ny"), r"strategy is 'x\\ny', expected the name of one or None"),
    (dict(strategy="\ud800"), r"strategy is '\\ud800', expected the name of one or None"),
    (dict(activation="x\ny"), r"activation is 'x\\ny', expected one of"),
    (dict(activation="swiglu_clamped", limit=1e-60), "limit is 1e-60, which is 0 in float32, expected a number that float32 holds"),
    (dict(activation="swiglu_clamped", alpha=1e300), r"alpha is 1e\+300, which is infinite in float32"),
    (dict(activation="swiglu_clamped", up_offset=1e-46), "up_offset is 1e-46, which is 0 in float32"),
    (dict(a=Interface(version=3)), "a cannot be had by __array_interface__: Missing __array_interface__"),
    (dict(a=Interface(version=3, typestr="<q9", shape=(4, 32), data=(8, False))), "a cannot be had by __array_interface__: "),
    (dict(a=Interface(version=3, typestr="<f2", shape=("x",), data=None)), "a cannot be had by __array_interface__: "),
    (dict(b1=FP4), "b2 is float16, expected nvfp4"),
    (dict(b1=FP4, b2=fp4(scales=(8, 3))), r"b2.scales has the shape \[8, 3\], expected \[8, 2\]"),
    (dict(b1=FP4, b2=fp4(values=(8, 12))), "b2.values has rows of 12 bytes"),
    (dict(b1=FP4, b2=fp4(values=(16,))), "b2.values has 1 dimensions"),
    (dict(b1=FP4, b2=fp4(global_scale=ones(2, dtype=np.float32))), "b2.global_scale has 2 elements, expected 1"),
    (dict(b1=FP4, b2=fp4(global_scale=ones(1))), "b2.global_scale is float16, expected float32"),
    (dict(b1=FP4, b2=fp4(scale_layout="blocked")), "b2.scales has 16 elements, expected 512"),
    (dict(b1=FP4, b2=fp4(scale_layout=None)), "b2.scale_layout is None"),
    (dict(b1=FP4, b2=fp4(scales=(512,), scale_layout="blocked")), "b1 and b2 have scales in different layouts"),
    (dict(b1=FP4, b2=Nvfp4(B, B)), "b2.values is float16, expected uint8"),
    (dict(b1=FP4, b2=Nvfp4(None, None)), "b2.values is None"),
    (dict(a=A.astype(ml_dtypes.float8_e4m3fn)), "a is float8_e4m3fn, expected float16"),
    (dict(b1=FP8, b2=FP4), r"b2 is nvfp4, expected fp8_row"),
    (dict(b1=FP8, b2=fp8(per="tensor", scales=(1,))), "b2 is fp8_tensor, expected fp8_row"),
    (dict(b1=FP8, b2=fp8(per="rows")), "b2.per is 'rows', expected one of tensor, row, block"),
    (dict(b1=FP8, b2=fp8(per=["row"])), "b2.per is"),
    (dict(b1=FP8, b2=fp8(scales=(7,))), r"b2.scales has the shape \[7\], expected \[8\]: one scale for each row"),
    (dict(b1=FP8, b2=fp8(per="tensor", scales=(2,))), "b2.scales has 2 elements, expected 1"),
    (dict(b1=FP8, b2=fp8(per="block", scales=(8, 1))), r"b2.scales has the shape \[8, 1\], expected \[1, 1\]: one scale for each 128 by 128"),
    (dict(b1=FP8, b2=fp8(per="block", scales=(1, 1), scale_layout="column_major")), "b2.scale_layout is 'column_major', expected 'row_major'"),
    (dict(b1=FP8, b2=fp8(values=(8, 40))), "b2.values has rows of 40 elements, expected a multiple of 16"),
    (dict(b1=FP8, b2=fp8(values=(32,))), "b2.values has 1 dimensions"),
    (dict(b1=FP8, b2=Fp8(B, ones(8, dtype=np.float32), per="row")), "b2.values is float16, expected uint8 or float8_e4m3fn"),
    (dict(b1=FP8, b2=Fp8(ones(8, 32, dtype=U8), ones(8), per="row")), "b2.scales is float16, expected float32"),
    (dict(a=fp8(values=(4, 32), scales=(1, 1), per="block")), r"a.scales has the shape \[1, 1\], expected \[4, 1\]: one scale for 128 along K of a row"),
]


@pytest.mark.parametrize("given, sentence", DUAL)
def test_dual_gemm(given, sentence):
    with pytest.raises(thresher.InvalidArgumentError, match=sentence) as refusal:
        tn.dual_gemm(**{**dict(a=A, b1=B, b2=B), **given})
    assert "\n" not in str(refusal.value)


GROUPED = [
    (dict(offsets=None), "neither offsets nor counts are given"),
    (dict(counts=np.array([1, 1], I32)), "offsets and counts are both given"),
    (dict(offsets=OFFSETS + np.int64(2**32)), r"offsets\[0\] is 4294967296, expected -2147483648 to 2147483647: offsets is kept as int32"),
    (dict(offsets=OFFSETS.astype(np.uint32)), "offsets is uint32, expected int32 or int64"),
    (dict(offsets=OFFSETS.astype(bool)), "offsets is bool, expected int32 or int64"),
    (dict(offsets=OFFSETS.astype(np.float32)), "offsets is float32, expected int32"),
    (dict(offsets=OFFSETS[:2]), r"offsets has the shape \[2\], expected \[3\]"),
    (dict(offsets=OFFSETS.reshape(1, 3)), "offsets has 2 dimensions, expected 1"),
    (dict(offsets=3), "offsets is of the type int"),
    (dict(b1=B), "b1 has 2 dimensions, expected 3"),
    (dict(b1=ones(2, 8, 40)), "a has rows of 32 elements, but the weights have K = 40|b2 has the shape"),
    (dict(b2=None), "order is missing: say how gate and up lie in b1"),
    (dict(b2=None, order="gate"), "order is 'gate', expected one of gate_first"),
    (dict(order="gate_first"), "but b2 is given too"),
    (dict(b1=ones(2, 7, 32), b2=None, order="up_first"), "b1 has 7 rows for each expert, expected an even number"),
    (dict(b1=ones(0, 8, 32), b2=ones(0, 8, 32), offsets=np.zeros(1, I32)), "experts is 0, expected 1"),
    (dict(b2=np.ascontiguousarray(ones(2, 8, 64))[:, :, :32]), "b1 and b2 lie differently in memory"),
    (dict(b1=np.broadcast_to(E[:1], (2, 8, 32)), b2=np.broadcast_to(E[:1], (2, 8, 32))), "b1 repeats the weights of one expert"),
    (dict(bias1=ones(2, 8)), "one of the biases is missing"),
    (dict(bias2=ones(2, 8)), "one of the biases is missing"),
    (dict(bias1=ones(2, 8), bias2=ones(2, 9)), r"bias2 has the shape \[2, 9\], expected \[2, 8\]"),
    (dict(bias1=ones(2, 8), bias2=ones(2, 8, dtype=np.float32)), "bias2 is float32, expected float16"),
    (dict(row_weights=np.ones(4)), "row_weights is float64, expected float32, float16 or bfloat16"),
    (dict(row_weights=ones(5, dtype=np.float32)), r"row_weights has the shape \[5\], expected \[4\]"),
    (dict(row_ids=np.zeros((4, 1), I32)), "row_ids has 2 dimensions"),
    (dict(row_ids=np.zeros(4, I32), row_ids_divisor=0), "row_ids_divisor is 0, expected 1"),
    (dict(row_ids_divisor=2), "row_ids_divisor is 2, but row_ids are missing, which it divides"),
    (dict(row_ids=np.zeros(4, I32), row_ids_divisor=2.0), "row_ids_divisor is 2.0, expected a whole number"),
    (dict(offsets=None, counts=np.array([1, 1], I32)), "a has 2 dimensions, expected 3"),
    (dict(a=ones(3, 4, 32), offsets=None, counts=np.array([1, 1], I32)), "a has 3 slots, but the weights have 2 experts"),
    (dict(a=ones(2, 4, 32), offsets=None, counts=np.ones(3, I32)), r"counts has the shape \[3\], expected \[2\]"),
    (dict(a=ones(2, 4, 32), offsets=None, counts=np.ones(2, I32), row_ids=np.zeros(4, I32)), "row_ids are given with counts"),
    (dict(a=ones(2, 8, 32)[:, ::2], offsets=None, counts=np.ones(2, I32), out=ones(2, 8, 8)[:, :4]), "out has gaps between its slots"),
]


@pytest.mark.parametrize("given, sentence", GROUPED)
def test_grouped_dual_gemm(given, sentence):
    with pytest.raises(thresher.InvalidArgumentError, match=sentence):
        tn.grouped_dual_gemm(**{**dict(a=A, b1=E, b2=E, offsets=OFFSETS), **given})


PAGES = dict(q=ones(4, 2, 64), k=ones(4, 2, 1, 64), v=ones(4, 2, 1, 64), cu_seqlens_q=np.array([0, 4], I32),
             block_table=np.zeros((1, 3), I32), seqused_k=np.full(1, 5, I32))
ATTENTION = [
    (dict(q=None), "q is None"),
    (dict(k=K.astype(ml_dtypes.bfloat16)), "k is bfloat16, expected float16"),
    (dict(q=Q.astype(np.float32)), "q is float32, expected float16, bfloat16, float8_e4m3fn or uint8"),
    (dict(q=ones(2, 5, 64)), "q has 3 dimensions, expected 4"),
    (dict(q=ones(1, 2, 5, 80), k=ones(1, 1, 7, 80), v=ones(1, 1, 7, 80)), "the last dimension of q and k is 80, expected 64, 128, 192, 256 or 576"),
    (dict(q=ones(1, 3, 5, 64), k=ones(1, 2, 7, 64), v=ones(1, 2, 7, 64)), "the number of heads of q is 3, expected a multiple of the number of heads of k, which is 2"),
    (dict(k=ones(2, 1, 7, 64)), r"k has the shape \[2, 1, 7, 64\], expected \[1, 1, 7, 64\]"),
    (dict(v=ones(1, 1, 8, 64)), r"v has the shape \[1, 1, 8, 64\], expected \[1, 1, 7, 64\]"),
    (dict(out=ones(1, 2, 5, 128)), "out has the shape"),
    (dict(out=Q), "out shares memory with q"),
    (dict(causal=1), "causal is 1, expected True or False"),
    (dict(window=3), "window is 3"),
    (dict(window=(1, 2, 3)), "window is"),
    (dict(window={5, 0}), "window is {0, 5}, expected the keys to the left and to the right"),
    (dict(window={3: 1, 0: 2}), "window is {3: 1, 0: 2}, expected the keys"),
    (dict(window=(one for one in (1, 0))), "window is <generator"),
    (dict(scale=1e300), r"scale is 1e\+300, which is infinite in float32, expected a number that float32 holds"),
    (dict(scale=-1e-60), "scale is -1e-60, which is 0 in float32, expected a number that float32 holds"),
    (dict(softcap=1e-60), "softcap is 1e-60, which is 0 in float32"),
    (dict(strategy=""), "strategy is '', expected the name of one or None"),
    (dict(strategy="split\0xyz"), r"strategy is 'split\\x00xyz', expected the name of one or None"),
    (dict(window=(-2, 0)), "window's left is -2"),
    (dict(scale=float("inf")), "scale is inf, expected a finite number"),
    (dict(scale="x"), "scale is 'x', expected a number"),
    (dict(scale="2"), "scale is '2', expected a number"),
    (dict(return_lse="no"), "return_lse is 'no', expected True or False"),
    (dict(softcap=-1.0), "softcap is -1"),
    (dict(block_table=np.zeros((1, 1), I32)), "one of block_table and seqused_k is missing"),
    (dict(block_table=np.zeros((1, 1), I32), seqused_k=np.zeros(1, I32)), "block_table takes cu_seqlens_q and no cu_seqlens_k"),
    (dict(PAGES, seqused_k=np.zeros(2, I32)), r"seqused_k has the shape \[2\], expected \[1\]"),
    (dict(PAGES, block_table=np.zeros((2, 3), I32)), r"block_table has the shape \[2, 3\], expected \[1, 3\]"),
    (dict(PAGES, block_table=np.zeros((1, 3))), "block_table is float64, expected int32 or int64"),
    (dict(PAGES, block_table=np.full((1, 3), 4, I32)), r"block_table\[0, 0\] is 4, expected 0 to 3"),
    (dict(PAGES, seqused_k=np.full(1, 7, I32)), r"seqused_k\[0\] is 7, expected 0 to the number of keys, which is 6"),
    (dict(PAGES, k=ones(4, 2, 64)), "k has 3 dimensions, expected 4"),
    (dict(PAGES, v=ones(4, 3, 1, 64)), r"v has the shape \[4, 3, 1, 64\], expected \[4, 2, 1, 64\]"),
    (dict(sinks=np.zeros(3, np.float32)), r"sinks has the shape \[3\], expected \[2\]"),
    (dict(sinks=np.zeros(2, np.float64)), "sinks"),
    (dict(k_descale=np.ones((1, 1), np.float32)), "k_descale is given, but keys and values are not float8_e4m3fn"),
    (dict(k=K.view(np.uint8)[..., :64], v=K.view(np.uint8)[..., 64:], k_descale=np.ones((3, 1), np.float32)),
     r"k_descale has the shape \[3, 1\]"),
    (dict(q=Q8), "k is float16, expected float8_e4m3fn or uint8"),
    (dict(q=Q8, k=K8), "v is float16, expected uint8"),
    (dict(q=Q8, k=K8, v=K8, out=ones(1, 2, 5, 64, dtype=np.float32)), "out is float32, expected float16 or bfloat16"),
    (dict(q=Q8, k=K8, v=K8, out=np.zeros_like(Q8)), "out is uint8, expected float16 or bfloat16"),
    (dict(k=K8, v=K8, out=ones(1, 2, 5, 64, dtype=ml_dtypes.bfloat16)), "out is bfloat16, expected float16"),
    (dict(q_descale=np.ones((1, 1), np.float32)), "q_descale is given, but queries are not float8_e4m3fn"),
    (dict(k=K8, v=K8, q_descale=np.ones((1, 1), np.float32)), "q_descale is given, but queries are not float8_e4m3fn"),
    (dict(q=Q8, k=K8, v=K8, q_descale=np.ones((1, 2), np.float32)), r"q_descale has the shape \[1, 2\], expected \[1, 1\]"),
    (dict(q=Q8, k=K8, v=K8, q_descale=np.ones(1, np.float32)), "q_descale has 1 dimensions, expected 2"),
    (dict(q=Q8, k=K8, v=K8, q_descale=np.ones((1, 1), F16)), "q_descale is float16, expected float32"),
    (dict(q=Q8, k=K8, v=K8, q_descale=np.full((1, 1), -1, np.float32)),
     r"q_descale\[0, 0\] is -1, expected a finite number that is not negative"),
    (dict(v=ones(1, 1, 7, 96)), "the last dimension of v is 96"),
    (dict(cu_seqlens_q=OFFSETS), "one of cu_seqlens_q and cu_seqlens_k is missing"),
    (dict(cu_seqlens_q=OFFSETS, cu_seqlens_k=OFFSETS), "q has 4 dimensions, expected 3"),
    (dict(q=Q[..., ::-1]), "q starts at .*multiple of 16 bytes|stride"),
    (dict(k=ones(1, 7, 1, 64).transpose(0, 2, 1, 3)[..., ::2], q=ones(1, 1, 1, 32), v=ones(1, 1, 7, 32)), "the last dimension of q and k is 32|stride"),
    (dict(q=ones(1, 2, 5, 68)[..., :64]), "stride"),
]


@pytest.mark.parametrize("given, sentence", ATTENTION)
def test_attention(given, sentence):
    with pytest.raises(thresher.InvalidArgumentError, match=sentence):
        tn.attention(**{**dict(q=Q, k=K, v=K), **given})


@pytest.mark.parametrize("offsets", [[0, 3, 2], [1, 4, 4], [0, 9, 4], [-1, 2, 4], [0, 2, 5]])
def test_offsets_of_sequences_that_make_no_sense(offsets):
    q, good, bad = ones(4, 1, 64), np.array([0, 2, 4], I32), np.array(offsets, I32)
    for lists in ((good, bad), (bad, good)):
        with pytest.raises(thresher.InvalidArgumentError, match="cu_seqlens"):
            tn.attention(q, q, q, cu_seqlens_q=lists[0], cu_seqlens_k=lists[1])


@pytest.mark.parametrize("offsets", [[0, 9, 4], [-5, 2, 2**31 - 1], [4, 0, -(2**31)]])
def test_offsets_of_experts_that_make_no_sense_stay_within_the_arrays(offsets):
    out = np.zeros((6, 8), F16)
    tn.grouped_gemm(A, E, offsets=np.array(offsets, I32), out=out[1:5])
    assert (out[[0, 5]] == 0).all()


@pytest.mark.parametrize("odd", [[1], {}, np.ones(2), b"x", 1, True, object()])
def test_names_of_any_type_are_refused_with_a_sentence(odd):
    for given in (dict(strategy=odd), dict(activation=odd), dict(order=odd, b2=None), dict(threads=object())):
        with pytest.raises(thresher.InvalidArgumentError, match="strategy is|activation is|order is|threads is"):
            tn.grouped_dual_gemm(**{**dict(a=A, b1=E, b2=E, offsets=OFFSETS), **given})


MATRIX, WIDE, FLOAT, INTEGER = ("float16, bfloat16, Nvfp4 or Fp8", "float16, bfloat16 or float32", "float32, float16 or bfloat16", "int32 or int64")
PACKED, PACKED_DOWN = tn.pack(B, B), tn.pack_gemm(ones(32, 8))
EXPERTS, EXPERTS_DOWN = tn.pack_grouped(E, E), tn.pack_grouped(ones(2, 32, 8))
FLAT = dict(cu_seqlens_q=np.array([0, 4], I32), cu_seqlens_k=np.array([0, 4], I32))
# Calls that are right, and what each of their arrays may be.
CALLS = [
    (tn.dual_gemm, dict(a=A, b1=B, b2=B, out=ones(4, 8)), dict(a=MATRIX, b1=MATRIX, b2="float16", out=WIDE)),
    (tn.dual_gemm_packed, dict(a=A, weights=PACKED), dict(a=MATRIX, weights="uint8")),
    (tn.gemm, dict(a=A, b=B, bias=ones(8)), dict(a=MATRIX, b=MATRIX, bias=WIDE)),
    (tn.gemm_packed, dict(a=ones(4, 8), weights=PACKED_DOWN, out=A.copy()), dict(a=MATRIX, weights="uint8", out=WIDE)),
    (tn.gated_mlp, dict(x=A, gate_up=PACKED, down=PACKED_DOWN), dict(x=MATRIX, gate_up="uint8", down="uint8")),
    (tn.moe, dict(x=A, gate_up=EXPERTS, down=EXPERTS_DOWN, topk_ids=np.zeros((4, 2), I32), topk_weights=ones(4, 2)),
     dict(x=MATRIX, gate_up="uint8", down="uint8", topk_ids=INTEGER, topk_weights=FLOAT)),
    (tn.grouped_dual_gemm, dict(a=A, b1=E, b2=E, offsets=OFFSETS, row_ids=np.zeros(4, I32), bias1=ones(2, 8), bias2=ones(2, 8), row_weights=ones(4)),
     dict(a=MATRIX, b1=MATRIX, b2="float16", offsets=INTEGER, row_ids=INTEGER, bias1=WIDE, row_weights=FLOAT)),
    (tn.grouped_gemm, dict(a=ones(2, 4, 32), b=E, counts=np.array([2, 4], I32)), dict(a=MATRIX, b=MATRIX, counts=INTEGER)),
    (tn.attention, dict(PAGES, sinks=np.ones(2, np.float32)),
     dict(q="float16, bfloat16, float8_e4m3fn or uint8", k="float16, float8_e4m3fn or uint8", v="float16", cu_seqlens_q=INTEGER, block_table=INTEGER,
          seqused_k=INTEGER, sinks="float32")),
    (tn.attention, dict(FLAT, q=ones(4, 2, 64), k=ones(4, 1, 64, dtype=U8), v=ones(4, 1, 64, dtype=U8), k_descale=ones(1, 1, dtype=np.float32)),
     dict(cu_seqlens_q=INTEGER, cu_seqlens_k=INTEGER, k_descale="float32", v="uint8")),
    (tn.append, dict(k=ones(3, 2, 64), v=ones(3, 2, 64), k_cache=ones(2, 4, 2, 64), v_cache=ones(2, 4, 2, 64), slots=np.arange(3), positions=np.arange(3),
                     q=ones(3, 2, 64), q_out=ones(3, 2, 64), cos_sin=ones(4, 64, dtype=np.float32)),
     dict(k="float16 or bfloat16", v="float16", k_cache="float16, float8_e4m3fn or uint8", v_cache="float16, float8_e4m3fn or uint8", slots=INTEGER,
          positions=INTEGER, q="float16", q_out="float16", cos_sin="float32")),
    (tn.pack, dict(b1=B, b2=B), dict(b1=MATRIX, b2="float16")),
    (tn.pack_gemm, dict(b=B, bias=ones(8)), dict(b=MATRIX, bias=WIDE)),
    (tn.pack_grouped, dict(b1=E, b2=E, bias1=ones(2, 8), bias2=ones(2, 8)), dict(b1=MATRIX, b2="float16", bias1=WIDE)),
    (tn.packed_info, dict(weights=PACKED), dict(weights="uint8")),
]


@pytest.mark.parametrize("function, given, expected", CALLS, ids=[function.__name__ for function, *_ in CALLS])
def test_every_argument_says_which_types_it_takes(function, given, expected):
    function(**given)
    for argument, types in expected.items():
        for wrong in (np.float64, np.int8, np.uint32, bool, object, np.complex64, ml_dtypes.float8_e5m2, "U3"):
            array = given[argument].astype(wrong)
            with pytest.raises(thresher.InvalidArgumentError) as refused:
                function(**{**given, argument: array})
            assert str(refused.value) == f"{argument} is {array.dtype.name}, expected {types}"


def test_results_that_no_memory_holds():
    wide = np.lib.stride_tricks.as_strided(ones(1, 32), (2**50, 32), (64, 2))
    for call, shape in ((lambda: tn.dual_gemm(wide, B, B), "[1125899906842624, 8]"), (lambda: tn.gemm(wide, B, out_dtype=np.float32), "[1125899906842624, 8]")):
        with pytest.raises(thresher.OutOfMemoryError) as refused:
            call()
        assert str(refused.value).startswith(f"out of the shape {shape} in float") and "\n" not in str(refused.value)
