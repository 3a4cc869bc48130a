#pragma once
// What compilers say of operations that a skeleton refuses.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <iterator>
#include <regex>
#include <string>
#include <utility>

namespace thresher::pipeline::test {

/// A sentence of the skeleton's, and how many of the bad operations earn it.
using Refusal = std::pair<const char*, int>;

/// The words of a compiler that refused the bad operations.
template <std::size_t count>
void expect_refusals(const std::array<Refusal, count>& refusals, const std::string& log) {
  const std::string quoted = R"re(static assertion failed(: | with "))re";
  for (const auto& [sentence, times] : refusals) {
    const std::string literal = std::regex_replace(std::string(sentence), std::regex(R"re([.()&<>])re"), R"re(\$&)re");
    const std::regex wanted(quoted + literal);
    EXPECT_EQ(std::distance(std::sregex_iterator(log.begin(), log.end(), wanted), std::sregex_iterator()), times)
        << sentence << "\n"
        << log;
  }
}

struct Outcome {
  bool compiled;
  std::string log;
};

/// `header` is named from tests/.
inline Outcome compile_for_host(const std::string& header, const std::string& definition) {
  const std::string source = THRESHER_SOURCE_DIR;
  const std::string command = std::string(THRESHER_CXX_COMPILER) + " -std=c++20 -fsyntax-only -Wno-psabi " +
                              definition + " -I'" + source + "/src' -I'" + source + "/include' -x c++ '" + source +
                              "/tests/" + header + "' 2>&1";
  FILE* const words = popen(command.c_str(), "r");
  Outcome outcome{false, ""};
  for (int c = fgetc(words); c != EOF; c = fgetc(words)) {
    outcome.log += static_cast<char>(c);
  }
  outcome.compiled = pclose(words) == 0;
  return outcome;
}

}  // namespace thresher::pipeline::test
