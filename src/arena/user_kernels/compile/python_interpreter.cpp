#include "arena/user_kernels/compile/python_interpreter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/made_once.hpp"
#include "runtime/process.hpp"
#include "runtime/told_environment.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

namespace fs = std::filesystem;

/// The script with which an interpreter describes itself; it runs no user code. It imports no frameworks, which would
/// take seconds.
constexpr const char* about_itself = R"(
import importlib.metadata, importlib.util, json, os, platform, sys
packages, importable = {}, []
for shown, name in (("NumPy", "numpy"), ("ml_dtypes", "ml_dtypes"), ("torch", "torch")):
    try:
        packages[shown] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
    if importlib.util.find_spec(name):
        importable.append(name)
print(json.dumps({"program": sys.executable, "version": platform.python_implementation() + " " + platform.python_version(),
                  "packages": packages, "importable": importable, "at_least_3_10": sys.version_info >= (3, 10),
                  "folders": [os.path.abspath(p) for p in [sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path] if p]}))
)";

PythonInterpreter find_python(const std::string& name) {
  constexpr double max_s = 30;
  const fs::path program = runtime::find_program(name);
  if (program.empty()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("there is no Python {}: install one, or name one in THRESHER_PYTHON", name));
  }
  runtime::Command command;
  command.words = {fs::absolute(program).string(), "-E", "-c", about_itself};
  const runtime::ProcessOutput output = runtime::run_process(std::move(command), {.time_s = max_s});
  const nlohmann::ordered_json said = nlohmann::ordered_json::parse(output.text, nullptr, false);
  if (!output.succeeded() || !said.is_object() || !said.value("at_least_3_10", false)) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{} does not tell that it is Python 3.10 or newer: name another in THRESHER_PYTHON", name));
  }
  PythonInterpreter found;
  found.program = said.at("program").get<std::string>();
  found.version = said.at("version").get<std::string>();
  std::string between = " with ";
  for (const auto& [package, version] : said.at("packages").items()) {
    found.version += fmt::format("{}{} {}", between, package, version.get<std::string>());
    between = ", ";
  }
  found.tools.push_back(tool_file(fs::canonical(found.program)));
  found.importable = said.at("importable").get<std::vector<std::string>>();
  for (const auto& folder : said.at("folders")) {
    found.folders.emplace_back(folder.get<std::string>());
  }
  return found;
}

}  // namespace

const PythonInterpreter& python_interpreter() {
  static OnceMap<std::string, PythonInterpreter> known;
  const char* const chosen = std::getenv("THRESHER_PYTHON");
  const std::string name = chosen != nullptr && *chosen != '\0' ? chosen : "python3";
  return known.get(name, [&] { return find_python(name); });
}

std::vector<std::string> python_environment(const PythonInterpreter& interpreter, const fs::path& folder) {
  const char* const home = std::getenv("HOME");
  const bool holds_modules = home != nullptr && fs::path(home).is_absolute() &&
                             std::any_of(interpreter.folders.begin(), interpreter.folders.end(),
                                         [&](const fs::path& modules) { return lies_below(modules, home); });
  return runtime::environment_for(runtime::Told::kernel, {{"HOME", holds_modules ? home : folder.string()}});
}

std::vector<std::string> python_command(const PythonInterpreter& interpreter, const fs::path& script,
                                        const std::vector<std::string>& arguments) {
  std::vector<std::string> words{interpreter.program.string(), "-E", "-B", script.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

}  // namespace thresher::arena::user_kernels
