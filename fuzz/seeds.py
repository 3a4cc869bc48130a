#!/usr/bin/env python3
"""Writes seeds for the fuzzers: what the hostile inputs of tests/hostile/ give a target to read, what the project itself
keeps of its kind, and the target's own in fuzz/NAME_seeds.

usage: seeds.py FOLDER        makes FOLDER/NAME for every target
"""
import pathlib
import shutil
import struct
import sys
import tomllib

root = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root / "tests/hostile"))
from run import make  # noqa: E402

MOST_BYTES = 4096
# Target: the files of which groups it reads, and files of the project.
SOURCES = {
    "safetensors": ([("safetensors", "x.safetensors"), ("quantize", "x.safetensors"), ("attention", "a.safetensors")], []),
    "shard_index": ([("shards", "model.safetensors.index.json")], []),
    "model_config": ([("layers", "config.json")], []),
    "packed_weights": ([("packed", "p.thp")], []),
    "suite": ([("suites", "s.toml")], ["suites/*.toml", "examples/**/small.toml"]),
    "pitch": ([("pitches", "p.toml"), ("kernels", "p.toml")], ["pitches/**/*.toml", "examples/**/naive*.toml"]),
    "parameters": ([("plan", "cal.toml")], ["measurements/calibration_*.toml"]),
    "cache_entry": ([], []),
    "ledger_json": ([], []),
    "predicted": ([("predict", "p.toml")], ["measurements/published_*.toml"]),
    "listing": ([], ["tests/arena/audit/*.sass", "tests/arena/audit/resources.txt"]),
    "wire": ([], []),
    "value": ([], []),
    "command_line": ([], []),
}
COMMAND_LINES = [
    "run --seed 7 --window 1,2", "run --scale 1e3 --on", "run --numerics fast --m 3", "plan 256x4096x7168",
    "plan 1x8x16 --a bf16 --b bf16 --out fp32", "run --window 1 2 --seed 18446744073709551616", "--help",
    "plan 99999999999x1x1", "run --m -1", "run --on=maybe", "walk", "run --scale nan --nonsense 1"]
LEDGER_JSON = [  # in the order of the target's cases
    '{"clock":"wall clock","lowest_mhz":2400.0,"highest_mhz":2600.0,"throttle_reasons":["power cap"]}',
    '{"title":"x","claim":{"speedup_low":1.5,"speedup_high":1.8,"confidence":0.9}}',
    '{"claimed":[1.5,1.8],"predicted":1.4,"predicted_interval":[1.27,1.54]}',
    '{"suites":[{"name":"origin","title":"t","timed":true,"text":""}],"pitches":[],"seconds":6}',
    '{"cold burst":{"geomean_speedup":1.2,"low":1.1,"high":1.3,"noise":1.01,"rounds":12,"each":[1.0]}}',
    '{"shard":{"number":1,"count":2,"matches":[{"suite":"s","contestant":"a","baseline":"a","shard":1}]},"pitches":[{"file":"p"}]}',
    '{"merged":{"count":2,"missing":[1],"shards":[{"shard":2,"device":"cpu","machine":{"name":"n"},"started":"","ended":"","hash":"ab","entries":[0]}]}}',
    '[[{"a":null,"b":[1,2.5e300,-3,true,"\\u0000"]}]]']
PREDICTED = [b"", b'{"dual_gemm":[{"problem":"p","contestants":[{"contestant":"c","low_us":1,"high_us":3},'
            b'{"contestant":"d","low_us":5,"high_us":6}]}],"grouped":[]}',
            b'{"entries":[{"contestant":"c","measurements":[{"problem":"p","mode":"cold burst","rounds":3,'
            b'"contestant_us":{"value":2}}]},{"contestant":"d","measurements":[]}]}']
VALUES = [  # the same
    [b"stages=3 split_k=2", b"dependent_launch", b"=", b"a=b a=c"],
    [b"max_registers\0" b"168", b"matrix\0HGMMA", b"min_wide_share\0" b"0.9", b"shared_memory\0true"],
    [b"-O2", b"-Isrc", b"-DX=1", b"-fplugin=x.so", b"@file", b"--std=c++20", b"-Wl,-z"],
    [b"div_up(m, 8) * max(n, 3) - min(k, 2) / 1", b"((m))", b"0-1", b"9223372036854775808", b"m/0"],
    [b"*.weight\0model.layers.0.weight", b"a?c\0abc", b"*embed*\0x", b"**a*\0aaab"],
    ["größer 重 \x1b[31m\u202e\u009b".encode() + b"\0" + b"x" * 9, b"\xed\xa0\x80\xf4\x90\0abc"]]


def field(words):
    return struct.pack("<Q", len(words)) + words


def text(words):
    return struct.pack("<I", len(words)) + words


def made():
    """Seeds that are no text of a file: of which target, and bytes."""
    for words in COMMAND_LINES:
        yield "command_line", "\0".join(words.split()).encode()
    for kind, json in enumerate(LEDGER_JSON):
        yield "ledger_json", bytes([kind]) + json.encode()
    for kind, values in enumerate(VALUES):
        for value in values:
            yield "value", bytes([kind]) + value
    yield "predicted", b"\0".join(PREDICTED)
    kernel = field(b"expression") + field(b"_Zname") + struct.pack("<6Q", 168, 0, 0, 0, 1024, 1)
    yield "cache_entry", b"".join(map(field, [b"key", b"sm_90a", b"NVRTC 13.0", b"a log", b"\x7fELF"])) + struct.pack("<Q", 1) + kernel
    yield "cache_entry", b"".join(map(field, [b"key", b"", b"", b"", b""])) + struct.pack("<Q", 2**40)
    answer = struct.pack("<II", 7, 0)
    yield "wire", bytes([3, 0, 0, 2, 1]) + answer + text(b"text")
    yield "wire", bytes([0]) + struct.pack("<III", 7, 1, 3) + text(b"it failed")
    yield "wire", bytes([2, 0, 4]) + struct.pack("<I", 8) + bytes(512)


def main(folder):
    for target, (groups, patterns) in SOURCES.items():
        out = folder / target
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        for group, name in groups:
            data = tomllib.loads((root / f"tests/hostile/{group}.toml").read_text())
            for number, case in enumerate(data["case"]):
                recipe = (data.get("files", {}) | case.get("files", {})).get(name)
                if recipe is None or isinstance(recipe, dict) and {"link", "fifo", "folder", "size"} & recipe.keys():
                    continue
                path = out / f"{group}_{number}"
                make(path, recipe, data.get("texts", {}))
                if path.stat().st_size > MOST_BYTES:
                    path.unlink()
        for pattern in patterns + [f"fuzz/{target}_seeds/*"]:
            for path in root.glob(pattern):
                (out / path.name).write_bytes(path.read_bytes()[:MOST_BYTES])
    for number, (target, seed) in enumerate(made()):
        (folder / target / f"made_{number}").write_bytes(seed)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
