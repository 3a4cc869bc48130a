#!/usr/bin/env python3
"""Checks the pages: old words, long sentences, wide lines, numbers without a file, and links that lead nowhere.

  docs_lint.py [PAGE...]     (README.md, other pages of the root, docs/ and integrations/ when left out)

Exit status 1 when a page breaks a rule. The notebook keeps the words of its day. Code, tables and generated pages have any width.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MAX_WORDS = 30
MAX_COLUMNS = 140
MAX_README_LINES = 120

# Pages with longer sentences: that rule is not asked of them. The list only gets shorter.
NOT_YET_SHORT = [
    "docs/design/architecture.md",
]
GENERATED = ["docs/reference/command-line.md", "docs/reference/knobs.md", "docs/reference/support-matrix.md"]

# Measured quantities: a ratio, a time of microseconds, a rate.
QUANTITY = re.compile(r"\d(?:\s?µs|×(?!\s?\d)|\s?TFLOP/s|\s?[TG]B/s)")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def old_words():
    """(pattern, replacement): those that comments of the sources avoid (tests/house/words_test.cpp)."""
    text = (ROOT / "tests/house/words_test.cpp").read_text()
    for old, instead in re.findall(r'OldWord\{"([^"]+)", "([^"]+)"\}', text):
        end = r"[a-z]*\b" if old.endswith("*") else r"\b"
        yield re.compile(r"\b" + re.escape(old.rstrip("*")) + end, re.IGNORECASE), instead


def without_code(text):
    """The same number of lines, with code and comments blank."""
    blank = lambda match: "\n" * match[0].count("\n")
    text = re.sub(r"^(`{3,})[^\n]*\n.*?^\1$", blank, text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"<!--.*?-->", blank, text, flags=re.DOTALL)


def paragraphs(text):
    """(line number, text) of each paragraph and item of a list, without tables, headings and indented code."""
    begin, lines = 0, []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        is_text = line.strip() and not line.startswith(("|", "#", "    ", "!["))
        if lines and (not is_text or re.match(r"\s*(?:[-*]|\d+\.|>) ", line)):
            yield begin, " ".join(lines)
            lines = []
        if is_text:
            begin = begin if lines else number
            lines.append(line.strip())


def sentences(text):
    for number, paragraph in paragraphs(text):
        plain = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "`x`", paragraph))
        for sentence in re.split(r"(?<=[.!?:])\**\s+(?=[A-Z`*\[(])", plain):
            yield number, sentence


def breaks(page, text):
    plain = without_code(text)
    generated = page in GENERATED
    in_notebook = page.startswith("docs/notebook/") or page == "CHANGELOG.md"
    if page == "README.md" and text.count("\n") > MAX_README_LINES:
        yield MAX_README_LINES + 1, f"has {text.count(chr(10))} lines, at most {MAX_README_LINES} are allowed"
    for number, line in enumerate(plain.split("\n"), 1):
        if len(line) > MAX_COLUMNS and not line.startswith("|") and not generated:
            yield number, f"has {len(line)} columns, at most {MAX_COLUMNS} are allowed"
    if not (in_notebook or generated):
        yield from broken_words(plain)
        if page not in NOT_YET_SHORT:
            yield from long_sentences(plain)
        yield from without_file(plain)
    yield from dead_links(page, text)


def long_sentences(text):
    for number, sentence in sentences(without_code(text)):
        count = len([word for word in sentence.split() if re.search(r"\w", word)])
        if count > MAX_WORDS:
            yield number, f"a sentence of {count} words, at most {MAX_WORDS} are allowed: {sentence[:60]}…"


def broken_words(text):
    words = list(old_words())
    for number, line in enumerate(text.split("\n"), 1):
        bare = re.sub(r"`[^`]*`|\]\([^)]*\)|\"[^\"]*\"", "", line)
        for pattern, instead in words:
            if found := pattern.search(bare):
                yield number, f'write "{instead}", not "{found[0]}"'


def without_file(text):
    """Sections with measured quantities that name no file, when the text before the first section names none either."""
    sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    line = 1
    for section in sections:
        if "measurements/" not in sections[0] + section and (found := QUANTITY.search(section)):
            yield line + section[:found.start()].count("\n"), "a measured number, and its section names no file under measurements/"
        line += section.count("\n")


def anchors(text):
    for heading in re.findall(r"^#+ (.*)$", without_code(text), re.MULTILINE):
        words = re.sub(r"\]\([^)]*\)", "", heading).lower()
        yield re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def dead_links(page, text):
    for number, line in enumerate(without_code(text).split("\n"), 1):
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            full = (ROOT / page).parent / path if path else ROOT / page
            if not full.exists():
                yield number, f"links to {target}, which does not exist"
            elif anchor and full.suffix == ".md" and anchor not in anchors(full.read_text()):
                yield number, f"links to {target}, which has no such section"


def main():
    pages = sys.argv[1:] or sorted(str(path.relative_to(ROOT)) for folder, pattern in
                                   (("", "*.md"), (".github", "**/*.md"), ("docs", "**/*.md"), ("integrations", "**/*.md"))
                                   for path in (ROOT / folder).glob(pattern) if "build/" not in str(path))
    count = 0
    for page in pages:
        for number, words in breaks(page, (ROOT / page).read_text()):
            print(f"{page}:{number}: {words}")
            count += 1
    for page in NOT_YET_SHORT:
        if page in pages and not any(True for _ in long_sentences((ROOT / page).read_text())):
            print(f"{page} has no long sentence any more: take it off the list NOT_YET_SHORT")
            count += 1
    if count:
        raise SystemExit(f"{count} places break the rules of scripts/docs_lint.py")


if __name__ == "__main__":
    main()
