"""Fused kernels for transformer inference: gated MLP, mixture of experts and attention.

`thresher.numpy` computes on NumPy arrays, `thresher.cupy` on CuPy's, `thresher.jax` on JAX's, `thresher.torch` on PyTorch's tensors.
Importing this package imports none of them. `thresher.tournament` lets kernels compete, yours written in Python among them.

    from thresher.numpy import dual_gemm
    c = dual_gemm(a, b1, b2)          # silu(a @ b1.T) * (a @ b2.T); b1 is the gate

Failures are exceptions below `thresher.Error` whose text is one sentence.
"""

from typing import TYPE_CHECKING, Any

from ._errors import (
    CompileError,
    DeviceError,
    Error,
    FileError,
    InternalError,
    InvalidArgumentError,
    OutOfMemoryError,
    UnsupportedError,
)
from ._fp8 import Fp8
from ._nvfp4 import Nvfp4

if TYPE_CHECKING:
    from . import cupy as cupy
    from . import jax as jax
    from . import numpy as numpy
    from . import torch as torch
    from ._tournament import Contestant as Contestant
    from ._tournament import Entry as Entry
    from ._tournament import Tournament as Tournament
    from ._tournament import tournament as tournament

    __version__: str

__all__ = [
    "CompileError",
    "Contestant",
    "DeviceError",
    "Entry",
    "Error",
    "FileError",
    "Fp8",
    "InternalError",
    "InvalidArgumentError",
    "Nvfp4",
    "OutOfMemoryError",
    "Tournament",
    "UnsupportedError",
    "__version__",
    "best_device",
    "device_name",
    "set_deterministic",
    "strategies",
    "tournament",
]


def best_device() -> str:
    """The first usable GPU, "cuda:0", if there is one, else "cpu"."""
    from ._library import best_device

    return best_device()


def device_name(device: str = "cpu") -> str:
    """The model of a device ("cpu", "cuda", "cuda:1"). Raises DeviceError or UnsupportedError where it cannot be used."""
    from ._library import device_name

    return device_name(device)


def set_deterministic(deterministic: str | None) -> None:
    """With "batch" a row's bits depend on nothing else in its call, in every operation of this process; None: they may.

    To be set before the first operation. The environment variable THRESHER_DETERMINISTIC says the same. docs/reference/numerics.md says
    what is kept and what it costs.
    """
    from ._plans import set_deterministic

    set_deterministic(deterministic)


def strategies(operation: str, device: str = "cpu") -> list[str]:
    """The strategies that a device offers for "dual_gemm", "gemm", "grouped_dual_gemm", "grouped_gemm" or "attention"."""
    from ._library import strategies

    return strategies(operation, device)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from ._library import version

        return version()
    if name in ("Contestant", "Entry", "Tournament", "tournament"):
        from . import _tournament

        return getattr(_tournament, name)
    if name in ("cupy", "jax", "numpy", "torch"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'thresher' has no attribute {name!r}")
