"""Plans, made once for a kind of call and kept. A plan refers to its weights by their addresses and copies nothing of them."""

import collections
import ctypes as c
import mmap
import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ._library import RUNS, WITHOUT_WORKSPACE, check, library, refuse

if TYPE_CHECKING:
    from ._operands import Operand


class Plan:
    """A handle of the C interface."""

    __slots__ = ("handle", "workspace_bytes", "run", "_destroy", "__weakref__")

    def __init__(self, kind: str, handle: c.c_void_p):
        self.handle = handle
        self._destroy = getattr(library(), f"thresher_{kind}_destroy")  # here, since at the interpreter's end names are gone
        self.run = getattr(library(), RUNS[kind])
        self.workspace_bytes = 0 if kind in WITHOUT_WORKSPACE else getattr(library(), f"thresher_{kind}_workspace_bytes")(handle)

    def __del__(self):
        self._destroy(self.handle)


class Kept:
    """Values by keys; those that were not used for longest are dropped beyond `most`. For several threads."""

    def __init__(self, most: int):
        self.most = most
        self._values: collections.OrderedDict = collections.OrderedDict()
        self._making = threading.RLock()
        os.register_at_fork(after_in_child=self._unlock)  # another thread may have held it

    def _unlock(self) -> None:
        self._making = threading.RLock()

    def is_empty(self) -> bool:
        return not self._values

    def get(self, key):
        """The value, or None."""
        value = self._values.get(key)
        if value is not None:
            try:
                self._values.move_to_end(key)
            except KeyError:  # dropped by another thread meanwhile
                pass
        return value

    def make(self, key, make: Callable):
        """The value of the key, made now if it is not there."""
        with self._making:
            value = self.get(key)
            if value is None:
                value = self._values[key] = make()
                self._add(value)
                while self._is_full():
                    self._drop(self._values.popitem(last=False)[1])
            return value

    def _is_full(self) -> bool:
        return len(self._values) > self.most

    def _add(self, value) -> None:
        """Of a value that is kept now."""

    def _drop(self, value) -> None:
        """Of one that is kept no longer."""


class Calls(Kept):
    """Calls, each with its plan, of which calls share some: no more than `most_plans` of them."""

    def __init__(self, most: int, most_plans: int):
        super().__init__(most)
        self.most_plans = most_plans
        self._uses: collections.Counter = collections.Counter()  # by plan

    def _is_full(self) -> bool:
        return super()._is_full() or len(self._uses) > self.most_plans

    def _add(self, value) -> None:
        self._uses[value.plan] += 1

    def _drop(self, value) -> None:
        self._uses[value.plan] -= 1
        if self._uses[value.plan] == 0:
            del self._uses[value.plan]


class Plans:
    """Plans by what they are made for, as long as somebody holds them: the calls that were made with them."""

    def __init__(self) -> None:
        self._values: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
        self._making = threading.RLock()
        os.register_at_fork(after_in_child=self._unlock)

    def _unlock(self) -> None:
        self._making = threading.RLock()

    def make(self, key, make: Callable):
        """The plan of the key, made now if it is not there."""
        plan = self._values.get(key)
        if plan is None:
            with self._making:
                plan = self._values.get(key)
                if plan is None:
                    plan = self._values[key] = make()
        return plan


# A call is known by all that its checks look at: one like it is not checked again. A plan has a few kilobytes; a model of a hundred
# layers in a serving engine has some ten thousand, and must not make them anew in every step.
plans = Plans()
calls = Calls(65536, 16384)
_deterministic = os.environ.get("THRESHER_DETERMINISTIC") or None  # the library refuses a value that there is not


def set_deterministic(deterministic: str | None) -> None:
    """For all plans of this process."""
    global _deterministic
    if deterministic not in (None, "batch"):
        refuse(f"deterministic is {' '.join(repr(deterministic).split())}, expected 'batch' or None")
    if deterministic != _deterministic and not calls.is_empty():
        refuse(f"deterministic is {deterministic!r}, but plans were made with {_deterministic!r}: set it before the first operation")
    _deterministic = deterministic


def knobs() -> bytes | None:
    """What every plan is asked for beside its strategy."""
    return None if _deterministic is None else f"deterministic={_deterministic}".encode()


def planned(key: tuple, place: "Place", make: Callable[[], Plan]) -> Plan:
    def make_there():
        place.before_planning()
        return make()

    return plans.make(key, make_there)


def made(kind: str, function, *arguments) -> Plan:
    handle = c.c_void_p()
    check(function(*arguments, c.byref(handle)))
    return Plan(kind, handle)


class RowsCall(NamedTuple):
    """A call that makes rows of `a` into rows of the output: what it needs beside the operands."""

    plan: Plan
    a_stride: int
    out_stride: int

    def run(self, a: "Operand", out: "Operand", place: "Place") -> None:
        plan = self.plan
        check(plan.run(plan.handle, place.stream, a.shape[0], a.pointer, self.a_stride, a.scales, a.scale_layout, a.global_scale,
                       out.pointer, self.out_stride, place.workspace(plan.workspace_bytes)))


def row_bucket(rows: int) -> int:
    """The rows that a plan for `rows` of them is made for: at most an eighth more, or the next multiple of 16."""
    step = max(16, 1 << max(0, rows.bit_length() - 4))
    return max(step, -(-rows // step) * step)


class Place:
    """Where a call runs and has its workspace: the CPU; thresher.torch has those of GPUs."""

    stream: int | None = None

    def workspace(self, size: int) -> int:
        """The address of so many bytes that this thread may use until it asks again; it starts at a multiple of 256."""
        if size == 0:
            return 0
        if getattr(_of_thread, "size", 0) < size:
            memory = mmap.mmap(-1, size)
            _of_thread.memory = memory
            _of_thread.address = c.addressof(c.c_char.from_buffer(memory))
            _of_thread.size = size
        return _of_thread.address

    def before_planning(self) -> None:
        """Raises where no plan can be made now."""


_of_thread = threading.local()
HOST = Place()
