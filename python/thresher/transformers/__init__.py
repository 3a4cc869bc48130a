"""Models of Hugging Face's transformers, of the releases that _release.py names, with Thresher's kernels.

Importing this registers the implementations "thresher" of attention and of experts, so that both are chosen as any other:

    import thresher.transformers
    model = AutoModelForCausalLM.from_pretrained(..., dtype=torch.bfloat16, attn_implementation="thresher", experts_implementation="thresher")

and `replace` puts modules of thresher.torch in place of a model's gated MLPs and linear layers. What cannot be computed is refused in one
sentence, or named in the report of `replace`; nothing falls back in silence.
"""

from ._release import expect_tested

expect_tested()  # before what older releases lack

from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.finegrained_fp8 import ALL_FP8_EXPERTS_FUNCTIONS
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

from . import _continuous
from ._attention import attend, attend_paged
from ._experts import experts, prepare
from ._masks import mask_of
from ._replace import Report, replace

__all__ = ["NAME", "Report", "prepare", "replace"]

NAME = "thresher"

AttentionInterface.register(NAME, attend)
AttentionInterface.register(f"paged|{NAME}", attend_paged)
AttentionMaskInterface.register(NAME, mask_of)
for registry in (ALL_EXPERTS_FUNCTIONS, ALL_FP8_EXPERTS_FUNCTIONS):
    registry.register(NAME, experts)
_continuous.keep(NAME)
