"""Append: new tokens turned, and written to their rows of the pages, from NumPy and from torch."""

import definition
import ml_dtypes
import numpy as np
import pytest

import thresher
import thresher.numpy as tn

try:
    import torch

    import thresher.torch as tt
except ImportError:
    torch = None

BF16, FP8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
TOKENS, HEADS, KV_HEADS, DIM, VALUE_DIM, PAGES, PAGE = 6, 4, 2, 64, 32, 5, 3
POSITIONS = np.array([0, 1, 7, 4095, 100, 31], np.int64)
SLOTS = np.array([14, 0, -1, 7, 3, 8], np.int64)
WRITTEN = SLOTS >= 0

with_torch = pytest.mark.skipif(torch is None, reason="torch is not installed: the tests of thresher.torch are left out")


@pytest.fixture
def random():
    return np.random.default_rng(20261127)


def operands(random, dtype=np.float16, pages=None, written=0):
    """q, k, v, and pages of a number that nothing else is."""
    q, k, v = (random.standard_normal((TOKENS, *shape)).astype(dtype) for shape in ((HEADS, DIM), (KV_HEADS, DIM), (KV_HEADS, VALUE_DIM)))
    k_cache, v_cache = (np.full((PAGES, PAGE, KV_HEADS, width), written, pages or dtype) for width in (DIM, VALUE_DIM))
    return q, k, v, k_cache, v_cache


def rows_of(cache):
    return cache.reshape(PAGES * PAGE, KV_HEADS, -1)


def expect_untouched(cache, written):
    others = np.delete(rows_of(cache), SLOTS[WRITTEN], 0)
    assert (others == np.full((), written, cache.dtype)).all()


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize("options", [{}, dict(pairs="interleaved"), dict(pairs="none"), dict(rotary_dim=32, theta=500.0),
                                     dict(pairs="interleaved", rotary_dim=24)])
def test_append_is_its_definition(random, dtype, options):
    q, k, v, k_cache, v_cache = operands(random, dtype, written=7)
    positions = None if options.get("pairs") == "none" else POSITIONS
    keys = np.empty_like(k)
    result = tn.append(k, v, k_cache, v_cache, SLOTS, positions=positions, q=q, k_out=keys, **options)
    assert result.shape == q.shape and result.dtype == q.dtype
    definition.check(result, *definition.turned(q, POSITIONS, **options))
    definition.check(keys, *definition.turned(k, POSITIONS, **options))
    np.testing.assert_array_equal(rows_of(k_cache)[SLOTS[WRITTEN]], keys[WRITTEN])
    np.testing.assert_array_equal(rows_of(v_cache)[SLOTS[WRITTEN]], v[WRITTEN])
    for cache in (k_cache, v_cache):
        expect_untouched(cache, 7)


@pytest.mark.parametrize("pairs", ["halves", "interleaved"])
def test_a_table_in_place_of_theta(random, pairs):
    q, k, v, k_cache, v_cache = operands(random)
    table, positions = random.standard_normal((50, 48)).astype(np.float32), np.arange(TOKENS, dtype=np.int32) * 9
    result = tn.append(k, v, k_cache, v_cache, SLOTS.astype(np.int32), positions=positions, q=q, pairs=pairs, rotary_dim=48, cos_sin=table)
    definition.check(result, *definition.turned(q, positions, pairs, 48, table=table))
    of_written = definition.turned(k, positions, pairs, 48, table=table)
    definition.check(rows_of(k_cache)[SLOTS[WRITTEN]], *(one[WRITTEN] for one in of_written))


@pytest.mark.parametrize("shared", [False, True])
def test_pages_in_fp8(random, shared):
    q, k, v, k_cache, v_cache = operands(random, BF16, FP8, written=5)
    k_descale, v_descale = (np.array([0.02] if shared else [0.02, 0.001], np.float32) for _ in range(2))
    tn.append(k, v, k_cache, v_cache, SLOTS, positions=POSITIONS, k_descale=k_descale, v_descale=v_descale)
    exact, error = definition.turned(k, POSITIONS)
    factors = np.broadcast_to(k_descale.astype(np.float64), KV_HEADS)[:, None]
    definition.check_fp8(rows_of(k_cache)[SLOTS[WRITTEN]].view(np.uint8), factors, exact[WRITTEN], error[WRITTEN])
    definition.check_fp8(rows_of(v_cache)[SLOTS[WRITTEN]].view(np.uint8), factors, v[WRITTEN].astype(np.float64), 0)
    for cache in (k_cache, v_cache):
        expect_untouched(cache, 5)
    as_bytes = [np.full_like(one, 5).view(np.uint8) for one in (k_cache, v_cache)]
    tn.append(k, v, *as_bytes, SLOTS, positions=POSITIONS, k_descale=k_descale, v_descale=v_descale)
    np.testing.assert_array_equal(as_bytes[0], k_cache.view(np.uint8))
    np.testing.assert_array_equal(as_bytes[1], v_cache.view(np.uint8))


def test_in_place_in_views_and_in_any_order_of_memory(random):
    q, k, v, k_cache, v_cache = operands(random, BF16)
    expected = tn.append(k, v, k_cache, v_cache, SLOTS, positions=POSITIONS, q=q)
    together = np.concatenate([one.reshape(TOKENS, -1) for one in (q, k, v)], 1)
    ends = np.cumsum([HEADS * DIM, KV_HEADS * DIM])
    q, k, v = (part.reshape(TOKENS, -1, width) for part, width in zip(np.split(together, ends, 1), (DIM, DIM, VALUE_DIM)))
    assert q.base is not None
    pool = np.zeros((PAGES, KV_HEADS, PAGE, DIM + VALUE_DIM), BF16)
    in_pool = pool.transpose(0, 2, 1, 3)
    result = tn.append(k, v, in_pool[..., :DIM], in_pool[..., DIM:], SLOTS, positions=POSITIONS, q=q, q_out=q, k_out=k, threads=2)
    assert result is q
    np.testing.assert_array_equal(q, expected)
    np.testing.assert_array_equal(in_pool[..., :DIM], k_cache)
    np.testing.assert_array_equal(in_pool[..., DIM:], v_cache)
    np.testing.assert_array_equal(k[WRITTEN], rows_of(k_cache)[SLOTS[WRITTEN]])


def test_attention_sees_what_was_appended(random):
    q, k, _, k_cache, _ = operands(random)
    v_cache = np.zeros_like(k_cache)
    table, used, starts = np.array([[2, 0]], np.int32), np.array([TOKENS], np.int32), np.array([0, TOKENS], np.int32)
    slots = np.array([table[0, token // PAGE] * PAGE + token % PAGE for token in range(TOKENS)], np.int64)
    turned = tn.append(k, k, k_cache, v_cache, slots, positions=POSITIONS, q=q)
    result = tn.attention(turned, k_cache, v_cache, causal=True, cu_seqlens_q=starts, block_table=table, seqused_k=used)
    keys = tn.append(k, k, np.zeros_like(k_cache), np.zeros_like(v_cache), slots, positions=POSITIONS, q=k)
    np.testing.assert_array_equal(result, tn.attention(turned, keys, k, causal=True, cu_seqlens_q=starts, cu_seqlens_k=starts))


def test_without_queries_or_tokens(random):
    q, k, v, k_cache, v_cache = operands(random)
    assert tn.append(k, v, k_cache, v_cache, SLOTS, positions=POSITIONS) is None
    assert k_cache.any()
    kept = k_cache.copy()
    nothing = np.empty(0, np.int64)
    assert tn.append(k[:0], v[:0], k_cache, v_cache, nothing, positions=nothing, q=q[:0]).shape == (0, HEADS, DIM)
    np.testing.assert_array_equal(k_cache, kept)


def read_only(array):
    array.flags.writeable = False
    return array


F16, F32, I32, I64 = np.float16, np.float32, np.int32, np.int64


def ones(*shape, dtype=F16):
    return np.ones(shape, dtype)


@pytest.mark.parametrize("wrong, sentence", [
    (dict(k=None), "k is None, expected a NumPy array"),
    (dict(k=ones(6, 64)), r"k has 2 dimensions, expected 3: \[T, Hk, D\]"),
    (dict(k=ones(6, 2, 40), k_cache=ones(5, 3, 2, 40)), "the last dimension of q and k is 40, expected a multiple of 16 up to 1024"),
    (dict(k=ones(6, 2, 64, dtype=F32)), "k is float32, expected float16 or bfloat16"),
    (dict(v=ones(6, 2, 32, dtype=BF16)), "v is bfloat16, expected float16"),
    (dict(v=ones(5, 2, 32)), r"v is \[5, 2, 32\], expected \[6, 2, 32\]"),
    (dict(q=ones(5, 4, 64)), r"q is \[5, 4, 64\], expected \[6, 4, 64\]"),
    (dict(q_out=ones(6, 4, 64), q=None), "q_out is given without q"),
    (dict(q_out=ones(6, 4, 32)), r"q_out is \[6, 4, 32\], expected \[6, 4, 64\]"),
    (dict(q_out=[1]), "q_out is of the type list, expected a NumPy array"),
    (dict(k_out=ones(6, 2, 32)), r"k_out is \[6, 2, 32\], expected \[6, 2, 64\]"),
    (dict(k_cache=ones(5, 3, 64)), r"k_cache has 3 dimensions, expected 4: \[pages, page size, Hk, D\]"),
    (dict(k_cache=ones(5, 3, 1, 64)), r"k_cache is \[5, 3, 1, 64\], expected \[5, 3, 2, 64\]"),
    (dict(v_cache=ones(5, 4, 2, 32)), r"v_cache is \[5, 4, 2, 32\], expected \[5, 3, 2, 32\]"),
    (dict(k_cache=read_only(ones(5, 3, 2, 64))), "k_cache is read-only"),
    (dict(k_cache=ones(5, 3, 2, 64, dtype=BF16)), "k_cache is bfloat16, expected float16, float8_e4m3fn or uint8"),
    (dict(k_cache=[1]), "k_cache is of the type list"),
    (dict(slots=None), "slots is None"),
    (dict(slots=np.zeros(6, F32)), "slots is float32, expected int32 or int64"),
    (dict(slots=np.zeros(6)), "slots is float64, expected int32 or int64"),
    (dict(slots=np.arange(5)), r"slots has the shape \[5\], expected \[6\]: one for each token of k"),
    (dict(slots=np.arange(6, dtype=I32)), "one of positions and slots is int32 and the other int64"),
    (dict(slots=np.array([0, 1, 2, 3, 4, 15])), r"slots\[5\] is 15, expected less than the 15 rows of all pages"),
    (dict(slots=np.array([0, 1, 2, 3, 4, 2])), "slots name the row 2 twice"),
    (dict(positions=None), "positions are missing"),
    (dict(positions=np.array([0, 1, 2, -3, 4, 5])), r"positions\[3\] is -3, expected 0 to"),
    (dict(cos_sin=ones(5, 64, dtype=F32)), r"positions\[5\] is 5, expected 0 to 4"),
    (dict(cos_sin=ones(9, 32, dtype=F32)), r"cos_sin is \[9, 32\], expected \[9, 64\]"),
    (dict(cos_sin=ones(9, 64)), "cos_sin is float16, expected float32"),
    (dict(cos_sin=ones(0, 64, dtype=F32)), "cos_sin has no positions, expected one row for each, or None for theta"),
    (dict(pairs="all"), "pairs is 'all', expected one of none, halves, interleaved"),
    (dict(rotary_dim=66), "rotary_dim is 66, expected an even number up to the last dimension of q and k, which is 64"),
    (dict(rotary_dim=0.5), "rotary_dim is 0.5, expected a whole number"),
    (dict(theta=0), "^theta is 0, expected a finite number above 0"),
    (dict(theta="x"), "theta is 'x', expected a number"),
    (dict(theta=500.0, cos_sin=ones(9, 64, dtype=F32)), "theta is 500, but cos_sin is given in its place: leave one of them out"),
    (dict(theta=500.0, pairs="none"), "theta is 500, but pairs is 'none' and nothing turns"),
    (dict(k_descale=ones(2, dtype=F32)), "k_descale is given, but the pages are not float8_e4m3fn"),
    (dict(k_descale=ones(1, 2, dtype=F32)), r"k_descale has 2 dimensions, expected 1: \[Hk\]"),
])
def test_what_is_refused(wrong, sentence):
    given = dict(k=ones(6, 2, 64), v=ones(6, 2, 32), k_cache=ones(5, 3, 2, 64), v_cache=ones(5, 3, 2, 32), slots=np.arange(6), q=ones(6, 4, 64),
                 positions=np.arange(6)) | wrong
    before = {name: one.copy() for name, one in given.items() if isinstance(one, np.ndarray)}
    with pytest.raises(thresher.InvalidArgumentError, match=sentence):
        tn.append(**given)
    for name, one in before.items():
        np.testing.assert_array_equal(given[name], one, err_msg=name)


def test_what_lies_in_the_memory_of_other_things_is_refused():
    k, v, k_cache, v_cache = ones(6, 2, 64), ones(6, 2, 32), ones(5, 3, 2, 64), ones(5, 3, 2, 64)
    with pytest.raises(thresher.InvalidArgumentError, match="k_cache shares memory with v_cache"):
        tn.append(k, k, k_cache, k_cache, np.arange(6), positions=np.arange(6))
    with pytest.raises(thresher.InvalidArgumentError, match="k_out shares memory with k_cache"):
        tn.append(k, v, k_cache, v_cache[..., :32], np.arange(6), positions=np.arange(6), k_out=k_cache.reshape(15, 2, 64)[:6])
    with pytest.raises(thresher.InvalidArgumentError, match="k_cache shares memory with v"):
        tn.append(k, k_cache.reshape(15, 2, 64)[:6], k_cache, v_cache, np.arange(6), positions=np.arange(6))
    assert (k_cache == 1).all()


def in_torch(*arrays):
    """The same numbers in memory of their own."""
    def one(array):
        if array is None:
            return None
        bits = {"bfloat16": (np.int16, torch.bfloat16), "float8_e4m3fn": (np.uint8, torch.float8_e4m3fn)}.get(array.dtype.name)
        return torch.from_numpy(array.copy()) if bits is None else torch.from_numpy(array.view(bits[0]).copy()).view(bits[1])

    return tuple(map(one, arrays))


def bits_of(tensor):
    return tensor.contiguous().view(torch.uint8).numpy()


def expect_same(tensor, array):
    np.testing.assert_array_equal(bits_of(tensor), np.ascontiguousarray(array).view(np.uint8))


@with_torch
@pytest.mark.parametrize("dtype, pages", [(np.float16, None), (BF16, None), (BF16, FP8)])
def test_torch_gives_the_bits_of_numpy(random, dtype, pages):
    q, k, v, k_cache, v_cache = operands(random, dtype, pages)
    options = dict(pairs="interleaved", rotary_dim=32)
    descales = dict(k_descale=np.array([0.1], np.float32), v_descale=np.array([0.2, 0.3], np.float32)) if pages else {}
    tensors = in_torch(k, v, k_cache, v_cache, SLOTS)
    named = dict(zip(descales, in_torch(*descales.values())))
    with torch.inference_mode():
        queries, positions = in_torch(q, POSITIONS)
        keys = torch.empty_like(tensors[0])
        for _ in range(3):
            result = tt.append(*tensors, positions=positions, q=queries, k_out=keys, **options, **named)
    expected_keys = np.empty_like(k)
    expect_same(result, tn.append(k, v, k_cache, v_cache, SLOTS, positions=POSITIONS, q=q, k_out=expected_keys, **options, **descales))
    expect_same(keys, expected_keys)
    expect_same(tensors[2], k_cache)
    expect_same(tensors[3], v_cache)


def case(random):
    q, k, v, k_cache, v_cache = operands(random, BF16)
    return in_torch(k_cache, v_cache, k, v, SLOTS), dict(zip(("q", "positions"), in_torch(q, POSITIONS)))


@with_torch
def test_opcheck(random):
    positional, named = case(random)
    named |= dict(q_out=torch.empty_like(named["q"]), k_out=torch.empty_like(positional[2]))
    with torch.no_grad():
        torch.library.opcheck(torch.ops.thresher.append.default, positional, named)
        torch.library.opcheck(torch.ops.thresher.append.default, positional, dict(pairs="none"))


@with_torch
def test_compiled(random):
    (k_cache, v_cache, k, v, slots), named = case(random)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def layer(k, k_cache, v_cache):
        turned = tt.append(k * 2, v, k_cache, v_cache, slots, **named)
        return turned + 1, k_cache.sum()

    compiled, eager = ([k_cache.clone(), v_cache.clone()] for _ in range(2))
    with torch.no_grad():
        result, total = layer(k, *compiled)
        assert torch.equal(result, tt.append(k * 2, v, *eager, slots, **named) + 1)
    assert torch.equal(compiled[0], eager[0]) and torch.equal(compiled[1], eager[1]) and torch.equal(total, eager[0].sum())
    assert eager[0].any()


@with_torch
def test_in_place_by_torch(random):
    (k_cache, v_cache, k, v, slots), named = case(random)
    pages = k_cache.clone(), v_cache.clone()
    with torch.inference_mode():
        expected = tt.append(k, v, k_cache, v_cache, slots, **named)
        for _ in range(2):
            q = named["q"].clone()
            assert tt.append(k, v, *pages, slots, positions=named["positions"], q=q, q_out=q) is q and torch.equal(q, expected)
    assert torch.equal(pages[0], k_cache) and torch.equal(pages[1], v_cache)


@with_torch
def test_what_torch_refuses(random):
    (k_cache, v_cache, k, v, slots), named = case(random)
    with torch.inference_mode():
        tt.append(k, v, k_cache, v_cache, slots, **named)  # a call that is kept
        kept = k_cache.clone()
        for change, sentence in ((dict(slots=torch.zeros(TOKENS, dtype=torch.int64)), "slots name the row 0 twice"),
                                 (dict(slots=slots.float()), "slots is float32, expected int32 or int64"),
                                 (dict(slots=slots.double()), "slots is float64"),
                                 (dict(v=None), "v is None, expected a tensor"),
                                 (dict(positions=None), "positions are missing"),
                                 (dict(k_out=k_cache.reshape(PAGES * PAGE, KV_HEADS, DIM)[:TOKENS]), "k_out shares memory with k_cache")):
            with pytest.raises(thresher.InvalidArgumentError, match=sentence):
                tt.append(**(dict(k=k, v=v, k_cache=k_cache, v_cache=v_cache, slots=slots) | named | change))
        assert torch.equal(k_cache, kept)
    for change in (dict(k=k.clone().requires_grad_()), dict(cos_sin=torch.ones(TOKENS, DIM).requires_grad_())):
        with pytest.raises(thresher.UnsupportedError, match="no backward pass"):
            tt.append(**(dict(k=k, v=v, k_cache=k_cache, v_cache=v_cache, slots=slots) | named | change))
