#!/usr/bin/env python3
"""Prints sums of e4m3 products as the matrix unit of one NVIDIA Hopper GPU makes them, by cuBLAS without promotion.

  scripts/record.sh python3 bench/fp8_unit.py >measurements/fp8_unit_GPU_DATE.txt

tests/reference/aligned_product_test.cpp holds the reference's model of the unit against them. Of each case: its K and what
its operands are like, the rows of A, then those of B as codes, then the rows of A·Bᵀ as float32, all in hexadecimal.
"""
import torch

ROWS = 16


def operands(kind, k, generator):
    values = torch.randn(ROWS, k, device="cuda", generator=generator)
    if kind == "positive":  # nothing cancels
        values = values.abs()
    if kind == "wide":  # exponents from one end of e4m3 to the other, subnormal numbers too
        values = values * torch.exp2(torch.randint(-8, 8, values.shape, device="cuda", generator=generator).float())
    return values.clamp(-448, 448).to(torch.float8_e4m3fn)


def main():
    generator = torch.Generator(device="cuda").manual_seed(1)
    one = torch.ones((), device="cuda")
    for k in (32, 64, 128, 1024):
        for kind in ("normal", "positive", "wide"):
            a, b = operands(kind, k, generator), operands(kind, k, generator)
            sums = torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.float32, use_fast_accum=True)
            print(f"case {k} {kind}")
            for name, codes in (("a", a), ("b", b)):
                for row in codes.view(torch.uint8).cpu():
                    print(name, bytes(row.tolist()).hex())
            for row in sums.view(torch.int32).cpu():
                print("c", " ".join(f"{value & 0xFFFFFFFF:08x}" for value in row.tolist()))


if __name__ == "__main__":
    main()
