#!/usr/bin/env python3
"""Writes the table of attention between README's markers from the JSON of bench/attention_peers.py.

  attention_readme_table.py measurements/attention_NAME.json [--readme README.md] [--check]

--check writes nothing and exits with 1 when the table in README is not the one the JSON gives.
"""
import argparse
import json
import os
import re

import readme_markers

BEGIN = "<!-- attention: begin -->"
END = "<!-- attention: end -->"

# Column title, and the contender of the JSON.
COLUMNS = [("FlashAttention-2 (SDPA)", "FlashAttention"), ("cuDNN (SDPA)", "cuDNN"), ("Thresher", "thresher"),
           ("with LSE", "thresher with lse"), ("dependent launch", "thresher dependent launch")]


def title(shape):
    """"b1 h8/8 s512 d64 fp16" as "1, 8/8, 512, 64 fp16"."""
    return re.sub(r"^b(\d+) h(\d+/\d+) s(\d+) d(\d+)", r"\1, \2, \3, \4", shape)


def time(row):
    if row is None:
        return ""
    digits = 2 if row["us"] < 20 else 1 if row["us"] < 200 else 0
    text = f"{row['us']:.{digits}f}"
    return text + (f" ({row['tflops']:.0f} TFLOP/s)" if row["us"] >= 500 and row["contender"] == "thresher" else "")


def table(result, date):
    shapes = list(dict.fromkeys(row["shape"] for row in result["rows"]))
    by_place = {(row["shape"], row["contender"]): row for row in result["rows"]}
    lines = ["| B, heads q/kv, S, D | " + " | ".join(name for name, _ in COLUMNS) + " | over cuDNN |",
             "|---" * (len(COLUMNS) + 2) + "|"]
    for shape in shapes:
        cells = [time(by_place.get((shape, contender))) for _, contender in COLUMNS]
        ours = by_place.get((shape, "thresher"))
        cells.append(f"{ours['speedup_over_cudnn']:.2f}×" if ours else "")
        lines.append(f"| {title(shape)} | " + " | ".join(cells) + " |")
    gpu, driver = result["gpu"].split(",")[0], result["gpu"].split(",")[-1].strip()
    lines += ["", f"Microseconds a call, medians on one {gpu} (driver {driver}, PyTorch {result['torch']}, cuDNN "
              f"{result['cudnn']}) on {date} at commit {result['commit'][:10]}: forward, inputs warm, contenders interleaved in one process, CUDA graphs of "
              "many calls."]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", help="named …_YYYY-MM-DD.json after its day")
    parser.add_argument("--readme", default="README.md")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    date = re.search(r"\d{4}-\d{2}-\d{2}", os.path.basename(args.json))
    if not date:
        parser.error(f"{args.json} does not name its day")
    with open(args.json) as file:
        result = json.load(file)
    readme_markers.put(args, BEGIN, END, table(result, date.group()))


if __name__ == "__main__":
    main()
