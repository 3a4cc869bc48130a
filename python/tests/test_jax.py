"""thresher.jax against thresher.numpy, bit by bit, at once and under jax.jit."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed: the tests of thresher.jax are left out")
pytestmark = pytest.mark.on_demand

import jax.numpy as jnp  # noqa: E402

import thresher  # noqa: E402
import thresher.jax as tj  # noqa: E402
import thresher.numpy as tn  # noqa: E402


@pytest.fixture
def normal(random):
    return lambda *shape, dtype=jnp.bfloat16: jnp.asarray(random.standard_normal(shape), dtype)


def host(tree):
    return jax.tree_util.tree_map(np.asarray, tree)


def same(result, expected):
    for one, other in zip(jax.tree_util.tree_leaves(result), jax.tree_util.tree_leaves(expected), strict=True):
        assert isinstance(one, jax.Array) and one.dtype == other.dtype and one.shape == other.shape
        assert np.asarray(one).tobytes() == np.ascontiguousarray(other).tobytes()


def check(name, *operands, **named):
    """At once and traced, arrays by name being traced too."""
    arrays = {key: value for key, value in named.items() if isinstance(value, jax.Array)}
    options = {key: value for key, value in named.items() if key not in arrays}
    expected = getattr(tn, name)(*host(operands), **host(arrays), **options)
    function = getattr(tj, name)
    same(function(*operands, **arrays, **options), expected)
    same(jax.jit(lambda operands, arrays: function(*operands, **arrays, **options))(operands, arrays), expected)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
@pytest.mark.parametrize("kind", ["silu", "gelu_tanh", "swiglu_clamped"])
def test_dual_gemm(normal, dtype, kind):
    a, b1, b2 = normal(5, 64, dtype=dtype), normal(24, 64, dtype=dtype), normal(24, 64, dtype=dtype)
    check("dual_gemm", a, b1, b2, activation=kind)
    check("dual_gemm", a, b1, b2, activation=kind, out_dtype="float32")
    check("dual_gemm", a[:0], b1, b2)


def test_scaled_operands(normal, random):
    def nvfp4(rows):
        return thresher.Nvfp4(jnp.asarray(random.integers(0, 256, (rows, 32), np.uint8)), jnp.asarray(random.integers(40, 70, (rows, 4), np.uint8)),
                              jnp.asarray([0.5], jnp.float32))

    def fp8(rows):
        return thresher.Fp8(jnp.asarray(random.integers(0, 100, (rows, 64), np.uint8)).view(jnp.float8_e4m3fn),
                            jnp.asarray(random.random((rows,)), jnp.float32), per="row")

    check("dual_gemm", normal(5, 64), nvfp4(24), nvfp4(24))
    check("dual_gemm", nvfp4(5), nvfp4(24), nvfp4(24))
    check("dual_gemm", fp8(5), fp8(24), fp8(24))
    powers = jnp.asarray(np.exp2(np.arange(-8.0, 16.0)), jnp.float32)
    plain, short = (thresher.Fp8(fp8(24).values, one, per="row") for one in (powers, powers.astype(jnp.float8_e8m0fnu)))
    assert short.scales.dtype == jnp.float32 and (short.scales == plain.scales).all()


def test_grouped(normal):
    offsets = jnp.asarray([0, 3, 3, 9], jnp.int32)
    a, b1, b2, b = normal(9, 32), normal(3, 16, 32), normal(3, 16, 32), normal(3, 8, 32)
    check("grouped_dual_gemm", a, b1, b2, offsets=offsets)
    check("grouped_dual_gemm", a, b1, b2, offsets=offsets, bias1=normal(3, 16), bias2=normal(3, 16), activation="gelu_tanh")
    check("grouped_dual_gemm", a, b1, order="up_first", offsets=offsets, row_weights=jnp.linspace(0, 1, 9))
    check("grouped_dual_gemm", a, b1, b2, offsets=offsets, row_ids=jnp.arange(9, dtype=jnp.int32)[::-1])
    check("grouped_gemm", a, b, offsets=jnp.asarray([0, 3, 3, 5], jnp.int32), bias=normal(3, 8), out_dtype="float32")
    check("grouped_gemm", normal(3, 4, 32), b, counts=jnp.asarray([4, 0, 2], jnp.int32))


def test_attention(normal):
    q, k, v = normal(2, 4, 7, 64), normal(2, 2, 9, 64), normal(2, 2, 9, 64)
    check("attention", q, k, v, causal=True)
    check("attention", q, k, v, return_lse=True, window=(3, 0), softcap=10.0)
    lengths = jnp.asarray([0, 3, 7], jnp.int32), jnp.asarray([0, 4, 9], jnp.int32)
    check("attention", normal(7, 4, 64), normal(9, 2, 64), normal(9, 2, 64), cu_seqlens_q=lengths[0], cu_seqlens_k=lengths[1], return_lse=True)


def test_attention_with_queries_in_fp8(normal):
    q, k, v = (normal(2, heads, rows, 64, dtype=jnp.float8_e4m3fn) for heads, rows in ((4, 7), (2, 9), (2, 9)))
    assert tj.attention(q, k, v).dtype == jnp.bfloat16
    check("attention", q, k, v, causal=True)
    check("attention", *(one.view(jnp.uint8) for one in (q, k, v)), return_lse=True)


def test_attention_over_pages_with_sinks(normal):
    k, v = normal(6, 4, 2, 64), normal(6, 4, 2, 64)
    pages = dict(cu_seqlens_q=jnp.asarray([0, 3, 5], jnp.int32), block_table=jnp.asarray([[5, 1], [2, 0]], jnp.int32),
                 seqused_k=jnp.asarray([7, 3], jnp.int32))
    check("attention", normal(5, 4, 64), k, v, causal=True, sinks=jnp.linspace(-1, 1, 4), return_lse=True, **pages)
    codes = [one.astype(jnp.float8_e4m3fn) for one in (k, v)]
    check("attention", normal(5, 4, 64), *codes, k_descale=jnp.full((1, 1), 0.5), v_descale=jnp.full((2, 2), 2.0), **pages)
    q = normal(2, 4, 7, 64).astype(jnp.float8_e4m3fn)
    check("attention", q, q, q, q_descale=jnp.full((2, 4), 0.5))
    check("attention", normal(1, 2, 7, 192), normal(1, 1, 9, 192), normal(1, 1, 9, 128), return_lse=True)


@pytest.mark.parametrize("between", [dict(intermediate_dtype="fp8_tensor", intermediate_scale=0.25), dict(intermediate_dtype="fp8_block"),
                                     dict(intermediate_dtype="nvfp4", intermediate_scale=0.5)])
def test_quantized_intermediates(normal, between):
    x, gate, down = normal(5, 64), normal(128, 64), normal(64, 128)
    packed = tj.pack(gate, gate), tj.pack_gemm(down)
    check("gated_mlp", x, *packed, **between)
    assert (tj.gated_mlp(x, *packed, **between) != tj.gated_mlp(x, *packed)).any()
    experts = tj.pack_grouped(normal(2, 256, 64), order="gate_first"), tj.pack_grouped(normal(2, 64, 128))
    check("moe", x, *experts, jnp.zeros((5, 1), jnp.int32), jnp.ones((5, 1)), **between)


@pytest.mark.parametrize("weights, expected", [(jnp.float16, jnp.float16), (jnp.bfloat16, jnp.bfloat16)])
def test_the_type_of_the_output_without_one(normal, random, weights, expected):
    tokens = thresher.Fp8(jnp.asarray(random.integers(0, 100, (5, 64), np.uint8)), jnp.full(5, 0.01, jnp.float32), per="row")
    b, down = normal(64, 64, dtype=weights), normal(64, 64, dtype=weights)
    packed, below = tj.pack(b, b), tj.pack_gemm(down)
    experts = tj.pack_grouped(b[None], b[None]), tj.pack_grouped(down[None])
    rows = dict(offsets=jnp.asarray([0, 5], jnp.int32))
    ids = jnp.zeros((5, 1), jnp.int32), jnp.ones((5, 1))
    for call in (lambda a: tj.dual_gemm(a, b, b), lambda a: tj.gemm(a, b), lambda a: tj.grouped_gemm(a, b[None], **rows),
                 lambda a: tj.dual_gemm_packed(a, packed, 64), lambda a: tj.gemm_packed(a, below, 64), lambda a: tj.gated_mlp(a, packed, below),
                 lambda a: tj.grouped_gemm_packed(a, experts[1], 64, **rows), lambda a: tj.grouped_dual_gemm_packed(a, experts[0], 64, **rows),
                 lambda a: tj.moe(a, *experts, *ids)):
        assert call(tokens).dtype == expected and jax.jit(call)(tokens).dtype == expected
        assert call(normal(5, 64, dtype=jnp.float16)).dtype == jnp.float16
    traced = jax.jit(lambda a, packed, below: tj.gated_mlp(a, packed, below))
    if weights == jnp.bfloat16:
        assert traced(tokens, packed, below).dtype == expected
        return
    with pytest.raises(Exception, match="out_dtype is missing beside packed weights in float16 that are traced: give out_dtype='float16'"):
        jax.block_until_ready(traced(tokens, packed, below))
    given = jax.jit(lambda a, packed, below: tj.gated_mlp(a, packed, below, out_dtype="float16"))
    same(given(tokens, packed, below), tn.gated_mlp(host(tokens), *host((packed, below))))


def test_ids_of_64_bits_and_weights_of_16(normal):
    x, experts = normal(5, 64), (tj.pack_grouped(normal(3, 48, 64), order="gate_first"), tj.pack_grouped(normal(3, 64, 24)))
    ids, factors = np.asarray([[0, 2], [1, -1], [2, 2], [0, 1], [2**31, 0]]), jnp.linspace(0, 1, 10).reshape(5, 2).astype(jnp.bfloat16)
    expected = tn.moe(*host((x, *experts)), np.minimum(ids, 99).astype(np.int32), np.asarray(factors, np.float32))
    with pytest.raises(thresher.InvalidArgumentError, match=r"topk_ids\[4, 0\] is 2147483648, expected"):
        tj.moe(x, *experts, ids, factors)
    with pytest.raises(thresher.InvalidArgumentError, match=r"topk_ids\[4, 0\] is 2147483648, expected"):
        jax.jit(lambda x: tj.moe(x, *experts, ids, factors))(x)
    same(tj.moe(x, *experts, np.minimum(ids, 99), factors), expected)
    with jax.enable_x64(True):
        rows, offsets = normal(9, 64), jnp.asarray([0, 3, 9])
        assert offsets.dtype == jnp.int64
        check("grouped_gemm", rows, normal(2, 16, 64), offsets=offsets, row_weights=jnp.linspace(0, 1, 9).astype(jnp.float16))
        check("attention", normal(9, 2, 64), normal(9, 2, 64), normal(9, 2, 64), cu_seqlens_q=offsets, cu_seqlens_k=offsets)
        call = jax.jit(lambda x, ids: tj.moe(x, *experts, ids, factors))
        if tj.native is not None:  # numbers that int32 does not hold stay outside of all experts
            same(call(x, jnp.asarray(ids)), expected)
        same(call(x, jnp.asarray(np.minimum(ids, 99))), expected)


def test_packed_weights(normal):
    a, b1, b2 = normal(5, 64), normal(24, 64), normal(24, 64)
    packed = tj.pack(b1, b2)
    assert packed.dtype == jnp.uint8 and tj.packed_info(packed).n == 24
    for call in (tj.dual_gemm_packed, jax.jit(tj.dual_gemm_packed, static_argnums=2)):
        same(call(a, packed, 24), tn.dual_gemm(*host((a, b1, b2))))
    experts, down = normal(3, 32, 64), normal(3, 8, 64)
    rows, offsets = normal(9, 64), jnp.asarray([0, 3, 3, 9], jnp.int32)
    gate_up, below = tj.pack_grouped(experts, order="gate_first", bias1=normal(3, 32)), tj.pack_grouped(down)
    expected = tn.grouped_dual_gemm_packed(*host((rows, gate_up)), offsets=np.asarray(offsets))
    for call in (tj.grouped_dual_gemm_packed, jax.jit(tj.grouped_dual_gemm_packed, static_argnums=2)):
        same(call(rows, gate_up, 16, offsets=offsets), expected)
    same(jax.jit(tj.grouped_gemm_packed, static_argnums=2)(rows, below, 8, offsets=offsets),
         tn.grouped_gemm(*host((rows, down)), offsets=np.asarray(offsets)))
    with pytest.raises(thresher.InvalidArgumentError, match="n is 23, but the weights have N = 24"):
        tj.dual_gemm_packed(a, packed, 23)
    with pytest.raises(Exception, match="n is 23, but the weights have N = 24"):
        jax.block_until_ready(jax.jit(tj.dual_gemm_packed, static_argnums=2)(a, packed, 23))
    for call in (lambda: jax.jit(tj.pack)(b1, b2), lambda: jax.jit(tj.packed_info)(packed)):
        with pytest.raises(thresher.InvalidArgumentError, match="outside of jax.jit"):
            call()


def test_products_and_layers(normal):
    a, b, bias = normal(5, 64), normal(24, 64), normal(24)
    check("gemm", a, b)
    check("gemm", a, b, bias=bias, out_dtype="float32")
    packed, expected = tj.pack_gemm(b, bias=bias), tn.gemm(*host((a, b)), bias=np.asarray(bias))
    for call in (tj.gemm_packed, jax.jit(tj.gemm_packed, static_argnums=2)):
        same(call(a, packed, 24), expected)
    check("gated_mlp", a, tj.pack(b, b), tj.pack_gemm(normal(64, 24)), activation="gelu_tanh", intermediate_dtype="float16")
    ids, factors = jnp.asarray([[0, 2], [1, -1], [2, 2], [0, 1], [9, 0]], jnp.int32), jnp.linspace(0, 1, 10).reshape(5, 2)
    experts = tj.pack_grouped(normal(3, 2 * 24, 64), order="gate_first"), tj.pack_grouped(normal(3, 64, 24))
    check("moe", a, *experts, ids, factors)
    check("moe", a, *experts, ids, factors, rows_dtype="bfloat16", out_dtype="float32")


def test_without_the_library(normal, monkeypatch):
    monkeypatch.setattr("thresher.jax.native", None)
    a, b = normal(5, 64), normal(24, 64)
    check("dual_gemm", a, b, b)
    check("attention", normal(1, 2, 7, 64), normal(1, 2, 9, 64), normal(1, 2, 9, 64), return_lse=True)
    with pytest.raises(Exception, match="n is 23, but the weights have N = 24"):
        jax.block_until_ready(jax.jit(tj.dual_gemm_packed, static_argnums=2)(a, tj.pack(b, b), 23))


def test_compiled_programs_call_the_library(normal):
    if tj.native is None:
        pytest.skip("libthresher_jax.so is not there")
    a, b = normal(5, 64), normal(24, 64)
    text = jax.jit(tj.dual_gemm).lower(a, b, b).as_text()
    assert "thresher_call" in text and "callback" not in text


def test_inside_of_a_program(normal):
    a, b1, b2 = normal(4, 5, 64), normal(24, 64), normal(24, 64)

    @jax.jit
    def layers(a):
        return jax.vmap(lambda one: tj.dual_gemm(one * 2, b1, b2) + 1)(a)

    expected = np.stack([np.asarray(jnp.asarray(tn.dual_gemm(np.asarray(one * 2), *host((b1, b2)))) + 1) for one in a])
    same(layers(a), expected)
    total, count = jax.lax.scan(lambda sum, one: (sum + tj.dual_gemm(one, b1, b2).astype(jnp.float32).sum(), 1), 0.0, a)
    assert np.isfinite(total) and count.shape == (4,)


def test_the_document():
    text = (pathlib.Path(__file__).parents[2] / "docs" / "guides" / "python.md").read_text()
    found = re.findall(r"^```py\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    exec(compile(found[0], "docs/guides/python.md", "exec"), {})


@pytest.mark.parametrize("derive", [
    lambda f, g, a: jax.grad(g)(a), lambda f, g, a: jax.jit(jax.grad(g))(a), lambda f, g, a: jax.grad(jax.jit(g))(a), lambda f, g, a: jax.vjp(f, a),
    lambda f, g, a: jax.jvp(f, (a,), (a,)), lambda f, g, a: jax.linearize(f, a), lambda f, g, a: jax.jacfwd(f)(a), lambda f, g, a: jax.jacrev(f)(a),
    lambda f, g, a: jax.hessian(g)(a), lambda f, g, a: jax.grad(jax.checkpoint(g))(a),
    lambda f, g, a: jax.grad(lambda a: jax.lax.cond(a.sum() > 0, g, g, a))(a),
    lambda f, g, a: jax.grad(lambda a: jax.lax.scan(lambda sum, one: (sum + g(one[None]), None), 0.0, a)[0])(a),
], ids=["grad", "jit of grad", "grad of jit", "vjp", "jvp", "linearize", "jacfwd", "jacrev", "hessian", "checkpoint", "cond", "scan"])
def test_derivatives_are_refused(normal, derive):
    a, b1, b2 = normal(5, 64), normal(24, 64), normal(24, 64)
    function = lambda a: tj.dual_gemm(a, b1, b2).astype(jnp.float32)  # noqa: E731
    with pytest.raises(thresher.UnsupportedError, match="no backward pass"):
        derive(function, lambda a: function(a).sum(), a)


def test_derivatives_by_every_argument_are_refused(normal):
    a, b, q = normal(5, 64), normal(64, 64), normal(1, 2, 4, 64)
    codes = jnp.ones((24, 64), jnp.uint8)
    experts = tj.pack_grouped(b[None], b[None]), tj.pack_grouped(b[None])
    for function, operand in ((lambda b: tj.gemm(a, b), b), (lambda bias: tj.gemm(a, b, bias=bias), normal(64)),
                              (lambda s: tj.gemm(a, thresher.Fp8(codes, s, per="row")), jnp.ones(24)),
                              (lambda w: tj.moe(a, *experts, jnp.zeros((5, 1), jnp.int32), w), jnp.ones((5, 1), jnp.bfloat16)),
                              (lambda s: tj.attention(q, q, q, sinks=s, return_lse=True)[1], jnp.ones(2))):
        with pytest.raises(thresher.UnsupportedError, match="no backward pass"):
            jax.grad(lambda one: function(one).astype(jnp.float32).sum())(operand)


IN_SHARD_MAP = """
import jax, jax.numpy as jnp, numpy as np, thresher.jax as tj
from jax.sharding import Mesh, PartitionSpec as P
a, gate, down, q = (jax.random.normal(jax.random.key(seed), shape, jnp.bfloat16)
                    for seed, shape in enumerate(((16, 128), (256, 128), (128, 256), (4, 2, 8, 64))))
step = lambda rows, _: (tj.gemm(tj.dual_gemm(rows, gate, gate), down), None)
layers = lambda rows: jax.lax.scan(step, rows, None, length=2)[0]
over = lambda f, *given: jax.shard_map(f, mesh=Mesh(np.array(jax.devices()), ("x",)), in_specs=given, out_specs=P("x"))
for run in (over(layers, P("x")), jax.jit(over(layers, P("x")))):
    assert (run(a) == layers(a)).all() and len(run(a).sharding.device_set) == 2
sums = over(lambda q: jax.lax.map(lambda one: tj.attention(one[None], one[None], one[None], return_lse=True)[1], q), P("x"))
assert sums(q).shape == (4, 1, 2, 8)
assert (over(tj.gemm, P("x"), P())(a, gate) == tj.gemm(a, gate)).all()
print("native" if tj.native else "host")
"""


@pytest.mark.parametrize("native", [True, False])
def test_in_a_scan_inside_of_shard_map(native):
    if not hasattr(jax, "shard_map"):
        pytest.skip("this jax has no jax.shard_map")
    text = IN_SHARD_MAP if native else IN_SHARD_MAP.replace("from jax.sharding", "tj.native = None\nfrom jax.sharding")
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ("native" if native and tj.native else "host")


def test_a_refusal_inside_of_a_program_shows_no_frames_of_the_package(normal, monkeypatch):
    monkeypatch.setattr("thresher.jax.native", None)
    with pytest.raises(Exception, match="K is 30, expected a multiple of 8") as refused:
        jax.block_until_ready(jax.jit(tj.gemm)(normal(5, 30), normal(24, 30)))
    assert "_plans.py" not in str(refused.value) and "_gemm.py" not in str(refused.value)


@pytest.mark.parametrize("call, sentence", [
    (lambda a, b: tj.dual_gemm(a, b, b[:, :32]), "b2 has the shape [24, 32], expected [24, 64]"),
    (lambda a, b: tj.dual_gemm(a[:, :32], b, b), "a has the shape [5, 32], expected [5, 64]"),
    (lambda a, b: tj.dual_gemm(a[0], b, b), "a has 1 dimension"),
    (lambda a, b: tj.dual_gemm(a, b, None), "b2 is None, expected an array"),
    (lambda a, b: tj.dual_gemm(a.astype(jnp.int8), b, b), "a is int8, expected float16, bfloat16, Nvfp4 or Fp8"),
    (lambda a, b: tj.dual_gemm(a, b, b, activation="relu"), "activation is 'relu'"),
    (lambda a, b: tj.dual_gemm(a, b, b, alpha=1.702), "alpha is 1.702, but the activation is 'silu', which has none"),
    (lambda a, b: tj.gemm(np.ones((5, 64), ">f2"), b), "a is float16 in another byte order than this machine's, expected float16"),
    (lambda a, b: tj.gemm(np.ma.ones((5, 64), np.float16), b), "a is masked float16, expected float16"),
    (lambda a, b: tj.gemm(a.astype(jnp.float32), b), "a is float32, expected float16, bfloat16, Nvfp4 or Fp8"),
    (lambda a, b: tj.gated_mlp(a, a, a, intermediate_dtype="float32"), "intermediate_dtype is float32, expected float16, bfloat16, nvfp4"),
    (lambda a, b: tj.moe(a, a, a, jnp.zeros((5, 1)), jnp.zeros((5, 1))), "topk_ids is float32, expected int32 or int64"),
    (lambda a, b: tj.moe(a, a, a, jnp.zeros((5, 1), jnp.int32), jnp.zeros((5, 1)), rows_dtype=None), "rows_dtype is None, expected float16"),
    (lambda a, b: tj.grouped_gemm(a, b[None], offsets=jnp.zeros(2, jnp.int32), row_weights=jnp.zeros(4)), "row_weights has the shape [4], expected [5]"),
    (lambda a, b: tj.attention(a[None, None], a[None, None], a[None, None], sinks=jnp.zeros(2)), "sinks has the shape [2], expected [1]"),
    (lambda a, b: tj.attention(a[None, None], a[None, None], a[None, None], k_descale=jnp.ones((1, 1))),
     "k_descale is given, but keys and values are not float8_e4m3fn"),
    (lambda a, b: tj.dual_gemm(a, b, b, out_dtype="int8"), "out_dtype is 'int8'"),
    (lambda a, b: tj.grouped_gemm(a, b[None]), "neither offsets nor counts are given"),
    (lambda a, b: tj.grouped_gemm(a, b[None], offsets=jnp.zeros(2, jnp.int32), row_ids_divisor=2), "row_ids_divisor is 2, but row_ids are missing"),
    (lambda a, b: tj.attention(a[None, None], a[None, None], a[None, None], return_lse=1), "return_lse is 1, expected True or False"),
    (lambda a, b: tj.grouped_dual_gemm(a, b[None], offsets=jnp.zeros(2, jnp.int32)), "order is missing"),
    (lambda a, b: tj.grouped_gemm(a, b[None], offsets=jnp.zeros(3, jnp.int32)), "offsets has the shape [3], expected [2]"),
    (lambda a, b: tj.gemm(a[:, :32], b), "a has the shape [5, 32], expected [5, 64]"),
    (lambda a, b: tj.gated_mlp(a, b, b), "gate_up is bfloat16, expected uint8"),
    (lambda a, b: tj.moe(a, a, a, jnp.zeros((4, 1), jnp.int32), jnp.zeros((4, 1))), "topk_ids has the shape [4, 1], expected [5, 1]"),
    (lambda a, b: tj.attention(a, a, a), "q has 2 dimensions"),
    (lambda a, b: tj.attention(a.astype(jnp.float8_e4m3fn), a, a), "k is bfloat16, expected float8_e4m3fn or uint8"),
    (lambda a, b: tj.dual_gemm_packed(a, b, 24), "weights is bfloat16, expected uint8"),
    (lambda a, b: tj.dual_gemm_packed(a, jnp.zeros(64, jnp.uint8), "many"), "n is 'many', expected a whole number"),
    (lambda a, b: tj.dual_gemm(a, b, b, activation="swiglu_clamped", limit=-1.0), "limit is -1, expected a number above 0"),
    (lambda a, b: tj.dual_gemm(a, b, b, activation="swiglu_clamped", alpha=float("nan")), "alpha is nan and up_offset 1, expected finite numbers"),
    (lambda a, b: tj.dual_gemm(a[:, :12], b[:, :12], b[:, :12]), "K is 12, expected a multiple of 8 for bfloat16 operands"),
    (lambda a, b: tj.gemm(a[:, :12], b[:, :12]), "K is 12, expected a multiple of 8 for bfloat16 operands"),
    (lambda a, b: tj.gemm(a[:, :0], b[:, :0]), "K is 0, expected at least 1"),
    (lambda a, b: tj.grouped_gemm(a[:, :12], b[None, :, :12], offsets=jnp.asarray([0, 5])), "K is 12, expected a multiple of 8 for bfloat16 operands"),
    (lambda a, b: tj.gated_mlp(a, *[jnp.zeros(64, jnp.uint8)] * 2, intermediate_dtype="fp8_tensor", intermediate_scale=-1.0),
     "intermediate_scale is -1, expected a finite number above 0"),
    (lambda a, b: tj.gated_mlp(a, *[jnp.zeros(64, jnp.uint8)] * 2, intermediate_dtype="nvfp4", intermediate_scale=1e-60), "intermediate_scale is 1e-60, which is 0"),
    (lambda a, b: tj.attention(*[a[None, None]] * 3, scale=1e300), "scale is 1e+300, which is infinite in float32"),
    (lambda a, b: tj.attention(*[a[None, None]] * 3, softcap=-3.0), "softcap is -3, expected 0 (none) or a finite number above 0"),
    (lambda a, b: tj.attention(*[a[None, None]] * 3, window={1, 0}), "window is {0, 1}, expected the keys to the left and to the right"),
    (lambda a, b: tj.attention(*[a[None, None, :, :48]] * 3), "the last dimension of q and k is 48, expected 64, 128, 192, 256 or 576"),
    (lambda a, b: tj.attention(a[None, None], a[None, None], a[None, None, :, :48]), "the last dimension of v is 48, expected 64, 128, 192, 256 or 512"),
])
def test_refused_while_it_is_traced(normal, call, sentence):
    for run in (call, jax.jit(call), lambda *given: jax.eval_shape(call, *given)):
        with pytest.raises(thresher.InvalidArgumentError) as refused:
            run(normal(5, 64), normal(24, 64))
        assert sentence in str(refused.value)


def test_traced_extents_are_refused_in_the_words_of_the_library():
    for width in (0, 8, 12, 20):
        a = jnp.ones((4, width), jnp.float16)
        assert said(lambda: jax.eval_shape(tj.gemm, a, a)) == said(lambda: tn.gemm(*host((a, a))))
    for width in (48, 64, 80, 128, 192, 256, 512, 576):
        q, k = jnp.ones((1, 1, 2, 64)), jnp.ones((1, 1, 2, width))
        for given in ((k, k, q), (q, q, k)):
            given = [one.astype(jnp.float16) for one in given]
            assert said(lambda: jax.eval_shape(tj.attention, *given)) == said(lambda: tn.attention(*host(given)))


def said(call):
    try:
        call()
    except thresher.Error as error:
        return str(error)
    return None


def test_a_result_lies_where_its_arrays_do():
    program = """
import jax, jax.numpy as jnp, thresher.jax as tj
first, second = jax.devices()
a, b = jnp.ones((4, 64), jnp.bfloat16), jnp.ones((8, 64), jnp.bfloat16)
assert tj.gemm(a, b).devices() == {first}
assert tj.gemm(*jax.device_put((a, b), second)).devices() == tj.gemm(jax.device_put(a, second), b).devices() == {second}
"""
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def test_arrays_may_be_stored_column_by_column(normal):
    layout = pytest.importorskip("jax.experimental.layout", reason="this jax has no layouts")
    a, gate, up = normal(8, 64), normal(24, 64), normal(24, 64)
    stored = jax.device_put(a, layout.Format(layout.Layout((1, 0)), a.sharding))
    for call in (tj.dual_gemm, jax.jit(tj.dual_gemm)):
        same(call(stored, gate, up), tn.dual_gemm(*host((a, gate, up))))


def test_arguments_that_are_not_known_are_refused(normal):
    a, b = normal(5, 64), normal(24, 64)
    for given in (dict(out=a), dict(strategy="two_pass"), dict(activaton="silu")):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{next(iter(given))}'"):
            tj.dual_gemm(a, b, b, **given)
