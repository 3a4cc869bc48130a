#!/usr/bin/env python3
"""Puts parts of a measurement of layers, files of bench/layers.py, into one, and prints its tables.

  layer_results.py --out measurements/NAME.json.xz PART.json...

A later part's row replaces one of the same case and contestants. Where other peers were timed in another part, the lowest ratio of a case
counts. All parts are of one machine, toolchain and method.
"""
import argparse
import json
import lzma
import pathlib
import statistics

OWN = "thresher"
REGIMES = (("1 to 16 tokens", 16), ("17 to 256 tokens", 256), ("more tokens", 1 << 30))


def key_of(row):
    return row["kind"], row["model"], row["part"], row["format"], row["tokens"]


def load(path):
    with (lzma.open if str(path).endswith(".xz") else open)(path, "rt") as file:
        return json.load(file)


def write(path, result):
    with (lzma.open if str(path).endswith(".xz") else open)(path, "wt") as file:
        json.dump(result, file, indent=1)


def set_in(part, name):
    """What a part says of its machine, toolchain or method, without options that were not taken."""
    return {key: value for key, value in part[name].items() if value is not None}


def merged(parts):
    """One result of several, with the commits and the contestants that did not run of all."""
    first = parts[0]
    for part in parts:
        for name in ("machine", "toolchain", "method"):
            if set_in(part, name) != set_in(first, name):
                raise SystemExit(f"parts differ in {name}: {first[name]} and {part[name]}")
    rows = {(key_of(row), *sorted(row["roles"])): row for part in parts for row in part["rows"]}
    commits = dict.fromkeys(part["commit"] for part in parts)
    not_run = {(one["layer"], one["format"], one["who"]): one for part in parts for one in part["not_run"]}
    return {**parts[-1], "commit": ", ".join(commits), "rows": list(rows.values()), "not_run": list(not_run.values())}


def best_peer(row):
    """(name, µs) of the fastest peer of the row's own format and numerics, None without one."""
    peers = [(us, name) for name, us in row["median_us"].items() if row["roles"][name] == "peer"]
    return min(peers)[::-1] if peers else None


def ratios(row):
    """The best peer's time over Thresher's, and PyTorch's in BF16; what was not measured is left out."""
    own, found = row["median_us"].get(OWN), {}
    if own is None:
        return found
    if best_peer(row):
        found["peer"] = best_peer(row)[1] / own
    anchors = [us for name, us in row["median_us"].items() if row["roles"][name] == "anchor"]
    if anchors:
        found["bf16"] = min(anchors) / own
    return found


def regime(tokens):
    return next(words for words, most in REGIMES if tokens <= most)


def case_name(row):
    return f"{row['model']} {row['part']}, {row['tokens']}"


def lowest(rows, against):
    """(ratio, row) of each case that has one, the lowest of its rows."""
    found = {}
    for row in rows:
        ratio = ratios(row).get(against)
        if ratio is not None and ratio < found.get(key_of(row), (float("inf"),))[0]:
            found[key_of(row)] = ratio, row
    return list(found.values())


def summary(rows, against="peer"):
    """(kind, format, regime, cases, geometric mean, worst ratio, its case) of all cases that have such a ratio."""
    groups = {}
    for ratio, row in lowest(rows, against):
        groups.setdefault((row["kind"], row["format"], regime(row["tokens"])), []).append((ratio, case_name(row)))
    return [(*group, len(found), statistics.geometric_mean(ratio for ratio, _ in found), *min(found)) for group, found in groups.items()]


def row_line(row):
    """One line of a row: the layer's times, what each launch takes alone, and what did not run or is wrong."""
    times = {role: [f"{name} {us:.1f}" for name, us in row["median_us"].items() if row["roles"][name] == role]
             for role in ("own", "peer", "fast peer", "anchor", "launch")}
    found = ratios(row)
    ratio = "  ".join(f"{found[name]:.3f}x {words}" for name, words in (("peer", "best peer"), ("bf16", "torch bf16")) if name in found)
    parts = ["  ".join(sum((times[role] for role in ("own", "peer", "fast peer", "anchor")), [])), ratio]
    if times["launch"]:
        parts.append("alone: " + "  ".join(times["launch"]))
    wrong = [f"{name} WRONG {row['norm_errors'][name]:.1e}" for name in row["wrong"]]
    return f"{row['format']:<10}{case_name(row):<36}" + " | ".join(part for part in (*parts, *wrong) if part)


def print_summary(rows, not_run):
    """The short table that ends a run."""
    for against, words in (("peer", "the best peer of the same format"), ("bf16", "PyTorch in BF16")):
        lines = summary(rows, against)
        if lines:
            print(f"Thresher against {words}: cases, geometric mean, worst")
        for kind, format_name, words_of_regime, count, mean, worst, case in lines:
            print(f"  {kind:<8}{format_name:<10}{words_of_regime:<18}{count:>3}{mean:>8.3f}x{worst:>8.3f}x  {case}")
    for (who, reason), cases in named(not_run).items():
        print(f"not run: {who}: {reason} ({len(cases)} cases, the first {cases[0]})")


def named(not_run):
    """The cases of each contestant and reason."""
    found = {}
    for one in not_run:
        found.setdefault((one["who"], one["reason"]), []).append(f"{one['format']} {one['layer']}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="file to write, compressed where its name ends in .xz")
    parser.add_argument("parts", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        result = merged([load(part) for part in arguments.parts])
    except (OSError, ValueError, lzma.LZMAError) as error:
        parser.error(str(error))
    write(arguments.out, result)
    for row in result["rows"]:
        print(row_line(row))
    print_summary(result["rows"], result["not_run"])


if __name__ == "__main__":
    main()
