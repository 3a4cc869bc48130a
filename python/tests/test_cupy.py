"""thresher.cupy: what it refuses, with a stand-in for CuPy that has no GPU; and on a GPU the bits of its operations against torch's."""

import importlib
import sys
import types

import numpy as np
import pytest

import thresher


class StandInArray(np.ndarray):
    """An array that says it lies on a GPU."""

    device = types.SimpleNamespace(id=0)


def stand_in():
    stream = types.SimpleNamespace(ptr=0, synchronize=lambda: None)
    cuda = types.SimpleNamespace(get_current_stream=lambda: stream, Device=lambda: types.SimpleNamespace(id=0))
    return types.SimpleNamespace(ndarray=StandInArray, asarray=lambda one: one.array, uint8=np.uint8, cuda=cuda,
                                 empty=lambda shape, dtype: np.empty(shape, dtype).view(StandInArray), __name__="cupy")


@pytest.fixture
def tc(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", stand_in())
    monkeypatch.delitem(sys.modules, "thresher.cupy", raising=False)
    yield importlib.import_module("thresher.cupy")
    sys.modules.pop("thresher.cupy", None)


class OnOtherGpu:
    """What has a DLPack capsule of memory that is not a GPU's."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **_):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


class OfAnInterface:
    __cuda_array_interface__ = dict(version=3)

    def __init__(self, array):
        self.array = array


class WithoutArray:
    __cuda_array_interface__ = dict(version=3)


def test_refused(tc):
    host = np.ones((4, 32), np.float16)
    for call, sentence in (
        (lambda: tc.dual_gemm(None, host, host), "a is None, expected a CuPy array or an object with __cuda_array_interface__ or __dlpack__"),
        (lambda: tc.gemm([1.0], host), "a is of the type list"),
        (lambda: tc.gemm(OnOtherGpu(host), host), "a lies on the CPU, expected memory of GPU 0, CuPy's current one"),
        (lambda: tc.attention(host, host, host), "q lies on the CPU"),
        (lambda: tc.pack(b1=None, b2=host), "b1 is None"),
        (lambda: tc.dual_gemm_packed(OnOtherGpu(host), host), "a lies on the CPU"),
        (lambda: tc.append(host, host, host, host, host), "k lies on the CPU"),
        (lambda: tc.gemm(WithoutArray(), host), "a cannot be had by __cuda_array_interface__: 'WithoutArray' object has no attribute 'array'"),
    ):
        with pytest.raises(thresher.InvalidArgumentError) as refusal:
            call()
        assert sentence in str(refusal.value) and "\n" not in str(refusal.value)


def test_threads_are_the_cpus(tc):
    assert tc._Call().threads(0) == 0
    with pytest.raises(thresher.InvalidArgumentError, match="threads is 2, expected 0: the GPU computes, and threads are the CPU's"):
        tc._Call().threads(2)


def test_arrays_of_a_gpu_are_not_numpys():
    import thresher.numpy as tn

    with pytest.raises(thresher.InvalidArgumentError, match="a lies on a GPU, expected memory of the CPU: thresher.cupy and"):
        tn.gemm(OfAnInterface(None), np.ones((4, 32), np.float16))


def test_it_has_the_functions_of_numpy(tc):
    import thresher.numpy as tn

    for name in tn.__all__:
        assert getattr(tc, name).__doc__ == getattr(tn, name).__doc__


@pytest.mark.gpu
def test_on_a_gpu_the_bits_are_those_of_torch():
    cp, torch = pytest.importorskip("cupy"), pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    import thresher.cupy as tc
    import thresher.torch as tt

    a, b1, b2, down = (cp.random.standard_normal(shape).astype(cp.float16) for shape in ((9, 128), (64, 128), (64, 128), (128, 64)))
    q, k = (cp.random.standard_normal(shape).astype(cp.float16) for shape in ((1, 4, 33, 64), (1, 2, 40, 64)))
    offsets, experts = cp.asarray([0, 3, 9], cp.int32), cp.random.standard_normal((2, 64, 128)).astype(cp.float16)
    there = {id(one): torch.from_dlpack(one) for one in (a, b1, b2, down, q, k, offsets, experts)}
    packed, below = tc.pack(b1, b2), tc.pack_gemm(down)
    with torch.inference_mode():
        for result, expected in (
            (tc.dual_gemm(a, b1, b2), tt.dual_gemm(there[id(a)], there[id(b1)], there[id(b2)])),
            (tc.gemm(a, b1), tt.gemm(there[id(a)], there[id(b1)])),
            (tc.dual_gemm_packed(a, packed), tt.dual_gemm(there[id(a)], there[id(b1)], there[id(b2)])),
            (tc.gated_mlp(a, packed, below), tt.gated_mlp(there[id(a)], torch.from_dlpack(packed), torch.from_dlpack(below))),
            (tc.grouped_gemm(a, experts, offsets=offsets), tt.grouped_gemm(there[id(a)], there[id(experts)], offsets=there[id(offsets)])),
            (tc.attention(q, k, k), tt.attention(there[id(q)], there[id(k)], there[id(k)])),
            (tc.gemm(torch.from_dlpack(a), b1), tt.gemm(there[id(a)], there[id(b1)])),
        ):
            torch.cuda.synchronize()
            assert isinstance(result, cp.ndarray) and torch.equal(torch.from_dlpack(result), expected)
        pages, others = ([cp.zeros((4, 8, 2, 64), cp.float16) for _ in range(2)] for _ in range(2))
        tokens, slots = cp.random.standard_normal((5, 2, 64)).astype(cp.float16), cp.asarray([3, 31, -1, 0, 8])
        turned = tc.append(tokens, tokens, *pages, slots, positions=slots + 1, q=tokens)
        rows = torch.from_dlpack(tokens)
        expected = tt.append(rows, rows, *map(torch.from_dlpack, others), torch.from_dlpack(slots), positions=torch.from_dlpack(slots + 1), q=rows)
        torch.cuda.synchronize()
        for result, one in ((turned, expected), (pages[0], torch.from_dlpack(others[0])), (pages[1], torch.from_dlpack(others[1]))):
            assert torch.equal(torch.from_dlpack(result), one)
    out = cp.full((9, 72), 7, cp.float16)
    assert tc.gemm(a, b1, out=out[:, :64]).base is out and (out[:, 64:] == 7).all()
