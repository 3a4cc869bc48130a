"""The tables of served models, of files of bench/serve_transformers.py and bench/serve_engine.py (bench/readme_table.py)."""


def table(titles, rows):
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [titles, ["---"] * len(titles), *rows])


def against(value, default):
    """A number of tokens a second and its ratio to the default's, in bold type where it is lower."""
    if value is None:
        return "–"
    shown = f"{value:.0f}"
    if default is None or value is default:
        return shown
    ratio = f"{value / default:.2f}×"
    return f"{shown} ({ratio if value >= default else f'**{ratio}**'})"


def batches_of(models):
    names = {name for model in models for option in model["options"].values() for name in option if name.startswith("batch ")}
    return sorted((name for name in names if not name.endswith("compiled")), key=lambda name: int(name.split()[1]))


def of_transformers(result):
    """Tokens a second of each option, each with those before it, and how far its logits are from float32."""
    batches, rows = batches_of(result["models"]), []
    for model in result["models"]:
        default = model["options"]["default"]
        for option, row in model["options"].items():
            if row.get("replaced") == 0:
                continue
            speeds = [against(row.get(name, {}).get("tokens_per_s"), None if option == "default" else default.get(name, {}).get("tokens_per_s"))
                      for name in batches]
            agreed = row["agreement"]
            title = f"{model['model']}, {model['layers']} layers" if option == "default" else ""
            rows.append([title, option, *speeds, f"{agreed['difference']:.4f}", f"{agreed['same']} + {agreed['ties']} of {agreed['choices']}"])
    return table(["model", "option", *batches, "RMS error", "tokens as float32's, + ties"], rows)


def tokens_alike(found, expected):
    """How many greedy tokens are the expected ones, up to the first of each sequence that differs."""
    return sum(next((i for i, (a, b) in enumerate(zip(own, other)) if a != b), len(own)) for own, other in zip(found, expected))


def loads_of(results):
    return sorted({(load["prompt"], load["sequences"]) for one in results for load in one["loads"]})


def output_of(one, at):
    """Tokens a second of a load (prompt, sequences)."""
    return next((load["output_throughput"] for load in one["loads"] if (load["prompt"], load["sequences"]) == at), None)


def of_engine(results):
    """Tokens a second and seconds until the server answers, of each model and option; in brackets ratios to the model's default."""
    results = [one for one in results if one["loads"]]
    loads, rows = loads_of(results), []
    defaults = {one["model"]: one for one in results if one["option"] == "default"}
    for one in sorted(results, key=lambda one: (one["model"], one["option"] != "default", one["option"])):
        default = defaults.get(one["model"])
        reference = default if one is not default else None
        speeds = [against(output_of(one, at), reference and output_of(reference, at)) for at in loads]
        same = f"{tokens_alike(one['greedy'], reference['greedy'])} of {sum(map(len, one['greedy']))}" if reference else "–"
        rows.append(["" if reference else one["model"], one["option"], *speeds, f"{one['start_s']:.0f} s", same])
    return table(["model", "option", *(f"{sequences} × {prompt}" for prompt, sequences in loads), "start", "greedy tokens as default"], rows)
