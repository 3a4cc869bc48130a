"""Tokens and weights of experts rounded to e4m3, with a float32 scale a row or a block of 128."""
import torch

FP8_FORMATS = ("fp8_row", "fp8_block")
BLOCK = 128
E4M3_MAX = 448


def blocks_of(size):
    return -(-size // BLOCK)


def spread(scales, dim, size):
    """Each of them for the 128 elements of its block."""
    return scales.repeat_interleave(BLOCK, dim=dim).narrow(dim, 0, size)


def rounded(values, scales):
    return (values / scales).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn)


def row_scales(values):
    return values.abs().amax(dim=1) / E4M3_MAX


def block_scales(values, block_rows):
    """[⌈rows / block_rows⌉, ⌈K / 128⌉]"""
    rows, k = values.shape
    padded = torch.zeros(-(-rows // block_rows) * block_rows, blocks_of(k) * BLOCK, device=values.device)
    padded[:rows, :k] = values.abs()
    return padded.view(-1, block_rows, blocks_of(k), BLOCK).amax(dim=(1, 3)) / E4M3_MAX


class Fp8Tokens:
    """codes [rows, K]; scales [rows], or [rows, ⌈K / 128⌉] for 1 × 128."""

    def __init__(self, values, format_name):
        self.is_block = format_name == "fp8_block"
        self.scales = block_scales(values, 1) if self.is_block else row_scales(values)
        self.codes = rounded(values, self.wide_scales(values.shape[1]))

    def wide_scales(self, k):
        return spread(self.scales, 1, k) if self.is_block else self.scales.unsqueeze(1)

    def values(self):
        return self.codes.double() * self.wide_scales(self.codes.shape[1]).double()


class Fp8Weights:
    """codes [E, 2N, K], gate first; scales [E, 2N], or [E, 2⌈N / 128⌉, ⌈K / 128⌉] for 128 × 128 of gate, then of up."""

    def __init__(self, w, format_name):
        self.is_block = format_name == "fp8_block"
        experts, rows, k = w.shape
        self.n = rows // 2
        self.codes = torch.empty(w.shape, dtype=torch.float8_e4m3fn, device=w.device)
        shape = (experts, 2 * blocks_of(self.n), blocks_of(k)) if self.is_block else (experts, rows)
        self.scales = torch.empty(shape, device=w.device)
        for expert in range(experts):
            values = w[expert].float()
            self.scales[expert] = (torch.cat([block_scales(half, BLOCK) for half in values.chunk(2)]) if self.is_block
                                   else row_scales(values))
            self.codes[expert].view(torch.uint8).copy_(rounded(values, self.wide_scales(expert)).view(torch.uint8))

    def wide_scales(self, expert):
        scales = self.scales[expert]
        if not self.is_block:
            return scales.unsqueeze(1)
        return spread(torch.cat([spread(half, 0, self.n) for half in scales.chunk(2)]), 1, self.codes.shape[2])

    def values(self, expert):
        return self.codes[expert].double() * self.wide_scales(expert).double()

    def apart(self):
        """gate, up [E, N, K] and the scales of each, all contiguous."""
        halves = [half.contiguous() for half in self.codes.view(torch.uint8).chunk(2, dim=1)]
        return (*halves, *[half.contiguous() for half in self.scales.chunk(2, dim=1)])
