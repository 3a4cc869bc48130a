"""The rules of scripts/docs_lint.py find what they are for, and nothing in clean text."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import docs_lint  # noqa: E402


def found(text, page="docs/index.md"):
    return [words for _, words in docs_lint.breaks(page, text)]


class Rules(unittest.TestCase):
    def test_clean_text_breaks_nothing(self):
        self.assertEqual(found("# Title\n\nA kernel runs. It is fast.\n"), [])

    def test_an_old_word_is_found_but_not_in_code(self):
        self.assertIn('not "copy engine"', found("The copy engine waits.\n")[0])
        self.assertEqual(found("The file `copy engine` waits.\n\n```\nthe copy engine\n```\n"), [])

    def test_a_long_sentence_is_found_across_lines(self):
        self.assertIn("a sentence of 31 words", found("one " * 15 + "\n" + "two " * 15 + "end.\n")[0])
        self.assertEqual(found("one " * 15 + "end.\n" + "Two " * 15 + "end.\n"), [])

    def test_a_wide_line_is_found_but_not_a_table(self):
        self.assertIn("141 columns", found("a" * 141 + "\n")[0])
        self.assertEqual(found("| " + "a" * 150 + " |\n"), [])

    def test_a_long_readme_is_found(self):
        self.assertIn("121 lines", found("a\n" * 121, "README.md")[0])
        self.assertEqual(found("a\n\n" * 100), [])

    def test_a_number_needs_a_file(self):
        self.assertIn("names no file", found("It takes 3 µs.\n")[0])
        self.assertIn("names no file", found("# A\n\n## B\n\nIt is 1.2× as fast.\n")[0])
        self.assertEqual(found("It takes 3 µs (`measurements/run_cost_h200_2026-11-21.txt`).\n"), [])
        self.assertEqual(found("A block of 128×128.\n"), [])

    def test_a_dead_link_is_found(self):
        self.assertIn("does not exist", found("[x](nowhere.md)\n")[0])
        self.assertIn("no such section", found("[x](start/faq.md#nowhere)\n")[0])
        self.assertEqual(found("[x](start/faq.md#nvrtc-could-not-be-loaded) [y](https://example.org)\n"), [])

    def test_the_notebook_keeps_its_words(self):
        self.assertEqual(found("The copy engine waits.\n" + "one\n" * 40, "docs/notebook/index.md"), [])

    def test_no_page_is_on_the_list_twice_or_gone(self):
        self.assertEqual(sorted(set(docs_lint.NOT_YET_SHORT)), docs_lint.NOT_YET_SHORT)
        for page in docs_lint.NOT_YET_SHORT:
            self.assertTrue((ROOT / page).exists(), page)


if __name__ == "__main__":
    unittest.main()
