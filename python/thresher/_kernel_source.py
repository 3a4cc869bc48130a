"""A Python function as a file that stands for itself, since its process holds nothing of the one that it was written in."""

import cmath
import inspect
import symtable
import textwrap
import types
from collections.abc import Iterator
from typing import Any

from ._library import refuse

def source_of(function: Any) -> str:
    """The text of a module that defines `function` with what it names: imports, functions and classes written where it was,
    and plain values. Raises InvalidArgumentError for what cannot be written down."""
    if not inspect.isfunction(function):
        refuse(f"a kernel is of the type {type(function).__name__}, expected a function")
    if function.__name__ == "<lambda>":
        refuse("a kernel is a lambda, expected a function made with def")
    writer = _Writer(function)
    writer.add(function.__name__, function)
    return "\n".join(writer.parts)


class _Writer:
    def __init__(self, function: types.FunctionType):
        self.parts: list[str] = []
        self._home = function.__globals__
        self._written: dict[str, Any] = {}

    def add(self, name: str, value: Any) -> None:
        """Defines `name` once."""
        if name in self._written:
            if self._written[name] is not value:
                refuse(f"a kernel uses two things of the name {name}, expected one: rename one of them")
            return
        self._written[name] = value
        self.parts.append(self._text(name, value))

    def _text(self, name: str, value: Any) -> str:
        if isinstance(value, types.ModuleType):
            return f"import {value.__name__} as {name}\n"
        inner = _function_of(value)
        if inspect.isfunction(inner) or inspect.isclass(inner):
            return self._copied(name, inner) if self._is_from_here(inner) else self._imported(name, value)
        module = getattr(value, "__module__", None)
        if callable(value) and isinstance(module, str) and hasattr(value, "__name__"):
            return self._imported(name, value)
        return self._plain(name, value)

    def _is_from_here(self, value: Any) -> bool:
        if inspect.isfunction(value):
            return value.__globals__ is self._home
        return value.__module__ == self._home.get("__name__")

    def _copied(self, name: str, value: Any) -> str:
        try:
            text = textwrap.dedent(inspect.getsource(value))
        except (OSError, TypeError) as error:
            refuse(f"the source of {value.__name__} cannot be had ({error}), expected a function from a file or a notebook")
        nonlocals = inspect.getclosurevars(value).nonlocals if inspect.isfunction(value) else {}
        for used in _names(text):
            if used in nonlocals:
                self.add(used, nonlocals[used])
            elif used in self._home:
                self.add(used, self._home[used])
        return text if name == value.__name__ else f"{text}\n{name} = {value.__name__}\n"

    @staticmethod
    def _imported(name: str, value: Any) -> str:
        if "." in value.__qualname__:
            return f"import {value.__module__}\n{name} = {value.__module__}.{value.__qualname__}\n"
        return f"from {value.__module__} import {value.__qualname__} as {name}\n"

    @staticmethod
    def _plain(name: str, value: Any) -> str:
        if not _is_plain(value):
            refuse(f"a kernel uses {name}, which is of the type {type(value).__name__} and cannot be written into a file: make it "
                   f"in the kernel's own functions, or give the kernel as a .py file")
        return f"{name} = {value!r}\n"


def _function_of(value: Any) -> Any:
    """What was written, of a function that is decorated: by functools.wraps, or as Triton does."""
    inner = inspect.unwrap(value) if callable(value) else value
    while type(inner).__module__.startswith("triton.") and hasattr(inner, "fn"):  # a JITFunction, or an Autotuner of one
        inner = inner.fn
    return inner


def _is_plain(value: Any) -> bool:
    """Whether what it is shown as makes the same again."""
    if isinstance(value, dict):
        return type(value) is dict and all(map(_is_plain, [*value, *value.values()]))
    if type(value) in (tuple, list, set, frozenset):
        return all(map(_is_plain, value))
    return type(value) in (types.NoneType, bool, int, str, bytes) or type(value) in (float, complex) and cmath.isfinite(value)


def _names(text: str) -> list[str]:
    """Those that the text does not define itself."""
    def within(table: symtable.SymbolTable) -> Iterator[str]:
        is_top = table.get_type() == "module"
        yield from (one.get_name() for one in table.get_symbols() if (one.is_referenced() if is_top else one.is_global()))
        for inner in table.get_children():
            yield from within(inner)

    return list(dict.fromkeys(within(symtable.symtable(text, "a kernel", "exec"))))
