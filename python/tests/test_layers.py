"""The plain product and the layers on NumPy arrays: against their definitions, from packed weights, and what is refused."""

import definition
import ml_dtypes
import numpy as np
import pytest

import thresher
import thresher.numpy as tn

BF16 = ml_dtypes.bfloat16


@pytest.fixture
def normal(random):
    return lambda *shape, dtype=BF16: random.standard_normal(shape).astype(dtype)


def fp8(random, rows, k, per, outer=()):
    values = random.standard_normal((*outer, rows, k)).astype(ml_dtypes.float8_e4m3fn)
    counts = {"tensor": (1, 1), "row": (rows, 1), "block": (-(-rows // 128), -(-k // 128))}[per]
    scales = random.uniform(0.25, 1, (*outer, *counts)).astype(np.float32)
    return thresher.Fp8(values, scales.reshape(-1) if per == "tensor" and not outer else scales, per=per)


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize("m, n, k", [(1, 8, 8), (5, 33, 72), (17, 64, 256)])
def test_gemm_is_its_definition(normal, dtype, m, n, k):
    a, b, bias = normal(m, k, dtype=dtype), normal(n, k, dtype=dtype), normal(n, dtype=np.float32)
    definition.check(tn.gemm(a, b), *definition.product(a, b))
    result = tn.gemm(a, b, bias=bias, out_dtype="float32")
    definition.check(result, *definition.product(a, b, bias))
    packed = tn.pack_gemm(b, bias=bias)
    assert tn.packed_info(packed) == (np.dtype(dtype).name, 1, n, k, 1, True, "exact")
    np.testing.assert_array_equal(tn.gemm_packed(a, packed, out_dtype="float32"), result)
    out = np.full((m, n + 8), 7, np.float32)
    assert tn.gemm_packed(a, packed, out=out[:, :n]).base is out
    np.testing.assert_array_equal(out[:, :n], result)
    assert (out[:, n:] == 7).all()


@pytest.mark.parametrize("per", ["tensor", "row", "block"])
def test_a_product_of_fp8_weights(normal, random, per):
    a, b = normal(5, 160), fp8(random, 150, 160, per)
    wide = np.repeat(np.repeat(b.scales.reshape(-1, 1) if per == "tensor" else b.scales, {"tensor": 150, "row": 1, "block": 128}[per], 0),
                     128 if per == "block" else 160, 1)[:150, :160]
    definition.check(tn.gemm(a, b, out_dtype="float32"), *definition.product(a, b.values.astype(np.float64) * wide))
    np.testing.assert_array_equal(tn.gemm_packed(a, tn.pack_gemm(b)), tn.gemm(a, b))


def test_a_gated_mlp_is_its_two_products(normal, random):
    x, gate, up, down = normal(9, 64), normal(48, 64), normal(48, 64), normal(64, 48)
    for weights in ((gate, up, down), (fp8(random, 48, 64, "row"), fp8(random, 48, 64, "row"), fp8(random, 64, 48, "tensor"))):
        gate_up, below = tn.pack(*weights[:2]), tn.pack_gemm(weights[2])
        for options in ({}, dict(activation="swiglu_clamped", limit=0.5)):
            hidden = tn.dual_gemm(x, *weights[:2], **options)
            np.testing.assert_array_equal(tn.gated_mlp(x, gate_up, below, out_dtype="float32", **options),
                                          tn.gemm(hidden, weights[2], out_dtype="float32"))
        wide = tn.dual_gemm(x, *weights[:2], out_dtype="float16")
        np.testing.assert_array_equal(tn.gated_mlp(x, gate_up, below, intermediate_dtype="float16"), tn.gemm(wide, weights[2], out_dtype=BF16))
    assert tn.gated_mlp(x[:0], gate_up, below).shape == (0, 64)


def test_a_product_may_end_in_relu2(normal):
    a, b, bias = normal(9, 64), normal(48, 64), normal(48)
    wide = np.maximum(tn.gemm(a, b, bias=bias, out_dtype="float32").astype(np.float64), 0) ** 2
    for result in (tn.gemm(a, b, bias=bias, activation="relu2", out_dtype="float32"),
                   tn.gemm_packed(a, tn.pack_gemm(b, bias=bias), activation="relu2", out_dtype="float32")):
        np.testing.assert_allclose(result, wide, rtol=2.0**-22)
    assert 0.3 < (wide == 0).mean() < 0.7
    with pytest.raises(thresher.InvalidArgumentError, match="activation is 'silu', expected 'relu2' or None"):
        tn.gemm(a, b, activation="silu")


def test_layers_without_a_gate(normal):
    x, up, down = normal(9, 64), normal(2, 48, 64), normal(2, 64, 48)
    hidden = [tn.gemm(x, one, activation="relu2") for one in up]
    expected = [tn.gemm(one, below, out_dtype="float32") for one, below in zip(hidden, down)]
    parts = tn.pack_gemm(up[0]), tn.pack_gemm(down[0])
    np.testing.assert_array_equal(tn.gated_mlp(x, *parts, activation="relu2", out_dtype="float32"), expected[0])
    ids = np.arange(9, dtype=np.int32)[:, None] % 2
    result = tn.moe(x, tn.pack_grouped(up), tn.pack_grouped(down), ids, np.ones((9, 1), np.float32), activation="relu2", out_dtype="float32")
    np.testing.assert_array_equal(result, np.where(ids == 0, *expected))
    with pytest.raises(thresher.InvalidArgumentError, match="gate_up: it holds the weights of a dual GEMM"):
        tn.gated_mlp(x, tn.pack(up[0], up[1]), parts[1], activation="relu2")
    with pytest.raises(thresher.InvalidArgumentError, match="expected gate and up, and one matrix, of as many experts"):
        tn.moe(x, tn.pack_grouped(up), tn.pack_grouped(down), ids, np.ones((9, 1), np.float32))


def in_fp8(rows, per, scale=1.0):
    """Rows of float32 as an intermediate in FP8 has them."""
    columns = {"tensor": rows.shape[1], "row": rows.shape[1], "block": 128}[per]
    blocks = rows.reshape(rows.shape[0], -1, columns)
    largest = np.abs(blocks).max(-1, keepdims=True)
    scales = np.where(largest == 0, 1, np.maximum(largest / np.float32(448), np.float32(2.0**-126))).astype(np.float32)
    if per == "tensor":
        scales = np.full_like(scales, scale)
    values = np.clip(blocks / scales, -448, 448).astype(ml_dtypes.float8_e4m3fn).reshape(rows.shape)
    return thresher.Fp8(values, np.array([scale], np.float32) if per == "tensor" else scales[..., 0], per=per)


@pytest.mark.parametrize("per, scale", [("row", 1.0), ("block", 1.0), ("tensor", 0.03)])
def test_what_lies_between_products_may_be_quantized(normal, random, per, scale):
    x, gate, up = normal(9, 64), normal(256, 64), normal(256, 64)
    down = fp8(random, 64, 256, per)
    packed = tn.pack(gate, up), tn.pack_gemm(down)
    hidden = in_fp8(tn.dual_gemm(x, gate, up, out_dtype="float32"), per, scale)
    expected = tn.gemm(hidden, down, out_dtype="float32")
    options = dict(intermediate_dtype=f"fp8_{per}", intermediate_scale=scale)
    np.testing.assert_array_equal(tn.gated_mlp(x, *packed, out_dtype="float32", **options), expected)
    experts = tn.pack_grouped(gate[None], up[None]), tn.pack_grouped(thresher.Fp8(down.values[None], down.scales[None], per=per))
    nobody = np.zeros((9, 1), np.int32)
    np.testing.assert_array_equal(tn.moe(x, *experts, nobody, np.ones((9, 1), np.float32), out_dtype="float32", **options), expected)


def test_what_lies_between_products_may_be_nvfp4(normal):
    x, gate, up, down = normal(9, 64), normal(256, 64), normal(256, 64), normal(64, 256)
    packed = tn.pack(gate, up), tn.pack_gemm(down)
    wide = tn.gated_mlp(x, *packed, out_dtype="float32")
    narrow = tn.gated_mlp(x, *packed, out_dtype="float32", intermediate_dtype="nvfp4", intermediate_scale=0.5)
    assert 0 < np.linalg.norm(narrow - wide) < 0.2 * np.linalg.norm(wide)


@pytest.mark.parametrize("options, sentence", [
    (dict(intermediate_dtype="fp8"), "intermediate_dtype is fp8, expected float16, bfloat16, nvfp4, fp8_tensor, fp8_row or fp8_block"),
    (dict(intermediate_dtype="fp8_row", intermediate_scale=2.0), "intermediate_scale is 2"),
    (dict(intermediate_dtype="fp8_tensor", intermediate_scale=0.0), "intermediate_scale is 0, expected a finite number above 0"),
    (dict(intermediate_dtype="fp8_block"), "128"),
])
def test_intermediates_that_are_refused(normal, options, sentence):
    gate_up, down = tn.pack(normal(48, 64), normal(48, 64)), tn.pack_gemm(normal(64, 48))
    with pytest.raises(thresher.InvalidArgumentError) as error:
        tn.gated_mlp(normal(3, 64), gate_up, down, **options)
    assert sentence in str(error.value)


def test_a_mixture_is_the_sum_over_its_choices(normal, random):
    experts, tokens, choices = 4, 11, 3
    x, gate_up, down = normal(tokens, 32), normal(experts, 2 * 24, 32), normal(experts, 32, 24)
    biases = normal(experts, 48, dtype=np.float32), normal(experts, 32, dtype=np.float32)
    ids = random.integers(-1, experts + 1, (tokens, choices)).astype(np.int32)
    factors = random.random((tokens, choices)).astype(np.float32)
    packed = tn.pack_grouped(gate_up, order="up_first", bias1=biases[0]), tn.pack_grouped(down, bias1=biases[1])
    exact, magnitude = np.zeros((tokens, 32)), np.zeros((tokens, 32))
    for t, c in np.ndindex(ids.shape):
        e = ids[t, c]
        if 0 <= e < experts:
            hidden = tn.grouped_dual_gemm(x[t:t + 1], gate_up[e:e + 1], order="up_first", bias1=biases[0][e:e + 1],
                                          offsets=np.array([0, 1], np.int32))
            row = tn.gemm(hidden, down[e], bias=biases[1][e], out_dtype="float32")[0]
            exact[t] += np.float64(factors[t, c]) * row
            magnitude[t] += factors[t, c] * np.abs(row)
    definition.check(tn.moe(x, *packed, ids, factors, out_dtype="float32"), exact, 6 * 2.0**-24 * magnitude)
    definition.check(tn.moe(x, *packed, ids, factors, rows_dtype="bfloat16", out_dtype="float32"), exact, 2.0**-7.9 * magnitude)
    first = tn.moe(x, *packed, ids, factors)
    ids[:], out = -1, np.full((tokens, 32), 7, BF16)
    assert tn.moe(x, *packed, ids, factors, out=out) is out and (out == 0).all() and first.any()


X, W = np.ones((4, 32), np.float16), np.ones((16, 32), np.float16)
GATE_UP, DOWN = tn.pack(W, W), tn.pack_gemm(W.T.copy())
EXPERTS = tn.pack_grouped(np.ones((2, 16, 32), np.float16), np.ones((2, 16, 32), np.float16))
BELOW = tn.pack_grouped(np.ones((2, 32, 16), np.float16))
IDS, FACTORS = np.zeros((4, 2), np.int32), np.ones((4, 2), np.float32)


@pytest.mark.parametrize("call, sentence", [
    (lambda: tn.gemm(X, W[:, :16]), "b has the shape [16, 16], expected [16, 32]"),
    (lambda: tn.gemm(X, W, bias=np.ones(15, np.float32)), "bias has the shape [15], expected [16]"),
    (lambda: tn.gemm(X, W, bias=np.ones(16, np.int32)), "bias is int32, expected float16"),
    (lambda: tn.gemm(X, W, out=np.ones((4, 15), np.float16)), "out has the shape [4, 15], expected [4, 16]"),
    (lambda: tn.gemm(X, W.astype(np.float32)), "b is float32"),
    (lambda: tn.gemm(X, W, strategy="none"), "none"),
    (lambda: tn.gemm_packed(X, GATE_UP), "it holds the weights of a dual GEMM"),
    (lambda: tn.gemm_packed(X, BELOW), "the weights are a matrix of 2 experts, expected those that pack_gemm gave"),
    (lambda: tn.gemm_packed(X[:, :16], tn.pack_gemm(W)), "a has rows of 16 elements, but the weights have K = 32"),
    (lambda: tn.gated_mlp(X, DOWN, DOWN), "it holds the weights of 1 experts"),
    (lambda: tn.gated_mlp(X, GATE_UP, tn.pack_gemm(W)), "gate and up are [16, 32] and down [16, 32], expected [N, K] and [K, N]"),
    (lambda: tn.gated_mlp(X[:, :16], GATE_UP, DOWN), "x has rows of 16 elements, but the weights have K = 32"),
    (lambda: tn.gated_mlp(X[0], GATE_UP, DOWN), "x has 1 dimensions, expected 2"),
    (lambda: tn.gated_mlp(X, GATE_UP, tn.pack_gemm(W.T.copy(), bias=np.ones(32, np.float32))), "down has a bias, expected none"),
    (lambda: tn.gated_mlp(X, GATE_UP, DOWN, intermediate_dtype="float32"), "intermediate_dtype is float32, expected float16, bfloat16, nvfp4, fp8_tensor, fp8_row or fp8_block"),
    (lambda: tn.gated_mlp(X, GATE_UP, DOWN, out=X), "out"),
    (lambda: tn.gated_mlp(X, GATE_UP[:9], DOWN), "gate_up does not hold what pack, pack_gemm or pack_grouped gave: "),
    (lambda: tn.moe(X, EXPERTS, EXPERTS, IDS, FACTORS), "gate_up holds 2 matrices of 2 experts and down 2 of 2"),
    (lambda: tn.moe(X, EXPERTS, BELOW, IDS - np.int64(2**40), FACTORS), "topk_ids[0, 0] is -1099511627776, expected -2147483648 to 2147483647"),
    (lambda: tn.moe(X, EXPERTS, BELOW, FACTORS, IDS), "topk_ids is float32, expected int32 or int64"),
    (lambda: tn.moe(X, EXPERTS, BELOW, IDS > 0, FACTORS), "topk_ids is bool, expected int32 or int64"),
    (lambda: tn.moe(X, EXPERTS, BELOW, None, FACTORS), "topk_ids is None, expected a NumPy array"),
    (lambda: tn.moe(X, EXPERTS, BELOW, IDS, IDS), "topk_weights is int32, expected float32, float16 or bfloat16"),
    (lambda: tn.gated_mlp(X, GATE_UP, DOWN, alpha=1.702),
     "alpha is 1.702, but the activation is 'silu', which has none: it is of 'swiglu_clamped' and 'situ' alone"),
    (lambda: tn.moe(X, EXPERTS, BELOW, IDS[:3], FACTORS), "topk_ids has the shape [3, 2], expected [4, 2]"),
    (lambda: tn.moe(X, EXPERTS, BELOW, IDS, FACTORS[:, :1]), "topk_weights has the shape [4, 1], expected [4, 2]"),
    (lambda: tn.moe(X, EXPERTS, BELOW, IDS, FACTORS, rows_dtype="int8"), "rows_dtype is int8, expected float16, bfloat16 or float32"),
    (lambda: tn.pack_gemm(W[0]), "b has 1 dimensions, expected 2"),
])
def test_refused(call, sentence):
    with pytest.raises(thresher.InvalidArgumentError) as refusal:
        call()
    assert sentence in str(refusal.value) and "\n" not in str(refusal.value)
