"""Derivatives: every operator refuses one in every mode that could ask for it, and works in each where none is asked for."""

import os
import shutil
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: the tests of thresher.torch are left out")

import test_torch  # noqa: E402
import thresher  # noqa: E402
import thresher.torch as tt  # noqa: E402
from thresher.torch import _ops  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402

ops = torch.ops.thresher
SENTENCE = "thresher has no backward pass"
COMPILERS = ["eager", "aot_eager", "inductor"] if shutil.which("g++") or shutil.which("c++") else ["eager", "aot_eager"]


def cases():
    """Of each operator one call: (arguments, options)."""
    torch.manual_seed(20261128)
    found = {name: calls[0] for name, calls in test_torch.cases().items()}
    rows, weights = torch.randn(11, 32).bfloat16(), torch.randn(3, 16, 32).bfloat16()
    lists, fused = dict(offsets=test_torch.OFFSETS), tt.pack_grouped(weights, weights)
    found["grouped_dual_gemm_packed_out"] = (torch.empty(11, 16), rows, fused, 16), lists
    found["grouped_gemm_packed_out"] = (torch.empty(11, 16), rows, tt.pack_grouped(weights), 16), lists
    keys, slots = torch.randn(9, 2, 64).bfloat16(), torch.tensor([3, 19, -1, 0, 7, 8, 9, 10, 12])
    pages = [torch.zeros(5, 4, 2, 64, dtype=torch.bfloat16) for _ in range(2)]
    found["append"] = (*pages, keys, keys, slots), dict(positions=torch.arange(9), q=keys, q_out=torch.empty_like(keys))
    return found


with torch.no_grad():
    CASES = cases()
TOKENS = {"append": 2, "attention_out": 2}


def function_of(name, place=None):
    """The operator as a function of the argument at this place, by default its tokens; what it writes is new in each call."""
    arguments, options = CASES[name]
    operator = getattr(ops, name)
    schema = operator.default._schema.arguments
    place = place if place is not None else TOKENS.get(name, 1 if name.endswith("_out") else 0)
    writes = [one.name for one in schema if one.alias_info is not None and one.alias_info.is_write]
    places = [index for index, value in enumerate(arguments) if schema[index].name in writes and value is not None]
    named = {one: options[one] for one in writes if one in options}

    def run(x):
        given = list(arguments)
        given[place] = x
        for index in places:
            given[index] = given[index].clone()
        fresh = {one: value.clone() for one, value in named.items()}
        result = operator(*given, **{**options, **fresh})
        results = [given[index] for index in places] if result is None else result if isinstance(result, tuple) else [result]
        total = torch.zeros((), dtype=torch.float64)
        for one in results:
            total = total + (one.double().nan_to_num() * 2).sum()
        return total

    return run, arguments[place].detach()


def compiled(function, backend):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend=backend)


def eager(function, x):
    function(x.clone().requires_grad_())


def forward_mode(function, x):
    with forward_ad.dual_level():
        function(forward_ad.make_dual(x, torch.ones_like(x)))


def forward_mode_without_gradients(function, x):
    with torch.no_grad():
        forward_mode(function, x)


DERIVATIVES = {
    "eager": eager,
    **{f"compile, {name}": lambda function, x, name=name: compiled(function, name)(x.clone().requires_grad_()).backward() for name in COMPILERS},
    "grad": lambda function, x: torch.func.grad(function)(x),
    "vjp": lambda function, x: torch.func.vjp(function, x),
    "jvp": lambda function, x: torch.func.jvp(function, (x,), (torch.ones_like(x),)),
    "jacrev": lambda function, x: torch.func.jacrev(function)(x),
    "jacfwd": lambda function, x: torch.func.jacfwd(function)(x),
    "vmap of grad": lambda function, x: torch.func.vmap(torch.func.grad(function))(torch.stack([x, x])),
    "forward mode": forward_mode,
    "forward mode under no_grad": forward_mode_without_gradients,
    "compile of grad": lambda function, x: compiled(lambda x: torch.func.grad(function)(x), "aot_eager")(x),
    "compile of jvp": lambda function, x: compiled(lambda x: torch.func.jvp(function, (x,), (torch.ones_like(x),)), "aot_eager")(x),
}


@pytest.mark.parametrize("mode", DERIVATIVES)
@pytest.mark.parametrize("name", sorted(CASES))
def test_a_derivative_is_refused(name, mode):
    with pytest.raises(Exception) as refused:
        DERIVATIVES[mode](*function_of(name))
    assert SENTENCE in str(refused.value)


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_derivative_in_any_argument_is_refused(name):
    arguments, options = CASES[name]
    operator = getattr(ops, name)
    schema = operator.default._schema.arguments
    for index, value in enumerate(arguments):
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            given = [one.clone().requires_grad_() if one is value else one for one in arguments]
            with pytest.raises(RuntimeError, match=SENTENCE):
                operator(*given, **options)
            with torch.no_grad():
                operator(*given, **options)
    for key, value in options.items():
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            with pytest.raises(RuntimeError, match=f"{SENTENCE}, but {key} requires a gradient"):
                operator(*arguments, **{**options, key: value.clone().requires_grad_()})
    assert {one.name for one in schema} >= options.keys()


def beside(function, x):
    """A function with a derivative, of which the operator's part has none."""
    return lambda r: (r * 3).sum() + function(x.detach())


WITHOUT = {
    "eager": lambda function, x: function(x),
    **{f"compile, {name}": lambda function, x, name=name: compiled(function, name)(x) for name in COMPILERS},
    "compile under no_grad": lambda function, x: torch.no_grad()(compiled(function, "aot_eager"))(x.clone().requires_grad_()),
    "no_grad": lambda function, x: torch.no_grad()(function)(x.clone().requires_grad_()),
    "inference_mode": lambda function, x: torch.inference_mode()(function)(x),
    "a level that is open": lambda function, x: within_a_level(function, x),
}


def within_a_level(function, x):
    with torch.no_grad(), forward_ad.dual_level():
        return function(x)


@pytest.mark.parametrize("mode", WITHOUT)
@pytest.mark.parametrize("name", sorted(CASES))
def test_values_are_right_where_no_derivative_is_asked_for(name, mode):
    function, x = function_of(name)
    with torch.inference_mode():
        expected = function(x)
    assert torch.equal(WITHOUT[mode](function, x), expected) and expected.isfinite()


@pytest.mark.parametrize("name", sorted(CASES))
def test_derivatives_of_all_else_are_right(name):
    function, x = function_of(name)
    other, r = beside(function, x), torch.ones(3)
    threes = torch.full((3,), 3.0)
    for backend in (None, "aot_eager"):
        leaf = r.clone().requires_grad_()
        (other if backend is None else compiled(other, backend))(leaf).backward()
        assert torch.equal(leaf.grad, threes)
    assert torch.equal(torch.func.grad(other)(r), threes)
    value, tangent = torch.func.jvp(other, (r,), (r,))
    assert tangent == 9 and torch.equal(value, 9 + function(x))
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(other(forward_ad.make_dual(r, r))).tangent == 9


@pytest.mark.parametrize("name", sorted(name for name in CASES if not name.endswith("_out") and name != "append"))
def test_vmap_fake_tensors_and_dispatch_modes(name):
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils._python_dispatch import TorchDispatchMode

    function, x = function_of(name)
    expected, seen = function(x), []
    assert torch.equal(torch.func.vmap(function)(torch.stack([x, x])), torch.stack([expected, expected]))

    class Seeing(TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            seen.append(str(operator))
            return operator(*args, **(kwargs or {}))

    for mode in (torch.no_grad, torch.enable_grad, torch.inference_mode):
        seen.clear()
        with mode(), Seeing():
            function(x)
        assert f"thresher.{name}.default" in seen
    with torch.no_grad():
        traced = make_fx(function)(x)
    assert f"thresher.{name}" in traced.code and torch.equal(traced(x), expected)
    with FakeTensorMode(allow_non_fake_inputs=True) as fake:
        assert function(fake.from_tensor(x)).shape == expected.shape


@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad, torch.inference_mode])
def test_what_stands_between_an_operator_and_memory_says_why_it_fails(mode):
    """A fake kernel, a dispatch mode and a tensor of another kind: their own words come back."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Failing(TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            raise ValueError(f"not today, {operator}")

    class Other(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, operator, types, args=(), kwargs=None):
            raise ValueError(f"not by this tensor, {operator}")

    a, b, packed = torch.randn(5, 64).bfloat16(), torch.randn(24, 64).bfloat16(), tt.pack_gemm(torch.randn(24, 64).bfloat16())
    other = torch.Tensor._make_wrapper_subclass(Other, (5, 64), dtype=torch.bfloat16)
    with mode():
        with FakeTensorMode(allow_non_fake_inputs=True) as fake:
            shaped = fake.from_tensor(torch.randn(1, 5, 64).bfloat16())
            with pytest.raises(Exception, match="a and b have two dimensions"):
                tt.gemm(shaped, b)
        with pytest.raises(Exception, match="a and b have two dimensions"):
            tt.gemm(shaped, fake.from_tensor(b))
        with pytest.raises(Exception, match="not today, thresher.gemm_packed.default"), Failing():
            tt.gemm_packed(a, packed, 24)
        with pytest.raises(Exception, match="not by this tensor, thresher.gemm.default"):
            tt.gemm(other, b)
        with pytest.raises(Exception, match="a and b have two dimensions"):
            compiled(lambda a: tt.gemm(a[None], b), "aot_eager")(a)


def test_packing_refuses_derivatives_in_every_mode():
    b, codes, factors = torch.randn(24, 64).bfloat16(), torch.zeros(24, 64, dtype=torch.uint8), torch.zeros(24, 4, dtype=torch.uint8)
    bytes_of = {
        "b": lambda b: tt.pack_gemm(b),
        "bias": lambda bias: tt.pack_gemm(b, bias=bias),
        "b_scales": lambda scales: tt.pack_gemm(thresher.Fp8(codes, scales, per="tensor")),
        "b_global_scale": lambda scale: tt.pack_gemm(thresher.Nvfp4(codes[:, :32], factors, scale)),
        "b2_scales": lambda scales: tt.pack(*(thresher.Fp8(codes, one, per="tensor") for one in (torch.ones(1), scales))),
        "b1_global_scale": lambda scale: tt.pack_grouped(thresher.Nvfp4(codes[None, :, :32].contiguous(), factors[None], scale)),
    }
    given = {"b": b, "bias": torch.ones(24)}
    for argument, pack in bytes_of.items():
        for name in ("eager", "grad", "vjp", "jvp", "jacrev", "jacfwd", "forward mode"):
            with pytest.raises(thresher.UnsupportedError, match=f"{SENTENCE}.*, but {argument} "):
                DERIVATIVES[name](lambda x: pack(x).double().sum(), given.get(argument, torch.ones(1)))


def test_compiled_layers_beside_trainable_ones():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.before = torch.nn.Linear(64, 64, dtype=torch.bfloat16)
            self.mlp = tt.GatedMLP(*(torch.randn(48, 64) for _ in range(2)), torch.randn(64, 48))

        def forward(self, x):
            return x + self.mlp(self.before(x))

    block, x = Block(), torch.randn(4, 64).bfloat16()
    for run in (block, *(compiled(block, backend) for backend in COMPILERS)):
        with pytest.raises(Exception, match=SENTENCE):
            run(x)
        with torch.no_grad():
            assert run(x).isfinite().all()
    block.requires_grad_(False)
    assert not compiled(block, "aot_eager")(x).requires_grad


def test_compiled_functions_refuse_derivatives():
    d, x = torch.randn(128, 128).bfloat16(), torch.randn(4, 128).bfloat16()
    for backend in COMPILERS:
        function = compiled(lambda r: r + tt.gemm(r, d), backend)
        with pytest.raises(Exception, match=SENTENCE):
            function(x.clone().requires_grad_())
        detached = compiled(lambda r: r + tt.gemm(r.detach(), d), backend)
        leaf = x.clone().requires_grad_()
        result = detached(leaf)
        result.sum().backward()
        assert torch.equal(result, x + tt.gemm(x, d)) and (leaf.grad == 1).all()


def test_exported_programs():
    class Products(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("packed", tt.pack_gemm(torch.randn(64, 64).bfloat16()))
            self.scale = torch.nn.Parameter(torch.ones(64, dtype=torch.bfloat16), requires_grad=False)

        def forward(self, x):
            return tt.gemm_packed(x * self.scale, self.packed, 64) + 1

    module, x = Products(), torch.randn(5, 64).bfloat16()
    expected = module(x)
    for strict in (True, False):
        program = torch.export.export(module, (x,), dynamic_shapes={"x": {0: torch.export.Dim("rows", min=2, max=64)}}, strict=strict)
        assert torch.equal(program.module()(x), expected) and torch.equal(program.module()(x[:3]), module(x[:3]))
        assert any("thresher.gemm_packed" in str(node.target) for node in program.graph.nodes)
    module.scale.requires_grad_()
    with pytest.raises(Exception, match=SENTENCE):
        torch.export.export(module, (x,), strict=False)


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_what_is_written_to_is_not_used_for_a_gradient(mode):
    """Autograd refuses to use what it saved, as after every operation of PyTorch that writes."""
    a, b, keys, slots = torch.randn(9, 128).bfloat16(), torch.randn(128, 128).bfloat16(), torch.randn(9, 2, 64).bfloat16(), torch.arange(9)
    pages = [torch.ones(5, 4, 2, 64, dtype=torch.bfloat16) for _ in range(2)]
    outputs = {"gemm": torch.ones(9, 128, dtype=torch.bfloat16), "attention": torch.ones(1, 2, 9, 64, dtype=torch.bfloat16),
               "k_out": torch.ones(9, 2, 64, dtype=torch.bfloat16)}
    q = keys.transpose(0, 1)[None].contiguous()
    for written, write in (
        (outputs["gemm"], lambda: tt.gemm(a, b, out=outputs["gemm"])),
        *[(outputs["gemm"], lambda: ops.gemm_out(outputs["gemm"], a, b))] * 2,  # the second is one that was made before
        *[(pages[1], lambda: ops.append(*pages, keys, keys, slots, pairs="none"))] * 2,
        (outputs["attention"], lambda: tt.attention(q, q, q, out=outputs["attention"])),
        (outputs["attention"], lambda: tt.attention(q, q, q, out=outputs["attention"], return_lse=True)),
        *((one, lambda: tt.append(keys, keys, *pages, slots, positions=slots, k_out=outputs["k_out"])) for one in (*pages, outputs["k_out"])),
    ):
        factor = torch.ones_like(written).requires_grad_()
        result = (factor * written).sum()
        with mode():
            write()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.backward()
    with torch.inference_mode():
        tt.gemm(a, b, out=torch.empty(9, 128, dtype=torch.bfloat16))


def test_the_sentence_is_thresher_s_own_error():
    a = torch.randn(5, 64).bfloat16().requires_grad_()
    with pytest.raises(thresher.UnsupportedError, match=f"{SENTENCE}, but a requires a gradient"):
        tt.gemm(a, torch.randn(24, 64).bfloat16())
    with pytest.raises(thresher.UnsupportedError, match=f"{SENTENCE}, but out requires a gradient"):
        tt.gemm(a.detach(), torch.randn(24, 64).bfloat16(), out=torch.randn(5, 24).bfloat16().requires_grad_())


def test_without_the_native_library():
    """The same, of one operator of each kind, in a process of its own."""
    if _ops.native is None:
        pytest.skip("this is a process without it")
    chosen = "-k", "(gemm_out or moe or attention or append or packing or compiled) and not native_library"
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-x", __file__, *chosen], capture_output=True, text=True,
                          env=os.environ | {"THRESHER_TORCH_BINDING": "ctypes"})
    assert done.returncode == 0, done.stdout
