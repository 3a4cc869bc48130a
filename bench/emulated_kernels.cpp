// Counts the emulator's runs of each strategy's compiled-in kernels per CPU second, on the small problems of the gate
// `race-free`. It runs schedules 0 to N - 1 of every kernel and problem, once each before the clock starts. usage:
// bench_emulated_kernels [OPERATION [SCHEDULES]]
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <string>

#include "arena/emulation/emulation.hpp"
#include "arena/operations.hpp"

namespace {

using namespace thresher;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void run(arena::EmulatedRun& on, std::uint64_t seed) {
  emulator::Options options;
  options.schedule = emulator::Schedule::from_seed(seed);
  if (const emulator::Report report = on.run(options); !report.clean()) {
    fmt::print("{}", to_string(report.findings.front()));
    std::exit(1);
  }
}

void measure(const arena::Operation& operation, const arena::EmulatedOperation& kernels, std::uint64_t schedules) {
  for (const std::string& strategy : kernels.strategies()) {
    double seconds = 0;
    std::uint64_t runs = 0;
    for (const auto& kernel : kernels.samples(strategy, nullptr)) {
      for (const arena::Problem& problem : kernel->edges()) {
        const auto on = kernel->on(problem);
        run(*on, 0);
        const double start = cpu_seconds();
        for (std::uint64_t seed = 0; seed < schedules; ++seed) {
          run(*on, seed);
        }
        seconds += cpu_seconds() - start;
        runs += schedules;
      }
    }
    fmt::print("{:<20} {:<14} {:>6} runs {:>8.2f} CPU s {:>9.2f} runs a CPU second\n", operation.name(), strategy, runs,
               seconds, static_cast<double>(runs) / seconds);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::string wanted = count > 1 ? arguments[1] : "";
    const std::uint64_t schedules = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 8;
    for (const arena::Operation* const operation : arena::operations()) {
      if (const auto* const kernels = operation->emulated();
          kernels != nullptr && schedules != 0 && (wanted.empty() || wanted == operation->name())) {
        measure(*operation, *kernels, schedules);
      }
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
