"""Thresher's experts, gated MLPs and linear layers as the quantisation `thresher` of vLLM (`--quantization thresher`), and its attention
as the backend `CUSTOM` (`--attention-backend CUSTOM`)."""

VLLM = ("0.32.0", "0.33.0")
NAME = "thresher"

_is_registered = False


def register() -> None:
    """The entry point `vllm.general_plugins`, which every process of the engine calls, some of them more than once."""
    global _is_registered
    if _is_registered:
        return
    from thresher.torch.engines import is_for

    if is_for("thresher-vllm", "vllm", VLLM):
        from . import attention, config, gated_mlp

        attention.register()
        config.register()
        gated_mlp.register()
    _is_registered = True
