"""The process in which a kernel runs that is written in Python: it says on the line what serve_calls (call_server.cpp) says.

It is a copy of one that has imported what takes long and knows of no kernel (ProcessTemplate of runtime/process_tree.hpp).

What is written into the doorbell and onto the line is a claim to a judge who measures and looks for himself. Numbers and
structures are those of line/wire.hpp, line/doorbell.hpp and thresher/own_kernel.h.
"""

import collections
import contextlib
import ctypes
import fcntl
import gc
import importlib
import importlib.util
import inspect
import json
import os
import socket
import struct
import sys
import time
import traceback

from python_server_gpu import Gpu

HELLO, LOAD_LIBRARY, SHARE, UNSHARE, BIND, ADD_CALLS, COMPLETE, UNBIND = 0, 2, 5, 6, 7, 8, 9, 10
ENQUEUE, WAIT, WAIT_FOR_STREAM, HOLD_STREAM, CAPTURE = 16, 17, 18, 19, 20
UNSUPPORTED, DEVICE = 1, 4
LINE, DOORBELL = 3, 4
MOST_MESSAGE_BYTES, MOST_SENTENCE_BYTES = 32768, 400
PLACE_BITS = 40
MESSAGE, GET_READY, CALL = 0, 1, 2
DOORBELL_BYTES, RUNG, DONE, STATUS, WHAT, BINDING, SET = 192, 0, 64, 68, 128, 132, 136

FP32, FP16, BF16, FP8_E4M3, NVFP4, INT32, UINT8, FP8_TENSOR, FP8_ROW, FP8_BLOCK = range(10)
SCALE_LAYOUTS = ("row_major", "blocked", "column_major")
SCALARS = {"integer": "=i", "flag": "=i", "choice": "=i", "number": "=f"}

# The time of polling the bell before sleep: a judge that rings meanwhile need not wait for a wake-up.
LOOKING_S = 30e-6

PROT_READ_WRITE, MAP_SHARED_POPULATED = 3, 0x8001
PR_SET_PDEATHSIG, SIGKILL, ENOSYS = 1, 9, 38
LANDLOCK_RESTRICT_SELF, SECCOMP, SECCOMP_SET_MODE_FILTER = 446, 317, 1
SECCOMP_FILTER_FLAGS = 1 | 4 | 16  # TSYNC, SPEC_ALLOW and TSYNC_ESRCH: for all threads, or it fails
ABOVE_ALL_PLACES = 100
MOST_ADOPTING_S = 10
LIBC = ctypes.CDLL(None, use_errno=True)
SYS_FUTEX, FUTEX_WAIT, FUTEX_WAKE, EVERYBODY = 202, 0, 1, 2**31 - 1


# thresher_own_tensor: values, scales, global scale, shape, strides, bytes of scales, rank, format, scale layout, and rows and
# columns under one scale.
TENSOR = struct.Struct("=QQQ4q4qq5i")

Nvfp4 = collections.namedtuple("Nvfp4", ("values", "scales", "global_scale", "scale_layout"))
Fp8 = collections.namedtuple("Fp8", ("values", "scales", "global_scale", "scale_layout"))


class Refused(Exception):
    """Told to the judge as the sentence that it is."""


def memory_at(address, count):
    return (ctypes.c_uint8 * count).from_address(address)


def name_of(type):
    """Of NumPy's and torch's types."""
    return str(getattr(type, "name", type)).removeprefix("torch.")


def contiguous(shape):
    strides = [1]
    for extent in shape[:0:-1]:
        strides.insert(0, strides[0] * extent)
    return tuple(strides)


def elements_from_first_to_last(shape, strides):
    return sum((extent - 1) * stride for extent, stride in zip(shape, strides)) + 1


def is_array(result):
    return hasattr(result, "shape") and hasattr(result, "dtype")


def expect_fits(result, out):
    """Of what a kernel gave back, whatever it is: what copying would leave out is refused, rounding is not."""
    if not is_array(result):
        what = "None" if result is None else f"a value of the type {type(result).__name__}"
        raise Refused(f"it gave back {what}, expected an array of the shape {list(out.shape)}")
    if result.shape != out.shape:
        raise Refused(f"it gave back the shape {list(result.shape)}, expected {list(out.shape)}")
    if name_of(out.dtype) != name_of(result.dtype) and not name_of(result.dtype).startswith(("float", "bfloat")):
        raise Refused(f"it gave back {name_of(result.dtype)}, expected {name_of(out.dtype)} or another floating-point type")


def expect_nothing(result, out):
    """Of what a kernel gave back that was to write `out`."""
    if result is not None and result is not out:
        what = "another array" if is_array(result) else f"a value of the type {type(result).__name__}"
        raise Refused(f"it takes out and gave back {what}, expected nothing or out")


class NumpyArrays:
    def __init__(self):
        try:
            import numpy
        except ImportError as error:
            raise Refused(f"NumPy cannot be imported by {sys.executable}: {error}") from error
        self._numpy = numpy
        self._types = {FP32: numpy.dtype(numpy.float32), FP16: numpy.dtype(numpy.float16), INT32: numpy.dtype(numpy.int32),
                       UINT8: numpy.dtype(numpy.uint8)}

    def _type(self, kind):
        if kind == BF16 and BF16 not in self._types:
            try:
                import ml_dtypes
            except ImportError as error:
                raise Refused(f"bfloat16 arrays of NumPy are ml_dtypes', which cannot be imported by {sys.executable}: {error}") from error
            self._types[BF16] = self._numpy.dtype(ml_dtypes.bfloat16)
        return self._types[kind]

    def array(self, address, kind, shape, strides=None):
        type = self._type(kind)
        if 0 in shape:
            return self._numpy.empty(shape, type)
        strides = strides or contiguous(shape)
        memory = memory_at(address, elements_from_first_to_last(shape, strides) * type.itemsize)
        return self._numpy.ndarray(shape, type, memory, strides=tuple(stride * type.itemsize for stride in strides))

    @staticmethod
    def copy(out, result):
        expect_fits(result, out)
        out[...] = result


class TorchTensors:
    def __init__(self):
        try:
            import torch
        except ImportError as error:
            raise Refused(f"torch cannot be imported by {sys.executable}: {error}") from error
        self._torch = torch
        torch.set_grad_enabled(False)
        self._types = {FP32: torch.float32, FP16: torch.float16, BF16: torch.bfloat16, INT32: torch.int32, UINT8: torch.uint8}

    def array(self, address, kind, shape, strides=None):
        type = self._types[kind]
        if 0 in shape:
            return self._empty(shape, type)
        strides = strides or contiguous(shape)
        return self._flat(address, type, elements_from_first_to_last(shape, strides)).as_strided(shape, strides)

    def _empty(self, shape, type):
        return self._torch.empty(shape, dtype=type)

    def _flat(self, address, type, count):
        return self._torch.frombuffer(memory_at(address, count * type.itemsize), dtype=type, count=count)

    @staticmethod
    def copy(out, result):
        expect_fits(result, out)
        out.copy_(result)


class CudaTensors(TorchTensors):
    """On a GPU, where bytes that are none have no address."""

    def __init__(self, gpu):
        super().__init__()
        self._gpu = gpu

    def _empty(self, shape, type):
        return self._torch.empty(shape, dtype=type, device="cuda")

    def _flat(self, address, type, count):
        return self._gpu.bytes_at(address, count * type.itemsize).view(type)


FRAMEWORKS = {"numpy": NumpyArrays, "torch": TorchTensors}


def sentence_of(error, file):
    """In one line: what was raised, and where in the kernel's file."""
    if isinstance(error, Refused):
        return str(error)
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} (line {error.lineno})"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{': ' if text else ''}{text}" + (f" (line {lines[-1]})" if lines else "")


class Kernel:
    """A function of a file. Its parameters are named as its operation's arguments, or the tensors that every problem has are given
    by place. It writes `out` if it takes it, else what it gives back is written."""

    def __init__(self, file, entry, arrays, arguments):
        self.file, self._entry = file, entry
        self._arrays = arrays
        self._arguments = [argument for argument in arguments if argument["kind"] != "extent"]
        spec = importlib.util.spec_from_file_location("contestant", file)
        module = sys.modules["contestant"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self._function = getattr(module, entry, None)
        if not callable(self._function):
            raise Refused(f"it has no function {entry}")
        self._read_signature(inspect.signature(self._function).parameters.values())

    def _read_signature(self, parameters):
        always = [a["name"] for a in self._arguments if a["kind"] == "input" and not a["optional"]]
        self._outputs = [a["name"] for a in self._arguments if a["kind"] == "output"]
        needed_outputs = [a["name"] for a in self._arguments if a["kind"] == "output" and not a["optional"]]
        named = [a["name"] for a in self._arguments if a["name"] not in always + needed_outputs]
        needed = [p for p in parameters if p.default is p.empty and p.name not in named and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        by_place = [p.name for p in needed if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        expected = always, [*always, *(["out"] if len(needed_outputs) == 1 else needed_outputs)]
        if len(by_place) not in map(len, expected):
            raise Refused(f"{self._entry} takes {len(by_place)} arguments by place, expected {', '.join(expected[0])}, or {', '.join(expected[1])}")
        unknown = [p.name for p in needed if p.kind == p.KEYWORD_ONLY]
        if unknown:
            raise Refused(f"{self._entry} needs an argument {unknown[0]}, expected none beside {', '.join(named)}")
        self._writes_out = len(by_place) == len(expected[1])
        self._by_place = always + needed_outputs if self._writes_out else always
        if set(by_place) <= {*always, *expected[1], *needed_outputs}:  # in any order
            self._by_place = [needed_outputs[0] if name == "out" else name for name in by_place]
        self._named = [p.name for p in parameters if p.name in named]

    def bound(self, call, address_of):
        """What makes the call: everything that is known beforehand is made here."""
        known = {}
        for argument in self._arguments:
            name, value = argument["name"], self._value(argument, call, address_of)
            known[name] = value
            if name not in self._named and name not in self._by_place:
                self._expect_left_to_it(argument, value)
        given = [known[name] for name in self._by_place]
        named = {name: known[name] for name in self._named}
        outputs = [known[name] for name in self._outputs if known[name] is not None]
        function, copy = self._function, self._arrays.copy
        if self._writes_out:
            return lambda: expect_nothing(function(*given, **named), outputs[0])
        if len(outputs) == 1:
            return lambda: copy(outputs[0], function(*given, **named))
        return lambda: self._copy_all(outputs, function(*given, **named))

    def _copy_all(self, outputs, results):
        if not isinstance(results, (tuple, list)) or len(results) != len(outputs):
            raise Refused(f"it gave back {type(results).__name__}, expected a tuple of {len(outputs)} arrays")
        for out, result in zip(outputs, results):
            self._arrays.copy(out, result)

    def _expect_left_to_it(self, argument, value):
        """Of an argument that the function does not take."""
        kind, name = argument["kind"], argument["name"]
        if kind == "output" and not self._writes_out or kind == "workspace":
            return
        if kind in ("input", "output"):
            if value is not None:
                raise Refused(f"{self._entry} takes no argument {name}, and this problem has one")
        elif argument["usual"] is not None and value != (argument["choices"] or [argument["usual"]])[0]:
            raise Refused(f"{self._entry} takes no argument {name}, and this problem's is {value}")

    def _value(self, argument, call, address_of):
        kind, offset = argument["kind"], argument["offset"]
        if kind in ("input", "output"):
            return self._tensor(TENSOR.unpack_from(call, offset), address_of)
        if kind == "workspace":
            place, count = struct.unpack_from("=Qq", call, offset)
            return self._arrays.array(address_of(place), UINT8, (count,))
        value, = struct.unpack_from(SCALARS[kind], call, offset)
        return argument["choices"][value] if kind == "choice" else value != 0 if kind == "flag" else value

    def _tensor(self, members, address_of):
        values, scales, global_scale, *rest = members
        if not values:
            return None
        scale_bytes, rank, format, layout, scale_rows, scale_columns = rest[8:]
        shape, strides = tuple(rest[:rank]), tuple(rest[4:4 + rank])
        array = self._arrays.array
        if format in (FP32, FP16, BF16, INT32, UINT8):
            return array(address_of(values), format, shape, strides)
        if format == FP8_E4M3:
            return array(address_of(values), UINT8, shape, strides)
        of_matrices = array(address_of(global_scale), FP32, (shape[0] if rank == 3 else 1,)) if global_scale else None
        if format == NVFP4:
            rows = (*shape[:-1], shape[-1] // 2)
            return Nvfp4(array(address_of(values), UINT8, rows, (*(stride // 2 for stride in strides[:-1]), 1)),
                         array(address_of(scales), UINT8, self._scale_shape(shape, scale_bytes, layout, scale_rows, scale_columns)),
                         of_matrices, SCALE_LAYOUTS[layout])
        scale_shape = self._scale_shape(shape, scale_bytes // 4, layout, scale_rows, scale_columns)
        return Fp8(array(address_of(values), UINT8, shape, strides), array(address_of(scales), FP32, scale_shape) if scales else None,
                   of_matrices, SCALE_LAYOUTS[layout])

    @staticmethod
    def _scale_shape(shape, count, layout, rows, columns):
        """Of row-major scales as the blocks lie; other layouts are flat."""
        if SCALE_LAYOUTS[layout] != "row_major":
            return (count,)
        return (*shape[:-2], -(-shape[-2] // rows), -(-shape[-1] // columns))


class Server:
    def __init__(self):
        self._libc = LIBC
        self._libc.mmap.restype = ctypes.c_void_p
        self._libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
        self._libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        self._line = socket.socket(fileno=LINE)
        self._line.setblocking(True)
        page = self._map(DOORBELL_BYTES, DOORBELL)
        self._rung, self._done, self._status, self._what, self._binding, self._set = (
            ctypes.c_uint32.from_address(page + offset) for offset in (RUNG, DONE, STATUS, WHAT, BINDING, SET))
        self._bell = (ctypes.c_long(SYS_FUTEX), ctypes.c_void_p(page + RUNG), ctypes.c_long(FUTEX_WAIT))
        self._sign = (ctypes.c_long(SYS_FUTEX), ctypes.c_void_p(page + DONE), ctypes.c_long(FUTEX_WAKE), ctypes.c_long(EVERYBODY), None, None,
                      ctypes.c_long(0))
        self._pieces = {}
        self._calls = {}
        self._call_bytes = {}  # of bindings
        self._kernel = None
        self._gpu = None

    def serve(self):
        ring = 0
        while True:
            ring = self._next_ring(ring)
            what = self._what.value
            if what == MESSAGE:
                self._hear()
                continue
            if what == CALL:
                self._status.value = self._make_call()
            self._done.value = ring
            self._libc.syscall(*self._sign)

    def _next_ring(self, last):
        rung, now = self._rung, time.monotonic
        looks_until = now() + LOOKING_S
        while rung.value == last:
            if now() >= looks_until:
                self._libc.syscall(*self._bell, ctypes.c_long(last), None, None, ctypes.c_long(0))
        return rung.value

    def _make_call(self):
        """0, or 1 and a message on the line that says why it failed."""
        try:
            calls, set = self._calls[self._binding.value], self._set.value
            if self._gpu and set == len(calls):
                self._gpu.replay()
            else:
                calls[set]()
            return 0
        except BaseException as error:
            self._refuse(0, DEVICE, self._raised(error))
            return 1

    def _raised(self, error):
        return ("" if isinstance(error, Refused) else "it raised ") + sentence_of(error, self._kernel.file)

    def _hear(self):
        message, descriptors, _, _ = socket.recv_fds(self._line, MOST_MESSAGE_BYTES, 8)
        if not message:
            os._exit(0)  # the judge is gone
        number, ask = struct.unpack_from("=II", message)
        try:
            if ask >= ENQUEUE and self._gpu:
                self._take_of_gpu(ask, message[8:])
            else:
                self._take(ask, message[8:], descriptors)
            self._line.send(struct.pack("=II", number, 0))
        except BaseException as error:
            if ask >= ENQUEUE and self._kernel:
                self._refuse(number, DEVICE, self._raised(error))
            else:
                self._refuse(number, UNSUPPORTED, sentence_of(error, self._kernel.file if self._kernel else self._loading))

    _loading = ""

    def _take(self, ask, rest, descriptors):
        if ask == LOAD_LIBRARY:
            words = []
            while rest:
                length, = struct.unpack_from("=I", rest)
                words.append(rest[4:4 + length].decode())
                rest = rest[4 + length:]
            file, entry, framework, arguments, *where = words
            self._loading = file
            self._kernel = Kernel(file, entry, self._arrays_on_gpu(*where) if where else FRAMEWORKS[framework](), json.loads(arguments))
        elif ask == SHARE:
            number, size = struct.unpack("=IQ", rest)
            self._pieces[number] = (self._map_on_gpu(size, descriptors[0]) if self._gpu else self._map(size, descriptors[0]), size)
        elif ask == UNSHARE:
            unmap = self._gpu.unmap if self._gpu else self._libc.munmap
            unmap(*self._pieces.pop(struct.unpack("=I", rest)[0]))
        elif ask == BIND:
            binding, call_bytes = struct.unpack_from("=II", rest)
            self._call_bytes[binding], self._calls[binding] = call_bytes, []
        elif ask == ADD_CALLS:
            binding, = struct.unpack_from("=I", rest)
            for offset in range(4, len(rest), self._call_bytes[binding]):
                self._calls[binding].append(self._kernel.bound(memoryview(rest)[offset:], self._address_of))
        elif ask == UNBIND:
            binding, = struct.unpack("=I", rest)
            del self._calls[binding]
            if self._gpu:
                self._gpu.forget(binding)
        elif ask not in (HELLO, COMPLETE):
            raise Refused("a kernel's process was asked what it does not know")

    def _take_of_gpu(self, ask, rest):
        if ask == ENQUEUE:
            binding, set = struct.unpack("=II", rest)
            self._gpu.enqueue(self._calls[binding][set])
        elif ask == WAIT:
            self._gpu.wait()
        elif ask == WAIT_FOR_STREAM:
            self._gpu.wait_for_stream()
        elif ask == HOLD_STREAM:
            self._gpu.hold_stream(*struct.unpack("=d", rest))
        elif ask == CAPTURE:
            binding, *batch = struct.unpack("=IQQQ", rest)
            count, first_set, num_sets = batch
            calls = self._calls[binding]
            self._gpu.capture(binding, tuple(batch), [calls[(first_set + call) % num_sets] for call in range(count)])
        else:
            raise Refused("a kernel's process was asked what it does not know")

    def _arrays_on_gpu(self, ordinal, folder, programs):
        try:
            self._gpu = Gpu(int(ordinal), folder, programs)
        except (ImportError, OSError, RuntimeError) as error:
            raise Refused(f"its process cannot open GPU {ordinal}: {sentence_of(error, '')}") from error
        return CudaTensors(self._gpu)

    def _map_on_gpu(self, size, descriptor):
        try:
            return self._gpu.map(size, descriptor)
        finally:
            os.close(descriptor)

    def _map(self, size, descriptor):
        address = self._libc.mmap(None, size, PROT_READ_WRITE, MAP_SHARED_POPULATED, descriptor, 0)
        os.close(descriptor)
        if address is None or address == ctypes.c_void_p(-1).value:
            raise Refused("the judge's memory cannot be mapped: free some memory")
        return address

    def _address_of(self, place):
        """Of memory that the judge shares; 0 stays 0."""
        if not place:
            return 0
        base, _ = self._pieces[(place >> PLACE_BITS) - 1]
        return base + (place & ((1 << PLACE_BITS) - 1))

    def _refuse(self, number, code, sentence):
        text = sentence.encode("ascii", "replace")[:MOST_SENTENCE_BYTES]
        self._line.send(struct.pack("=IIII", number, 1, code, len(text)) + text)


class Filter(ctypes.Structure):
    """sock_fprog."""

    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def failed(number, *arguments):
    """0, or the errno of a system call."""
    return 0 if LIBC.syscall(ctypes.c_long(number), *arguments) == 0 else ctypes.get_errno()


def import_what_takes_long(modules):
    """A module that cannot be had is told to whoever needs it. Nothing here starts a GPU: its context would not outlive a fork."""
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # so that collections in copies leave these pages shared


def fork_when_asked():
    """Comes back in every copy, with the descriptors that were sent and their places; the template itself keeps nothing of them."""
    line = socket.socket(fileno=LINE)
    supervisor = os.getppid()
    while True:
        message, descriptors, _, _ = socket.recv_fds(line, MOST_MESSAGE_BYTES, 8)
        if not message:
            os._exit(0)  # the judge is gone
        try:
            between = os.fork()
        except OSError:  # too many processes: the peer sees the end of the socket
            between = None
        if between == 0:
            if os.fork() != 0:
                os._exit(0)  # so that the supervisor adopts the copy
            line.close()
            until = time.monotonic() + MOST_ADOPTING_S
            while os.getppid() != supervisor and time.monotonic() < until:
                time.sleep(1e-4)
            count, = struct.unpack_from("=i", message)
            return supervisor, struct.unpack_from(f"={count}i", message, 4), descriptors
        for descriptor in descriptors:
            os.close(descriptor)
        if between is not None:
            os.waitpid(between, 0)


def close_all_but(descriptors):
    """Of what a framework left open all copies would have one description, which could tell the next one something."""
    first = 3
    for descriptor in (*sorted(descriptors), os.sysconf("SC_OPEN_MAX")):
        os.closerange(first, descriptor)
        first = descriptor + 1


def become_a_copy():
    """A process of its own, confined for good."""
    supervisor, places, descriptors = fork_when_asked()
    LIBC.prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != supervisor:
        os._exit(1)
    os.setsid()
    close_all_but(descriptors)
    null = os.open("/dev/null", os.O_RDWR)  # other processes share an inherited descriptor and can set its flags
    for descriptor in range(3):
        os.dup2(null, descriptor)
    os.close(null)
    away = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, ABOVE_ALL_PLACES) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    for descriptor, place in zip(away[1:], places):
        os.dup2(descriptor, place)
        os.close(descriptor)
    with socket.socket(fileno=away[0]) as judge:
        judge.send(struct.pack("=i", os.getpid()))
        told, rules, _, _ = socket.recv_fds(judge, MOST_MESSAGE_BYTES, 1)
        if not told:
            os._exit(1)
        files = failed(LANDLOCK_RESTRICT_SELF, ctypes.c_int(rules[0]), ctypes.c_uint(0)) if rules else ENOSYS
        for descriptor in rules:
            os.close(descriptor)
        length, = struct.unpack_from("=I", told)
        program = Filter(length, told[4:])
        calls = failed(SECCOMP, ctypes.c_uint(SECCOMP_SET_MODE_FILTER), ctypes.c_uint(SECCOMP_FILTER_FLAGS),
                       ctypes.byref(program)) if length else ENOSYS
        judge.send(struct.pack("=iii", 0, files, calls))


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file
    os.environ["PATH"] = ""  # no program can be started; code that searches for one, like ctypes for libraries, does without
    import_what_takes_long(sys.argv[1:])
    become_a_copy()
    Server().serve()
