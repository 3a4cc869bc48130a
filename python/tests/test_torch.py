"""The torch operators against the definition, under opcheck and torch.compile, and the modules against float ones."""

import copy
import io
import pickle

import definition
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: the tests of thresher.torch are left out")

import thresher  # noqa: E402
import thresher.torch as tt  # noqa: E402
from thresher.torch._native import call as called  # noqa: E402

DTYPES = [torch.float16, torch.bfloat16]
ops = torch.ops.thresher


@pytest.fixture(autouse=True)
def no_gradients():
    torch.manual_seed(20261123)
    with torch.no_grad():
        yield


def floats(tensor):
    return tensor.double().numpy()


def check(result, exact, error):
    """As definition.check, of a tensor: what was rounded to its type lies as far as that allows."""
    name = str(result.dtype).removeprefix("torch.")
    as_numpy = result.float().numpy()
    if name == "bfloat16":
        import ml_dtypes

        as_numpy = as_numpy.astype(ml_dtypes.bfloat16)
    elif name == "float16":
        as_numpy = as_numpy.astype("float16")
    definition.check(as_numpy, exact, error)


def normal(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape).to(dtype)


def dual_operands(m=5, n=24, k=64, dtype=torch.bfloat16):
    return normal(m, k, dtype=dtype), normal(n, k, dtype=dtype), normal(n, k, dtype=dtype) / 8


OFFSETS = torch.tensor([0, 3, 3, 11], dtype=torch.int32)


def grouped_operands():
    return normal(11, 32), normal(3, 16, 32), normal(3, 16, 32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["silu", "gelu_tanh", "swiglu_clamped", "situ"])
def test_dual_gemm_is_its_definition(dtype, kind):
    a, b1, b2 = dual_operands(dtype=dtype)
    for out_dtype in (None, torch.float32):
        result = tt.dual_gemm(a, b1, b2, activation=kind, out_dtype=out_dtype)
        assert result.dtype == (out_dtype or dtype)
        check(result, *definition.dual_gemm(floats(a), floats(b1), floats(b2), kind))
    out = torch.full((5, 32), 7.0, dtype=dtype)
    assert tt.dual_gemm(a, b1, b2, activation=kind, out=out[:, :24]).data_ptr() == out.data_ptr()
    assert torch.equal(out[:, :24], tt.dual_gemm(a, b1, b2, activation=kind)) and (out[:, 24:] == 7).all()


def test_nvfp4_weights():
    def weights():
        values = torch.randint(0, 256, (16, 32), dtype=torch.uint8)
        return thresher.Nvfp4(values, torch.randint(40, 70, (16, 4), dtype=torch.uint8), torch.tensor([0.5]))

    a, b1, b2 = normal(4, 64), weights(), weights()
    dense = [definition.nvfp4(b.values.numpy(), b.scales.numpy(), 0.5) for b in (b1, b2)]
    check(tt.dual_gemm(a, b1, b2, out_dtype=torch.float32), *definition.dual_gemm(floats(a), *dense))
    as_e4m3 = thresher.Nvfp4(b1.values, b1.scales.view(torch.float8_e4m3fn), b1.global_scale)
    assert torch.equal(tt.dual_gemm(a, as_e4m3, b2), tt.dual_gemm(a, b1, b2))


def test_mxfp4_is_held_as_nvfp4():
    values, exponents = torch.randint(0, 256, (2, 24, 32), dtype=torch.uint8), torch.randint(118, 130, (2, 24, 2), dtype=torch.uint8)
    held, same = thresher.Nvfp4.of_mxfp4(values, exponents), thresher.Nvfp4.of_mxfp4(values.numpy(), exponents.numpy())
    for part in ("values", "scales", "global_scale"):
        assert (getattr(held, part).numpy() == getattr(same, part)).all()
    if hasattr(torch, "float8_e8m0fnu"):
        assert torch.equal(thresher.Nvfp4.of_mxfp4(values, exponents.view(torch.float8_e8m0fnu)).scales, held.scales)
    rows = normal(5, 64)
    result = tt.grouped_gemm(rows, held, offsets=torch.tensor([0, 2, 5], dtype=torch.int32), out_dtype=torch.float32)
    for e, of_expert in enumerate((slice(0, 2), slice(2, 5))):
        dense = definition.nvfp4(same.values[e], same.scales[e], same.global_scale[e])
        check(result[of_expert], *definition.product(floats(rows[of_expert]), dense))


def fp8(rows, k, per, tokens=False, experts=()):
    """The operand, and its values in float64."""
    step = {"tensor": (rows, k), "row": (1, k), "block": (1 if tokens else 128, 128)}[per]
    values = torch.randn(*experts, rows, k).to(torch.float8_e4m3fn)
    scales = torch.rand(*experts, -(-rows // step[0]), -(-k // step[1])) + 0.25
    wide = scales.repeat_interleave(step[0], -2).repeat_interleave(step[1], -1)[..., :rows, :k]
    return thresher.Fp8(values, scales.reshape(-1) if per == "tensor" else scales, per=per), floats(values.float().double() * wide)


@pytest.mark.parametrize("per", ["tensor", "row", "block"])
def test_fp8_weights_and_tokens(per):
    (a, dense_a), (b1, dense1), (b2, dense2) = fp8(5, 160, per, True), fp8(150, 160, per), fp8(150, 160, per)
    check(tt.dual_gemm(a, b1, b2, out_dtype=torch.float32), *definition.dual_gemm(dense_a, dense1, dense2))
    assert tt.dual_gemm(a, b1, b2).dtype == torch.bfloat16
    tokens = normal(5, 160)
    check(tt.dual_gemm(tokens, b1, b2), *definition.dual_gemm(floats(tokens), dense1, dense2))
    packed = tt.pack(b1, b2)
    assert torch.equal(tt.dual_gemm_packed(a, packed, 150), tt.dual_gemm(a, b1, b2))
    function = compiled(lambda a: tt.dual_gemm_packed(a, packed, 150) + tt.dual_gemm(a, b1, b2))
    assert torch.equal(function(tokens), tt.dual_gemm(tokens, b1, b2) * 2)
    (rows, dense_rows), (experts, dense_experts) = fp8(11, 32, per, True), fp8(16, 32, per, experts=(3,))
    result = tt.grouped_gemm(rows, experts, offsets=OFFSETS, out_dtype=torch.float32)
    for e in range(3):
        of_expert = slice(OFFSETS[e], OFFSETS[e + 1])
        check(result[of_expert], *definition.product(dense_rows[of_expert], dense_experts[e]))
    assert torch.equal(tt.grouped_gemm_packed(rows, tt.pack_grouped(experts), 16, offsets=OFFSETS, out_dtype=torch.float32), result)
    codes = tuple(one.values.view(torch.uint8) for one in (a, b1, b2))  # opcheck adds values, which torch cannot in FP8
    assert torch.equal(tt.dual_gemm(tokens, *(thresher.Fp8(one, b.scales, per=per) for one, b in zip(codes[1:], (b1, b2)))),
                       tt.dual_gemm(tokens, b1, b2))
    torch.library.opcheck(ops.dual_gemm.default, codes, dict(
        a_scales=a.scales, a_format=a.format, b1_scales=b1.scales, b2_scales=b2.scales, b_format=b1.format))


def test_nvfp4_tokens():
    def operand(rows):
        values = torch.randint(0, 256, (rows, 32), dtype=torch.uint8)
        made = thresher.Nvfp4(values, torch.randint(40, 70, (rows, 4), dtype=torch.uint8), torch.tensor([0.5]))
        return made, definition.nvfp4(values.numpy(), made.scales.numpy(), 0.5)

    (a, dense_a), (b1, dense1), (b2, dense2) = operand(5), operand(16), operand(16)
    check(tt.dual_gemm(a, b1, b2, out_dtype=torch.float32), *definition.dual_gemm(dense_a, dense1, dense2))
    assert tt.dual_gemm(a, normal(16, 64), normal(16, 64)).dtype == torch.bfloat16
    assert torch.equal(tt.dual_gemm_packed(a, tt.pack(b1, b2), 16), tt.dual_gemm(a, b1, b2))


def test_modules_of_fp8_weights():
    x, (gate, _), (up, _) = normal(7, 64), fp8(48, 64, "row"), fp8(48, 64, "row")
    for down in (normal(64, 48), fp8(64, 48, "tensor")[0]):
        ours = tt.GatedMLP(gate, up, down)
        assert torch.equal(ours(x), tt.gemm(tt.dual_gemm(x, gate, up), down))
        for other in travelled(ours):
            assert torch.equal(other(x), ours(x))
    experts, below = fp8(64, 64, "row", experts=(3,))[0], fp8(64, 32, "row", experts=(3,))[0]
    moe = tt.MoE(experts, below, order="interleaved")
    ids = torch.tensor([[0], [2], [1]], dtype=torch.int32)
    by_token = torch.cat([tt.grouped_dual_gemm(x[t:t + 1], thresher.Fp8(experts.values[e:e + 1], experts.scales[e:e + 1], per="row"),
                                               order="interleaved", offsets=torch.tensor([0, 1], dtype=torch.int32)) for t, e in enumerate(ids)])
    downs = [thresher.Fp8(below.values[e], below.scales[e], per="row") for e in ids[:, 0]]
    expected = torch.cat([tt.gemm(by_token[t:t + 1], downs[t]) for t in range(3)])
    assert torch.equal(moe(x[:3], ids, torch.ones(3, 1)), expected)


def test_layers_are_their_products():
    x, gate, up, down, bias = normal(7, 64), normal(48, 64), normal(48, 64), normal(64, 48), torch.rand(64)
    hidden = tt.dual_gemm(x, gate, up)
    result = tt.gemm(hidden, down, bias=bias, out_dtype=torch.float32)
    check(result, *definition.product(floats(hidden), floats(down), floats(bias)))
    assert torch.equal(tt.gemm_packed(hidden, tt.pack_gemm(down, bias=bias), 64, out_dtype=torch.float32), result)
    gate_up, below = tt.pack(gate, up), tt.pack_gemm(down)
    assert torch.equal(tt.gated_mlp(x, gate_up, below), tt.gemm(hidden, down))
    out = torch.full((7, 72), 7.0, dtype=x.dtype)
    tt.gated_mlp(x, gate_up, below, out=out[:, :64])
    assert torch.equal(out[:, :64], tt.gemm(hidden, down)) and (out[:, 64:] == 7).all()
    wide = tt.dual_gemm(x, gate, up, out_dtype=torch.float16)
    assert torch.equal(tt.gated_mlp(x, gate_up, below, intermediate_dtype=torch.float16), tt.gemm(wide, down, out_dtype=torch.bfloat16))
    one = tt.pack_grouped(gate[None], up[None]), tt.pack_grouped(down[None])
    nobody = torch.zeros(7, 1, dtype=torch.int32)
    assert torch.equal(tt.moe(x, *one, nobody, torch.ones(7, 1)), tt.gemm(hidden, down))
    assert (tt.moe(x, *one, nobody - 1, torch.ones(7, 1), rows_dtype=torch.bfloat16) == 0).all()


def test_experts_of_whole_blocks_round_once_between_products():
    (gate, _), (up, _), (down, _) = (fp8(256, 160, "block", experts=(3,)), fp8(256, 160, "block", experts=(3,)),
                                     fp8(160, 256, "block", experts=(3,)))
    ours = tt.MoE((gate, up), down, tokens="fp8_block")
    x, weights, ids = normal(7, 160), torch.rand(7, 2), torch.randint(-1, 3, (7, 2), dtype=torch.int32)
    given, packed = in_fp8(x), (tt.pack_grouped(gate, up), tt.pack_grouped(down))
    result = tt.moe(given, *packed, ids, weights, intermediate_dtype="fp8_block", rows_dtype=torch.bfloat16, out_dtype=torch.bfloat16)
    assert torch.equal(ours(x, ids, weights), result)
    assert torch.equal(compiled(ours)(x, ids, weights), result)
    in_two = tt.moe(given, *packed, ids, weights, out_dtype=torch.bfloat16)
    assert not torch.equal(result, in_two) and (result - in_two).float().norm() < 0.1 * in_two.float().norm()
    tt.warm(ours, 7, choices=2)
    assert ours(x[:0], ids[:0], weights[:0]).shape == (0, 160)
    torch.library.opcheck(ops.moe.default, (x, *packed, ids, weights), dict(intermediate_format="fp8_tensor", intermediate_scale=0.5))


def test_experts_round_tokens_to_fp8():
    (gate, _), (up, _), (down, _) = (fp8(144, 160, "block", experts=(3,)), fp8(144, 160, "block", experts=(3,)),
                                     fp8(160, 144, "block", experts=(3,)))
    ours = tt.MoE((gate, up), down, tokens="fp8_block")
    x, weights = normal(7, 160), torch.rand(7, 2)
    x[3, :128] = 0
    ids = torch.tensor([[0, 1], [2, -1], [1, 0], [1, 2], [-1, -1], [2, 0], [0, 2]])
    result = ours(x, ids, weights)
    each = torch.zeros(7, 2, 160)
    for token, choice in (ids >= 0).nonzero().tolist():
        e = ids[token, choice]
        one = [thresher.Fp8(w.values[e], w.scales[e], per="block") for w in (gate, up, down)]
        hidden = tt.dual_gemm(in_fp8(x[token : token + 1]), *one[:2])
        columns = torch.tensor([0, 1], dtype=torch.int32)
        of_down = thresher.Fp8(one[2].values[None], one[2].scales[None], per="block")
        each[token, choice] = tt.grouped_gemm(in_fp8(hidden), of_down, offsets=columns, out_dtype=torch.float32,
                                              row_weights=weights[token, choice : choice + 1])
    assert torch.equal(result, each.sum(1).to(torch.bfloat16))
    assert torch.equal(compiled(ours)(x, ids, weights), result)
    tt.warm(ours, 7, choices=2)
    assert ours(x[:0], ids[:0], weights[:0]).shape == (0, 160)


def in_fp8(rows):
    """FP8 of rows [rows, K], a scale for 128 of each: the definition in docs/reference/numerics.md."""
    found = thresher.Fp8(torch.empty(rows.shape, dtype=torch.float8_e4m3fn), torch.empty(len(rows), -(-rows.shape[1] // 128)), per="block")
    for block, part in enumerate(rows.float().split(128, 1)):
        largest = part.abs().amax(1)
        found.scales[:, block] = torch.where(largest == 0, torch.tensor(1.0), largest / 448)
        found.values[:, 128 * block : 128 * block + 128] = (part / found.scales[:, block, None]).to(torch.float8_e4m3fn)
    return found


def test_gate_and_up_of_experts_may_be_two_tensors():
    gate, up, down = normal(3, 24, 32), normal(3, 24, 32), normal(3, 32, 24)
    x, ids, weights = normal(5, 32), torch.tensor([[0, 1]] * 5), torch.rand(5, 2)
    assert torch.equal(tt.MoE((gate, up), down)(x, ids, weights), tt.MoE(torch.cat([gate, up], 1), down, order="gate_first")(x, ids, weights))


def test_grouped_is_its_definition():
    a, b1, b2 = grouped_operands()
    weights = torch.rand(11)
    result = tt.grouped_dual_gemm(a, b1, b2, offsets=OFFSETS, out_dtype=torch.float32)
    down = tt.grouped_gemm(a, b1, offsets=OFFSETS, row_weights=weights, out_dtype=torch.float32)
    fused = tt.grouped_dual_gemm(a, torch.cat([b2, b1], 1), order="up_first", offsets=OFFSETS, out_dtype=torch.float32)
    assert torch.equal(fused, result)
    for e in range(3):
        rows = slice(OFFSETS[e], OFFSETS[e + 1])
        check(result[rows], *definition.dual_gemm(floats(a[rows]), floats(b1[e]), floats(b2[e])))
        exact, error = definition.product(floats(a[rows]), floats(b1[e]))
        w = floats(weights[rows, None])
        check(down[rows], exact * w, error * w + 2.0**-23 * abs(exact * w))
    out = torch.full((13, 16), 7, dtype=torch.bfloat16)
    tt.grouped_gemm(a, b1, offsets=OFFSETS, out=out[1:12])
    assert (out[[0, 12]] == 7).all() and torch.equal(out[1:12], tt.grouped_gemm(a, b1, offsets=OFFSETS))


def test_attention_is_its_definition():
    q, k, v = normal(2, 4, 9, 64), normal(2, 2, 12, 64), normal(2, 2, 12, 64)
    result, lse = tt.attention(q, k, v, causal=True, return_lse=True)
    for b in range(2):
        for h in range(4):
            exact, error, sums, sums_error = definition.attention(*(floats(x) for x in (q[b, h], k[b, h // 2], v[b, h // 2])), causal=True)
            check(result[b, h], exact, error)
            check(lse[b, h], sums, sums_error)
    out = torch.empty(2, 9, 4, 64, dtype=q.dtype).transpose(1, 2)
    again = tt.attention(q, k, v, causal=True, return_lse=True, out=out)
    assert again[0] is out and torch.equal(out, result) and torch.equal(again[1], lse)
    assert torch.equal(tt.attention(q, k, v, causal=True), result)


def eight_bits(*tensors):
    """FP8's bytes, since opcheck has no way with FP8."""
    return tuple(tensor.to(torch.float8_e4m3fn).view(torch.uint8) for tensor in tensors)


def pools():
    """Keys of 64 and values of 128 columns in pages of 4, in FP8."""
    return eight_bits(*(normal(5, 4, 2, width) for width in (64, 128)))


def in_pages(lengths):
    batch = len(lengths) - 1
    return dict(block_table=torch.arange(2 * batch, dtype=torch.int32).reshape(batch, 2).flip(1) % 5,
                seqused_k=torch.full((batch,), 7, dtype=torch.int32), sinks=torch.linspace(-1, 1, 2), k_descale=torch.full((1, 1), 0.5),
                v_descale=torch.full((batch, 2), 2.0))


def cases():
    a, b1, b2 = dual_operands()
    ga, g1, g2 = grouped_operands()
    fused = torch.cat([g1, g2], 1)
    ids = torch.arange(11, dtype=torch.int32)
    slots, counts = normal(3, 4, 32), torch.tensor([1, 0, 4], dtype=torch.int32)
    q, k = normal(2, 4, 9, 64), normal(2, 2, 12, 64)
    below = tt.pack_gemm(normal(64, 24))
    experts = tt.pack_grouped(g1, g2), tt.pack_grouped(normal(3, 32, 16)), torch.randint(-1, 3, (11, 2), dtype=torch.int32), torch.rand(11, 2)
    packed, lengths = normal(9, 2, 64), torch.tensor([0, 4, 9], dtype=torch.int32)
    return {
        "dual_gemm": [((a, b1, b2), {}), ((a, b1, b2), dict(out_dtype=torch.float32, activation="gelu_tanh"))],
        "dual_gemm_out": [((torch.empty(5, 24, dtype=a.dtype), a, b1, b2), {})],
        "grouped_dual_gemm": [
            ((ga, g1, g2), dict(offsets=OFFSETS)),
            ((ga, fused), dict(offsets=OFFSETS, order="gate_first", row_ids=ids, row_ids_divisor=2)),
            ((slots, g1, g2), dict(counts=counts)),
        ],
        "grouped_dual_gemm_out": [((torch.empty(11, 16, dtype=a.dtype), ga, g1, g2), dict(offsets=OFFSETS))],
        "grouped_gemm": [((ga, g1), dict(offsets=OFFSETS, row_weights=torch.rand(11), bias=torch.rand(3, 16)))],
        "grouped_gemm_out": [((torch.empty(11, 16), ga, g1), dict(offsets=OFFSETS))],
        "dual_gemm_packed": [((a, tt.pack(b1, b2), 24), {}), ((a, tt.pack(b1, b2), 24), dict(out_dtype=torch.float32))],
        "dual_gemm_packed_out": [((torch.empty(5, 24, dtype=a.dtype), a, tt.pack(b1, b2), 24), {})],
        "gemm": [((a, b1), {}), ((a, b1), dict(bias=torch.rand(24), out_dtype=torch.float32))],
        "gemm_out": [((torch.empty(5, 24, dtype=a.dtype), a, b1), {})],
        "gemm_packed": [((a, tt.pack_gemm(b1), 24), {})],
        "gemm_packed_out": [((torch.empty(5, 24), a, tt.pack_gemm(b1), 24), {})],
        "gated_mlp": [((a, tt.pack(b1, b2), below), {}), ((a, tt.pack(b1, b2), below), dict(intermediate_dtype=torch.float16))],
        "gated_mlp_out": [((torch.empty(5, 64), a, tt.pack(b1, b2), below), {})],
        "moe": [((ga, *experts), {}), ((ga, *experts), dict(rows_dtype=torch.bfloat16, out_dtype=torch.float32))],
        "moe_out": [((torch.empty(11, 32), ga, *experts), {})],
        "grouped_dual_gemm_packed": [
            ((ga, tt.pack_grouped(fused, order="gate_first"), 16), dict(offsets=OFFSETS, row_ids=ids)),
            ((slots, tt.pack_grouped(g1, g2), 16), dict(counts=counts)),
        ],
        "grouped_gemm_packed": [((ga, tt.pack_grouped(g1), 16), dict(offsets=OFFSETS, row_weights=torch.rand(11)))],
        "attention": [((q, k, k), dict(causal=True)), ((packed, packed, packed), dict(cu_seqlens_q=lengths, cu_seqlens_k=lengths)),
                      ((packed, *pools()), dict(cu_seqlens_q=lengths, **in_pages(lengths))),
                      ((*eight_bits(packed), *pools()), dict(cu_seqlens_q=lengths, q_descale=torch.full((1, 2), 0.5), **in_pages(lengths)))],
        "attention_with_lse": [((q.transpose(1, 2).contiguous().transpose(1, 2), k, k), dict(window_left=3)),
                               (eight_bits(q, k, k), dict(q_descale=torch.full((2, 1), 0.5)))],
        "attention_out": [((torch.empty_like(q), torch.empty(2, 4, 9), q, k, k), {}), ((torch.empty_like(q), None, q, k, k), {}),
                          ((torch.empty_like(q).half(), None, *eight_bits(q, k, k)), dict(q_descale=torch.full((1, 1), 0.5)))],
    }


def test_attention_over_pages_in_fp8():
    lengths = torch.tensor([0, 4, 9], dtype=torch.int32)
    q, (k, v), options = normal(9, 2, 64), pools(), in_pages(lengths)
    result, lse = tt.attention(q, k, v, causal=True, cu_seqlens_q=lengths, return_lse=True, **options)
    assert result.shape == (9, 2, 128) and lse.shape == (2, 9)
    typed = tt.attention(q, k.view(torch.float8_e4m3fn), v.view(torch.float8_e4m3fn), causal=True, cu_seqlens_q=lengths, **options)
    assert torch.equal(typed, result)
    for i in range(2):
        rows = slice(lengths[i], lengths[i + 1])
        for h in range(2):
            keys, values = (definition.e4m3(pool[options["block_table"][i].long(), :, h].reshape(8, -1)[:7].numpy()) for pool in (k, v))
            exact, error, sums, sums_error = definition.attention(floats(q[rows, h]), keys * 0.5, values * 2.0, causal=True,
                                                                  sink=float(options["sinks"][h]))
            check(result[rows, h], exact, error)
            check(lse[h, rows], sums, sums_error)


def normal_in_fp8(*shapes):
    return tuple(normal(*shape).to(torch.float8_e4m3fn) for shape in shapes)


@pytest.mark.parametrize("dtype", [None, *DTYPES])
def test_attention_with_queries_in_fp8(dtype):
    q, k, v = normal_in_fp8((2, 4, 9, 64), (2, 2, 12, 64), (2, 2, 12, 128))
    scales = dict(q_descale=torch.tensor([[2.0, 0.25], [0.5, 3.0]]), k_descale=torch.tensor([[0.75], [1.5]]), v_descale=torch.tensor([[2.0, 0.5]]))
    out = None if dtype is None else torch.empty(2, 4, 9, 128, dtype=dtype)
    result, lse = tt.attention(q, k, v, causal=True, return_lse=True, out=out, **scales)
    assert result.dtype == (dtype or torch.bfloat16) and result.shape == (2, 4, 9, 128) and lse.shape == (2, 4, 9)
    for b in range(2):
        for h in range(4):
            operands = (one.double() * scales[f"{name}_descale"].expand(2, 2)[b, h // 2]
                        for name, one in (("q", q[b, h]), ("k", k[b, h // 2]), ("v", v[b, h // 2])))
            exact, error, sums, sums_error = definition.attention(*map(floats, operands), causal=True)
            check(result[b, h], exact, error)
            check(lse[b, h], sums, sums_error)
    of_bytes = tt.attention(*(one.view(torch.uint8) for one in (q, k, v)), causal=True, out=None if dtype is None else torch.empty_like(out), **scales)
    assert torch.equal(of_bytes, result)


def test_queries_in_fp8_are_as_those_that_were_widened():
    q, k, v = normal_in_fp8((2, 4, 9, 64), (2, 2, 12, 64), (2, 2, 12, 64))
    widened = q.to(torch.bfloat16)
    for factor in (1.0, 0.25):
        descale = {} if factor == 1.0 else dict(q_descale=torch.full((1, 1), factor))
        torch.testing.assert_close(tt.attention(q, k, v, **descale), tt.attention(widened * factor, k, v), rtol=2.0**-7, atol=2.0**-12)


def test_queries_in_fp8_when_compiled_and_as_meta_tensors():
    q, k, v = normal_in_fp8((2, 4, 9, 64), (2, 2, 12, 64), (2, 2, 12, 64))
    half, descale = torch.empty(2, 4, 9, 64, dtype=torch.float16), torch.full((2, 2), 0.5)

    def both(q, k, v):
        return (tt.attention(q, k, v, q_descale=descale) + 1, *tt.attention(q, k, v, q_descale=descale, return_lse=True),
                tt.attention(q, k, v, q_descale=descale, out=torch.empty_like(half)) + 1)

    for eager, one in zip(both(q, k, v), compiled(both)(q, k, v)):
        assert eager.dtype == one.dtype and torch.equal(eager, one)
    result, lse = tt.attention(*(one.to("meta") for one in (q, k, v)), q_descale=descale.to("meta"), return_lse=True)
    assert result.is_meta and result.dtype == torch.bfloat16 and result.shape == q.shape and lse.dtype == torch.float32


@pytest.mark.parametrize("name", sorted(cases()))
def test_opcheck(name):
    for arguments, options in cases()[name]:
        torch.library.opcheck(getattr(ops, name).default, arguments, options)


def compiled(function, backend="aot_eager"):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend=backend)


def test_no_graph_break_and_the_same_bits():
    a, b1, b2 = dual_operands()
    ga, g1, g2 = grouped_operands()
    q, k = normal(2, 4, 9, 64), normal(2, 2, 12, 64)
    layer = tt.pack(b1, b2), tt.pack_gemm(normal(64, 24))

    def all_of_them(a, ga, q):
        out = torch.zeros_like(ga[:, :16])
        tt.grouped_gemm(ga, g1, offsets=OFFSETS, out=out)
        return (tt.gated_mlp(a, *layer) + 1, tt.gemm(a * 2, b1), tt.dual_gemm(a * 2, b1, b2) + 1, tt.grouped_dual_gemm(ga, g1, g2, offsets=OFFSETS), out,
                tt.attention(q, k, k, causal=True), *tt.attention(q, k, k, return_lse=True))

    for eager, one in zip(all_of_them(a, ga, q), compiled(all_of_them)(a, ga, q)):
        assert torch.equal(eager, one)


def test_the_default_backend_and_changing_rows():
    a, b1, b2 = dual_operands(m=40)
    function = compiled(lambda a: tt.dual_gemm(a, b1, b2), "inductor")
    for rows in (5, 7, 40):
        torch._dynamo.maybe_mark_dynamic(a[:rows], 0)
        assert torch.equal(function(a[:rows]), tt.dual_gemm(a[:rows], b1, b2))


class Float(torch.nn.Module):
    def __init__(self, k, n, bias=False):
        super().__init__()
        self.gate_proj = torch.nn.Linear(k, n, bias=bias)
        self.up_proj = torch.nn.Linear(k, n, bias=bias)
        self.down_proj = torch.nn.Linear(n, k, bias=bias)

    def forward(self, x):
        return self.down_proj(torch.nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


def rounded(module, dtype=torch.bfloat16):
    """The module in float64, of weights that were rounded once."""
    return module.to(dtype).double()


def close(result, exact, steps):
    """Within so many roundings to bfloat16 of the largest."""
    assert (result.double() - exact).abs().max() <= steps * 2.0**-8 * exact.abs().max()


def test_gated_mlp_is_the_float_module():
    module = Float(64, 48)
    ours = tt.GatedMLP.from_float(module, activation="silu")
    x = normal(2, 7, 64)
    close(ours(x), rounded(module)(x.double()), 3)
    assert torch.equal(compiled(ours)(x), ours(x))
    again = tt.GatedMLP(torch.zeros(48, 64), torch.zeros(48, 64), torch.zeros(64, 48))
    assert (again(x) == 0).all()
    again.load_state_dict(ours.state_dict())
    assert torch.equal(again(x), ours(x))
    assert not list(ours.parameters())
    for other in travelled(ours):
        assert torch.equal(other(x), ours(x))


def travelled(module):
    """The module after all that happens to modules."""
    saved = io.BytesIO()
    torch.save(module, saved)
    saved.seek(0)
    return copy.deepcopy(module), pickle.loads(pickle.dumps(module)), torch.load(saved, weights_only=False), module.to("cpu")


def test_packed_tensors_have_the_same_bits_wherever_they_went():
    a, b1, b2 = dual_operands()
    ga, g1, g2 = grouped_operands()
    packed, experts, one = tt.pack(b1, b2), tt.pack_grouped(g1, g2, bias1=torch.ones(3, 16), bias2=torch.ones(3, 16)), tt.pack_grouped(g1)
    assert tt.packed_info(packed, check=True) == ("bfloat16", None, 24, 64, 2, False, "exact")
    assert tt.packed_info(experts) == ("bfloat16", 3, 16, 32, 2, True, "exact")
    saved = io.BytesIO()
    torch.save({"weights": packed}, saved)
    saved.seek(0)
    for again in (packed, packed.clone(), torch.load(saved)["weights"], pickle.loads(pickle.dumps(packed)), copy.deepcopy(packed)):
        assert torch.equal(tt.dual_gemm_packed(a, again, 24), tt.dual_gemm(a, b1, b2))
    assert torch.equal(tt.grouped_gemm_packed(ga, one, 16, offsets=OFFSETS), tt.grouped_gemm(ga, g1, offsets=OFFSETS))
    biases = dict(bias1=torch.ones(3, 16), bias2=torch.ones(3, 16))
    assert torch.equal(tt.grouped_dual_gemm_packed(ga, experts, 16, offsets=OFFSETS),
                       tt.grouped_dual_gemm(ga, g1, g2, offsets=OFFSETS, **biases))
    function = compiled(lambda a, weights: tt.dual_gemm_packed(a * 2, weights, 24) + 1)
    assert torch.equal(function(a, packed), tt.dual_gemm(a * 2, b1, b2) + 1)
    packed.copy_(tt.pack(b2, b1))
    assert torch.equal(tt.dual_gemm_packed(a, packed, 24), tt.dual_gemm(a, b2, b1))


def test_moe_is_the_sum_over_each_tokens_experts():
    experts = [Float(32, 24) for _ in range(5)]
    ours = tt.MoE.from_float(experts, activation="silu")
    exact_experts = [rounded(one) for one in experts]
    x = normal(9, 32)
    ids = torch.stack([torch.randperm(5)[:2] for _ in range(9)])
    ids[3, 1], ids[4] = -1, -1
    weights = torch.rand(9, 2)
    exact = torch.zeros(9, 32, dtype=torch.float64)
    for t in range(9):
        for c in range(2):
            if ids[t, c] >= 0:
                exact[t] += weights[t, c].double() * exact_experts[ids[t, c]](x[t].double())
    result = ours(x, ids, weights)
    close(result, exact, 3)
    assert (result[4] == 0).all()
    assert torch.equal(compiled(ours)(x, ids, weights), result)
    for other in travelled(ours):
        assert torch.equal(other(x, ids, weights), result)


def test_attention_module_is_the_float_one():
    class Projections(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.q_proj, self.o_proj = torch.nn.Linear(96, 256, bias=False), torch.nn.Linear(256, 96, bias=False)
            self.k_proj, self.v_proj = (torch.nn.Linear(96, 128, bias=False) for _ in range(2))

    module = Projections()
    ours = tt.Attention.from_float(module, head_dim=64)
    x = normal(2, 11, 96)
    result = ours(x)
    exact = rounded(module)
    q, k, v = (p(x.double()).reshape(2, 11, -1, 64).transpose(1, 2) for p in (exact.q_proj, exact.k_proj, exact.v_proj))
    k, v = (t.repeat_interleave(2, 1) for t in (k, v))
    heads = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    close(result, exact.o_proj(heads.transpose(1, 2).reshape(2, 11, -1)), 4)
    assert torch.equal(compiled(ours)(x), result)


def test_gradients_are_refused_where_they_are_recorded():
    a, b1, b2 = dual_operands()
    a.requires_grad_()
    assert tt.dual_gemm(a, b1, b2).shape == (5, 24)
    with torch.enable_grad(), pytest.raises(thresher.UnsupportedError, match="no backward pass"):
        tt.dual_gemm(a, b1, b2)


A, B1, B2 = dual_operands()
GA, G1, G2 = grouped_operands()
P = tt.pack(B1, B2)
Q = normal(1, 2, 5, 64)
Q8 = Q.to(torch.float8_e4m3fn)
REFUSED = [
    (lambda: tt.dual_gemm(None, B1, B2), "a is None, expected a tensor"),
    (lambda: tt.dual_gemm(A, B1, [1]), "b2 is of the type list, expected a tensor"),
    (lambda: tt.dual_gemm(A.float(), B1, B2), "a is float32, expected float16, bfloat16, Nvfp4 or Fp8"),
    (lambda: tt.dual_gemm(A.double(), B1, B2), "a is float64"),
    (lambda: tt.dual_gemm(A, B1.half(), B2), "b2 is bfloat16, expected float16"),
    (lambda: tt.dual_gemm(A[0], B1, B2), "a has 1 dimensions, expected 2"),
    (lambda: tt.dual_gemm(A, B1[:, :32], B2), "b1 has the shape"),
    (lambda: tt.dual_gemm(A, B1, B2[:4]), "b2 has the shape"),
    (lambda: tt.dual_gemm(A.T.contiguous().T, B1, B2), "a has the strides"),
    (lambda: tt.dual_gemm(A[:1].expand(5, 64), B1, B2), "a repeats one row"),
    (lambda: tt.dual_gemm(A.to_sparse(), B1, B2), "a is torch.sparse_coo"),
    (lambda: tt.dual_gemm(A, B1, B2, out=torch.empty(5, 23, dtype=A.dtype)), "out has the shape"),
    (lambda: tt.dual_gemm(A, B1, B2, out=torch.empty(5, 24, dtype=torch.int32)), "out is int32"),
    (lambda: tt.dual_gemm(A, B1, B2, out=A[:, :24]), "out shares memory with a"),
    (lambda: tt.dual_gemm(A, B1, B2, out=torch.empty(5, 24), out_dtype=torch.float16), "out and out_dtype are both given"),
    (lambda: tt.dual_gemm(A, B1, B2, out_dtype=torch.int8), "out_dtype is int8, expected float16, bfloat16 or float32"),
    (lambda: tt.dual_gemm(A, B1, B2, activation="tanh"), "activation is 'tanh'"),
    (lambda: tt.dual_gemm(A, B1, thresher.Nvfp4(B2, B2)), "b1 is not Nvfp4"),
    (lambda: tt.dual_gemm(A, *(thresher.Fp8(b.to(torch.float8_e4m3fn), torch.ones(24), per=per) for b, per in ((B1, "row"), (B2, "tensor")))),
     "b1 and b2 are fp8_row and fp8_tensor, expected one format"),
    (lambda: tt.dual_gemm(thresher.Fp8(A.to(torch.float8_e4m3fn), torch.ones(4), per="row"), B1, B2), "a.scales has the shape .4., expected .5."),
    (lambda: tt.dual_gemm(A.to(torch.float8_e4m3fn), B1, B2), "a is float8_e4m3fn, expected float16"),
    (lambda: called(ops.dual_gemm, A, B1, B2, b_format="fp8_row"), "the format of b1 is 'fp8_row', but b1_scales are missing"),
    (lambda: called(ops.dual_gemm, A, B1, B2, b1_global_scale=torch.ones(1)), "b1_global_scale is given without b1_scales"),
    (lambda: tt.grouped_gemm(GA, G1), "neither offsets nor counts are given"),
    (lambda: tt.grouped_gemm(GA, G1, offsets=OFFSETS.double()), "offsets is float64, expected int32 or int64"),
    (lambda: tt.grouped_gemm(GA, G1, offsets=OFFSETS[:3]), "offsets has the shape"),
    (lambda: tt.grouped_gemm(GA, B1, offsets=OFFSETS), "dimensions"),
    (lambda: tt.grouped_dual_gemm(GA, G1, offsets=OFFSETS), "order is missing"),
    (lambda: tt.grouped_dual_gemm(GA, G1, order="both", offsets=OFFSETS), "order is 'both'"),
    (lambda: tt.grouped_dual_gemm(GA, G1, G2, offsets=OFFSETS, bias1=3), "bias1 is of the type int"),
    (lambda: tt.attention(Q, Q, Q.half()), "v is float16"),
    (lambda: tt.attention(Q[0], Q, Q), "q has 3 dimensions"),
    (lambda: tt.attention(Q, Q, Q, return_lse=True, window=4), "window is 4"),
    (lambda: tt.attention(Q, Q, Q, window=(-5, 0)), "window's left is -5"),
    (lambda: tt.attention(Q, Q, Q, out=Q), "out shares memory with q"),
    (lambda: tt.attention(Q8, Q, Q), "k is bfloat16, expected float8_e4m3fn or uint8"),
    (lambda: tt.attention(Q8, Q8, Q8, out=torch.empty(1, 2, 5, 64)), "out is float32, expected float16 or bfloat16"),
    (lambda: tt.attention(Q8, Q8, Q8, q_descale=0.5), "q_descale is of the type float, expected a tensor"),
    (lambda: tt.attention(Q8, Q8, Q8, q_descale=torch.ones(1, 3)), r"q_descale has the shape \[1, 3\], expected \[1, 2\]"),
    (lambda: tt.attention(Q, Q8, Q8, q_descale=torch.ones(1, 1)), "q_descale is given, but queries are not float8_e4m3fn"),
    (lambda: tt.attention(Q, Q, Q, q_descale=torch.ones(1, 1)), "q_descale is given, but queries are not float8_e4m3fn"),
    (lambda: tt.attention(Q[..., :32], Q[..., :32], Q[..., :32]), "the last dimension of q and k is 32"),
    (lambda: tt.dual_gemm_packed(A, P, 23), "n is 23, but the weights have N = 24"),
    (lambda: tt.dual_gemm_packed(A, B1, 24), "weights is bfloat16, expected uint8"),
    (lambda: tt.dual_gemm_packed(A, P[:-1], 24), "weights does not hold what pack, pack_gemm or pack_grouped gave"),
    (lambda: tt.dual_gemm_packed(A, [1], 24), "weights is of the type list, expected a tensor"),
    (lambda: tt.dual_gemm_packed(A, tt.pack_grouped(G1), 24), "it holds the weights of 3 experts"),
    (lambda: tt.grouped_gemm_packed(GA, P, 24, offsets=OFFSETS), "it holds the weights of a dual GEMM"),
    (lambda: tt.gemm(A, B1, bias=[1]), "bias is of the type list, expected a tensor"),
    (lambda: tt.gemm_packed(A, P, 24), "it holds the weights of a dual GEMM"),
    (lambda: tt.gated_mlp(A, P, tt.pack_gemm(B1)), "gate and up are .24, 64. and down .24, 64., expected .N, K. and .K, N."),
    (lambda: tt.gated_mlp(A[0], P, P), "x has 1 dimensions, expected 2"),
    (lambda: tt.gated_mlp(A, P, P, intermediate_dtype=torch.float32), "intermediate_dtype is float32, expected float16 or bfloat16"),
    (lambda: tt.moe(GA, P, P, OFFSETS, OFFSETS.float()), "it holds the weights of a dual GEMM"),
    (lambda: tt.pack(B1, B2[:4]), "b2 has the shape"),
    (lambda: tt.GatedMLP(B1, B2, torch.ones(3, 8)), "expected .N, K. and .K, N."),
    (lambda: tt.GatedMLP(B1, B2, 3), "down is 3, expected a tensor of 2 dimensions"),
    (lambda: tt.GatedMLP.from_float(torch.nn.Linear(2, 2)), "the module has no layer gate_proj or w1"),
    (lambda: tt.GatedMLP.from_float(Float(8, 8, bias=True)), "the layer gate_proj has a bias"),
    (lambda: tt.GatedMLP(B1, B2, B1.T, dtype=torch.float32), "dtype is torch.float32"),
    (lambda: tt.MoE(G1, G1, order="up_first"), "expected .E, 2 N, K. and"),
    (lambda: tt.MoE(G1, G1), "gate_up is one tensor and order is None, expected one with an order, or gate and up without"),
    (lambda: tt.MoE((G1, G1), G1, order="up_first"), "gate_up is 2 tensors and order is 'up_first'"),
    (lambda: tt.MoE(torch.cat([G1, G1], 1), G1.transpose(1, 2), order="up_first", tokens="fp8"), "tokens is 'fp8', expected None or 'fp8_block'"),
    (lambda: tt.MoE.from_float([]), "there are no experts"),
]


@pytest.mark.parametrize("call, sentence", REFUSED, ids=[sentence for _, sentence in REFUSED])
def test_refused(call, sentence):
    with pytest.raises(thresher.InvalidArgumentError, match=sentence) as refusal:
        call()
    assert "\n" not in str(refusal.value)


def test_types_that_the_operator_does_not_take_are_refused_by_torch():
    with pytest.raises(thresher.InvalidArgumentError, match="b2 is None, expected a tensor"):
        called(ops.dual_gemm, A, B1, None)
    with pytest.raises((RuntimeError, TypeError)):
        ops.attention(Q, Q, Q, causal="yes")
    with pytest.raises((RuntimeError, NotImplementedError)):
        ops.dual_gemm(A.to_sparse(), B1, B2)


def test_meta_tensors_give_shapes():
    result = tt.dual_gemm(A.to("meta"), B1.to("meta"), B2.to("meta"))
    assert result.is_meta and result.shape == (5, 24)


def test_lists_are_looked_at_in_every_call():
    rows, offsets = normal(8, 1, 64), torch.tensor([0, 3, 8], dtype=torch.int32)
    tt.attention(rows, rows, rows, cu_seqlens_q=offsets, cu_seqlens_k=offsets)
    with pytest.raises(thresher.InvalidArgumentError, match="cu_seqlens_k is float32"):
        tt.attention(rows, rows, rows, cu_seqlens_q=offsets, cu_seqlens_k=offsets.float())
    tt.grouped_gemm(GA, G1, offsets=OFFSETS)
    with pytest.raises(thresher.InvalidArgumentError, match="offsets is float32"):
        tt.grouped_gemm(GA, G1, offsets=OFFSETS.float())


def plans_made():
    from thresher._plans import plans

    return len(plans._values)


def test_warm_calls_need_no_plan():
    mlp = tt.GatedMLP(normal(24, 64), normal(24, 64), normal(64, 24))
    moe = tt.MoE(normal(3, 2 * 24, 32), normal(3, 32, 24), order="gate_first")
    before = plans_made()
    tt.warm(torch.nn.Sequential(mlp, moe), 40, choices=2)
    made = plans_made()
    assert made > before
    for rows in (1, 16, 17, 33, 40):
        mlp(normal(rows, 64))
        moe(normal(rows, 32), torch.randint(0, 3, (rows, 2)), torch.rand(rows, 2))
    assert plans_made() == made
    mlp(normal(100, 64))
    assert plans_made() == made + 1


def test_functions_are_warmed_with_numbers_of_rows():
    asked = []
    tt.warm(asked.append, [3, 5, 40, 41, 100])
    assert asked == [5, 41, 100]


@pytest.mark.parametrize("call, rows, choices, sentence", [
    (torch.nn.Linear(2, 2), 4, 1, "the module Linear holds no GatedMLP, Linear or MoE"),
    (3, 4, 1, "call is of the type int"),
    (len, 0, 1, "rows is 0, expected a number greater than 0"),
    (len, [], 1, "rows is []"),
    (len, [2.5], 1, "rows is [2.5]"),
    (len, "4", 1, "rows is '4'"),
    (len, True, 1, "rows is True"),
    (len, 4, 0, "choices is 0, expected a whole number from 1 up"),
])
def test_warming_refused(call, rows, choices, sentence):
    with pytest.raises(thresher.InvalidArgumentError) as refused:
        tt.warm(call, rows, choices=choices)
    assert sentence in str(refused.value)


def test_a_capture_that_would_plan_is_refused(monkeypatch):
    """What a place on a GPU says; here no graph can be captured."""
    from thresher import _plans
    from thresher.torch._place import _OnGpu

    place = object.__new__(_OnGpu)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    made = _plans.planned(("a test",), place, set)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert _plans.planned(("a test",), place, set) is made
    with pytest.raises(thresher.InvalidArgumentError, match="is being captured in a CUDA graph.*or let thresher.torch.warm do so"):
        _plans.planned(("another",), place, set)


def test_a_mixture_without_tokens():
    moe = tt.MoE(normal(3, 2 * 24, 32), normal(3, 32, 24), order="gate_first")
    assert moe(normal(0, 32), torch.zeros(0, 2, dtype=torch.int64), torch.zeros(0, 2)).shape == (0, 32)
