"""Thresher's experts as the MoE runner `thresher` of SGLang (`--moe-runner-backend thresher`), and with it linear layers."""

SGLANG = ("0.5.22", "0.5.23")
NAME = "thresher"

_is_registered = False


def register() -> None:
    """The entry point `sglang.srt.plugins`, which every process of the engine calls."""
    global _is_registered
    if _is_registered:
        return
    from thresher.torch.engines import is_for

    if is_for("thresher-sglang", "sglang", SGLANG):
        from . import experts, linear

        experts.register()
        linear.register()
    _is_registered = True
