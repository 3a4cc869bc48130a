"""Packed weights as one array of bytes: the same bits as unpacked ones, wherever the bytes went in between."""

import pickle

import ml_dtypes
import numpy as np
import pytest

import thresher
import thresher.numpy as tn

BF16 = ml_dtypes.bfloat16
OFFSETS = np.array([0, 3, 3, 11], np.int32)


def normal(random, shape, dtype=np.float16):
    return random.standard_normal(shape).astype(dtype)


def nvfp4(random, *shape):
    return thresher.Nvfp4(random.integers(0, 256, (*shape[:-1], shape[-1] // 2), np.uint8),
                          random.integers(0x28, 0x48, (*shape[:-1], shape[-1] // 16), np.uint8),
                          np.full(shape[0] if len(shape) == 3 else 1, 0.5, np.float32))


def dual_weights(random, kind):
    if kind == "nvfp4":
        return nvfp4(random, 33, 64), nvfp4(random, 33, 64)
    dtype = np.float16 if kind == "float16" else BF16
    return normal(random, (33, 64), dtype), normal(random, (33, 64), dtype)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "nvfp4"])
def test_dual_gemm_of_packed_weights_has_the_same_bits(random, kind):
    a, (b1, b2) = normal(random, (5, 64), BF16), dual_weights(random, kind)
    packed = tn.pack(b1, b2)
    assert packed.dtype == np.uint8 and packed.ndim == 1
    assert tn.packed_info(packed, check=True) == (kind, None, 33, 64, 2, False, "exact")
    for options in ({}, dict(out_dtype=np.float32, activation="gelu_tanh"), dict(threads=1, strategy="two_pass")):
        result, expected = tn.dual_gemm_packed(a, packed, **options), tn.dual_gemm(a, b1, b2, **options)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)
    out = np.zeros((5, 40), np.float32)[:, :33]
    assert tn.dual_gemm_packed(a, packed, out=out) is out
    np.testing.assert_array_equal(out, tn.dual_gemm(a, b1, b2, out_dtype=np.float32))


def test_packed_weights_are_saved_mapped_and_pickled(random, tmp_path):
    a, (b1, b2) = normal(random, (5, 64)), dual_weights(random, "nvfp4")
    expected, packed = tn.dual_gemm(a, b1, b2), tn.pack(b1, b2)
    np.save(tmp_path / "weights.npy", packed)
    packed.tofile(tmp_path / "weights")
    for again in (packed.copy(), pickle.loads(pickle.dumps(packed)), np.load(tmp_path / "weights.npy"),
                  np.load(tmp_path / "weights.npy", mmap_mode="r"), np.memmap(tmp_path / "weights", np.uint8, "r")):
        np.testing.assert_array_equal(tn.dual_gemm_packed(a, again), expected)


def test_the_file_is_one_that_the_command_takes(random, tmp_path):
    import subprocess
    import sys

    tn.pack(normal(random, (16, 16)), normal(random, (16, 16))).tofile(tmp_path / "weights")
    header = b'{"a":{"dtype":"F16","shape":[4,16],"data_offsets":[0,128]}}'
    (tmp_path / "a").write_bytes(len(header).to_bytes(8, "little") + header + bytes(128))
    done = subprocess.run([sys.executable, "-m", "thresher", "run", "dual-gemm", "--in", tmp_path / "a", "--weights",
                           tmp_path / "weights", "--out", tmp_path / "c"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("c [4, 16] fp16"), done.stderr


def test_weights_that_are_written_over_in_place_are_read_anew(random):
    a = normal(random, (4, 32))
    pairs = [(normal(random, (8, 32)), normal(random, (8, 32))), (normal(random, (16, 16)), normal(random, (16, 16)))]
    packed = tn.pack(*pairs[0])
    tn.dual_gemm_packed(a, packed)
    packed[:] = tn.pack(normal(random, (8, 32)), pairs[0][1])
    assert not np.array_equal(tn.dual_gemm_packed(a, packed), tn.dual_gemm(a, *pairs[0]))
    other = tn.pack(*pairs[1])
    assert other.size == packed.size, "as many bytes, of another shape"
    packed[:] = other
    np.testing.assert_array_equal(tn.dual_gemm_packed(a[:, :16].copy(), packed), tn.dual_gemm(a[:, :16].copy(), *pairs[1]))
    with pytest.raises(thresher.InvalidArgumentError, match="a has rows of 32 elements, but the weights have K = 16"):
        tn.dual_gemm_packed(a, packed)


@pytest.mark.parametrize("kind", ["bfloat16", "nvfp4"])
@pytest.mark.parametrize("order", [None, "gate_first", "up_first", "interleaved"])
@pytest.mark.parametrize("bias", [False, True])
def test_grouped_dual_gemm_of_packed_weights_has_the_same_bits(random, kind, order, bias):
    a = normal(random, (11, 32), BF16)
    rows = 16 if order is None else 32
    make = (lambda: nvfp4(random, 3, rows, 32)) if kind == "nvfp4" else (lambda: normal(random, (3, rows, 32), BF16))
    weights = dict(b1=make(), b2=make()) if order is None else dict(b1=make(), order=order)
    if bias:
        names = ("bias1", "bias2") if order is None else ("bias1",)
        weights |= {name: normal(random, (3, rows), np.float32) for name in names}
    packed = tn.pack_grouped(**weights)
    assert tn.packed_info(packed) == (kind, 3, 16, 32, 2, bias, "exact")
    ids = random.integers(0, 11, 11).astype(np.int32)
    for options in ({}, dict(row_ids=ids), dict(row_weights=random.random(11, np.float32), out_dtype=np.float32)):
        np.testing.assert_array_equal(tn.grouped_dual_gemm_packed(a, packed, offsets=OFFSETS, **options),
                                      tn.grouped_dual_gemm(a, **weights, offsets=OFFSETS, **options))
    slots, counts = normal(random, (3, 5, 32), BF16), np.array([1, 5, 0], np.int32)
    np.testing.assert_array_equal(tn.grouped_dual_gemm_packed(slots, packed, counts=counts),
                                  tn.grouped_dual_gemm(slots, **weights, counts=counts))


@pytest.mark.parametrize("bias", [False, True])
def test_grouped_gemm_of_packed_weights_has_the_same_bits(random, bias):
    a, b = normal(random, (11, 32)), normal(random, (3, 16, 32))
    bias = normal(random, (3, 16)) if bias else None
    packed = tn.pack_grouped(b, bias1=bias)
    assert tn.packed_info(packed) == ("float16", 3, 16, 32, 1, bias is not None, "exact")
    np.testing.assert_array_equal(tn.grouped_gemm_packed(a, packed, offsets=OFFSETS),
                                  tn.grouped_gemm(a, b, bias=bias, offsets=OFFSETS))


A, B = np.ones((4, 32), np.float16), np.ones((8, 32), np.float16)
E = np.ones((3, 8, 32), np.float16)
DUAL, GROUPED, ONE = tn.pack(B, B), tn.pack_grouped(E, E), tn.pack_grouped(E)


def changed(block, old, new):
    data = block.tobytes()
    assert old in data and len(old) == len(new)
    return np.frombuffer(bytearray(data.replace(old, new, 1)), np.uint8).copy()


def shifted(block):
    wide = np.zeros(block.size + 32, np.uint8)
    begin = -wide.ctypes.data % 16 + 1
    wide[begin : begin + block.size] = block
    return wide[begin : begin + block.size]


REFUSED = [
    (lambda: tn.dual_gemm_packed(A, None), "weights is None, expected a NumPy array"),
    (lambda: tn.dual_gemm_packed(A, B), "weights is float16, expected uint8"),
    (lambda: tn.dual_gemm_packed(A, DUAL.reshape(2, -1)), "weights has 2 dimensions, expected 1: the bytes that pack gave"),
    (lambda: tn.dual_gemm_packed(A, DUAL[::2]), "weights is not contiguous"),
    (lambda: tn.dual_gemm_packed(A, shifted(DUAL)), "starts at .* expected a multiple of 16 bytes"),
    (lambda: tn.dual_gemm_packed(A, DUAL[:0]), "weights does not hold what pack, pack_gemm or pack_grouped gave: it has 0 bytes"),
    (lambda: tn.dual_gemm_packed(A, DUAL[:5]), "not even the 8 of a header's length"),
    (lambda: tn.dual_gemm_packed(A, DUAL[:100]), "weights does not hold what pack, pack_gemm or pack_grouped gave: "),
    (lambda: tn.dual_gemm_packed(A, DUAL[:-1]), "weights does not hold what pack, pack_gemm or pack_grouped gave: "),
    (lambda: tn.dual_gemm_packed(A, np.zeros(4096, np.uint8)), "weights does not hold what pack, pack_gemm or pack_grouped gave: "),
    (lambda: tn.dual_gemm_packed(A, np.full(4096, 255, np.uint8)), "weights does not hold what pack, pack_gemm or pack_grouped gave: "),
    (lambda: tn.dual_gemm_packed(A, changed(DUAL, b'"n":"8"', b'"n":"9"')), "its tensor b1 is F16 .8, 32., expected F16 .9, 32."),
    (lambda: tn.dual_gemm_packed(A, changed(DUAL, b'exact"', b'fast" ')), "its header is not what was written, it is damaged"),
    (lambda: tn.dual_gemm_packed(A, changed(DUAL, b'weights":"3"', b'weights":"4"')), "it is of version '4'"),
    (lambda: tn.dual_gemm_packed(A, changed(DUAL, b"thresher_packed", b"thresher_pickle")), "it holds no packed weights"),
    (lambda: tn.packed_info(changed(DUAL, b"\x00\x3c\x00\x3c", b"\x00\x3c\x00\x3d"), check=True), "its bytes are not those that were written"),
    (lambda: tn.packed_info(DUAL, check=1), "check is 1, expected True or False"),
    (lambda: tn.dual_gemm_packed(A, GROUPED), "it holds the weights of 3 experts, of a grouped product, expected those of a dual GEMM"),
    (lambda: tn.grouped_gemm_packed(A, DUAL, offsets=OFFSETS), "it holds the weights of a dual GEMM, expected those of experts"),
    (lambda: tn.grouped_gemm_packed(A, GROUPED, offsets=OFFSETS), "the weights are gate and up, but the problem has no activation"),
    (lambda: tn.grouped_dual_gemm_packed(A, ONE, offsets=OFFSETS), "the weights are one matrix an expert, but the problem has an activation"),
    (lambda: tn.grouped_gemm_packed(A, ONE, offsets=OFFSETS[:3]), r"offsets has the shape \[3\], expected \[4\]"),
    (lambda: tn.grouped_gemm_packed(A[:, :16], ONE, offsets=OFFSETS), "a has rows of 16 elements, but the weights have K = 32"),
    (lambda: tn.dual_gemm_packed(A[:, :16], DUAL), "a has rows of 16 elements, but the weights have K = 32"),
    (lambda: tn.dual_gemm_packed(A[0], DUAL), "a has 1 dimensions, expected 2"),
    (lambda: tn.dual_gemm_packed(A, DUAL, out=np.zeros((4, 9), np.float16)), r"out has the shape \[4, 9\], expected \[4, 8\]"),
    (lambda: tn.dual_gemm_packed(A, DUAL, out=DUAL[-64:].view(np.float16).reshape(4, 8)), "out shares memory with b2"),
    (lambda: tn.pack(B, B[:4]), r"b2 has the shape \[4, 32\], expected \[8, 32\]"),
    (lambda: tn.pack(B, None), "b2 is None"),
    (lambda: tn.pack(B, B.astype(np.float32)), "b2 is float32, expected float16"),
    (lambda: tn.pack(B[:, :30], B[:, :30]), "the weights have k = 30, expected a multiple of 8"),
    (lambda: tn.pack(B, B, numerics="slow"), "numerics is 'slow', expected one of exact, fast"),
    (lambda: tn.pack_grouped(B), "b1 has 2 dimensions, expected 3"),
    (lambda: tn.pack_grouped(E, order="both"), "order is 'both'"),
    (lambda: tn.pack_grouped(E, E, bias1=np.ones((3, 8), np.float16)), "one of the biases is missing"),
]


@pytest.mark.parametrize("call, sentence", REFUSED, ids=range(len(REFUSED)))
def test_refused(call, sentence):
    with pytest.raises(thresher.InvalidArgumentError, match=sentence) as refusal:
        call()
    assert "\n" not in str(refusal.value)


def test_what_this_cpu_does_not_offer_is_unsupported():
    with pytest.raises(thresher.UnsupportedError, match="numerics fast is for NVFP4 and FP8 weights on a Hopper GPU"):
        tn.pack(B, B, numerics="fast")
