"""Single files of serving engines that hold Triton kernels, loaded without the engine.

Whatever else of the engine such a file imports is a stand-in: its functions answer with what ANSWERS says of their names, and with None.
"""
import importlib
import importlib.abc
import importlib.machinery
import logging
import os
import sys
import types

import triton
import triton.language as tl

ANSWERS = {"is_cuda": True, "is_sm90_supported": True, "is_hip": False, "is_cpu": False, "cpu_has_amx_support": False, "get_bool_env_var": False,
           "is_batch_invariant_mode_enabled": False, "get_moe_padding_size": 0}
REAL = {"triton": triton, "tl": tl, "init_logger": logging.getLogger}


class Anything:
    """A function or a class of an engine that nobody needs."""

    def __init__(self, name):
        self._name = name

    def __call__(self, *_, **__):
        return ANSWERS.get(self._name)

    def __getattr__(self, name):
        return Anything(name)

    def __or__(self, other):  # in annotations
        return self


class StandIn(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return REAL.get(name) or Anything(name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Files that are there below `root`, and stand-ins of the package for all others."""

    def __init__(self, root, package):
        self.root, self.package = root, package

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] != self.package:
            return None
        file = os.path.join(self.root, *name.split(".")) + ".py"
        if os.path.exists(file):
            return importlib.util.spec_from_file_location(name, file)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        pass


def engine_file(root, module):
    """The module, say "vllm.model_executor.layers.fused_moe.fused_moe", whose file lies below the folder `root`."""
    package = module.split(".")[0]
    if not os.path.exists(os.path.join(root, *module.split(".")) + ".py"):
        raise FileNotFoundError(f"no file of {module} lies below {root}: name the folder with --engine-files")
    finder = Finder(root, package)
    sys.meta_path.insert(0, finder)
    try:
        return importlib.import_module(module)
    finally:
        sys.meta_path.remove(finder)
