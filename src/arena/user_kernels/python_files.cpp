#include "arena/user_kernels/python_files.hpp"

#include "arena/text_file.hpp"
#include "arena/user_kernels/compile/host_toolchain.hpp"
#include "arena/user_kernels/compile/python_interpreter.hpp"
#include "arena/user_kernels/line/kernel_confinement.hpp"
#include "embedded/python_server_files.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

namespace fs = std::filesystem;

/// Of a file that a compiler writes, and what it holds open with a framework, a driver and a compiler.
constexpr std::uint64_t compiled_file_bytes = std::uint64_t{256} << 20;
constexpr std::uint64_t open_files_for_gpu = 4096;

/// Triton has C compiled to launch its kernels. Null where there is no compiler: a kernel that needs one says so.
const HostToolchain* c_compiler() {
  try {
    return &host_toolchain();
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

PythonFiles::PythonFiles(const Kernel& kernel)
    : kernel_(kernel),
      server_(folder_.path() / "server" / "python_server.py"),
      copy_(folder_.path() / fs::path(kernel.source).filename()),
      compiled_(folder_.path() / "compiled") {
  const PythonInterpreter& python = python_interpreter();
  fs::create_directory(server_.parent_path());
  fs::create_directory(compiled_);
  for (const EmbeddedFile& file : embedded::python_server_files()) {
    write_text(server_.parent_path() / fs::path(file.name).filename(), file.text, "what runs a kernel in Python");
  }
  write_text(copy_, kernel.text, "a copy of the kernel");
  record_.compiler = python.version;
  record_.tools = python.tools;
  record_.kernel = {copy_.filename().string(), kernel.text};
}

ProcessOptions PythonFiles::process() const {
  const PythonInterpreter& python = python_interpreter();
  std::vector<fs::path> readable = python.folders;
  readable.push_back(folder_.path());
  ProcessOptions options{python_command(python, server_), "the kernel's process", kernel_.time_limit_s};
  runtime::Confinement& confinement = options.confinement.emplace(confinement_of_kernels(std::move(readable)));
  confinement.executable = {python.program, python.tools.front().path};
  confinement.may_exec = true;  // the interpreter itself is started in it
  return options;
}

Writer PythonFiles::load() const {
  return Writer(Ask::load_library).put(copy_.string()).put(kernel_.entry).put(kernel_.framework);
}

ProcessOptions PythonFiles::process_for_gpu(int ordinal) const {
  ProcessOptions options = process();
  options.gpu = ordinal;
  runtime::Confinement& confinement = *options.confinement;
  confinement.devices = runtime::gpu_device_files();
  confinement.writable = {compiled_};
  const std::vector<fs::path>& folders = python_interpreter().folders;  // Triton brings its own assembler
  confinement.executable.insert(confinement.executable.end(), folders.begin(), folders.end());
  if (const HostToolchain* const compiler = c_compiler()) {
    confinement.executable.insert(confinement.executable.end(), compiler->folders.begin(), compiler->folders.end());
    confinement.executable.push_back(compiler->compiler.parent_path());  // of C's, beside C++'s
  }
  confinement.may_fork = true;
  confinement.limits.file_bytes = compiled_file_bytes;
  confinement.limits.open_files = open_files_for_gpu;
  return options;
}

Writer PythonFiles::load_for_gpu(int ordinal) const {
  const HostToolchain* const compiler = c_compiler();
  return load()
      .put(std::to_string(ordinal))
      .put(compiled_.string())
      .put(compiler == nullptr ? "" : compiler->compiler.parent_path().string());
}

}  // namespace thresher::arena::user_kernels
