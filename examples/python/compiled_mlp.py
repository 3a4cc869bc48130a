"""A Llama-shaped gated MLP: its layers swapped for the fused operator, under torch.compile, on a GPU or on this CPU.

usage: python compiled_mlp.py
"""

import torch
from torch import nn

import thresher.torch


class FloatMLP(nn.Module):
    """As the transformers library has it for Llama and Qwen."""

    def __init__(self, hidden: int, intermediate: int):
        super().__init__()
        self.gate_proj = nn.Linear(hidden, intermediate, bias=False)
        self.up_proj = nn.Linear(hidden, intermediate, bias=False)
        self.down_proj = nn.Linear(intermediate, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    """What stands around the MLP, so that there is something for the compiler to fuse."""

    def __init__(self, hidden: int, intermediate: int):
        super().__init__()
        self.norm = nn.RMSNorm(hidden)
        self.mlp = FloatMLP(hidden, intermediate)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.mlp(self.norm(x))


def swap_mlps(model: nn.Module) -> int:
    """Puts the fused module in place of every FloatMLP; returns how many there were."""
    swapped = 0
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, FloatMLP):
                setattr(module, name, thresher.torch.GatedMLP.from_float(child, activation="silu"))
                swapped += 1
    return swapped


@torch.inference_mode()
def main() -> None:
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(*(Block(hidden=256, intermediate=688) for _ in range(2))).to(device, torch.bfloat16)
    x = torch.randn(16, 256, device=device, dtype=torch.bfloat16)
    before = model(x)
    swapped = swap_mlps(model)
    after = torch.compile(model, fullgraph=True, backend="inductor" if device == "cuda" else "aot_eager")(x)
    away = (after - before).abs().max() / before.abs().max()
    print(f"{swapped} MLPs swapped on {device}; the compiled model is {away:.1e} of the largest value away from the float one's")
    assert away < 2**-5


if __name__ == "__main__":
    main()
