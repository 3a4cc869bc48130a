#!/usr/bin/env python3
"""Serves models by vLLM or SGLang on this GPU, as the engine does by itself and with Thresher, and measures them by its own benchmark.

  serve_engine.py ENGINE --out FILE.json [--loads NxPROMPT,...] [--new N] [--dummy] [--compiled] [--port P] [MODEL:OPTION ...]

ENGINE: vllm or sglang. MODEL: one of bench/draw_model.py. OPTION: default; attention (vLLM: --attention-backend CUSTOM); products (vLLM:
--quantization thresher, SGLang: --moe-runner-backend thresher); both. All that there are where none is named.
A load is N sequences at a time with prompts of so many tokens; 1, 8, 64 and 256 with 1024 and 8192 when left out. Every load is run
twice, and the second run counts: engines compile kernels of DeepGEMM and Triton at their first use.
--dummy: weights as the engine makes them up, in place of those that draw_model.py draws. --compiled: vLLM's own mode of torch.compile;
without it decoding is in CUDA graphs and nothing is compiled by torch. MODELS names the folder for models, which may be in memory.

FILE.json holds, for each run, the seconds until the server answered, what the benchmark gave for each load, and the tokens of some greedy
sequences. Printed is how many of them are those of the model's `default`, up to the first of a sequence that differs.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable

import draw_model
import served_table

SEQUENCES, PROMPTS, NEW = (1, 8, 64, 256), (1024, 8192), 128
GREEDY_PROMPTS, GREEDY_PROMPT, GREEDY_NEW = 8, 64, 64
START_LIMIT_S = 300
KEPT = ("output_throughput", "total_token_throughput", "total_throughput", "median_itl_ms", "p99_itl_ms", "mean_tpot_ms", "median_ttft_ms",
        "completed", "duration")
OPTIONS = {
    "vllm": {"default": [], "attention": ["--attention-backend", "CUSTOM"], "products": ["--quantization", "thresher"],
             "both": ["--quantization", "thresher", "--attention-backend", "CUSTOM"]},
    "sglang": {"default": [], "products": ["--moe-runner-backend", "thresher"]},
}


def all_runs(engine: str) -> list[str]:
    def is_one(model: str, option: str) -> bool:
        if option not in ("products", "both"):
            return True
        is_quantized = draw_model.split_name(model)[1] != "bf16"
        return is_quantized if engine == "vllm" else "a3b" in model

    return [f"{model}:{option}" for model in draw_model.MODELS for option in OPTIONS[engine] if is_one(model, option)]


def most_tokens(loads: list[tuple[int, int]], new: int) -> int:
    return max(prompt for _, prompt in loads) + new + 128


def address(given: argparse.Namespace, path: str) -> str:
    return f"http://127.0.0.1:{given.port}{path}"


def command(engine: str, folder: pathlib.Path, option: str, loads: list[tuple[int, int]], given: argparse.Namespace) -> list[str]:
    most = max(sequences for sequences, _ in loads)
    dummy = ["--load-format", "dummy"] if given.dummy else []
    if engine == "vllm":
        graphs = [] if given.compiled else ["--compilation-config", json.dumps(dict(
            mode=0, cudagraph_mode="FULL_DECODE_ONLY", cudagraph_capture_sizes=sorted({sequences for sequences, _ in loads} | {GREEDY_PROMPTS})))]
        return [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", str(folder), "--port", str(given.port), "--max-num-seqs", str(most),
                "--max-model-len", str(most_tokens(loads, given.new)), "--max-num-batched-tokens", "8192", "--gpu-memory-utilization", "0.9",
                "--no-enable-prefix-caching", "--seed", "0", *dummy, *graphs, *OPTIONS[engine][option]]
    return [sys.executable, "-m", "sglang.launch_server", "--model-path", str(folder), "--port", str(given.port), "--max-running-requests", str(most),
            "--cuda-graph-max-bs", str(most), "--context-length", str(most_tokens(loads, given.new)), "--disable-radix-cache",
            "--mem-fraction-static", "0.85", "--random-seed", "0", *dummy, *OPTIONS[engine][option]]


def answered(url: str, body: dict | None = None, limit_s: float = 300) -> dict:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=limit_s) as answer:
        text = answer.read()
    return json.loads(text) if text else {}


def wait_until_up(server: subprocess.Popen, health: str) -> None:
    end = time.time() + START_LIMIT_S
    while time.time() < end:
        if server.poll() is not None:
            raise RuntimeError(f"the server ended with {server.returncode}")
        try:
            answered(health, limit_s=5)
            return
        except OSError:
            time.sleep(0.5)
    raise RuntimeError(f"the server was not up after {START_LIMIT_S} s")


def greedy(engine: str, folder: pathlib.Path, given: argparse.Namespace) -> list[list[int]]:
    draw = random.Random(20261129)
    prompts = [[draw.randrange(3, 150_000) for _ in range(GREEDY_PROMPT)] for _ in range(GREEDY_PROMPTS)]
    if engine == "vllm":
        body = dict(model=str(folder), prompt=prompts, max_tokens=GREEDY_NEW, temperature=0, ignore_eos=True, return_token_ids=True)
        answer = answered(address(given, "/v1/completions"), body)
        return [one["token_ids"] for one in sorted(answer["choices"], key=lambda one: one["index"])]
    sampling = dict(temperature=0, max_new_tokens=GREEDY_NEW, ignore_eos=True)
    return [one["output_ids"] for one in answered(address(given, "/generate"), dict(input_ids=prompts, sampling_params=sampling))]


class OwnBenchmark:
    """The engine's own, imported once: a start of it takes ten seconds."""

    def __init__(self, engine: str, port: int):
        self.engine, self.port = engine, port
        if engine == "vllm":
            from vllm.benchmarks import serve
            from vllm.utils.argparse_utils import FlexibleArgumentParser

            parser = FlexibleArgumentParser()
            serve.add_cli_args(parser)
            self._run = lambda arguments: serve.main(parser.parse_args(arguments))
        else:
            from sglang.benchmark import serving

            self._run = lambda arguments: self._sglang(serving, arguments)

    @staticmethod
    def _sglang(serving, arguments: list[str]) -> dict:
        """Its command line gives nothing back."""
        results, run = [], serving.run_benchmark
        serving.run_benchmark = lambda parsed: results.append(run(parsed))
        known, sys.argv = sys.argv, ["serving", *arguments]
        try:
            serving.cli_main()
        finally:
            sys.argv, serving.run_benchmark = known, run
        return results[0]

    def __call__(self, folder: pathlib.Path, sequences: int, prompt: int, new: int) -> dict:
        count = max(2 * sequences if prompt < 4096 else sequences, 3)
        arguments = ["--model", str(folder), "--port", str(self.port), "--host", "127.0.0.1", "--dataset-name", "random", "--random-input-len",
                     str(prompt), "--random-output-len", str(new), "--num-prompts", str(count), "--max-concurrency", str(sequences),
                     "--seed", str(prompt), "--disable-tqdm", "--temperature", "0"]
        if self.engine == "vllm":
            arguments += ["--backend", "vllm", "--random-range-ratio", "0", "--num-warmups", "2", "--percentile-metrics", "ttft,tpot,itl"]
        else:
            arguments += ["--backend", "sglang", "--random-range-ratio", "1", "--warmup-requests", "2", "--tokenize-prompt"]
        result = self._run(arguments)
        kept = {name: round(float(result[name]), 3) for name in KEPT if name in result}
        return dict(sequences=sequences, prompt=prompt, new=new, **kept)


def end(server: subprocess.Popen) -> None:
    """With all its processes, which hold the GPU's memory."""
    for name in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(server.pid, name)
            server.wait(20)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def measure(result: dict, engine: str, folder: pathlib.Path, benchmark: OwnBenchmark, loads: list[tuple[int, int]], given: argparse.Namespace,
            keep: Callable[[], None]) -> None:
    """Fills the result of a run, and keeps it after each load."""
    run, option = f"{result['model']}:{result['option']}", result["option"]
    environment = dict(os.environ, HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", VLLM_USE_FLASHINFER_SAMPLER="0", VLLM_LOGGING_LEVEL="INFO",
                       VLLM_DEEP_GEMM_WARMUP="skip")  # it compiles hundreds of kernels, one after the other
    begin = time.time()
    with open(f"{given.out}.{run.replace(':', '.')}.log", "w") as log:
        server = subprocess.Popen(command(engine, folder, option, loads, given), stdout=log, stderr=log, env=environment, start_new_session=True)
        try:
            wait_until_up(server, address(given, "/health"))
            result["start_s"] = round(time.time() - begin, 1)
            result["greedy"] = greedy(engine, folder, given)
            for sequences, prompt in loads:
                benchmark(folder, sequences, prompt, given.new)
                result["loads"].append(benchmark(folder, sequences, prompt, given.new))
                keep()
        except Exception as error:  # the other runs are made all the same
            result["failed"] = f"{type(error).__name__}: {error}; see {log.name}"
        finally:
            end(server)


def said(result: dict, results: list[dict]) -> dict:
    """What is printed: the number of greedy tokens that are those of the model's default in place of the tokens."""
    default = next((one for one in results if (one["model"], one["option"]) == (result["model"], "default")), {})
    shown = {name: value for name, value in result.items() if name != "greedy"}
    if "greedy" in result and "greedy" in default:
        shown["greedy_as_default"] = served_table.tokens_alike(result["greedy"], default["greedy"])
    return shown


def machine(engine: str) -> dict:
    def told(*command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip().split("\n")[0]

    versions = {name: importlib.metadata.version(name) for name in (engine, "torch", "thresher", f"thresher-{engine}")}
    return dict(commit=os.environ.get("COMMIT") or told("git", "rev-parse", "--short", "HEAD"), time=time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
                gpu=told("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"), processors=os.cpu_count(), **versions)


def loads_of(text: str) -> list[tuple[int, int]]:
    found = [re.fullmatch(r"([1-9][0-9]*)x([1-9][0-9]*)", one) for one in text.split(",")]
    if None in found:
        raise argparse.ArgumentTypeError(f"{text} is no list of SEQUENCESxPROMPT, as in 1x1024,8x8192")
    return [(int(one[1]), int(one[2])) for one in found if one]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=sorted(OPTIONS))
    parser.add_argument("--out", required=True)
    parser.add_argument("--loads", type=loads_of, default=[(sequences, prompt) for prompt in PROMPTS for sequences in SEQUENCES])
    parser.add_argument("--new", type=int, default=NEW)
    parser.add_argument("--dummy", action="store_true")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--port", type=int, default=18300)
    parser.add_argument("runs", nargs="*", metavar="MODEL:OPTION")
    given = parser.parse_intermixed_args()
    runs = given.runs or all_runs(given.engine)
    for run in runs:
        if run not in all_runs(given.engine):
            parser.error(f"{run} is none of {', '.join(all_runs(given.engine))}")
    loads, where = given.loads, machine(given.engine)
    benchmark = OwnBenchmark(given.engine, given.port)
    models = pathlib.Path(os.environ.get("MODELS") or tempfile.mkdtemp())
    results: list[dict] = []

    def keep() -> None:  # an early end loses one load
        pathlib.Path(given.out).write_text(json.dumps(dict(machine=where, compiled=given.compiled, results=results), indent=1) + "\n")

    for run in runs:
        model, _, option = run.partition(":")
        folder = models / model
        if not (folder / "config.json").exists():
            for other in draw_model.MODELS:  # memory holds one of them
                shutil.rmtree(models / other, ignore_errors=True)
            subprocess.run([sys.executable, draw_model.__file__, model, str(folder), *(["--empty"] if given.dummy else [])], check=True)
        results.append(dict(model=model, option=option, weights="dummy" if given.dummy else "drawn", loads=[]))
        measure(results[-1], given.engine, folder, benchmark, loads, given, keep)
        print(json.dumps(said(results[-1], results)), flush=True)
        keep()


if __name__ == "__main__":
    main()
