// What `thresher predict` reads: published times, and behind two NULs predictions and the run that they are scored by.
#include "arena/predictions/predicted.hpp"
#include "arena/predictions/published.hpp"
#include "fuzzed.hpp"

using namespace thresher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = fuzz::text_of(data, size);
  const std::string_view published = fuzz::take_text(rest);
  fuzz::understood([&] {
    for (const arena::PublishedProblem& problem : arena::parse_published(published, "p.toml").dual_gemms) {
      fuzz::require(problem.m > 0 && problem.n > 0 && problem.k > 0 && problem.k % 16 == 0);
    }
  });
  const std::string_view predicted = fuzz::take_text(rest);
  fuzz::understood([&] {
    const arena::IntervalScore score = arena::score(predicted, rest);
    fuzz::require(score.hits() <= score.times.size() && score.right_order <= score.ordered);
    fuzz::require(!arena::text(score).empty());
  });
  return 0;
}
