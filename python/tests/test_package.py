"""What is installed: that importing is cheap, the command, exceptions."""

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
