"""C = A B^T + bias, in float32 and rounded once."""
import numpy


def naive(a, b, out, bias=None):
    product = a.astype(numpy.float32) @ b.astype(numpy.float32).T
    out[...] = product if bias is None else product + bias.astype(numpy.float32)
