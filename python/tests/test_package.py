"""What is installed: that importing is cheap, the command, exceptions."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import thresher

_IMPORT = """
import sys, time
start = time.perf_counter()
import thresher
elapsed = time.perf_counter() - start
print(elapsed, *(name for name in ("numpy", "torch", "jax", "cupy", "ctypes") if name in sys.modules))
"""


def test_importing_brings_no_framework_and_not_the_library():
    words = subprocess.run([sys.executable, "-c", _IMPORT], capture_output=True, text=True, check=True).stdout.split()
    assert words[1:] == []


def test_the_command_is_installed():
    done = subprocess.run([sys.executable, "-m", "thresher", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, thresher.__version__)
    wrong = subprocess.run([sys.executable, "-m", "thresher", "no-such-command"], capture_output=True, text=True)
    assert wrong.returncode == 2


@pytest.fixture
def beside_the_package():
    """A folder of NVIDIA's packages in the environment that the package is installed in."""
    folder = pathlib.Path(thresher.__file__).parents[1] / "nvidia" / "thresher_test"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_what_is_installed_beside_the_package_is_found_in_an_environment_that_is_not_activated(beside_the_package):
    if any(pathlib.Path(folder, "nvdisasm").exists() for folder in ("/usr/local/cuda/bin", "/opt/cuda/bin")):
        pytest.skip("a CUDA toolkit's nvdisasm comes first here")
    program = beside_the_package / "bin" / "nvdisasm"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    done = subprocess.run([sys.executable, "-m", "thresher", "doctor"], capture_output=True, text=True, check=True, env={"PATH": "/nowhere"})
    assert f"disassembler {program}" in done.stdout


def test_doctor_says_how_operators_are_called():
    lines = subprocess.run([sys.executable, "-m", "thresher", "doctor"], capture_output=True, text=True, check=True).stdout.splitlines()
    said = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines}
    assert said["Python"] == f"{sys.version.split()[0]} ({sys.executable})"
    torch = said["PyTorch"]
    assert torch == "not installed" or torch.endswith(", operators in C++") or "operators by way of Python: " in torch
    without = subprocess.run([sys.executable, "-m", "thresher", "doctor"], capture_output=True, text=True, check=True,
                             env=dict(os.environ, THRESHER_TORCH_BINDING="ctypes")).stdout
    assert torch == "not installed" or "THRESHER_TORCH_BINDING is ctypes" in without


def test_devices():
    assert thresher.device_name("cpu")
    for device in ("tpu", "cuda:x", "cpu:1", None, "cuda:-1"):
        with pytest.raises(thresher.InvalidArgumentError, match="expected 'cpu', 'cuda' or 'cuda:1'"):
            thresher.device_name(device)
    if thresher.best_device() == "cpu":
        with pytest.raises(thresher.Error):
            thresher.device_name("cuda")
    with pytest.raises(thresher.InvalidArgumentError, match="expected one of dual_gemm"):
        thresher.strategies("convolution")


def test_exceptions_are_of_python_kinds_too():
    for kind, of_python in ((thresher.InvalidArgumentError, ValueError), (thresher.UnsupportedError, NotImplementedError),
                            (thresher.OutOfMemoryError, MemoryError), (thresher.FileError, OSError)):
        assert issubclass(kind, thresher.Error) and issubclass(kind, of_python)


def test_unknown_names():
    with pytest.raises(AttributeError):
        thresher.no_such_name


def test_operands_show_what_they_are():
    import numpy as np

    codes = np.zeros((2, 4, 8), np.uint8)
    assert repr(thresher.Nvfp4(codes[0], codes)) == "Nvfp4([4, 16], scale_layout='row_major')"
    assert repr(thresher.Nvfp4(codes, codes, codes, scale_layout="blocked")) == "Nvfp4([2, 4, 16], scale_layout='blocked', with a global scale)"
    assert repr(thresher.Fp8(codes, codes, per="row")) == "Fp8([2, 4, 8], per='row', scale_layout='row_major')"
    assert repr(thresher.Fp8(None, None, per="block")) == "Fp8(values of the type NoneType, per='block', scale_layout='row_major')"


def test_the_version_is_a_public_text():
    assert "__version__" in thresher.__all__ and isinstance(thresher.__version__, str)


def test_sentences_of_the_library_name_arguments_of_python():
    import inspect

    import thresher.numpy as tn
    from thresher import _library
    from thresher._sentences import _MEMBERS, in_python

    arguments = {name for function in tn.__all__ for name in inspect.signature(getattr(tn, function)).parameters}
    problems = [one for name, one in vars(_library).items() if name.endswith("_problem")]
    members = {name for problem in problems for name, _ in problem._fields_}
    unseen = {"struct_size", "reserved", "layout", "expected_rows", "has_kv_format", "gate_up_bias", "down_bias", "quantized_x"}  # what Python alone gives, or torch alone takes
    assert len(problems) == 6 and not members - unseen - arguments - _MEMBERS.keys()
    for member in members | {"batch", "queries", "keys", "value_dim"}:
        sentence = in_python(f"problem.{member} is 3, expected a multiple of problem.heads for fp16 operands")
        assert "." not in sentence and sentence.endswith(" is 3, expected a multiple of the number of heads of q for float16 operands")
    assert in_python("c shares memory with a") == "out shares memory with a" and in_python("causal is 1") == "causal is 1"


_STEADY = """
import numpy as np, thresher
from thresher.numpy import dual_gemm, gemm
thresher.set_deterministic("batch")
random = np.random.default_rng(0)
a, b1, b2 = (random.standard_normal((rows, 144)).astype(np.float16) for rows in (37, 40, 40))
all_rows = dual_gemm(a, b1, b2), gemm(a, b1)
for count in range(1, 38):
    for whole, some in zip(all_rows, (dual_gemm(a[-count:], b1, b2), gemm(a[-count:], b1))):
        assert some.tobytes() == whole[-count:].tobytes(), count
try:
    thresher.set_deterministic(None)
except thresher.InvalidArgumentError as error:
    print(error)
"""


def test_bits_need_not_depend_on_the_batch():
    done = subprocess.run([sys.executable, "-c", _STEADY], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "deterministic is None, but plans were made with 'batch': set it before the first operation"
    with pytest.raises(thresher.InvalidArgumentError, match="deterministic is 'rows', expected 'batch' or None"):
        thresher.set_deterministic("rows")
    wrong = subprocess.run([sys.executable, "-c", "import numpy as np\nfrom thresher.numpy import gemm\ngemm(*[np.ones((8, 8), np.float16)] * 2)"],
                           capture_output=True, text=True, env=dict(os.environ, THRESHER_DETERMINISTIC="rows"))
    assert wrong.stderr.strip().splitlines()[-1].endswith("deterministic is rows, expected batch or nothing")
