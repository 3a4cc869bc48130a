"""The arena from Python on a GPU: functions on torch's tensors and kernels of Triton's as contestants, and what they may not do."""

import os
import pathlib

import pytest

import thresher

if thresher.best_device() == "cpu":
    pytest.skip("there is no CUDA device: tournaments of Python's functions on a GPU are left out", allow_module_level=True)
torch = pytest.importorskip("torch", reason="torch is not installed: kernels on its tensors are left out")
pytestmark = pytest.mark.gpu

first_answers = []
answers = {}


def gives_back(a, b1, b2):
    return torch.nn.functional.silu(a.float() @ b1.float().T) * (a.float() @ b2.float().T)


def writes_out(a, b1, b2, out):
    out.copy_(gives_back(a, b1, b2))


def tries_to_leave(a, b1, b2, out):
    """Computes only where it is confined."""
    def is_refused(path):
        try:
            open(path, "a").close()
        except OSError:
            return True
        return False

    if all(is_refused(path) for path in (__file__, "/tmp/thresher_was_left", os.path.expanduser("~/.thresher_was_left"))):
        writes_out(a, b1, b2, out)


def gives_its_first_answer(a, b1, b2, out):
    if not first_answers:
        first_answers.append(gives_back(a, b1, b2))
    out.copy_(first_answers[0])


def has_graphs_copy_what_it_computed_before(a, b1, b2, out):
    """Right when it is called alone; what is timed does next to nothing."""
    if torch.cuda.is_current_stream_capturing():
        if out.data_ptr() in answers:
            out.copy_(answers[out.data_ptr()])
        else:
            writes_out(a, b1, b2, out)
    else:
        answers[out.data_ptr()] = gives_back(a, b1, b2)
        out.copy_(answers[out.data_ptr()])


def says_that_it_is_done_when_it_is_not(a, b1, b2, out):
    """Nobody in its process waits for the GPU any more."""
    torch.cuda.synchronize = torch.cuda.Stream.synchronize = lambda *_: None
    torch.cuda._sleep(40_000_000)
    writes_out(a, b1, b2, out)


def writes_its_inputs(a, b1, b2, out):
    writes_out(a, b1, b2, out)
    a.zero_()


def waits_for_the_host(a, b1, b2, out):
    writes_out(a, b1, b2, out)
    out[0, 0].item()


TRITON = '''
import triton
import triton.language as tl


@triton.jit
def tile(a, b1, b2, out, M, N, K, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    gate = tl.zeros((ROWS, COLUMNS), tl.float32)
    up = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, K, DEPTH):
        depth = first + tl.arange(0, DEPTH)
        x = tl.load(a + rows[:, None] * K + depth[None, :], mask=(rows[:, None] < M) & (depth[None, :] < K), other=0.0)
        at = columns[None, :] * K + depth[:, None]
        mask = (columns[None, :] < N) & (depth[:, None] < K)
        gate = tl.dot(x, tl.load(b1 + at, mask=mask, other=0.0), gate)
        up = tl.dot(x, tl.load(b2 + at, mask=mask, other=0.0), up)
    result = gate / (1 + tl.exp(-gate)) * up
    tl.store(out + rows[:, None] * stride + columns[None, :], result.to(out.dtype.element_ty),
             mask=(rows[:, None] < M) & (columns[None, :] < N))


def by_triton(a, b1, b2, out):
    (M, K), N = a.shape, b1.shape[0]
    assert a.stride() == (K, 1) and b1.stride() == (K, 1) and b2.stride() == (K, 1)
    tile[(triton.cdiv(M, 64), triton.cdiv(N, 64))](a, b1, b2, out, M, N, K, out.stride(0), ROWS=64, COLUMNS=64, DEPTH=64)
'''


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text('title = "Small"\noperation = "dual_gemm"\ndistributions = ["contest", "integers"]\ntimed = false\n[[problem]]\n'
                    'm = 64\nn = 512\nk = 1024\na = "fp16"\nb = "fp16"\nout = "fp16"\n')
    return path


@pytest.fixture
def hold(tmp_path):
    return lambda suite, contestants, **options: thresher.tournament(
        suite, contestants, **{"device": "cuda", "ledger": tmp_path / "ledger.sqlite", "seconds": 0.1, "seed": 3, **options})


def expect_honest(found, *names):
    for name in names:
        entry = found[name]
        assert (entry.verdict, entry.failed) == ("not timed", False), (name, entry.sentence)
        assert entry.gates["correct"][0] == entry.gates["honest"][0] == "passed", entry.gates


def test_functions_and_triton(small, hold, tmp_path):
    pytest.importorskip("triton", reason="Triton is not installed: a kernel of its is left out")
    file = tmp_path / "by_triton.py"
    file.write_text(TRITON)
    found = hold(small, [gives_back, writes_out, tries_to_leave, thresher.Contestant(kernel=file, entry="by_triton")])
    expect_honest(found, "gives_back", "writes_out", "tries_to_leave", "by_triton")
    assert not pathlib.Path("/tmp/thresher_was_left").exists()


CHEATS = {
    gives_its_first_answer: "",
    has_graphs_copy_what_it_computed_before: "",
    says_that_it_is_done_when_it_is_not: "",
    writes_its_inputs: "input",
    waits_for_the_host: "it raised",
}


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda one: one.__name__)
def test_cheats_are_caught(small, hold, cheat):
    entry = hold(small, [cheat])[cheat.__name__]
    print(f"{cheat.__name__}: {entry.verdict}: {entry.sentence}")
    assert entry.verdict in ("failed at correct", "failed at honest") and CHEATS[cheat] in entry.sentence, (entry.verdict, entry.sentence)


def test_numpys_arrays_are_not_on_a_gpu(small, hold):
    with pytest.raises(thresher.InvalidArgumentError, match="has the framework 'numpy', expected 'torch' on a GPU"):
        hold(small, [thresher.Contestant(kernel=writes_out, framework="numpy")])


@pytest.mark.parametrize("name", ["by_triton", "writes_out"])
def test_times(hold, tmp_path, name):
    """Warm, where experiments make one call at a time and two modes are timed: in a cold suite each of some hundred samples of such short
    calls has a graph of 512 captured anew, in Python."""
    suite = tmp_path / "timed.toml"
    suite.write_text('title = "Timed"\noperation = "dual_gemm"\ncache = "warm"\ndistributions = ["contest"]\n[[problem]]\n'
                     'm = 64\nn = 1024\nk = 1024\na = "bf16"\nb = "bf16"\nout = "bf16"\n')
    file = tmp_path / "by_triton.py"
    file.write_text(TRITON)
    contestants = {"by_triton": thresher.Contestant(kernel=file, entry="by_triton"), "writes_out": writes_out}
    found = hold(suite, [contestants[name]], seconds=3)
    print(found)
    for entry in found.record["entries"]:
        print(entry["contestant"], entry["started"], entry["ended"], [(gate["gate"], gate["sentence"]) for gate in entry["gates"]])
    assert found[name].gates["timed"][0] == "passed" and found[name].times_us, found[name].gates
