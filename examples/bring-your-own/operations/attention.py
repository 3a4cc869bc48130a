"""Attention in NumPy: sequences of one length, and queries packed one sequence after the other with keys in pages."""
import numpy


def of_one_head(q, k, v, scale, causal):
    logits = (q.astype(numpy.float32) @ k.astype(numpy.float32).T) * numpy.float32(scale)
    if causal:
        queries, keys = logits.shape
        logits[numpy.arange(keys) > numpy.arange(queries)[:, None] + keys - queries] = -numpy.inf
    weights = numpy.exp(logits - logits.max(axis=1, keepdims=True))
    return (weights @ v.astype(numpy.float32)) / weights.sum(axis=1, keepdims=True)


def in_pages(pool, table, used):
    """The rows of a sequence's keys or values, [keys, heads, columns]."""
    blocks = -(-used // pool.shape[1])
    return pool[table[:blocks]].reshape(-1, *pool.shape[2:])[:used]


def naive(q, k, v, out, causal, scale, cu_seqlens_q=None, block_table=None, seqused_k=None):
    if block_table is None:
        group = q.shape[1] // k.shape[1]
        for batch, head in numpy.ndindex(q.shape[:2]):
            out[batch, head] = of_one_head(q[batch, head], k[batch, head // group], v[batch, head // group], scale, causal)
        return
    group = q.shape[1] // k.shape[2]
    for batch, used in enumerate(seqused_k):
        rows = slice(cu_seqlens_q[batch], cu_seqlens_q[batch + 1])
        keys, values = in_pages(k, block_table[batch], used), in_pages(v, block_table[batch], used)
        for head in range(q.shape[1]):
            out[rows, head] = of_one_head(q[rows, head], keys[:, head // group], values[:, head // group], scale, causal)
