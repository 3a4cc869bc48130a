"""The operations on NumPy arrays against their definition."""

import os
import sys
import threading

import definition
import ml_dtypes
import numpy as np
import pytest

import thresher
import thresher.numpy as tn

BF16 = ml_dtypes.bfloat16
DTYPES = [np.float16, BF16]
SHAPES = [(1, 8, 8), (1, 96, 128), (3, 17, 72), (16, 33, 512), (40, 64, 520), (130, 270, 1032)]


def normal(random, shape, dtype):
    return random.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("strategy", thresher.strategies("dual_gemm"))
def test_dual_gemm_is_its_definition(random, dtype, shape, strategy):
    m, n, k = shape
    a, b1, b2 = normal(random, (m, k), dtype), normal(random, (n, k), dtype), normal(random, (n, k), dtype) / dtype(8)
    result = tn.dual_gemm(a, b1, b2, strategy=strategy, out_dtype="float32")
    assert result.dtype == np.float32
    definition.check(result, *definition.dual_gemm(a, b1, b2))
    definition.check(tn.dual_gemm(a, b1, b2, strategy=strategy), *definition.dual_gemm(a, b1, b2))


@pytest.mark.parametrize("kind, constants", [("silu", {}), ("gelu_tanh", {}), ("swiglu_clamped", {}),
                                             ("swiglu_clamped", dict(alpha=1.0, limit=2.5, up_offset=0.0)),
                                             ("situ", {}), ("situ", dict(alpha=0.5, limit=0.75))])
def test_every_activation(random, kind, constants):
    a, b1, b2 = (normal(random, shape, np.float16) / np.float16(2) for shape in ((9, 64), (24, 64), (24, 64)))
    definition.check(tn.dual_gemm(a, b1, b2, activation=kind, **constants), *definition.dual_gemm(a, b1, b2, kind, **constants))


def nvfp4(random, shape, global_scale=None):
    *outer, rows, k = shape
    values = random.integers(0, 256, (*outer, rows, k // 2), np.uint8)
    scales = random.integers(0x28, 0x48, (*outer, rows, k // 16), np.uint8)
    return thresher.Nvfp4(values, scales, global_scale)


def blocked(scales):
    rows, columns = scales.shape
    out = np.zeros(-(-rows // 128) * 128 * (-(-columns // 4) * 4), np.uint8)
    r, c = np.indices(scales.shape)
    out[((r // 128) * -(-columns // 4) + c // 4) * 512 + (r % 32) * 16 + ((r % 128) // 32) * 4 + c % 4] = scales
    return out


def test_nvfp4_weights_and_tokens(random):
    scale = np.array([0.25], np.float32)
    b1, b2, a = nvfp4(random, (33, 64), scale), nvfp4(random, (33, 64)), nvfp4(random, (5, 64), scale)
    dense = [definition.nvfp4(x.values, x.scales, 1.0 if x.global_scale is None else x.global_scale) for x in (a, b1, b2)]
    tokens = normal(random, (5, 64), np.float16)
    definition.check(tn.dual_gemm(tokens, b1, b2, out_dtype=np.float32), *definition.dual_gemm(tokens, *dense[1:]))
    definition.check(tn.dual_gemm(a, b1, b2, out_dtype=np.float32), *definition.dual_gemm(*dense))
    other = [thresher.Nvfp4(x.values, blocked(x.scales), x.global_scale, scale_layout="blocked") for x in (b1, b2)]
    np.testing.assert_array_equal(tn.dual_gemm(tokens, *other), tn.dual_gemm(tokens, b1, b2))


def mxfp4(values, exponents):
    """In float64."""
    magnitudes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    codes = np.stack([values & 15, values >> 4], -1).reshape(*values.shape[:-1], -1)
    signed = np.where(codes < 8, 1, -1) * magnitudes[codes & 7]
    return signed * np.repeat(np.exp2(exponents.astype(np.float64) - 127), 32, -1)


def test_mxfp4_is_held_as_nvfp4(random):
    values = random.integers(0, 256, (3, 40, 32), np.uint8)
    exponents = random.integers(110, 128, (3, 40, 2), np.uint8)
    values[1], exponents[1] = 0x80, 7  # zeros, of whichever exponent
    exponents[0, 0], exponents[0, 1] = 110, 127
    dense = mxfp4(values, exponents)
    held = thresher.Nvfp4.of_mxfp4(values, exponents)
    for e in range(3):
        np.testing.assert_array_equal(definition.nvfp4(held.values[e], held.scales[e], held.global_scale[e : e + 1]), dense[e])
    blocks = thresher.Nvfp4.of_mxfp4(values.reshape(3, 40, 2, 16), exponents)
    np.testing.assert_array_equal(blocks.scales, held.scales)
    one = thresher.Nvfp4.of_mxfp4(values[0], exponents[0])
    tokens = normal(random, (5, 64), np.float16)
    result = tn.dual_gemm(tokens, one, one, out_dtype=np.float32)
    definition.check(result, *definition.dual_gemm(tokens, dense[0], dense[0]))
    np.testing.assert_array_equal(tn.dual_gemm_packed(tokens, tn.pack(one, one), out_dtype=np.float32), result)


@pytest.mark.parametrize("values, exponents, sentence", [
    (np.zeros((2, 16), np.uint8), np.full((2, 1), 255, np.uint8), "exponents hold 255, expected 0 to 252; 255 is NaN"),
    (np.ones((2, 16), np.uint8), np.array([[60], [78]], np.uint8), "are 18 apart, expected 17 at the most"),
    (np.ones((2, 16), np.uint8), np.array([[8], [8]], np.uint8), "NVFP4 does not hold them, bfloat16 does"),
    (np.ones((2, 16), np.uint8), np.ones((1, 2), np.uint8), "values are [2, 16] and exponents [1, 2], expected [rows, K/2]"),
    (np.ones((2, 24), np.uint8), np.ones((2, 1), np.uint8), "values are [2, 24] and exponents [2, 1]"),
    (np.ones((2, 16), np.float32), np.ones((2, 1), np.uint8), "values is float32, expected uint8"),
    (np.ones((2, 16), np.uint8), None, "exponents is NoneType, expected uint8"),
])
def test_mxfp4_that_is_refused(values, exponents, sentence):
    with pytest.raises(thresher.InvalidArgumentError) as error:
        thresher.Nvfp4.of_mxfp4(values, exponents)
    assert sentence in str(error.value)


def fp8(random, shape, per, tokens=False, codes=False):
    """The operand, and its values in float64."""
    *outer, rows, k = shape
    values = random.standard_normal(shape).astype(ml_dtypes.float8_e4m3fn)
    step = {"tensor": (rows, k), "row": (1, k), "block": (1 if tokens else 128, 128)}[per]
    counts = (-(-rows // step[0]), -(-k // step[1]))
    scales = random.uniform(0.25, 2, (*outer, *counts)).astype(np.float32)
    dense = values.astype(np.float64) * np.repeat(np.repeat(scales, step[0], -2), step[1], -1)[..., :rows, :k]
    scales = scales.reshape(-1) if per == "tensor" else scales[..., 0] if per == "row" and tokens else scales
    return thresher.Fp8(values.view(np.uint8) if codes else values, scales, per=per), dense


@pytest.mark.parametrize("per", ["tensor", "row", "block"])
@pytest.mark.parametrize("codes", [False, True])
def test_fp8_weights_and_tokens(random, per, codes):
    (a, dense_a), (b1, dense1), (b2, dense2) = (fp8(random, shape, per, tokens, codes) for shape, tokens in (
        ((5, 272), True), ((150, 272), False), ((150, 272), False)))
    exact = definition.dual_gemm(dense_a, dense1, dense2)
    definition.check(tn.dual_gemm(a, b1, b2, out_dtype=np.float32), *exact)
    assert tn.dual_gemm(a, b1, b2).dtype == BF16
    tokens = normal(random, (5, 272), np.float16)
    definition.check(tn.dual_gemm(tokens, b1, b2, out_dtype=np.float32), *definition.dual_gemm(tokens, dense1, dense2))
    packed = tn.pack(b1, b2)
    assert tn.packed_info(packed, check=True).format == f"fp8_{per}"
    np.testing.assert_array_equal(tn.dual_gemm_packed(a, packed), tn.dual_gemm(a, b1, b2))
    if per == "block":
        columns = np.zeros((3, 8), np.float32)
        columns[:, :5] = a.scales.T
        other = thresher.Fp8(a.values, columns, per="block", scale_layout="column_major")
        np.testing.assert_array_equal(tn.dual_gemm(other, b1, b2), tn.dual_gemm(a, b1, b2))


@pytest.mark.parametrize("per", ["tensor", "row", "block"])
def test_fp8_scales_may_be_exponents_alone(random, per):
    short = np.array([2**-3, 2**-127, 2.0, 1.0], np.float32).astype(ml_dtypes.float8_e8m0fnu)
    b = thresher.Fp8(np.zeros((4, 32), np.uint8), short.reshape(4, 1), per=per)
    assert b.scales.dtype == np.float32
    np.testing.assert_array_equal(b.scales, np.exp2(np.array([[-3], [-127], [1], [0]], np.float32)))
    b, dense = fp8(random, (150, 272), per)
    powers = np.exp2(np.round(np.log2(b.scales)))
    plain, short = (tn.gemm(dense[:3].astype(np.float16), thresher.Fp8(b.values, one, per=per))
                    for one in (powers, powers.astype(ml_dtypes.float8_e8m0fnu)))
    np.testing.assert_array_equal(plain, short)


@pytest.mark.parametrize("per", ["tensor", "row", "block"])
def test_grouped_fp8(random, per):
    (a, dense_a), (b, dense_b) = fp8(random, (7, 144), per, True), fp8(random, (2, 130, 144), per)
    offsets = np.array([0, 3, 7], np.int32)
    result = tn.grouped_gemm(a, b, offsets=offsets, out_dtype=np.float32)
    for e, rows in enumerate((slice(0, 3), slice(3, 7))):
        exact, error = definition.product(dense_a[rows], dense_b[e])
        definition.check(result[rows], exact, error)
    np.testing.assert_array_equal(tn.grouped_gemm_packed(a, tn.pack_grouped(b), offsets=offsets, out_dtype=np.float32), result)
    slots, dense = fp8(random, (2, 4, 144), per, True)
    result = tn.grouped_gemm(slots, b, counts=np.array([4, 2], np.int32), out_dtype=np.float32)
    for e, count in enumerate((4, 2)):
        exact, error = definition.product(dense[e, :count], dense_b[e])
        definition.check(result[e, :count], exact, error)


def test_out_is_written_with_its_strides_and_nothing_else(random):
    a, b1, b2 = (normal(random, shape, BF16) for shape in ((6, 32), (10, 32), (10, 32)))
    wide = np.full((6, 16), 7, BF16)
    assert tn.dual_gemm(a, b1, b2, out=wide[:, :10]) is not None
    np.testing.assert_array_equal(wide[:, :10], tn.dual_gemm(a, b1, b2))
    assert (wide[:, 10:] == 7).all()
    rows = np.zeros((6, 64), BF16)[:, :32]
    rows[:] = a
    np.testing.assert_array_equal(tn.dual_gemm(rows, b1, b2), tn.dual_gemm(a, b1, b2))


def test_weights_that_change_in_place_are_read_anew(random):
    a, b1, b2 = (normal(random, shape, np.float16) for shape in ((4, 32), (8, 32), (8, 32)))
    tn.dual_gemm(a, b1, b2)
    b2[:] = normal(random, (8, 32), np.float16)
    definition.check(tn.dual_gemm(a, b1, b2), *definition.dual_gemm(a, b1, b2))


@pytest.mark.parametrize("shape", [(0, 8, 16), (4, 0, 16)])
def test_empty_operands(shape):
    m, n, k = shape
    result = tn.dual_gemm(np.ones((m, k), np.float16), np.ones((n, k), np.float16), np.ones((n, k), np.float16))
    assert result.shape == (m, n) and (result == 0).all()


def test_nan_goes_where_the_definition_sends_it(random):
    a, b1, b2 = (normal(random, shape, np.float16) for shape in ((3, 16), (4, 16), (4, 16)))
    a[1, 3] = np.nan
    result = tn.dual_gemm(a, b1, b2)
    assert np.isnan(result[1]).all() and not np.isnan(result[[0, 2]]).any()


def offsets_of(counts):
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


COUNTS = [3, 0, 21, 1]


@pytest.mark.parametrize("order", [None, "gate_first", "up_first", "interleaved"])
def test_grouped_dual_gemm_packed(random, order):
    experts, n, k = len(COUNTS), 24, 40
    a = normal(random, (sum(COUNTS), k), BF16)
    gate, up = normal(random, (experts, n, k), BF16), normal(random, (experts, n, k), BF16) / BF16(8)
    bias1, bias2 = normal(random, (experts, n), np.float32), normal(random, (experts, n), np.float32)
    weights = random.random(len(a), np.float32)
    offsets = offsets_of(COUNTS)
    if order == "interleaved":
        fused, bias = np.stack([gate, up], 2).reshape(experts, 2 * n, k), np.stack([bias1, bias2], 2).reshape(experts, 2 * n)
    else:
        parts = slice(None, None, -1 if order == "up_first" else 1)
        fused, bias = np.concatenate([gate, up][parts], 1), np.concatenate([bias1, bias2][parts], 1)
    weights_given = dict(b1=gate, b2=up, bias1=bias1, bias2=bias2) if order is None else dict(b1=fused, bias1=bias, order=order)
    result = tn.grouped_dual_gemm(a, **weights_given, offsets=offsets, row_weights=weights, out_dtype=np.float32)
    for e, (first, end) in enumerate(zip(offsets, offsets[1:])):
        exact, error = definition.dual_gemm(a[first:end], gate[e], up[e], bias1=bias1[e], bias2=bias2[e])
        w = weights[first:end, None].astype(np.float64)
        definition.check(result[first:end], exact * w, error * w + 2.0**-23 * np.abs(exact * w))


def test_grouped_gemm_gathers_rows_and_skips(random):
    experts, n, k, tokens, top = len(COUNTS), 16, 24, 7, 2
    a, b = normal(random, (tokens, k), np.float16), normal(random, (experts, n, k), np.float16)
    offsets = offsets_of(COUNTS)
    ids = random.integers(-2, tokens * top + 2, offsets[-1]).astype(np.int32)
    out = np.full((len(ids), n), 5, np.float32)
    tn.grouped_gemm(a, b, offsets=offsets, row_ids=ids, row_ids_divisor=top, out=out)
    for e, (first, end) in enumerate(zip(offsets, offsets[1:])):
        for row in range(first, end):
            if 0 <= ids[row] < tokens * top:
                definition.check(out[row], *definition.product(a[ids[row] // top], b[e]))
            else:
                assert (out[row] == 5).all()


def test_grouped_slots(random):
    experts, capacity, n, k = 3, 6, 16, 32
    a, b = normal(random, (experts, capacity, k), BF16), normal(random, (experts, n, k), BF16)
    counts = np.array([2, 0, 6], np.int32)
    a[0, 2:] = np.nan
    result = tn.grouped_gemm(a, b, counts=counts)
    for e, count in enumerate(counts):
        definition.check(result[e, :count], *definition.product(a[e, :count], b[e]))
        assert (result[e, count:] == 0).all()


def test_grouped_nvfp4(random):
    weights = nvfp4(random, (2, 16, 32), np.array([0.5, 2], np.float32))
    a = normal(random, (5, 32), np.float16)
    result = tn.grouped_gemm(a, weights, offsets=np.array([0, 2, 5], np.int32), out_dtype=np.float32)
    dense = definition.nvfp4(weights.values, weights.scales, weights.global_scale[:, None, None])
    for e, rows in enumerate((slice(0, 2), slice(2, 5))):
        definition.check(result[rows], *definition.product(a[rows], dense[e]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", [{}, dict(causal=True), dict(window=(5, 0)), dict(softcap=3.0, scale=0.5)])
@pytest.mark.parametrize("width", [64, 128])
def test_attention_is_its_definition(random, dtype, options, width):
    batch, heads, kv_heads, queries, keys = 2, 4, 2, 19, 37
    q, k, v = (normal(random, (batch, h, s, width), dtype) for h, s in ((heads, queries), (kv_heads, keys), (kv_heads, keys)))
    result, lse = tn.attention(q, k, v, return_lse=True, **options)
    for b in range(batch):
        for h in range(heads):
            exact, error, sums, sums_error = definition.attention(q[b, h], k[b, h // 2], v[b, h // 2], **options)
            definition.check(result[b, h], exact, error)
            definition.check(lse[b, h], sums, sums_error)


def test_attention_of_transposed_views_and_rows_without_keys(random):
    q = normal(random, (1, 9, 2, 64), np.float16).transpose(0, 2, 1, 3)
    k = normal(random, (1, 4, 2, 64), np.float16).transpose(0, 2, 1, 3)
    result, lse = tn.attention(q, k, k, causal=True, return_lse=True)
    np.testing.assert_array_equal(result, tn.attention(np.ascontiguousarray(q), np.ascontiguousarray(k), k, causal=True))
    assert (result[:, :, :5] == 0).all() and (lse[:, :, :5] == -np.inf).all() and np.isfinite(lse[:, :, 5:]).all()


def test_attention_of_sequences_of_different_lengths(random):
    lengths_q, lengths_k = [3, 1, 12], [9, 4, 12]
    q = normal(random, (16, 4, 64), BF16)
    k, v = normal(random, (25, 1, 64), BF16), normal(random, (25, 1, 64), BF16)
    cu_q, cu_k = offsets_of(lengths_q), offsets_of(lengths_k)
    result, lse = tn.attention(q, k, v, causal=True, cu_seqlens_q=cu_q, cu_seqlens_k=cu_k, return_lse=True)
    assert lse.shape == (4, 16)
    for i in range(3):
        rows, keys = slice(cu_q[i], cu_q[i + 1]), slice(cu_k[i], cu_k[i + 1])
        for h in range(4):
            exact, error, *_ = definition.attention(q[rows, h], k[keys, 0], v[keys, 0], causal=True)
            definition.check(result[rows, h], exact, error)


def test_rows_behind_the_last_sequence_are_not_written(random):
    q, k = normal(random, (5, 2, 64), BF16), normal(random, (7, 1, 64), BF16)
    padded = dict(cu_seqlens_q=np.int32([0, 1, 3, 3, 3]), cu_seqlens_k=np.int32([0, 4, 6, 6, 6]))
    whole = tn.attention(q[:3], k[:6], k[:6], cu_seqlens_q=np.int32([0, 1, 3]), cu_seqlens_k=np.int32([0, 4, 6]))
    result, lse = tn.attention(q, k, k, return_lse=True, **padded)
    np.testing.assert_array_equal(result[:3], whole)
    assert not result[3:].any() and not lse[:, 3:].any()
    out = normal(random, (5, 2, 64), BF16)
    before = out.copy()
    tn.attention(q, k, k, out=out, **padded)
    np.testing.assert_array_equal(out[:3], whole)
    np.testing.assert_array_equal(out[3:], before[3:])


def pages_of(random, rows, lengths, page):
    """A pool whose pages lie in random order, NaN where no sequence has a key, and its table; `rows` one behind the other."""
    counts = [-(-length // page) for length in lengths]
    order = random.permutation(sum(counts) + 2)
    pool = np.full((len(order), page, *rows.shape[1:]), np.nan).astype(rows.dtype)
    table = np.full((len(lengths), max(counts) + 1), -1, np.int32)
    first = 0
    for sequence, length in enumerate(lengths):
        for place in range(counts[sequence]):
            table[sequence, place], order = order[0], order[1:]
            some = rows[first + place * page:first + min((place + 1) * page, length)]
            pool[table[sequence, place], :len(some)] = some
        first += length
    return pool, table


@pytest.mark.parametrize("options", [{}, dict(window=(6, -1), softcap=4.0)])
def test_attention_over_pages_is_its_definition_of_the_gathered_keys(random, options):
    lengths_q, lengths_k = [3, 1, 0, 5], [9, 33, 4, 5]
    q = normal(random, (9, 4, 64), BF16)
    k, v = normal(random, (51, 2, 64), BF16), normal(random, (51, 2, 128), BF16)
    sinks = np.linspace(-1, 2, 4, dtype=np.float32)
    (k_pool, table), cu_q, cu_k = pages_of(random, k, lengths_k, 8), offsets_of(lengths_q), offsets_of(lengths_k)
    v_pool = np.full((*k_pool.shape[:3], 128), np.nan).astype(BF16)
    for i, length in enumerate(lengths_k):
        for j in range(length):
            v_pool[table[i, j // 8], j % 8] = v[cu_k[i] + j]
    used = np.array(lengths_k, np.int32)
    result, lse = tn.attention(q, k_pool, v_pool, causal=True, cu_seqlens_q=cu_q, block_table=table, seqused_k=used, sinks=sinks,
                               return_lse=True, **options)
    assert result.shape == (9, 4, 128) and lse.shape == (4, 9)
    for i in range(4):
        rows, keys = slice(cu_q[i], cu_q[i + 1]), slice(cu_k[i], cu_k[i + 1])
        for h in range(4):
            exact, error, sums, sums_error = definition.attention(q[rows, h], k[keys, h // 2], v[keys, h // 2], causal=True,
                                                                  sink=sinks[h], **options)
            definition.check(result[rows, h], exact, error)
            definition.check(lse[h, rows], sums, sums_error)
    strided = np.full((4, 9), -5, np.int32)
    strided[:, :table.shape[1]] = table
    again = tn.attention(q, k_pool.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3), v_pool, causal=True, cu_seqlens_q=cu_q,
                         block_table=strided[:, :table.shape[1]], seqused_k=used, sinks=sinks, **options)
    np.testing.assert_array_equal(again, result)


def fp8_codes(random, *shape):
    """e4m3 of all exponents but the largest, with both signs; none is NaN."""
    return random.integers(0, 0x70, shape, np.uint8) | random.integers(0, 2, shape, np.uint8) << 7


def test_attention_with_keys_in_fp8(random):
    q = normal(random, (2, 4, 7, 64), np.float16)
    codes = fp8_codes(random, 2, 2, 2, 11, 64)
    k_scale = np.array([[0.002, 0.003], [0.004, 0.001]], np.float32)
    v_scale = np.array([[0.5]], np.float32)
    result = tn.attention(q, codes[0], codes[1], k_descale=k_scale, v_descale=v_scale)
    typed = codes.view(ml_dtypes.float8_e4m3fn)
    np.testing.assert_array_equal(tn.attention(q, typed[0], typed[1], k_descale=k_scale, v_descale=v_scale), result)
    for b in range(2):
        for h in range(4):
            k = definition.e4m3(codes[0, b, h // 2]) * k_scale[b, h // 2]
            exact, error, *_ = definition.attention(q[b, h], k, definition.e4m3(codes[1, b, h // 2]) * 0.5)
            definition.check(result[b, h], exact, error)


def test_attention_with_queries_in_fp8(random):
    q, (k, v) = fp8_codes(random, 2, 4, 7, 64), fp8_codes(random, 2, 2, 2, 11, 64)
    scales = dict(q_descale=np.array([[0.25, 0.5], [2.0, 0.125]], np.float32), k_descale=np.array([[0.004], [0.001]], np.float32),
                  v_descale=np.array([[0.5, 3.0]], np.float32))
    result, lse = tn.attention(q, k, v, return_lse=True, causal=True, **scales)
    assert result.dtype == BF16
    typed = (one.view(ml_dtypes.float8_e4m3fn) for one in (q, k, v))
    np.testing.assert_array_equal(tn.attention(*typed, causal=True, **scales), result)
    half, full = np.empty(q.shape, np.float16), np.empty(q.shape, BF16)
    assert tn.attention(q, k, v, causal=True, out=half, **scales) is half
    np.testing.assert_array_equal(tn.attention(q, k, v, causal=True, out=full, **scales), result)
    q_scale, k_scale, v_scale = (np.broadcast_to(one, (2, 2)) for one in scales.values())
    for b in range(2):
        for h in range(4):
            at = b, h // 2
            exact, error, sums, sums_error = definition.attention(definition.e4m3(q[b, h]) * q_scale[at], definition.e4m3(k[at]) * k_scale[at],
                                                                  definition.e4m3(v[at]) * v_scale[at], causal=True)
            for one in (result, half):
                definition.check(one[b, h], exact, error)
            definition.check(lse[b, h], sums, sums_error)


def test_queries_in_fp8_are_as_those_that_were_widened(random):
    """The descales are powers of two, by which queries are multiplied exactly."""
    q, (k, v) = fp8_codes(random, 2, 4, 7, 64), fp8_codes(random, 2, 2, 2, 11, 64)
    k_scale, q_scale = np.full((1, 1), 0.002, np.float32), np.array([[0.25, 0.5], [2.0, 0.125]], np.float32)
    for factor, given in ((np.ones((2, 2)), {}), (q_scale, dict(q_descale=q_scale))):
        widened = (definition.e4m3(q) * np.repeat(factor, 2, 1)[..., None, None]).astype(BF16)
        expected = tn.attention(widened, k, v, k_descale=k_scale).astype(np.float64)
        result = tn.attention(q, k, v, k_descale=k_scale, **given).astype(np.float64)
        np.testing.assert_allclose(result, expected, rtol=2.0**-7, atol=2.0**-12)


def test_queries_in_fp8_over_pages(random):
    lengths_q, lengths_k = [3, 1, 5], [9, 33, 5]
    q, k, v = (fp8_codes(random, *shape).view(ml_dtypes.float8_e4m3fn) for shape in ((9, 4, 64), (47, 2, 64), (47, 2, 64)))
    (k_pool, table), cu_q, cu_k = pages_of(random, k, lengths_k, 8), offsets_of(lengths_q), offsets_of(lengths_k)
    v_pool = np.full_like(k_pool, np.nan)
    for i, length in enumerate(lengths_k):
        for j in range(length):
            v_pool[table[i, j // 8], j % 8] = v[cu_k[i] + j]
    q_scale, k_scale = np.array([[0.5, 2.0], [1.0, 0.25], [4.0, 1.0]], np.float32), np.full((1, 1), 0.002, np.float32)
    result = tn.attention(q, k_pool, v_pool, causal=True, cu_seqlens_q=cu_q, block_table=table, seqused_k=np.array(lengths_k, np.int32),
                          q_descale=q_scale, k_descale=k_scale)
    assert result.dtype == BF16
    for i in range(3):
        rows, keys = slice(cu_q[i], cu_q[i + 1]), slice(cu_k[i], cu_k[i + 1])
        for h in range(4):
            exact, error, *_ = definition.attention(q[rows, h].astype(np.float64) * q_scale[i, h // 2],
                                                    k[keys, h // 2].astype(np.float64) * k_scale[0, 0], v[keys, h // 2], causal=True)
            definition.check(result[rows, h], exact, error)


class Exported:
    """An array that DLPack alone shows."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **_):
        return self._array.__dlpack__()


def test_arrays_by_dlpack_and_by_array_interface(random):
    a, b1, b2 = (normal(random, shape, np.float16) for shape in ((5, 32), (8, 32), (8, 32)))
    expected = tn.dual_gemm(a, b1, b2)
    np.testing.assert_array_equal(tn.dual_gemm(Exported(a), Exported(b1), Exported(b2)), expected)
    np.testing.assert_array_equal(tn.dual_gemm(Exported(a[:, ::1]), memoryview_of(b1), b2), expected)


def memoryview_of(array):
    class Interface:
        __array_interface__ = array.__array_interface__
        owner = array

    return Interface()


def test_many_threads_share_plans(random):
    a, b1, b2 = (normal(random, shape, np.float16) for shape in ((33, 256), (64, 256), (64, 256)))
    expected = tn.dual_gemm(a, b1, b2)
    wrong = []

    def work():
        for _ in range(20):
            if not np.array_equal(tn.dual_gemm(a, b1, b2), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_forked_process_computes_too(random):
    a, b1, b2 = (normal(random, shape, np.float16) for shape in ((33, 256), (512, 256), (512, 256)))
    expected = tn.dual_gemm(a, b1, b2, threads=2)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(tn.dual_gemm(a, b1, b2, threads=2), expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_do_not_change_the_result(random):
    a, b1, b2 = (normal(random, shape, BF16) for shape in ((33, 256), (64, 256), (64, 256)))
    np.testing.assert_array_equal(tn.dual_gemm(a, b1, b2, threads=1), tn.dual_gemm(a, b1, b2, threads=3))


def test_plans_of_calls_that_differ_in_one_option_are_not_mixed_up(random):
    """Each result differs from every other: what an option says is in what plans are kept by."""
    q, k = normal(random, (1, 2, 24, 64), np.float16), normal(random, (1, 2, 24, 64), np.float16)
    a, b1 = normal(random, (8, 32), np.float16), normal(random, (2, 16, 32), np.float16)
    offsets, ids = np.array([0, 3, 8], np.int32), np.arange(8, dtype=np.int32)
    weights = random.random(8, np.float32)
    kinds = [
        [lambda o=o: tn.attention(q, k, k, **o) for o in (
            {}, dict(causal=True), dict(window=(2, -1)), dict(window=(-1, 2)), dict(window=(2, 2)), dict(scale=0.3),
            dict(softcap=0.5))],
        [lambda o=o: tn.dual_gemm(a, b1[0], b1[1], **o) for o in (
            {}, dict(activation="gelu_tanh"), dict(activation="swiglu_clamped"), dict(activation="swiglu_clamped", alpha=1),
            dict(activation="swiglu_clamped", limit=0.5), dict(activation="swiglu_clamped", up_offset=0))],
        [lambda o=o: tn.grouped_dual_gemm(a, b1, offsets=offsets, **o) for o in (
            dict(order="gate_first"), dict(order="up_first"), dict(order="interleaved"),
            dict(order="up_first", row_weights=weights), dict(order="up_first", row_ids=ids[::-1].copy()),
            dict(order="up_first", row_ids=ids, row_ids_divisor=2), dict(order="up_first", activation="gelu_tanh"),
            dict(order="up_first", bias1=np.ones((2, 16), np.float32)))],
    ]
    for calls in kinds:
        results = [call().astype(np.float32) for call in calls]
        for i, one in enumerate(results):
            np.testing.assert_array_equal(calls[i]().astype(np.float32), one)
            assert not any(np.array_equal(one, other) for other in results[:i]), i


def test_a_call_like_one_before_is_told_from_it_by_where_its_arrays_lie(random):
    q = normal(random, (1, 4, 8, 64), np.float16)
    expected, sums = tn.attention(q, q, q, return_lse=True)
    out = np.zeros((1, 8, 4, 64), np.float16).transpose(0, 2, 1, 3)
    np.testing.assert_array_equal(tn.attention(q, q, q, out=out), expected)
    np.testing.assert_array_equal(tn.attention(q, q, q), expected)
    np.testing.assert_array_equal(tn.attention(q, q, q, return_lse=True)[1], sums)

    rows, offsets = normal(random, (8, 1, 64), np.float16), np.array([0, 3, 8], np.int32)
    tn.attention(rows, rows, rows, cu_seqlens_q=offsets, cu_seqlens_k=offsets)
    wrong = [offsets.astype(np.float32), np.array([[0, 3, 8]], np.int32)]
    for one in wrong:
        with pytest.raises(thresher.InvalidArgumentError, match="cu_seqlens_k (is float32|has 2 dimensions)"):
            tn.attention(rows, rows, rows, cu_seqlens_q=offsets, cu_seqlens_k=one)


def as_columns(values, dtype):
    """The same numbers as every second column of a wider array."""
    wide = np.full((*values.shape[:-1], 2 * values.shape[-1]), 77, dtype)
    wide[..., ::2] = values
    return wide[..., ::2]


@pytest.mark.parametrize("dtype, view", [(np.int64, np.asarray), (np.int64, as_columns), (np.int32, as_columns)])
def test_ids_and_offsets_may_be_int64_and_strided(random, dtype, view):
    def other(numbers):
        return view(numbers.astype(dtype), dtype)

    a, b = normal(random, (9, 32), np.float16), normal(random, (3, 8, 32), np.float16)
    offsets, ids, counts = np.array([0, 3, 3, 9], np.int32), np.arange(9, dtype=np.int32)[::-1].copy(), np.array([4, 0, 2], np.int32)
    assert (tn.grouped_gemm(a, b, offsets=other(offsets), row_ids=other(ids)) == tn.grouped_gemm(a, b, offsets=offsets, row_ids=ids)).all()
    slots = normal(random, (3, 4, 32), np.float16)
    assert (tn.grouped_gemm(slots, b, counts=other(counts)) == tn.grouped_gemm(slots, b, counts=counts)).all()
    q, k = normal(random, (7, 2, 64), np.float16), normal(random, (9, 2, 64), np.float16)
    lengths_q, lengths_k = np.array([0, 2, 7], np.int32), np.array([0, 4, 9], np.int32)
    assert (tn.attention(q, k, k, cu_seqlens_q=other(lengths_q), cu_seqlens_k=other(lengths_k)) ==
            tn.attention(q, k, k, cu_seqlens_q=lengths_q, cu_seqlens_k=lengths_k)).all()
    pool, table, used = normal(random, (6, 4, 2, 64), np.float16), np.array([[5, 1], [2, 0]], np.int32), np.array([7, 3], np.int32)
    assert (tn.attention(q, pool, pool, cu_seqlens_q=other(lengths_q), block_table=other(table), seqused_k=other(used)) ==
            tn.attention(q, pool, pool, cu_seqlens_q=lengths_q, block_table=table, seqused_k=used)).all()
    pages, others = ([np.zeros((3, 4, 2, 64), np.float16) for _ in range(2)] for _ in range(2))
    places = np.array([3, 11, -1, 0, 8, 7, 5], dtype)
    tn.append(q, q, *pages, places, positions=places + 1)
    tn.append(q, q, *others, view(places, dtype), positions=view(places + 1, dtype))
    assert (pages[0] == others[0]).all() and (pages[1] == others[1]).all() and (pages[0] != 0).any()


@pytest.mark.parametrize("dtype", [np.float16, BF16, np.float32])
def test_weights_of_rows_may_have_16_bits_and_be_strided(random, dtype):
    x, gate_up, down = (normal(random, shape, np.float16) for shape in ((5, 32), (3, 32, 32), (3, 32, 16)))
    packed, ids = (tn.pack_grouped(gate_up, order="gate_first"), tn.pack_grouped(down)), random.integers(0, 3, (5, 2)).astype(np.int32)
    weights = random.standard_normal((5, 2)).astype(dtype)
    expected = tn.moe(x, *packed, ids, weights.astype(np.float32))
    for given in (weights, as_columns(weights, dtype)):
        assert (tn.moe(x, *packed, as_columns(ids, np.int64), given) == expected).all()
    rows, offsets = random.standard_normal(5).astype(dtype), np.array([0, 1, 3, 5], np.int32)
    expected = tn.grouped_gemm(x, gate_up, offsets=offsets, row_weights=rows.astype(np.float32))
    for given in (rows, as_columns(rows, dtype)):
        assert (tn.grouped_gemm(x, gate_up, offsets=offsets, row_weights=given) == expected).all()


def test_no_more_plans_are_kept_than_were_used_last(monkeypatch, random):
    import thresher._dual_gemm
    from thresher import _plans

    kept = _plans.Calls(most=20, most_plans=3)
    monkeypatch.setattr(thresher._dual_gemm, "calls", kept)
    before = len(_plans.plans._values)

    def call(rows, limit):
        a, b = np.ones((rows, 32), np.float16), weights[0]
        return tn.dual_gemm(a, b, b, activation="swiglu_clamped", limit=limit)

    weights = [normal(random, (8, 32), np.float16)]
    for rows in (1, 2, 3):                       # calls that share a plan
        call(rows, 1.0)
    assert len(_plans.plans._values) == before + 1 and len(kept._values) == 3
    for limit in (2.0, 3.0):
        call(1, limit)
    call(2, 1.0)                                 # used again, and with it its plan
    call(1, 4.0)
    assert len(_plans.plans._values) == before + 3 and len(kept._uses) == 3
    limits = {constants[1] for key in kept._values for constants in [key[5][1]]}
    assert limits == {1.0, 3.0, 4.0}
    for index in range(100):
        call(index % 16 + 1, 1.0)
        call(1, 5.0 + index)
        assert len(_plans.plans._values) <= before + 3 and len(kept._values) <= 20


def test_a_call_that_is_refused_keeps_no_plan(random):
    from thresher import _plans

    b, before = normal(random, (8, 32), np.float16), len(_plans.plans._values)
    for rows in (17, 33, 65):
        with pytest.raises(thresher.InvalidArgumentError, match="out repeats one row"):
            tn.dual_gemm(np.ones((rows, 32), np.float16), b, b, out=np.lib.stride_tricks.as_strided(np.zeros(8, np.float16), (rows, 8), (0, 2)))
    assert len(_plans.plans._values) == before


@pytest.mark.parametrize("weights", ["float16", "bfloat16", "fp8"])
@pytest.mark.parametrize("tokens", ["float16", "bfloat16", "fp8", "nvfp4"])
def test_the_type_of_an_output_that_nobody_says(random, tokens, weights):
    def matrix(kind, *shape):
        *outer, rows, k = shape
        if kind == "fp8":
            return thresher.Fp8(random.integers(0, 100, shape, np.uint8), np.full((*outer, rows), 0.01, np.float32), per="row")
        if kind == "nvfp4":
            return thresher.Nvfp4(random.integers(0, 256, (*outer, rows, k // 2), np.uint8), random.integers(40, 60, (*outer, rows, k // 16), np.uint8))
        return normal(random, shape, {"float16": np.float16, "bfloat16": BF16}[kind])

    expected = next((kind for kind in (tokens, weights) if kind.endswith("16")), "bfloat16")
    a, b, stack, rows = matrix(tokens, 5, 64), matrix(weights, 64, 64), matrix(weights, 1, 64, 64), dict(offsets=np.array([0, 5], np.int32))
    pair, one = tn.pack(b, b), tn.pack_gemm(b)
    pairs, ones = tn.pack_grouped(stack, stack), tn.pack_grouped(stack)
    for result in (tn.dual_gemm(a, b, b), tn.gemm(a, b), tn.grouped_dual_gemm(a, stack, stack, **rows), tn.grouped_gemm(a, stack, **rows),
                   tn.dual_gemm_packed(a, pair), tn.gemm_packed(a, one), tn.grouped_dual_gemm_packed(a, pairs, **rows),
                   tn.grouped_gemm_packed(a, ones, **rows), tn.gated_mlp(a, pair, one),
                   tn.moe(a, pairs, ones, np.zeros((5, 1), np.int32), np.ones((5, 1), np.float32))):
        assert result.dtype.name == expected


def test_bfloat16_without_ml_dtypes_is_refused_with_a_sentence(random, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    codes = thresher.Fp8(random.integers(0, 100, (8, 32), np.uint8), np.ones(8, np.float32), per="row")
    with pytest.raises(thresher.InvalidArgumentError, match="NumPy has no bfloat16 for the output: install ml_dtypes, or give out_dtype or out"):
        tn.gemm(codes, codes)
    assert tn.gemm(codes, codes, out_dtype="float32").dtype == np.float32
