"""Where an engine is installed: its own plugin loader takes the package, and the stand-in of the tests has its names and arguments.

usage: python installed.py vllm|sglang
"""

import importlib
import importlib.metadata
import inspect
import sys

import stand_in_sglang
import stand_in_vllm


def arguments(function) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def expect_like(modules: dict, own: tuple[str, ...]) -> None:
    """Every name of the stand-in is there, and methods that the package is called by, or calls, take those arguments in the engine."""
    for name, stand_in in modules.items():
        real = importlib.import_module(name)
        for member, value in vars(stand_in).items():
            if member.startswith("__") or isinstance(value, type(sys)) or member in own:
                continue
            found = getattr(real, member)
            for method in ("create_weights", "apply", "create_moe_runner", "run_from_dispatch", "get_quant_method", "from_config"):
                given = value.__dict__.get(method) if isinstance(value, type) else None
                if given is not None and method in vars(found):
                    given = getattr(value, method)
                    assert arguments(given) == arguments(getattr(found, method)), (name, member, method, arguments(getattr(found, method)))


def vllm() -> None:
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS, get_quantization_config

    assert "thresher" in QUANTIZATION_METHODS
    config = get_quantization_config("thresher")
    assert config.override_quantization_method({}, "thresher") == "thresher"
    fp8 = config.from_config(dict(quant_method="fp8", activation_scheme="dynamic", weight_block_size=[128, 128]))
    nvfp4 = config.from_config(dict(quant_method="modelopt", quant_algo="NVFP4", group_size=16))
    assert (type(fp8).__name__, type(nvfp4).__name__, fp8.get_name()) == ("ThresherFp8Config", "ThresherNvfp4Config", "thresher")
    from thresher_vllm.gated_mlp import _is_gated_mlp

    for name, kind, expected in (("llama", "LlamaMLP", True), ("qwen2", "Qwen2MLP", True), ("qwen3_moe", "Qwen3MoeMLP", True),
                                 ("deepseek_v2", "DeepseekV2MLP", True), ("falcon_h1", "FalconH1MLP", False)):
        module = importlib.import_module(f"vllm.model_executor.models.{name}")
        assert _is_gated_mlp(getattr(module, kind)) == expected, kind
    expect_like(stand_in_vllm.modules(), own=("registered",))


def sglang() -> None:
    from sglang.srt.plugins import load_plugins

    load_plugins()
    from sglang.srt.arg_groups.choices import MOE_RUNNER_BACKEND_CHOICES
    from sglang.srt.layers.moe.fused_moe_triton.layer import FusedMoE
    from sglang.srt.layers.moe.moe_runner import runner
    from sglang.srt.layers.moe.utils import resolve_moe_runner_backend
    from thresher_sglang import experts

    assert "thresher" in MOE_RUNNER_BACKEND_CHOICES and resolve_moe_runner_backend("thresher").value == "thresher"
    assert runner._CUSTOM_RUNNER_CORE_FACTORIES["thresher"] is experts.RunnerCore
    assert experts.RunnerCore(None).runner_backend.value == "thresher"
    assert hasattr(FusedMoE.__init__, "__wrapped__"), "the hook was not applied"
    expect_like(stand_in_sglang.modules(stand_in_sglang.Chosen()), own=("OtherConfig", "Format"))


if __name__ == "__main__":
    importlib.metadata.version(f"thresher-{sys.argv[1]}")
    {"vllm": vllm, "sglang": sglang}[sys.argv[1]]()
