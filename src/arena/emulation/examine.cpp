#include "arena/emulation/examine.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace thresher::arena {

Examination examine(const EmulatedKernel& kernel, const Problem& problem, std::span<const std::uint64_t> seeds,
                    emulator::Options options) {
  const std::unique_ptr<EmulatedRun> run = kernel.on(problem);
  Examination result;
  std::vector<std::uint8_t> first;
  for (const std::uint64_t seed : seeds) {
    options.schedule = emulator::Schedule::from_seed(seed);
    const emulator::Report report = run->run(options);
    const std::span<const std::uint8_t> output = run->output();
    result.seed = seed;
    if (!report.clean()) {
      for (const emulator::Finding& finding : report.findings) {
        result.finding += to_string(finding);
      }
      return result;
    }
    if (result.runs++ == 0) {
      first.assign(output.begin(), output.end());  // later runs that equal this output need no judge
      if (const std::string wrong = run->wrong(); !wrong.empty()) {
        result.finding = fmt::format("the result is wrong: {}\n", wrong);
        return result;
      }
    } else if (!std::equal(first.begin(), first.end(), output.begin(), output.end())) {
      result.finding = fmt::format("the result depends on the schedule: seeds {} and {} wrote different bytes\n",
                                   seeds.front(), seed);
      return result;
    }
  }
  return result;
}

}  // namespace thresher::arena
