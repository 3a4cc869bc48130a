"""Operands of prefill in FP8: contiguous, or the newest queries of sequences over keys in pages.

Every kind takes the same values: codes in e4m3 times a power of two keep their bits in bfloat16."""
import dataclasses
import random

import torch

DESCALES = 2.0 ** -6, 2.0 ** -5, 2.0 ** -4  # of q, k and v, so that values have a deviation of about 1
MOST_PAIRS, MOST_ROWS = 6, 62  # random samples to check against the definition: (sequence, head), and queries of each
KINDS = {"16-bit": (False, False, False), "fp8 keys": (False, True, True), "fp8 queries": (True, True, True)}  # in FP8?


@dataclasses.dataclass(frozen=True)
class Case:
    """Query i sees key j where it is causal iff j <= i + keys - queries. `page`: keys of a page, 0 for none."""
    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    head_dim: int
    causal: bool
    page: int = 0

    @property
    def name(self):
        length = f"s{self.keys}" if self.queries == self.keys else f"q{self.queries} k{self.keys}"
        return (f"b{self.batch} h{self.heads}/{self.kv_heads} {length} d{self.head_dim}{' causal' if self.causal else ''}"
                f"{' pages' if self.page else ''}")

    @property
    def operations(self):
        seen = self.queries * self.keys - (self.queries * (self.queries - 1) // 2 if self.causal else 0)
        return 4 * self.batch * self.heads * self.head_dim * seen


def cases():
    for batch, heads, kv_heads, length, head_dim in ((1, 32, 8, 2048, 128), (4, 16, 16, 4096, 128), (4, 32, 32, 4096, 64),
                                                     (4, 8, 8, 4096, 256), (1, 16, 16, 16384, 128), (1, 8, 8, 16384, 256)):
        for causal in (False, True):
            yield Case(batch, heads, kv_heads, length, length, head_dim, causal)
    for batch, queries, keys in ((1, 2048, 8192), (1, 512, 4096), (16, 128, 4096)):
        yield Case(batch, 32, 8, queries, keys, 128, True, page=16)


def codes(shape, descale):
    return (torch.randn(shape, device="cuda") / descale).to(torch.float8_e4m3fn)


def starts(batch, length):
    """int32 [B + 1]: where sequences of one length begin and end."""
    return torch.arange(batch + 1, device="cuda", dtype=torch.int32) * length


def drawn(count, most):
    """The first, the last, and up to `most` of `count`, the same in every run."""
    return sorted({0, count - 1, *random.Random(0).sample(range(count), min(count, most))})


class Operands:
    """What all contenders of a case take; `tensors` gives q, k and v of a kind, `descales` float32 [1] or None of each."""

    def __init__(self, case, q_shape, kv_shape):
        self.case = case
        self.scale = case.head_dim ** -0.5
        self.fp8 = [codes(shape, descale) for shape, descale in zip((q_shape, kv_shape, kv_shape), DESCALES)]
        self.wide = [(one.float() * descale).to(torch.bfloat16) for one, descale in zip(self.fp8, DESCALES)]
        self.o = torch.empty_like(self.wide[0])
        self._descales = [torch.full((1,), value, device="cuda") for value in DESCALES]
        self.pairs = [divmod(pair, case.heads) for pair in drawn(case.batch * case.heads, MOST_PAIRS)]
        self.rows = torch.tensor(drawn(case.queries, MOST_ROWS), device="cuda")
        self._reference = None

    def tensors(self, kind):
        return [narrow if is_fp8 else wide for narrow, wide, is_fp8 in zip(self.fp8, self.wide, KINDS[kind])]

    def descales(self, kind):
        return [descale if is_fp8 else None for descale, is_fp8 in zip(self._descales, KINDS[kind])]

    def sampled(self, out):
        """float64 [rows, D] of the output of a call, or of anything of q's shape: the drawn rows of each drawn pair."""
        return torch.cat([self.queries_of(out, *pair)[self.rows].double() for pair in self.pairs])

    def reference(self):
        if self._reference is None:
            self._reference = torch.cat([self.definition(*pair) for pair in self.pairs])
        return self._reference

    def definition(self, sequence, head):
        """float64 [drawn rows, D]."""
        case, (q, k, v) = self.case, self.wide
        kv_head = head // (case.heads // case.kv_heads)
        keys, values = (self.keys_of(one, sequence, kv_head).double() for one in (k, v))
        logits = self.queries_of(q, sequence, head)[self.rows].double() @ keys.T * self.scale
        if case.causal:
            last = self.rows[:, None] + case.keys - case.queries
            logits.masked_fill_(torch.arange(case.keys, device="cuda") > last, float("-inf"))
        return torch.softmax(logits, dim=-1) @ values

    def errors(self, out):
        """Of an output in float32: the relative rms error over all sampled rows, that of the worst of them, and whether all
        values are finite."""
        reference = self.reference()
        difference = self.sampled(out) - reference
        worst = (difference.norm(dim=-1) / reference.norm(dim=-1)).max()
        return (difference.norm() / reference.norm()).item(), worst.item(), bool(out.isfinite().all())


class Contiguous(Operands):
    """q, o [B, H, Sq, D]; k, v [B, Hk, Sk, D]."""

    def __init__(self, case):
        super().__init__(case, (case.batch, case.heads, case.queries, case.head_dim),
                         (case.batch, case.kv_heads, case.keys, case.head_dim))

    def queries_of(self, tensor, sequence, head):
        return tensor[sequence, head]

    keys_of = queries_of


class Paged(Operands):
    """q, o [B * Sq, H, D]; k, v [pages, page, Hk, D] in a random order; q_starts int32 [B + 1], lengths int32 [B],
    table int32 [B, columns]."""

    def __init__(self, case):
        self.columns = -(-case.keys // case.page)
        pages = case.batch * self.columns
        super().__init__(case, (case.batch * case.queries, case.heads, case.head_dim),
                         (pages, case.page, case.kv_heads, case.head_dim))
        self.table = torch.randperm(pages, device="cuda").int().view(case.batch, self.columns)
        self.lengths = torch.full((case.batch,), case.keys, device="cuda", dtype=torch.int32)
        self.q_starts = starts(case.batch, case.queries)

    def queries_of(self, tensor, sequence, head):
        return tensor[sequence * self.case.queries:(sequence + 1) * self.case.queries, head]

    def keys_of(self, tensor, sequence, kv_head):
        return tensor[:, :, kv_head][self.table[sequence].long()].flatten(0, 1)[:self.case.keys]


def operands_of(case):
    return Paged(case) if case.page else Contiguous(case)
