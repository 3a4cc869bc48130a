"""What bench/layers.py is asked for, and what becomes of its parts: without torch and without a GPU."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
import layer_models  # noqa: E402
import layer_results  # noqa: E402


def row(model, tokens, us, format_name="bf16", **roles):
    return {"kind": "dense", "model": model, "part": "MLP", "format": format_name, "tokens": tokens, "median_us": us, "norm_errors": {}, "wrong": [],
            "roles": {name: roles.get(name, "own" if name == "thresher" else "peer") for name in us}}


def part(rows, commit="a", **method):
    return {"machine": {}, "toolchain": {}, "method": method, "commit": commit, "rows": rows, "not_run": []}


class Selection(unittest.TestCase):
    def test_everything_by_default(self):
        layers, tokens = layer_models.selected()
        self.assertEqual([layer for layer, _ in layers], layer_models.LAYERS)
        self.assertEqual(tokens, list(layer_models.TOKENS))

    def test_parts_of_names_choose_layers(self):
        layers, tokens = layer_models.selected("moe", "qwen3,oss", "bf16,fp8_row", "1,16")
        self.assertEqual([(layer.model, formats) for layer, formats in layers],
                         [("Qwen3-30B-A3B", ["bf16", "fp8_row"]), ("Qwen3-235B TP4", ["bf16", "fp8_row"]), ("gpt-oss-20b", ["bf16"]),
                          ("gpt-oss-120b", ["bf16"])])
        self.assertEqual(tokens, [1, 16])

    def test_an_unknown_format_is_refused(self):
        with self.assertRaises(SystemExit):
            layer_models.selected(formats="int4")

    def test_names_of_layers_differ(self):
        names = [(layer.kind, layer.name) for layer in layer_models.LAYERS]
        self.assertEqual(len(names), len(set(names)))

    def test_one_token_reads_the_weights_of_its_experts_alone(self):
        layer = next(one for one in layer_models.LAYERS if one.model == "Qwen3-30B-A3B" and one.kind == "moe")
        self.assertEqual(layer.weight_bytes("bf16", 1), 8 * 3 * 2048 * 768 * 2)


class Results(unittest.TestCase):
    def test_a_later_part_replaces_rows_of_the_same_case(self):
        merged = layer_results.merged([part([row("A", 1, {"thresher": 2.0}), row("B", 1, {"thresher": 3.0})]),
                                       part([row("A", 1, {"thresher": 1.0})], commit="b")])
        self.assertEqual([one["median_us"]["thresher"] for one in merged["rows"]], [1.0, 3.0])
        self.assertEqual(merged["commit"], "a, b")

    def test_peers_of_another_part_are_kept_and_the_lowest_ratio_counts(self):
        merged = layer_results.merged([part([row("A", 1, {"thresher": 2.0, "torch": 4.0})]), part([row("A", 1, {"thresher": 4.0, "triton": 6.0})])])
        self.assertEqual([(found[3], found[4]) for found in layer_results.summary(merged["rows"])], [(1, 1.5)])

    def test_parts_of_different_methods_are_refused(self):
        with self.assertRaises(SystemExit):
            layer_results.merged([part([], rounds=15), part([], rounds=5)])

    def test_ratios_are_against_the_best_peer_of_the_same_numerics(self):
        us = {"thresher": 2.0, "slow": 6.0, "fast": 1.0, "torch_bf16": 8.0}
        found = layer_results.ratios(row("A", 1, us, fast="fast peer", torch_bf16="anchor"))
        self.assertEqual(found, {"peer": 3.0, "bf16": 4.0})

    def test_the_summary_names_the_worst_case(self):
        rows = [row("A", 1, {"thresher": 1.0, "torch": 2.0}), row("B", 16, {"thresher": 2.0, "torch": 1.0}), row("B", 4096, {"thresher": 1.0})]
        self.assertEqual(layer_results.summary(rows), [("dense", "bf16", "1 to 16 tokens", 2, 1.0, 0.5, "B MLP, 16")])

    def test_a_compressed_file_holds_what_was_written(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("one.json", "one.json.xz"):
                path = pathlib.Path(folder) / name
                layer_results.write(path, part([]))
                self.assertEqual(layer_results.load(path), json.loads(json.dumps(part([]))))


if __name__ == "__main__":
    unittest.main()
