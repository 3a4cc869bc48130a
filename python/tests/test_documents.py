"""What the documents show is run: the blocks of one document in turn, as one program."""

import linecache
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def blocks(document):
    text = (ROOT / document).read_text()
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", ["README.md", "docs/guides/python.md", "docs/guides/transformers.md",
                                      "docs/start/quickstart-pytorch.md"])
def test_blocks_run(document):
    pytest.importorskip("torch", reason="torch is not installed: the documents' blocks are left out")
    if "transformers" in document:
        pytest.importorskip("transformers", reason="transformers is not installed: its page's blocks are left out")
    found = blocks(document)
    assert found
    names = {"__name__": "document"}
    for number, block in enumerate(found):
        name = f"{document}, block {number + 1}"
        linecache.cache[name] = (len(block), None, block.splitlines(keepends=True), name)  # as a notebook does, so that functions have sources
        exec(compile(block, name, "exec"), names)


def test_examples_run(capsys):
    pytest.importorskip("torch", reason="torch is not installed: the examples are left out")
    import runpy

    for example in sorted((ROOT / "examples" / "python").glob("*.py")):
        runpy.run_path(str(example), run_name="__main__")
        assert capsys.readouterr().out, f"{example} prints nothing"
