// `thresher emulate`: kernels run on this CPU, thread by thread, every access and every wait checked.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "cli/cli.hpp"
#include "formats/numbers.hpp"
#include "kernels/dual_gemm/host/emulated.hpp"
#include "kernels/dual_gemm/program.hpp"
#include "machine/emulator/engine/random.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

namespace dual_gemm = kernels::dual_gemm;

struct Request {
  std::string operation;
  std::string strategy;
  std::int64_t m = 200;
  std::int64_t n = 72;
  std::int64_t k = 200;
  std::uint64_t schedules = 64;
  std::uint64_t seed = 0;
};

std::string name_of(dual_gemm::Strategy strategy) {
  return strategy == dual_gemm::Strategy::sequential    ? "sequential"
         : strategy == dual_gemm::Strategy::interleaved ? "interleaved"
                                                        : "pingpong";
}

/// Operands of one problem; values do not matter to what the emulator looks for.
class Problem {
 public:
  Problem(const Request& request, const dual_gemm::Config& config)
      : extents_{request.m, request.n, request.k},
        a_(fill(request.m * request.k, config, 1)),
        b1_(fill(request.n * request.k, config, 2)),
        b2_(fill(request.n * request.k, config, 3)),
        c_(static_cast<std::size_t>(request.m * request.n * (config.output == dual_gemm::Number::fp32 ? 4 : 2))) {
    memory_.add("a", a_.data(), a_.size() * 2, emulator::Use::input);
    memory_.add("b1 (gate)", b1_.data(), b1_.size() * 2, emulator::Use::input);
    memory_.add("b2 (up)", b2_.data(), b2_.size() * 2, emulator::Use::input);
    memory_.add("c", c_.data(), c_.size(), emulator::Use::output);
  }

  emulator::Report run(const dual_gemm::Config& config, std::uint64_t seed) const {
    const auto matrix = [](const void* data, std::int64_t row) {
      return dual_gemm::Matrix{static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data)), row};
    };
    const dual_gemm::EmulatedProblem problem{extents_,
                                             matrix(a_.data(), extents_.k),
                                             matrix(b1_.data(), extents_.k),
                                             matrix(b2_.data(), extents_.k),
                                             matrix(c_.data(), extents_.n),
                                             {}};
    emulator::Options options;
    options.schedule = emulator::Schedule::from_seed(seed);
    return emulate(config, problem, memory_, options);
  }

 private:
  static std::vector<std::uint16_t> fill(std::int64_t count, const dual_gemm::Config& config, std::uint64_t seed) {
    emulator::Random random(seed);
    std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
    for (std::uint16_t& value : values) {
      const float number = static_cast<float>(random.below(201)) / 100.0F - 1.0F;
      value =
          config.operand == dual_gemm::Number::fp16 ? formats::float_to_fp16(number) : formats::float_to_bf16(number);
    }
    return values;
  }

  dual_gemm::Extents extents_;
  std::vector<std::uint16_t> a_;
  std::vector<std::uint16_t> b1_;
  std::vector<std::uint16_t> b2_;
  std::vector<std::uint8_t> c_;
  emulator::GlobalMemory memory_;
};

/// Stops at the first schedule that finds something; true when none does.
bool is_clean(const Request& request, const dual_gemm::Config& config) {
  const Problem problem(request, config);
  for (std::uint64_t i = 0; i < request.schedules; ++i) {
    const emulator::Report report = problem.run(config, request.seed + i);
    if (!report.clean()) {
      fmt::print("{}: finding\n", dual_gemm::title(config));
      for (const emulator::Finding& finding : report.findings) {
        fmt::print("{}", to_string(finding));
      }
      return false;
    }
  }
  fmt::print("{}: clean in {} schedules, seeds {} to {}\n", dual_gemm::title(config), request.schedules, request.seed,
             request.seed + request.schedules - 1);
  return true;
}

void run(const Request& request, Context& context) {
  if (request.operation != "dual_gemm") {
    throw Error(ErrorCode::unsupported, fmt::format("'{}' cannot be emulated; there is dual_gemm", request.operation));
  }
  if (request.m < 1 || request.n < 8 || request.k < 8 || request.n % 8 != 0 || request.k % 8 != 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}x{}x{} cannot be emulated: m is at least 1, n and k are multiples of 8", request.m,
                            request.n, request.k));
  }
  bool any = false;
  for (const dual_gemm::Config& config : dual_gemm::emulated_configs()) {
    if (request.strategy.empty() || request.strategy == name_of(config.strategy)) {
      any = true;
      if (!is_clean(request, config)) {
        context.exit_status = gate_failed;
      }
    }
  }
  if (!any) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("no strategy '{}'; there are sequential, interleaved and pingpong", request.strategy));
  }
}

}  // namespace

void add_emulate(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("emulate", "Run an operation's kernels on this CPU and check every access");
  const auto request = std::make_shared<Request>();
  command->add_option("operation", request->operation, "dual_gemm")->required();
  command->add_option("--strategy", request->strategy, "sequential, interleaved or pingpong; all when left out");
  command->add_option("--m", request->m, "tokens")->capture_default_str();
  command->add_option("--n", request->n, "outputs, a multiple of 8")->capture_default_str();
  command->add_option("--k", request->k, "a multiple of 8")->capture_default_str();
  command->add_option("--schedules", request->schedules, "how many orders of threads and copies to try")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--seed", request->seed, "the first schedule; a finding names the one that shows it")
      ->capture_default_str();
  command->callback([request, &context] { run(*request, context); });
}

}  // namespace thresher::cli
