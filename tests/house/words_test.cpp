// Comments are in plain words: sentences with a subject, and the field's word before one of our own. Messages too have
// the field's words.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "house/source_files.hpp"

namespace {

namespace fs = std::filesystem;

using thresher::house::read;
using thresher::house::source_files;

/// Words that no sentence begins with: such a sentence has no subject.
constexpr std::array<std::string_view, 4> forbidden_beginnings{"Of", "What", "Whoever", "Whose"};

/// A word or phrase that comments avoid, and its replacement. A * at the end stands for any lower-case letters.
struct OldWord {
  std::string_view old;
  std::string_view instead;
};
constexpr std::array old_words{
    OldWord{"foretell*", "predict"},
    OldWord{"foretold", "predicted"},
    OldWord{"foresee*", "predict, prefetch"},
    OldWord{"foresaw", "predicted"},
    OldWord{"rung", "tile width"},
    OldWord{"rungs", "tile widths"},
    OldWord{"by turns", "ping-pong, alternating"},
    OldWord{"in turns", "interleaved, alternating"},
    OldWord{"math warp*", "consumer warp"},
    OldWord{"loader warp*", "producer warp"},
    OldWord{"matrix unit*", "tensor cores"},
    OldWord{"copy engine*", "TMA"},
    OldWord{"promoted sum*", "FP32 accumulation every 128 along K"},
    OldWord{"quantis*", "quantiz-"},
    OldWord{"dequantis*", "dequantiz-"},
    OldWord{"requantis*", "quantized output"},
    OldWord{"folded tokens", "quantized activations"},
    OldWord{"folded operands", "quantized operands"},
    OldWord{"folded beforehand", "pre-quantized"},
    OldWord{"ready made", "pre-quantized"},
    OldWord{"row of nobody", "padding row"},
    OldWord{"rows of nobody", "padding rows"},
    OldWord{"experts of a mixture", "MoE experts"},
    OldWord{"experts of the mixture", "MoE experts"},
    OldWord{"sort the choices", "permute by expert"},
    OldWord{"sorts the choices", "permutes by expert"},
    OldWord{"sorting the choices", "permuting by expert"},
    OldWord{"keys in pages", "paged KV cache"},
    OldWord{"brings no value", "attention sink"},
    OldWord{"launch of its own", "separate kernel"},
    OldWord{"hand-over*", "register reallocation (setmaxnreg)"},
    OldWord{"lie apart", "must not overlap"},
    OldWord{"lies apart", "must not overlap"},
    OldWord{"lying apart", "not overlapping"},
    OldWord{"any distance apart", "arbitrary stride"},
    OldWord{"nonsense", "invalid"},
    OldWord{"make no sense", "are invalid"},
    OldWord{"makes no sense", "is invalid"},
    OldWord{"refused in a sentence", "rejected with an error"},
    OldWord{"refused in one sentence", "rejected with an error"},
    OldWord{"arranged once", "prepacked"},
    OldWord{"put right", "restored"},
    OldWord{"puts right", "restores"},
    OldWord{"glance*", "output sample"},
    OldWord{"held back", "delayed, throttled"},
    OldWord{"holds back", "delays, throttles"},
    OldWord{"outlook*", "planner result"},
    OldWord{"opinion*", "score"},
    OldWord{"kernel from outside", "user kernel"},
    OldWord{"kernels from outside", "user kernels"},
    OldWord{"nvcc in sight", "kernels without nvcc"},
    OldWord{"at the least", "at least"},
};

using Texts = std::vector<std::string>;

/// A sentence of a comment, and the line where it begins.
struct Sentence {
  std::size_t line = 0;
  std::string text;
};

bool is_word(char character) { return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_'; }

/// Where the comment of a line begins: // outside string and character literals. A ' behind a digit separates digits.
std::size_t comment_at(std::string_view line) {
  char quote = '\0';
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char here = line[at];
    if (quote != '\0') {
      at += here == '\\' ? 1 : 0;
      quote = here == quote ? '\0' : quote;
    } else if (here == '"' || (here == '\'' && (at == 0 || !is_word(line[at - 1])))) {
      quote = here;
    } else if (line.substr(at).starts_with("//")) {
      return at;
    }
  }
  return std::string_view::npos;
}

/// The text behind //, /// or ///<, without blanks around it.
std::string_view comment_text(std::string_view comment) {
  comment.remove_prefix(std::min(comment.find_first_not_of('/'), comment.size()));
  comment.remove_prefix(comment.starts_with('<') ? 1 : 0);
  comment.remove_prefix(std::min(comment.find_first_not_of(' '), comment.size()));
  return comment.substr(0, comment.find_last_not_of(' ') + 1);
}

/// Whether a sentence ends before `at`, a blank: behind a full stop that is no abbreviation's, before a new beginning.
bool ends_before(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const std::size_t next = text.find_first_not_of(' ', at);
  if (before.empty() || next == std::string_view::npos || std::string_view(".!?").find(before.back()) == before.npos) {
    return false;
  }
  const auto is_end_of = [&](std::string_view abbreviation) { return before.ends_with(abbreviation); };
  const std::array abbreviations{"e.g.", "i.e.", "cf.", "vs."};
  const bool is_beginning = std::isupper(static_cast<unsigned char>(text[next])) != 0 || text[next] == '`';
  return is_beginning && std::none_of(abbreviations.begin(), abbreviations.end(), is_end_of);
}

/// Joins lines of one comment and takes it apart into sentences.
class Comment {
 public:
  explicit Comment(std::vector<Sentence>& sentences) : sentences_(sentences) {}

  void add(std::string_view text, std::size_t line) {
    text_ += text_.empty() ? "" : " ";
    begins_.push_back({text_.size(), line});
    text_ += text;
  }
  void end() {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text_.size(); ++at) {
      if (text_[at] == ' ' && ends_before(text_, at)) {
        give(begin, at);
        begin = at + 1;
      }
    }
    give(begin, text_.size());
    text_.clear();
    begins_.clear();
  }

 private:
  struct Begin {
    std::size_t at;
    std::size_t line;
  };

  void give(std::size_t begin, std::size_t end) {
    if (begin < end) {
      const auto is_behind = [&](const Begin& one) { return one.at <= begin; };
      const auto line = std::find_if(begins_.rbegin(), begins_.rend(), is_behind);
      sentences_.push_back({line->line, text_.substr(begin, end - begin)});
    }
  }

  std::vector<Sentence>& sentences_;
  std::string text_;
  std::vector<Begin> begins_;
};

/// The sentences of all comments. A comment goes on in the next line where that has only a comment in the same column.
std::vector<Sentence> sentences_of(std::string_view source) {
  std::vector<Sentence> sentences;
  Comment comment(sentences);
  std::size_t column = std::string_view::npos;
  for (std::size_t number = 1; !source.empty(); ++number) {
    const std::string_view line = source.substr(0, source.find('\n'));
    source.remove_prefix(std::min(line.size() + 1, source.size()));
    const std::size_t at = comment_at(line);
    const std::string_view text = at == std::string_view::npos ? "" : comment_text(line.substr(at));
    if (at != column || text.empty() || line.find_first_not_of(' ') != at) {
      comment.end();
    }
    if (!text.empty()) {
      comment.add(text, number);
    }
    column = at;
  }
  comment.end();
  return sentences;
}

/// The string literals of a line of code; an include has none.
Texts literals_of(std::string_view line) {
  Texts literals;
  line = line.substr(0, comment_at(line));
  if (line.starts_with('#')) {
    return literals;
  }
  for (std::size_t begin = line.find('"'); begin < line.size(); begin = line.find('"', begin)) {
    std::size_t end = begin + 1;
    while (end < line.size() && line[end] != '"') {
      end += line[end] == '\\' ? 2 : 1;
    }
    end = std::min(end, line.size());
    literals.emplace_back(line.substr(begin + 1, end - begin - 1));
    begin = end + 1;
  }
  return literals;
}

/// The sentence without what it quotes: `code` and "text".
std::string without_quotes(std::string_view sentence) {
  std::string rest;
  char quote = '\0';
  for (const char here : sentence) {
    if (quote == '\0' && (here == '`' || here == '"')) {
      quote = here;
      rest += here;
    } else if (here == quote) {
      quote = '\0';
    }
    rest += quote == '\0' ? std::string(1, here) : "";
  }
  return rest;
}

/// Whether the word stands at `at`, where a word begins, up to the word's end. Its first letter may be a capital.
bool stands_at(std::string_view sentence, std::size_t at, std::string_view word) {
  const bool has_any_end = word.ends_with('*');
  word.remove_suffix(has_any_end ? 1 : 0);
  const std::string_view here = sentence.substr(at, word.size());
  if (std::tolower(static_cast<unsigned char>(here.front())) != word.front() || here.substr(1) != word.substr(1)) {
    return false;
  }
  std::size_t end = at + word.size();
  while (has_any_end && end < sentence.size() && std::islower(static_cast<unsigned char>(sentence[end])) != 0) {
    ++end;
  }
  return end == sentence.size() || !is_word(sentence[end]);
}

bool holds(std::string_view sentence, std::string_view word) {
  for (std::size_t at = 0; at < sentence.size(); ++at) {
    if ((at == 0 || !is_word(sentence[at - 1])) && stands_at(sentence, at, word)) {
      return true;
    }
  }
  return false;
}

/// What to write in place of an old word of the text; nothing when it has none.
std::optional<std::string> old_word(std::string_view text) {
  for (const OldWord& word : old_words) {
    if (holds(text, word.old)) {
      return "write \"" + std::string(word.instead) + "\", not \"" + std::string(word.old) + "\"";
    }
  }
  return std::nullopt;
}

/// The rule that the sentence breaks; nothing when it breaks none.
std::optional<std::string> broken_rule(std::string_view sentence) {
  for (const std::string_view word : forbidden_beginnings) {
    if (sentence.starts_with(word) && (sentence.size() == word.size() || !is_word(sentence[word.size()]))) {
      return "a sentence does not begin with " + std::string(word);
    }
  }
  return old_word(without_quotes(sentence));
}

Texts texts(std::string_view source) {
  Texts found;
  for (const Sentence& sentence : sentences_of(source)) {
    found.push_back(sentence.text);
  }
  return found;
}

TEST(Words, ACommentOfSeveralLinesIsSentences) {
  EXPECT_EQ(texts("/// One thing. Another,\n/// longer one.\nint x;\n"), (Texts{"One thing.", "Another, longer one."}));
  EXPECT_EQ(texts("// No end"), Texts{"No end"});
  EXPECT_EQ(texts("int x;\n\n"), Texts{});
}

TEST(Words, AnEmptyLineAndCodeEndAComment) {
  EXPECT_EQ(texts("/// One\n///\n/// two\n"), (Texts{"One", "two"}));
  EXPECT_EQ(texts("int x;  ///< one\nint y;  ///< two\n        ///< more\n"), (Texts{"one", "two more"}));
  EXPECT_EQ(texts("int x;  // one\n// Two\n"), (Texts{"one", "Two"}));
}

TEST(Words, AFullStopInsideASentenceIsNoEnd) {
  EXPECT_EQ(texts("// Reads a.hpp, e.g. Foo, 1.5 times. `x` is y.\n"),
            (Texts{"Reads a.hpp, e.g. Foo, 1.5 times.", "`x` is y."}));
  EXPECT_EQ(texts("// One. two.\n"), Texts{"One. two."});
}

TEST(Words, SlashesInLiteralsAreNoComment) {
  EXPECT_EQ(texts("f(\"http://a\");\n"), Texts{});
  EXPECT_EQ(texts("f(\"\\\"//\", '\"', 1'000);  // One.\n"), Texts{"One."});
}

TEST(Words, ASentenceKnowsItsLine) {
  const std::vector<Sentence> sentences = sentences_of("int x;\n// One.\n// Two\n// lines. Three.\n");
  ASSERT_EQ(sentences.size(), 3U);
  EXPECT_EQ(sentences[0].line, 2U);
  EXPECT_EQ(sentences[1].line, 3U);
  EXPECT_EQ(sentences[2].line, 4U);
}

TEST(Words, ASentenceWithoutASubjectBreaksARule) {
  EXPECT_TRUE(broken_rule("Of the last call."));
  EXPECT_TRUE(broken_rule("What a call writes."));
  EXPECT_TRUE(broken_rule("Whose it is."));
  EXPECT_FALSE(broken_rule("of the last call"));
  EXPECT_FALSE(broken_rule("Offsets of rows."));
  EXPECT_FALSE(broken_rule("Says what a call writes."));
}

TEST(Words, AnOldWordBreaksARule) {
  EXPECT_TRUE(broken_rule("Foretells a time."));
  EXPECT_TRUE(broken_rule("The copy engines wait."));
  EXPECT_TRUE(broken_rule("Outputs are requantised."));
  EXPECT_TRUE(broken_rule("A rung of 64."));
}

TEST(Words, AnIdentifierOrAQuotationBreaksNoRule) {
  EXPECT_FALSE(broken_rule("The strung rope and the wrung cloth."));
  EXPECT_FALSE(broken_rule("Calls `requantise` and requantised_outputs."));
  EXPECT_FALSE(broken_rule("Runs CudaRequantisedDense and RequantisedDense."));
  EXPECT_FALSE(broken_rule("The key \"opinion\" of a file."));
}

TEST(Words, CommentsAreInPlainWords) {
  const fs::path root(THRESHER_SOURCE_DIR);
  for (const char* folder : {"src", "include"}) {
    for (const fs::path& path : source_files(root / folder)) {
      const std::string file = fs::relative(path, root).string();
      for (const Sentence& sentence : sentences_of(read(path))) {
        const std::optional<std::string> rule = broken_rule(sentence.text);
        EXPECT_FALSE(rule.has_value()) << file << ":" << sentence.line << ": " << sentence.text << "\n"
                                       << rule.value_or("");
      }
    }
  }
}

TEST(Words, LiteralsAreThoseOfCode) {
  EXPECT_EQ(literals_of("f(\"one\", \"a \\\"b\\\"\");  // \"three\""), (Texts{"one", "a \\\"b\\\""}));
  EXPECT_EQ(literals_of("#include \"formats/rung.hpp\""), Texts{});
  EXPECT_EQ(literals_of("int x;"), Texts{});
}

TEST(Words, MessagesAreInPlainWords) {
  const fs::path root(THRESHER_SOURCE_DIR);
  for (const fs::path& path : source_files(root / "src")) {
    std::istringstream source(read(path));
    std::string line;
    for (std::size_t number = 1; std::getline(source, line); ++number) {
      for (const std::string& literal : literals_of(line)) {
        const std::optional<std::string> rule = old_word(literal);
        EXPECT_FALSE(rule.has_value()) << fs::relative(path, root).string() << ":" << number << ": " << literal << "\n"
                                       << rule.value_or("");
      }
    }
  }
}

}  // namespace
