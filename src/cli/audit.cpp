// `thresher audit`: what a kernel's machine code is made of, and whether that is what was expected.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "arena/audit/disassembler.hpp"
#include "arena/audit/expectations.hpp"
#include "arena/results/evidence_json.hpp"
#include "cli/planner_commands.hpp"
#include "core/input_file.hpp"
#include "core/printable.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

constexpr std::uint64_t most_machine_code_bytes = std::uint64_t{1} << 30;

struct Arguments {
  std::string file;
  std::string kernel;
  std::vector<std::string> expectations;
  int dynamic_shared_bytes = 0;
  bool json = false;
};

/// A listing of a disassembler as it is, anything else through a disassembler.
arena::Disassembly read(const std::string& file) {
  const InputFile read = read_input_file(file, most_machine_code_bytes);
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
                             const Arguments& arguments) {
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

arena::AuditExpectations expectations_of(const Arguments& arguments) {
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

void print(const arena::AuditReport& report, const arena::AuditVerdict& verdict) {
  fmt::print("{} ({})\n", printable(report.kernel), printable(report.arch));
  fmt::print("  {} registers, {} bytes of local memory, {} bytes of shared memory declared, {} accesses to it\n",
             report.registers, report.stack_bytes, report.declared_shared_bytes, report.shared_accesses);
  fmt::print(
      "  {} bulk loads, {} bulk stores, {} global accesses ({:.0f} % of 16 bytes), {} barriers, {} branches, {} bytes "
      "of code\n",
      report.tma_loads, report.tma_stores, report.global_accesses, 100 * report.wide_share(), report.barriers,
      report.branches, report.code_bytes);
  for (const auto& [mnemonic, times] : report.matrix_instructions) {
    fmt::print("  {} x {}\n", times, mnemonic);
  }
  for (const arena::AuditFinding& finding : verdict.findings) {
    fmt::print("  {}  {}\n", finding.ok ? "ok    " : "FAILED", finding.sentence);
  }
}

void audit(const Arguments& arguments, Context& context) {
  const arena::AuditExpectations expected = expectations_of(arguments);
  const arena::Disassembly code = read(arguments.file);
  bool any = false;
  std::string json;
  for (const arena::SassFunction& function : code.functions) {
    if (function.name.find(arguments.kernel) == std::string::npos) {
      continue;
    }
    any = true;
    const arena::AuditReport report = report_of(code, function, arguments);
    const arena::AuditVerdict verdict = arena::judge_audit(report, expected);
    if (arguments.json) {
      json += (json.empty() ? "" : ",\n ") + arena::to_json(arena::AuditedKernel{report});
    } else {
      print(report, verdict);
    }
    if (verdict.failed()) {
      context.exit_status = gate_failed;
    }
  }
  if (!any) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: there is no kernel whose name contains \"{}\"", arguments.file, arguments.kernel));
  }
  if (arguments.json) {
    fmt::print("[{}]\n", json);
  }
}

}  // namespace

void add_audit(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("audit", "Reads machine code and says whether it is what was expected");
  command->add_option("file", arguments->file, "A cubin, an object, or a listing of cuobjdump -sass or nvdisasm -c")
      ->required();
  command->add_option("--kernel", arguments->kernel, "Only kernels whose name contains this");
  command->add_option("--expect", arguments->expectations,
                      "NAME=VALUE, for example matrix=HGMMA, max_registers=168, min_wide_share=0.5 (repeatable)");
  command->add_option("--dynamic-shared", arguments->dynamic_shared_bytes,
                      "Bytes of shared memory that the launch asks for");
  command->add_flag("--json", arguments->json, "For machines");
  command->callback([arguments, &context] { audit(*arguments, context); });
}

}  // namespace thresher::cli
