#include "runtime/host_compiler.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <utility>

#include "core/fingerprint.hpp"
#include "core/input_file.hpp"
#include "runtime/cache_folder.hpp"
#include "runtime/process.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::array options{"-std=c++20", "-O2", "-fPIC", "-shared", "-w"};
constexpr std::uint64_t max_library_bytes = std::uint64_t{256} << 20;

void write(const fs::path& file, std::string_view text) {
  std::error_code reason;
  fs::create_directories(file.parent_path(), reason);
  if (!reason) {
    errno = 0;
    std::ofstream stream(file, std::ios::binary);
    stream << text;
    stream.close();
    reason = stream.fail() ? std::error_code(errno == 0 ? EIO : errno, std::generic_category()) : std::error_code();
  }
  if (reason) {
    throw Error(ErrorCode::io, file.string() + " cannot be written: " + reason.message());
  }
}

/// The first line of --version; empty when the compiler cannot be run.
std::string version_of(const fs::path& compiler) {
  try {
    const ProcessOutput output = run_process(compiler, {"--version"});
    return output.succeeded() ? output.text.substr(0, output.text.find('\n')) : "";
  } catch (const Error&) {
    return "";
  }
}

std::string key_of(const HostProgram& program, const HostCompiler& compiler) {
  Fingerprint print;
  print.add("thresher host program 1").add(compiler.path.string()).add(compiler.version);
  for (const char* option : options) {
    print.add(option);
  }
  print.add(program.text).add(program.symbol);
  for (const EmbeddedFile& header : program.headers) {
    print.add(header.name).add(header.text);
  }
  return print.hex();
}

void* function_of(const fs::path& library, const HostProgram& program) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const function = handle == nullptr ? nullptr : dlsym(handle, program.symbol.c_str());
  if (function == nullptr) {
    const char* const why = dlerror();
    throw Error(ErrorCode::unsupported, program.title + " was compiled for this CPU and cannot be loaded: " +
                                            (why == nullptr ? "no " + program.symbol : std::string(why)));
  }
  return function;
}

/// The shared object, in `folder`.
fs::path compile(const HostProgram& program, const HostCompiler& compiler, const fs::path& folder) {
  const fs::path sources = folder / "src";
  for (const EmbeddedFile& header : program.headers) {
    write(sources / header.name, header.text);
  }
  write(sources / "program.cpp", program.text);
  const fs::path library = folder / "program.so";
  std::vector<std::string> arguments(options.begin(), options.end());
  // Source lines in findings have the repository's file names.
  arguments.insert(arguments.end(), {"-fmacro-prefix-map=" + folder.string() + "=.", "-I" + sources.string(), "-o",
                                     library.string(), (sources / "program.cpp").string()});
  const ProcessOutput output = run_process(compiler.path, arguments);
  if (!output.succeeded()) {
    throw Error(ErrorCode::compile, program.title + " does not compile for this CPU with " + compiler.path.string() +
                                        ": " + output.line_with("error"));
  }
  return library;
}

/// Keeps the library under `entry`. False, with a warning, when it cannot be kept.
bool keep(const fs::path& library, const fs::path& entry) {
  const InputFile built = read_input_file(library, max_library_bytes);
  if (!built.bytes) {
    return false;  // the compiler made no file: the load reports it
  }
  const std::string problem = keep_file(entry.parent_path(), entry.filename().string(), host_cache_entry(*built.bytes));
  warn_not_kept(problem);
  return problem.empty();
}

/// The function of a complete entry; null when there is none. Loading a damaged entry could end the process, so it is
/// removed.
void* find_kept(const fs::path& entry, const HostProgram& program) {
  const InputFile kept = read_input_file(entry, max_library_bytes);
  if (!kept.bytes) {
    return nullptr;
  }
  if (is_whole_host_cache_entry(*kept.bytes)) {
    try {
      return function_of(entry, program);
    } catch (const Error&) {  // from another version of the system: compile again
    }
  }
  std::error_code ignored;
  fs::remove(entry, ignored);
  return nullptr;
}

}  // namespace

std::string host_cache_entry(std::string_view library) {
  return std::string(library) + Fingerprint().add(library).hex();
}

bool is_whole_host_cache_entry(std::string_view entry) {
  const std::size_t digits = Fingerprint().hex().size();
  const std::size_t library_bytes = entry.size() - std::min(entry.size(), digits);
  return entry.substr(library_bytes) == Fingerprint().add(entry.substr(0, library_bytes)).hex();
}

HostCompiler find_host_compiler() {
  std::vector<std::string> names{"c++", "g++", "clang++"};
  if (const char* chosen = std::getenv("CXX"); chosen != nullptr && *chosen != '\0') {
    names = {chosen};
  }
  HostCompiler compiler;
  for (const std::string& name : names) {
    compiler.path = find_program(name);
    if (!compiler.path.empty()) {
      break;
    }
  }
  if (compiler.path.empty()) {
    compiler.problem = names.size() == 1 ? "there is no C++ compiler " + names.front() + ", which CXX names"
                                         : "there is no C++ compiler (c++, g++ or clang++) on PATH: install one, or "
                                           "name one in CXX";
    return compiler;
  }
  compiler.version = version_of(compiler.path);
  if (compiler.version.empty()) {
    compiler.problem = "the C++ compiler " + compiler.path.string() + " does not tell its version";
  }
  return compiler;
}

void* load_host_program(const HostProgram& program, const fs::path& cache) {
  const HostCompiler compiler = find_host_compiler();
  if (!compiler.problem.empty()) {
    throw Error(ErrorCode::unsupported, program.title + " is not compiled in, and " + compiler.problem);
  }
  const fs::path entry = cache / (key_of(program, compiler) + ".so");
  if (!cache.empty()) {
    if (void* const function = find_kept(entry, program)) {
      return function;
    }
  }
  const TemporaryFolder folder;
  const fs::path library = compile(program, compiler, folder.path());
  return function_of(!cache.empty() && keep(library, entry) ? entry : library, program);
}

}  // namespace thresher::runtime
