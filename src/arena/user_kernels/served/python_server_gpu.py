"""What a process of a kernel in Python does on a GPU: memory that the judge shares with it, a stream, and graphs of batches."""

import collections
import contextlib
import ctypes
import os
import tempfile

SYSTEM_PROGRAMS = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
# The number of cached graphs: a few batches repeat.
MOST_GRAPHS = 24
# No GPU's clock is faster, so that a pause is never too short.
CYCLES_PER_MICROSECOND = 3000

FILE_DESCRIPTOR, DEVICE, READ_AND_WRITE = 1, 1, 3


class OnGpu:
    """Bytes of a GPU, as torch takes them."""

    def __init__(self, address, count):
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "|u1", "data": (address, False), "strides": None, "version": 3}


class Gpu:
    """Writes into `folder` alone and finds a C compiler in `programs`. Raises RuntimeError where it cannot be opened."""

    def __init__(self, ordinal, folder, programs):
        # Triton runs a compiler and an assembler; their folder is the only writable one.
        os.environ.update(PATH=":".join(filter(None, (programs, SYSTEM_PROGRAMS))), TMPDIR=folder, TRITON_CACHE_DIR=os.path.join(folder, "triton"),
                          TORCHINDUCTOR_CACHE_DIR=os.path.join(folder, "inductor"), CUDA_CACHE_DISABLE="1")
        tempfile.tempdir = folder
        import torch

        self._torch = torch
        torch.cuda.set_device(ordinal)
        self._ordinal = ordinal
        self._stream = torch.cuda.Stream()
        self._pool = None  # of memory, freed with the last graph that allocates from it
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._graphs = collections.OrderedDict()  # by binding and batch, the latest last
        self._ready = None

    def map(self, size, descriptor):
        """The address of `size` bytes that the judge shares."""
        handle, address = ctypes.c_ulonglong(), ctypes.c_ulonglong()
        size, everywhere = ctypes.c_size_t(size), ctypes.c_ulonglong(0)
        access = (ctypes.c_int * 3)(DEVICE, self._ordinal, READ_AND_WRITE)
        self._check("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(descriptor), FILE_DESCRIPTOR)
        self._check("cuMemAddressReserve", ctypes.byref(address), size, ctypes.c_size_t(0), everywhere, everywhere)
        self._check("cuMemMap", address, size, ctypes.c_size_t(0), handle, everywhere)
        self._check("cuMemSetAccess", address, size, access, ctypes.c_size_t(1))
        self._check("cuMemRelease", handle)
        return address.value

    def unmap(self, address, size):
        self.wait()
        address, size = ctypes.c_ulonglong(address), ctypes.c_size_t(size)
        self._check("cuMemUnmap", address, size)
        self._check("cuMemAddressFree", address, size)

    def bytes_at(self, address, count):
        return self._torch.as_tensor(OnGpu(address, count), device=f"cuda:{self._ordinal}")

    def enqueue(self, call):
        self._torch.cuda.set_stream(self._stream)
        call()

    def wait(self):
        self._torch.cuda.synchronize()

    def wait_for_stream(self):
        self._stream.synchronize()

    def hold_stream(self, microseconds):
        self._torch.cuda.set_stream(self._stream)
        self._torch.cuda._sleep(int(microseconds * CYCLES_PER_MICROSECOND))

    def capture(self, binding, batch, calls):
        """Has a graph of the calls ready for `replay`: the first of a binding are made once before, since much is done when it first is."""
        if not any(known == binding for known, _ in self._graphs):
            self.enqueue(calls[0])
            self.wait()
        graph = self._graphs.pop((binding, batch), None)
        if graph is None:
            graph = self._captured(calls)
        self._graphs[binding, batch] = graph
        while len(self._graphs) > MOST_GRAPHS:
            self._graphs.popitem(last=False)
        self._ready = graph
        self.wait()

    def _captured(self, calls):
        self._torch.cuda.set_stream(self._stream)
        if not self._graphs:
            self._pool = self._torch.cuda.graph_pool_handle()
        graph = self._torch.cuda.CUDAGraph()
        graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
        try:
            for call in calls:
                call()
        except BaseException:
            with contextlib.suppress(RuntimeError):  # the capture's failure is reported already
                graph.capture_end()
            raise
        graph.capture_end()
        if hasattr(graph, "raw_cuda_graph_exec"):  # torch 2.10; in older ones the first launch does it
            self._check("cuGraphUpload", ctypes.c_void_p(graph.raw_cuda_graph_exec()), ctypes.c_void_p(self._stream.cuda_stream))
        return graph

    def replay(self):
        """Launches the graph that was captured last, and comes back when it is done."""
        self._torch.cuda.set_stream(self._stream)
        self._ready.replay()
        self._torch.cuda.synchronize()

    def forget(self, binding):
        for key in [key for key in self._graphs if key[0] == binding]:
            del self._graphs[key]
        self._ready = None

    def _check(self, name, *arguments):
        if code := getattr(self._driver, name)(*arguments):
            raise RuntimeError(f"{name} of the GPU's driver failed with {code}")
