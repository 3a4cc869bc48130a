"""Plans, made once for a kind of call and kept. A plan refers to its weights by their addresses and copies nothing of them."""

import collections
import ctypes as c
import mmap
import threading
from collections.abc import Callable

from ._library import check, library


class Plan:
    """A handle of the C interface."""

    __slots__ = ("handle", "workspace_bytes", "_kind")

    def __init__(self, kind: str, handle: c.c_void_p):
        self.handle = handle
        self._kind = kind
        self.workspace_bytes = getattr(library(), f"thresher_{kind}_workspace_bytes")(handle)

    @property
    def strategy(self) -> str:
        return getattr(library(), f"thresher_{self._kind}_strategy")(self.handle).decode()

    def __del__(self):
        getattr(library(), f"thresher_{self._kind}_destroy")(self.handle)


_most = 1024
_plans: collections.OrderedDict[tuple, Plan] = collections.OrderedDict()
_planning = threading.Lock()


def planned(key: tuple, place: "Place", make: Callable[[], Plan]) -> Plan:
    """The plan that was made for an equal key, or a new one. Those that were not used for longest are dropped."""
    plan = _plans.get(key)
    if plan is not None:
        try:
            _plans.move_to_end(key)
        except KeyError:  # dropped by another thread meanwhile
            pass
        return plan
    with _planning:
        plan = _plans.get(key)
        if plan is None:
            place.before_planning()
            plan = make()
            _plans[key] = plan
            while len(_plans) > _most:
                _plans.popitem(last=False)
    return plan


def made(kind: str, function, *arguments) -> Plan:
    handle = c.c_void_p()
    check(function(*arguments, c.byref(handle)))
    return Plan(kind, handle)


def row_bucket(rows: int) -> int:
    """The rows that a plan for `rows` of them is made for: at most an eighth more, or the next multiple of 16."""
    step = max(16, 1 << max(0, rows.bit_length() - 4))
    return max(step, -(-rows // step) * step)


class Place:
    """Where a call runs and has its workspace: the CPU; thresher.torch has those of GPUs."""

    stream = None

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
