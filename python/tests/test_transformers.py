"""Models of Hugging Face's transformers of every family, small and with random weights, beside their eager implementation in float32.

How far a result may be from it is measured, not chosen. Transformers' own eager implementation in bfloat16 rounds weights' inputs, queries,
scores, their softmax and every product. Thresher rounds at some of these places and at no others. So logits are no further from float32
than eager ones, but for chance: their root mean square is over thousands of roundings. A greedy token is that of float32, but where the two
best logits are nearer than both may be off.

Routers of experts take all of them here: else one rounding chooses another expert, and no tolerance tells that from an error. Experts by
themselves get any ids.
"""

import copy
import inspect
import os

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch = pytest.importorskip("torch", reason="torch is not installed: the tests of transformers are left out")
transformers = pytest.importorskip("transformers", reason="transformers is not installed: its tests are left out")

import thresher  # noqa: E402
import thresher.torch as tt  # noqa: E402
import thresher.transformers as ours  # noqa: E402
from thresher.transformers import _attention, _masks, _release  # noqa: E402
from torch import nn  # noqa: E402
from transformers import masking_utils  # noqa: E402
from transformers.integrations import finegrained_fp8  # noqa: E402
from transformers.integrations.moe import use_experts_implementation  # noqa: E402

CHANCE = 1.25  # of one root mean square over another, of thousands of roundings each
NEW = 10
ALL = dict(vocab_size=211, hidden_size=128, intermediate_size=192, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
           head_dim=64, max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=None)
WINDOW = dict(sliding_window=8, layer_types=["sliding_attention", "full_attention"])
FAMILIES = {
    "llama": {},
    "qwen3": dict(num_key_value_heads=1),
    "qwen3_moe": dict(moe_intermediate_size=64, num_experts=4, num_experts_per_tok=4, norm_topk_prob=True),
    "mixtral": dict(intermediate_size=64, num_local_experts=4, num_experts_per_tok=4),
    "gpt_oss": dict(WINDOW, intermediate_size=64, num_local_experts=4, num_experts_per_tok=4),
    "deepseek_v3": dict(moe_intermediate_size=64, n_routed_experts=4, num_experts_per_tok=4, n_group=1, topk_group=1, first_k_dense_replace=1,
                        num_key_value_heads=4, q_lora_rank=32, kv_lora_rank=64, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128),
    "gemma3_text": WINDOW,
    "gemma2": dict(WINDOW, attn_logit_softcapping=2.0),
    "phi3": dict(hidden_size=192, num_attention_heads=2, num_key_value_heads=2, head_dim=96),
}
SOME = ("llama", "gpt_oss", "gemma2", "deepseek_v3")  # a cache of each kind


@pytest.fixture(autouse=True)
def no_gradients():
    torch.manual_seed(20261129)
    with torch.no_grad():
        yield


def refused(call, sentence, kind=thresher.InvalidArgumentError):
    with pytest.raises(kind) as refusal:
        call()
    assert sentence in str(refusal.value), refusal.value
    assert "\n" not in str(refusal.value)


def made(family, **options):
    """In bfloat16, eager, with weights that give logits of the size of one, and sinks, biases and norms that count."""
    config = transformers.AutoConfig.for_model(family, **{**ALL, **FAMILIES[family], **options})
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="eager").eval()
    if has_experts(model):
        model.set_experts_implementation("eager")
    for name, weight in model.named_parameters():
        rows = torch.randn(weight.shape)
        weight.copy_(rows * weight.shape[-1] ** -0.5 if weight.dim() > 1 else weight + rows / 4 if "norm" in name else rows)
    return model


def has_experts(model):
    return any(hasattr(module, "_apply_gate") for module in model.modules())


def with_ours(model):
    model.set_attn_implementation("thresher")
    if has_experts(model):
        model.set_experts_implementation("thresher")
    return model


def prompt(rows=2, length=13):
    return torch.randint(3, 200, (rows, length))


def rms(difference):
    return difference.double().square().mean().sqrt().item()


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_as_near_to_float32_as_eager_ones(family):
    model, ids = made(family), prompt(4, 40)
    exact = copy.deepcopy(model).float()(ids).logits
    allowed = CHANCE * rms(model(ids).logits - exact)
    assert 0 < allowed < 0.1 * rms(exact)
    assert rms(with_ours(model)(ids).logits - exact) <= allowed
    report = ours.replace(model)
    assert report.replaced
    assert rms(model(ids).logits - exact) <= allowed
    assert ours.replace(model) == ours.Report({}, {name: why for name, why in report.kept.items() if name == "lm_head"})


class Expected:
    """What a model generates in float32, one prompt at a time, and the logits that it chose by."""

    def __init__(self, model, prompts):
        wide = copy.deepcopy(model).float()
        self.tokens, self.logits = [], []
        for one in prompts:
            found = wide.generate(one[None], attention_mask=torch.ones_like(one[None]), max_new_tokens=NEW, do_sample=False,
                                  return_dict_in_generate=True, output_logits=True)
            self.tokens.append(found.sequences[0, len(one):].tolist())
            self.logits.append(torch.cat(found.logits))
        ids = torch.stack([one[-min(map(len, prompts)):] for one in prompts])
        self.allowed = 2 * (model(ids).logits - wide(ids).logits).abs().max().item()

    def agree(self, found):
        """found: tokens of each prompt, of which those behind a tie are others."""
        for wanted, logits, tokens in zip(self.tokens, self.logits, found, strict=True):
            assert len(tokens) == len(wanted)
            step = next((step for step, (one, other) in enumerate(zip(wanted, tokens)) if one != other), None)
            if step is not None:
                assert logits[step, wanted[step]] - logits[step, tokens[step]] <= self.allowed, (step, wanted, tokens)


class Led(transformers.LogitsProcessor):
    """Has a model choose the tokens that are expected, and compares the logits that it would have chosen by."""

    def __init__(self, expected):
        self.expected, self.step, self.differences = expected, 0, []

    def __call__(self, input_ids, scores):
        led = torch.full_like(scores, -1.0)
        for row, (tokens, logits) in enumerate(zip(self.expected.tokens, self.expected.logits)):
            best = scores[row].argmax()
            assert logits[self.step, tokens[self.step]] - logits[self.step, best] <= self.expected.allowed
            self.differences.append(scores[row] - logits[self.step])
            led[row, tokens[self.step]] = 0.0
        self.step += 1
        return led

    def rms(self):
        return rms(torch.stack(self.differences))


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("family", SOME)
def test_generates_the_greedy_tokens_of_float32(family, cache):
    """Behind padding and without, so that the windows of 8 are left and crossed by prompts and by decoding."""
    model, ids = made(family), prompt(2, 13)
    options = dict(max_new_tokens=NEW, do_sample=False)
    if cache == "static":
        options.update(cache_implementation="static", disable_compile=True)
    for skipped in ((0, 0), (5, 0), (10, 3)):
        mask = torch.ones_like(ids)
        for row, count in enumerate(skipped):
            mask[row, :count] = 0
        expected = Expected(model, [row[count:] for row, count in zip(ids, skipped)])
        eager, found = Led(expected), Led(expected)
        model.generate(ids, attention_mask=mask, logits_processor=[eager], **options)
        with_ours(copy.deepcopy(model)).generate(ids, attention_mask=mask, logits_processor=[found], **options)
        assert found.step == NEW and found.rms() <= CHANCE * eager.rms()


@pytest.mark.parametrize("family", ["llama", "gpt_oss"])
def test_continuous_batching_keeps_the_attention(family, monkeypatch):
    model = made(family)
    prompts = [prompt(1, length)[0] for length in (5, 13, 9)]
    expected = Expected(model, prompts)
    generation = transformers.GenerationConfig(max_new_tokens=NEW, do_sample=False, eos_token_id=-1, pad_token_id=0)
    calls, packed = [], _attention._packed
    monkeypatch.setattr(_attention, "_packed", lambda *arguments: calls.append(1) or packed(*arguments))
    found = with_ours(model).generate_batch([one.tolist() for one in prompts], generation_config=generation, progress_bar=False)
    assert len(calls) >= NEW
    assert model.config._attn_implementation == ours.NAME
    expected.agree([one.generated_tokens for one in found.values()])


def cache_of(model, length):
    name = "cache" if "cache" in inspect.signature(type(model).forward).parameters else "past_key_values"
    return {name: transformers.StaticCache(config=model.config, max_cache_len=length)}


@pytest.mark.parametrize("has_padding", [False, True])
@pytest.mark.parametrize("family", ["llama", "gpt_oss"])
def test_a_step_compiles_whole_and_once(family, has_padding):
    """From a static cache, with torch.compile's graph for all lengths; a mask of numbers would be another for each."""
    model, ids = with_ours(made(family, sliding_window=64 if family == "gpt_oss" else None)), prompt()
    mask = torch.ones(2, 32, dtype=torch.long)
    mask[0, :5] = 0

    def logits(forward):
        named = cache_of(model, 32)
        if has_padding:
            named["attention_mask"] = mask
        found = [model(ids, **named).logits[:, -1]]
        for step in range(4):
            position = torch.full((1, 1), ids.shape[1] + step)
            found.append(forward(found[-1].argmax(-1, keepdim=True), position_ids=position, **named).logits[:, -1])
        return torch.stack(found)

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    assert torch.equal(logits(torch.compile(model.forward, fullgraph=True, backend="aot_eager")), logits(model.forward))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 2  # an int of a sliding layer's cache becomes dynamic once


def experts_of(model):
    return next(module for module in model.modules() if hasattr(module, "_apply_gate"))


@pytest.mark.parametrize("family", ["qwen3_moe", "mixtral", "gpt_oss", "deepseek_v3"])
def test_experts_take_any_ids(family):
    experts = experts_of(made(family))
    rows, ids = torch.randn(24, ALL["hidden_size"]).bfloat16(), torch.stack([torch.randperm(4)[:2] for _ in range(24)])
    weights = torch.rand(24, 2).bfloat16()
    wide = copy.deepcopy(experts).float()
    wide.config._experts_implementation_internal = experts.config._experts_implementation_internal = "eager"
    exact = wide(rows.float(), ids, weights.float())
    eager = experts(rows, ids, weights)
    experts.config._experts_implementation_internal = "thresher"
    assert rms(experts(rows, ids, weights) - exact) <= CHANCE * rms(eager - exact)


@pytest.mark.parametrize("family", ["mixtral", "gpt_oss"])
def test_packed_experts_are_the_parameters(family):
    """One copy: what is saved, what another implementation reads and what is loaded are what is computed with."""
    model, ids = made(family), prompt()
    eager, state = model(ids).logits, copy.deepcopy(model.state_dict())
    found = with_ours(model)(ids).logits
    assert state.keys() == model.state_dict().keys()
    assert all(torch.equal(state[name], weight) for name, weight in model.state_dict().items())
    packed = experts_of(model).__dict__["_thresher_experts"].made
    for name, block in (("gate_up_proj", packed.gate_up), ("down_proj", packed.down)):
        parameter = getattr(experts_of(model), name)
        assert parameter.untyped_storage().data_ptr() == block.untyped_storage().data_ptr()
    model.load_state_dict({name: weight / 2 for name, weight in state.items() if "experts" in name}, strict=False)
    assert not torch.equal(model(ids).logits, found)
    model.load_state_dict(state)
    assert torch.equal(model(ids).logits, found)
    other = copy.deepcopy(model)
    other.load_state_dict({name: weight / 2 for name, weight in state.items() if "experts" in name}, strict=False)
    assert torch.equal(model(ids).logits, found) and not torch.equal(other(ids).logits, found)
    model.set_attn_implementation("eager")
    model.set_experts_implementation("eager")
    assert torch.equal(model(ids).logits, eager)


def fp8(shape):
    """(e4m3 values [..., rows, K], scales of blocks, the numbers)."""
    values = (torch.randn(shape) * 8).to(torch.float8_e4m3fn)
    scales = torch.rand(*shape[:-2], shape[-2] // 128, shape[-1] // 128) / 64 + 2.0**-7
    return values, scales, values.float() * scales.repeat_interleave(128, -2).repeat_interleave(128, -1)


def fp8_linear(rows, columns):
    layer = finegrained_fp8.FP8Linear(columns, rows, block_size=(128, 128))
    layer.weight.data, layer.weight_scale_inv.data, numbers = fp8((rows, columns))
    return layer, numbers


def near(found, exact, steps=2.0**-3):
    """Tokens in FP8 are off by 2⁻⁴ of themselves, twice where there are two products."""
    assert (found.float() - exact).abs().max() <= steps * exact.abs().max()


def test_experts_in_fp8():
    config = transformers.AutoConfig.for_model("qwen3_moe", hidden_size=256, moe_intermediate_size=128, num_experts=4)
    config._experts_implementation = "thresher"
    kind = use_experts_implementation(experts_class=type("Experts", (finegrained_fp8.FP8Experts,), {}),
                                      experts_interface=finegrained_fp8.ALL_FP8_EXPERTS_FUNCTIONS)
    experts = kind(config, block_size=(128, 128))
    experts.gate_up_proj.data, experts.gate_up_proj_scale_inv.data, both = fp8((4, 256, 256))
    experts.down_proj.data, experts.down_proj_scale_inv.data, down = fp8((4, 256, 128))
    rows, ids = torch.randn(6, 256).bfloat16(), torch.tensor([[0, 1], [3, 2], [1, 3], [2, 0], [1, 0], [3, 1]])
    exact = torch.zeros(6, 256)
    for row, chosen in enumerate(ids):
        for expert in chosen:
            gate, up = (both[expert] @ rows[row].float()).chunk(2)
            exact[row] += down[expert] @ (nn.functional.silu(gate) * up) / 2
    near(experts(rows, ids, torch.full((6, 2), 0.5)), exact)
    assert experts.__dict__["_thresher_experts"].made.tokens == "fp8_block"  # a GPU multiplies FP8 with FP8 alone
    experts = kind(config, block_size=(64, 64))
    refused(lambda: experts(rows, ids, torch.full((6, 2), 0.5)), "has FP8 weights with scales of blocks [64, 64], expected blocks [128, 128]")


class QuantizedMLP(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = layers
        self.act_fn = nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class FourBitLinear(nn.Module):
    """As compressed-tensors leaves NVFP4 weights."""

    def __init__(self, rows, columns):
        super().__init__()
        self.weight_packed = nn.Parameter(torch.randint(0, 256, (rows, columns // 2), dtype=torch.uint8), requires_grad=False)
        self.weight_scale = nn.Parameter((torch.rand(rows, columns // 16) + 0.5).to(torch.float8_e4m3fn), requires_grad=False)
        self.weight_global_scale = nn.Parameter(torch.tensor([64.0]), requires_grad=False)
        self.bias = None

    def numbers(self):
        values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
        codes = torch.stack([self.weight_packed & 15, self.weight_packed >> 4], -1).flatten(-2).long()
        return values[codes] * self.weight_scale.float().repeat_interleave(16, -1) / self.weight_global_scale


def test_replaces_layers_of_quantized_checkpoints():
    pairs = [fp8_linear(256, 128), fp8_linear(256, 128), fp8_linear(128, 256), fp8_linear(128, 128)]
    four = [FourBitLinear(192, 128), FourBitLinear(192, 128), FourBitLinear(128, 192), FourBitLinear(64, 128)]
    other = finegrained_fp8.FP8Linear(128, 128, block_size=None)
    model = nn.ModuleDict(dict(mlp=QuantizedMLP([layer for layer, _ in pairs[:3]]), linear=pairs[3][0], four=QuantizedMLP(four[:3]),
                               four_linear=four[3], tensor=other))
    report = ours.replace(model)
    assert list(report.replaced) == ["mlp", "linear", "four", "four_linear"]
    assert report.kept == {"tensor": "the FP8Linear has FP8 weights with scales of other parts than blocks, expected blocks [128, 128]"}
    assert [model[name].tokens for name in report.replaced] == ["fp8_block", "fp8_block", None, None]
    x = torch.randn(7, 128).bfloat16()
    for name, (gate, up, down) in (("mlp", [numbers for _, numbers in pairs[:3]]), ("four", [layer.numbers() for layer in four[:3]])):
        exact = (nn.functional.silu(x.float() @ gate.T) * (x.float() @ up.T)) @ down.T
        near(model[name](x), exact, 2.0**-3 if name == "mlp" else 2.0**-6)
    near(model["linear"](x), x.float() @ pairs[3][1].T, 2.0**-4)
    near(model["four_linear"](x), x.float() @ four[3].numbers().T, 2.0**-7)


def test_replace_names_what_it_keeps():
    model = made("gemma3_text", tie_word_embeddings=True)
    model.model.layers[0].mlp.act_fn = nn.ReLU()
    model.model.layers[1].self_attn.q_proj.register_forward_hook(lambda *_: None)
    report = ours.replace(model, ignore=["model.layers.1.mlp"])
    assert report.kept["lm_head"] == "it shares a weight with model.embed_tokens"
    assert report.kept["model.layers.1.mlp"] == "it is in ignore"
    assert "has a forward hook" in report.kept["model.layers.1.self_attn.q_proj"]
    assert report.kept["model.layers.0.mlp"].startswith("the activation of the module Gemma3MLP is ReLU")
    assert {f"model.layers.0.mlp.{name}_proj" for name in ("gate", "up", "down")} < report.replaced.keys()
    assert len(str(report).splitlines()) == len(report.replaced) + len(report.kept)
    assert isinstance(model.model.layers[1].mlp.gate_proj, nn.Linear)


def test_replace_leaves_out_what_is_not_wanted():
    model = made("mixtral")
    assert not ours.replace(model, linears=False).replaced
    report = ours.replace(model, gated_mlps=False)
    assert report.kept["model.layers.0.mlp.experts"] == "experts_implementation='thresher' computes experts, and replace leaves them alone"
    wide = made("llama").float()
    assert not (report := ours.replace(wide)).replaced
    assert report.kept["lm_head"] == "weight is float32, expected float16 or bfloat16: load the model with dtype=torch.bfloat16"
    refused(lambda: ours.replace(made("llama"), ignore=["mlp"]), "ignore has 'mlp', which the model LlamaForCausalLM does not have")


def test_a_linear_layer_with_a_bias_saves_and_loads():
    layer = nn.Linear(128, 72).bfloat16()
    made, x = tt.Linear.from_float(layer), torch.randn(2, 5, 128).bfloat16()
    exact = x.float() @ layer.weight.float().T + layer.bias.float()
    assert (made(x).float() - exact).abs().max() <= 2.0**-8 * exact.abs().max()
    other = tt.Linear(torch.zeros(72, 128, dtype=torch.bfloat16), torch.zeros(72))
    other.load_state_dict(made.state_dict())
    assert torch.equal(other(x), made(x))
    assert repr(made) == "Linear(k=128, n=72, format=bfloat16, bias)"
    refused(lambda: made(torch.randn(2, 64)), "x is [2, 64], expected [..., 128]")


# What is not computed.


def test_masks_that_are_no_lengths_are_refused():
    model, ids = with_ours(made("llama")), prompt()
    mask = torch.ones_like(ids)
    mask[0, 3] = 0
    refused(lambda: model(ids, attention_mask=mask), "attention_mask leaves out keys behind the first one that it has")
    refused(lambda: model(ids, attention_mask=torch.zeros(2, 1, 13, 13)), "attention 'thresher' takes no mask of numbers, float32 [2, 1, 13, 13]",
            thresher.UnsupportedError)
    refused(lambda: model(ids[:1], position_ids=torch.tensor([[*range(6), *range(7)]]), use_cache=False), "is neither causal nor of all keys")
    chunks = masking_utils.chunked_causal_mask_function(4, torch.zeros(2, dtype=torch.long))
    for unknown in (chunks, masking_utils.sliding_window_overlay(4)):
        refused(lambda: _masks.mask_of(2, 13, 13, mask_function=unknown), "is neither causal nor of all keys")


def test_padding_behind_a_prompt_counts_for_nothing_until_there_is_more():
    model, ids = with_ours(made("llama")), prompt()
    mask = torch.ones_like(ids)
    mask[0, 9:] = 0
    found = model(ids, attention_mask=mask, use_cache=True)
    assert torch.equal(found.logits, model(ids).logits)
    named = {"cache" if "cache" in inspect.signature(type(model).forward).parameters else "past_key_values": found.past_key_values
             if hasattr(found, "past_key_values") else found.cache}
    refused(lambda: model(ids[:, :1], attention_mask=torch.cat([mask, mask[:, :1]], 1), **named), "leaves out keys behind the first one")


def test_what_attention_lacks_is_refused():
    model, ids = with_ours(made("llama", attention_dropout=0.5)), prompt()
    refused(lambda: model.train()(ids), "attention 'thresher' takes no dropout of 0.5", thresher.UnsupportedError)
    refused(lambda: with_ours(made("llama").float())(ids), "q is float32")
    refused(lambda: with_ours(made("mixtral").float()).model.layers[0].mlp(torch.randn(1, 3, 128)),
            "gate_up_proj is float32, expected float16 or bfloat16")


def test_experts_are_packed_before_they_are_compiled():
    model, rows = with_ours(made("mixtral")), torch.randn(1, 3, 128).bfloat16()
    block = model.model.layers[0].mlp
    with pytest.raises(Exception, match="are not packed yet, which torch.compile cannot record"):
        torch.compile(block, fullgraph=True, backend="aot_eager")(rows)
    assert ours.prepare(model) is model
    assert torch.equal(torch.compile(block, fullgraph=True, backend="aot_eager")(rows), block(rows))


@pytest.mark.parametrize("found", ["5.17.0", "5.20.2", "5.24.0", "5.24.0.dev0"])
def test_tested_releases_say_nothing(found, caplog):
    _release.expect_tested(found)
    assert not caplog.records


def test_other_releases_are_named_in_one_line(caplog):
    said = "thresher.transformers was tested with transformers 5.17.0 to 5.24.0, but {} is installed"
    with pytest.raises(thresher.UnsupportedError, match=said.format("5.9.1") + ": install a newer one"):
        _release.expect_tested("5.9.1")
    _release.expect_tested("6.0.0rc1")
    (line,) = [one.getMessage() for one in caplog.records]
    assert line.startswith(said.format("6.0.0rc1")) and "\n" not in line
