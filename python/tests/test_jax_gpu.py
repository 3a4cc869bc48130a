"""thresher.jax on a GPU, at once and under jax.jit: the bits of thresher.torch on the same arrays."""

import os

import numpy as np
import pytest

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the GPU is shared with torch
jax = pytest.importorskip("jax", reason="jax is not installed: the tests of thresher.jax are left out")
torch = pytest.importorskip("torch", reason="torch is not installed: thresher.jax on a GPU is held against thresher.torch")
pytestmark = [pytest.mark.gpu, pytest.mark.on_demand]
if jax.default_backend() != "gpu" or not torch.cuda.is_available():
    pytest.skip("there is no GPU, or no jax for it: the tests of thresher.jax on one are left out", allow_module_level=True)

import jax.numpy as jnp  # noqa: E402

import thresher  # noqa: E402
import thresher.jax as tj  # noqa: E402
import thresher.torch as tt  # noqa: E402

if tj.native is None:
    pytest.skip("libthresher_jax.so is not there: jax has no thresher on a GPU", allow_module_level=True)


@pytest.fixture
def normal(random):
    return lambda *shape, dtype=jnp.bfloat16: jnp.asarray(random.standard_normal(shape), dtype)


def in_torch(tree):
    """The same memory, as torch has it."""
    jax.block_until_ready(tree)
    if isinstance(tree, thresher.Nvfp4):
        return thresher.Nvfp4(*(in_torch(one) for one in (tree.values, tree.scales, tree.global_scale)), scale_layout=tree.scale_layout)
    return torch.from_dlpack(tree) if isinstance(tree, jax.Array) else tree


def same(result, expected):
    torch.cuda.synchronize()
    for one, other in zip(jax.tree_util.tree_leaves(result), expected if isinstance(expected, tuple) else (expected,), strict=True):
        assert {device.platform for device in one.devices()} == {"gpu"}
        assert torch.equal(in_torch(one), other)


def check(name, *operands, **named):
    """At once and traced, arrays by name being traced too."""
    arrays = {key: value for key, value in named.items() if isinstance(value, jax.Array)}
    options = {key: value for key, value in named.items() if key not in arrays}
    with torch.inference_mode():
        expected = getattr(tt, name)(*map(in_torch, operands), **{key: in_torch(one) for key, one in arrays.items()}, **options)
    function = getattr(tj, name)
    same(function(*operands, **arrays, **options), expected)
    constant = [one for one in operands if isinstance(one, int)]
    traced = [one for one in operands if not isinstance(one, int)]
    same(jax.jit(lambda traced, arrays: function(*traced, *constant, **arrays, **options))(traced, arrays), expected)


def test_dense(normal):
    a, b1, b2 = normal(9, 128), normal(64, 128), normal(64, 128)
    check("dual_gemm", a, b1, b2, activation="gelu_tanh")
    check("gemm", a, b1, bias=normal(64))
    halves = [one.astype(jnp.float16) for one in (a, b1, b2)]
    check("dual_gemm", *halves)


def test_packed(normal, random):
    a, b1, b2, down = normal(9, 128), normal(64, 128), normal(64, 128), normal(128, 64)
    gate_up, below = tj.pack(b1, b2), tj.pack_gemm(down)
    check("dual_gemm_packed", a, gate_up, 64)
    check("gemm_packed", normal(9, 64), below, 128)
    check("gated_mlp", a, gate_up, below)
    four_bits = [thresher.Nvfp4(jnp.asarray(random.integers(0, 256, (64, 64), np.uint8)), jnp.asarray(random.integers(40, 60, (64, 8), np.uint8)),
                                jnp.asarray([0.5], jnp.float32)) for _ in range(2)]
    check("dual_gemm_packed", a, tj.pack(*four_bits), 64)
    with pytest.raises(Exception, match="n is 63, but the weights have N = 64"):
        jax.block_until_ready(tj.dual_gemm_packed(a, gate_up, 63))


def test_experts(normal):
    a, offsets = normal(9, 128), jnp.asarray([0, 3, 3, 9], jnp.int32)
    experts, down = normal(3, 2 * 64, 128), normal(3, 128, 64)
    check("grouped_gemm", a, normal(3, 64, 128), offsets=offsets)
    check("grouped_dual_gemm", a, experts, order="gate_first", offsets=offsets)
    gate_up, below = tj.pack_grouped(experts, order="gate_first"), tj.pack_grouped(down)
    check("grouped_dual_gemm_packed", a, gate_up, 64, offsets=offsets)
    ids, factors = jnp.asarray([[0, 2], [1, -1], [2, 1], [0, 1]], jnp.int32), jnp.linspace(0, 1, 8, dtype=jnp.float32).reshape(4, 2)
    check("moe", normal(4, 128), gate_up, below, ids, factors)


def test_attention(normal):
    q, k = normal(1, 4, 33, 64), normal(1, 2, 40, 64)
    check("attention", q, k, k, causal=True)


def test_inside_of_a_program(normal):
    a, b1, b2 = normal(9, 128), normal(64, 128), normal(64, 128)

    @jax.jit
    def layer(a):
        return tj.dual_gemm(a * 2, b1, b2) + 1

    expected = tj.dual_gemm(a * 2, b1, b2) + 1
    for _ in range(20):  # XLA runs ahead of the host, so that what is not in order with its stream shows
        assert (layer(a) == expected).all()
    total, _ = jax.lax.scan(lambda sum, one: (sum + tj.dual_gemm(one, b1, b2).astype(jnp.float32).sum(), None), 0.0, jnp.stack([a] * 5))
    assert np.isfinite(total)
