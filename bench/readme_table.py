#!/usr/bin/env python3
"""Writes the table of measurements between README's markers from the JSON of bench/peers/compare.py.

  readme_table.py measurements/NAME.json [--readme README.md] [--check]

--check writes nothing and exits with 1 when the table in README is not the one the JSON gives.
"""
import argparse
import json

import readme_markers

BEGIN = "<!-- measurements: begin -->"
END = "<!-- measurements: end -->"

# Column title, and which rows of the JSON it takes the fastest correct one of.
COLUMNS = [
    ("best 16-bit peer", lambda row: row["kind"] == "peer" and row["precision"] == "16-bit"),
    ("best FP8 peer", lambda row: row["kind"] == "peer" and row["precision"] == "fp8"),
    ("PyTorch two-pass, NVFP4", lambda row: row["kind"] == "peer" and row["precision"] == "nvfp4"),
    ("Thresher BF16", lambda row: row["kind"] == "thresher" and row["precision"] == "16-bit"),
    ("Thresher two_pass, NVFP4", lambda row: row["name"] == "thresher two_pass nvfp4 x nvfp4"),
    ("Thresher exact, NVFP4 weights, FP16 tokens", lambda row: row["name"] == "thresher packed fp16 x nvfp4"),
    ("Thresher exact, NVFP4 weights and tokens", lambda row: row["name"] == "thresher packed nvfp4 x nvfp4"),
    ("Thresher fast, NVFP4 weights, folding tokens", lambda row: row["name"].endswith(" fast")),
    ("Thresher fast, tokens folded beforehand", lambda row: row["name"].endswith(" fast, tokens prepared")),
]


# An H200: 16-bit operations a clock of one multiprocessor at its highest clock, twice as many with FP8; memory as tournaments
# read it there.
OPERATIONS_PER_S = 132 * 4096 * 1.98e9
BYTES_PER_S = 4.25e12


def floor_us(shape, operations_per_s):
    """What no kernel can beat: all products on the matrix unit, or NVFP4 weights, 16-bit tokens and outputs moved once."""
    m, n, k = map(int, shape.split("x"))
    bytes_moved = 2 * n * k * 4.5 / 8 + 2 * m * k + 2 * m * n
    return max(4 * m * n * k / operations_per_s, bytes_moved / BYTES_PER_S) * 1e6


def cell(rows, wanted):
    """The fastest in bursts, and its time under sustained load."""
    candidates = [row for row in rows if wanted(row) and row["correct"]]
    if not candidates:
        return "", ""
    best = min(candidates, key=lambda row: row["burst"]["median_us"])
    times = f"{best['burst']['median_us']:.1f} / {best['sustained']['median_us']:.1f}"
    return times, best["name"].split()[1] if best["kind"] == "thresher" else ""


def missing_peers(result):
    if any(row["name"].startswith("DeepGEMM") for row in result["rows"]):
        return ""
    return " The peers are PyTorch's: DeepGEMM could not be imported there."


def table(result):
    shapes = list(dict.fromkeys(row["shape"] for row in result["rows"]))
    used = [column for column in COLUMNS if any(column[1](row) for row in result["rows"])]
    titles = ["M×N×K", "floor, exact", "floor, fast"] + [title for title, _ in used]
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    for shape in shapes:
        rows = [row for row in result["rows"] if row["shape"] == shape]
        cells = [f"{floor_us(shape, OPERATIONS_PER_S):.1f}", f"{floor_us(shape, 2 * OPERATIONS_PER_S):.1f}"]
        for _, wanted in used:
            times, strategy = cell(rows, wanted)
            cells.append(f"{times} ({strategy})" if strategy else times)
        lines.append(f"| {shape.replace('x', '×')} | " + " | ".join(cells) + " |")
    machine, toolchain = result["machine"], result["toolchain"]
    lines += ["", f"Microseconds a call, burst / sustained, medians on one {machine['gpu']} (driver {machine['driver']}, "
              f"PyTorch {toolchain['torch']}, Triton {toolchain['triton']}) on {result['date']} at commit "
              f"{result['thresher']['commit'][:10]}; cold weights, contestants interleaved, every contestant's output "
              f"checked against float64. Floor: all products at the matrix unit's highest clock, or NVFP4 weights, tokens and "
              f"outputs moved once, whichever takes longer.{missing_peers(result)}"]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json")
    parser.add_argument("--readme", default="README.md")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    with open(args.json) as file:
        result = json.load(file)
    readme_markers.put(args, BEGIN, END, table(result))


if __name__ == "__main__":
    main()
