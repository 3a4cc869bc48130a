"""The layers that bench/layers.py times, as models have them, and which of them a run is asked for."""
import dataclasses

FORMATS = ("bf16", "fp8_block", "fp8_row", "nvfp4", "mxfp4")
BITS = {"bf16": 16, "fp8_block": 8, "fp8_row": 8, "nvfp4": 4.5, "mxfp4": 4.25}
TOKENS = (1, 16, 64, 128, 256, 1024, 4096)
KINDS = ("dense", "moe", "linears")


@dataclasses.dataclass(frozen=True)
class Layer:
    """A gated MLP, a layer of experts, or one linear layer; `shapes` has the rows and columns of each matrix by name."""
    kind: str
    model: str
    part: str
    shapes: dict
    experts: int = 0  # that this GPU holds
    routed_experts: int = 0  # that a token may choose
    top_k: int = 0
    activation: str = "silu"
    has_bias: bool = False
    formats: tuple = FORMATS

    @property
    def name(self):
        return f"{self.model} {self.part}"

    def active_experts(self, tokens):
        """How many of this GPU's experts get a token, on average and one at the least; 1 of other layers."""
        if not self.experts:
            return 1
        return max(1, self.experts * (1 - (1 - self.top_k / self.routed_experts) ** tokens))

    def weight_bytes(self, format_name, tokens):
        """The bytes of weights that a call reads."""
        elements = sum(rows * columns for rows, columns in self.shapes.values())
        return int(self.active_experts(tokens) * elements * BITS[format_name] / 8)


def _dense(model, hidden, intermediate):
    return Layer("dense", model, "MLP", {"gate_up": (2 * intermediate, hidden), "down": (hidden, intermediate)})


def _moe(model, hidden, intermediate, experts, top_k, routed_experts=0, **others):
    shapes = {"gate_up": (2 * intermediate, hidden), "down": (hidden, intermediate)}
    return Layer("moe", model, "experts", shapes, experts, routed_experts or experts, top_k, **others)


def _attention(model, hidden, queries, keys, head_dim):
    """The two linear layers around attention: of queries, keys and values in one, and of the output."""
    columns = (queries + 2 * keys) * head_dim
    yield Layer("linears", model, "qkv", {"weight": (columns, hidden)})
    yield Layer("linears", model, "o", {"weight": (hidden, queries * head_dim)})


GPT_OSS = dict(activation="swiglu_clamped", has_bias=True, formats=("bf16", "mxfp4"))

LAYERS = [
    _dense("Llama-8B", 4096, 14336),
    _dense("Qwen3-0.6B", 1024, 3072),
    _dense("Qwen3-8B", 4096, 12288),
    _dense("Qwen3-32B", 5120, 25600),
    _dense("Llama-70B TP4", 8192, 7168),
    _moe("Qwen3-30B-A3B", 2048, 768, 128, 8),
    _moe("Qwen3-235B TP4", 4096, 384, 128, 8),
    _moe("DeepSeek-V3 EP8", 7168, 2048, 32, 8, routed_experts=256),
    _moe("gpt-oss-20b", 2880, 2880, 32, 4, **GPT_OSS),
    _moe("gpt-oss-120b", 2880, 2880, 128, 4, **GPT_OSS),
    _moe("Mixtral-8x7B", 4096, 14336, 8, 2),
    *_attention("Llama-8B", 4096, 32, 8, 128),  # Qwen3-8B and Mixtral-8x7B have the same
    *_attention("Qwen3-0.6B", 1024, 16, 8, 128),
    *_attention("Qwen3-32B", 5120, 64, 8, 128),
    *_attention("Llama-70B TP4", 8192, 16, 2, 128),
    *_attention("Qwen3-30B-A3B", 2048, 32, 4, 128),
    *_attention("Qwen3-235B TP4", 4096, 16, 1, 128),
    *_attention("gpt-oss", 2880, 64, 8, 64),
    Layer("linears", "DeepSeek-V3", "q_a and kv_a", {"weight": (2112, 7168)}),
    Layer("linears", "DeepSeek-V3", "o", {"weight": (7168, 16384)}),
]


def words_of(text):
    return [word for word in text.split(",") if word]


def chosen(words, known, what):
    """All of `known` where no word is given; an unknown word ends the process."""
    unknown = [word for word in words if word not in known]
    if unknown:
        raise SystemExit(f"{what}: {unknown[0]} is unknown, expected some of {', '.join(map(str, known))}")
    return [one for one in known if one in words] if words else list(known)


def has_part(name, parts):
    """Whether one of these parts, all without case, is in the name; no parts are in every name."""
    return not parts or any(part.lower() in name.lower() for part in parts)


def selected(kinds="", models="", formats="", tokens=""):
    """(layer, its formats) of each that is asked for, and the numbers of tokens."""
    kinds, formats = chosen(words_of(kinds), KINDS, "--layers"), chosen(words_of(formats), FORMATS, "--formats")
    layers = [layer for layer in LAYERS if layer.kind in kinds and has_part(layer.name, words_of(models))]
    counts = [int(word) for word in words_of(tokens)] or list(TOKENS)
    found = [(layer, [one for one in layer.formats if one in formats]) for layer in layers]
    return [(layer, wanted) for layer, wanted in found if wanted], counts
