"""The C interface's sentences in the words of a caller in Python: its members are arguments, or extents of arrays."""

import re

# Members of problems, activations and options that are called otherwise here; all others have the name of an argument.
_MEMBERS = {
    "m": "M",
    "n": "N",
    "k": "K",
    "columns": "K",
    "batch": "the number of sequences",
    "queries": "the number of queries",
    "keys": "the number of keys",
    "heads": "the number of heads of q",
    "kv_heads": "the number of heads of k",
    "head_dim": "the last dimension of q and k",
    "value_dim": "the last dimension of v",
    "page_size": "the page size",
    "pages": "the number of pages",
    "max_position": "the number of rows of cos_sin",
    "format": "the type of k",
    "kv_format": "the type of the pages",
    "q_format": "the type of q",
    "variable_length": "cu_seqlens_q",
    "window_left": "window's left",
    "window_right": "window's right",
    "experts": "the number of experts",
    "rows": "the number of rows",
    "tokens": "the number of tokens",
    "top_k": "the number of choices of a token",
    "hidden_size": "the hidden size",
    "intermediate_size": "the intermediate size",
    "intermediate": "intermediate_dtype",
}
_TYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp8_e4m3": "float8_e4m3fn"}

_WITHOUT_TURNS = re.compile(r"problem\.pairs is none, but problem\.rotary_dim is (\d+) and problem\.max_position (\d+): leave both 0")
_MEMBER = re.compile(r"\b(?:problem|activation|options|weights)\.([a-z_]+)")
_OUTPUT = re.compile(r"^[co](?=[ .\[])")
_TYPE = re.compile(rf"\b(?:{'|'.join(_TYPES)})\b")


def in_python(sentence: str) -> str:
    turns = _WITHOUT_TURNS.fullmatch(sentence)
    if turns:
        given = f"rotary_dim is {turns[1]}" if turns[1] != "0" else f"cos_sin has {turns[2]} rows"
        return f"pairs is 'none', but {given}: nothing turns, expected neither rotary_dim nor cos_sin"
    named = _MEMBER.sub(lambda found: _MEMBERS.get(found[1], found[1]), _OUTPUT.sub("out", sentence))
    return _TYPE.sub(lambda found: _TYPES[found[0]], named)
