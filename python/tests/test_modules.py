"""Modules made from float ones: what they take over, what they refuse, what they save, and what they take."""

import types

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: the tests of modules are left out")

import thresher  # noqa: E402
import thresher.torch as tt  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402


@pytest.fixture(autouse=True)
def no_gradients():
    torch.manual_seed(20261123)
    with torch.no_grad():
        yield


def normal(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape).to(dtype)


def close(result, exact, steps):
    """Within so many roundings to bfloat16 of the largest."""
    assert result.shape == exact.shape
    assert (result.double() - exact).abs().max() <= steps * 2.0**-8 * exact.abs().max()


def refused(call, sentence, kind=thresher.InvalidArgumentError):
    with pytest.raises(kind) as refusal:
        call()
    assert sentence in str(refusal.value), refusal.value
    assert "\n" not in str(refusal.value)


# Attention, as transformers writes it.


class RMSNorm(nn.Module):
    def __init__(self, width, offset=0.0, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5 - offset)
        self.variance_epsilon = eps
        self._offset = offset

    def forward(self, x):
        wide = x.float() if x.dtype != torch.float64 else x
        normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.variance_epsilon)
        return (normed * (self._offset + self.weight.to(wide.dtype))).to(x.dtype)


def rotate_half(x):
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1)


def apply_rotary_pos_emb(q, k, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def apply_rotary_emb_interleaved(q, k, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return tuple(x * cos + torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2) * sin for x in (q, k))


def apply_rotary_emb_backwards(q, k, cos, sin):
    return apply_rotary_pos_emb(q, k, cos, -sin)


class Parts(nn.Module):
    """The attributes of Llama's attention."""

    def __init__(self, bias=False, o_bias=False, head_dim=64, **attributes):
        super().__init__()
        self.config = types.SimpleNamespace(hidden_size=96)
        self.layer_idx, self.head_dim, self.num_key_value_groups = 0, head_dim, 2
        self.scaling, self.attention_dropout, self.is_causal = head_dim**-0.5, 0.0, True
        self.q_proj = nn.Linear(96, 4 * head_dim, bias=bias)
        self.k_proj, self.v_proj = (nn.Linear(96, 2 * head_dim, bias=bias) for _ in range(2))
        self.o_proj = nn.Linear(4 * head_dim, 96, bias=o_bias)
        for name, value in attributes.items():
            setattr(self, name, value)


class Attention(Parts):
    def projected(self, x):
        q, k, v = (proj(x).unflatten(-1, (-1, self.head_dim)) for proj in (self.q_proj, self.k_proj, self.v_proj))
        if hasattr(self, "q_norm"):
            q, k = self.q_norm(q), self.k_norm(k)
        return (one.transpose(1, 2) for one in (q, k, v))

    def attended(self, q, k, v, window=None):
        k, v = (one.repeat_interleave(self.num_key_value_groups, 1) for one in (k, v))
        logits = q @ k.transpose(2, 3) * self.scaling
        softcap, window = getattr(self, "attn_logit_softcapping", None), getattr(self, "sliding_window", window)
        if softcap is not None:
            logits = softcap * torch.tanh(logits / softcap)
        rows, columns = torch.arange(q.shape[2])[:, None], torch.arange(q.shape[2])
        hidden = (columns > rows) if self.is_causal else torch.zeros(q.shape[2], q.shape[2], dtype=torch.bool)
        if window is not None:
            hidden |= columns <= rows - window
        result = logits.masked_fill(hidden, -torch.inf).softmax(-1) @ v
        return self.o_proj(result.transpose(1, 2).flatten(2))

    def forward(self, hidden_states, position_embeddings, attention_mask=None, cache=None, **kwargs):
        q, k, v = self.projected(hidden_states)
        q, k = apply_rotary_pos_emb(q, k, *position_embeddings)
        return self.attended(q, k, v), None


class Interleaved(Attention):
    def forward(self, hidden_states, position_embeddings, attention_mask=None, **kwargs):
        q, k, v = self.projected(hidden_states)
        q, k = apply_rotary_emb_interleaved(q, k, *position_embeddings)
        return self.attended(q, k, v), None


class Backwards(Attention):
    def forward(self, hidden_states, position_embeddings):
        q, k, v = self.projected(hidden_states)
        return self.attended(*apply_rotary_emb_backwards(q, k, *position_embeddings), v)


class Elsewhere(Attention):
    def forward(self, hidden_states, position_embeddings):
        q, k, v = self.projected(hidden_states)
        cos, sin = (one.unsqueeze(1) for one in position_embeddings)
        q, k = (x * cos + torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2) * sin for x in (q, k))
        return self.attended(q, k, v)


class WithoutPositions(Attention):
    def forward(self, hidden_states, attention_mask=None):
        return self.attended(*self.projected(hidden_states)), None


class OfConfig(Attention):
    def forward(self, hidden_states, position_embeddings, attention_mask=None):
        q, k, v = self.projected(hidden_states)
        q, k = apply_rotary_pos_emb(q, k, *position_embeddings)
        return self.attended(q, k, v, getattr(self.config, "sliding_window", None)), None


class Unread(Parts):
    """As Gemma-3's forward does not read its softcap."""

    def forward(self, hidden_states, position_embeddings):
        raise NotImplementedError


class Scaling(Attention):
    def forward(self, hidden_states, position_embeddings, attention_mask=None, position_ids=None):
        q, k, v = self.projected(hidden_states)
        q, k = apply_rotary_pos_emb(q * position_ids, k, *position_embeddings)
        return self.attended(q, k, v)


class ByType(Attention):
    def forward(self, hidden_states, position_embeddings):
        q, k, v = self.projected(hidden_states)
        if self.layer_type == "sliding_attention":
            q, k = apply_rotary_pos_emb(q, k, *position_embeddings)
        return self.attended(q, k, v)


class ByHead(Attention):
    def forward(self, hidden_states, position_embeddings):
        q, k, v = self.projected(hidden_states)
        q, k = apply_rotary_pos_emb(q, k, *position_embeddings, unsqueeze_dim=2)
        return self.attended(q, k, v)


class Crossing(Attention):
    def forward(self, hidden_states, key_value_states=None):
        return self.attended(*self.projected(hidden_states))


def norms(**options):
    return dict(q_norm=RMSNorm(64, **options), k_norm=RMSNorm(64, **options))


def positions(batch, length, columns=64, dtype=torch.float32):
    angles = torch.arange(length, dtype=torch.float64)[:, None] * 100.0 ** (-torch.arange(columns // 2) / (columns // 2))
    both = torch.cat([angles, angles], -1).expand(batch, length, columns)
    return both.cos().to(dtype), both.sin().to(dtype)


def doubled(module):
    """The module in float64, of weights that were rounded to bfloat16 once; norms are kept as they are."""
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        getattr(module, name).bfloat16()
    return module.double()


ATTENTION = {
    "llama": lambda: Attention(),
    "llama with biases": lambda: Attention(bias=True, o_bias=True),
    "qwen2": lambda: Attention(bias=True, sliding_window=None, layer_type="full_attention"),
    "qwen3": lambda: Attention(**norms(), sliding_window=None),
    "gemma2": lambda: Attention(scaling=100.0**-0.5, attn_logit_softcapping=2.0, sliding_window=4),
    "gemma3": lambda: Attention(**norms(offset=1.0), sliding_window=5, is_sliding=True),
    "an eps that counts": lambda: Attention(**norms(eps=0.3)),
    "not causal": lambda: Attention(is_causal=False),
    "cohere": lambda: Interleaved(),
    "no positions": lambda: WithoutPositions(),
}


def call_of(module, x, dtype=torch.float32):
    return (x,) if isinstance(module, WithoutPositions) else (x, positions(1, x.shape[1], dtype=dtype))


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_takes_over_what_changes_its_function(name):
    module = ATTENTION[name]()
    ours = tt.Attention.from_float(module)
    x = normal(2, 11, 96)
    result = ours(*call_of(module, x))
    close(result, doubled(module)(*call_of(module, x.double(), torch.float64))[0], 6)
    torch._dynamo.reset()
    assert torch.equal(torch.compile(ours, fullgraph=True, backend="aot_eager")(*call_of(module, x)), result)
    again = tt.Attention.from_float(ATTENTION[name]())
    again.load_state_dict(ours.state_dict())
    assert torch.equal(again(*call_of(module, x)), result)


def test_attention_takes_what_is_near_the_module():
    module = OfConfig()
    module.config.sliding_window = 3
    ours = tt.Attention.from_float(module)
    assert (ours.options["window_left"], ours.options["window_right"]) == (2, 0)
    x = normal(1, 9, 96)
    close(ours(x, positions(1, 9)), doubled(module)(x.double(), positions(1, 9, dtype=torch.float64))[0], 6)
    module = Attention()
    del module.scaling
    module.config.query_pre_attn_scalar = 144
    assert tt.Attention.from_float(module).options["scale"] == 1 / 12
    module = Unread()
    module.config.sliding_window = 3
    assert tt.Attention.from_float(module, pairs="halves").options["window_left"] == -1
    assert tt.Attention.from_float(Attention(), scale=1 / 8, window=(-1, -1), causal=True, head_dim=64, pairs="halves").pairs == "halves"
    assert tt.Attention.from_float(Elsewhere(), pairs="interleaved").pairs == "interleaved"
    assert tt.Attention.from_float(Unread(attn_logit_softcapping=2.0), pairs="halves", ignore=["attn_logit_softcapping"]).options["softcap"] == 0.0
    assert tt.Attention.from_float(Attention(use_rope=True), ignore=["use_rope"]).pairs == "halves"


@pytest.mark.parametrize("call, kind", [
    (lambda: tt.GatedMLP.from_float(None), "NoneType"),
    (lambda: tt.MoE.from_float([3]), "int"),
    (lambda: tt.MoE.from_float(types.SimpleNamespace(gate_up_proj=torch.ones(1, 2, 1))), "SimpleNamespace"),
    (lambda: tt.Attention.from_float("attention"), "str"),
])
def test_what_is_no_module_is_refused(call, kind):
    refused(call, f"module is a {kind}, expected a torch.nn.Module")


def test_modules_are_made_where_gradients_are_recorded():
    with torch.enable_grad():
        for module in (tt.GatedMLP.from_float(MLP(nn.SiLU())), tt.MoE.from_float(GptOss()), tt.Attention.from_float(Attention(**norms()))):
            assert not list(module.parameters()) and not any(one.requires_grad for one in module.buffers())


def test_a_part_of_each_head_turns():
    module = Attention()
    ours = tt.Attention.from_float(module)
    x, (cos, sin) = normal(1, 7, 96), positions(1, 7, 16, torch.float64)
    exact = doubled(module)
    q, k, v = exact.projected(x.double())
    turned = apply_rotary_pos_emb(q[..., :16], k[..., :16], cos, sin)
    q, k = (torch.cat([first, rest[..., 16:]], -1) for first, rest in zip(turned, (q, k)))
    close(ours(x, (cos, sin)), exact.attended(q, k, v), 6)


class LayerNorm(RMSNorm):
    def forward(self, x):
        return super().forward(x - x.mean(-1, keepdim=True))


class Compressed(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj, self.kv_a_proj_with_mqa = nn.Linear(96, 64), nn.Linear(96, 64)


def with_q_proj(layer):
    module = Attention()
    module.q_proj = layer
    return module


class Quantised(nn.Linear):
    def __init__(self):
        super().__init__(96, 256, bias=False)
        self.register_buffer("weight_scale_inv", torch.ones(1))


class PerLayer:
    """A configuration whose layers differ."""

    def __getattr__(self, name):
        raise RuntimeError(f"{name} varies\nacross layers")


ATTENTION_REFUSED = [
    (lambda: OfConfig(config=PerLayer()), {}, "softcapping of the configuration of the module OfConfig cannot be read: attn_logit_softcapping varies"),
    (lambda: Attention(sinks=nn.Parameter(torch.zeros(4))), {}, "the module Attention has sinks [4], which Attention does not take over"),
    (lambda: Attention(rotary_emb=nn.Linear(2, 2)), {}, "has rotary_emb (Linear)"),
    (lambda: Attention(use_rope=False), {}, "has use_rope (False)"),
    (lambda: Attention(sliding_window_pattern=4), {}, "has sliding_window_pattern (4)"),
    (lambda: Attention(is_causal=False, sliding_window=4), {}, "has sliding_window 4 and is not causal"),
    (lambda: Attention(sliding_window=4, is_sliding=False), {}, "is_sliding of the module Attention is False, but its sliding_window is 4"),
    (lambda: Attention(sliding_window=0.5), {}, "sliding_window of the module Attention is 0.5"),
    (lambda: Attention(q_norm=RMSNorm(256), k_norm=RMSNorm(128)), {}, "q_norm is a RMSNorm with a weight [256] and eps 1e-06"),
    (lambda: Attention(q_norm=LayerNorm(64), k_norm=LayerNorm(64)), {}, "q_norm is a LayerNorm that computes another function"),
    (lambda: Attention(q_norm=RMSNorm(64), k_norm=RMSNorm(64, eps=1e-5)), {}, "q_norm and k_norm have the eps 1e-06 and 1e-05"),
    (lambda: Unread(attn_logit_softcapping=2.0), {}, "the module Unread has attn_logit_softcapping 2.0, which its forward does not read"),
    (Scaling, {}, "the forward of the module Scaling takes position_ids, which Attention does not take"),
    (lambda: ByType(layer_type="full_attention"), {}, "the module ByType has layer_type ('full_attention')"),
    (ByHead, {}, "the module ByHead takes position_embeddings, but how it turns by them cannot be seen"),
    (lambda: Attention(scaling=nn.Parameter(torch.ones(64))), {}, "scaling of the module Attention is a Parameter, expected a number"),
    (Compressed, {}, "the module has no layer k_proj, but q_proj, kv_a_proj_with_mqa"),
    (Crossing, {}, "the forward of the module Crossing takes key_value_states"),
    (Backwards, {}, "apply_rotary_emb_backwards of the module's forward turns queries and keys neither in halves nor interleaved"),
    (Elsewhere, {}, "the module Elsewhere takes position_embeddings, but how it turns by them cannot be seen, expected it in pairs"),
    (lambda: with_q_proj(Quantised()), {}, "the layer q_proj, a Quantised, has weight_scale_inv"),
    (lambda: with_q_proj(nn.Conv1d(96, 256, 1)), {}, "the layer q_proj is a Conv1d, expected torch.nn.Linear"),
    (lambda: with_q_proj(nn.Linear(96, 256, bias=False).to(torch.float8_e4m3fn)), {}, "the weight of the layer q_proj is float8_e4m3fn"),
    (Attention, dict(scale=0.5), "scale is 0.5, but that of the module Attention is 0.125"),
    (Attention, dict(causal=False), "causal is False, but that of the module Attention is True"),
    (Attention, dict(head_dim=128), "head_dim is 128, but that of the module Attention is 64"),
    (Attention, dict(pairs="none"), "pairs is 'none', but that of the module Attention is 'halves'"),
    (lambda: Attention(sliding_window=4), dict(window=(4, 0)), "window is (4, 0), but that of the module Attention is (3, 0)"),
    (lambda: Attention(attn_logit_softcapping=30.0), dict(softcap=50.0), "softcap is 50.0, but that of the module Attention is 30.0"),
    (lambda: _without(Attention(), "head_dim"), {}, "does not say its head_dim"),
    (Attention, dict(ignore="sinks"), "ignore is 'sinks', expected the names of parts"),
]


def _without(module, name):
    delattr(module, name)
    return module


@pytest.mark.parametrize("make, given, sentence", ATTENTION_REFUSED, ids=[sentence for *_, sentence in ATTENTION_REFUSED])
def test_attention_refuses_what_it_would_leave_out(make, given, sentence):
    refused(lambda: tt.Attention.from_float(make(), **given), sentence)


def plain_attention(**options):
    return tt.Attention(torch.ones(128, 96), torch.ones(64, 96), torch.ones(64, 96), torch.ones(96, 128), head_dim=64, **options)


@pytest.mark.parametrize("call, sentence", [
    (lambda: plain_attention(pairs="halves")(normal(1, 3, 96)), "position_embeddings are missing: this attention turns"),
    (lambda: plain_attention()(normal(1, 3, 96), positions(1, 3)), "position_embeddings are given, but this attention does not turn"),
    (lambda: plain_attention(pairs="halves")(normal(1, 3, 96), positions(1, 4)), "position_embeddings are float32 [1, 4, 64]"),
    (lambda: plain_attention(pairs="halves")(normal(1, 3, 96), positions(1, 3, 128)), "expected floating point [1 or 1, 3, columns]"),
    (lambda: plain_attention(pairs="halves")(normal(1, 3, 96), torch.ones(2)), "position_embeddings are of the type Tensor"),
    (lambda: plain_attention()(normal(1, 3, 96), cache=object()), "cache is given, expected x and position_embeddings alone"),
    (lambda: plain_attention()(normal(1, 3, 96), attention_mask=torch.ones(1)), "attention_mask is given"),
    (lambda: plain_attention()(normal(3, 96)), "x is [3, 96], expected [B, S, 96]"),
    (lambda: plain_attention()(torch.ones(1, 3, 96, dtype=torch.int64)), "x is int64, expected float16"),
    (lambda: plain_attention(pairs="both"), "pairs is 'both', expected one of none, halves, interleaved"),
    (lambda: plain_attention(window=4), "window is 4"),
    (lambda: plain_attention(causal="yes"), "causal is 'yes'"),
    (lambda: plain_attention(scale="x"), "scale is 'x'"),
    (lambda: plain_attention(q_bias=torch.ones(64)), "q_bias has 64 elements, expected 128"),
    (lambda: plain_attention(k_norm=torch.ones(2, 32)), "k_norm is [2, 32], expected a tensor of 1 dimension"),
    (lambda: tt.Attention(torch.ones(128, 96), torch.ones(64, 96), torch.ones(64, 96), torch.ones(96, 64), head_dim=64), "and o 64, expected"),
])
def test_attention_calls_and_constructors_refused(call, sentence):
    refused(call, sentence)


# Activations.


def quick_gelu(x):
    return x * torch.sigmoid(1.702 * x)


def own_silu(x):
    return x * torch.sigmoid(x)


class MLP(nn.Module):
    def __init__(self, act=None, k=32, n=24, names=("gate_proj", "up_proj", "down_proj"), **attributes):
        super().__init__()
        self.names = None
        self._names = names
        for name, (rows, columns) in zip(names, ((k, n), (k, n), (n, k))):
            setattr(self, name, nn.Linear(rows, columns, bias=False))
        if act is not None:
            self.act_fn = act
        for name, value in attributes.items():
            setattr(self, name, value)


class Fused(nn.Module):
    """As Phi-3 has it."""

    def __init__(self, k=32, n=24):
        super().__init__()
        self.gate_up_proj, self.down_proj = nn.Linear(k, 2 * n, bias=False), nn.Linear(n, k, bias=False)
        self.activation_fn = nn.SiLU()


def config(**said):
    return types.SimpleNamespace(**said)


TAKEN = [
    (nn.SiLU(), {}, "silu"),
    (own_silu, {}, "silu"),
    (functional.silu, {}, "silu"),
    (nn.GELU(approximate="tanh"), {}, "gelu_tanh"),
    (None, dict(config=config(hidden_act="silu")), "silu"),
    (None, dict(config=config(hidden_act="swish")), "silu"),
    (None, dict(config=config(hidden_activation="gelu_pytorch_tanh", hidden_act="gelu")), "gelu_tanh"),
    (None, dict(hidden_act="gelu_pytorch_tanh"), "gelu_tanh"),
    (nn.GELU(approximate="tanh"), dict(config=config(hidden_act="silu")), "gelu_tanh"),  # the module's own decides
]
EXACT = {"silu": functional.silu, "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh")}


@pytest.mark.parametrize("act, attributes, name", TAKEN)
def test_the_activation_of_a_module_is_taken_over(act, attributes, name):
    module = MLP(act, **attributes)
    x, ids, weights = normal(5, 32), torch.zeros(5, 1, dtype=torch.int64), torch.ones(5, 1)
    exact = module.bfloat16().double()
    expected = exact.down_proj(EXACT[name](exact.gate_proj(x.double())) * exact.up_proj(x.double()))
    for ours in (tt.GatedMLP.from_float(module), tt.GatedMLP.from_float(module, activation=name)):
        assert (ours.activation, ours.constants) == (name, {})
        close(ours(x), expected, 3)
    close(tt.MoE.from_float([module, module])(x, ids, weights), expected, 3)


def test_fused_gate_and_up_are_taken():
    module = Fused()
    ours = tt.GatedMLP.from_float(module)
    x, exact = normal(5, 32), module.bfloat16().double()
    gate, up = exact.gate_up_proj(x.double()).chunk(2, -1)
    close(ours(x), exact.down_proj(functional.silu(gate) * up), 3)


def test_a_limit_is_given_by_hand():
    module = MLP(nn.SiLU(), swiglu_limit=0.5)
    refused(lambda: tt.GatedMLP.from_float(module), "limits gate and up to 0.5, expected activation 'swiglu_clamped' with this limit")
    ours = tt.GatedMLP.from_float(module, activation="swiglu_clamped", limit=0.5, alpha=1.0, up_offset=0.0)
    x, exact = 3 * normal(5, 32), module.bfloat16().double()
    gate, up = exact.gate_proj(x.double()).clamp(max=0.5), exact.up_proj(x.double()).clamp(-0.5, 0.5)
    close(ours(x), exact.down_proj(functional.silu(gate) * up), 3)


REFUSED_ACTIVATIONS = [
    (lambda: MLP(nn.GELU()), {}, "the activation of the module MLP is GELU, expected 'silu' or 'gelu_tanh'"),
    (lambda: MLP(nn.ReLU()), dict(activation="silu"), "the activation of the module MLP is ReLU"),
    (lambda: MLP(quick_gelu), {}, "is quick_gelu"),
    (lambda: MLP(lambda x: functional.silu(x).clamp(max=200)), {}, "the activation of the module MLP is"),
    (lambda: MLP(config=config(hidden_act="gelu")), {}, "the activation of the module MLP is 'gelu'"),
    (lambda: MLP(nn.SiLU()), dict(activation="gelu_tanh"), "activation is 'gelu_tanh', but that of the module MLP is 'silu'"),
    (lambda: MLP(config=config(hidden_act="gelu_pytorch_tanh")), dict(activation="swish"), "activation is 'silu', but that of the module MLP is 'gelu_tanh'"),
    (MLP, {}, "the module MLP does not say its activation, expected it in activation"),
    (MLP, dict(alpha=2.0), "alpha is 2.0 without activation"),
    (lambda: MLP(nn.SiLU(), config=config(swiglu_limit=7.0)), {}, "limits gate and up to 7.0"),
    (lambda: MLP(nn.SiLU(), limit=7.0), dict(activation="swiglu_clamped", limit=6.0), "limits gate and up to 7.0"),
    (lambda: MLP(nn.SiLU(), gate_multiplier=2.0), {}, "the module MLP has gate_multiplier (2.0), which GatedMLP does not take over"),
    (lambda: MLP(nn.SiLU(), norm=nn.LayerNorm(24)), {}, "has norm (LayerNorm)"),
    (lambda: MLP(nn.SiLU(), scale=nn.Parameter(torch.ones(24))), {}, "has scale [24]"),
]


@pytest.mark.parametrize("make, given, sentence", REFUSED_ACTIVATIONS, ids=[sentence for *_, sentence in REFUSED_ACTIVATIONS])
def test_activations_refused(make, given, sentence):
    refused(lambda: tt.GatedMLP.from_float(make(), **given), sentence)
    refused(lambda: tt.MoE.from_float([make()], **given), sentence)


def test_experts_of_one_activation():
    refused(lambda: tt.MoE.from_float([MLP(nn.SiLU()), MLP(nn.GELU(approximate="tanh"))]), "the activation of expert 1 is 'gelu_tanh'")
    refused(lambda: tt.MoE.from_float([MLP(nn.SiLU()), MLP(nn.SiLU(), n=16)]), "gate and down of expert 1 are [16, 32] and [32, 16]")
    assert tt.GatedMLP.from_float(MLP(nn.SiLU(), dropout=nn.Dropout(0.1), strange=3), ignore=("strange",)).activation == "silu"


# One module with all experts.


class Experts(nn.Module):
    """As transformers 5 has them: [E, 2·N, K] and [E, K, N]."""

    def __init__(self, act=None, e=3, n=16, k=32, **said):
        super().__init__()
        self.num_experts, self.hidden_dim, self.intermediate_dim = e, k, n
        self.gate_up_proj, self.down_proj = nn.Parameter(torch.randn(e, 2 * n, k) / 4), nn.Parameter(torch.randn(e, k, n) / 4)
        if act is not None:
            self.act_fn = act
        for name, value in said.items():
            setattr(self, name, value)

    def hidden(self, gate_up):
        gate, up = gate_up.chunk(2, -1)
        return functional.silu(gate) * up

    def forward(self, x, ids, weights):
        rows = torch.zeros(*ids.shape, x.shape[1], dtype=x.dtype)
        for (token, choice), e in zip(torch.cartesian_prod(*map(torch.arange, ids.shape)).tolist(), ids.flatten()):
            rows[token, choice] = weights[token, choice] * self.down(e, self.hidden(self.up(e, x[token])))
        return rows.sum(1)

    def up(self, e, x):
        return self.gate_up_proj[e] @ x

    def down(self, e, hidden):
        return self.down_proj[e] @ hidden


class Gating(Experts):
    """With what transformers' decorator adds."""

    def _apply_gate(self, gate_up_out):
        gate, up = gate_up_out.chunk(2, -1)
        return self.act_fn(gate) * up


class GptOss(Experts):
    def __init__(self, e=3, n=16, k=32, **said):
        nn.Module.__init__(self)
        self.gate_up_proj, self.gate_up_proj_bias = nn.Parameter(torch.randn(e, k, 2 * n) / 2), nn.Parameter(torch.randn(e, 2 * n))
        self.down_proj, self.down_proj_bias = nn.Parameter(torch.randn(e, n, k) / 4), nn.Parameter(torch.randn(e, k))
        self.alpha, self.limit = 1.5, 3.0
        for name, value in said.items():
            setattr(self, name, value)

    def _apply_gate(self, gate_up):
        gate, up = gate_up[..., ::2].clamp(max=self.limit), gate_up[..., 1::2].clamp(-self.limit, self.limit)
        return (up + 1) * gate * torch.sigmoid(self.alpha * gate)

    hidden = _apply_gate

    def up(self, e, x):
        return x @ self.gate_up_proj[e] + self.gate_up_proj_bias[e]

    def down(self, e, hidden):
        return hidden @ self.down_proj[e] + self.down_proj_bias[e]


SAID = dict(has_gate=True, has_bias=False, has_post_expert_norm=False, is_transposed=False, is_concatenated=True, _is_expert_parallel=False)
STACKED = {
    "mixtral": (lambda: Gating(nn.SiLU(), config=config(hidden_act="silu"), **SAID), {}),
    "is_concatenated alone": (lambda: Experts(nn.SiLU(), is_concatenated=True), {}),
    "an order alone": (lambda: Experts(nn.SiLU()), dict(order="gate_first")),
    "gpt-oss": (GptOss, {}),
    "gpt-oss and all that it says": (lambda: GptOss(has_bias=True, is_transposed=True, is_concatenated=False),
                                     dict(activation="swiglu_clamped", alpha=1.5, limit=3.0, order="interleaved")),
}


def routing(tokens, experts=3):
    return torch.randint(0, experts, (tokens, 2)), torch.rand(tokens, 2)


@pytest.mark.parametrize("name", STACKED)
def test_experts_in_one_module_are_taken(name):
    make, given = STACKED[name]
    module, x, (ids, weights) = make(), normal(6, 32), routing(6)
    biases = {key: one.detach().clone() for key, one in module.named_parameters() if key.endswith("bias")}
    ours = tt.MoE.from_float(module, **given)
    exact = module.bfloat16().double()
    for key, bias in biases.items():  # which are kept in float32
        setattr(exact, key, nn.Parameter(bias.double()))
    close(ours(x, ids, weights), exact(x.double(), ids, weights.double()), 4)
    again = tt.MoE.from_float(make(), **given)
    again.load_state_dict(ours.state_dict())
    assert torch.equal(again(x, ids, weights), ours(x, ids, weights))


class Odd(Gating):
    def _apply_gate(self, gate_up_out):
        return functional.gelu(gate_up_out.chunk(2, -1)[0])


@pytest.mark.parametrize("make, given, sentence", [
    (lambda: Experts(nn.SiLU()), {}, "the module Experts does not say how gate and up lie in gate_up_proj, expected it in order"),
    (lambda: Gating(nn.SiLU()), dict(order="interleaved"), "order is 'interleaved', but gate and up of the module Gating lie 'gate_first'"),
    (lambda: Gating(nn.SiLU()), dict(order="both"), "order is 'both'"),
    (lambda: Gating(nn.SiLU()), dict(activation="gelu_tanh"), "activation is 'gelu_tanh', but that of the module Gating is 'silu'"),
    (lambda: Gating(nn.GELU()), {}, "_apply_gate of the module Gating with GELU is no activation that is computed"),
    (lambda: Odd(nn.SiLU()), {}, "_apply_gate of the module Odd with SiLU is no activation"),
    (GptOss, dict(activation="swiglu_clamped", alpha=1.702, limit=3.0), "but that of the module GptOss is 'swiglu_clamped', alpha 1.5"),
    (lambda: Gating(nn.SiLU(), has_post_expert_norm=True), {}, "has_post_expert_norm of the module Gating is True, expected False"),
    (lambda: Gating(nn.SiLU(), _is_expert_parallel=True), {}, "_is_expert_parallel of the module Gating is True"),
    (lambda: Gating(nn.SiLU(), router=nn.Linear(2, 2)), {}, "the module Gating has router (Linear), which MoE does not take over"),
    (lambda: Gating(nn.SiLU(), down_proj=nn.Parameter(torch.ones(3, 8, 8))), {}, "is [3, 32, 32] and down_proj [3, 8, 8]"),
    (lambda: MLP(nn.SiLU()), {}, "experts is a MLP of gate_proj, up_proj, down_proj, act_fn, expected a sequence of gated MLPs"),
    (lambda: 3, {}, "experts is a int, expected a sequence"),
    (lambda: {MLP(nn.SiLU()), MLP(nn.SiLU())}, {}, "experts is a set, expected a sequence of gated MLPs"),
    (lambda: {0: MLP(nn.SiLU())}, {}, "experts is a dict, expected a sequence of gated MLPs"),
    (lambda: [MLP(nn.SiLU())], dict(order="gate_first"), "order is 'gate_first', but each expert has gate and up of its own"),
    (lambda: [], {}, "there are no experts"),
])
def test_experts_refused(make, given, sentence):
    refused(lambda: tt.MoE.from_float(make(), **given), sentence)


# What a module computes that its parts do not say.


class Gated(MLP):
    """With a forward, and what it gives."""

    def __init__(self, result=lambda self, x: x, act=None, **attributes):
        super().__init__(act or nn.SiLU(), **attributes)
        self._result = result

    def forward(self, x):
        return self._result(self, self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x)))


class Swapped(Gated):
    def forward(self, x):
        return self.down_proj(self.act_fn(self.up_proj(x)) * self.gate_proj(x))


class Rectified(Gated):
    def forward(self, x):
        return self.down_proj(torch.relu(self.gate_proj(x)) * self.up_proj(x))


class Negative(nn.Identity):
    def forward(self, x):
        return -x


class Scattered(nn.Dropout):
    def forward(self, x):
        return 3 * x


class Adapted(nn.Linear):
    """As LoRA keeps what it adds."""

    def __init__(self, columns, rows):
        super().__init__(columns, rows, bias=False)
        self.added = [torch.randn(rows, columns)]

    def forward(self, x):
        return super().forward(x) + x @ self.added[0].T


class OfClass(Gated):
    out_scale = 0.25


class WithProperty(Gated):
    @property
    def out_scale(self):
        return 0.25


def scaled(self, x):
    return x * self.out_scale


def changed(change, module=Gated):
    made = module()
    change(made)
    return made


def twice(forward):
    return lambda x: 2 * forward(x)


OTHERWISE = [
    (lambda: Gated(lambda self, x: 0.25 * x), "the module Gated computes something else than down of activation 'silu' of gate times up"),
    (lambda: Gated(lambda self, x: x * self._scale, _scale=0.25), "differs by 0.75 of the largest output"),
    (lambda: Gated(lambda self, x: x * self.config.scale, config=config(scale=0.5)), "the module Gated computes something else"),
    (lambda: OfClass(scaled), "the module OfClass computes something else"),
    (lambda: WithProperty(scaled), "the module WithProperty computes something else"),
    (Swapped, "the module Swapped computes something else"),
    (Rectified, "the module Rectified computes something else"),
    (lambda: Gated(lambda self, x: x[..., :8]), "the module Gated computes something else"),
    (lambda: Gated(lambda self, x: self.last(x), last=Negative()), "has last (Negative), which GatedMLP does not take over"),
    (lambda: Gated(lambda self, x: self.last(x), last=Scattered()), "has last (Scattered), which GatedMLP does not take over"),
    (lambda: Gated(up_proj=Adapted(32, 24)), "the layer up_proj, a Adapted, has a forward of its own, expected that of torch.nn.Linear"),
    (lambda: changed(lambda one: setattr(one.down_proj, "forward", twice(one.down_proj.forward))), "the part down_proj of the module Gated has a forward"),
    (lambda: changed(lambda one: setattr(one, "forward", twice(one.forward))), "the module Gated has a forward of its own in place of that of its class"),
    (lambda: changed(lambda one: one.register_forward_hook(lambda *given: 2 * given[-1])), "the module Gated has a forward hook"),
    (lambda: changed(lambda one: one.register_forward_pre_hook(lambda *given: None)), "the module Gated has a forward hook"),
    (lambda: changed(lambda one: one.down_proj.register_forward_hook(lambda *given: 2 * given[-1])), "the part down_proj of the module Gated has a forward "
     "hook, which is not taken over"),
    (lambda: changed(lambda one: one.act_fn.register_forward_pre_hook(lambda *given: None)), "the part act_fn of the module Gated has a forward hook"),
    (lambda: Gated(up_proj=nn.LazyLinear(24, bias=False)), "the part up_proj of the module Gated is a LazyLinear without a weight yet"),
]


@pytest.mark.parametrize("make, sentence", OTHERWISE, ids=range(len(OTHERWISE)))
def test_a_module_that_computes_something_else_is_refused(make, sentence):
    refused(lambda: tt.GatedMLP.from_float(make()), sentence)
    refused(lambda: tt.MoE.from_float([Gated(), make()]), sentence)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("name", EXACT)
def test_a_module_that_computes_what_its_parts_say_is_taken(dtype, name):
    for k, n in ((8, 8), (40, 24), (320, 200)):
        module = Gated(act=EXACT[name], k=k, n=n).to(dtype)
        assert tt.GatedMLP.from_float(module).activation == name
    for module in (GptOss(), Gating(nn.SiLU(), e=1), Gating(nn.SiLU(), e=8)):
        assert tt.MoE.from_float(module.to(dtype)).experts == len(module.down_proj)
    for make in ATTENTION.values():
        assert tt.Attention.from_float(make().to(dtype)).head_dim == 64


def test_a_module_is_called_without_a_trace():
    calls = []

    def counted(self, x):
        calls.append(self.training)
        return functional.dropout(x, 0.5, self.training) + 0 * torch.rand(())

    module = Gated(counted, dropout=nn.Dropout())
    module.dropout.eval()
    state = torch.get_rng_state()
    with torch.enable_grad():
        tt.GatedMLP.from_float(module)
    assert calls == [False] and module.training and not module.dropout.training
    assert torch.equal(torch.get_rng_state(), state)
    with torch.autocast("cpu", torch.bfloat16):
        tt.GatedMLP.from_float(module)


def test_a_module_that_cannot_be_called_is_judged_by_its_parts():
    def needs_more(self, x):
        raise RuntimeError("it needs a residual")

    assert tt.GatedMLP.from_float(Gated(needs_more)).activation == "silu"
    assert tt.GatedMLP.from_float(Gated(lambda self, x: 2 * x).to("meta")).down.is_meta


class Halved(Gating):
    def forward(self, x, ids, weights):
        return 0.5 * super().forward(x, ids, weights)


class OfAll(Gating):
    """As transformers 4 has it, with a weight of each expert."""

    def forward(self, x, router_indices, routing_weights):
        return Gating.forward(self, x, router_indices, routing_weights.gather(1, router_indices))


class Loud(Attention):
    def forward(self, hidden_states, position_embeddings, attention_mask=None):
        return 2 * super().forward(hidden_states, position_embeddings)[0]


class Clipped(Attention):
    def projected(self, x):
        return (one.clamp(-self.config.clip_qkv, self.config.clip_qkv) for one in super().projected(x))


class Masked(Attention):
    """As transformers' eager attention, which is causal where the mask says so."""

    def forward(self, hidden_states, position_embeddings, attention_mask):
        q, k, v = self.projected(hidden_states)
        q, k = apply_rotary_pos_emb(q, k, *position_embeddings)
        k, v = (one.repeat_interleave(self.num_key_value_groups, 1) for one in (k, v))
        logits = q @ k.transpose(2, 3) * self.scaling
        logits = logits if attention_mask is None else logits + attention_mask
        return self.o_proj((logits.softmax(-1) @ v).transpose(1, 2).flatten(2)), None


def hooked(layer):
    module = Attention()
    getattr(module, layer).register_forward_hook(lambda *given: 3 * given[-1])
    return module


@pytest.mark.parametrize("call, sentence", [
    (lambda: tt.MoE.from_float(Halved(nn.SiLU())), "the module Halved computes something else than its experts' gated MLPs with activation 'silu'"),
    (lambda: tt.MoE.from_float(Experts(nn.SiLU()), order="up_first"), "the module Experts computes something else"),
    (lambda: tt.MoE.from_float(changed(lambda one: one.register_forward_hook(lambda *given: 0), lambda: Gating(nn.SiLU()))), "the module Gating has a forward "
     "hook"),
    (lambda: tt.MoE.from_float([Gated(), Gated().to("meta")]), "gate of expert 1 is on meta, but that of expert 0 on cpu, expected one device"),
    (lambda: tt.Attention.from_float(Loud(), pairs="halves"), "the module Loud computes something else than attention of its projections with head_dim 64"),
    (lambda: tt.Attention.from_float(Clipped(config=config(clip_qkv=0.1))), "the module Clipped computes something else"),
    (lambda: tt.Attention.from_float(Attention(), window=(2, 0)), "the module Attention computes something else"),
    (lambda: tt.Attention.from_float(hooked("v_proj")), "the part v_proj of the module Attention has a forward hook"),
    (lambda: tt.Attention.from_float(with_q_proj(Adapted(96, 256))), "the layer q_proj, a Adapted, has a forward of its own"),
])
def test_experts_and_attention_that_compute_something_else_are_refused(call, sentence):
    refused(call, sentence)


def test_masks_and_weights_may_come_from_outside():
    assert tt.Attention.from_float(Masked()).options["causal"]
    assert tt.Attention.from_float(Masked(sliding_window=3), ignore=["sliding_window"]).options["window_left"] == -1
    assert tt.MoE.from_float(OfAll(nn.SiLU())).experts == 3


@pytest.mark.parametrize("ignore, sentence", [
    (["nonexistent"], "ignore has 'nonexistent', which the module Gated does not have"),
    (["up_proj"], "ignore has 'up_proj', which GatedMLP takes over from the module Gated: leave it out of ignore"),
    (["act_fn"], "ignore has 'act_fn', which GatedMLP takes over"),
    (None, "ignore is None, expected the names of parts of the module"),
    ([3], "ignore is [3], expected the names of parts of the module"),
    (b"x", "ignore is b'x', expected the names"),
])
def test_parts_that_are_ignored_are_there(ignore, sentence):
    refused(lambda: tt.GatedMLP.from_float(Gated(), ignore=ignore), sentence)
    refused(lambda: tt.MoE.from_float([Gated()], ignore=ignore), sentence)


def test_parts_to_ignore_may_come_one_by_one():
    experts = [Gated(strange=3), Gated(strange=3)]
    assert tt.MoE.from_float(experts, ignore=(name for name in ("strange",))).experts == 2
    refused(lambda: tt.MoE.from_float(Gating(nn.SiLU()), ignore=["down_proj"]), "ignore has 'down_proj', which MoE takes over")
    refused(lambda: tt.Attention.from_float(Attention(**norms()), ignore=["q_norm"]), "ignore has 'q_norm', which Attention takes over")


# Constructors.


GATE, UP, DOWN = normal(24, 32), normal(24, 32), normal(32, 24)
EXPERTS, BELOW = normal(3, 48, 32), normal(3, 32, 24)
BIAS = torch.randn(3, 48)


@pytest.mark.parametrize("options, sentence", [
    (dict(activation="relu"), "activation is 'relu'"),
    (dict(activation=None), "activation is None"),
    (dict(activation="silu", alpha=2.0), "alpha is 2.0, but the activation is 'silu'"),
    (dict(activation="gelu_tanh", limit=2.0), "limit is 2.0, but the activation is 'gelu_tanh'"),
    (dict(activation="swiglu_clamped", limit=0.0), "limit is 0.0, expected a number above 0"),
    (dict(activation="swiglu_clamped", limit=float("nan")), "limit is nan"),
    (dict(activation="swiglu_clamped", alpha="x"), "alpha is 'x'"),
    (dict(activation="swiglu_clamped", up_offset=float("inf")), "up_offset is inf, expected a finite number"),
    (dict(tokens="fp8"), "tokens is 'fp8', expected None or 'fp8_block'"),
])
def test_options_are_looked_at_when_a_module_is_made(options, sentence):
    refused(lambda: tt.GatedMLP(GATE, UP, DOWN, **options), sentence)
    refused(lambda: tt.MoE(EXPERTS, BELOW, order="up_first", **options), sentence)


@pytest.mark.parametrize("name", ["activaton", "foo"])
def test_unknown_arguments_are_errors_that_name_them(name):
    for make in (lambda: tt.GatedMLP(GATE, UP, DOWN, **{name: 1}), lambda: tt.MoE(EXPERTS, BELOW, order="up_first", **{name: 1}),
                 lambda: tt.GatedMLP.from_float(MLP(nn.SiLU()), **{name: 1}), lambda: tt.MoE.from_float([MLP(nn.SiLU())], **{name: 1}),
                 lambda: plain_attention(**{name: 1}), lambda: tt.Attention.from_float(Attention(), **{name: 1})):
        with pytest.raises(TypeError, match=name):
            make()


@pytest.mark.parametrize("given, name", [("swish", "silu"), ("gelu_pytorch_tanh", "gelu_tanh")])
def test_other_names_of_activations(given, name):
    assert torch.equal(tt.GatedMLP(GATE, UP, DOWN, activation=given)(normal(1, 32) * 0 + 1), tt.GatedMLP(GATE, UP, DOWN, activation=name)(normal(1, 32) * 0 + 1))


def test_constants_of_the_activation():
    x, constants = 4 * normal(5, 32), dict(alpha=1.1, limit=2.0, up_offset=0.5)
    ours = tt.GatedMLP(GATE, UP, DOWN, activation="swiglu_clamped", **constants)
    gate, up = ((x.double() @ one.double().T).clamp(max=2.0) for one in (GATE, UP))
    close(ours(x), (gate * torch.sigmoid(1.1 * gate) * (up.clamp(min=-2.0) + 0.5)) @ DOWN.double().T, 3)


def test_situ_has_two_limits():
    x = 4 * normal(5, 32)
    gate, up = (x.double() @ one.double().T for one in (GATE, UP))
    for constants in ({}, dict(alpha=0.5, limit=0.75)):
        alpha, limit = constants.get("alpha", 4.0), constants.get("limit", 25.0)
        ours = tt.GatedMLP(GATE, UP, DOWN, activation="situ", **constants)
        close(ours(x), (alpha * torch.tanh(gate / alpha) * torch.sigmoid(gate) * limit * torch.tanh(up / limit)) @ DOWN.double().T, 3)


@pytest.mark.parametrize("tokens", [None, "fp8_block"])
def test_layers_without_a_gate(tokens):
    x, (ids, weights) = normal(6, 32), routing(6)
    ups, downs = normal(3, 48, 32), normal(3, 32, 48)

    def squared(up, down):
        return (x.double() @ up.double().T).clamp(min=0) ** 2 @ down.double().T

    near = 3 if tokens is None else 40
    ours = tt.GatedMLP(None, ups[0], downs[0], activation="relu2", tokens=tokens)
    assert ours.said()["activation"] == "relu2"
    close(ours(x), squared(ups[0], downs[0]), near)
    every = torch.stack([squared(up, down) for up, down in zip(ups, downs)], 1)
    factors = torch.zeros(6, 3, dtype=torch.float64).scatter_add_(1, ids, weights.double())
    experts = tt.MoE(ups, downs, activation="relu2", tokens=tokens)
    close(experts(x, ids, weights), (every * factors[..., None]).sum(1), near)
    refused(lambda: tt.GatedMLP(GATE, UP, DOWN, activation="relu2"), "gate is given beside the activation 'relu2', expected None: it has no gate")
    refused(lambda: tt.GatedMLP(None, UP, DOWN), "gate is None beside the activation 'silu', expected a matrix")
    refused(lambda: tt.MoE(EXPERTS, BELOW, order="gate_first", activation="relu2"), "expected up alone without an order: it has no gate")


@pytest.mark.parametrize("order", ["gate_first", "up_first", "interleaved", None])
def test_experts_with_biases(order):
    x, (ids, weights), down_bias = normal(6, 32), routing(6), torch.randn(3, 32)
    gate, up, gate_bias, up_bias = *EXPERTS.chunk(2, 1), *BIAS.chunk(2, 1)
    parts = dict(gate_first=((gate, up), (gate_bias, up_bias)), up_first=((up, gate), (up_bias, gate_bias)))
    if order is None:
        ours = tt.MoE((gate, up), BELOW, bias1=gate_bias, bias2=up_bias, down_bias=down_bias)
    elif order == "interleaved":
        both, bias = (torch.stack(pair, 2).flatten(1, 2) for pair in ((gate, up), (gate_bias, up_bias)))
        ours = tt.MoE(both, BELOW, order=order, bias1=bias, down_bias=down_bias)
    else:
        ours = tt.MoE(torch.cat(parts[order][0], 1), BELOW, order=order, bias1=torch.cat(parts[order][1], 1), down_bias=down_bias)
    exact = torch.zeros(6, 32, dtype=torch.float64)
    for t, c in torch.cartesian_prod(torch.arange(6), torch.arange(2)).tolist():
        e = ids[t, c]
        g, u = (x[t].double() @ one[e].double().T + bias[e].double() for one, bias in ((gate, gate_bias), (up, up_bias)))
        exact[t] += weights[t, c].double() * ((functional.silu(g) * u) @ BELOW[e].double().T + down_bias[e].double())
    close(ours(x, ids, weights), exact, 3)
    refused(lambda: tt.MoE(EXPERTS, BELOW, order="up_first", bias1=BIAS[:, :3]), "bias1")
    refused(lambda: tt.MoE(EXPERTS, BELOW, order="up_first", down_bias=3), "down_bias is 3")


def fp8(rows, k, *experts):
    shape = (*experts, rows, k)
    scales = torch.rand(*experts, -(-rows // 128), -(-k // 128)) / 32
    values = torch.randn(shape).to(torch.float8_e4m3fn)
    wide = values.double() * scales.double().repeat_interleave(128, -2)[..., :rows, :].repeat_interleave(128, -1)[..., :k]
    return thresher.Fp8(values, scales, per="block"), wide


def through_fp8(rows):
    """Rows rounded to FP8, a scale for 128 of each, in float64."""
    parts = []
    for part in rows.float().split(128, 1):
        largest = part.abs().amax(1, keepdim=True)
        scale = torch.where(largest == 0, 1.0, largest / 448)
        parts.append((part / scale).to(torch.float8_e4m3fn).double() * scale.double())
    return torch.cat(parts, 1)


@pytest.mark.parametrize("n", [256, 144], ids=["whole blocks", "a part of a block"])
def test_gated_mlp_rounds_tokens_to_fp8(n):
    """Codes beside a rounding boundary may be the next ones: an eighth of their value, which many of them average out."""
    (gate, wide_gate), (up, wide_up), (down, wide_down) = fp8(n, 160), fp8(n, 160), fp8(160, n)
    ours = tt.GatedMLP(gate, up, down, tokens="fp8_block")
    x = normal(7, 160)
    rows = through_fp8(x)
    hidden = functional.silu(rows @ wide_gate.T) * (rows @ wide_up.T)
    close(ours(x), through_fp8(hidden.bfloat16() if n % 128 else hidden) @ wide_down.T, 3)
    torch._dynamo.reset()
    assert torch.equal(torch.compile(ours, fullgraph=True, backend="aot_eager")(x), ours(x))
    without = tt.GatedMLP(gate, up, down)(x)
    assert not torch.equal(without, ours(x)) and (without - ours(x)).float().norm() < 0.1 * without.float().norm()
    tt.warm(ours, 7)
    assert ours(x[:0]).shape == (0, 160) and ours(x.float()).dtype == torch.float32


# State dicts.


def mlp(n=24, k=32, **options):
    return tt.GatedMLP(normal(n, k), normal(n, k), normal(k, n), **options)


def moe(e=3, n=24, k=32, **options):
    return tt.MoE(normal(e, 2 * n, k), normal(e, k, n), order="gate_first", **options)


MISFITS = [
    (lambda: moe(2, 128), lambda: moe(4, 64), "gate_up holds packed weights of 2 experts, gate and up [128, 32] in bfloat16, but this module has 4 "
     "experts, gate and up [64, 32] in bfloat16"),
    (lambda: mlp(), lambda: mlp(dtype=torch.float16), "gate_up holds packed weights of gate and up [24, 32] in bfloat16, but this module has gate and "
     "up [24, 32] in float16"),
    (lambda: moe(bias1=BIAS), lambda: moe(), "in bfloat16 with biases, but this module has 3 experts"),
    (lambda: mlp(activation="gelu_tanh"), lambda: mlp(), "_extra_state says activation 'gelu_tanh', but this GatedMLP has 'silu'"),
    (lambda: mlp(activation="swiglu_clamped"), lambda: mlp(activation="swiglu_clamped", limit=6.0), "_extra_state says limit 7.0, but this GatedMLP has 6.0"),
    (lambda: moe(tokens="fp8_block"), lambda: moe(), "_extra_state says tokens 'fp8_block', but this MoE has None"),
    (lambda: plain_attention(softcap=2.0), lambda: plain_attention(), "_extra_state says softcap 2.0, but this Attention has 0.0"),
    (lambda: plain_attention(), lambda: plain_attention(dtype=torch.float16), "_extra_state says dtype 'bfloat16', but this Attention has 'float16'"),
    (lambda: plain_attention(pairs="halves"), lambda: plain_attention(), "_extra_state says pairs 'halves', but this Attention has 'none'"),
]


@pytest.mark.parametrize("saved, other, sentence", MISFITS, ids=[sentence for *_, sentence in MISFITS])
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("assign", [True, False])
def test_the_state_of_another_module_is_refused(saved, other, sentence, strict, assign):
    module = nn.Sequential(other())
    before = {name: one.clone() for name, one in module.state_dict().items()}
    refused(lambda: module.load_state_dict(nn.Sequential(saved()).state_dict(), strict=strict, assign=assign), sentence)
    after = module.state_dict()
    assert all(torch.equal(after[name], one) for name, one in before.items())


@pytest.mark.parametrize("change, sentence", [
    (lambda state: state.update({"0.gate_up": torch.zeros_like(state["0.gate_up"])}), "0.gate_up holds"),
    (lambda state: state.update({"0.gate_up": torch.randint(0, 256, (50,), dtype=torch.uint8)}), "bytes that pack did not make, expected packed weights"),
    (lambda state: state.update({"0.gate_up": state["0.gate_up"][:-1]}), "0.gate_up: "),
    (lambda state: state.update({"0.gate_up": state["0.down"]}), "0.gate_up holds packed weights of 1 expert, one matrix"),
    (lambda state: state.update({"0.down": DOWN}), "0.down is bfloat16 [32, 24], expected packed weights, uint8 [bytes]"),
    (lambda state: state.update({"0._extra_state": torch.zeros(3, dtype=torch.uint8)}), "0._extra_state does not hold what GatedMLP saves"),
    (lambda state: state.update({"0._extra_state": {"activation": "silu"}}), "0._extra_state does not hold what GatedMLP saves"),
    (lambda state: state.update({"0._extra_state": state["0._extra_state"].to("meta")}), "0._extra_state is on meta, where it says nothing"),
    (lambda state: state.update({"0._extra_state": state["0._extra_state"].to_sparse()}), "0._extra_state does not hold what GatedMLP saves"),
    (lambda state: state.update({"0.down": state["0.down"].to_sparse()}), "0.down is sparse_coo, expected packed weights, uint8 [bytes]"),
    (lambda state: state.update({"0.down": state["0.down"].numpy()}), "0.down is ndarray, expected packed weights"),
    (lambda state: state.update({"0.down": None}), "0.down is NoneType, expected packed weights"),
])
def test_what_pack_did_not_make_is_refused(change, sentence):
    module = nn.Sequential(mlp())
    state = dict(module.state_dict())
    change(state)
    refused(lambda: module.load_state_dict(state), sentence)


def test_a_state_of_older_releases_loads():
    module, other = nn.Sequential(mlp(), plain_attention()), nn.Sequential(mlp(), plain_attention())
    state = {name: one for name, one in other.state_dict().items() if not name.endswith("_extra_state")}
    assert len(state) == 6
    module.load_state_dict(state, strict=True)
    x = normal(2, 32)
    assert torch.equal(module[0](x), other[0](x))
    with pytest.raises(RuntimeError, match='Missing key.*"0.down"'):
        module.load_state_dict({name: one for name, one in state.items() if name != "0.down"})


def test_a_state_is_tensors_alone(tmp_path):
    module = nn.Sequential(mlp(activation="swiglu_clamped", limit=3.0), moe())
    state = module.state_dict()
    assert all(isinstance(one, torch.Tensor) for one in state.values())
    torch.save(state, tmp_path / "state")
    again = nn.Sequential(mlp(activation="swiglu_clamped", limit=3.0), moe())
    again.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    assert torch.equal(again[0](normal(1, 32) * 0 + 1), module[0](normal(1, 32) * 0 + 1))


@pytest.mark.parametrize("assign", [True, False])
def test_a_state_may_begin_anywhere(assign):
    """As tensors of a mapped file do."""
    module, other, x = mlp(), mlp(), normal(2, 32)
    state = {name: torch.cat([one.new_zeros(1), one])[1:] for name, one in other.state_dict().items()}
    module.load_state_dict(state, assign=assign)
    assert torch.equal(module(x), other(x))


# Modules on meta.


def nvfp4(rows, k, *experts):
    return thresher.Nvfp4(torch.randint(0, 256, (*experts, rows, k // 2), dtype=torch.uint8), torch.randint(24, 40, (*experts, rows, k // 16), dtype=torch.uint8),
                          torch.ones(experts or (1,)))


def on_meta(weight):
    if isinstance(weight, thresher.Nvfp4):
        return thresher.Nvfp4(*(part.to("meta") for part in (weight.values, weight.scales, weight.global_scale)))
    return thresher.Fp8(weight.values.to("meta"), weight.scales.to("meta"), per=weight.per) if isinstance(weight, thresher.Fp8) else weight.to("meta")


EVERY = {
    "bf16": lambda to: tt.GatedMLP(*map(to, (GATE, UP, DOWN))),
    "nvfp4": lambda to: tt.GatedMLP(*map(to, (nvfp4(32, 64), nvfp4(32, 64), nvfp4(64, 32)))),
    "fp8": lambda to: tt.GatedMLP(*(to(fp8(*shape)[0]) for shape in ((48, 32), (48, 32), (32, 48)))),
    "experts": lambda to: tt.MoE(to(EXPERTS), to(BELOW), order="up_first", bias1=to(BIAS)),
    "attention": lambda to: tt.Attention(*(to(torch.ones(*shape)) for shape in ((64, 32), (64, 32), (64, 32), (32, 64))), head_dim=64),
}


@pytest.mark.parametrize("name", EVERY)
def test_modules_are_made_on_meta_and_loaded(name):
    real, empty = EVERY[name](lambda one: one), EVERY[name](on_meta)
    assert all(one.is_meta for one in empty.buffers())
    assert {key: one.shape for key, one in empty.named_buffers()} == {key: one.shape for key, one in real.named_buffers()}
    state = real.state_dict()
    emptied = EVERY[name](on_meta).to_empty(device="cpu")
    emptied.load_state_dict(state)
    empty.load_state_dict(state, assign=True)
    for loaded in (empty, emptied):
        assert all(torch.equal(loaded.state_dict()[key], one) for key, one in state.items())


def test_calls_before_weights_are_loaded_are_refused():
    ids, weights = torch.zeros(2, 1, dtype=torch.int64), torch.ones(2, 1)
    for name, arguments in (("bf16", (normal(2, 32),)), ("experts", (normal(2, 32), ids, weights)), ("attention", (normal(1, 2, 32),))):
        module = EVERY[name](on_meta)
        refused(lambda: module(*arguments), "x is on cpu, but the weights are on meta: load a state dict with assign=True first")
        assert module(*(one.to("meta") for one in arguments)).shape == arguments[0].shape


def test_modules_are_made_within_the_device_meta():
    with torch.device("meta"):
        empty = tt.GatedMLP(torch.empty(24, 32), torch.empty(24, 32), torch.empty(32, 24), dtype=torch.bfloat16)
        from_float = tt.GatedMLP.from_float(MLP(nn.SiLU()))
    assert empty.gate_up.is_meta and from_float.down.is_meta
    other = mlp()
    for one in (empty, from_float):
        one.load_state_dict(other.state_dict(), assign=True)
        x = normal(3, 32)
        assert torch.equal(one(x), other(x))


@pytest.mark.parametrize("call, sentence", [
    (lambda: tt.GatedMLP(GATE, UP.to("meta"), DOWN), "up is on meta, but gate on cpu, expected one device"),
    (lambda: tt.GatedMLP(GATE, UP, DOWN.to("meta")), "down is on meta, but gate on cpu, expected one device"),
    (lambda: tt.GatedMLP(*map(on_meta, (GATE, UP)), DOWN), "down is on cpu, but gate on meta, expected one device"),
    (lambda: tt.GatedMLP(fp8(48, 32)[0], on_meta(fp8(48, 32)[0]), fp8(32, 48)[0]), "up is on meta, but gate on cpu"),
    (lambda: tt.GatedMLP(thresher.Fp8(fp8(48, 32)[0].values, torch.ones(1, 1, device="meta"), per="block"), fp8(48, 32)[0], fp8(32, 48)[0]), "gate is on meta, "
     "but gate on cpu"),
    (lambda: tt.MoE(EXPERTS, BELOW.to("meta"), order="up_first"), "down is on meta, but gate_up on cpu"),
    (lambda: tt.MoE(tuple(EXPERTS.chunk(2, 1)), BELOW.to("meta")), "down is on meta, but gate on cpu"),
    (lambda: tt.MoE(EXPERTS, BELOW, order="up_first", bias1=BIAS.to("meta")), "bias1 is on meta, but gate_up on cpu"),
    (lambda: tt.MoE(EXPERTS, BELOW, order="up_first", down_bias=torch.ones(3, 32, device="meta")), "down_bias is on meta, but gate_up on cpu"),
    (lambda: plain_attention(q_norm=torch.ones(64, device="meta")), "q_norm is on meta, but q on cpu"),
])
def test_weights_on_several_devices_are_refused(call, sentence):
    refused(call, sentence)


@pytest.mark.parametrize("call, sentence", [
    (lambda: tt.GatedMLP(GATE, 1e6 * UP, DOWN, dtype=torch.float16), "up has numbers beyond 65504, which float16 does not hold"),
    (lambda: tt.MoE(EXPERTS, BELOW.double() * 1e60, order="up_first"), "down has numbers beyond 3.38953e+38, which bfloat16 does not hold"),
    (lambda: tt.MoE(EXPERTS, BELOW, order="up_first", bias1=BIAS.double() * 1e60), "bias1 has numbers beyond 3.40282e+38, which float32 does not hold"),
])
def test_weights_that_a_type_does_not_hold_are_refused(call, sentence):
    refused(call, sentence)
    assert tt.GatedMLP(GATE, UP * torch.inf, DOWN, dtype=torch.float16).dtype == torch.float16


# Casts and moves.


@pytest.mark.parametrize("make", [lambda: mlp(), lambda: moe()])
def test_packed_weights_stay_in_their_type(make):
    module = make()
    state = {name: one.clone() for name, one in module.state_dict().items()}
    casts = (("float16", lambda one: one.half()), ("float64", lambda one: one.double()), ("float32", lambda one: one.float()),
             ("float16", lambda one: one.to(torch.float16)), ("float32", lambda one: one.type(torch.float32)), ("uint8", lambda one: one.type(torch.uint8)))
    for name, cast in casts:
        refused(lambda: cast(nn.Sequential(module)), f"a {type(module).__name__} with packed weights for bfloat16 cannot become {name}: make one with "
                f"dtype=torch.{name}, or move it alone")
    for same in (lambda one: one.to(torch.bfloat16), lambda one: one.bfloat16(), lambda one: one.to("cpu"), lambda one: one.share_memory(),
                 lambda one: one.to("meta").to_empty(device="cpu")):
        assert same(module) is module
        module.load_state_dict(state)
    assert plain_attention().half()(normal(1, 2, 96)).dtype == torch.bfloat16


# What is called.


IDS, WEIGHTS = torch.zeros(5, 2, dtype=torch.int64), torch.rand(5, 2)


@pytest.mark.parametrize("call, sentence", [
    (lambda module, x: module(x, WEIGHTS, IDS), "topk_ids is float32, expected integers"),
    (lambda module, x: module(x, IDS.bool(), WEIGHTS), "topk_ids is bool, expected integers"),
    (lambda module, x: module(x, IDS, IDS), "topk_weights is int64, expected floating point"),
    (lambda module, x: module(x, IDS, None), "topk_weights is NoneType, expected floating point"),
    (lambda module, x: module(x, IDS[:, :1], WEIGHTS), "topk_ids [5, 1] and topk_weights [5, 2], expected [T, K], [T, k] and [T, k]"),
    (lambda module, x: module(x[:3], IDS, WEIGHTS), "x is [3, 32], topk_ids [5, 2]"),
    (lambda module, x: module(x[0], IDS[0], WEIGHTS[0]), "x is [32], topk_ids [2]"),
    (lambda module, x: module(x.to(torch.int32), IDS, WEIGHTS), "x is int32, expected float16"),
    (lambda module, x: module(x.to(torch.float8_e4m3fn), IDS, WEIGHTS), "x is float8_e4m3fn, expected float16"),
])
def test_routing_refused(call, sentence):
    module, x = moe(), normal(5, 32)
    refused(lambda: call(module, x), sentence)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_ids_of_all_integers(dtype):
    module, x, (ids, weights) = moe(), normal(6, 32), routing(6)
    assert torch.equal(module(x, ids.to(dtype), weights), module(x, ids, weights))
    assert torch.equal(module(x, ids.to(dtype), weights.half()), module(x, ids, weights.half().float()))
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x, ids.to(dtype), weights), module(x, ids, weights))


def test_x_of_a_gated_mlp():
    refused(lambda: mlp()(torch.ones(2, 32, dtype=torch.int64)), "x is int64, expected float16, bfloat16, float32 or float64")
    refused(lambda: mlp()(None), "x is NoneType, expected float16")
    refused(lambda: mlp()(normal(2, 31)), "x is [2, 31], expected [..., 32]")
    refused(lambda: mlp()(torch.tensor(1.0)), "x is [], expected [..., 32]")


def without(name, module):
    setattr(module, name, None)
    return module


@pytest.mark.parametrize("call, sentence", [
    (lambda: mlp()(normal(2, 32).to_sparse()), "x is sparse_coo, expected a dense tensor"),
    (lambda: mlp()(torch.nested.nested_tensor([normal(2, 32)])), "x is nested, expected a dense tensor"),
    (lambda: mlp()(normal(2, 32).to("meta")), "x is on meta, but the weights gate_up on cpu, expected one device"),
    (lambda: plain_attention()(normal(1, 2, 96).to("meta")), "x is on meta, but the weights q on cpu, expected one device"),
    (lambda: plain_attention(pairs="halves")(normal(1, 3, 96), tuple(one.to("meta") for one in positions(1, 3))), "position_embeddings is on meta, but x on cpu"),
    (lambda: moe()(normal(5, 32), IDS.to("meta"), WEIGHTS), "topk_ids is on meta, but x on cpu, expected one device"),
    (lambda: moe()(normal(5, 32), IDS, WEIGHTS.to("meta")), "topk_weights is on meta, but x on cpu, expected one device"),
    (lambda: without("down", mlp())(normal(2, 32)), "the weights down of the module are None, expected a tensor"),
    (lambda: without("gate_up", mlp())(normal(2, 32)), "the weights gate_up of the module are None, expected a tensor"),
    (lambda: without("gate_up", moe())(normal(5, 32), IDS, WEIGHTS), "gate_up is None, expected a tensor"),
    (lambda: without("k", plain_attention())(normal(1, 2, 96)), "the weights k of the module are None, expected a tensor"),
    (lambda: plain_attention(norm_eps=-1e9), "norm_eps is -1e+09, expected a finite number from 0 on"),
    (lambda: plain_attention(softcap=-3.0), "softcap is -3, expected 0 (none) or a finite number above 0"),
    (lambda: plain_attention(scale=1e300), "scale is 1e+300, which is infinite in float32"),
    (lambda: plain_attention(window={5, 0}), "window is {0, 5}, expected the keys to the left and to the right"),
    (lambda: tt.attention(*[normal(1, 1, 3, 64)] * 3, window={5, 0}), "window is {0, 5}, expected the keys to the left and to the right"),
    (lambda: tt.attention(*[normal(1, 1, 3, 64)] * 3, softcap=1e-60), "softcap is 1e-60, which is 0 in float32"),
    (lambda: tt.Attention(*[torch.ones(1, 1)] * 4, head_dim=True), "head_dim is True, expected a whole number"),
    (lambda: tt.Attention(torch.ones(192, 96), torch.ones(128, 96), torch.ones(128, 96), torch.ones(96, 192), head_dim=64), "q has 3 heads and k 2, expected a "
     "multiple of those of k"),
])
def test_calls_and_constants_that_cannot_be(call, sentence):
    refused(call, sentence)


@pytest.mark.parametrize("shape", [(0, 4), (2, 0), (0, 0)])
def test_attention_of_no_rows(shape):
    for pairs in ("none", "halves"):
        module = plain_attention(pairs=pairs)
        given = () if pairs == "none" else (positions(*shape),)
        result = module(torch.ones(*shape, 96), *given)
        assert result.shape == (*shape, 96) and result.dtype == torch.float32


@pytest.mark.parametrize("cast", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("given", [torch.float32, torch.bfloat16, torch.float64])
def test_under_autocast_the_result_is_of_the_type_that_a_linear_layer_gives(cast, given):
    x = torch.randn(3, 32).to(given)
    (ids, weights), attention = routing(3), plain_attention()
    calls = [(mlp(), (x,)), (moe(), (x, ids, weights)), (attention, (torch.randn(1, 3, 96).to(given),))]
    linear = nn.Linear(32, 32).to(torch.float64 if given == torch.float64 else torch.float32)
    for module, arguments in calls:
        outside = module(*arguments)
        assert outside.dtype == given
        with torch.autocast("cpu", cast):
            wanted, inside = linear(x).dtype, module(*arguments)
            torch._dynamo.reset()
            compiled = torch.compile(module, fullgraph=True, backend="aot_eager")(*arguments)
        assert inside.dtype == compiled.dtype == wanted
        torch.testing.assert_close(inside, outside.to(wanted), rtol=2.0**-7, atol=2.0**-7 * outside.abs().max().item())
        with torch.autocast("cpu", cast, enabled=False):
            assert module(*arguments).dtype == given


@pytest.mark.parametrize("make, text", [
    (lambda: mlp(), "GatedMLP(k=32, n=24, format=bfloat16, activation='silu')"),
    (lambda: moe(bias1=BIAS, activation="swiglu_clamped", tokens="fp8_block", dtype=torch.float16),
     "MoE(experts=3, k=32, n=24, format=float16, activation='swiglu_clamped', alpha 1.702, limit 7, up_offset 1, tokens='fp8_block', biases)"),
    (lambda: plain_attention(o_bias=torch.ones(96)), "Attention(columns=96, heads=2, kv_heads=1, head_dim=64, dtype=bfloat16, causal=True, scale=None, "
     "softcap=0.0, window_left=-1, window_right=-1, pairs='none', o_bias)"),
])
def test_modules_say_what_they_are(make, text):
    assert repr(make()) == text


@pytest.mark.parametrize("package, engine", [("thresher_vllm", "vllm"), ("thresher_sglang", "sglang")])
def test_without_its_engine_a_package_says_so_in_one_line(package, engine, monkeypatch, caplog):
    import importlib
    import importlib.metadata

    module = pytest.importorskip(package)
    original = importlib.metadata.version

    def version(name):
        if name == engine:
            raise importlib.metadata.PackageNotFoundError(name)
        return original(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(module, "_is_registered", False)
    module.register()
    (line,) = [one.getMessage() for one in caplog.records]
    assert f"but no {engine} is installed: it stays out" in line and "\n" not in line
