"""Attention with its projections as a module."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from .. import _attention
from .._library import refuse
from .._options import finite, one_of, whole_number
from ._float_attention import expect_attention, parts_of
from ._native import call
from ._state import Stated
from ._module_weights import buffer_of, expect_beside, expect_floats, expect_one_device, in_own_type, result_dtype, sixteen_bit
from ._plain import short

_PAIRS = {"none": 0, "halves": 1, "interleaved": 2}


class Attention(Stated):
    """Projections, attention and the output's projection: q [H·D, C], k and v [Hk·D, C], o [C', H·D]; x [B, S, C].

    q_bias, k_bias, v_bias, o_bias: of the projections, [H·D], [Hk·D], [Hk·D] and [C'].
    q_norm, k_norm: [D], an RMSNorm of each head of queries and keys: x / √(mean(x²) + norm_eps) times these weights.
    pairs: which columns of queries and keys turn together: "halves", "interleaved", or "none". With another than "none" a call needs
        position_embeddings.
    causal, scale, window, softcap: as in attention. A sliding window of W keys, as Hugging Face counts them, is window=(W − 1, 0).

    Weights and biases are kept in `dtype`, norms in float32. Each call sees all keys that it is given: there is no cache. Under autocast
    the result is of the type that a linear layer would give.
    """

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    o: torch.Tensor
    q_bias: torch.Tensor | None
    k_bias: torch.Tensor | None
    v_bias: torch.Tensor | None
    o_bias: torch.Tensor | None
    q_norm: torch.Tensor | None
    k_norm: torch.Tensor | None

    def __init__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, o: torch.Tensor, *, head_dim: int, causal: bool = True,
                 scale: float | None = None, window: tuple[int, int] = (-1, -1), softcap: float = 0.0,
                 dtype: torch.dtype | None = None, q_bias: torch.Tensor | None = None, k_bias: torch.Tensor | None = None,
                 v_bias: torch.Tensor | None = None, o_bias: torch.Tensor | None = None, q_norm: torch.Tensor | None = None,
                 k_norm: torch.Tensor | None = None, norm_eps: float = 1e-6, pairs: str = "none"):
        super().__init__()
        self.head_dim = whole_number("head_dim", head_dim, 1)
        self.options = _attention.options_of(causal, scale, softcap, window)._asdict()
        self.norm_eps = finite("norm_eps", norm_eps)
        if self.norm_eps < 0:
            refuse(f"norm_eps is {self.norm_eps:g}, expected a finite number from 0 on")
        expect_one_device(q=q, k=k, v=v, o=o, q_bias=q_bias, k_bias=k_bias, v_bias=v_bias, o_bias=o_bias, q_norm=q_norm, k_norm=k_norm)
        one_of("pairs", pairs, _PAIRS)
        self.pairs = pairs
        dtype = torch.bfloat16 if not isinstance(q, torch.Tensor) else sixteen_bit(q, dtype)
        for name, tensor in (("q", q), ("k", k), ("v", v), ("o", o)):
            self.register_buffer(name, buffer_of(name, tensor, dtype, 2))
        self._expect_shapes()
        for name, bias in (("q", q_bias), ("k", k_bias), ("v", v_bias), ("o", o_bias)):
            self._register_vector(f"{name}_bias", bias, dtype, getattr(self, name).shape[0])
        for name, norm in (("q_norm", q_norm), ("k_norm", k_norm)):
            self._register_vector(name, norm, torch.float32, head_dim)

    def _expect_shapes(self) -> None:
        rows = [one.shape[0] for one in (self.q, self.k, self.v)]
        if rows[0] % self.head_dim or rows[1] % self.head_dim or rows[2] != rows[1]:
            refuse(f"q, k and v have {rows[0]}, {rows[1]} and {rows[2]} rows, expected multiples of head_dim, {self.head_dim}, and as many "
                   "of k as of v")
        if rows[1] == 0 or rows[0] % rows[1]:
            refuse(f"q has {rows[0] // self.head_dim} heads and k {rows[1] // self.head_dim}, expected a multiple of those of k")
        columns = [one.shape[1] for one in (self.q, self.k, self.v)]
        if len(set(columns)) != 1 or self.o.shape[1] != rows[0]:
            refuse(f"q, k and v have {columns[0]}, {columns[1]} and {columns[2]} columns and o {self.o.shape[1]}, expected the same of q, k "
                   f"and v, and of o the {rows[0]} rows of q")

    def _register_vector(self, name: str, vector: Any, dtype: torch.dtype, length: int) -> None:
        made = None if vector is None else buffer_of(name, vector, dtype, 1)
        if made is not None and made.shape[0] != length:
            refuse(f"{name} has {made.shape[0]} elements, expected {length}")
        self.register_buffer(name, made)

    @classmethod
    def from_float(cls, module: nn.Module, *, head_dim: int | None = None, dtype: torch.dtype | None = None, causal: bool | None = None,
                   scale: float | None = None, window: tuple[int, int] | None = None, softcap: float | None = None,
                   pairs: str | None = None, ignore: Iterable[str] = ()) -> "Attention":
        """From a module with linear layers q_proj, k_proj, v_proj and o_proj, as those of transformers are.

        Taken over: biases; q_norm and k_norm, an RMSNorm of each head whose weights multiply as w or as 1 + w; head_dim; is_causal (true
        where the module does not say); scaling, else query_pre_attn_scalar of its configuration; attn_logit_softcapping;
        sliding_window. Where its forward takes position_embeddings, so does this one, and turns by them as the forward's own function
        of rotary embeddings does. Dropout is left out.
        head_dim, causal, scale, window, softcap, pairs: for what the module does not say; one that contradicts it is refused.
        ignore: names of the module's parts that change nothing. Any other part that is not taken over is refused.

        The module is called once, on five rows, without its mask and with it, as GatedMLP.from_float calls one.
        """
        parts = parts_of(module, ignore, head_dim=head_dim, causal=causal, scale=scale, window=window, softcap=softcap, pairs=pairs)
        made = cls(dtype=dtype, **parts)
        expect_attention(module, parts, made.options, made.head_dim, made.pairs)
        return made

    def said(self) -> dict[str, Any]:
        return dict(self.options, head_dim=self.head_dim, norm_eps=self.norm_eps, pairs=self.pairs, dtype=short(self.q.dtype))

    def extra_repr(self) -> str:
        heads, kv_heads = self.q.shape[0] // self.head_dim, self.k.shape[0] // self.head_dim
        extras = [name for name in ("q_bias", "k_bias", "v_bias", "o_bias", "q_norm", "k_norm") if getattr(self, name) is not None]
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return (f"columns={self.q.shape[1]}, heads={heads}, kv_heads={kv_heads}, head_dim={self.head_dim}, dtype={short(self.q.dtype)}, "
                f"{options}, pairs={self.pairs!r}{''.join(', ' + name for name in extras)}")

    def forward(self, x: torch.Tensor, position_embeddings: tuple[torch.Tensor, torch.Tensor] | None = None, **others: Any) -> torch.Tensor:
        """x: [B, S, C]. position_embeddings: cosines and sines, each [B or 1, S, R]: they turn the first R columns of each head."""
        for name, value in others.items():
            if value is not None:
                refuse(f"{name} is given, expected x and position_embeddings alone: this attention has no mask and no cache")
        expect_floats(x, q=self.q, k=self.k, v=self.v, o=self.o)
        if x.dim() != 3 or x.shape[2] != self.q.shape[1]:
            refuse(f"x is {list(x.shape)}, expected [B, S, {self.q.shape[1]}]")
        turns = self._turns(x, position_embeddings)
        if x.shape[0] == 0 or x.shape[1] == 0:
            return x.new_zeros(x.shape[0], x.shape[1], self.o.shape[0], dtype=result_dtype(x))
        with in_own_type(x):
            result = self._attended(x.to(self.q.dtype), turns)
        return result.to(result_dtype(x))

    def _turns(self, x: torch.Tensor, given: Any) -> tuple[torch.Tensor, torch.Tensor] | None:
        if self.pairs == "none":
            if given is not None:
                refuse("position_embeddings are given, but this attention does not turn queries and keys: make it with pairs")
            return None
        if given is None:
            refuse("position_embeddings are missing: this attention turns queries and keys by them")
        if not isinstance(given, (tuple, list)) or len(given) != 2 or not all(isinstance(one, torch.Tensor) for one in given):
            refuse(f"position_embeddings are of the type {type(given).__name__}, expected cosines and sines")
        cos, sin = given
        for one in given:
            expect_beside("position_embeddings", one, "x", x)
        columns = cos.shape[-1] if cos.dim() == 3 else 0
        fits = cos.shape == sin.shape and cos.dim() == 3 and cos.shape[0] in (1, x.shape[0]) and cos.shape[1] == x.shape[1]
        if not fits or columns % 2 or not 0 < columns <= self.head_dim or not (cos.is_floating_point() and sin.is_floating_point()):
            refuse(f"position_embeddings are {short(cos.dtype)} {list(cos.shape)} and {short(sin.dtype)} {list(sin.shape)}, expected floating "
                   f"point [{x.shape[0]} or 1, {x.shape[1]}, columns], an even number of columns up to {self.head_dim}")
        return cos.float().unsqueeze(1), sin.float().unsqueeze(1)

    def _attended(self, rows: torch.Tensor, turns: tuple[torch.Tensor, torch.Tensor] | None) -> torch.Tensor:
        batch, length, _ = rows.shape
        q, k, v = (nn.functional.linear(rows, weight, bias).reshape(batch, length, -1, self.head_dim).transpose(1, 2)
                   for weight, bias in ((self.q, self.q_bias), (self.k, self.k_bias), (self.v, self.v_bias)))
        q, k = self._placed(q, self.q_norm, turns), self._placed(k, self.k_norm, turns)
        result = call(torch.ops.thresher.attention, q, k, v, **self.options)
        return nn.functional.linear(result.transpose(1, 2).reshape(batch, length, -1), self.o, self.o_bias)

    def _placed(self, heads: torch.Tensor, norm: torch.Tensor | None, turns: tuple[torch.Tensor, torch.Tensor] | None) -> torch.Tensor:
        """Heads [B, H, S, D] normalised and turned in float32, rounded once."""
        if norm is None and turns is None:
            return heads
        wide = heads.float()
        if norm is not None:
            wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.norm_eps) * norm.float()
        return (wide if turns is None else turned(wide, *turns, self.pairs)).to(heads.dtype)


def turned(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, pairs: str) -> torch.Tensor:
    """x·cos + y·sin of the first columns, as many as cos has, where y has of each pair (a, b) of x the columns (−b, a)."""
    x, rest = heads[..., : cos.shape[-1]], heads[..., cos.shape[-1]:]
    if pairs == "halves":
        first, second = x.chunk(2, -1)
        y = torch.cat([-second, first], -1)
    else:
        y = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
    return torch.cat([x * cos + y * sin, rest], -1)
