"""Thresher's experts as the MoE runner `thresher` of SGLang (`--moe-runner-backend thresher`)."""

SGLANG = ("0.5.23",)
NAME = "thresher"


def register() -> None:
    """The entry point `sglang.srt.plugins`, which every process of the engine calls once."""
    from thresher.torch.engines import is_for

    if is_for("thresher-sglang", "sglang", SGLANG):
        from . import experts

        experts.register()
