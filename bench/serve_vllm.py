#!/usr/bin/env python3
"""Serves models of real shapes with random weights by vLLM on this GPU, as vLLM does by itself and with Thresher.

  serve_vllm.py --out FILE.json [MODEL:OPTION ...]      all models with all their options when none is named

MODEL: qwen3-8b (BF16), qwen3-8b-fp8, qwen3-30b-a3b-fp8 (FP8 with scales of 128 by 128). OPTION: default, attention
(--attention-backend CUSTOM), experts (--quantization thresher), both. Each runs in a process of its own, with decoding in CUDA graphs
and without torch.compile. Prompts are random tokens, the same for all options; every load is run twice, and the faster run counts.
FILE.json holds, for each, the seconds until it was up, tokens a second, and how many of the greedy tokens are those of `default`.
"""

import argparse
import copy
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

from draw_model import SHAPES

_FP8 = dict(quant_method="fp8", fmt="e4m3", activation_scheme="dynamic", weight_block_size=[128, 128])
MODELS = {"qwen3-8b": SHAPES["qwen3-8b"], **{f"{name}-fp8": dict(SHAPES[name], quantization_config=_FP8) for name in ("qwen3-8b", "qwen3-30b-a3b")}}
OPTIONS = {"default": {}, "attention": dict(attention_backend="CUSTOM"), "experts": dict(quantization="thresher"),
           "both": dict(quantization="thresher", attention_backend="CUSTOM")}
LOADS = ((1, 128, 128), (8, 128, 128), (64, 128, 128), (8, 2048, 1))  # sequences, tokens of a prompt, new tokens
LIMIT_S = 300


def all_runs() -> list[str]:
    return [f"{model}:{option}" for model, config in MODELS.items() for option in OPTIONS
            if "quantization_config" in config or "quantization" not in OPTIONS[option]]


def prompts(sequences: int, length: int) -> list[dict]:
    draw = random.Random(sequences * 100_000 + length)
    return [{"prompt_token_ids": [draw.randrange(3, 150_000) for _ in range(length)]} for _ in range(sequences)]


def serve(model: str, option: str, folder: str) -> dict:
    """In a process of its own."""
    os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_LOGGING_LEVEL="WARNING", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1",
                      VLLM_USE_FLASHINFER_SAMPLER="0", VLLM_DEEP_GEMM_WARMUP="skip")
    (pathlib.Path(folder) / "config.json").write_text(json.dumps(MODELS[model]))
    begin = time.time()
    from vllm import LLM, SamplingParams

    engine = LLM(model=folder, skip_tokenizer_init=True, load_format="dummy", max_model_len=4096, gpu_memory_utilization=0.7, seed=0,
                 max_num_seqs=64, max_num_batched_tokens=8192, enable_prefix_caching=False,
                 compilation_config=dict(mode=0, cudagraph_mode="FULL_DECODE_ONLY", cudagraph_capture_sizes=[1, 8, 64]), **OPTIONS[option])
    result: dict = dict(model=model, option=option, start_s=round(time.time() - begin, 1), loads=[])
    for sequences, length, new in ((1, 16, 8), *LOADS):
        given = prompts(sequences, length)
        sampling = SamplingParams(temperature=0, max_tokens=new, min_tokens=new, ignore_eos=True, detokenize=False)
        runs = []
        for _ in range(2):
            begin = time.time()
            found = engine.generate(given, sampling, use_tqdm=False)
            runs.append(time.time() - begin)
        tokens = [list(one.outputs[0].token_ids) for one in found]
        counted = sequences * (new if new > 1 else length)
        result["loads"].append(dict(sequences=sequences, prompt=length, new=new, seconds=[round(one, 4) for one in runs],
                                    tokens_per_s=round(counted / min(runs), 1), greedy=tokens))
    del result["loads"][0]  # a warm-up
    return result


def write(path: str, where: dict, results: list[dict]) -> None:
    results = copy.deepcopy(results)
    against_default(results)
    pathlib.Path(path).write_text(json.dumps(dict(machine=where, loads=LOADS, results=results), indent=1) + "\n")


def against_default(results: list[dict]) -> None:
    """Replaces the greedy tokens of each load by how many of them the default option gave too, up to the first that differs."""
    first = {one["model"]: one for one in results if one["option"] == "default" and "loads" in one}
    expected = {name: [load["greedy"] for load in one["loads"]] for name, one in first.items()}
    for one in results:
        for index, load in enumerate(one.get("loads", [])):
            tokens = load.pop("greedy")
            load["tokens"] = sum(map(len, tokens))
            if one["model"] in expected:
                load["tokens_as_default"] = sum(
                    next((i for i, (a, b) in enumerate(zip(own, other)) if a != b), len(own))
                    for own, other in zip(tokens, expected[one["model"]][index]))


def machine() -> dict:
    import importlib.metadata

    def said(*command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip().split("\n")[0]

    versions = {name: importlib.metadata.version(name) for name in ("vllm", "torch", "thresher", "thresher-vllm")}
    return dict(commit=os.environ.get("COMMIT") or said("git", "rev-parse", "--short", "HEAD"), time=time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
                gpu=said("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"), processors=os.cpu_count(), **versions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("runs", nargs="*", metavar="MODEL:OPTION")
    given = parser.parse_args()
    runs = given.runs or all_runs()
    for run in runs:
        if run not in all_runs():
            parser.error(f"{run} is none of {', '.join(all_runs())}")
    with tempfile.TemporaryDirectory() as folder:
        if given.one:
            pathlib.Path(given.out).write_text(json.dumps(serve(*runs[0].split(":"), folder)))
            os._exit(0)  # skips the engine's own shutdown, which takes long
        where = machine()  # before serving: a missing package shows now
        results = []
        for run in runs:
            answer = pathlib.Path(folder) / "answer.json"
            answer.unlink(missing_ok=True)
            with open(f"{given.out}.{run.replace(':', '.')}.log", "w") as log:
                try:
                    subprocess.run([sys.executable, __file__, "--one", "--out", str(answer), run], stdout=log, stderr=log, timeout=LIMIT_S)
                except subprocess.TimeoutExpired:
                    pass
            model, option = run.split(":")
            results.append(json.loads(answer.read_text()) if answer.exists() else
                           dict(model=model, option=option, failed=f"no answer within {LIMIT_S} s, or it ended: see {log.name}"))
            line = results[-1]
            print(run, line.get("failed") or f"up after {line['start_s']} s;", *(load["tokens_per_s"] for load in line.get("loads", [])), flush=True)
            write(given.out, where, results)  # after each load, so that an early end loses nothing


if __name__ == "__main__":
    main()
