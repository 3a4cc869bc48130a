"""Arguments of thresher.torch: those of a wrong type are refused in one sentence, those of a wider one are taken, and types that nobody says."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: the tests of thresher.torch are left out")

import thresher  # noqa: E402
import thresher.numpy as tn  # noqa: E402
import thresher.torch as tt  # noqa: E402
from thresher.torch._native import call as called  # noqa: E402

ops = torch.ops.thresher


@pytest.fixture(autouse=True)
def inference():
    torch.manual_seed(20261128)
    with torch.inference_mode():
        yield


def normal(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape).to(dtype)


A, B = torch.ones(5, 64, dtype=torch.bfloat16), torch.ones(24, 64, dtype=torch.bfloat16)
ROWS, EXPERTS = torch.ones(11, 32, dtype=torch.bfloat16), torch.ones(3, 16, 32, dtype=torch.bfloat16)
OFFSETS = torch.tensor([0, 3, 3, 11], dtype=torch.int32)
Q, KEYS = torch.ones(1, 2, 5, 64, dtype=torch.bfloat16), torch.ones(9, 2, 64, dtype=torch.bfloat16)
LENGTHS = torch.tensor([0, 4, 9], dtype=torch.int32)
PACKED, DOWN = tt.pack(B, B), tt.pack_gemm(torch.ones(64, 24, dtype=torch.bfloat16))
MANY, BELOW = tt.pack_grouped(EXPERTS, EXPERTS), tt.pack_grouped(torch.ones(3, 32, 16, dtype=torch.bfloat16))
IDS, WEIGHTS = torch.zeros(11, 2, dtype=torch.int32), torch.ones(11, 2)
GROUPED = dict(offsets=OFFSETS)


def appended(**options):
    pages = [torch.zeros(5, 4, 2, 64, dtype=torch.bfloat16) for _ in range(2)]
    return tt.append(KEYS, KEYS, *pages, torch.arange(9), positions=torch.arange(9), **options)


CALLS = {
    "dual_gemm": lambda **o: tt.dual_gemm(A, B, B, **o),
    "dual_gemm_packed": lambda n=24, **o: tt.dual_gemm_packed(A, PACKED, n, **o),
    "gemm": lambda **o: tt.gemm(A, B, **o),
    "gemm_packed": lambda n=24, **o: tt.gemm_packed(A, tt.pack_gemm(B), n, **o),
    "gated_mlp": lambda **o: tt.gated_mlp(A, PACKED, DOWN, **o),
    "moe": lambda ids=IDS, weights=WEIGHTS, **o: tt.moe(ROWS, MANY, BELOW, ids, weights, **o),
    "grouped_dual_gemm": lambda **o: tt.grouped_dual_gemm(ROWS, EXPERTS, EXPERTS, **{**GROUPED, **o}),
    "grouped_gemm": lambda **o: tt.grouped_gemm(ROWS, EXPERTS, **{**GROUPED, **o}),
    "grouped_dual_gemm_packed": lambda n=16, **o: tt.grouped_dual_gemm_packed(ROWS, MANY, n, **{**GROUPED, **o}),
    "grouped_gemm_packed": lambda n=16, **o: tt.grouped_gemm_packed(ROWS, tt.pack_grouped(EXPERTS), n, **{**GROUPED, **o}),
    "attention": lambda **o: tt.attention(Q, Q, Q, **o),
    "append": appended,
    "pack": lambda **o: tt.pack(B, B, **o),
    "pack_gemm": lambda **o: tt.pack_gemm(B, **o),
    "pack_grouped": lambda b2=None, **o: tt.pack_grouped(EXPERTS, b2, **o),
}
ACTIVATED = ("dual_gemm", "dual_gemm_packed", "gated_mlp", "moe", "grouped_dual_gemm", "grouped_dual_gemm_packed")
PRODUCTS = [name for name in CALLS if name not in ("attention", "append") and not name.startswith("pack")]
WRONG = [
    *((name, dict(activation=odd), "activation is .*expected one of silu, gelu_tanh, swiglu_clamped") for name in ACTIVATED
      for odd in (None, 3, ["silu"], "relu", torch.ones(3, 3))),
    *((name, {"activation": "swiglu_clamped", constant: "x"}, f"{constant} is 'x', expected a number") for name in ACTIVATED
      for constant in ("alpha", "limit", "up_offset")),
    *((name, {constant: 1.0}, f"{constant} is 1.0, but the activation is 'silu'") for name in ACTIVATED for constant in ("alpha", "limit", "up_offset")),
    *((name, dict(out_dtype=odd), "out_dtype is .*, expected float16, bfloat16 or float32") for name in PRODUCTS
      for odd in (5, "int8", torch.int8, float, "torch.float32", torch.ones(3, 3))),
    *((name, dict(n=odd), "n is .*, expected a whole number") for name in PRODUCTS if name.endswith("_packed")
      for odd in ("256", 24.0, None, 2**70)),
    *((name, dict(row_ids_divisor=odd), "row_ids_divisor is .*, expected") for name in PRODUCTS if name.startswith("grouped")
      for odd in ("2", 2.0, None, 0, 2**70)),
    *((name, dict(offsets=odd), "offsets is ") for name in PRODUCTS if name.startswith("grouped") for odd in (3, [0, 3, 3, 11], OFFSETS.float())),
    *((name, dict(row_weights=odd), "row_weights is ") for name in PRODUCTS if name.startswith("grouped") for odd in (3, torch.ones(11).double(), OFFSETS)),
    ("grouped_dual_gemm", dict(order=3), "order is 3, expected one of gate_first, up_first, interleaved"),
    *(("gated_mlp", dict(intermediate_dtype=odd), "intermediate_dtype is ") for odd in (5, torch.float32, "float", ["fp8_block"])),
    ("gated_mlp", dict(intermediate_dtype="fp8_tensor", intermediate_scale="x"), "intermediate_scale is 'x', expected a number"),
    *(("moe", dict(rows_dtype=odd), "rows_dtype is .*, expected float16, bfloat16 or float32") for odd in (5, torch.int8, None)),
    *(("moe", dict(ids=odd), "topk_ids is .*, expected int32 or int64") for odd in (IDS.float(), IDS.bool(), IDS.short())),
    *(("moe", dict(weights=odd), "topk_weights is .*, expected float32, float16 or bfloat16") for odd in (IDS, WEIGHTS.double())),
    *(("attention", dict(causal=odd), "causal is .*, expected True or False") for odd in ("yes", 1, None)),
    *(("attention", dict(return_lse=odd), "return_lse is .*, expected True or False") for odd in ("yes", 1, None)),
    *(("attention", dict(scale=odd), "scale is .*, expected a number") for odd in ("x", [1.0])),
    *(("attention", dict(softcap=odd), "softcap is .*, expected a number") for odd in ("x", None)),
    *(("attention", dict(window=odd), "window.* is .*, expected") for odd in ((1.5, 0), ("1", 0), (0, None), 3, (1, 2, 3), None, "ab", (2**70, 0))),
    *(("append", dict(pairs=odd), "pairs is .*, expected one of none, halves, interleaved") for odd in (None, 3, "both")),
    *(("append", dict(rotary_dim=odd), "rotary_dim is .*, expected") for odd in ("64", 64.0, None)),
    *(("append", dict(theta=odd), "theta is .*, expected a number") for odd in ("x", None)),
    *((name, dict(numerics=odd), "numerics is .*, expected one of exact, fast") for name in ("pack", "pack_gemm", "pack_grouped")
      for odd in (None, 3, "slow")),
    ("pack_grouped", dict(order=3), "order is 3, expected one of"),
]


@pytest.mark.parametrize("name, options, sentence", WRONG, ids=[f"{name}, {options}"[:80] for name, options, _ in WRONG])
def test_a_wrong_type_is_refused_in_one_sentence(name, options, sentence):
    with pytest.raises(thresher.InvalidArgumentError, match=sentence) as refused:
        CALLS[name](**options)
    assert "\n" not in str(refused.value) and "thresher::" not in str(refused.value)


@pytest.mark.parametrize("name", CALLS)
def test_arguments_that_do_not_exist_are_refused_by_their_name(name):
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'") as refused:
        CALLS[name](foo=1)
    assert "\n" not in str(refused.value)


def test_operators_refuse_too_when_they_are_called_by_thresher():
    for call, sentence in ((lambda: called(ops.gemm, A, B, foo=1), "foo is given, but gemm has no argument of this name"),
                           (lambda: called(ops.gated_mlp, A, PACKED, DOWN, activation=None), "activation is None, expected one of"),
                           (lambda: called(ops.gemm, A, 3), "b is of the type int, expected a tensor")):
        with pytest.raises(thresher.InvalidArgumentError, match=sentence):
            call()


@pytest.mark.parametrize("name", PRODUCTS)
def test_names_of_types_are_taken(name):
    for dtype in ("float16", "bfloat16", "float32"):
        result = CALLS[name](out_dtype=dtype)
        assert result.dtype == getattr(torch, dtype) and torch.equal(result, CALLS[name](out_dtype=result.dtype))
    if name == "moe":
        assert torch.equal(CALLS[name](rows_dtype="bfloat16"), CALLS[name](rows_dtype=torch.bfloat16))


def compiled(function, backend="aot_eager"):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend=backend)


def wide_cases():
    """Of each function that takes numbers: (function of int32 ones, they)."""
    rows, experts, ids = normal(11, 32), normal(3, 16, 32), torch.randint(-1, 3, (11, 2), dtype=torch.int32)
    of_rows, counts = torch.randint(-2, 12, (9,), dtype=torch.int32), torch.tensor([1, 0, 3], dtype=torch.int32)
    offsets, slots = torch.tensor([0, 3, 4, 9], dtype=torch.int32), normal(3, 4, 32)
    keys, pools, lengths = normal(9, 2, 64), normal(2, 5, 4, 2, 64), LENGTHS
    table, used = torch.tensor([[4, 0, 2], [3, 1, 0]], dtype=torch.int32), torch.tensor([12, 7], dtype=torch.int32)
    return {
        "moe": (lambda ids: tt.moe(rows, MANY, BELOW, ids, WEIGHTS), (ids,)),
        "offsets": (lambda offsets, of_rows: tt.grouped_gemm(rows, experts, offsets=offsets, row_ids=of_rows), (offsets, of_rows)),
        "counts": (lambda counts: tt.grouped_dual_gemm_packed(slots, MANY, 16, counts=counts), (counts,)),
        "lengths": (lambda a, b: tt.attention(keys, keys, keys, cu_seqlens_q=a, cu_seqlens_k=b), (lengths, lengths)),
        "pages": (lambda *l: tt.attention(keys, *pools, cu_seqlens_q=l[0], block_table=l[1], seqused_k=l[2]), (lengths, table, used)),
    }


@pytest.mark.parametrize("name", wide_cases())
def test_numbers_of_64_bits_are_taken(name):
    function, given = wide_cases()[name]
    expected, wide = function(*given), [one.long() for one in given]
    assert torch.equal(function(*wide), expected)
    assert torch.equal(compiled(function)(*wide), expected)


def test_numbers_that_32_bits_do_not_hold():
    """They are nobody's ids, and else refused or limited, but never those of others."""
    ids = torch.tensor([[0, 2**32], [-(2**40), 2**32 + 1]] + [[2, 1]] * 9)
    within = torch.where((ids >= 0) & (ids < 3), ids, -1).int()
    for function in (tt.moe, compiled(tt.moe)):
        assert torch.equal(function(ROWS, MANY, BELOW, ids, WEIGHTS), tt.moe(ROWS, MANY, BELOW, within, WEIGHTS))
    rows, beyond = normal(11, 32), torch.tensor([2**32, 1, -(2**33) + 2])
    result = tt.grouped_gemm(rows, EXPERTS, offsets=torch.tensor([0, 1, 2, 3]), row_ids=beyond)
    assert (result[[0, 2]] == 0).all() and (result[1] != 0).any()
    assert (tt.grouped_gemm(rows, EXPERTS, offsets=torch.tensor([2**32, 2**32 + 3, 2**32 + 3, 2**32 + 11])) == 0).all()
    pools, table, used = normal(2, 5, 4, 2, 64), torch.tensor([[4, 0, 2], [3, 1, 0]]), torch.tensor([12, 7])
    for lists in (dict(cu_seqlens_q=LENGTHS.long() + 2**32), dict(block_table=table + 2**32), dict(seqused_k=used + 2**32), dict(seqused_k=used - 2**32)):
        name, = lists
        with pytest.raises(thresher.InvalidArgumentError, match=name):
            tt.attention(KEYS, *pools, **{**dict(cu_seqlens_q=LENGTHS, block_table=table, seqused_k=used), **lists})


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_factors_of_16_bits_are_taken(dtype):
    rows, ids, factors = normal(11, 32), torch.randint(0, 3, (11, 2)), torch.rand(11, 2).to(dtype)
    exact = factors.float()

    def both(factors):
        return (tt.moe(rows, MANY, BELOW, ids, factors), tt.grouped_gemm(rows, EXPERTS, offsets=OFFSETS, row_weights=factors[:, 0].contiguous()))

    for run in (both, compiled(both)):
        assert all(map(torch.equal, run(factors), both(exact)))


def fp8(rows, k, experts=()):
    return thresher.Fp8(torch.randn(*experts, rows, k).to(torch.float8_e4m3fn), torch.ones(1 if not experts else experts), per="tensor")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_type_that_nobody_says(dtype):
    """That of tokens of 16 bits, else of weights of 16 bits, else bfloat16; as thresher.numpy gives it."""
    tokens, quantised, weights = normal(5, 64, dtype=dtype), fp8(5, 64), normal(32, 64, dtype=dtype)
    of_fp8, experts = fp8(32, 64), normal(1, 32, 64, dtype=dtype)
    lists = dict(offsets=torch.tensor([0, 5], dtype=torch.int32))
    packed, square = tt.pack(weights, weights), tt.pack_gemm(normal(64, 32, dtype=dtype))
    for a, b, expected in ((tokens, weights, dtype), (tokens, of_fp8, dtype), (quantised, weights, dtype), (quantised, of_fp8, torch.bfloat16)):
        assert tt.dual_gemm(a, b, b).dtype == tt.gemm(a, b).dtype == expected
        if a is tokens or b is of_fp8 or dtype == torch.bfloat16:
            assert tt.dual_gemm_packed(a, tt.pack(b, b), 32).dtype == tt.gemm_packed(a, tt.pack_gemm(b), 32).dtype == expected
    assert tt.grouped_gemm(quantised, experts, **lists).dtype == tt.grouped_dual_gemm(quantised, experts, experts, **lists).dtype == dtype
    ids, ones = torch.zeros(5, 1, dtype=torch.int32), torch.ones(5, 1)
    many = tt.pack_grouped(experts, experts), tt.pack_grouped(normal(1, 64, 32, dtype=dtype))
    without = {
        "dual_gemm_packed": lambda **o: tt.dual_gemm_packed(quantised, packed, 32, **o),
        "gemm_packed": lambda **o: tt.gemm_packed(quantised, tt.pack_gemm(weights), 32, **o),
        "gated_mlp": lambda **o: tt.gated_mlp(quantised, packed, square, **o),
        "moe": lambda **o: tt.moe(quantised, *many, ids, ones, **o),
        "grouped_gemm_packed": lambda **o: tt.grouped_gemm_packed(quantised, tt.pack_grouped(experts), 32, **lists, **o),
        "grouped_dual_gemm_packed": lambda **o: tt.grouped_dual_gemm_packed(quantised, many[0], 32, **lists, **o),
    }
    for name, call in without.items():
        assert call(out_dtype=torch.float32).dtype == torch.float32
        if dtype == torch.bfloat16:
            assert call().dtype == dtype, name
            continue
        with pytest.raises(thresher.InvalidArgumentError, match="out_dtype is missing: the weights are float16"):
            call()
    as_numpy = thresher.Fp8(quantised.values.view(torch.uint8).numpy(), quantised.scales.numpy(), per="tensor")
    if dtype == torch.float16:
        assert tn.dual_gemm(as_numpy, weights.numpy(), weights.numpy()).dtype == "float16"


def test_traces_give_the_types_of_calls():
    a, weights = fp8(5, 64), normal(32, 64, dtype=torch.float16)
    of_fp8 = fp8(32, 64)
    packed = tt.pack(of_fp8, of_fp8)
    for call in (lambda: tt.dual_gemm(a, weights, weights), lambda: tt.gemm(a, of_fp8), lambda: tt.dual_gemm_packed(a, packed, 32)):
        eager, traced = call(), compiled(call)()
        assert traced.dtype == eager.dtype and torch.equal(traced, eager)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_takes_float32_as_it_does_of_a_linear_layer(dtype):
    x, weight, q = torch.randn(5, 64), torch.randn(24, 64), torch.randn(1, 2, 5, 64)
    packed, below = tt.pack(weight.to(dtype), weight.to(dtype)), tt.pack_gemm(torch.randn(64, 24).to(dtype))
    rows, experts = torch.randn(11, 32), torch.randn(3, 16, 32)
    many = tt.pack_grouped(experts.to(dtype), experts.to(dtype)), tt.pack_grouped(torch.randn(3, 32, 16).to(dtype))
    of_one, of_many = tt.pack_gemm(weight.to(dtype)), tt.pack_grouped(experts.to(dtype))
    calls = {
        "dual_gemm": lambda cast: tt.dual_gemm(cast(x), cast(weight), cast(weight)),
        "gemm": lambda cast: tt.gemm(cast(x), cast(weight), bias=x[0, :24]),
        "dual_gemm_packed": lambda cast: tt.dual_gemm_packed(cast(x), packed, 24),
        "gemm_packed": lambda cast: tt.gemm_packed(cast(x), of_one, 24, out_dtype=torch.float32),
        "gated_mlp": lambda cast: tt.gated_mlp(cast(x), packed, below),
        "moe": lambda cast: tt.moe(cast(rows), *many, IDS, WEIGHTS),
        "grouped_gemm": lambda cast: tt.grouped_gemm(cast(rows), cast(experts), offsets=OFFSETS, row_weights=WEIGHTS[:, 0].contiguous()),
        "grouped_dual_gemm": lambda cast: tt.grouped_dual_gemm(cast(rows), cast(experts), cast(experts), offsets=OFFSETS),
        "grouped_dual_gemm_packed": lambda cast: tt.grouped_dual_gemm_packed(cast(rows), many[0], 16, offsets=OFFSETS),
        "grouped_gemm_packed": lambda cast: tt.grouped_gemm_packed(cast(rows), of_many, 16, offsets=OFFSETS),
        "attention": lambda cast: tt.attention(cast(q), cast(q), cast(q), causal=True),
        "attention, logarithms": lambda cast: tt.attention(cast(q), cast(q), cast(q), return_lse=True)[1],
        "out": lambda cast: tt.gemm(cast(x), cast(weight), out=torch.zeros(5, 24)),
    }

    for name, call in calls.items():
        expected = call(lambda tensor: tensor.to(dtype))
        with torch.autocast("cpu", dtype=dtype):
            for result in (call(lambda tensor: tensor), call(lambda tensor: tensor.to(dtype)), compiled(lambda: call(lambda tensor: tensor))()):
                assert result.dtype == expected.dtype and torch.equal(result, expected), name
            with torch.autocast("cpu", enabled=False), pytest.raises(thresher.InvalidArgumentError, match="float32, expected"):
                tt.gemm(x, weight)
        with pytest.raises(thresher.InvalidArgumentError, match="float32, expected"):
            tt.gemm(x, weight)


def test_autocast_records_nothing():
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        x, weight = torch.randn(5, 64), torch.randn(24, 64)
        assert tt.gemm(x, weight).dtype == torch.bfloat16
        with pytest.raises(thresher.UnsupportedError, match="no backward pass"):
            tt.gemm(x.requires_grad_(), weight)


def test_what_an_argument_takes_is_listed():
    double = torch.ones(5, 64, dtype=torch.float64)
    keys = KEYS.double()
    for call, sentence in (
        (lambda: tt.gemm(double, B), "a is float64, expected float16, bfloat16, Nvfp4 or Fp8"),
        (lambda: tt.gemm(A, B, out=torch.empty(5, 24, dtype=torch.float64)), "out is float64, expected float16, bfloat16 or float32"),
        (lambda: tt.gemm(A, B, bias=torch.ones(24, dtype=torch.float64)), "bias is float64, expected float16, bfloat16 or float32"),
        (lambda: tt.attention(KEYS, KEYS, KEYS, cu_seqlens_q=LENGTHS.short(), cu_seqlens_k=LENGTHS), "cu_seqlens_q is int16, expected int32 or int64"),
        (lambda: tt.attention(Q, Q, Q, sinks=torch.ones(2, dtype=torch.float64)), "sinks is float64, expected float32"),
        (lambda: tt.append(KEYS, keys, *torch.zeros(2, 5, 4, 2, 64), torch.arange(9), positions=torch.arange(9)), "v is float64, expected bfloat16"),
        (lambda: tt.append(KEYS, KEYS, *torch.zeros(2, 5, 4, 2, 64).bfloat16(), torch.arange(9).float(), positions=torch.arange(9)),
         "slots is float32, expected int32 or int64"),
        (lambda: tt.gemm_packed(A, B, 24), "weights is bfloat16, expected uint8"),
        (lambda: tt.attention(Q[..., :32], Q[..., :32], Q[..., :32]), "the last dimension of q and k is 32"),
        (lambda: tt.gemm(A, B, out=A[:, :24]), "out shares memory with a"),
    ):
        with pytest.raises(thresher.InvalidArgumentError, match=sentence):
            call()


def test_tensors_on_several_devices_are_refused():
    a, b = torch.ones(4, 64, dtype=torch.float16), torch.ones(32, 64, dtype=torch.float16)
    q = torch.ones(1, 2, 8, 64, dtype=torch.float16)
    packed = tt.pack_gemm(b)
    for named, call in (
        ("b is on meta", lambda: tt.gemm(a, b.to("meta"))),
        ("b is on cpu", lambda: tt.gemm(a.to("meta"), b)),
        ("b1 is on meta", lambda: tt.dual_gemm(a, b.to("meta"), b.to("meta"))),
        ("weights is on meta", lambda: tt.gemm_packed(a, packed.to("meta"), 32)),
        ("v is on meta", lambda: tt.attention(q, q, q.to("meta"))),
        ("a is on cpu", lambda: tt.gemm(a, b, out=torch.empty(4, 32, dtype=torch.float16, device="meta"))),
    ):
        with pytest.raises(thresher.Error, match=f"^{named}, expected") as refused:
            call()
        assert "\n" not in str(refused.value)


def freed(tensor):
    """A tensor of the same shape whose storage is gone, as it is of parameters that are sharded or swapped out."""
    gone = tensor.clone()
    gone.untyped_storage().resize_(0)
    return gone


class Wrapper(torch.Tensor):
    """A tensor without memory of its own."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner):
        self.inner = inner

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), options=None):
        raise NotImplementedError(str(function))


class DTensor(Wrapper):
    """Of the same name as torch.distributed's, which is made in a process group alone."""


CODES, FACTORS, ONE = torch.zeros(24, 32, dtype=torch.uint8), torch.zeros(24, 4, dtype=torch.uint8), torch.ones(1)
EIGHT = torch.zeros(24, 64, dtype=torch.uint8)
Q8 = torch.zeros(1, 2, 5, 64, dtype=torch.uint8)


def fp8_of(scales):
    return thresher.Fp8(EIGHT, scales, per="tensor")


def nvfp4_of(scales=FACTORS, global_scale=ONE):
    return thresher.Nvfp4(CODES, scales, global_scale)


# Operands that may be missing, and those that packing reads: (name in the sentence, a tensor as it should be, the call).
READ = {
    "pack b1": ("b1", B, lambda one: tt.pack(one, B)),
    "pack b2": ("b2", B, lambda one: tt.pack(B, one)),
    "pack_gemm b": ("b", B, lambda one: tt.pack_gemm(one)),
    "pack_gemm bias": ("bias", torch.ones(24), lambda one: tt.pack_gemm(B, bias=one)),
    "pack_grouped b1": ("b1", EXPERTS, lambda one: tt.pack_grouped(one)),
    "pack_grouped bias1": ("bias1", torch.ones(3, 16), lambda one: tt.pack_grouped(EXPERTS, bias1=one)),
    "pack_grouped bias2": ("bias2", torch.ones(3, 16), lambda one: tt.pack_grouped(EXPERTS, EXPERTS, bias1=torch.ones(3, 16), bias2=one)),
    "fp8 scale": ("b1_scales", ONE, lambda one: tt.pack(fp8_of(one), fp8_of(ONE))),
    "nvfp4 scales": ("b_scales", FACTORS, lambda one: tt.pack_gemm(nvfp4_of(scales=one))),
    "nvfp4 global scale": ("b2_global_scale", ONE, lambda one: tt.pack(nvfp4_of(), nvfp4_of(global_scale=one))),
}
GIVEN = {
    "bias": ("bias", torch.ones(24), lambda one: tt.gemm(A, B, bias=one)),
    "global scale": ("b1.global_scale", ONE, lambda one: tt.dual_gemm(A, nvfp4_of(global_scale=one), nvfp4_of())),
    "k_descale": ("k_descale", torch.ones(1, 2), lambda one: tt.attention(Q, Q8, Q8, k_descale=one)),
    "v_descale": ("v_descale", torch.ones(1, 2), lambda one: tt.attention(Q, Q8, Q8, v_descale=one)),
    "row_weights": ("row_weights", torch.ones(11), lambda one: tt.grouped_gemm(ROWS, EXPERTS, row_weights=one, **GROUPED)),
    "weights": ("weights", PACKED, lambda one: tt.dual_gemm_packed(A, one, 24)),
    "gate_up": ("gate_up", PACKED, lambda one: tt.gated_mlp(A, one, DOWN)),
    "down": ("down", DOWN, lambda one: tt.gated_mlp(A, PACKED, one)),
    "moe down": ("down", BELOW, lambda one: tt.moe(ROWS, MANY, one, IDS, WEIGHTS)),
    "append k_descale": ("k_descale", torch.ones(2), lambda one: tt.append(
        KEYS, KEYS, *[torch.zeros(5, 4, 2, 64, dtype=torch.uint8) for _ in range(2)], torch.arange(9), pairs="none", k_descale=one, v_descale=torch.ones(2))),
    "packed_info": ("weights", PACKED, lambda one: tt.packed_info(one)),
}


@pytest.mark.parametrize("case", [*READ, *GIVEN])
def test_a_tensor_whose_memory_is_freed_is_refused_by_its_name(case):
    name, good, call = {**READ, **GIVEN}[case]
    for _ in range(2):  # the second call is one that was made before
        call(good)
        with pytest.raises(thresher.InvalidArgumentError, match=f"^{name} has the shape .* but no memory: its storage was freed$"):
            call(freed(good))


@pytest.mark.parametrize("case", READ)
def test_packing_refuses_a_tensor_without_memory_of_its_own(case):
    name, good, call = READ[case]
    for odd, sentence in ((good.to("meta"), "is on (meta|cpu)(, expected (meta|cpu), where b1? is)?"),
                          (DTensor(good), f"^{name} is a DTensor, expected a plain tensor: give its full_tensor\\(\\)$"),
                          (Wrapper(good), f"^{name} is a Wrapper on cpu, which has no memory of its own, expected a plain tensor$"),
                          (torch._subclasses.FakeTensorMode().from_tensor(good), f"^{name} is a FakeTensor on cpu, which has no memory"),
                          (torch.nested.nested_tensor([good.reshape(-1)]), f"^{name} is a nested tensor, expected a plain one$")):
        with pytest.raises(thresher.InvalidArgumentError, match=sentence) as refused:
            call(odd)
        assert "\n" not in str(refused.value)


def test_weights_on_meta_alone_are_refused_by_packing():
    for call in (lambda: tt.pack(B.to("meta"), B.to("meta")), lambda: tt.pack_gemm(B.to("meta"))):
        with pytest.raises(thresher.InvalidArgumentError, match="^b1? is on meta, expected cpu or cuda$"):
            call()


def test_packed_weights_in_a_storage_that_was_made_smaller_are_refused():
    packed = tt.pack_gemm(B)
    for _ in range(2):
        smaller = packed.clone()
        tt.gemm_packed(A, smaller, 24)
        smaller.untyped_storage().resize_(16)
        with pytest.raises(thresher.InvalidArgumentError, match=f"^weights ends at byte {packed.numel()} of its storage, which has 16$"):
            tt.gemm_packed(A, smaller, 24)


def test_arrays_by_dlpack_whose_memory_is_freed_are_refused_by_their_names():
    a, b = np.ones((4, 64), np.float16), np.ones((16, 64), np.float16)
    for name, good, call in (("a", torch.ones(4, 64).half(), lambda one: tn.gemm(one, b)), ("b", torch.ones(16, 64).half(), lambda one: tn.pack_gemm(one)),
                             ("bias", torch.ones(16), lambda one: tn.pack_gemm(b, bias=one)), ("bias", torch.ones(16), lambda one: tn.gemm(a, b, bias=one)),
                             ("weights", PACKED, lambda one: tn.packed_info(one)),
                             ("b.global_scale", ONE, lambda one: tn.pack_gemm(thresher.Nvfp4(CODES.numpy(), FACTORS.numpy(), one)))):
        call(good)
        with pytest.raises(thresher.InvalidArgumentError, match=f"^{name} has the shape .* but no memory: its storage was freed$"):
            call(freed(good))


def test_no_elements_need_no_memory():
    assert tt.dual_gemm(A[:0], B, B).shape == (0, 24)
    assert tt.gemm_packed(A, tt.pack_gemm(B[:0], bias=torch.ones(0)), 0).shape == (5, 0)
    assert tn.gemm(A[:0].half(), B[:0].half(), bias=torch.ones(0)).shape == (0, 0)
    assert tt.gemm(A, B[:0], bias=torch.ones(0)).shape == (5, 0)
    assert tt.grouped_gemm(ROWS, EXPERTS[:, :0], bias=torch.ones(3, 0), **GROUPED).shape == (11, 0)


ODD_LAYOUTS = {
    "nested": (lambda x: torch.nested.nested_tensor([x, x]), "is a nested tensor, expected a plain one"),
    "jagged": (lambda x: torch.nested.nested_tensor([x, x], layout=torch.jagged), "is a nested tensor, expected a plain one"),
    "quantized": (lambda x: torch.quantize_per_tensor(x.float(), 0.1, 0, torch.qint8), "is a quantized tensor of qint8, expected a plain one"),
    "sparse": (lambda x: x.to_sparse(), "is torch.sparse_coo on cpu, expected torch.strided"),
    "DTensor": (DTensor, "is a DTensor, expected a plain tensor: give its full_tensor"),
}
TAKING = {
    "dual_gemm": ("a", A, lambda one: tt.dual_gemm(one, B, B)),
    "dual_gemm b2": ("b2", B, lambda one: tt.dual_gemm(A, B, one)),
    "dual_gemm out": ("out", torch.zeros(5, 24), lambda one: tt.dual_gemm(A, B, B, out=one)),
    "gemm bias": ("bias", torch.zeros(24), lambda one: tt.gemm(A, B, bias=one)),
    "gated_mlp": ("x", A, lambda one: tt.gated_mlp(one, PACKED, DOWN)),
    "offsets": ("offsets", OFFSETS.long(), lambda one: tt.grouped_gemm(ROWS, EXPERTS, offsets=one)),
    "moe": ("topk_weights", WEIGHTS, lambda one: tt.moe(ROWS, MANY, BELOW, IDS, one)),
    "attention": ("q", Q, lambda one: tt.attention(one, Q, Q)),
    "attention out": ("q", Q, lambda one: tt.attention(one, Q, Q, return_lse=True, out=torch.empty_like(Q))),
    "append": ("k", KEYS, lambda one: tt.append(one, KEYS, *[torch.zeros(5, 4, 2, 64, dtype=torch.bfloat16) for _ in range(2)], torch.arange(9), pairs="none")),
    "pack": ("b1", B, lambda one: tt.pack(one, B)),
    "packed_info": ("weights", PACKED, lambda one: tt.packed_info(one)),
}


@pytest.mark.parametrize("case", TAKING)
@pytest.mark.parametrize("layout", ODD_LAYOUTS)
def test_tensors_of_another_kind_are_refused_in_one_sentence(case, layout):
    name, good, call = TAKING[case]
    make, sentence = ODD_LAYOUTS[layout]
    with torch.inference_mode(False), torch.no_grad():
        odd = make(good.clone())
        with pytest.raises(thresher.InvalidArgumentError, match=f"^{name} {sentence}") as refused:
            call(odd)
    assert "\n" not in str(refused.value)


def test_a_sign_that_is_still_to_be_turned_is_turned_before_weights_are_packed():
    minus, bias, offsets = -B, torch.arange(24.0), torch.tensor([0, 5], dtype=torch.int32)
    turned = torch._neg_view(B)
    assert torch.equal(tt.pack(turned, B), tt.pack(minus, B)) and torch.equal(tt.pack(B, turned), tt.pack(B, minus))
    assert torch.equal(tt.pack_gemm(turned, bias=torch._neg_view(bias)), tt.pack_gemm(minus, bias=-bias))
    assert torch.equal(tt.pack_grouped(turned[None], bias1=torch._neg_view(bias[None])), tt.pack_grouped(minus[None], bias1=-bias[None]))
    assert torch.equal(tt.pack_gemm(fp8_of(torch._neg_view(ONE))), tt.pack_gemm(fp8_of(-ONE)))
    assert torch.equal(tt.gemm(A, turned, bias=torch._neg_view(bias)), tt.gemm(A, minus, bias=-bias))
    assert torch.equal(tt.grouped_gemm(A, turned[None], offsets=offsets), tt.grouped_gemm(A, minus[None], offsets=offsets))


@pytest.mark.parametrize("n", [-1, 0, 2**50, 2**62])
def test_a_wrong_n_is_refused_before_anything_is_allocated(n):
    for name, of_weights in (("dual_gemm_packed", 24), ("gemm_packed", 24), ("grouped_dual_gemm_packed", 16), ("grouped_gemm_packed", 16)):
        with pytest.raises(thresher.InvalidArgumentError, match=f"^n is {n}, but the weights have N = {of_weights}$"):
            CALLS[name](n)


TRUTHS = [True, False, np.True_, torch.tensor(True)]
NUMBERS = [
    *((name, dict(activation="swiglu_clamped", **{constant: None}), constant) for name in ACTIVATED for constant in ("alpha", "limit", "up_offset")),
    *((name, dict(n=None), "n") for name in PRODUCTS if name.endswith("_packed")),
    *((name, dict(row_ids_divisor=None), "row_ids_divisor") for name in PRODUCTS if name.startswith("grouped")),
    *(("attention", {option: None}, option) for option in ("scale", "softcap")),
    *(("append", {option: None}, option) for option in ("rotary_dim", "theta")),
    *((name, dict(intermediate_scale=None), "intermediate_scale") for name in ("gated_mlp", "moe")),
]


@pytest.mark.parametrize("truth", TRUTHS, ids=["True", "False", "numpy", "tensor"])
@pytest.mark.parametrize("name, options, option", NUMBERS, ids=[f"{name}, {option}" for name, _, option in NUMBERS])
def test_a_truth_is_no_number(name, options, option, truth):
    given = {key: truth if value is None else value for key, value in options.items()}
    with pytest.raises(thresher.InvalidArgumentError, match=f"^{option} is .*, expected a (whole )?number$"):
        CALLS[name](**given)


def test_a_truth_is_no_window():
    for window in ((True, 0), (3, False), (False, -1)):
        with pytest.raises(thresher.InvalidArgumentError, match="^window's (left|right) is (True|False), expected a whole number$"):
            tt.attention(Q, Q, Q, window=window)


@pytest.mark.parametrize("truth", [True, False, np.True_])
def test_a_truth_is_no_number_to_arrays_either(truth):
    a, b, q = np.ones((4, 64), np.float16), np.ones((16, 64), np.float16), np.ones((1, 2, 4, 64), np.float16)
    for call, option in ((lambda: tn.dual_gemm(a, b, b, activation="swiglu_clamped", alpha=truth), "alpha"),
                         (lambda: tn.dual_gemm(a, b, b, threads=truth), "threads"), (lambda: tn.attention(q, q, q, softcap=truth), "softcap"),
                         (lambda: tn.attention(q, q, q, scale=truth), "scale"), (lambda: tn.attention(q, q, q, window=(truth, 0)), "window's left")):
        with pytest.raises(thresher.InvalidArgumentError, match=f"^{option} is .*, expected a (whole )?number$"):
            call()


def test_numbers_of_numpy_and_arrays_of_one_are_still_numbers():
    a, b = np.ones((4, 64), np.float16), np.ones((16, 64), np.float16)
    for one in (np.float32(2), np.int64(2), np.array(2.0), 2):
        assert (tn.dual_gemm(a, b, b, activation="swiglu_clamped", limit=one) == tn.dual_gemm(a, b, b, activation="swiglu_clamped", limit=2.0)).all()
        assert torch.equal(tt.dual_gemm(A, B, B, activation="swiglu_clamped", limit=float(one)),
                           tt.dual_gemm(A, B, B, activation="swiglu_clamped", limit=one if np.ndim(one) == 0 and not isinstance(one, np.ndarray) else 2.0))
    assert torch.equal(tt.dual_gemm_packed(A, PACKED, np.int64(24)), tt.dual_gemm_packed(A, PACKED, 24))


def test_a_list_beyond_int32_is_refused_by_its_value():
    q, pages = torch.ones(2, 2, 64, dtype=torch.bfloat16), torch.ones(6, 4, 2, 64, dtype=torch.bfloat16)
    good = dict(cu_seqlens_q=torch.tensor([0, 1, 2]), block_table=torch.tensor([[5, 1], [2, 0]]), seqused_k=torch.tensor([7, 8]))
    assert tt.attention(q, pages, pages, **good).shape == q.shape
    for name, where in (("cu_seqlens_q", "2"), ("block_table", "1, 1"), ("seqused_k", "1")):
        odd = good[name].clone()
        odd.view(-1)[-1] = 2**40
        with pytest.raises(thresher.InvalidArgumentError, match=rf"^{name}\[{where}\] is {2**40}, expected -2147483648 to 2147483647"):
            tt.attention(q, pages, pages, **{**good, name: odd})


def test_mxfp4_that_cannot_be_looked_at_is_refused():
    values, exponents = torch.zeros(16, 32, dtype=torch.uint8), torch.full((16, 2), 127, dtype=torch.uint8)
    assert thresher.Nvfp4.of_mxfp4(values, exponents).scales.shape == (16, 4)
    for given, name in (((values.to("meta"), exponents), "values"), ((values, exponents.to("meta")), "exponents"),
                        ((values.to("meta"), exponents.to("meta")), "values")):
        with pytest.raises(thresher.InvalidArgumentError, match=f"^{name} is on meta, expected cpu or cuda"):
            thresher.Nvfp4.of_mxfp4(*given)


def test_packing_inside_of_a_transform_is_refused():
    with torch.inference_mode(False), torch.no_grad():
        for call in (lambda: torch.vmap(tt.pack)(EXPERTS.clone(), EXPERTS.clone()), lambda: torch.vmap(tt.pack_gemm)(EXPERTS.clone())):
            with pytest.raises(thresher.InvalidArgumentError, match="^b1? is a tensor inside of torch.vmap, which has no memory, expected a plain tensor$"):
                call()


def test_a_bias_of_down_is_refused_by_its_own_name():
    experts, down = torch.randn(2, 32, 64), torch.randn(2, 64, 16)
    for shape in ((2, 63), (3, 64)):
        with pytest.raises(thresher.InvalidArgumentError, match=rf"^down_bias has the shape \[{shape[0]}, {shape[1]}\], expected \[2, 64\]"):
            tt.MoE(experts, down, order="gate_first", down_bias=torch.ones(shape))
