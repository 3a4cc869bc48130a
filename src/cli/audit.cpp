// `thresher audit`: compares a kernel's machine code with its expectations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "arena/audit/disassembler.hpp"
#include "arena/audit/expectations.hpp"
#include "arena/audit/machine_code.hpp"
#include "arena/operation/planned_code.hpp"
#include "arena/results/evidence_json.hpp"
#include "cli/planner_commands.hpp"
#include "core/device_spec.hpp"
#include "core/input_file.hpp"
#include "core/printable.hpp"
#include "ops/cuda_programs.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

constexpr std::uint64_t max_machine_code_bytes = std::uint64_t{1} << 30;

struct AuditArguments {
  std::string file;  ///< empty: the kernels of this library
  std::string arch;
  std::string strategy;  ///< among the kernels of this library; empty: all
  std::string kernel;
  std::vector<std::string> expectations;
  int dynamic_shared_bytes = 0;
  bool json = false;
};

/// Reads a disassembler's listing directly, anything else through a disassembler.
arena::Disassembly read(const std::string& file) {
  const InputFile read = read_input_file(file, max_machine_code_bytes);
  if (!read.bytes) {
    throw Error(ErrorCode::io, fmt::format("{}: {}", file, read.obstacle));
  }
  if (std::vector<arena::SassFunction> functions = arena::parse_sass(*read.bytes); !functions.empty()) {
    return {std::move(functions), arena::parse_resource_usage(*read.bytes)};
  }
  return arena::disassemble(arena::find_disassembler(), std::filesystem::path(file));
}

const arena::SassResources* resources_of(const arena::Disassembly& code, const std::string& name) {
  for (const arena::SassResources& resources : code.resources) {
    if (resources.name == name) {
      return &resources;
    }
  }
  return nullptr;
}

arena::AuditReport report_of(const arena::Disassembly& code, const arena::SassFunction& function,
                             const AuditArguments& arguments) {
  const arena::SassResources* found = resources_of(code, function.name);
  if (!found) {
    return arena::audit(function.name, nullptr, &function, arguments.dynamic_shared_bytes);
  }
  runtime::ResourceReport resources;
  resources.registers = found->registers;
  resources.stack_bytes = found->stack_bytes;
  resources.static_shared_bytes = found->shared_bytes;
  return arena::audit(function.name, &resources, &function, arguments.dynamic_shared_bytes);
}

arena::AuditExpectations expectations_of(const AuditArguments& arguments) {
  arena::AuditExpectations expected = arena::expected_of_any_kernel();
  for (const std::string& each : arguments.expectations) {
    const std::size_t equals = each.find('=');
    if (equals == std::string::npos) {
      throw Error(ErrorCode::invalid_argument, fmt::format("--expect {}: write NAME=VALUE, as in matrix=HGMMA", each));
    }
    arena::set_expectation(expected, each.substr(0, equals), each.substr(equals + 1));
  }
  return expected;
}

/// Collects the findings in their order.
class Findings {
 public:
  Findings(bool json, Context& context) : json_(json), context_(context) {}

  /// `title` is empty where it is unknown.
  void add(const arena::AuditedKernel& kernel, const arena::AuditVerdict& verdict) {
    if (json_) {
      objects_.push_back(arena::to_json(kernel));
    } else {
      print(kernel, verdict);
    }
    if (verdict.failed()) {
      context_.exit_status = gate_failed;
    }
    ++kernels_;
  }

  [[nodiscard]] std::size_t kernels() const noexcept { return kernels_; }

  void end() const {
    if (json_) {
      fmt::print("[{}]\n", fmt::join(objects_, ",\n "));
    }
  }

 private:
  static void print(const arena::AuditedKernel& kernel, const arena::AuditVerdict& verdict) {
    const arena::AuditReport& report = kernel.report;
    if (!kernel.title.empty()) {
      fmt::print("{}\n", kernel.title);
    }
    fmt::print("{} ({})\n", printable(report.kernel), printable(report.arch));
    fmt::print("  {} registers, {} bytes of local memory, {} bytes of shared memory declared, {} accesses to it\n",
               report.registers, report.stack_bytes, report.declared_shared_bytes, report.shared_accesses);
    fmt::print(
        "  {} bulk loads, {} bulk stores, {} global accesses ({:.0f} % of 16 bytes or more), {} barriers, {} branches, "
        "{} bytes of code\n",
        report.tma_loads, report.tma_stores, report.global_accesses, 100 * report.wide_share(), report.barriers,
        report.branches, report.code_bytes);
    for (const auto& [mnemonic, times] : report.matrix_instructions) {
      fmt::print("  {} x {}\n", times, mnemonic);
    }
    for (const arena::AuditFinding& finding : verdict.findings) {
      fmt::print("  {}  {}\n", finding.ok ? "ok    " : "FAILED", finding.sentence);
    }
    if (!verdict.not_judged.empty()) {
      fmt::print("  the machine code was not looked at: {}\n", printable(verdict.not_judged));
    }
    std::fflush(stdout);  // the next one may take seconds
  }

  bool json_;
  Context& context_;
  std::vector<std::string> objects_;
  std::size_t kernels_ = 0;
};

bool has_wanted_name(const std::string& kernel, const AuditArguments& arguments) {
  return kernel.find(arguments.kernel) != std::string::npos;
}

/// Whether a tool's "sm_100" is code for the target of --arch: the tools omit its family.
bool is_for(const std::string& listed, const std::string& arch) {
  return arch.empty() || listed == arch || (arch.ends_with('f') && listed == arch.substr(0, arch.size() - 1));
}

void audit_file(const AuditArguments& arguments, Context& context) {
  const arena::AuditExpectations expected = expectations_of(arguments);
  const arena::Disassembly code = read(arguments.file);
  Findings findings(arguments.json, context);
  for (const arena::SassFunction& function : code.functions) {
    if (has_wanted_name(function.name, arguments) && is_for(function.arch, arguments.arch)) {
      const arena::AuditReport report = report_of(code, function, arguments);
      findings.add({report}, arena::judge_audit(report, expected));
    }
  }
  if (findings.kernels() == 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: there is no kernel{} whose name contains \"{}\"", arguments.file,
                            arguments.arch.empty() ? "" : " for " + arguments.arch, arguments.kernel));
  }
  findings.end();
}

/// Audits every kernel that the library compiles by itself for the architecture, against its strategy's expectations.
void audit_library(const AuditArguments& arguments, Context& context) {
  const arena::Disassembler tools = arena::find_disassembler();
  Findings findings(arguments.json, context);
  std::vector<arena::KernelCode> seen;
  for (const strategies::PlannedCall& call : ops::default_calls(arguments.arch)) {
    if (!arguments.strategy.empty() && call.strategy != arguments.strategy) {
      continue;
    }
    for (const arena::KernelCode& kernel : arena::machine_code_of(call, arguments.arch).kernels) {
      if (has_wanted_name(kernel.kernel, arguments) && std::find(seen.begin(), seen.end(), kernel) == seen.end()) {
        auto [report, why_no_code] = arena::read_code(tools, kernel);
        report.arch = report.arch.empty() ? arguments.arch : report.arch;
        findings.add({report, kernel.title}, arena::judge_audit(report, kernel.expected, why_no_code));
        seen.push_back(kernel);
      }
    }
  }
  if (findings.kernels() == 0) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the library has no kernel{} for {} whose name contains \"{}\"",
                    arguments.strategy.empty() ? "" : " of " + arguments.strategy, arguments.arch, arguments.kernel));
  }
  findings.end();
}

void audit(const AuditArguments& arguments, Context& context) {
  if (!arguments.arch.empty()) {
    (void)device_spec_of_arch(arguments.arch);  // throws for an unknown architecture
  }
  if (arguments.file.empty() && arguments.arch.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "audit: name a file, or with --arch the architecture whose kernels of Thresher's own are to be read");
  }
  arguments.file.empty() ? audit_library(arguments, context) : audit_file(arguments, context);
}

}  // namespace

void add_audit(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<AuditArguments>();
  CLI::App* command = app.add_subcommand("audit", "Reads machine code and says whether it is what was expected");
  CLI::Option* const file = command->add_option("file", arguments->file,
                                                "A cubin, an object, or a listing of cuobjdump -sass or nvdisasm -c; "
                                                "with --arch alone the library's own kernels");
  command->add_option("--arch", arguments->arch, "Only machine code for this architecture, as sm_100f");
  command->add_option("--strategy", arguments->strategy, "Of the library's own kernels only this strategy's")
      ->excludes(file);
  command->add_option("--kernel", arguments->kernel, "Only kernels whose name contains this");
  command
      ->add_option("--expect", arguments->expectations,
                   "NAME=VALUE, for example matrix=HGMMA, max_registers=168, min_wide_share=0.5 (repeatable)")
      ->needs(file);
  command
      ->add_option("--dynamic-shared", arguments->dynamic_shared_bytes,
                   "Bytes of shared memory that the launch asks for")
      ->needs(file);
  command->add_flag("--json", arguments->json, "For machines");
  command->callback([arguments, &context] { audit(*arguments, context); });
}

}  // namespace thresher::cli
