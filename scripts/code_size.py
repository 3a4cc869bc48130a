#!/usr/bin/env python3
"""Counts what the sources take, to compare two states of the tree.

usage: code_size.py [TREE [OTHER_TREE]]

Prints for src and its layers: files, lines, and the pairs of files that share at least eight lines of the same shape, whatever their
names, numbers and strings (blank lines, comments, includes and lone brackets do not count); then the length of functions, by the lines between their
braces. A tree is a folder that holds src; the default is this repository.
"""
import collections
import pathlib
import re
import statistics
import sys

SHARED_LINES = 8
MOST_PLACES = 8  # a run that stands in more is an idiom
SUFFIXES = {".cpp", ".hpp", ".h", ".c"}
GEMM_FOLDERS = ("dual_gemm", "grouped_gemm", "gemm")


def sources(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)


def telling_lines(path):
    """The shapes of the lines that count for a pair: every name, number and string is the same as another."""
    kept = []
    for line in path.read_text().splitlines():
        line = re.sub(r"//.*", "", line).strip()
        if re.search(r"\w", line) and not re.match(r"#|namespace\b|using namespace\b", line):
            shape = re.sub(r'"(?:\\.|[^"\\])*"', "s", line)
            shape = re.sub(r"\b(?!(?:const|return|if|for|while|case|class|struct|template|static)\b)[A-Za-z_]\w*", "w", shape)
            kept.append(re.sub(r"\s+", " ", re.sub(r"\b\d[\w.']*", "0", shape)))
    return kept


def clone_pairs(paths):
    """Pairs of files that share a run of SHARED_LINES lines."""
    places = collections.defaultdict(set)
    for path in paths:
        lines = telling_lines(path)
        for at in range(len(lines) - SHARED_LINES + 1):
            run = tuple(lines[at:at + SHARED_LINES])
            if len(set(run)) > SHARED_LINES // 2:  # a table's rows are alike by nature
                places[run].add(path)
    pairs = set()
    for found in places.values():
        if len(found) > MOST_PLACES:
            continue
        ordered = sorted(found)
        pairs.update((one, other) for i, one in enumerate(ordered) for other in ordered[i + 1:])
    return len(pairs)


def function_lengths(paths):
    """Lines of functions of at least two lines: from the line that ends with '{' to the '}' of the same indentation."""
    lengths = []
    opening = re.compile(r"^(\s*)(?!.*\b(namespace|class|struct|enum|union|if|for|while|switch|else|do|return)\b).*\)[^;=]*\{$")
    for path in paths:
        lines = path.read_text().splitlines()
        for start, line in enumerate(lines):
            match = opening.match(line)
            if match:
                closing = match.group(1) + "}"
                end = next((i for i in range(start + 1, len(lines)) if lines[i].rstrip(";)").startswith(closing)), None)
                if end is not None:
                    lengths.append(end - start + 1)
    return lengths


def rows(tree):
    src = tree / "src"
    strategies = src / "strategies"
    gemm = [path for folder in GEMM_FOLDERS for path in sources(strategies / folder)]
    groups = [("src/strategies, GEMM part", gemm), ("src/strategies", sources(strategies))]
    groups += [(f"src/{layer.name}", sources(layer)) for layer in sorted(src.iterdir()) if layer.is_dir() and layer != strategies]
    groups.append(("src", sources(src)))
    counted = {name: (len(paths), sum(len(path.read_text().splitlines()) for path in paths)) for name, paths in groups}
    everything = sources(src)
    lengths = function_lengths(everything)
    return counted, clone_pairs(everything), (statistics.median(lengths), max(lengths))


def main():
    trees = [pathlib.Path(tree) for tree in sys.argv[1:3]] or [pathlib.Path(__file__).resolve().parent.parent]
    results = [rows(tree) for tree in trees]
    names = sorted({name for counted, _, _ in results for name in counted})
    for name in names:
        cells = ["{:>4} files {:>7} lines".format(*counted.get(name, (0, 0))) for counted, _, _ in results]
        print(f"{name:<28}" + "   ".join(cells))
    print(f"{f'pairs sharing {SHARED_LINES} lines':<28}" + "   ".join(f"{pairs:>24}" for _, pairs, _ in results))
    print(f"{'functions, median/longest':<28}" + "   ".join(f"{median:>15.0f} / {longest:>6}" for _, _, (median, longest) in results))


if __name__ == "__main__":
    main()
