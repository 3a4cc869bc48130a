"""Where the attention backend belongs: keys and values in pages, decode of few queries over many keys.

`thresher.torch.attention` takes neither, so nothing is registered, and vLLM's own backends do attention.
"""


def register() -> None:
    from thresher import UnsupportedError

    raise UnsupportedError("thresher-vllm has no attention backend, since thresher.torch.attention takes no keys and values in pages: use "
                           "one of vLLM's")
