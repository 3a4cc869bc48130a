"""The torch operators on a GPU: against their definitions, captured and replayed, compiled, warmed, in every binding."""

import contextlib

import definition
import pytest

import thresher

if thresher.best_device() == "cpu":
    pytest.skip("there is no CUDA device: the tests of thresher.torch on a GPU are left out", allow_module_level=True)
torch = pytest.importorskip("torch", reason="torch is not installed: the tests of thresher.torch are left out")
pytestmark = pytest.mark.gpu

import thresher.torch as tt  # noqa: E402
from thresher.torch import _native  # noqa: E402

ops = torch.ops.thresher
TOKENS, EXPERTS = 33, 5
OFFSETS = [0, 7, 7, 20, 33, 33]


@pytest.fixture(autouse=True)
def inference():
    torch.manual_seed(20261124)
    with torch.inference_mode():
        yield


def normal(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda").to(dtype)


def integers(values):
    return torch.tensor(values, dtype=torch.int32, device="cuda")


def floats(tensor):
    return tensor.double().cpu().numpy()


def check(result, exact, error):
    name = str(result.dtype).removeprefix("torch.")
    as_numpy = result.float().cpu().numpy()
    if name == "bfloat16":
        import ml_dtypes

        as_numpy = as_numpy.astype(ml_dtypes.bfloat16)
    elif name == "float16":
        as_numpy = as_numpy.astype("float16")
    definition.check(as_numpy, exact, error)


def nvfp4(rows, k, outer=()):
    values = torch.randint(0, 256, (*outer, rows, k // 2), dtype=torch.uint8, device="cuda")
    scales = torch.randint(40, 60, (*outer, rows, k // 16), dtype=torch.uint8, device="cuda")
    factors = torch.full(outer or (1,), 0.5, device="cuda")
    return thresher.Nvfp4(values, scales, factors), definition.nvfp4(values.cpu().numpy(), scales.cpu().numpy(), 0.5)


def fp8(rows, k, per="row", tokens=False, outer=()):
    step = {"tensor": (rows, k), "row": (1, k), "block": (1 if tokens else 128, 128)}[per]
    values = torch.randn(*outer, rows, k, device="cuda").to(torch.float8_e4m3fn)
    scales = torch.rand(*outer, -(-rows // step[0]), -(-k // step[1]), device="cuda") + 0.25
    wide = scales.repeat_interleave(step[0], -2).repeat_interleave(step[1], -1)[..., :rows, :k]
    return thresher.Fp8(values, scales.reshape(-1) if per == "tensor" else scales, per=per), floats(values.double() * wide)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 17, 130])
def test_dense_products(dtype, rows):
    a, b1, b2, bias = normal(rows, 256, dtype=dtype), normal(192, 256, dtype=dtype), normal(192, 256, dtype=dtype) / 8, torch.rand(192, device="cuda")
    exact = definition.dual_gemm(floats(a), floats(b1), floats(b2))
    check(tt.dual_gemm(a, b1, b2, out_dtype=torch.float32), *exact)
    check(tt.dual_gemm_packed(a, tt.pack(b1, b2), 192), *exact)
    check(tt.gemm(a, b1, bias=bias), *definition.product(floats(a), floats(b1), floats(bias)))
    check(tt.gemm_packed(a, tt.pack_gemm(b1), 192, out_dtype=torch.float32), *definition.product(floats(a), floats(b1)))
    out = torch.full((rows, 200), 7, dtype=dtype, device="cuda")
    tt.dual_gemm(a, b1, b2, out=out[:, :192])
    assert torch.equal(out[:, :192], tt.dual_gemm(a, b1, b2)) and (out[:, 192:] == 7).all()


def test_nvfp4_weights():
    a, (b1, dense1), (b2, dense2) = normal(TOKENS, 256), nvfp4(192, 256), nvfp4(192, 256)
    check(tt.dual_gemm_packed(a, tt.pack(b1, b2), 192, out_dtype=torch.float32), *definition.dual_gemm(floats(a), dense1, dense2))
    check(tt.gemm_packed(a, tt.pack_gemm(b1), 192, out_dtype=torch.float32), *definition.product(floats(a), dense1))
    with pytest.raises(thresher.UnsupportedError, match="have to be packed once"):
        tt.dual_gemm(a, b1, b2)


@pytest.mark.parametrize("per", ["tensor", "row", "block"])
def test_fp8_operands(per):
    """Sums of the matrix unit, which cuts them off (docs/reference/numerics.md)."""
    (a, dense_a), (b1, dense1), (b2, dense2) = fp8(TOKENS, 256, per, tokens=True), fp8(256, 256, per), fp8(256, 256, per)
    exact, error = definition.dual_gemm(dense_a, dense1, dense2)
    check(tt.dual_gemm_packed(a, tt.pack(b1, b2), 256, out_dtype=torch.float32), exact, 64 * error)
    assert torch.equal(tt.dual_gemm_packed(a, tt.pack(b1, b2), 256), tt.dual_gemm(a, b1, b2))


def test_grouped_products():
    a, b1, b2, factors = normal(TOKENS, 256), normal(EXPERTS, 128, 256), normal(EXPERTS, 128, 256), torch.rand(TOKENS, device="cuda")
    offsets = integers(OFFSETS)
    fused = tt.pack_grouped(torch.cat([b1, b2], 1), order="gate_first")
    result = tt.grouped_dual_gemm_packed(a, fused, 128, offsets=offsets, out_dtype=torch.float32)
    below = tt.grouped_gemm(a, b1, offsets=offsets, row_weights=factors, out_dtype=torch.float32)
    for e in range(EXPERTS):
        rows = slice(OFFSETS[e], OFFSETS[e + 1])
        check(result[rows], *definition.dual_gemm(floats(a[rows]), floats(b1[e]), floats(b2[e])))
        exact, error = definition.product(floats(a[rows]), floats(b1[e]))
        w = floats(factors[rows, None])
        check(below[rows], exact * w, error * w + 2.0**-23 * abs(exact * w))
    ids = torch.randperm(TOKENS, device="cuda").to(torch.int32)
    gathered = tt.grouped_gemm_packed(a, tt.pack_grouped(b1), 128, offsets=offsets, row_ids=ids)
    assert torch.equal(gathered, tt.grouped_gemm_packed(a[ids.long()], tt.pack_grouped(b1), 128, offsets=offsets))


def test_layers():
    x, gate, up, down = normal(TOKENS, 256), normal(192, 256) / 16, normal(192, 256) / 16, normal(256, 192) / 16
    hidden = tt.dual_gemm(x, gate, up)
    result = tt.gated_mlp(x, tt.pack(gate, up), tt.pack_gemm(down), out_dtype=torch.float32)
    check(result, *definition.product(floats(hidden), floats(down)))
    experts, below = normal(EXPERTS, 2 * 192, 256) / 16, normal(EXPERTS, 256, 192) / 16
    module = tt.MoE(experts, below, order="gate_first")
    ids, factors = torch.randint(-1, EXPERTS, (TOKENS, 2), device="cuda"), torch.rand(TOKENS, 2, device="cuda")
    on_cpu = tt.MoE(experts.cpu(), below.cpu(), order="gate_first")
    expected = on_cpu(x.cpu(), ids.cpu(), factors.cpu()).float()
    torch.testing.assert_close(module(x, ids, factors).float().cpu(), expected, rtol=2**-6, atol=2**-7 * expected.abs().max().item())
    assert torch.equal(on_cpu.to("cuda")(x, ids, factors), module(x, ids, factors))


@pytest.mark.parametrize("n", [256, 144])
def test_gated_mlp_of_fp8(n):
    x, weights = normal(TOKENS, 256), [fp8(*shape, "block")[0] for shape in ((n, 256), (n, 256), (256, n))]
    module = tt.GatedMLP(*weights, tokens="fp8_block")
    on_cpu = tt.GatedMLP(*(thresher.Fp8(one.values.cpu(), one.scales.cpu(), per="block") for one in weights), tokens="fp8_block")
    result, expected = module(x).double().cpu(), on_cpu(x.cpu()).double()
    assert (result - expected).norm() <= 2**-6 * expected.norm()
    assert module(x.float()).dtype == torch.float32


def test_attention():
    q, k, v = normal(2, 4, 65, 64), normal(2, 2, 130, 64), normal(2, 2, 130, 64)
    result, lse = tt.attention(q, k, v, causal=True, return_lse=True)
    for b, h in ((0, 0), (1, 3)):
        exact, _, sums, _ = definition.attention(*(floats(x) for x in (q[b, h], k[b, h // 2], v[b, h // 2])), causal=True)
        torch.testing.assert_close(result[b, h].double().cpu(), torch.from_numpy(exact), rtol=2**-6, atol=2**-6)
        torch.testing.assert_close(lse[b, h].double().cpu(), torch.from_numpy(sums), rtol=1e-4, atol=1e-3)


def captured(call):
    """(the graph, what it writes) of a call that was made before."""
    expected = call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(result, expected)
    return graph, result


def test_replays_with_changed_lists_have_the_bits_of_eager_calls():
    a, gate_up = normal(TOKENS, 256), tt.pack_grouped(normal(EXPERTS, 2 * 128, 256), order="up_first")
    below, offsets = tt.pack_grouped(normal(EXPERTS, 256, 128)), integers(OFFSETS)
    slots, counts = normal(EXPERTS, 8, 256), integers([8, 0, 3, 1, 5])
    ids, factors = torch.randint(0, EXPERTS, (TOKENS, 2), device="cuda").to(torch.int32), torch.rand(TOKENS, 2, device="cuda")
    calls = {
        "offsets": (lambda: tt.grouped_dual_gemm_packed(a, gate_up, 128, offsets=offsets), offsets,
                    [[0, 0, 0, 0, 0, 33], [0, 33, 33, 33, 33, 33], [0, 1, 2, 3, 4, 5]]),
        "counts": (lambda: tt.grouped_dual_gemm_packed(slots, gate_up, 128, counts=counts), counts, [[0] * 5, [8] * 5, [1, 2, 3, 4, 5]]),
        "choices": (lambda: tt.moe(a, gate_up, below, ids, factors), ids, [[[0, 1]] * TOKENS, [[-1, 4]] * TOKENS, [[3, 3]] * TOKENS]),
    }
    for call, given, contents in calls.values():
        graph, result = captured(call)
        for content in contents:
            given.copy_(integers(content))
            graph.replay()
            torch.cuda.synchronize()
            assert torch.equal(result, call())


@pytest.mark.parametrize("pages", ["bfloat16", "float8_e4m3fn"])
def test_tokens_are_appended_and_attended_to_in_a_graph(pages):
    batch, page, kv_heads, heads = 3, 16, 2, 4
    q, k, v = (normal(batch, count, 64) for count in (heads, kv_heads, kv_heads))
    pool = normal(12, 2, page, kv_heads, 64).to(getattr(torch, pages))
    k_pages, v_pages = pool[:, 0], pool[:, 1]
    table = torch.randperm(12, device="cuda").to(torch.int32).reshape(batch, 4)
    lengths, (positions, slots) = integers([5, 20, 64]), torch.zeros(2, batch, dtype=torch.int64, device="cuda")
    starts, turned, out = torch.arange(batch + 1, dtype=torch.int32, device="cuda"), torch.empty_like(q), torch.empty_like(q)
    descales = dict(k_descale=torch.full((1,), 0.02, device="cuda"), v_descale=torch.full((1,), 0.01, device="cuda")) if pool.dtype != q.dtype else {}
    reads = {name: one.reshape(1, 1) for name, one in descales.items()}

    def lengths_are(values):
        lengths.copy_(integers(values))
        positions.copy_(lengths - 1)
        slots.copy_(table[torch.arange(batch, device="cuda"), positions // page] * page + positions % page)

    def call():
        tt.append(k, v, k_pages, v_pages, slots, positions=positions, q=q, q_out=turned, **descales)
        return tt.attention(turned, k_pages, v_pages, causal=True, cu_seqlens_q=starts, block_table=table, seqused_k=lengths, out=out, **reads)

    lengths_are([5, 20, 64])
    graph, result = captured(call)
    for values in ([1, 33, 2], [64, 64, 64], [17, 16, 15]):
        lengths_are(values)
        graph.replay()
        torch.cuda.synchronize()
        replayed, written = result.clone(), pool.view(torch.uint8).clone()
        check(turned, *definition.turned(floats(q), positions.cpu().numpy()))
        assert torch.equal(replayed, call()) and torch.equal(written, pool.view(torch.uint8))
        on_cpu = {name: one.cpu() for name, one in reads.items()}
        expected = tt.attention(turned.cpu(), k_pages.cpu(), v_pages.cpu(), causal=True, cu_seqlens_q=starts.cpu(), block_table=table.cpu(),
                                seqused_k=lengths.cpu(), **on_cpu)
        assert (replayed.float().cpu() - expected.float()).abs().max() < 0.02 * expected.float().abs().max()


def test_batches_of_many_and_of_few_sequences_take_turns():
    """As an engine's do: kernels are shared between the plans, which want different sizes of shared memory."""
    page, heads, kv_heads, width, most = 16, 8, 2, 128, 64
    k_pages, v_pages = (normal(most * 4, page, kv_heads, width) for _ in range(2))
    table = torch.randperm(most * 4, device="cuda").to(torch.int32).reshape(most, 4)
    q, lengths = normal(most, heads, width), torch.randint(1, 4 * page, (most,), device="cuda").to(torch.int32)

    def decoded(batch):
        starts = torch.arange(batch + 1, dtype=torch.int32, device="cuda")
        return tt.attention(q[:batch], k_pages, v_pages, causal=True, cu_seqlens_q=starts, block_table=table[:batch],
                            seqused_k=lengths[:batch])

    batches = (most, 1, 8, most, 33, 1, 48, 8)
    first = {batch: decoded(batch) for batch in batches}
    for batch in batches:
        assert torch.equal(decoded(batch), first[batch])
    expected = tt.attention(q.cpu(), k_pages.cpu(), v_pages.cpu(), causal=True, cu_seqlens_q=torch.arange(most + 1, dtype=torch.int32),
                            block_table=table.cpu(), seqused_k=lengths.cpu())
    for batch, result in first.items():
        assert (result.float().cpu() - expected[:batch].float()).abs().max() < 0.02 * expected.float().abs().max()


def test_a_capture_that_would_plan_is_refused():
    a, b = normal(7, 136), normal(24, 136)
    with pytest.raises(thresher.InvalidArgumentError, match="is being captured in a CUDA graph"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            tt.gemm(a, b)


def test_warmed_modules_can_be_captured():
    mlp = tt.GatedMLP(normal(96, 128), normal(96, 128), normal(128, 96))
    tt.warm(mlp, 40)
    x = normal(33, 128)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = mlp(x)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(result, mlp(x))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_functions_have_the_same_bits(backend):
    x, mlp, q = normal(TOKENS, 128), tt.GatedMLP(normal(96, 128), normal(96, 128), normal(128, 96)), normal(1, 2, 64, 64)
    moe = tt.MoE(normal(EXPERTS, 2 * 96, 128), normal(EXPERTS, 128, 96), order="gate_first")
    ids, factors = torch.randint(0, EXPERTS, (TOKENS, 2), device="cuda"), torch.rand(TOKENS, 2, device="cuda")

    def all_of_them(x):
        return mlp(x), moe(x, ids, factors), tt.attention(q, q, q, causal=True)

    torch._dynamo.reset()
    for one, other in zip(torch.compile(all_of_them, fullgraph=True, backend=backend)(x), all_of_them(x)):
        assert torch.equal(one, other)


def test_any_stream_and_every_gpu():
    for index in range(torch.cuda.device_count()):
        device = torch.device("cuda", index)
        x, gate, up = (normal(*shape).to(device) for shape in ((9, 128), (64, 128), (64, 128)))
        expected = tt.dual_gemm(x, gate, up)
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            result = tt.dual_gemm(x, gate, up)
        stream.synchronize()
        assert result.device == device and torch.equal(result, expected)


def test_packed_weights_that_are_written_over_are_looked_at_again():
    a, b1, b2 = normal(TOKENS, 128), normal(64, 128), normal(64, 128)
    with torch.inference_mode(False), torch.no_grad():
        packed = tt.pack(b1.clone(), b2.clone())
        for _ in range(3):
            first = tt.dual_gemm_packed(a, packed, 64)
        half = tt.pack(b1.to(torch.float16), b2.to(torch.float16))
        assert half.numel() == packed.numel()
        packed.copy_(half)
        with contextlib.suppress(thresher.Error):  # the other type may be refused, and is not read as the first
            seen = tt.dual_gemm_packed(a, packed, 64)
            torch.testing.assert_close(seen, first, rtol=2**-5, atol=2**-5 * first.abs().max().item())
        again = tt.dual_gemm_packed(a.to(torch.float16), packed, 64)
    assert torch.equal(again, tt.dual_gemm(a.to(torch.float16), b1.to(torch.float16), b2.to(torch.float16)))


def test_memory_given_back_is_not_taken_for_what_lay_there():
    a, b1, b2 = normal(TOKENS, 128), normal(64, 128), normal(64, 128)
    for dtype in (torch.bfloat16, torch.float16, torch.bfloat16):
        packed = tt.pack(b1.to(dtype), b2.to(dtype))
        for _ in range(3):
            result = tt.dual_gemm_packed(a.to(dtype), packed, 64)
        assert torch.equal(result, tt.dual_gemm(a.to(dtype), b1.to(dtype), b2.to(dtype)))
        del packed


@pytest.mark.skipif(_native.native is None, reason="libthresher_torch.so is not there")
def test_a_call_made_before_runs_no_python(monkeypatch):
    a, packed = normal(TOKENS, 128), tt.pack(normal(64, 128), normal(64, 128))
    expected = [tt.dual_gemm_packed(a, packed, 64) for _ in range(3)]
    monkeypatch.setattr("thresher._dual_gemm.run_packed", None)
    assert torch.equal(tt.dual_gemm_packed(a, packed, 64), expected[0])
    with contextlib.suppress(TypeError, RuntimeError):
        tt.dual_gemm_packed(a[:1], packed, 64)
        raise AssertionError("another number of rows was taken for one made before")


def test_derivatives_are_refused_and_calls_under_no_grad_are_made_again(monkeypatch):
    with torch.inference_mode(False):
        a, b = normal(TOKENS, 128).requires_grad_(), normal(256, 128)
        with pytest.raises(thresher.UnsupportedError, match="no backward pass, but a requires a gradient"):
            tt.gemm(a, b)
        for derivative in (torch.func.grad(lambda a: tt.gemm(a, b).float().sum()), torch.func.jacfwd(lambda a: tt.gemm(a, b).float().sum()),
                           torch.compile(lambda a: a + tt.gemm(a, b[:128]), backend="aot_eager")):
            with pytest.raises(Exception, match="no backward pass"):
                derivative(a)
        with torch.no_grad():
            expected = tt.gemm(a, b)
            if _native.native is not None:
                monkeypatch.setattr("thresher._gemm.run", None)
                monkeypatch.setattr("thresher.torch._ops.refuse_derivatives", None)
            assert torch.equal(tt.gemm(a, b), expected)


def test_numbers_of_64_bits_and_operands_under_autocast():
    rows, experts = normal(TOKENS, 128), normal(EXPERTS, 256, 128)
    offsets = integers(OFFSETS)
    expected = tt.grouped_gemm(rows, experts, offsets=offsets)
    assert torch.equal(tt.grouped_gemm(rows, experts, offsets=offsets.long()), expected)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert torch.equal(tt.grouped_gemm(rows.float(), experts.float(), offsets=offsets), expected)
