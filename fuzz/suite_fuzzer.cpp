// Suites of problems.
#include "arena/operation/operation.hpp"
#include "arena/suites/suite.hpp"
#include "fuzzed.hpp"

using namespace thresher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  arena::Suite suite;
  if (fuzz::understood([&] { suite = arena::parse_suite(fuzz::text_of(data, size), "fuzzed", "fuzzed.toml"); })) {
    constexpr std::size_t max_problems = 4096;
    fuzz::require(!suite.title.empty() && !suite.distributions.empty() && !suite.problems.empty() &&
                  suite.problems.size() <= max_problems);
    for (const arena::Problem& problem : suite.problems) {
      fuzz::require(!label(problem).empty());
    }
  }
  return 0;
}
