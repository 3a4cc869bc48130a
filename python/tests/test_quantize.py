"""Quantization of tokens: the definition's bits, in every form that the operator takes."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: the tests of thresher.torch are left out")

import thresher  # noqa: E402
import thresher.torch as tt  # noqa: E402

BLOCK = 128


def scale_of(largest, powers_of_two):
    scales = torch.where(largest == 0, 1.0, (largest / 448).clamp_min(2.0**-126))
    return torch.exp2(torch.ceil(torch.log2(scales.double()))).float() if powers_of_two else scales


def defined(x, per, powers_of_two=False):
    """(values, scales) of finite rows, the scales as rows have them."""
    rows, depth = x.shape
    width = BLOCK if per == "block" else depth
    parts = torch.nn.functional.pad(x.float(), (0, -depth % width)).unflatten(1, (-1, width))
    scales = scale_of(parts.abs().amax(-1), powers_of_two)
    values = (parts / scales[..., None]).clamp(-448, 448).to(torch.float8_e4m3fn).flatten(1)[:, :depth]
    return values, scales if per == "block" else scales[:, 0]


def bits(tensor):
    return tensor.contiguous().view(torch.uint8)


def rows_of(columns, dtype):
    torch.manual_seed(20261129)
    x = torch.randn(9, columns) * torch.exp2(torch.randint(-9, 9, (9, 1)))
    x[3] = 0
    x[4, ::2] = -0.0
    return x.to(dtype)


@pytest.mark.parametrize("powers_of_two", [False, True])
@pytest.mark.parametrize("per", ["block", "row"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("columns", [16, 256, 304])
def test_the_bits_of_the_definition(columns, dtype, per, powers_of_two):
    x = rows_of(columns, dtype)
    for _ in range(2):
        made = tt.quantize(x, per=per, powers_of_two=powers_of_two)
        values, scales = defined(x, per, powers_of_two)
        assert torch.equal(bits(made.values), bits(values)) and torch.equal(made.scales, scales)
        assert (made.per, made.scale_layout, made.values.dtype) == (per, "row_major", torch.float8_e4m3fn)


def test_scales_in_columns_and_rows_with_gaps():
    x = rows_of(320, torch.bfloat16)
    made = tt.quantize(x[:, :304], scale_layout="column_major")
    values, scales = defined(x[:, :304], "block")
    assert made.scales.shape == (3, 12) and torch.equal(made.scales[:, :9], scales.T) and torch.equal(bits(made.values), bits(values))
    assert tt.quantize(x[:0]).values.shape == (0, 320)


def test_numbers_that_are_none():
    x = torch.ones(2, 256, dtype=torch.bfloat16)
    x[0, 5], x[1, 200] = float("nan"), float("-inf")
    made = tt.quantize(x)
    read = made.values.float() * made.scales.repeat_interleave(BLOCK, 1)
    assert read[0].isnan().nonzero().tolist() == [[5]] and torch.equal(read[0, 6:], torch.ones(250))
    assert read[1, BLOCK:].isnan().all() and torch.equal(read[1, :BLOCK], torch.ones(BLOCK))


def test_products_take_them():
    x, gate, up = rows_of(256, torch.bfloat16), *(torch.randn(64, 256).bfloat16() for _ in range(2))
    made = tt.quantize(x, scale_layout="column_major")
    values, scales = defined(x, "block")
    assert torch.equal(tt.dual_gemm(made, gate, up), tt.dual_gemm(thresher.Fp8(values, scales, per="block"), gate, up))


@pytest.mark.parametrize("per", ["block", "row"])
@pytest.mark.parametrize("columns", [256, 144])
def test_experts_quantize_tokens_themselves(columns, per):
    x, ids, factors = rows_of(columns, torch.bfloat16), torch.randint(-1, 3, (9, 2), dtype=torch.int32), torch.rand(9, 2)
    gate_up = tt.pack_grouped((torch.randn(3, 2 * 32, columns) / 16).bfloat16(), order="gate_first")
    down = tt.pack_grouped((torch.randn(3, columns, 32) / 8).bfloat16())
    options = dict(intermediate_dtype=torch.bfloat16, out_dtype=torch.bfloat16)
    values, scales = defined(x, per)
    expected = tt.moe(thresher.Fp8(values, scales, per=per), gate_up, down, ids, factors, **options)
    for _ in range(2):
        assert torch.equal(tt.moe(x, gate_up, down, ids, factors, quantized_x=f"fp8_{per}", **options), expected)
    with pytest.raises(thresher.InvalidArgumentError, match="quantized_x is 'fp8_tensor', expected one of fp8_block, fp8_row"):
        tt.moe(x, gate_up, down, ids, factors, quantized_x="fp8_tensor")
    with pytest.raises(thresher.InvalidArgumentError, match="x is fp8_.* with .*quantized_x, expected"):
        tt.moe(thresher.Fp8(values, scales, per=per), gate_up, down, ids, factors, quantized_x=f"fp8_{per}", **options)


def test_opcheck_and_compile():
    x = rows_of(304, torch.bfloat16)
    with torch.no_grad():
        for options in ({}, dict(scale_layout="column_major"), dict(powers_of_two=True)):
            torch.library.opcheck(torch.ops.thresher.quantize.default, (x[:8],), options)  # no row is padding
        torch.library.opcheck(torch.ops.thresher.quantize.default, (x, "fp8_row"))
        torch._dynamo.reset()
        compiled = torch.compile(lambda rows: tt.quantize(rows * 2).values.float() + 1, fullgraph=True, backend="aot_eager", dynamic=True)
        for count in (9, 4):
            assert torch.equal(compiled(x[:count]), tt.quantize(x[:count] * 2).values.float() + 1)


REFUSED = [
    (dict(x=None), "x is None, expected a tensor"),
    (dict(x=torch.ones(2, 32)), "x is float32, expected float16 or bfloat16"),
    (dict(x=torch.ones(32).half()), "x has 1 dimensions, expected 2"),
    (dict(x=torch.ones(2, 24).half()), "K is 24, expected a multiple of 16 for fp8_block operands"),
    (dict(x=torch.ones(32, 32).half().T[:, ::2]), "x has the strides"),
    (dict(per="tensor"), "per is 'tensor', expected one of block, row"),
    (dict(scale_layout="blocked"), "scale_layout is 'blocked', expected one of row_major, column_major"),
    (dict(per="row", scale_layout="column_major"), "scale_layout is 'column_major', but the scales are one of each row"),
    (dict(powers_of_two=1), "powers_of_two is 1, expected True or False"),
]


@pytest.mark.parametrize("change, sentence", REFUSED, ids=[sentence[:30] for _, sentence in REFUSED])
def test_what_is_refused(change, sentence):
    with pytest.raises(thresher.InvalidArgumentError, match=sentence):
        tt.quantize(**(dict(x=torch.ones(2, 32).half()) | change))


def test_no_derivatives():
    with pytest.raises(thresher.UnsupportedError, match="thresher has no backward pass, but x requires a gradient"):
        tt.quantize(torch.ones(2, 32).half().requires_grad_())
