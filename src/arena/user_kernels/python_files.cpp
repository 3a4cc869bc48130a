#include "arena/user_kernels/python_files.hpp"

#include "arena/operations.hpp"
#include "arena/pitches/call_structure.hpp"
#include "arena/text_file.hpp"
#include "arena/user_kernels/compile/host_toolchain.hpp"
#include "arena/user_kernels/compile/python_interpreter.hpp"
#include "arena/user_kernels/line/kernel_confinement.hpp"
#include "embedded/python_server_files.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

namespace fs = std::filesystem;

/// The maximum size of a file that a compiler writes, and the number of open files of a framework, a driver and a
/// compiler.
constexpr std::uint64_t compiled_file_bytes = std::uint64_t{256} << 20;
constexpr std::uint64_t open_files_for_gpu = 4096;
/// The limit for a framework's first import from a slow disk.
constexpr double max_importing_s = 120;

/// Triton compiles C to launch its kernels. Null without a compiler: a kernel that needs one reports that.
const HostToolchain* c_compiler() {
  try {
    return &host_toolchain();
  } catch (const Error&) {
    return nullptr;
  }
}

bool is_emptied(const fs::path& folder) {
  std::error_code failed;
  std::vector<fs::path> left;
  for (fs::directory_iterator entry(folder, failed); !failed && entry != fs::directory_iterator();
       entry.increment(failed)) {
    left.push_back(entry->path());
  }
  for (const fs::path& path : left) {
    fs::remove_all(path, failed);
  }
  return fs::is_empty(folder, failed) && !failed;
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

runtime::Confinement PythonFiles::confinement() const {
  const PythonInterpreter& python = python_interpreter();
  std::vector<fs::path> readable = python.folders;
  readable.push_back(folder_.path());
  runtime::Confinement confinement = confinement_of_kernels(std::move(readable));
  confinement.executable = {python.program, python.tools.front().path};  // to start the template
  return confinement;
}

ProcessOptions PythonFiles::copy_of(const std::vector<std::string>& modules,
                                    const std::function<runtime::Confinement()>& confinement) const {
  ProcessOptions options{{}, "the kernel's process"};
  options.call_limit_s = kernel_.time_limit_s.value_or(options.call_limit_s);
  if (!original_) {
    runtime::Command command;
    command.words = python_command(python_interpreter(), server_, modules);
    command.environment = python_environment(python_interpreter(), folder_.path());
    command.folder = folder_.path();
    original_ = std::make_shared<runtime::ProcessTemplate>(std::move(command), confinement(), max_importing_s);
  }
  options.original = original_;
  return options;
}

ProcessOptions PythonFiles::process() const {
  const std::vector<std::string> modules =
      kernel_.framework == "torch" ? std::vector<std::string>{"torch"} : std::vector<std::string>{"numpy", "ml_dtypes"};
  return copy_of(modules, [&] { return confinement(); });
}

Writer PythonFiles::load() const {
  return Writer(Ask::load_library)
      .put(copy_.string())
      .put(kernel_.entry)
      .put(kernel_.framework)
      .put(python_arguments(find_operation(kernel_.operation)));
}

runtime::Confinement PythonFiles::confinement_for_gpu() const {
  runtime::Confinement confinement = this->confinement();
  confinement.devices = runtime::gpu_device_files();
  confinement.writable = {compiled_};
  const std::vector<fs::path>& folders = python_interpreter().folders;  // Triton brings its own assembler
  confinement.executable.insert(confinement.executable.end(), folders.begin(), folders.end());
  if (const HostToolchain* const compiler = c_compiler()) {
    confinement.executable.insert(confinement.executable.end(), compiler->folders.begin(), compiler->folders.end());
    confinement.executable.push_back(compiler->compiler.parent_path());  // the C compiler's, beside the C++ compiler's
  }
  confinement.may_fork = true;
  confinement.may_exec = true;
  confinement.limits.file_bytes = compiled_file_bytes;
  confinement.limits.open_files = open_files_for_gpu;
  return confinement;
}

ProcessOptions PythonFiles::process_for_gpu() const {
  if (!is_emptied(compiled_)) {
    throw Error(ErrorCode::device, "the kernel's process left files that cannot be removed");
  }
  return copy_of({"torch", "triton"}, [&] { return confinement_for_gpu(); });
}

Writer PythonFiles::load_for_gpu(int ordinal) const {
  const HostToolchain* const compiler = c_compiler();
  return load()
      .put(std::to_string(ordinal))
      .put(compiled_.string())
      .put(compiler == nullptr ? "" : compiler->compiler.parent_path().string());
}

}  // namespace thresher::arena::user_kernels
