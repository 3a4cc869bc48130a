#!/usr/bin/env python3
"""Writes the generated tables of docs/ between their markers, from files under measurements/.

  readme_table.py [--check]

--check writes nothing and exits with 1 when a page does not hold the tables that the measurements give.
A ratio is always the peer's time over Thresher's, whose time is that of what `plan` chooses unasked.
"""
import argparse
import collections
import functools
import json
import lzma
import pathlib
import re
import statistics

import grouped_table
import layer_results
import served_table

ROOT = pathlib.Path(__file__).resolve().parents[1]

DENSE = "dual_gemm_h200_2026-11-21.json.xz"
DENSE_FP8 = "dense_fp8_peers_h200_2026-11-23.json.xz"
PLAIN = "plain_products_h200_2026-11-29.json.xz"
GROUPED = ("grouped_peers_with_triton_1_h200_2026-11-23.json", "grouped_peers_with_triton_2_h200_2026-11-23.json.xz")
LAYERS = "whole_layers_h200_2026-11-29.json.xz"
SERVED_BY_TRANSFORMERS = "served_transformers_h200_2026-11-29.json.xz"
DECODE = "attention_decode_peers_clusters_h200_2026-11-27.json.xz"
PREFILL = "attention_fp8_peers_h200_2026-11-27.json.xz"

# The strategies that `thresher plan SHAPE --device H200` names for shapes that tests/ops/dual_gemm_choices.txt does not list.
PLANNED = {
    "16-bit": {"256x4096x7168": "interleaved", "256x3072x4096": "interleaved", "512x3072x7168": "interleaved",
               "128x4096x7168": "interleaved", "2048x14336x4096": "pingpong"},
    "fp8_row": {"256x4096x7168": "rows", "512x4096x7168": "columns", "256x3072x4096": "columns", "512x3072x7168": "rows"},
    "fp8_block": {"256x4096x7168": "rows", "512x4096x7168": "rows", "256x3072x4096": "rows", "512x3072x7168": "rows"},
}

# What to do where a peer is faster, by the row's whole title.
INSTEAD = {
    "gate+up GEMM, BF16, 1 to 128 tokens": "keep cuBLAS, or [choose another strategy](#choose-a-strategy)",
    "gate+up GEMM, FP8, 128×128 block scales, 256 tokens": "keep DeepGEMM",
    "gate+up GEMM, NVFP4 weights, 256 to 2048 tokens, against FP8": "keep FP8 weights for large batches",
    "plain GEMM, BF16, 1 to 256 tokens": "use cuBLAS for N = 8192 and K = 7168",
    "plain GEMM, BF16, 1024 and 4096 tokens": "use cuBLAS",
    "MoE gate+up, BF16, up to 16 rows per expert": "keep the peer if each per cent counts",
    "MoE gate+up, FP8 block scales, up to 16 rows per expert": "keep the peer if each per cent counts",
    "MoE gate+up, FP8 block scales, more rows": "compare with DeepGEMM on your shapes",
    "paged decode, BF16": "compare on your lengths",
    "paged decode, sequences of different lengths": "compare on your lengths",
    "prefill, BF16": "keep FlashAttention-3 for long sequences with head dimension 128",
    "prefill, FP8 Q, K and V": "use cuDNN for long contiguous prefill",
    "paged prefill, BF16": "keep FlashAttention-3",
    "paged prefill, FP8 Q, K and V": "compare on your lengths",
}

# Cases of an engineer who serves models, with the rows of the table that decide them, by their whole titles.
CASES = {
    **{f"{kind}, {weights}, {tokens}": [f"{kind}, {weights}, {tokens}"]
       for kind in ("whole gated MLP", "whole MoE layer") for weights in ("BF16", "FP8 block scales", "NVFP4 weights")
       for tokens in ("1 to 128 tokens", "256 to 4096 tokens")},
    "linear of attention, BF16": ["linear of attention, BF16"],
    "dense gate+up, BF16, up to 128 tokens": ["gate+up GEMM, BF16, 1 to 128 tokens"],
    "dense gate+up, BF16, more tokens": ["gate+up GEMM, BF16, 256 to 2048 tokens"],
    "dense gate+up, FP8 with per-row scales": ["gate+up GEMM, FP8, per-row scales, 256 and 512 tokens"],
    "dense gate+up, FP8 blocks (DeepSeek)": ["gate+up GEMM, FP8, 128×128 block scales, 256 tokens"],
    "dense gate+up, NVFP4 weights, FP16 tokens, up to 128": ["gate+up GEMM, NVFP4 weights, 1 to 128 FP16 tokens",
                                                             "gate+up GEMM, NVFP4 weights, 1 to 128 FP16 tokens, against FP8"],
    "dense gate+up, NVFP4 weights, FP16 tokens, more": ["gate+up GEMM, NVFP4 weights, 256 to 2048 tokens",
                                                        "gate+up GEMM, NVFP4 weights, 256 to 2048 tokens, against FP8"],
    "one linear layer, BF16, up to 256 tokens": ["plain GEMM, BF16, 1 to 256 tokens"],
    "one linear layer, BF16, more tokens": ["plain GEMM, BF16, 1024 and 4096 tokens"],
    "decode, paged KV cache, BF16": ["paged decode, BF16", "paged decode, sequences of different lengths"],
    "prefill, contiguous, BF16": ["prefill, BF16"],
    "prefill, paged KV cache, BF16": ["paged prefill, BF16"],
    "prefill, contiguous, FP8": ["prefill, FP8 Q, K and V"],
    "prefill, paged KV cache, FP8": ["paged prefill, FP8 Q, K and V"],
}
FASTER, SLOWER = 1.03, 0.97

# An H200: 16-bit operations per second at the highest clock, twice as many in FP8; bytes per second from memory.
OPERATIONS_PER_S = 132 * 4096 * 1.98e9
BYTES_PER_S = 4.30e12

Pair = collections.namedtuple("Pair", "peer own")  # each a dict: mode -> µs
Row = collections.namedtuple("Row", "operation peers pairs")


@functools.cache
def load(name):
    path = ROOT / "measurements" / name
    with (lzma.open if path.suffix == ".xz" else open)(path) as file:
        return json.load(file)


def rows_of(*names):
    return [row for name in names for row in load(name)["rows"]]


def by(rows, key):
    groups = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups


def planned(shape, kind="16-bit"):
    """The strategy that `plan` chooses on an H200."""
    wanted = f"H200 132 {shape.replace('x', ' ')} bf16 bf16 bf16 -"
    strategy = None
    for line in (ROOT / "tests/ops/dual_gemm_choices.txt").read_text().splitlines() if kind == "16-bit" else ():
        if not line.startswith((" ", "#")):
            strategy = line.split()[0]
        elif line.strip() == wanted:
            return strategy
    return PLANNED[kind][shape]


def times(row):
    if "burst" in row:
        return {mode: row[mode]["median_us"] for mode in ("burst", "sustained")}
    return {"burst": row["median_us"]}


def fastest(rows):
    """The row that is fastest in bursts, of those whose values were not found wrong; None without one."""
    good = [row for row in rows if row.get("correct") is not False]
    if not good:
        return None
    return min(good, key=lambda row: times(row)["burst"])


def pair(rows, is_peer, is_own):
    peer, own = fastest([r for r in rows if is_peer(r)]), fastest([r for r in rows if is_own(r)])
    return Pair(times(peer), times(own)) if peer and own else None


def pairs(groups, is_peer, is_own):
    found = (pair(rows, is_peer, is_own) for rows in groups)
    return [one for one in found if one]


def is_peer(precision, name=""):
    return lambda row: row["kind"] == "peer" and row["precision"] == precision and re.search(name, row["name"])


def is_own(precision, name=""):
    return lambda row: row["kind"] == "thresher" and row["precision"] == precision and re.search(name, row["name"])


# docs/performance: speed-ups

def summary(found, mode):
    ratios = [one.peer[mode] / one.own[mode] for one in found]
    mean, worst, best = statistics.geometric_mean(ratios), min(ratios), max(ratios)
    span = f"{worst:.2f}–{best:.2f}×" if len(ratios) > 1 else f"{worst:.2f}×"
    return f"{mean:.2f}×", span, (round(mean, 2), round(worst, 2))


def line(cells):
    return "| " + " | ".join(cells) + " |"


def head(titles):
    return [line(titles), "|---" * len(titles) + "|"]


def speed_up(operation, peers, found):
    """A row of the table, from which its words are made."""
    return Row(operation, peers, found)


def continued(before, title):
    """The whole title of a row that goes on from the row before."""
    if not title.startswith("…"):
        return title
    words = title[2:]
    base = before.partition(", against")[0]
    if words.startswith("against"):
        return f"{base}, {words}"
    kept = base.split(", ")[0] if "weights" in words or "scales" in words else base.rpartition(", ")[0]
    return f"{kept}, {words}"


def speed_up_line(operation, peers, found):
    mean, span, figures = summary(found, "burst")
    if all("sustained" in one.own for one in found):
        slower_mean, slower_span, slower_figures = summary(found, "sustained")
        if slower_figures[0] < figures[0] or slower_figures[1] < figures[1]:
            of_mean = f"{slower_mean}, " if len(found) > 1 else ""
            span += f" (sustained {of_mean}{slower_span})"
    return line([operation, peers, str(len(found)), mean, span])


def tokens(rows):
    return int(rows[0]["shape"].split("x")[0])


def is_planned(row):
    return row["name"].startswith(f"thresher {planned(row['shape'])} ")


def dense():
    shapes = list(by(rows_of(DENSE), "shape").values())
    bf16 = lambda row: is_own("16-bit")(row) and is_planned(row)
    nvfp4 = is_own("nvfp4", "^thresher packed fp16 x nvfp4$")
    few = [rows for rows in shapes if tokens(rows) <= 128]
    more = [rows for rows in shapes if tokens(rows) > 128]
    sixteen, eight = "cuBLAS and DeepGEMM, BF16", "cuBLAS and DeepGEMM, FP8"
    yield speed_up("gate+up GEMM, BF16, 1 to 128 tokens", sixteen, pairs(few, is_peer("16-bit"), bf16))
    yield speed_up("… 256 to 2048 tokens", sixteen, pairs(more, is_peer("16-bit"), bf16))
    fp8 = [rows for rows in by(rows_of(DENSE_FP8), "shape").values()]
    for kind, peer, words, wanted in (("fp8_row", "^torch", "cuBLAS, FP8 with FP32 accumulation", fp8),
                                      ("fp8_block", "^DeepGEMM", "DeepGEMM, FP8",
                                       [rows for rows in fp8 if tokens(rows) == 256])):
        found = []
        for rows in wanted:
            strategy = planned(rows[0]["shape"], kind)
            found += [pair(rows, is_peer("fp8", peer), is_own("fp8", f"^thresher {strategy} {kind} x {kind}$"))]
        title = "per-row scales, 256 and 512 tokens" if kind == "fp8_row" else "128×128 block scales, 256 tokens"
        yield speed_up(f"gate+up GEMM, FP8, {title}", words, found)
    yield speed_up("gate+up GEMM, NVFP4 weights, 1 to 128 FP16 tokens", sixteen, pairs(few, is_peer("16-bit"), nvfp4))
    yield speed_up("… against FP8", eight, pairs(few, is_peer("fp8"), nvfp4))
    yield speed_up("… 256 to 2048 tokens", sixteen, pairs(more, is_peer("16-bit"), nvfp4))
    yield speed_up("… against FP8", eight, pairs(more, is_peer("fp8"), nvfp4))


def plain():
    medians = [(row["m"], row["median_us"]) for row in rows_of(PLAIN)]
    for words, wanted in (("plain GEMM, BF16, 1 to 256 tokens", range(257)), ("… 1024 and 4096 tokens", range(257, 4097))):
        found = [Pair({"burst": times["cublas"]}, {"burst": times["thresher"]}) for m, times in medians if m in wanted]
        yield speed_up(words, "cuBLAS", found)


KIND_WORDS = {"dense": "whole gated MLP", "moe": "whole MoE layer", "linears": "linear of attention"}
FORMAT_WORDS = {"bf16": "BF16", "fp8_block": "FP8 block scales", "fp8_row": "FP8 row scales", "nvfp4": "NVFP4 weights", "mxfp4": "MXFP4 weights"}
PEER_WORDS = {"torch": "PyTorch", "torch_compiled": "compiled PyTorch", "triton": "SGLang's Triton", "deepgemm": "DeepGEMM", "humming": "Humming",
              "marlin": "Marlin", "quack": "QuACK", "scaled_mm": "cuBLAS with FP32 accumulation", "scaled_mm_blocks": "cuBLAS",
              "torch_bf16": "PyTorch in BF16"}
SPANS = (("1 to 128 tokens", range(129)), ("256 to 4096 tokens", range(129, 4097)))


def layers_of(kind, format_name, tokens, against="peer"):
    """(names of the peers, pairs) of the layers of a kind with weights of a format and bfloat16 tokens."""
    rows = [row for row in rows_of(LAYERS) if (row["kind"], row["format"]) == (kind, format_name) and row["tokens"] in tokens]
    role = {"peer": "peer", "bf16": "anchor"}[against]
    names = dict.fromkeys(name for row in rows for name in row["median_us"] if row["roles"][name] == role)
    found = [(row["median_us"][layer_results.OWN], ratio) for ratio, row in layer_results.lowest(rows, against)]
    return ", ".join(PEER_WORDS[name] for name in names), [Pair({"burst": own * ratio}, {"burst": own}) for own, ratio in found]


def whole_layers():
    asked = [(kind, format_name, span, tokens) for kind in ("dense", "moe") for format_name in ("bf16", "fp8_block", "nvfp4") for span, tokens in SPANS]
    asked += [("linears", format_name, "", range(4097)) for format_name in ("bf16", "fp8_block", "nvfp4")]
    for kind, format_name, span, tokens in asked:
        peers, found = layers_of(kind, format_name, tokens)
        title = ", ".join(filter(None, (KIND_WORDS[kind], FORMAT_WORDS[format_name], span)))
        if found:
            yield speed_up(title, peers, found)
        peers, found = layers_of(kind, format_name, tokens, "bf16")
        if found and format_name == "nvfp4":
            yield speed_up(f"{title}, against {peers}", peers, found)


def layer_table():
    """Every kind and format, in three spans of tokens."""
    lines = head(["layer", "weights", "fastest of", *(words for words, _ in layer_results.REGIMES)])
    for kind, kind_words in KIND_WORDS.items():
        for format_name, words in FORMAT_WORDS.items():
            for against in ("peer", "bf16"):
                lines += layer_line([kind_words, words], kind, format_name, against)
    return "\n".join([*lines, "", "Geometric means, and the worst to the best case."])


def layer_line(titles, kind, format_name, against):
    """One line, or none where nothing was measured."""
    cells, least = [], 0
    for _, most in layer_results.REGIMES:
        cells.append(layers_of(kind, format_name, range(least, most + 1), against)[1])
        least = most + 1
    if not any(cells):
        return []
    peers = layers_of(kind, format_name, range(1 << 30), against)[0]
    return [line([*titles, peers, *("{} ({})".format(*summary(found, "burst")) if found else "" for found in cells)])]


def grouped():
    cases = list(by(rows_of(*GROUPED), "case").values())
    few = [rows for rows in cases if rows[0]["rows"] <= 16 * rows[0]["active"]]
    more = [rows for rows in cases if rows[0]["rows"] > 16 * rows[0]["active"]]
    for words, of_them in (("MoE gate+up, BF16, up to 16 rows per expert", few), ("… more rows", more)):
        yield speed_up(words, "PyTorch, cuBLAS, DeepGEMM, SGLang's Triton", pairs(of_them, is_peer("16-bit"), is_own("16-bit")))
    for words, of_them in (("MoE gate+up, FP8 block scales, up to 16 rows per expert", few), ("… more rows", more)):
        yield speed_up(words, "DeepGEMM, SGLang's Triton", pairs(of_them, is_peer("fp8"), is_own("fp8", "fp8_block x fp8_block")))
    found = pairs(cases, is_peer("nvfp4"), is_own("nvfp4", "fp16 x nvfp4"))
    yield speed_up("MoE gate+up, NVFP4 weights, FP16 tokens", "Humming", found)


def decode():
    rows = [row for row in rows_of(DECODE) if row["head_dim"] == 128 and row["kv_heads"] == 8]
    peers = "FlashAttention-3, FlashInfer, cuDNN, vLLM's Triton"
    for words, kind in (("paged decode, BF16", "16-bit"), ("… sequences of different lengths", "mixed")):
        cases = by([row for row in rows if row["kind"] == kind], "case").values()
        yield speed_up(words, peers, pairs(cases, lambda row: row["who"] == "peer", lambda row: row["who"] == "thresher"))


def prefill():
    asked = [("prefill, BF16", "FlashAttention-3", False, "16-bit", "FlashAttention-3"),
             ("… against cuDNN", "cuDNN", False, "16-bit", "cuDNN"),
             ("prefill, FP8 Q, K and V", "FlashAttention-3, cuDNN (with FP8 output)", False, "fp8 queries", ""),
             ("paged prefill, BF16", "FlashAttention-3", True, "16-bit", ""),
             ("paged prefill, FP8 Q, K and V", "FlashAttention-3, FP8", True, "fp8 queries", "")]
    for words, peers, paged, kind, name in asked:
        cases = by([row for row in rows_of(PREFILL) if row["kind"] == kind and bool(row["page"]) == paged], "case").values()
        found = pairs(cases, lambda row: row["who"] == "peer" and row["what"].startswith(name),
                      lambda row: row["who"] == "thresher")
        yield speed_up(words, peers, found)


def speed_up_rows():
    return [row for part in (dense, plain, whole_layers, grouped, decode, prefill) for row in part()]


def speed_ups():
    return "\n".join(head(["operation", "compared with the fastest of", "cases", "geometric mean", "worst to best"])
                     + [speed_up_line(*row) for row in speed_up_rows()])


def ratios_by_title():
    """(whole title, row, ratios in bursts) of each row of the table."""
    title = ""
    for row in speed_up_rows():
        title = continued(title, row.operation)
        yield title, row, [one.peer["burst"] / one.own["burst"] for one in row.pairs]


def advice(ratios):
    """By the mean, unless more than a quarter of the cases speak against it."""
    mean, few = statistics.geometric_mean(ratios), len(ratios) / 4
    losses, wins = (sum(found) for found in zip(*((ratio <= SLOWER, ratio >= FASTER) for ratio in ratios)))
    if mean >= FASTER and losses <= few:
        return "Thresher"
    if mean <= SLOWER and wins <= few:
        return "the peer"
    return "either" if losses <= len(ratios) / 3 and SLOWER < mean < FASTER else "compare on your shapes"


def choices():
    """What to use in each case."""
    known = {title: (row.peers, ratios) for title, row, ratios in ratios_by_title()}
    lines = head(["your case", "use", "because of these ratios"])
    for case, titles in CASES.items():
        found = [known[title] for title in titles if title in known]
        if not found:
            continue
        use = {advice(ratios) for _, ratios in found}
        words = [f"{statistics.geometric_mean(ratios):.2f}× {peers}; slower in {sum(ratio <= SLOWER for ratio in ratios)} of {len(ratios)} cases"
                 for peers, ratios in found]
        lines.append(line([case, use.pop() if len(use) == 1 else "depends on the peer", "<br>".join(words)]))
    return "\n".join(lines)


def losses():
    """Every row of the table with a case in which the peer is at least 3 % faster in bursts, the largest mean loss first."""
    found = []
    for title, row, ratios in ratios_by_title():
        if min(ratios) <= SLOWER:
            count = sum(ratio < 1 for ratio in ratios)
            found.append((statistics.geometric_mean(ratios), line([title, row.peers, f"{count} of {len(ratios)}", f"{min(ratios):.2f}×",
                                                                   INSTEAD.get(title, "compare on your shapes")])))
    titles = head(["operation", "peers", "cases in which a peer is faster", "worst", "what to do"])
    return "\n".join([*titles, *(words for _, words in sorted(found))])


# docs/design/kernels: times

def machine(result):
    gpu, driver, torch = result["machine"]["gpu"], result["machine"]["driver"], result["toolchain"]["torch"]
    return f"{gpu}, driver {driver}, PyTorch {torch}, {result['date']}, commit {result['thresher']['commit'][:10]}"


def floor_us(shape, bits, operations_per_s=OPERATIONS_PER_S):
    """All products at the highest clock, or weights of `bits`, 16-bit tokens and outputs moved once, whichever takes longer."""
    m, n, k = map(int, shape.split("x"))
    bytes_moved = 2 * n * k * bits / 8 + 2 * m * k + 2 * m * n
    return max(4 * m * n * k / operations_per_s, bytes_moved / BYTES_PER_S) * 1e6


def both(row):
    return " / ".join(f"{us:.1f}" for us in times(row).values())


def ratio(peer, own):
    return " / ".join(f"{times(peer)[mode] / us:.2f}×" for mode, us in times(own).items())


def dense_bf16():
    lines = head(["M×N×K", "Thresher, as planned", "of the floor", "cuBLAS", "DeepGEMM", "best peer / Thresher",
                  "Thresher's fastest"])
    for shape, rows in by(rows_of(DENSE), "shape").items():
        own = fastest([row for row in rows if is_own("16-bit")(row) and is_planned(row)])
        other = fastest([row for row in rows if is_own("16-bit")(row)])
        cublas, deep = (fastest([row for row in rows if is_peer("16-bit", name)(row)]) for name in ("^torch", "^DeepGEMM"))
        lines.append(line([shape.replace("x", "×"), f"{both(own)} ({planned(shape)})",
                           f"{100 * floor_us(shape, 16) / times(own)['burst']:.0f} %", both(cublas), both(deep),
                           ratio(fastest([cublas, deep]), own),
                           "" if other is own else f"{both(other)} ({other['name'].split()[1]})"]))
    return "\n".join([*lines, "", f"Microseconds a call, burst / sustained; {machine(load(DENSE))}."])


def dense_nvfp4():
    columns = [("exact, FP16 tokens", is_own("nvfp4", "^thresher packed fp16 x nvfp4$")),
               ("exact, NVFP4 tokens", is_own("nvfp4", "^thresher packed nvfp4 x nvfp4$")),
               ("fast, NVFP4 tokens", is_own("nvfp4 fast", "^thresher packed nvfp4 x nvfp4 fast$")),
               ("fast, tokens prepared", is_own("nvfp4 fast", "prepared$")),
               ("best 16-bit peer", is_peer("16-bit")), ("best FP8 peer", is_peer("fp8"))]
    lines = head(["M×N×K", "floor, exact", "floor, fast", *(title for title, _ in columns), "16-bit peer / exact, FP16 tokens",
                  "FP8 peer / fast, NVFP4 tokens"])
    for shape, rows in by(rows_of(DENSE), "shape").items():
        found = [fastest([row for row in rows if wanted(row)]) for _, wanted in columns]
        floors = [f"{floor_us(shape, 4.5, operations):.1f}" for operations in (OPERATIONS_PER_S, 2 * OPERATIONS_PER_S)]
        lines.append(line([shape.replace("x", "×"), *floors, *map(both, found), ratio(found[4], found[0]),
                           ratio(found[5], found[2])]))
    return "\n".join([*lines, "", f"Microseconds a call, burst / sustained; {machine(load(DENSE))}."])


def attention_title(row):
    keys = "" if row["keys"] == row["queries"] else f" over {row['keys']}"
    pages = f", pages of {row['page']}" if row["page"] else ""
    causal = " causal" if row["causal"] else ""
    return f"{row['batch']}, {row['heads']}/{row['kv_heads']}, {row['queries']}{keys}, {row['head_dim']}{causal}{pages}"


def short(row):
    return f"{row['median_us']:.{1 if row['median_us'] < 1000 else 0}f}"


def prefill_times():
    lines = head(["B, heads q/kv, S, D", "Thresher", "TFLOP/s", "FlashAttention-3", "FlashAttention-3 / Thresher", "cuDNN (SDPA)",
                  "cuDNN / Thresher"])
    for rows in by([row for row in rows_of(PREFILL) if row["kind"] == "16-bit"], "case").values():
        own = fastest([row for row in rows if row["who"] == "thresher"])
        cells = [attention_title(own), short(own), f"{own['tflops']:.0f}"]
        for peer in ("FlashAttention-3", "cuDNN"):
            row = fastest([row for row in rows if row["what"].startswith(peer)])
            cells += [short(row), ratio(row, own)] if row else ["", ""]
        lines.append(line(cells))
    return "\n".join([*lines, "", f"Microseconds a call; {machine(load(PREFILL))}."])


def grouped_times():
    cases = by(rows_of(*GROUPED), "case")
    words = "The same as ratios: the geometric mean, and the worst."
    return "\n".join([*grouped_table.times(cases), "", words, "", *grouped_table.ratios(cases)])


def replaced(page, begin, end, text):
    """The page with the text between two marker lines."""
    if page.count(begin) != 1 or page.count(end) != 1:
        raise SystemExit(f"the page needs the lines {begin} and {end} once each")
    head, rest = page.split(begin)
    return f"{head}{begin}\n{text}\n{end}{rest.split(end)[1]}"


BLOCKS = [("docs/performance/index.md", "measurements", speed_ups), ("docs/performance/index.md", "losses", losses),
          ("docs/performance/index.md", "choices", choices), ("docs/performance/index.md", "layers", layer_table),
          ("docs/design/kernels/dual-gemm.md", "measurements", dense_bf16),
          ("docs/design/kernels/nvfp4.md", "measurements", dense_nvfp4), ("docs/design/kernels/attention.md", "measurements", prefill_times),
          ("docs/design/kernels/grouped-gemm.md", "grouped measurements", grouped_times),
          ("docs/guides/transformers.md", "served", lambda: served_table.of_transformers(load(SERVED_BY_TRANSFORMERS)))]


def is_stale(path, text, is_check):
    """Whether the file is not the text; it is written anew unless this is a check."""
    stale = not path.exists() or path.read_text() != text
    if stale and not is_check:
        path.write_text(text)
    return stale


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    wrong = []
    for page, name, make in BLOCKS:
        path = ROOT / page
        before = path.read_text()
        after = replaced(before, f"<!-- {name}: begin -->", f"<!-- {name}: end -->", make())
        if is_stale(path, after, arguments.check):
            wrong.append(page)
    if arguments.check and wrong:
        raise SystemExit(f"{', '.join(wrong)}: the tables are not those of measurements/; run bench/readme_table.py")


if __name__ == "__main__":
    main()
