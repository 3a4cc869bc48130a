#!/usr/bin/env python3
"""Writes the generated pages of docs/reference from the `thresher` command: command line, arguments of
kernels, knobs and support matrix.

  docs_reference.py [--check] [THRESHER]      (build/default/src/cli/thresher)

--check writes nothing and exits with 1 when a page differs. No GPU is needed: `plan` answers for any card of its table.
"""
import argparse
import json
import lzma
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "reference"
FORMATS = ["bf16", "fp16", "fp8_tensor", "fp8_row", "fp8_block", "nvfp4"]
NOTE = "<!-- Written by scripts/docs_reference.py: do not edit. -->"
# Files of timed rows that were compared with float64, and the operation of each.
PEERS = {"dual_gemm_": "dual_gemm", "dense_fp8_": "dual_gemm", "grouped_peers_": "grouped_dual_gemm"}
# An operation, and the words of `plan` for a shape of it.
PRODUCTS = [("dual_gemm", ["256x4096x7168"]), ("gemm", ["gemm", "--m", "256", "--n", "4096", "--k", "4096"]),
            ("grouped_dual_gemm", ["grouped-dual-gemm", "--experts", "16", "--rows", "1024", "--n", "2048", "--k", "2048"]),
            ("grouped_gemm", ["grouped-gemm", "--experts", "16", "--rows", "1024", "--n", "2048", "--k", "2048"])]
CARDS = [("Hopper", "H200"), ("Blackwell", "B200")]
ATTENTION = [("one sequence, bf16", ["--queries", "2048"]), ("paged prefill, bf16", ["--queries", "512", "--keys", "4096", "--page-size", "16"]),
             ("paged decode, bf16", ["--batch", "16", "--queries", "1", "--keys", "4096", "--page-size", "16"]),
             ("paged prefill, FP8 keys", ["--queries", "512", "--keys", "4096", "--page-size", "16", "--fp8-keys"]),
             ("paged prefill, FP8 queries and keys", ["--queries", "512", "--keys", "4096", "--page-size", "16", "--fp8-keys", "--fp8-queries"])]
# Columns of queries and keys, and of values.
WIDTHS = [("64", "64"), ("128", "128"), ("192", "192"), ("192", "128"), ("256", "256")]
LATENT = ("576", "512")


class Command:
    def __init__(self, path):
        self.path = path

    def run(self, *arguments):
        return subprocess.run([self.path, *arguments], capture_output=True, text=True, env={"HOME": "/nonexistent", "PATH": "/usr/bin:/bin", "COLUMNS": "100"})

    def help(self, *words):
        text = self.run(*words, "--help").stdout
        # A default path is this machine's.
        return re.sub(r"=/\S*?/(ledger\.sqlite|calibration\.toml)", r"=~/…/\1", text).replace("/nonexistent", "~")

    def plan(self, *arguments):
        """The strategies that `plan` would launch, and those that it has a reason against."""
        done = self.run("plan", *arguments, "--json", "--refused", "--top", "1000")
        found = json.loads(done.stdout) if done.stdout else {}  # the status is 1 where nothing can be planned
        return [{one["strategy"] for one in found.get(key, [])} for key in ("choices", "refused")]

    def choices(self, *arguments, known=()):
        """The strategies that can be planned, those among `known` that are planned by their name alone too."""
        chosen, refused = self.plan(*arguments)
        for strategy in set(known) - chosen - refused:
            chosen |= self.plan(*arguments, "--strategy", strategy)[0]
        return chosen


def subcommands(text):
    part = text.partition("Subcommands:\n")[2]
    return re.findall(r"^  ([a-z][a-z_-]*)\s", part, re.MULTILINE)


def command_line(command):
    lines = ["# Command line: all options", "", NOTE, "",
             "[The command line](../guides/command-line.md) says what each command is for. `thresher COMMAND --help` prints these texts.", ""]

    def add(words, level):
        text = command.help(*words)
        lines.extend(["#" * level + f" thresher {' '.join(words)}".rstrip(), "", "```text", *[line.rstrip() for line in text.strip("\n").split("\n")], "```", ""])
        for name in subcommands(text):
            add([*words, name], min(level + 1, 4))

    add([], 2)
    return "\n".join(lines)


def kernel_arguments(command):
    return "\n".join([
        "# What a kernel of your own is given", "", NOTE, "",
        "[Kernels of your own](../harness/bring-your-own.md) says how a kernel enters a tournament. It gets a structure of its operation, from",
        "`thresher/own_kernel.h`, or arrays. A parameter of a Python function is bound by its name. The tensors that every problem has may be bound",
        "by their place instead, with `out` last. A problem may have a value that is not the one under *without the parameter*. A function without",
        "that parameter is then refused. `thresher kernel-arguments` prints the tables.", "", command.run("kernel-arguments").stdout])


def values(text):
    """Allowed values, with an even run of numbers written as its ends."""
    words = text.split(", ")
    if len(words) < 6 or not all(re.fullmatch(r"-?\d+", word) for word in words):
        return ", ".join(f"`{word}`" for word in words)
    numbers = [int(word) for word in words]
    runs = [[numbers[0]]]
    for number in numbers[1:]:
        run = runs[-1]
        if len(run) < 2 or number - run[-1] == run[1] - run[0]:
            run.append(number)
        else:
            runs.append([number])
    parts = []
    for run in runs:
        step = run[1] - run[0] if len(run) > 1 else 0
        parts.append(", ".join(f"`{one}`" for one in run) if len(run) < 4
                     else f"`{run[0]}` to `{run[-1]}`" + (f" in steps of {step}" if step > 1 else ""))
    return ", ".join(parts)


def knob_table(text):
    strategy = None
    for line in text.rstrip("\n").split("\n"):
        if knob := re.match(r"  (\S+)\s+(.*): ([^:]*)$", line):
            yield f"| `{knob[1]}` | {knob[2]} | {values(knob[3])} |"
        elif found := re.match(r"([a-z_0-9]+): (.*)$", line):
            strategy = found[1]
            yield from ["", f"### {strategy}", "", f"{found[2][:1].upper()}{found[2][1:]}.", "", "| knob | meaning | values |", "|---|---|---|"]


def knobs(command):
    lines = ["# Strategies and knobs", "", NOTE, "",
             "A strategy is one way to compute an operation, and a knob a choice within it that is compiled in. The planner sets all of them.",
             "A call may override some: `--knobs \"stages=3\"` on the command line, `Knobs` in C++. `thresher plan --help-knobs` prints these texts.", ""]
    for title, words in (("Gate and up products, dense and grouped", []), ("Plain products", ["gemm"]), ("Attention", ["attention"])):
        lines += [f"## {title}", *knob_table(command.run("plan", *words, "--help-knobs").stdout), ""]
    return "\n".join(lines)


def recorded():
    """(operation, strategy) -> what its recorded runs on a GPU passed: the newest file of each."""
    passed = {}
    for path in sorted((ROOT / "measurements").glob("*.json*"), key=lambda one: one.name.split(".")[0][-10:]):
        with (lzma.open if path.suffix == ".xz" else open)(path) as file:
            run = json.load(file)
        operation = next((PEERS[one] for one in PEERS if path.name.startswith(one)), None)
        for row in run.get("rows", []) if operation and isinstance(run, dict) else []:
            if row.get("kind") == "thresher" and row.get("correct"):
                strategy = re.search(r"\((\w+)\)$", row["name"]) or re.match(r"thresher (\w+)", row["name"])
                passed.setdefault((operation, strategy[1]), {}).update(correct=path.name, timed=path.name)
        if not isinstance(run, dict) or "entries" not in run or not str(run.get("device", "")).startswith("cuda"):
            continue
        for entry in run["entries"]:
            for gate in entry["gates"]:
                if gate["outcome"] == "passed" and gate["gate"] in ("correct", "timed"):
                    passed.setdefault(tuple(entry["contestant"].split("[")[0].split("/")[:2]), {})[gate["gate"]] = path.name
    # Times of every configuration of the grouped GEMM: lines that are not marked as wrong.
    for path in sorted((ROOT / "measurements").glob("grouped_down_*.txt.xz")):
        with lzma.open(path, "rt") as file:
            for strategy in set(re.findall(r"^ +[\d.]+ us .* error [\d.e-]+  (\w+) (?!.*WRONG)", file.read(), re.MULTILINE)):
                passed.setdefault(("grouped_gemm", strategy), {}).update(correct=path.name, timed=path.name)
    return passed


def emulated(command, operation):
    found = re.search(r"--strategy TEXT:\{([^}]*)\}", command.help("emulate", operation))
    return set(found[1].split(",")) if found else set()


def pairs(command, arguments, card, known):
    """strategy -> the formats of tokens and weights that it can be planned for."""
    found = {}
    for a in FORMATS:
        for b in FORMATS:
            for strategy in command.choices(*arguments, "--a", a, "--b", b, "--device", card, known=known):
                found.setdefault(strategy, []).append((a, b))
    return found


def words_of(formats):
    """`bf16, fp16 × nvfp4`: weights that the same tokens are multiplied with are joined."""
    by_weights, by_tokens = {}, {}
    for a, b in formats:
        by_weights.setdefault(b, []).append(a)
    for weights, tokens in by_weights.items():
        by_tokens.setdefault(tuple(tokens), []).append(weights)
    return "; ".join(f"{', '.join(tokens)} × {', '.join(weights)}" for tokens, weights in by_tokens.items()) or "–"


def outputs(command, arguments, card, formats):
    """Lines for a card: the output formats that some strategy of it gives, and for which pairs."""
    option = "--out" if arguments[0] not in ("gemm", "grouped-dual-gemm", "grouped-gemm") else "--out-type"
    by_outputs = {}
    for a, b in sorted(formats, key=lambda pair: [FORMATS.index(one) for one in pair]):
        found = [out for out in [*FORMATS, "fp32"] if command.choices(*arguments, "--a", a, "--b", b, option, out, "--device", card)]
        by_outputs.setdefault(", ".join(found), []).append((a, b))
    return [f"{found} of {words_of(pairs)}" for found, pairs in by_outputs.items() if found]


def file_link(name):
    return f"[yes](../../measurements/{name})" if name else "no record"


def plain_products():
    """What the newest run beside cuBLAS says: its rows name the planner's choice by no strategy."""
    name = max(path.name for path in (ROOT / "measurements").glob("plain_products_*.json.xz"))
    with lzma.open(ROOT / "measurements" / name) as file:
        rows = json.load(file)["rows"]
    assert all(row["norm_errors"]["thresher"] < 1e-2 for row in rows), name
    return f"The planner's choices for {len(rows)} BF16 products ran on an H200, were right and were timed ([file](../../measurements/{name})). The file names no strategy."


def matrix(command):
    passed = recorded()
    lines = ["# Support matrix", "", NOTE, "",
             "The registries of the `thresher` command and the files under `measurements/` give this page.", "",
             "- **Hopper, Blackwell**: the strategy can be planned and compiled for that card, in some cases only by its name. Formats are written *tokens × weights*.",
             "- **Emulated**: `thresher emulate` runs its kernels on a CPU.",
             "- **Run**: a recorded match ([glossary](glossary.md#how-it-is-judged)) on an H200 passed the gate `correct`, or a recorded comparison with peers found its values right.",
             "- **Timed**: it was timed there too. The link is the newest file.",
             "- *No record* means that no such file has this strategy. Tests and other measurements may have run it.",
             "- Behind each table: the output formats that the strategies of a card give, and for which tokens and weights.", "",
             "No kernel has run on a Blackwell card. CPUs run every operation with every pair of formats and every output: dual GEMMs by",
             "`interleaved` or `two_pass`, the other products by `by_expert`.", ""]
    for operation, arguments in PRODUCTS:
        known = emulated(command, operation)
        by_card = {title: pairs(command, arguments, card, known) for title, card in CARDS}
        lines += [f"## {operation}", "", "| strategy | Hopper | Blackwell | emulated | run | timed |", "|---|---|---|---|---|---|"]
        for strategy in sorted(set().union(*by_card.values())):
            gates = passed.get((operation, strategy), {})
            lines.append(f"| `{strategy}` | " + " | ".join(words_of(by_card[title].get(strategy, [])) for title, _ in CARDS)
                         + f" | {'yes' if strategy in known else 'no'} | {file_link(gates.get('correct'))} | {file_link(gates.get('timed'))} |")
        lines.append("")
        for title, card in CARDS:
            lines += [f"- Outputs on {title}: {one}" for one in outputs(command, arguments, card, set().union(*by_card[title].values()))]
        lines.append("")
        if operation == "gemm":
            lines += [plain_products(), ""]
    lines += ["## attention", "", "| strategy | head dimensions on Hopper | emulated | run | timed |", "|---|---|---|---|---|"]
    known, found = emulated(command, "attention"), {}
    for words, arguments in ATTENTION:
        for columns in WIDTHS:
            for strategy in attention_choices(command, arguments, columns, known):
                found.setdefault(strategy, {}).setdefault(words, []).append("/".join(dict.fromkeys(columns)))
    for strategy in sorted(found):
        gates = passed.get(("attention", strategy), {})
        shapes = "; ".join(f"{words}: {', '.join(dimensions)}" for words, dimensions in found[strategy].items())
        lines.append(f"| `{strategy}` | {shapes} | {'yes' if strategy in known else 'no'} | {file_link(gates.get('correct'))} | {file_link(gates.get('timed'))} |")
    has_latent = any(attention_choices(command, arguments, LATENT, known) for _, arguments in ATTENTION)
    lines += ["", "`192/128`: 192 columns of queries and keys, and 128 of values. "
              + f"Multi-head latent attention (MLA) over its latent cache has {' and '.join(LATENT)} columns: "
              + ("some strategy can be planned." if has_latent else "**no GPU kernel computes it, and CPUs do.**"), "",
              "Attention has no kernels for Blackwell.", "", "## moe_layer and gated_mlp", "",
              "A layer is planned from the products above. Recorded matches:", "", "| operation | strategy | run | timed |", "|---|---|---|---|"]
    for (operation, strategy), gates in sorted(passed.items()):
        if operation in ("moe_layer", "gated_mlp"):
            lines.append(f"| {operation} | `{strategy}` | {file_link(gates.get('correct'))} | {file_link(gates.get('timed'))} |")
    return "\n".join([*lines, ""])


def attention_choices(command, arguments, columns, known):
    """Those that can be planned, by themselves or by their name alone: the planner passes over some that a better one comes before."""
    problem = ("attention", "--heads", "8", *arguments, "--head-dim", columns[0], "--value-dim", columns[1], "--bf16", "--device", "H200")
    return {strategy for strategy in known if command.plan(*problem, "--strategy", strategy)[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("thresher", nargs="?", default=str(ROOT / "build/default/src/cli/thresher"))
    arguments = parser.parse_args()
    command = Command(arguments.thresher)
    stale = []
    for name, make in (("command-line.md", command_line), ("kernel-arguments.md", kernel_arguments), ("knobs.md", knobs), ("support-matrix.md", matrix)):
        text = make(command).rstrip("\n") + "\n"
        path = PAGES / name
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if not arguments.check:
                path.write_text(text)
    if arguments.check and stale:
        raise SystemExit(f"docs/reference/{', '.join(stale)}: not what the command says; run scripts/docs_reference.py")


if __name__ == "__main__":
    main()
