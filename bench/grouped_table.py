"""The tables of grouped products beside their peers, of the rows that bench/peers/grouped.py measured (bench/readme_table.py)."""
import math
import statistics


def peers(words, precision):
    return lambda row: row["kind"] == "peer" and row["precision"] == precision and row["name"].startswith(words)


def own(precision, words=""):
    return lambda row: row["kind"] == "thresher" and row["precision"] == precision and words in row["name"]


# Title, the rows to take the fastest of, and the precision whose lower bound of time is the reference.
COLUMNS = [("PyTorch, cuBLAS", peers("torch", "16-bit"), None), ("DeepGEMM", peers("DeepGEMM", "16-bit"), None),
           ("Triton", peers("Triton", "16-bit"), None), ("BF16", own("16-bit"), "16-bit"),
           ("Humming", peers("Humming", "nvfp4"), None), ("NVFP4 exact", own("nvfp4"), "nvfp4"),
           ("NVFP4 fast", own("nvfp4 fast"), "nvfp4 fast"), ("DeepGEMM FP8", peers("DeepGEMM", "fp8"), None),
           ("Triton FP8", peers("Triton", "fp8"), None), ("PyTorch FP8", peers("torch", "fp8 fast"), None),
           ("FP8 blocks", own("fp8", "block"), "fp8"), ("FP8 rows", own("fp8", "row"), "fp8"),
           ("FP8 fast", own("fp8 fast"), "fp8 fast")]
# Words, Thresher's precision, the peers'.
COMPARISONS = [("BF16 over the best 16-bit peer", "16-bit", "16-bit"), ("NVFP4 exact over Humming", "nvfp4", "nvfp4"),
               ("NVFP4 exact over the best 16-bit peer", "nvfp4", "16-bit"),
               ("NVFP4 fast over Humming", "nvfp4 fast", "nvfp4"),
               ("NVFP4 fast over the best FP8 peer with FP32 accumulation", "nvfp4 fast", "fp8"),
               ("FP8 with FP32 accumulation over the best FP8 peer with FP32 accumulation", "fp8", "fp8"),
               ("FP8 fast over PyTorch's", "fp8 fast", "fp8 fast"),
               ("FP8 fast over the best FP8 peer with FP32 accumulation", "fp8 fast", "fp8")]
REGIMES = [("at most 16", 0, 16), ("16 to 64", 16, 64), ("64 to 128", 64, 128), ("128 and more", 128, math.inf)]


def least(rows, wanted):
    return min((row["burst"]["median_us"] for row in rows if wanted(row) and row["correct"]), default=None)


def cell(rows, wanted, precision):
    time = least(rows, wanted)
    if time is None:
        return ""
    if precision is None:
        return f"{time:.0f}"
    possible = next(row["least_us"] for row in rows if row["precision"] == precision)
    return f"{time:.0f} ({100 * possible / time:.0f} %)"


def line(cells):
    return "| " + " | ".join(cells) + " |"


def times(cases):
    yield line(["case", "rows / experts with any", *[title for title, _, _ in COLUMNS]])
    yield "|---" * (len(COLUMNS) + 2) + "|"
    for name, rows in cases.items():
        yield line([name, f"{rows[0]['rows']} / {rows[0]['active']}",
                    *[cell(rows, wanted, precision) for _, wanted, precision in COLUMNS]])


def ratio(cases, regime, precision, rival):
    """Geometric mean and worst of the best peer's time over Thresher's."""
    found = []
    for rows in cases.values():
        each = rows[0]["rows"] / rows[0]["active"]
        pair = (least(rows, lambda row: row["kind"] == "peer" and row["precision"] == rival), least(rows, own(precision)))
        if regime[1] < each <= regime[2] and None not in pair:
            found.append(pair[0] / pair[1])
    return f"{statistics.geometric_mean(found):.2f}× ({min(found):.2f}×)" if found else ""


def ratios(cases):
    yield line(["rows of an expert that has any", *[words for words, _, _ in REGIMES]])
    yield "|---" * (len(REGIMES) + 1) + "|"
    for words, precision, rival in COMPARISONS:
        yield line([words, *[ratio(cases, regime, precision, rival) for regime in REGIMES]])
