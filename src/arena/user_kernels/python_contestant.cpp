// A .py file, which a Python interpreter runs that is confined from its first instruction.
#include <optional>

#include "arena/text_file.hpp"
#include "arena/user_kernels/compile/python_interpreter.hpp"
#include "arena/user_kernels/host_contestant.hpp"
#include "arena/user_kernels/line/kernel_confinement.hpp"
#include "embedded/python_server_files.hpp"
#include "runtime/process.hpp"

namespace thresher::arena::user_kernels {
namespace {

namespace fs = std::filesystem;

class PythonContestant final : public HostContestant {
 public:
  using HostContestant::HostContestant;

 private:
  [[nodiscard]] const BuildRecord& record() const override { return prepared().record; }

  [[nodiscard]] ProcessOptions process() const override {
    const PythonInterpreter& python = python_interpreter();
    std::vector<fs::path> readable = python.folders;
    readable.push_back(prepared().folder.path());
    ProcessOptions options{python_command(python, prepared().server), "the kernel's process", kernel().time_limit_s};
    runtime::Confinement& confinement = options.confinement.emplace(confinement_of_kernels(std::move(readable)));
    confinement.executable = {python.program, python.tools.front().path};
    confinement.may_exec = true;  // the interpreter itself is started in it
    return options;
  }

  [[nodiscard]] Writer load() const override {
    return Writer(Ask::load_library).put(prepared().kernel.string()).put(kernel().entry).put(kernel().framework);
  }

  /// A folder with copies of the kernel, as it was read with the pitch, and of what runs it.
  struct Prepared {
    runtime::TemporaryFolder folder;
    fs::path server = folder.path() / "server" / "python_server.py";
    fs::path kernel;
    BuildRecord record;
  };

  [[nodiscard]] const Prepared& prepared() const {
    if (!prepared_) {
      const PythonInterpreter& python = python_interpreter();
      auto made = std::make_unique<Prepared>();
      made->kernel = made->folder.path() / file();
      fs::create_directory(made->server.parent_path());
      write_text(made->server, embedded::python_server_files().front().text, "what runs a kernel in Python");
      write_text(made->kernel, kernel().text, "a copy of the kernel");
      made->record.compiler = python.version;
      made->record.tools = python.tools;
      made->record.kernel = {file(), kernel().text};
      prepared_ = std::move(made);
    }
    return *prepared_;
  }

  mutable std::unique_ptr<Prepared> prepared_;
};

}  // namespace

std::unique_ptr<Contestant> make_python_contestant(const ContestantSpec& spec, const Kernel& kernel,
                                                   const Device& device) {
  return std::make_unique<PythonContestant>(spec, kernel, device);
}

}  // namespace thresher::arena::user_kernels
