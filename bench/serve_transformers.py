#!/usr/bin/env python3
"""Decodes with models of real shapes and random weights in Hugging Face's transformers on this GPU, as it does by itself and with Thresher.

  serve_transformers.py --out FILE.json [--compile] [--batches 1,8,64] [--prompt 256] [--new 64] [--layers N] [MODEL ...]

Each model is made once, with its weights drawn on the GPU, and then takes one option after another, each beside those before it:
`default` (transformers' own choice: sdpa, of gpt-oss eager, and grouped_mm for experts), `attention`, `experts`, `mlps` (replace with gated
MLPs) and `linears` (replace with linear layers too). Every option decodes greedily from a static cache with one CUDA graph of the whole
step. With --compile each is compiled by torch.compile (mode reduce-overhead) besides. A load is run twice, and the faster run counts.

Each option is also given the tokens that the same weights choose in float32, by attention and experts that transformers writes in PyTorch's
operations. FILE.json holds the tokens a second, how far its logits are from those in float32, in units of their standard deviation, and
how many of its choices are the same. A choice that differs counts as a tie where the two logits in float32 are nearer than twice the
greatest difference that `default` has.

Where a sliding window is full, steps of a graph have one position: transformers counts positions on the host there.
"""

import argparse
import contextlib
import gc
import inspect
import json
import time

import torch
import transformers
from transformers import AutoModelForCausalLM, StaticCache

import thresher
import thresher.transformers as ours

_LLAMA = dict(vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
              num_key_value_heads=8, head_dim=128, rms_norm_eps=1e-5)
_QWEN = dict(vocab_size=151936, hidden_size=4096, intermediate_size=12288, num_hidden_layers=36, num_attention_heads=32, num_key_value_heads=8,
             head_dim=128)
_QWEN_MOE = dict(vocab_size=151936, hidden_size=2048, num_hidden_layers=48, num_attention_heads=32, num_key_value_heads=4, head_dim=128,
                 num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768, intermediate_size=6144, norm_topk_prob=True)
_MIXTRAL = dict(vocab_size=32000, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
                num_key_value_heads=8, head_dim=128, num_local_experts=8, num_experts_per_tok=2, sliding_window=None)
_GPT_OSS = dict(vocab_size=201088, hidden_size=2880, intermediate_size=2880, num_hidden_layers=24, num_attention_heads=64,
                num_key_value_heads=8, head_dim=64, num_local_experts=32, num_experts_per_tok=4, sliding_window=128)
_DEEPSEEK = dict(vocab_size=129280, hidden_size=7168, intermediate_size=18432, moe_intermediate_size=2048, num_hidden_layers=61,
                 first_k_dense_replace=1, num_attention_heads=128, num_key_value_heads=128, n_routed_experts=256, num_experts_per_tok=8,
                 n_shared_experts=1, n_group=8, topk_group=4, q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64,
                 v_head_dim=128)
_GEMMA = dict(vocab_size=262208, hidden_size=3840, intermediate_size=15360, num_hidden_layers=48, num_attention_heads=16,
              num_key_value_heads=8, head_dim=256, sliding_window=1024, query_pre_attn_scalar=256)
_PHI4 = dict(vocab_size=100352, hidden_size=5120, intermediate_size=17920, num_hidden_layers=40, num_attention_heads=40,
             num_key_value_heads=10, sliding_window=None)
_PHI3_MINI = dict(vocab_size=32064, hidden_size=3072, intermediate_size=8192, num_hidden_layers=32, num_attention_heads=32,
                  num_key_value_heads=32, sliding_window=None)
MODELS = {  # model_type, configuration, layers of those that do not fit, or take too long to make
    "llama-3.1-8b": ("llama", _LLAMA, None),
    "qwen3-8b": ("qwen3", _QWEN, None),
    "qwen3-30b-a3b": ("qwen3_moe", _QWEN_MOE, 16),
    "mixtral-8x7b": ("mixtral", _MIXTRAL, 8),
    "gpt-oss-20b": ("gpt_oss", _GPT_OSS, None),
    "deepseek-v3": ("deepseek_v3", _DEEPSEEK, 3),
    "gemma-3-12b": ("gemma3_text", _GEMMA, 24),
    "phi-4": ("phi3", _PHI4, None),
    "phi-3-mini": ("phi3", _PHI3_MINI, None),
}
_POSITIONS = 8192
AGREED = 16  # tokens of each of four sequences whose logits are compared


def made(name: str, layers: int | None):
    kind, given, few = MODELS[name]
    given = dict(given, max_position_embeddings=_POSITIONS, pad_token_id=0, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False,
                 use_cache=True)
    count = layers or few
    if count:
        given["num_hidden_layers"] = min(count, given["num_hidden_layers"])
    config = transformers.AutoConfig.for_model(kind, **given)
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    return model.eval().requires_grad_(False)


def has_experts(model) -> bool:
    return any(hasattr(module, "_apply_gate") for module in model.modules())


def options_of(model) -> dict:
    """By name, what changes the model beside the options before it."""
    found = {"default": lambda: None, "attention": lambda: model.set_attn_implementation("thresher")}
    if has_experts(model):
        found["experts"] = lambda: (model.set_experts_implementation("thresher"), ours.prepare(model))
    found["mlps"] = lambda: ours.replace(model, linears=False)
    found["linears"] = lambda: ours.replace(model)
    return found


@contextlib.contextmanager
def recordable_indices():
    """Sliding caches copy an index of one number from memory that is not pinned, which no graph records; here a kernel writes it."""
    tensor = torch.tensor

    def written(data, *arguments, **named):
        return torch.full((1,), data[0], **named) if data == [-1] and not arguments else tensor(data, *arguments, **named)

    torch.tensor = written
    try:
        yield
    finally:
        torch.tensor = tensor


class Steps:
    """A model with a static cache of a prompt."""

    def __init__(self, model, prompt: torch.Tensor, new: int):
        self.model, (self.batch, self.length) = model, prompt.shape
        window = getattr(model.config, "sliding_window", None)
        self.advances = window is None or window > self.length
        rows = -(-(self.length + new + 8) // 64) * 64
        self.cache = StaticCache(config=model.config, max_cache_len=rows)
        self.named = {"cache" if "cache" in inspect.signature(type(model).forward).parameters else "past_key_values": self.cache}
        self.token = torch.zeros(self.batch, 1, dtype=torch.long, device="cuda")
        self.position = torch.zeros(1, 1, dtype=torch.long, device="cuda")
        self.prompt = prompt

    def call(self, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Logits of the last token [B, vocabulary]."""
        return self.forward(input_ids=ids, position_ids=positions, logits_to_keep=1, **self.named).logits[:, -1]

    forward = property(lambda self: self.model)

    def prefill(self) -> torch.Tensor:
        self.cache.reset()
        logits = self.call(self.prompt, torch.arange(self.length, device="cuda").unsqueeze(0))
        self.token.copy_(logits.argmax(-1, keepdim=True))
        self.position.fill_(self.length)
        return logits

    def step(self) -> None:
        logits = self.call(self.token, self.position)
        self.token.copy_(logits.argmax(-1, keepdim=True))
        if self.advances:
            self.position.add_(1)


def seconds_of(run, times: int) -> float:
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(times):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / times


def graph_of(steps: Steps) -> torch.cuda.CUDAGraph:
    """Of one step behind a prompt; calls are planned before they are recorded."""
    steps.prefill()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            steps.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with recordable_indices(), torch.cuda.graph(graph):
        steps.step()
    return graph


@torch.inference_mode()
def decoded(model, prompt: torch.Tensor, new: int) -> dict:
    steps = Steps(model, prompt, new)
    graph = graph_of(steps)
    prefill = min(seconds_of(steps.prefill, 1) for _ in range(2))
    best = float("inf")
    for _ in range(2):
        steps.prefill()
        best = min(best, seconds_of(graph.replay, new))
    return dict(prefill_tokens_per_s=round(prompt.numel() / prefill, 1), ms_per_step=round(best * 1e3, 4),
                tokens_per_s=round(prompt.shape[0] / best, 1))


@torch.inference_mode()
def compiled(model, prompt: torch.Tensor, new: int) -> dict:
    steps = Steps(model, prompt, new)
    steps.prefill()
    begin = time.perf_counter()
    forward = torch.compile(model, mode="reduce-overhead", fullgraph=True, dynamic=False)
    eager, type_of = model, type(steps)

    class Compiled(type_of):
        forward = property(lambda self: forward if self.is_decoding else eager)
        is_decoding = False

    steps.__class__ = Compiled
    best = float("inf")
    for run in range(3):
        steps.is_decoding = False
        steps.prefill()
        steps.is_decoding = True
        if run == 0:
            for _ in range(3):
                torch.compiler.cudagraph_mark_step_begin()
                steps.step()
            torch.cuda.synchronize()
            compile_s = time.perf_counter() - begin
            continue
        best = min(best, seconds_of(lambda: (torch.compiler.cudagraph_mark_step_begin(), steps.step()), new))
    torch._dynamo.reset()
    return dict(compile_s=round(compile_s, 1), ms_per_step=round(best * 1e3, 4), tokens_per_s=round(prompt.shape[0] / best, 1))


@torch.inference_mode()
def logits_of(model, prompt: torch.Tensor, tokens: torch.Tensor | None, new: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(logits [steps, B, vocabulary], tokens [steps, B]), of the tokens that are given, else of its own."""
    steps = Steps(model, prompt, new)
    logits = [steps.prefill().float()]
    chosen = [steps.token.clone()]
    for index in range(new - 1):
        if tokens is not None:
            steps.token.copy_(tokens[index].unsqueeze(1))
        logits.append(steps.call(steps.token, steps.position).float())
        steps.token.copy_(logits[-1].argmax(-1, keepdim=True))
        steps.position.add_(1)
        chosen.append(steps.token.clone())
    return torch.stack(logits), torch.cat(chosen, 1).T


def agreement(logits: torch.Tensor, exact: torch.Tensor, noise: float | None = None) -> dict:
    """noise: the greatest difference of `default`; its own where that is not given."""
    difference = (logits - exact).abs()
    noise = difference.max().item() if noise is None else noise
    found, wanted = logits.argmax(-1), exact.argmax(-1)
    differs = found != wanted
    gap = (exact.gather(-1, wanted.unsqueeze(-1)) - exact.gather(-1, found.unsqueeze(-1))).squeeze(-1)
    spread = exact.std().item()
    return dict(greatest_difference=round(difference.max().item() / spread, 5), difference=round(difference.square().mean().sqrt().item() / spread, 6),
                choices=found.numel(), same=int((~differs).sum()), ties=int((differs & (gap <= 2 * noise)).sum()))


def set_parameters(model, dtype: torch.dtype) -> None:
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)


def in_float32(model, prompt: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The logits of the same weights and the tokens chosen, by implementations that transformers writes in PyTorch's operations."""
    attention, experts = model.config._attn_implementation, model.config._experts_implementation
    model.set_attn_implementation("eager")
    if has_experts(model):
        model.set_experts_implementation("eager")
    set_parameters(model, torch.float32)
    try:
        return logits_of(model, prompt, None, AGREED)
    finally:
        set_parameters(model, torch.bfloat16)
        model.set_attn_implementation(attention)
        if has_experts(model):
            model.set_experts_implementation(experts)
        released()


def released() -> None:
    gc.collect()
    torch.cuda.empty_cache()


def run(name: str, arguments) -> dict:
    begin = time.perf_counter()
    model = made(name, arguments.layers)
    window = getattr(model.config, "sliding_window", None) or 0
    length = max(arguments.prompt, window if window <= 1024 else 0)
    draw = torch.Generator("cuda").manual_seed(1)
    prompts = {batch: torch.randint(3, 30000, (batch, length), generator=draw, device="cuda") for batch in {*arguments.batches, 4}}
    torch.cuda.synchronize()
    result = dict(model=name, layers=model.config.num_hidden_layers, prompt=length, new=arguments.new, made_s=round(time.perf_counter() - begin, 1),
                  options={})
    exact, tokens = in_float32(model, prompts[4])
    noise = None
    for option, change in options_of(model).items():
        begin = time.perf_counter()
        row: dict = {}
        try:
            report = change()
            if isinstance(report, ours.Report):
                row["replaced"], row["kept"] = len(report.replaced), report.kept
            logits, _ = logits_of(model, prompts[4], tokens, AGREED)
            row["agreement"] = agreement(logits, exact, noise)
            noise = (logits - exact).abs().max().item() if noise is None else noise
            for batch in arguments.batches:
                row[f"batch {batch}"] = decoded(model, prompts[batch], arguments.new)
                released()
                if arguments.compile:
                    row[f"batch {batch} compiled"] = compiled(model, prompts[batch], arguments.new)
                    released()
        except Exception as error:  # the other options and models go on
            row["failed"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        row["seconds"] = round(time.perf_counter() - begin, 1)
        result["options"][option] = row
        print(name, option, json.dumps({key: value for key, value in row.items() if key != "kept"}), flush=True)
    return result


def counts_of(text: str) -> list[int]:
    counts = text.split(",")
    if not all(one.isdecimal() and int(one) > 0 for one in counts):
        raise argparse.ArgumentTypeError(f"{text} is no list of numbers from 1 on, as in 1,8,64")
    return [int(one) for one in counts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--out", required=True)
    parser.add_argument("--batches", default=[1, 8, 64], type=counts_of)
    parser.add_argument("--prompt", type=int, default=256)
    parser.add_argument("--new", type=int, default=64)
    parser.add_argument("--layers", type=int, help="of each model, in place of its own number")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--commit", default="", help="kept in FILE.json")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.models if name not in MODELS]
    if unknown:
        parser.error(f"the model {unknown[0]!r} is not known, expected {', '.join(MODELS)}")
    where = dict(gpu=torch.cuda.get_device_name(), torch=torch.__version__, transformers=transformers.__version__,
                 thresher=thresher.__version__, commit=arguments.commit)
    results = []
    for name in arguments.models:
        results.append(run(name, arguments))
        with open(arguments.out, "w") as file:
            json.dump(dict(**where, models=results), file, indent=1)
        released()


if __name__ == "__main__":
    main()
