#include "arena/user_kernels/compile/host_toolchain.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

#include "core/made_once.hpp"
#include "runtime/process.hpp"
#include "runtime/told_environment.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

namespace fs = std::filesystem;

/// The compiler's output about itself; it compiles no user code. Empty when it fails.
std::string ask(const fs::path& compiler, const std::vector<std::string>& arguments) {
  constexpr double max_s = 30;
  const runtime::TemporaryFolder folder;
  runtime::Command command;
  command.words = {compiler.string()};
  command.words.insert(command.words.end(), arguments.begin(), arguments.end());
  command.environment = compiler_environment(folder.path());
  const runtime::ProcessOutput output = runtime::run_process(std::move(command), {.time_s = max_s});
  return output.succeeded() ? output.text : "";
}

/// The lines between "search starts here" and "End of search list", of g++ and clang alike.
std::vector<fs::path> include_folders_of(const std::string& said) {
  std::vector<fs::path> folders;
  std::istringstream lines(said);
  bool is_list = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("search starts here") != std::string::npos) {
      is_list = true;
    } else if (line.starts_with("End of search list")) {
      break;
    } else if (is_list && line.starts_with(" ")) {
      folders.emplace_back(line.substr(1));
    }
  }
  return folders;
}

bool is_systems(const fs::path& path) { return lies_below(path, "/usr"); }

/// PREFIX for PREFIX/bin/g++ and for PREFIX/libexec/gcc/TRIPLE/VERSION/cc1plus.
fs::path prefix_of(const fs::path& program) {
  for (fs::path folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    const std::string name = folder.filename().string();
    if (name == "bin" || name == "libexec") {
      return folder.parent_path();
    }
  }
  return program;
}

HostToolchain find(const std::string& name) {
  HostToolchain found;
  found.compiler = runtime::find_program(name);
  if (found.compiler.empty()) {
    throw Error(ErrorCode::compile, fmt::format("there is no C++ compiler {}: install one, or name one in CXX", name));
  }
  found.compiler = fs::absolute(found.compiler);
  const std::string version = ask(found.compiler, {"--version"});
  found.version = version.substr(0, version.find('\n'));
  found.include_folders = include_folders_of(ask(found.compiler, {"-E", "-v", "-x", "c++", "/dev/null"}));
  if (found.version.empty() || found.include_folders.empty()) {
    throw Error(ErrorCode::compile,
                fmt::format("the C++ compiler {} does not tell its version and where its headers are", name));
  }
  found.tools.push_back(tool_file(fs::canonical(found.compiler)));
  std::vector<fs::path> programs{found.tools.front().path};
  std::string proper = ask(found.compiler, {"-print-prog-name=cc1plus"});
  proper.erase(proper.find_last_not_of('\n') + 1);
  if (std::error_code error; fs::path(proper).is_absolute() && fs::is_regular_file(proper, error)) {
    found.tools.push_back(tool_file(fs::canonical(proper)));
    programs.emplace_back(found.tools.back().path);
  }
  for (const fs::path& program : programs) {
    if (!is_systems(program)) {
      const bool is_script = program == programs.front() && found.tools.front().is_script;
      found.folders.push_back(is_script ? program : prefix_of(program));
    }
  }
  return found;
}

}  // namespace

const HostToolchain& host_toolchain() {
  static OnceMap<std::string, HostToolchain> known;
  const char* const chosen = std::getenv("CXX");
  const std::string name = chosen != nullptr && *chosen != '\0' ? chosen : "c++";
  return known.get(name, [&] { return find(name); });
}

std::vector<std::string> compiler_environment(const fs::path& folder) {
  return runtime::environment_for(
      runtime::Told::compiler,
      {{"LC_ALL", "C"}, {"TMPDIR", folder.string()}, {"HOME", folder.string()}, {"CCACHE_DISABLE", "1"}});
}

}  // namespace thresher::arena::user_kernels
