"""Continuous batching (generate_batch), whose manager knows transformers' own implementations by their names and switches from any other."""

import functools
from typing import Any

from transformers import modeling_flash_attention_utils
from transformers.generation.continuous_batching import ContinuousBatchingManager

# In releases with this function the paged form of an attention writes to the cache, later the model does.
_HAS_PAGED_FORMS = hasattr(modeling_flash_attention_utils, "lazy_import_paged_flash_attention")


def keep(name: str) -> None:
    """Makes the manager keep the attention `name`, whose paged form is `paged|name`."""
    switch = ContinuousBatchingManager.switch_to_cb_friendly_attn

    @functools.wraps(switch)
    def switch_or_keep(self: ContinuousBatchingManager, model: Any, *arguments: Any, **named: Any) -> None:
        if model.config._attn_implementation != name:
            switch(self, model, *arguments, **named)
        elif _HAS_PAGED_FORMS:
            model.set_attn_implementation(f"paged|{name}")
            self._original_attn_impl = name

    ContinuousBatchingManager.switch_to_cb_friendly_attn = switch_or_keep
