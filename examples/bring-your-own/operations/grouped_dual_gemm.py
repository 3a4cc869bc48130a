"""Gate and up of each expert's rows, where the rows lie one behind the other."""
import numpy


def naive(a, b1, b2, out, offsets=None, layout="packed"):
    for expert in range(len(b1)):
        rows = slice(offsets[expert], offsets[expert + 1])
        x = a[rows].astype(numpy.float32)
        gate, up = x @ b1[expert].astype(numpy.float32).T, x @ b2[expert].astype(numpy.float32).T
        out[rows] = gate / (1 + numpy.exp(-gate)) * up
