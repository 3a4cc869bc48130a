#!/usr/bin/env python3
"""Compares what `thresher plan` predicts with what products of whole layers took by themselves.

  planner_error.py [--thresher build/default/src/cli/thresher] [--measured measurements/whole_layers_h200_2026-11-29.json.xz]

Dense products and linears of one recording of bench/layers.py; the errors are of today's planner, which may choose otherwise than the recorded
build did. Printed by format, product and number of rows: how many, the median of absolute errors, the mean error and the worst.
"""
import argparse
import collections
import json
import lzma
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]


def predicted_us(thresher, *arguments):
    """What `thresher plan` says of its first choice."""
    out = subprocess.run([thresher, "plan", *map(str, arguments), "--top", "1", "--json"], capture_output=True, text=True, check=True)
    return json.loads(out.stdout)["choices"][0]["predicted_us"]


def products(row):
    """(name, arguments of `plan`, µs) of a row's products that were timed alone."""
    weights, rows, times = row["format"], row["tokens"], row["median_us"]
    formats = ("--a", "bf16" if weights.endswith("fp4") else weights, "--b", weights)
    if row["kind"] == "linears" and weights == "bf16":
        n, k = row["shapes"]["weight"]
        yield "linear", ("gemm", "--m", rows, "--n", n, "--k", k, *formats), times["thresher"]
    if row["kind"] == "dense":
        (outputs, k), (n, inner) = row["shapes"]["gate_up"], row["shapes"]["down"]
        yield "gate and up", (f"{rows}x{outputs // 2}x{k}", *formats), times["gate_up"]
        yield "down", ("gemm", "--m", rows, "--n", n, "--k", inner, *formats), times["down"]


def line(words, errors):
    within = sum(abs(error) <= 0.1 for error in errors) / len(errors)
    return (f"{words:<40}{len(errors):>4}  median {100 * statistics.median(map(abs, errors)):>5.1f} %  mean {100 * statistics.mean(errors):>6.1f} %  "
            f"worst {100 * max(errors, key=abs):>6.1f} %  within 10 %: {100 * within:.0f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thresher", default=str(ROOT / "build/default/src/cli/thresher"))
    parser.add_argument("--measured", default=str(ROOT / "measurements/whole_layers_h200_2026-11-29.json.xz"))
    arguments = parser.parse_args()
    with lzma.open(arguments.measured, "rt") as file:
        rows = json.load(file)["rows"]
    errors = collections.defaultdict(list)
    for row in rows:
        for name, plan, us in products(row):
            regime = "up to 128 rows" if row["tokens"] <= 128 else "more rows"
            errors[f"{row['format']}, {name}, {regime}"].append(predicted_us(arguments.thresher, *plan) / us - 1)
    for words in sorted(errors):
        print(line(words, errors[words]))
    print(line("all", [error for found in errors.values() for error in found]))


if __name__ == "__main__":
    main()
