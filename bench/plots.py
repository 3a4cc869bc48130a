#!/usr/bin/env python3
"""Draws docs/pictures/*.svg from files under measurements/; losses are drawn like gains.

  plots.py [--check]      (wants docs/requirements.txt; scripts/docs.sh pictures runs it)

--check writes nothing and exits with 1 when a picture is not what the measurements give. Pictures follow the colour scheme of the
page: colours of text and grid are variables of the SVG.
"""
import argparse
import io
import json
import pathlib
import re
import statistics

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

import readme_table as tables  # noqa: E402

PICTURES = pathlib.Path(__file__).resolve().parents[1] / "docs" / "pictures"
SERVED = "vllm_served_h200_2026-11-28.txt"
INK, GRID = "#010203", "#040506"  # replaced by variables
OWN, LOSS, PEERS = "#2f81f7", "#d29922", ["#8b949e", "#a371f7", "#3fb950"]
STYLE = f"<style>:root{{--ink:#1f2328;--grid:#d0d7de}}@media(prefers-color-scheme:dark){{:root{{--ink:#e6edf3;--grid:#3d444d}}}}</style>"


def axes_of(width, height, **kwargs):
    figure, axes = plt.subplots(figsize=(width, height), layout="constrained", **kwargs)
    for one in axes.flat if hasattr(axes, "flat") else [axes]:
        one.grid(alpha=1, linewidth=0.5)
        one.set_axisbelow(True)
        for side in ("top", "right"):
            one.spines[side].set_visible(False)
    return figure, axes


def svg(figure):
    out = io.BytesIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    text = out.getvalue().decode()
    text = re.sub(r"(<svg [^>]*>)", lambda m: m[1] + STYLE, text, count=1)
    text = text.replace(INK, "var(--ink)").replace(GRID, "var(--grid)")
    return re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\d+\.\d{2})\d+", r"\1", path[0]), text)


def speed_up_rows():
    """(title, peers, mean, worst, best) of the table of speed-ups."""
    title = ""
    for row in tables.speed_up_rows():
        title = tables.continued(title, row.operation)
        ratios = [one.peer["burst"] / one.own["burst"] for one in row.pairs]
        yield title, row.peers, statistics.geometric_mean(ratios), min(ratios), max(ratios)


def speed_up():
    rows = list(speed_up_rows())[::-1]
    figure, axes = axes_of(10, 0.35 * len(rows))
    for at, (title, peers, mean, worst, best) in enumerate(rows):
        axes.barh(at, mean - 1, left=1, color=OWN if mean >= 1 else LOSS, height=0.62)
        axes.plot([worst, best], [at, at], color=INK, linewidth=1.2, marker="|", markersize=5)
        axes.text(3.2, at, f"{mean:.2f}×", va="center", fontsize=8)
    axes.axvline(1, color=INK, linewidth=1)
    axes.set_yticks(range(len(rows)), [f"{title}\nvs {peers}" for title, peers, *_ in rows], fontsize=7.4)
    axes.set(xlim=(0.4, 3.45), ylim=(-0.7, len(rows) - 0.3), xlabel="time of the fastest peer / Thresher's time: right of 1 Thresher is faster, left of 1 the peer is")
    axes.set_title("One H200, geometric means; whiskers: worst to best case", fontsize=9)
    return figure


def dense():
    shapes = {m: rows for shape, rows in tables.by(tables.rows_of(tables.DENSE), "shape").items()
              for m, n, k in [map(int, shape.split("x"))] if (n, k) == (14336, 4096)}
    tokens = sorted(shapes)
    series = [("Thresher, BF16", tables.is_own("16-bit"), OWN, True), ("Thresher, NVFP4 weights, FP16 tokens",
              tables.is_own("nvfp4", "^thresher packed fp16 x nvfp4$"), "#1f6feb", False),
              ("fastest 16-bit peer", tables.is_peer("16-bit"), PEERS[0], False), ("fastest FP8 peer", tables.is_peer("fp8"), PEERS[1], False)]
    figure, axes = axes_of(7, 3.8)
    for title, wanted, color, planned in series:
        found = [tables.fastest([row for row in shapes[m] if wanted(row) and (not planned or tables.is_planned(row))]) for m in tokens]
        axes.plot(tokens, [tables.times(row)["burst"] for row in found], "o-", color=color, label=title, markersize=4)
    for title, bits, style in (("floor, BF16 weights", 16, ":"), ("floor, NVFP4 weights", 4.5, "--")):
        axes.plot(tokens, [tables.floor_us(f"{m}x14336x4096", bits) for m in tokens], style, color=INK, linewidth=1, label=title)
    axes.set(xscale="log", yscale="log", xlabel="tokens", ylabel="µs a call, bursts")
    axes.set_xticks(tokens, tokens)
    axes.minorticks_off()
    axes.set_yticks([15, 30, 60, 120, 240, 480], [15, 30, 60, 120, 240, 480])
    axes.legend(fontsize=7)
    return figure


def layer_times(model, kind, format_name, name):
    """(tokens, µs) of one contestant of a model's layers."""
    rows = [row for row in tables.rows_of(tables.LAYERS) if (row["model"], row["kind"], row["format"]) == (model, kind, format_name)]
    return sorted({row["tokens"]: row["median_us"][name] for row in rows if name in row["median_us"]}.items())


def layers_panel(axes, model, kind, series):
    """Times against tokens, with the least time of the weights of a gated MLP."""
    for title, format_name, name, color in series:
        points = layer_times(model, kind, format_name, name)
        if points:
            axes.plot(*zip(*points), "o-", color=color, label=title, markersize=3.5, linewidth=1.2)
    tokens = [count for count, _ in layer_times(model, kind, "bf16", "thresher")]
    axes.set(xscale="log", yscale="log", xlabel="tokens", title=model)
    axes.set_xticks(tokens, tokens, fontsize=8)
    axes.minorticks_off()
    ticks = [15, 30, 60, 120, 240, 480, 960, 1920, 3840]
    axes.set_yticks(ticks, ticks)


def whole_layers(kind, models, series):
    figure, panels = axes_of(9, 3.8, ncols=2)
    for axes, model in zip(panels, models):
        layers_panel(axes, model, kind, series)
    panels[0].set_ylabel("µs a layer, bursts")
    panels[0].legend(fontsize=7)
    return figure


def mlps():
    return whole_layers("dense", ["Llama-8B", "Qwen3-32B"],
                        [("PyTorch, compiled, BF16", "bf16", "torch_compiled", PEERS[0]), ("PyTorch, eager, BF16", "bf16", "torch", PEERS[1]),
                         ("Humming, NVFP4 weights", "nvfp4", "humming", LOSS), ("Thresher, BF16", "bf16", "thresher", OWN),
                         ("Thresher, NVFP4 weights", "nvfp4", "thresher", PEERS[2])])


def moe_layers():
    return whole_layers("moe", ["Qwen3-30B-A3B", "Mixtral-8x7B"],
                        [("SGLang's Triton, BF16", "bf16", "triton", PEERS[0]), ("SGLang's Triton, FP8 blocks", "fp8_block", "triton", PEERS[1]),
                         ("Humming, NVFP4 weights", "nvfp4", "humming", LOSS), ("Thresher, BF16", "bf16", "thresher", OWN),
                         ("Thresher, FP8 blocks", "fp8_block", "thresher", "#79c0ff"), ("Thresher, NVFP4 weights", "nvfp4", "thresher", PEERS[2])])


def decode():
    rows = [row for row in tables.rows_of(tables.DECODE) if row["kind"] == "16-bit" and row["head_dim"] == 128 and row["kv_heads"] == 8]
    figure, axes = axes_of(7, 3.8)
    for who, color, title in (("peer", PEERS[0], "fastest peer"), ("thresher", OWN, "Thresher")):
        points = []
        for case in tables.by([row for row in rows if row["who"] == who], "case").values():
            best = tables.fastest(case)
            points.append((best["bytes"] / 2**20, best["bytes_a_second"] / 1e12))
        axes.plot(*zip(*sorted(points)), "o", color=color, label=title, markersize=4, alpha=0.8)
    axes.axhline(tables.BYTES_PER_S / 1e12, color=INK, linestyle=":", linewidth=1, label="memory, 4.30 TB/s")
    axes.set(xscale="log", xlabel="MiB of keys and values", ylabel="TB/s", ylim=(0, None))
    axes.legend(fontsize=7)
    return figure


def prefill():
    rows = tables.by([row for row in tables.rows_of(tables.PREFILL) if row["kind"] == "16-bit"], "case")
    figure, axes = axes_of(9, 4.2)
    names = []
    for at, case in enumerate(rows.values()):
        own = tables.fastest([row for row in case if row["who"] == "thresher"])
        names.append(tables.attention_title(own))
        for place, (title, color, found) in enumerate((
                ("FlashAttention-3", PEERS[0], [r for r in case if r["what"].startswith("FlashAttention-3")]),
                ("cuDNN", PEERS[1], [r for r in case if r["what"].startswith("cuDNN")]), ("Thresher", OWN, [own]))):
            if found:
                best = tables.fastest(found)
                axes.bar(at + (place - 1) * 0.27, own["tflops"] * own["median_us"] / best["median_us"], 0.26, color=color,
                         label=title if at == 0 else None)
    axes.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=6.5)
    axes.set(ylabel="TFLOP/s, BF16", xlabel="batch, heads q/kv, queries, head dimension")
    axes.set_ylim(0, 1000)
    axes.legend(fontsize=7, ncols=3, loc="upper left")
    return figure


def served_rates():
    """(model, option) -> tokens a second of each load; the newest run that has both a default and an option for a model."""
    text = (tables.ROOT / "measurements" / SERVED).read_text()
    rates = {}
    for model, option, numbers in re.findall(r"^(\S+):(\w+) up after [\d.]+ s; ([\d. ]+)$", text, re.MULTILINE):
        rates[model, option] = [float(one) for one in numbers.split()]
    for model, option, words in re.findall(r"^SERVED (\S+) (\w+) start \S+ (.*)$", text, re.MULTILINE):
        if model.startswith("qwen3-30b"):  # the first run ended before this model's option was up
            rates[model, option.replace("quant", "experts")] = [load["tok_s"] for load in json.loads(words).values()]
    return rates


def served():
    rates = served_rates()
    shown = [("qwen3-8b", "attention", "Qwen3-8B, BF16\nattention"), ("qwen3-8b-fp8", "experts", "Qwen3-8B, FP8 blocks\n--quantization thresher"),
             ("qwen3-8b-fp8", "both", "Qwen3-8B, FP8 blocks\nboth"), ("qwen3-30b-fp8", "experts", "Qwen3-30B-A3B, FP8 blocks\n--quantization thresher")]
    figure, axes = axes_of(8, 3.4)
    for at, (model, option, _) in enumerate(shown):
        for place, (own, default) in enumerate(zip(rates[model, option], rates[model, "default"])):
            x = at + (place - 1.5) * 0.2
            axes.bar(x, own / default - 1, 0.18, bottom=1, color=OWN if own >= default else LOSS, alpha=1 - 0.17 * place)
            axes.text(x, max(own / default, 1) + 0.004, f"{own / default:.2f}", ha="center", fontsize=6)
    axes.axhline(1, color=INK, linewidth=1)
    axes.set_xticks(range(len(shown)), [words for *_, words in shown], fontsize=7.5)
    axes.set(ylim=(0.8, 1.12), ylabel="tokens a second / vLLM's default")
    axes.set_title("vLLM 0.33.0, random weights, one H200; bars: 1, 8 and 64 sequences, prefill", fontsize=9)
    return figure


def host_cost():
    costs = tables.load("python_host_cost_native_h200_2026-11-27.json")
    names = ["torch.mm", "torch.nn.functional.linear", "dual_gemm", "gemm_packed", "gated_mlp", "moe", "attention", "attention, pages", "append"][::-1]
    figure, axes = axes_of(7, 3.6)
    for at, name in enumerate(names):
        axes.barh(at + 0.2, costs["host_us"][name], 0.38, color=PEERS[0] if name.startswith("torch") else OWN,
                  label="C++ operators" if at == 0 else None)
        if not name.startswith("torch"):
            axes.barh(at - 0.2, costs["host_us_by_ctypes"][name], 0.38, color="#79c0ff", label="ctypes (PyTorch before 2.10)" if at == 0 else None)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_xlabel("µs of host time a call")
    axes.legend(fontsize=7)
    return figure


def predictions():
    text = (tables.ROOT / "measurements/predictions_suites_h200_2026-11-21.txt").read_text()
    points = [(float(p), float(m)) for p, m in re.findall(r"^ +\d+ +([\d.]+) +([\d.]+) +[-+]\d+ %", text, re.MULTILINE)]
    figure, axes = axes_of(5, 4.2)
    low, high = min(map(min, points)) * 0.8, max(map(max, points)) * 1.2
    axes.fill_between([low, high], [low * 0.9, high * 0.9], [low * 1.1, high * 1.1], color=GRID, linewidth=0, label="±10 %")
    axes.plot(*zip(*points), "o", color=OWN, markersize=4)
    axes.plot([low, high], [low, high], color=INK, linewidth=0.8)
    error = statistics.median(abs(p / m - 1) for p, m in points)
    axes.set(xscale="log", yscale="log", xlabel="predicted µs", ylabel="measured µs", xlim=(low, high), ylim=(low, high),
             title=f"{len(points)} times, median error {100 * error:.1f} %")
    axes.legend(fontsize=7)
    return figure


def boxes(steps, width, notes=""):
    """A row of boxes with arrows."""
    figure, axes = plt.subplots(figsize=(width, 1.9), layout="constrained")
    axes.axis("off")
    axes.set(xlim=(-0.6, len(steps) - 0.4), ylim=(-0.9, 0.8))
    for at, (title, words) in enumerate(steps):
        axes.text(at, 0.1, f"{title}\n", ha="center", va="center", fontsize=9, weight="bold")
        axes.text(at, -0.1, words, ha="center", va="center", fontsize=6.8)
        axes.add_patch(matplotlib.patches.FancyBboxPatch((at - 0.4, -0.5), 0.8, 1.05, boxstyle="round,pad=0.02", fill=False, edgecolor=OWN))
        if at:
            axes.annotate("", (at - 0.43, 0), (at - 0.57, 0), arrowprops={"arrowstyle": "->", "color": INK})
    axes.text(-0.45, -0.8, notes, fontsize=7)
    return figure


def call():
    return boxes([("pack", "repack weights\nonce per device"), ("plan", "choose strategy and\nknobs, compile"), ("cache", "built in, on disk,\nor NVRTC"),
                  ("run", "launch on the\ncaller's stream"), ("kernel", "reads counts, pages,\nlengths on the GPU")], 8.5,
                 "pack, plan: at model load. run: allocates nothing and never synchronizes; can be captured in a CUDA graph.")


def emulator():
    return boxes([("device code", "one source, written\nagainst a thin API"), ("CPU body", "each instruction\nas a C++ function"),
                  ("schedules", "seeded orders of\nthreads and copies"), ("checks", "races, deadlocks,\nout of bounds"),
                  ("finding", "one sentence, and the\nseed that repeats it")], 8.5, "The same source compiles to PTX for the GPU.")


def checks():
    return boxes([("feasible", "memory,\nformats"), ("compiles", "NVRTC or\nhost"), ("audited", "machine\ncode"), ("race-free", "emulator"),
                  ("correct", "against\nfloat64"), ("honest", "cheat\nexperiments"), ("timed", "beside the\nbaseline"), ("verdict", "against the\nprediction")], 10,
                 "A kernel stops at the first check that it fails. The predicted speed-up is logged before the first.")


DRAWN = [speed_up, dense, mlps, moe_layers, decode, prefill, served, host_cost, predictions, call, emulator, checks]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    matplotlib.rcParams.update({"svg.hashsalt": "thresher", "svg.fonttype": "path", "font.family": "DejaVu Sans", "text.color": INK,
                                "axes.edgecolor": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "grid.color": GRID,
                                "legend.framealpha": 0, "font.size": 9})
    stale = []
    for draw in DRAWN:
        path = PICTURES / f"{draw.__name__}.svg"
        if tables.is_stale(path, svg(draw()), arguments.check):
            stale.append(path.name)
    if arguments.check and stale:
        raise SystemExit(f"docs/pictures/{', '.join(stale)}: not what measurements/ gives; run scripts/docs.sh pictures")


if __name__ == "__main__":
    main()
