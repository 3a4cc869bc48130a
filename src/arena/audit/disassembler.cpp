#include "arena/audit/disassembler.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "runtime/process.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;

std::string output_of(const fs::path& program, const std::vector<std::string>& arguments) {
  runtime::ProcessOutput output = runtime::run_process(program, arguments);
  if (!output.succeeded()) {
    throw Error(ErrorCode::io,
                fmt::format("{} failed: {}", program.string(), output.text.substr(0, output.text.find('\n'))));
  }
  return std::move(output.text);
}

fs::path found_in(const std::vector<fs::path>& folders, const char* program) {
  for (const fs::path& folder : folders) {
    if (!folder.empty() && ::access((folder / program).c_str(), X_OK) == 0) {
      return folder / program;
    }
  }
  return {};
}

}  // namespace

Disassembler find_disassembler(const runtime::Environment& environment) {
  std::vector<fs::path> folders = runtime::path_list(environment, "PATH");
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    for (const fs::path& root : runtime::path_list(environment, variable)) {
      folders.push_back(root / "bin");
    }
  }
  folders.emplace_back("/usr/local/cuda/bin");
  folders.emplace_back("/opt/cuda/bin");
  for (const auto& wheels : {runtime::own_wheel_folders("bin"), runtime::nvidia_wheel_folders("bin", environment)}) {
    folders.insert(folders.end(), wheels.begin(), wheels.end());
  }
  return {found_in(folders, "nvdisasm"), found_in(folders, "cuobjdump")};
}

std::string how_to_get_a_disassembler() {
  return "no nvdisasm or cuobjdump on PATH, in a CUDA toolkit or in a Python environment: pip install "
         "nvidia-cuda-nvdisasm nvidia-cuda-cuobjdump, or set CUDA_HOME to a CUDA toolkit";
}

Disassembly disassemble(const Disassembler& tools, const fs::path& cubin) {
  if (!tools.found()) {
    throw Error(ErrorCode::unsupported, how_to_get_a_disassembler());
  }
  Disassembly out;
  if (!tools.cuobjdump.empty()) {
    out.resources = parse_resource_usage(output_of(tools.cuobjdump, {"-res-usage", cubin.string()}));
  }
  // nvdisasm reads cubins only; cuobjdump reads objects and programs too.
  const bool whole_program = !tools.cuobjdump.empty();
  out.functions = parse_sass(whole_program ? output_of(tools.cuobjdump, {"-sass", cubin.string()})
                                           : output_of(tools.nvdisasm, {"-c", cubin.string()}));
  return out;
}

Disassembly disassemble(const Disassembler& tools, std::span<const std::byte> cubin) {
  const runtime::TemporaryFolder folder;
  const fs::path file = folder.path() / "cubin";
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(cubin.data()), static_cast<std::streamsize>(cubin.size()));
  return disassemble(tools, file);
}

}  // namespace thresher::arena
