// Alone in its file, because the tool that compiles the built-in cubins needs it and what it lists, and nothing else.
#include <algorithm>
#include <iterator>

#include "ops/built_in_cubins.hpp"
#include "ops/cuda_programs.hpp"
#include "runtime/cubin_cache.hpp"
#include "strategies/append/call.hpp"
#include "strategies/attention/registry.hpp"
#include "strategies/gemm/reference/program.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/moe_layer/calls.hpp"
#include "strategies/pause_program.hpp"
#include "strategies/quantize/call.hpp"
#include "strategies/word_sum/program.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

void add_once(std::vector<strategies::DeviceProgram>& programs, const strategies::DeviceProgram& program) {
  const auto is_same = [&](const strategies::DeviceProgram& known) {
    return known.text == program.text && known.kernels == program.kernels;
  };
  if (std::none_of(programs.begin(), programs.end(), is_same)) {
    programs.push_back(program);
  }
}

void add_launches(std::vector<strategies::DeviceProgram>& programs, const strategies::PlannedCall& call) {
  for (const strategies::Step& step : call.steps) {
    const auto* launch = std::get_if<strategies::KernelLaunch>(&step);
    for (; launch != nullptr; launch = launch->alternative.get()) {
      add_once(programs, launch->program);
    }
  }
  if (call.packing != nullptr) {
    add_launches(programs, *call.packing);
  }
}

/// Any for an architecture of which the table has no device, for which only programs of no architecture in particular
/// are kept.
const DeviceSpec& device_of(const std::string& arch) {
  const std::optional<Arch> known = parse_arch(arch);
  const DeviceSpec* const found = known ? find_device_spec(*known) : nullptr;
  return found == nullptr ? device_specs().front() : *found;
}

/// Every strategy's own list.
template <class Problem, class Wanted>
void add_built_in(std::vector<strategies::PlannedCall>& calls, strategies::Strategies<Problem> all,
                  const DeviceSpec& device, const Wanted& is_wanted) {
  for (const strategies::Strategy<Problem>* strategy : all) {
    for (const strategies::Sample<Problem>& sample : strategy->built_in()) {
      if (is_wanted(sample.problem) && !strategy->unsupported_reason(sample.problem, device)) {
        calls.push_back(strategy->plan(sample.problem, sample.knobs, device));
      }
    }
  }
}

}  // namespace

std::vector<strategies::PlannedCall> default_calls(const std::string& arch) {
  std::vector<strategies::PlannedCall> calls;
  const DeviceSpec& device = device_of(arch);
  using strategies::gemm::ProductProblem;
  // A strategy may be in both lists of products.
  add_built_in<ProductProblem>(calls,
                               strategies::gemm::strategies_of(strategies::gemm::Product::dual_gemm, DeviceKind::cuda),
                               device, [](const ProductProblem& problem) { return problem.is_dense(); });
  add_built_in<AttentionProblem>(calls, strategies::attention::registry().of(DeviceKind::cuda), device,
                                 [](const AttentionProblem&) { return true; });
  add_built_in<ProductProblem>(calls,
                               strategies::gemm::strategies_of(strategies::gemm::Product::grouped, DeviceKind::cuda),
                               device, [](const ProductProblem& problem) { return !problem.is_dense(); });
  for (std::vector<strategies::PlannedCall> some :
       {strategies::moe_layer::built_in(), strategies::append::built_in(device), strategies::quantize::built_in()}) {
    std::move(some.begin(), some.end(), std::back_inserter(calls));
  }
  return calls;
}

std::vector<strategies::DeviceProgram> programs_of(const strategies::PlannedCall& call) {
  std::vector<strategies::DeviceProgram> programs;
  add_launches(programs, call);
  return programs;
}

std::vector<strategies::DeviceProgram> default_programs(const std::string& arch) {
  std::vector<strategies::DeviceProgram> programs{strategies::gemm::reference::program(), strategies::pause_program(),
                                                  strategies::word_sum::program()};
  for (const strategies::PlannedCall& call : default_calls(arch)) {
    add_launches(programs, call);
  }
  std::erase_if(programs, [&](const strategies::DeviceProgram& program) { return !can_run_on(program, arch); });
  return programs;
}

bool can_run_on(const strategies::DeviceProgram& program, const std::string& arch) {
  const std::optional<Arch> card = parse_arch(arch);
  return !program.only_arch || (card && runs_on(*program.only_arch, *card));
}

std::string built_in_key(const runtime::Program& program) { return runtime::cache_key(program, "built in"); }

runtime::Program compiler_input(const strategies::DeviceProgram& program, const std::string& arch) {
  if (!can_run_on(program, arch)) {
    throw Error(ErrorCode::unsupported, program.title + " is for " + std::string(name(*program.only_arch)) +
                                            ", whose machine code does not run on " + arch);
  }
  return {.title = program.title,
          .text = program.text,
          .headers = strategies::included_sources(program.text),
          .kernels = program.kernels,
          .options = program.options,
          .arch = program.only_arch ? std::string(name(*program.only_arch)) : arch};
}

}  // namespace thresher::ops
