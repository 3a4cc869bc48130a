"""The arena from Python: functions and files as contestants, judged by the gates of the command."""

import os
import re
import socket
import sys
import threading

import __main__
import numpy as np
import pytest

import thresher

STEEPNESS = 1.0
first_answers = []
by_content = {}
numbers = iter(range(1000))


def product(a, b):
    return a.astype(np.float32) @ b.astype(np.float32).T


def silu(x):
    with np.errstate(all="ignore"):
        return x / (np.float32(1) + np.exp(-STEEPNESS * x))


def writes_out(a, b1, b2, out):
    with np.errstate(all="ignore"):
        out[...] = silu(product(a, b1)) * product(a, b2)


def gives_back(a, b1, b2):
    with np.errstate(all="ignore"):
        return silu(product(a, b1)) * product(a, b2)


def dequantised(b):
    """[rows, K] of an NVFP4 operand in float32, without its global scale."""
    codes = np.stack([b.values & 15, b.values >> 4], -1).reshape(b.values.shape[0], -1)
    magnitude = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)[codes & 7]
    exponent, mantissa = (b.scales >> 3 & 15).astype(np.int32), (b.scales & 7).astype(np.float32)
    scale = np.where(exponent == 0, mantissa / 512, np.ldexp(8 + mantissa, exponent - 10)).astype(np.float32)
    scale = np.where(b.scales & 128, -scale, scale)
    return np.where(codes & 8, -magnitude, magnitude) * np.repeat(scale, 16, 1)


def four_bits(a, b1, b2, out, *, activation, alpha, limit, up_offset, workspace):
    assert b1.scale_layout == "row_major" and workspace.shape == (16,) and workspace.dtype == np.uint8
    gate, up = (a.astype(np.float32) @ dequantised(b).T * (1 if b.global_scale is None else b.global_scale[0]) for b in (b1, b2))
    if activation == "swiglu_clamped":
        gate, up = np.minimum(gate, np.float32(limit)), np.clip(up, np.float32(-limit), np.float32(limit))
        up = up + np.float32(up_offset)
    with np.errstate(all="ignore"):
        out[...] = gate / (1 + np.exp(np.float32(-alpha if activation == "swiglu_clamped" else -1) * gate)) * up


def every_format(a, b1, b2, out, *, activation, alpha, limit, up_offset, workspace):
    if hasattr(b1, "scales"):
        four_bits(a, b1, b2, out, activation=activation, alpha=alpha, limit=limit, up_offset=up_offset, workspace=workspace)
    else:
        assert activation == "silu"
        writes_out(a, b1, b2, out)


def tries_to_leave(a, b1, b2, out):
    """Computes only where it is confined."""
    def is_refused(attempt):
        try:
            attempt()
        except (OSError, ValueError):
            return True
        return False

    attempts = (os.fork, socket.socket, lambda: open("/etc/passwd"), lambda: open(__file__, "a"), lambda: os.kill(os.getppid(), 0))
    if all(is_refused(attempt) for attempt in attempts):
        writes_out(a, b1, b2, out)


def gives_its_first_answer(a, b1, b2, out):
    if not first_answers:
        first_answers.append(gives_back(a, b1, b2))
    out[...] = first_answers[0]


def answers_by_address(a, b1, b2, out, answers={}):
    address = out.ctypes.data
    if address not in answers:
        answers[address] = gives_back(a, b1, b2)
    out[...] = answers[address]


def answers_by_a_fingerprint(a, b1, b2, out):
    fingerprint = (a[0].tobytes(), b1[0].tobytes(), b2[0].tobytes())
    if fingerprint not in by_content:
        by_content[fingerprint] = gives_back(a, b1, b2)
    out[...] = by_content[fingerprint]


def writes_its_inputs(a, b1, b2, out):
    writes_out(a, b1, b2, out)
    a[0, 0] = 0


def goes_on_afterwards(a, b1, b2, out):
    threading.Timer(0.002, writes_out, (a, b1, b2, out)).start()


def rewrites_who_answers_for_it(a, b1, b2, out):
    """From its first call on the process says that calls are done, and makes none."""
    __main__.Server._make_call = lambda server: 0
    writes_out(a, b1, b2, out)


def raises(a, b1, b2, out):
    raise KeyError("no such\nkernel")


def gives_another_shape(a, b1, b2):
    return np.zeros((3, 3), np.float16)


def gives_nothing(a, b1, b2):
    gives_back(a, b1, b2)


async def is_awaited_by_nobody(a, b1, b2, out):
    writes_out(a, b1, b2, out)


def yields(a, b1, b2):
    yield gives_back(a, b1, b2)


def writes_out_and_gives_another(a, b1, b2, out):
    writes_out(a, b1, b2, out)
    return out * 2


def writes_out_and_gives_it(a, b1, b2, out):
    writes_out(a, b1, b2, out)
    return out


def gives_a_text(a, b1, b2):
    return "c"


def gives_a_list(a, b1, b2):
    return [gives_back(a, b1, b2)]


def gives_complex(a, b1, b2):
    return gives_back(a, b1, b2).astype("complex64")


def gives_whole_numbers(a, b1, b2):
    return gives_back(a, b1, b2).astype("int32")


def gives_objects(a, b1, b2):
    return gives_back(a, b1, b2).astype(object)


def never_ends(a, b1, b2, out):
    while True:
        pass


def with_torch(a, b1, b2):
    import torch

    return torch.nn.functional.silu(a.float() @ b1.float().T) * (b2.float() @ a.float().T).T


@pytest.fixture
def small(tmp_path):
    """A suite of one small problem, or of that and more, which takes no times."""

    def made(more="", activation="silu", formats=("fp16", "fp16", "fp16"), distributions='"contest", "integers"'):
        a, b, out = formats
        path = tmp_path / f"small_{next(numbers)}.toml"
        path.write_text(f'title = "Small"\noperation = "dual_gemm"\ndistributions = [{distributions}]\ntimed = false\n[[problem]]\n'
                        f'm = 7\nn = 72\nk = 64\na = "{a}"\nb = "{b}"\nout = "{out}"\nactivation = "{activation}"\n{more}')
        return path

    return made


@pytest.fixture
def hold(tmp_path):
    return lambda suite, contestants, **options: thresher.tournament(
        suite, contestants, **{"ledger": tmp_path / "ledger.sqlite", "seconds": 0.1, "seed": 3, **options})


def expect_honest(found, *kernels):
    for kernel in kernels:
        entry = found[getattr(kernel, "__name__", kernel)]
        assert (entry.verdict, entry.failed) == ("not timed", False), entry.sentence
        assert entry.gates["correct"][0] == entry.gates["honest"][0] == "passed"


def expect_failed(found, cheats):
    for kernel, (gate, words) in cheats.items():
        entry = found[kernel.__name__]
        assert entry.verdict == f"failed at {gate}" and words in entry.sentence and entry.failed, (kernel.__name__, entry.sentence)


def test_honest_ones_pass_and_cheats_do_not(small, hold):
    cheats = {
        answers_by_a_fingerprint: ("honest", "answers from a cache keyed by a fingerprint of the inputs"),
        gives_nothing: ("correct", "it gave back None, expected an array of the shape [7, 72]"),
        rewrites_who_answers_for_it: ("correct", "never written"),
        is_awaited_by_nobody: ("correct", "it takes out and gave back a value of the type coroutine, expected nothing or out"),
        writes_out_and_gives_another: ("correct", "it takes out and gave back another array, expected nothing or out"),
    }
    found = hold(small(), [tries_to_leave, *cheats])
    expect_honest(found, tries_to_leave)
    expect_failed(found, cheats)


@pytest.mark.on_demand
def test_more_of_both(small, hold):
    cheats = {
        gives_its_first_answer: ("correct", "stale tile"),
        answers_by_address: ("correct", "stale tile"),
        writes_its_inputs: ("correct", "its input a was written to"),
        goes_on_afterwards: ("correct", ""),
        raises: ("correct", "it raised KeyError: 'no such"),
        gives_another_shape: ("correct", "it gave back the shape [3, 3], expected [7, 72]"),
        gives_complex: ("correct", "it gave back complex64, expected float16 or another floating-point type"),
        gives_whole_numbers: ("correct", "it gave back int32, expected float16 or another floating-point type"),
        gives_objects: ("correct", "it gave back object, expected float16 or another floating-point type"),
        yields: ("correct", "it gave back a value of the type generator, expected an array of the shape [7, 72]"),
        gives_a_text: ("correct", "it gave back a value of the type str, expected an array of the shape [7, 72]"),
        gives_a_list: ("correct", "it gave back a value of the type list, expected an array of the shape [7, 72]"),
    }
    found = hold(small(), [writes_out, writes_out_and_gives_it, gives_back, "interleaved", *cheats, thresher.Contestant(kernel=never_ends, time_limit_s=1)])
    expect_honest(found, writes_out, writes_out_and_gives_it, gives_back, "interleaved")
    expect_failed(found, cheats | {never_ends: ("correct", "a call took longer than the 1 s that it may, and the kernel's process was ended")})


def attends(q, k, v, scale, causal, cu_seqlens_q=None):
    logits = (q.astype("float32") @ np.swapaxes(k, -1, -2).astype("float32")) * scale
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return (weights @ v.astype("float32")) / weights.sum(axis=-1, keepdims=True)


def attends_to_the_first_value(q, k, v, scale, causal, cu_seqlens_q=None):
    return np.broadcast_to(v[..., :1, :], q.shape).astype("float32")


def knows_no_mask(q, k, v, out):
    out[...] = 0


def test_another_operation(hold, tmp_path):
    suite = tmp_path / "attention.toml"
    suite.write_text('title = "Small"\noperation = "attention"\ndistributions = ["normal", "full_range"]\ntimed = false\n[[problem]]\n'
                     'batch = 2\nheads = 2\nqueries = 3\nkeys = 9\nhead_dim = 64\nformat = "fp16"\n')

    def entered(kernel, **more):
        return thresher.Contestant(kernel=kernel, operation="attention", baseline="blockwise", **more)

    found = hold(suite, [entered(attends), entered(attends_to_the_first_value)])
    expect_honest(found, attends)
    expect_failed(found, {attends_to_the_first_value: ("correct", "the definition gives")})
    causal = tmp_path / "causal.toml"
    causal.write_text(suite.read_text() + "causal = true\n")
    entry = hold(causal, [entered(knows_no_mask)])["knows_no_mask"]
    assert "knows_no_mask takes no argument causal, and this problem's is True" in entry.sentence


@pytest.mark.on_demand
def test_formats(small, hold):
    second = '[[problem]]\nm = 5\nn = 24\nk = 64\na = "bf16"\nb = "bf16"\nout = "fp32"\n'
    third = '[[problem]]\nm = 5\nn = 24\nk = 64\na = "bf16"\nb = "nvfp4"\nout = "bf16"\nactivation = "swiglu_clamped"\n'
    suite = small(second + third, formats=("bf16", "bf16", "bf16"), distributions='"contest", "normal"')
    found = hold(suite, [thresher.Contestant(kernel=every_format, workspace_bytes=16)])
    assert found["every_format"].verdict == "not timed", found["every_format"].sentence


@pytest.mark.on_demand
def test_torch_tensors(small, hold):
    pytest.importorskip("torch", reason="torch is not installed: kernels on its tensors are left out")
    found = hold(small(), [thresher.Contestant(kernel=with_torch, framework="torch")])
    assert found["with_torch"].verdict == "not timed", found["with_torch"].sentence


def test_a_process_knows_nothing_of_an_earlier_one(small, hold, tmp_path):
    file = tmp_path / "counts.py"
    file.write_text("import sys\nsys.loads = getattr(sys, 'loads', 0) + 1\n\ndef counts(a, b1, b2, out):\n"
                    "    raise RuntimeError(f'it was read {sys.loads} times')\n")
    entry = hold(small(), [thresher.Contestant(kernel=file, entry="counts")])["counts"]
    assert entry.gates["compiles"][0] == "passed" and "it raised RuntimeError: it was read 1 times" in entry.sentence, entry.sentence


def test_files_that_cannot_be_loaded(small, hold, tmp_path):
    kernels = {
        "def mine(a, b1, b2:\n    pass": "SyntaxError: '(' was never closed (line 1)",
        "import numpy\nimport no_such_module": "ModuleNotFoundError: No module named 'no_such_module' (line 2)",
        "def other(a, b1, b2): pass\n": "it has no function mine",
        "def mine(a): pass\n": "mine takes 1 arguments by place, expected a, b1, b2, or a, b1, b2, out",
        "def mine(a, b1, b2, *, tile): pass\n": "mine needs an argument tile, expected none beside activation, alpha, limit, up_offset, "
                                                "workspace",
        "import os\nos._exit(4)": "the kernel's process ended with status 4",
    }
    contestants = []
    for number, text in enumerate(kernels):
        file = tmp_path / f"kernel_{number}.py"
        file.write_text(text)
        contestants.append(thresher.Contestant(kernel=file, entry="mine"))
    found = hold(small(), contestants)
    for number, sentence in enumerate(kernels.values()):
        entry = found[f"kernel_{number}"]
        assert entry.verdict == "failed at compiles"
        assert entry.sentence == f"kernel_{number}.py cannot be loaded: {sentence}"
    entry = hold(small(activation="gelu_tanh"), [writes_out])["writes_out"]
    assert "writes_out takes no argument activation, and this problem's is gelu_tanh" in entry.sentence


@pytest.mark.parametrize("program, sentence", [
    ("/no/such/python", "there is no Python /no/such/python: install one, or name one in THRESHER_PYTHON"),
    ("/bin/true", "/bin/true does not tell that it is Python 3.10 or newer: name another in THRESHER_PYTHON"),
])
def test_a_python_that_cannot_be_used(small, hold, monkeypatch, tmp_path, program, sentence):
    monkeypatch.setattr(sys, "executable", program)
    with pytest.raises(thresher.Error, match=f"^{re.escape(sentence)}$"):
        hold(small(), [writes_out])
    assert not (tmp_path / "ledger.sqlite").exists()


def test_what_a_tournament_gives_back(small, hold, tmp_path, capsys):
    suite = small()
    mine = thresher.Contestant(kernel=writes_out, name="mine", speedup=(0.01, 100), confidence=0.9, reason="a <b>test</b>",
                               formats=["fp16*fp16->fp16"])
    picky = thresher.Contestant(kernel=writes_out, name="picky", formats=["bf16*bf16->bf16"])
    found = hold(suite, [mine, picky], report=tmp_path / "report", progress=True)
    assert "run 1 of ledger" in capsys.readouterr().err and "dual_gemm/mine" in (tmp_path / "report" / "report.html").read_text()
    assert (found.run, found.seed, found.device, found.ledger) == (1, 3, "cpu", str(tmp_path / "ledger.sqlite"))
    assert [one.contestant for one in found] == ["dual_gemm/two_pass", "dual_gemm/mine", "dual_gemm/picky"] and len(found) == 3
    assert found[1] is found["mine"] is found["dual_gemm/mine"] is found[suite.stem, "mine"]
    assert (found["mine"].suite, found["mine"].baseline, found[0].verdict) == (suite.stem, "dual_gemm/two_pass", "baseline")
    assert found["picky"].verdict == "not for these formats"
    assert found["mine"].times_us == {} and list(found["mine"].gates) == [
        "feasible", "compiles", "audited", "race-free", "correct", "honest", "timed", "verdict"]
    assert f"{sys.implementation.name}"[:7].lower() in found["mine"].gates["compiles"][1].lower()
    with pytest.raises(KeyError, match="'nobody' is the name of no entries, expected one of"):
        found["nobody"]
    claim = found.record["entries"][1]["pitch"]["claim"]
    assert (claim["speedup_low"], claim["speedup_high"], claim["reason"]) == (0.01, 100, "a <b>test</b>")
    shown = found._repr_html_()
    assert shown.count("<tr>") == 4 and "<td>dual_gemm/mine</td><td>not timed</td>" in shown
    assert "dual_gemm/picky" in repr(found)


def test_a_table_with_times():
    record = {
        "run": 1, "seed": 2, "device": "cpu",
        "predictions": [{"suite": "s", "contestant": "dual_gemm/<mine>", "problem": "p", "predicted_us": 3.5}],
        "entries": [{
            "suite": "s", "contestant": "dual_gemm/<mine>", "baseline": "dual_gemm/two_pass", "verdict_text": "accepted", "sentence": "x < y",
            "gates": [{"gate": "correct", "outcome": "passed", "sentence": "right"}],
            "measurements": [{"problem": "p", "mode": "cold burst", "not_measured": "no"},
                             {"problem": "p", "mode": "warm burst", "contestant_us": {"value": 2.0, "low": 1.5, "high": 2.5},
                              "speedup": {"value": 1.25, "low": 1.0, "high": 1.5}}]}],
    }
    from thresher._tournament import Tournament

    found = Tournament(record, "l", "standings")
    entry = found["<mine>"]
    assert entry.times_us == {("p", "warm burst"): (2.0, 1.5, 2.5)} and entry.speedups == {("p", "warm burst"): (1.25, 1.0, 1.5)}
    assert entry.predicted_us == {"p": 3.5} and not entry.failed
    shown = found._repr_html_()
    assert "<th>p (warm burst, µs)</th>" in shown and "<td>2 (1.25×)</td>" in shown
    assert "&lt;mine&gt;" in shown and "x &lt; y" in shown and "<mine>" not in shown


def closed_over(value):
    def kernel(a, b1, b2):
        return value

    return kernel


REFUSED = {
    "None is": lambda: [None],
    "nobody competes": lambda: [],
    "is a string": lambda: "interleaved",
    "a kernel is a lambda": lambda: [lambda a, b1, b2: None],
    "a contestant is of the type": lambda: [3.5j],
    "two contestants have the name writes_out": lambda: [writes_out, writes_out],
    "the contestant's name is": lambda: [thresher.Contestant(kernel=writes_out, name="two words")],
    "the contestant attention/split has no baseline": lambda: ["attention/split"],
    "confidence is 2": lambda: [thresher.Contestant(kernel=writes_out, confidence=2)],
    "framework is 'jax'": lambda: [thresher.Contestant(kernel=writes_out, framework="jax")],
    "framework is given with the strategy interleaved": lambda: [thresher.Contestant(kernel="interleaved", framework="numpy")],
    "entry is 'writes_out'": lambda: [thresher.Contestant(kernel=writes_out, entry="writes_out")],
    "a kernel uses value, which is of the type generator": lambda: [closed_over(x for x in "")],
    "no_such_strategy": lambda: ["no_such_strategy"],
    "no such file": lambda: ["no such file.toml"],
    "with a GPU's": lambda: [thresher.Contestant(kernel="mine.cu", entry="mine")],
    "no_such.py is no file": lambda: [thresher.Contestant(kernel="no_such.py", entry="mine")],
    "a contestant is told '\\ud800', expected text that UTF-8 has": lambda: [thresher.Contestant(kernel=writes_out, reason="\ud800")],
    "asks for 61 s for one call": lambda: [thresher.Contestant(kernel=writes_out, time_limit_s=61)],
}
SENTENCES = {
    "None is": "a contestant is None, expected a function, a .py file, the name of a strategy",
    "is a string": "contestants is 'interleaved', expected a list of them",
    "a contestant is of the type": "a contestant is of the type complex",
    "with a GPU's": "entry is given with the strategy mine.cu",
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused(small, tmp_path, words):
    with pytest.raises(thresher.InvalidArgumentError) as refused:
        thresher.tournament(small(), REFUSED[words](), ledger=tmp_path / "ledger.sqlite")
    assert SENTENCES.get(words, words) in str(refused.value) and "\n" not in str(refused.value)
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize("options, words", [
    ({"device": "tpu"}, "the device is 'tpu', expected 'cpu', 'cuda' or 'cuda:1'"),
    ({"device": "cuda:7777"}, " GPU"),
    ({"device": "cpu", "device_table": "B200"}, "device and device_table are both given"),
    ({"device_table": "B200"}, "brings a kernel of its own, which is judged where it runs"),
    ({"seconds": 0}, "seconds is 0, expected a number greater than 0"),
    ({"seconds": float("nan")}, "seconds is nan"),
    ({"match_seconds": 0}, "match_seconds is 0, expected a number greater than 0"),
    ({"call_seconds": float("nan")}, "call_seconds is nan"),
    ({"ledger": "two\0parts"}, "an argument is 'two\\x00parts', expected text that a command can be given"),
    ({"device_table": "\ud800"}, "an argument is '\\ud800', expected text that a command can be given"),
    ({"seed": -1}, "seed is -1, expected a whole number from 0 up"),
    ({"ledger": "/dev/null/no"}, "/dev/null/no"),
])
def test_refused_options(small, hold, options, words):
    with pytest.raises(thresher.Error) as refused:
        hold(small(), [writes_out], **options)
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_what_a_kernel_is_written_as():
    from thresher._kernel_source import source_of

    names = {}
    text = source_of(closed_over((1, [2.5], {"three": None})))
    exec(text, names)
    assert names["kernel"](None, None, None) == (1, [2.5], {"three": None})
    names = {}
    exec(source_of(writes_out), names)
    assert names["np"] is np and names["STEEPNESS"] == STEEPNESS and "never_ends" not in names
    with pytest.raises(thresher.InvalidArgumentError, match="a kernel uses infinite, which is of the type float"):
        source_of(uses_infinite)
    with pytest.raises(thresher.InvalidArgumentError, match="a kernel is of the type builtin_function_or_method"):
        source_of(print)
    names = {}
    exec(source_of(uses_a_class), names)
    assert names["uses_a_class"](1, 2, 3) == 7
    names = {}
    exec(source_of(has_names_of_its_own), names)
    assert names["has_names_of_its_own"](1, 2, 3) == (1, [4, 6]) and "infinite" not in names and "small" not in names
    exec(source_of(counts), names)
    assert [names["counts"](1, 2, 3) for _ in range(3)] == [1, 2, 3]


def test_a_kernel_of_tritons_is_written_as_it_was_decorated():
    from thresher._kernel_source import source_of

    text = source_of(launches)
    assert text.count("@jitted") == 1 and "import JITFunction" in text and text.index("def twice") < text.index("def launches")


class JITFunction:
    def __init__(self, function):
        self.fn = function


JITFunction.__module__ = "triton.runtime.jit"


def jitted(function):
    return JITFunction(function)


@jitted
def twice(x):
    return 2 * x


def launches(a, b1, b2):
    return twice.fn(a)


infinite = float("inf")


def uses_infinite(a, b1, b2):
    return infinite


def has_names_of_its_own(infinite, b1, b2):
    def inner(small):
        return 2 * small

    return infinite, [inner(writes_out) for writes_out in (b1, b2)]


times_called = 0


def counts(a, b1, b2):
    global times_called
    times_called += 1
    return times_called


class Constants:
    one = 1

    @staticmethod
    def six():
        return Constants.one * 6


def uses_a_class(a, b1, b2):
    return Constants.six() + a
