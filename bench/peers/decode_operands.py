"""Operands of decoding over keys in pages: one query for each sequence, its keys and values behind a table of pages."""
import dataclasses
import math
import random

import torch

COLD_BYTES = 240 << 20  # several times the L2
MOST_COPIES = 64
MOST_CHECKED_SEQUENCES = 32
K_DESCALE = 0.5  # for FP8: a power of two, so that dequantized keys are exact in 16 bits


@dataclasses.dataclass(frozen=True)
class Case:
    batch: int
    keys: int
    group: int  # query heads that share keys
    kv_heads: int = 8
    head_dim: int = 128
    value_dim: int = 0  # 0: head_dim; else values are the first columns of the keys (MLA)

    @property
    def heads(self):
        return self.group * self.kv_heads

    @property
    def name(self):
        return f"b{self.batch} k{self.keys} h{self.heads}/{self.kv_heads} d{self.head_dim}"

    @property
    def elements(self):
        """Of the keys and values that one call reads; MLA's values are among its keys."""
        return self.batch * self.keys * self.kv_heads * self.head_dim * (1 if self.value_dim else 2)


def cases(quick=False):
    """The grid of the targets, and a few of other head dimensions; the long ones last."""
    batches, groups = (1, 8, 32, 128, 256), (1, 4, 8)
    grid = [Case(batch, keys, group) for keys in (1024, 4096, 32768) for batch in batches for group in groups]
    if quick:
        grid = [case for case in grid if case.batch in (1, 32, 128) and case.keys != 32768 and case.group != 4]
    yield Case(1, 1024, 8, kv_heads=4)  # one sequence, with the heads of published figures
    yield from (case for case in grid if case.keys != 32768)
    for head_dim in (64, 256):
        yield Case(8, 4096, 8, head_dim=head_dim)
        yield Case(64, 4096, 4, head_dim=head_dim)
    for heads in (16, 128):
        yield Case(32, 4096, heads, kv_heads=1, head_dim=576, value_dim=512)
    yield from (case for case in grid if case.keys == 32768)


def mixed_lengths(batch, keys):
    """Pairs of lengths that add up to twice `keys`, from a quarter of it on."""
    lengths = []
    for pair in range(batch // 2):
        shorter = keys // 4 + pair * keys * 3 // 4 // (batch // 2)
        lengths += [shorter, 2 * keys - shorter]
    return lengths + [keys] * (batch % 2)


class Pool:
    """Memory of random keys and values, about normally distributed, made once for all cases."""

    def __init__(self, elements, fp8):
        self.fp8 = fp8
        self.parts = [torch.empty(elements, device="cuda", dtype=torch.float8_e4m3fn if fp8 else torch.bfloat16)
                      for _ in range(2)]
        for part, deviation in zip(self.parts, (1 / K_DESCALE, 1.0) if fp8 else (1.0, 1.0)):
            for at in range(0, elements, 1 << 27):
                some = part[at:at + (1 << 27)]
                some.copy_(torch.empty(some.shape, device="cuda", dtype=torch.bfloat16).normal_(std=deviation))


class Operands:
    """What calls of one case take: `copies` of them read different pages, so that keys come from DRAM in each.

    k, v [pages, page, Hk, D]; q, o [copies][B, H, D]; tables [copies] int32 [B, columns]; lengths int32 [B]."""

    def __init__(self, case, pool, page, mixed=False, shuffled=True):
        self.case, self.page, self.fp8, self.mixed = case, page, pool.fp8, mixed
        self.host_lengths = mixed_lengths(case.batch, case.keys) if mixed else [case.keys] * case.batch
        counts = [-(-length // page) for length in self.host_lengths]
        self.bytes = case.elements * (1 if pool.fp8 else 2)
        self.copies = min(max(1, math.ceil(COLD_BYTES / self.bytes)), MOST_COPIES)
        pages = sum(counts) * self.copies
        shape = pages, page, case.kv_heads, case.head_dim
        self.k = pool.parts[0][:math.prod(shape)].view(shape)
        self.v = self.k[..., :case.value_dim] if case.value_dim else pool.parts[1][:math.prod(shape)].view(shape)
        numbers = torch.randperm(pages, device="cuda") if shuffled else torch.arange(pages, device="cuda")
        self.columns = max(counts)
        self.tables = []
        for copy in numbers.int().split(sum(counts)):
            table = torch.zeros(case.batch, self.columns, device="cuda", dtype=torch.int32)
            for row, some in zip(table, copy.split(counts)):
                row[:some.numel()] = some
            self.tables.append(table)
        self.lengths = torch.tensor(self.host_lengths, device="cuda", dtype=torch.int32)
        self.q_starts = torch.arange(case.batch + 1, device="cuda", dtype=torch.int32)
        rows = case.batch, case.heads
        self.q = [torch.randn(*rows, case.head_dim, device="cuda", dtype=torch.bfloat16) for _ in range(self.copies)]
        self.o = [torch.empty(*rows, case.value_dim or case.head_dim, device="cuda", dtype=torch.bfloat16)
                  for _ in range(self.copies)]
        self.scale = case.head_dim ** -0.5
        drawn = random.Random(0).sample(range(case.batch), min(case.batch, MOST_CHECKED_SEQUENCES))
        self.checked = sorted({0, case.batch - 1, *drawn})
        self._reference = None

    @property
    def k_descale(self):
        return K_DESCALE if self.fp8 else 1.0

    def rows_of(self, pool, sequence):
        """float64 [keys, Hk, columns] of call 0."""
        length = self.host_lengths[sequence]
        pages = self.tables[0][sequence, :-(-length // self.page)].long()
        return pool[pages].flatten(0, 1)[:length].double()

    def definition(self, q):
        """float64 [checked, H, Dv] of q [B, H, D] and call 0's keys."""
        results = []
        for sequence in self.checked:
            grouped = q[sequence].double().view(self.case.kv_heads, self.case.group, -1)
            k = self.rows_of(self.k, sequence) * self.k_descale
            weights = torch.softmax(torch.einsum("hgd,khd->hgk", grouped, k) * self.scale, dim=-1)
            results.append(torch.einsum("hgk,khd->hgd", weights, self.rows_of(self.v, sequence)).flatten(0, 1))
        return torch.stack(results)

    def reference(self):
        if self._reference is None:
            self._reference = self.definition(self.q[0])
        return self._reference
