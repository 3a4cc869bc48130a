"""A layer of experts, choice by choice; intermediates and rows are rounded to the type of x."""
import numpy


def naive(x, topk_ids, topk_weights, gate, up, down, out):
    sums = numpy.zeros(out.shape, numpy.float32)
    x32 = x.astype(numpy.float32)
    for token, choice in numpy.ndindex(topk_ids.shape):
        expert = topk_ids[token, choice]
        if not 0 <= expert < len(gate):
            continue
        gates, ups = gate[expert].astype(numpy.float32) @ x32[token], up[expert].astype(numpy.float32) @ x32[token]
        between = (gates / (1 + numpy.exp(-gates)) * ups).astype(x.dtype).astype(numpy.float32)
        row = (down[expert].astype(numpy.float32) @ between).astype(x.dtype)
        sums[token] += topk_weights[token, choice] * row.astype(numpy.float32)
    out[...] = sums
