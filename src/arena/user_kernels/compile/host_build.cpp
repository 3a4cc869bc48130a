#include "arena/user_kernels/compile/host_build.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "arena/pitches/kernel_options.hpp"
#include "arena/text_file.hpp"
#include "arena/user_kernels/compile/host_toolchain.hpp"
#include "core/input_file.hpp"
#include "embedded/own_kernel_files.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

namespace fs = std::filesystem;

runtime::ResourceLimits limits() {
  runtime::ResourceLimits limits;
  limits.data_bytes = std::uint64_t{8} << 30;
  limits.more_processes = 256;
  limits.file_bytes = std::uint64_t{256} << 20;
  limits.cpu_s = 120;
  limits.open_files = 1024;
  return limits;
}

/// The dependencies in a make rule: "target: a b\ c \".
std::vector<fs::path> dependencies(const std::string& rule) {
  std::vector<fs::path> files;
  std::string word;
  const std::size_t begin = rule.find(':');
  for (std::size_t at = begin == std::string::npos ? rule.size() : begin + 1; at <= rule.size(); ++at) {
    const char c = at < rule.size() ? rule[at] : '\n';
    const char next = at + 1 < rule.size() ? rule[at + 1] : '\n';
    if (c == '\\' && next != '\n') {
      word += next;
      ++at;
    } else if (c == '$' && next == '$') {
      word += c;
      ++at;
    } else if (c != ' ' && c != '\n' && c != '\t' && c != '\\') {
      word += c;
    } else if (!word.empty()) {
      files.emplace_back(std::exchange(word, ""));
    }
  }
  return files;
}

bool is_library(const std::string& option) { return option.starts_with("-l"); }

}  // namespace

HostBuild::HostBuild(const Kernel& kernel) : kernel_(kernel), origin_(fs::path(kernel.source).parent_path()) {
  const HostToolchain& toolchain = host_toolchain();
  record_.compiler = toolchain.version;
  record_.tools = toolchain.tools;
  record_.options = kernel.options;
  record_.kernel = {fs::path(kernel.source).filename().string(), kernel.text};
  for (const char* folder : {"src", "out", "include/thresher"}) {
    fs::create_directories(folder_.path() / folder);
  }
  for (const EmbeddedFile& header : embedded::own_kernel_files()) {
    write_text(folder_.path() / "include/thresher" / fs::path(header.name).filename(), header.text, "a header");
  }
  write_text(folder_.path() / "src" / record_.kernel.path, kernel.text, "a copy of the kernel");
  find_included_files();
  compile();
}

bool HostBuild::is_own(const fs::path& file) const {
  const std::vector<fs::path>& system = host_toolchain().include_folders;
  return lies_below(file, folder_.path()) || lies_below(file, origin_) ||
         std::any_of(system.begin(), system.end(), [&](const fs::path& folder) { return lies_below(file, folder); });
}

/// The first line that begins with a file that the kernel may read; other lines are not repeated.
std::string HostBuild::first_error(const runtime::ProcessOutput& output) const {
  if (!output.stopped_because.empty()) {
    return "the compiler was ended: " + output.stopped_because;
  }
  constexpr std::string_view of_assembler = ": Error: file not found: ";
  if (const std::size_t found = output.text.find(of_assembler); found != std::string::npos) {
    const std::size_t name = found + of_assembler.size();
    return fmt::format("the assembler is to read {}, which is no file that it may read",
                       output.text.substr(name, output.text.find('\n', name) - name));
  }
  const std::string line = output.line_with("error");
  const fs::path file = line.substr(0, line.find(':'));
  std::error_code ignored;
  const fs::path place = file.is_absolute() ? file : folder_.path() / "src" / file;
  return fs::exists(place, ignored) && fs::is_regular_file(place, ignored) && !is_own(place) &&
                 !lies_below(place, host_toolchain().compiler.parent_path())
             ? fmt::format("it includes {}, which lies neither beside it nor among the compiler's headers",
                           file.string())
             : line;
}

void HostBuild::run_compiler(std::vector<std::string> arguments, const fs::path& also_readable) {
  const HostToolchain& toolchain = host_toolchain();
  const fs::path out = folder_.path() / "out";
  runtime::Command command;
  command.words = {toolchain.compiler.string()};
  command.words.insert(command.words.end(), arguments.begin(), arguments.end());
  command.folder = folder_.path() / "src";
  command.environment = compiler_environment(out);
  runtime::Confinement& confinement = command.confinement.emplace();
  confinement.writable = {out};
  confinement.readable = toolchain.include_folders;
  confinement.readable.push_back(folder_.path());
  if (!also_readable.empty()) {
    confinement.readable.push_back(also_readable);
  }
  confinement.executable = toolchain.folders;
  confinement.limits = limits();
  confinement.may_fork = true;
  confinement.may_exec = true;
  const runtime::ProcessOutput output = runtime::run_process(std::move(command), {.time_s = compiler_limit_s});
  record_.confined = output.confined;
  if (!output.succeeded()) {
    throw Error(ErrorCode::compile, first_error(output));
  }
}

/// The options with the folders of -I below `root`.
std::vector<std::string> HostBuild::options(const fs::path& root, bool are_libraries) const {
  std::vector<std::string> options;
  for (const std::string& option : kernel_.options) {
    if (is_library(option) == are_libraries) {
      const auto folder = include_folder(option);
      options.push_back(folder ? "-I" + (root / *folder).string() : option);
    }
  }
  return options;
}

void HostBuild::find_included_files() {
  const fs::path rule = folder_.path() / "out/included";
  std::vector<std::string> arguments{"-M",
                                     "-MT",
                                     "kernel",
                                     "-MF",
                                     rule.string(),
                                     "-march=native",
                                     "-I" + (folder_.path() / "include").string(),
                                     "-I" + origin_.string()};
  const std::vector<std::string> asked = options(origin_, false);
  arguments.insert(arguments.end(), asked.begin(), asked.end());
  arguments.push_back(record_.kernel.path);
  run_compiler(std::move(arguments), origin_);
  const std::vector<fs::path>& system = host_toolchain().include_folders;
  IncludedFiles included(origin_, folder_.path() / "src");
  for (const fs::path& named : dependencies(read_input_file(rule).bytes.value_or(""))) {
    const fs::path file = named.is_absolute() ? named : folder_.path() / "src" / named;
    const auto holds = [&](const fs::path& folder) { return lies_below(file, folder); };
    if (std::any_of(system.begin(), system.end(), holds)) {
      record_.system_files.push_back(file.lexically_normal());
    } else if (holds(origin_) && !holds(folder_.path())) {
      (void)included.add(file);
    } else if (!holds(folder_.path())) {
      throw Error(
          ErrorCode::compile,
          fmt::format("it includes {}, which lies neither beside it nor among the compiler's headers", named.string()));
    }
  }
  record_.files = std::move(included).sorted();
}

void HostBuild::compile() {
  std::vector<std::string> arguments{"-O3", "-march=native",   "-fPIC",        "-shared",
                                     "-o",  object().string(), "-I../include", "-I."};
  for (const bool are_libraries : {false, true}) {
    const std::vector<std::string> asked = options(".", are_libraries);
    arguments.insert(arguments.end(), asked.begin(), asked.end());
    if (!are_libraries) {
      arguments.push_back(record_.kernel.path);
    }
  }
  run_compiler(std::move(arguments), {});
}

}  // namespace thresher::arena::user_kernels
