"""The command `thresher`: the program beside this file, with the same arguments. `doctor` says besides what Python has."""

import importlib.util
import os
import subprocess
import sys
import warnings


def _binding(framework: str) -> str:
    """Whether calls of thresher.torch or thresher.jax go through C++, in one sentence."""
    if importlib.util.find_spec(framework) is None:
        return "not installed"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            version = importlib.import_module(framework).__version__
            why_not = importlib.import_module("thresher.torch._native" if framework == "torch" else "thresher._jax_native").WHY_NOT
    except Exception as error:
        return f"cannot be used: {' '.join(str(error).split())}"
    return f"{version}, operators in C++" if why_not is None else f"{version}, operators by way of Python: {why_not}"


def _report_python() -> None:
    print(f"{'Python':<13}{sys.version.split()[0]} ({sys.executable})")
    print(f"{'PyTorch':<13}{_binding('torch')}")
    print(f"{'JAX':<13}{_binding('jax')}")


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "thresher")
    command = ["thresher", *sys.argv[1:]]
    try:
        if command[1:] != ["doctor"]:
            os.execv(program, command)
        status = subprocess.run(command, executable=program).returncode
    except OSError as error:
        sys.exit(f"thresher: the program {program} cannot be run: {error.strerror}; install the package again")
    if status == 0:
        _report_python()
    sys.exit(status)


if __name__ == "__main__":
    main()
