"""Triton kernels around the peers' products: places of tokens in experts' tiles, adding up, activations, and rounding to FP8."""
import torch
import triton
import triton.language as tl

from layer_weights import BLOCK, E4M3_MAX

LIMIT, ALPHA = 7.0, 1.702


@triton.jit
def count_kernel(ids, total, experts, tile_rows, cursors, tile_ends, count, places, place_count, EXPERTS: tl.constexpr, CHUNK: tl.constexpr):
    """Program 0 counts the rows of each expert and says where its tiles begin and end; the others fill `places` with `total`."""
    if tl.program_id(0) > 0:
        at = (tl.program_id(0) - 1) * CHUNK + tl.arange(0, CHUNK)
        tl.store(places + at, total, mask=at < place_count)
        return
    counts = tl.zeros([EXPERTS], tl.int32)
    for first in range(0, total, CHUNK):
        at = first + tl.arange(0, CHUNK)
        expert = tl.load(ids + at, mask=at < total, other=experts)
        counts += tl.histogram(tl.where((expert >= 0) & (expert < experts), expert, experts), EXPERTS)
    expert = tl.arange(0, EXPERTS)
    tiles = tl.where(expert < experts, (counts + tile_rows - 1) // tile_rows, 0)
    ends = tl.cumsum(tiles)
    tl.store(cursors + expert, (ends - tiles) * tile_rows)
    tl.store(tile_ends + expert, ends)
    tl.store(count, tl.sum(tiles) * tile_rows)


@triton.jit
def place_kernel(ids, total, experts, cursors, tile_ends, places, inverse, tile_experts, tile_count, EXPERTS: tl.constexpr, CHUNK: tl.constexpr,
                 TILES: tl.constexpr):
    """Each choice takes the next place of its expert; tiles get their expert, -1 behind the last."""
    at = tl.program_id(0) * CHUNK + tl.arange(0, CHUNK)
    expert = tl.load(ids + at, mask=at < total, other=experts)
    valid = (expert >= 0) & (expert < experts)
    place = tl.atomic_add(cursors + expert, 1, mask=valid)
    tl.store(places + place, at, mask=valid)
    tl.store(inverse + at, place, mask=valid)
    tile = tl.program_id(0) * TILES + tl.arange(0, TILES)
    ends = tl.load(tile_ends + tl.arange(0, EXPERTS))
    owner = tl.sum((ends[None, :] <= tile[:, None]).to(tl.int32), axis=1)
    tl.store(tile_experts + tile, tl.where(owner < experts, owner, -1), mask=tile < tile_count)


class Places:
    """Room for the places of a call's choices in tiles of `tile_rows` rows of one expert each; `find` fills it in two launches."""

    def __init__(self, ids, experts, tile_rows):
        self.ids, self.experts, self.tile_rows, self.total = ids, experts, tile_rows, ids.numel()
        tiles = triton.cdiv(self.total, tile_rows) + min(experts, self.total)
        self.words = triton.next_power_of_2(experts + 1)
        self.chunk, self.tiles = 1024, 64
        integers = dict(dtype=torch.int32, device=ids.device)
        self.places, self.tile_experts = torch.empty(tiles * tile_rows, **integers), torch.empty(tiles, **integers)
        self.cursors, self.tile_ends = torch.empty(self.words, **integers), torch.empty(self.words, **integers)
        self.inverse, self.count = torch.empty(self.total, **integers), torch.empty(1, **integers)

    def find(self):
        fills = triton.cdiv(self.places.numel(), self.chunk)
        count_kernel[(1 + fills,)](self.ids, self.total, self.experts, self.tile_rows, self.cursors, self.tile_ends, self.count, self.places,
                                   self.places.numel(), EXPERTS=self.words, CHUNK=self.chunk, num_warps=8)
        programs = max(triton.cdiv(self.total, self.chunk), triton.cdiv(self.tile_experts.numel(), self.tiles))
        place_kernel[(programs,)](self.ids, self.total, self.experts, self.cursors, self.tile_ends, self.places, self.inverse, self.tile_experts,
                                  self.tile_experts.numel(), EXPERTS=self.words, CHUNK=self.chunk, TILES=self.tiles)
        return self


@triton.jit
def combine_kernel(rows, ids, weights, inverse, out, experts, hidden, HAS_INVERSE: tl.constexpr, TOP_K: tl.constexpr, COLUMNS: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([COLUMNS], tl.float32)
    for choice in tl.static_range(TOP_K):
        at = token * TOP_K + choice
        expert = tl.load(ids + at)
        if (expert >= 0) & (expert < experts):
            row = at
            if HAS_INVERSE:
                row = tl.load(inverse + at).to(tl.int64)
            total += tl.load(weights + at) * tl.load(rows + row * hidden + column, mask=column < hidden, other=0.0).to(tl.float32)
    tl.store(out + token * hidden + column, total.to(out.dtype.element_ty), mask=column < hidden)


def combined(rows, call, experts, inverse=None):
    """Each token's rows times their weights, added up; row `inverse[choice]`, or `choice`, is that of a choice."""
    out = torch.empty_like(call.x)
    tokens, hidden = out.shape
    columns = min(1024, triton.next_power_of_2(hidden))
    combine_kernel[(tokens, triton.cdiv(hidden, columns))](rows, call.ids, call.weights, inverse, out, experts, hidden,
                                                           HAS_INVERSE=inverse is not None, TOP_K=call.ids.shape[1], COLUMNS=columns)
    return out


@triton.jit
def clamped_kernel(h, out, n, LIMIT: tl.constexpr, ALPHA: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    gate = tl.load(h + row * 2 * n + column, mask=column < n).to(tl.float32)
    up = tl.load(h + row * 2 * n + n + column, mask=column < n).to(tl.float32)
    gate, up = tl.minimum(gate, LIMIT), tl.clamp(up, -LIMIT, LIMIT)
    tl.store(out + row * n + column, (gate * tl.sigmoid(ALPHA * gate) * (up + 1)).to(out.dtype.element_ty), mask=column < n)


def clamped(h):
    """gpt-oss's activation of gate and up [rows, 2n] in bfloat16."""
    rows, n = h.shape[0], h.shape[1] // 2
    out = torch.empty(rows, n, device=h.device, dtype=torch.bfloat16)
    clamped_kernel[(rows, triton.cdiv(n, 1024))](h, out, n, LIMIT=LIMIT, ALPHA=ALPHA, COLUMNS=1024)
    return out


@triton.jit
def blocks_kernel(x, codes, scales, rows, k, scale_row, scale_block, ROWS: tl.constexpr, BLOCK: tl.constexpr, MOST: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    at = row[:, None] * k + tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    valid = row < rows
    value = tl.load(x + at, mask=valid[:, None], other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(value), axis=1), 1e-10) / MOST
    tl.store(codes + at, tl.clamp(value / scale[:, None], -MOST, MOST).to(codes.dtype.element_ty), mask=valid[:, None])
    tl.store(scales + row * scale_row + tl.program_id(1) * scale_block, scale, mask=valid)


def in_blocks(x, column_major=False):
    """(e4m3 codes, a float32 scale for 128 along K) of rows; scales [rows, K / 128] row by row or, for 4 rows at a time, column by column."""
    rows, k = x.shape
    codes, blocks = torch.empty(rows, k, device=x.device, dtype=torch.float8_e4m3fn), k // BLOCK
    if column_major:
        scales = torch.empty(blocks, -(-rows // 4) * 4, device=x.device).t()[:rows]
    else:
        scales = torch.empty(rows, blocks, device=x.device)
    tile = 1 if rows <= 256 else 8
    blocks_kernel[(triton.cdiv(rows, tile), blocks)](x, codes, scales, rows, k, scales.stride(0), scales.stride(1), ROWS=tile, BLOCK=BLOCK,
                                                     MOST=float(E4M3_MAX), num_warps=1 if tile == 1 else 4)
    return codes, scales


@triton.jit
def row_value(x, row, column, k, GATED: tl.constexpr):
    """x, or silu(gate) * up of gate and up one behind the other."""
    stride = 2 * k if GATED else k
    value = tl.load(x + row * stride + column, mask=column < k, other=0.0).to(tl.float32)
    if GATED:
        value = value * tl.sigmoid(value) * tl.load(x + row * stride + k + column, mask=column < k, other=0.0).to(tl.float32)
    return value


@triton.jit
def rows_kernel(x, codes, scales, k, GATED: tl.constexpr, COLUMNS: tl.constexpr, MOST: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    most = tl.zeros([COLUMNS], tl.float32)
    for first in range(0, k, COLUMNS):
        most = tl.maximum(most, tl.abs(row_value(x, row, first + tl.arange(0, COLUMNS), k, GATED)))
    scale = tl.maximum(tl.max(most, axis=0), 1e-10) / MOST
    tl.store(scales + row, scale)
    for first in range(0, k, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        value = row_value(x, row, column, k, GATED) / scale
        tl.store(codes + row * k + column, tl.clamp(value, -MOST, MOST).to(codes.dtype.element_ty), mask=column < k)


def in_rows(x, gated=False):
    """(e4m3 codes, a float32 scale a row [rows, 1]) of rows or, gated, of their activation."""
    rows, k = x.shape[0], x.shape[1] // (2 if gated else 1)
    codes, scales = torch.empty(rows, k, device=x.device, dtype=torch.float8_e4m3fn), torch.empty(rows, 1, device=x.device)
    rows_kernel[(rows,)](x, codes, scales, k, GATED=gated, COLUMNS=min(4096, triton.next_power_of_2(k)), MOST=float(E4M3_MAX), num_warps=8)
    return codes, scales


@triton.jit
def gather_kernel(codes, scales, places, to_codes, to_scales, total, top_k, k, blocks, to_row, to_block, COLUMNS: tl.constexpr, BLOCKS: tl.constexpr):
    to = tl.program_id(0).to(tl.int64)
    choice = tl.load(places + to)
    if choice >= total:
        return
    row = (choice // top_k).to(tl.int64)
    for first in range(0, k, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        tl.store(to_codes + to * k + column, tl.load(codes + row * k + column, mask=column < k), mask=column < k)
    block = tl.arange(0, BLOCKS)
    scale = tl.load(scales + row * blocks + block, mask=block < blocks)
    tl.store(to_scales + to * to_row + block * to_block, scale, mask=block < blocks)


def gathered(codes, scales, places, top_k):
    """Rows of the choices at their places, with scales column by column; places without a choice are left as they are."""
    rows, (_, k) = places.places.numel(), codes.shape
    to_codes = torch.empty(rows, k, device=codes.device, dtype=codes.dtype)
    to_scales = torch.empty(k // BLOCK, rows, device=codes.device).t()
    gather_kernel[(rows,)](codes.view(torch.uint8), scales, places.places, to_codes.view(torch.uint8), to_scales, places.total, top_k, k, k // BLOCK,
                           to_scales.stride(0), to_scales.stride(1), COLUMNS=1024, BLOCKS=triton.next_power_of_2(k // BLOCK))
    return to_codes, to_scales
