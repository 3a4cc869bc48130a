// A .cpp file, compiled with the host's compiler into a shared object.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "arena/dual_gemm/task.hpp"
#include "arena/text_file.hpp"
#include "arena/user_kernels/base_contestant.hpp"
#include "embedded/own_kernel_files.hpp"
#include "runtime/process.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

namespace fs = std::filesystem;

using Function = void (*)(const thresher_own_dual_gemm*);

class HostRunner final : public Runner {
 public:
  HostRunner(Function function, Calls calls, std::function<void()> alive)
      : function_(function), calls_(std::move(calls)), alive_(std::move(alive)) {}
  void run(Stream, std::size_t set) override {
    alive_();
    function_(&calls_[set]);
  }
  [[nodiscard]] std::vector<std::string> guard_damage() const override { return calls_.guard_damage(); }

 private:
  Function function_;
  Calls calls_;
  std::function<void()> alive_;
};

/// Compiled and loaded; the library stays loaded, since nobody knows what it started.
class Library {
 public:
  /// Throws Error(compile) with the compiler's first error.
  Library(const Kernel& kernel, const std::string& compiler) {
    const fs::path source = folder_.path() / fs::path(kernel.source).filename();
    fs::create_directory(folder_.path() / "thresher");
    for (const EmbeddedFile& header : embedded::own_kernel_files()) {
      write_text(folder_.path() / "thresher/own_kernel.h", header.text, "a header");
    }
    write_text(source, kernel.text, "a copy of the kernel");
    const fs::path object = folder_.path() / "own.so";
    std::vector<std::string> arguments{"-O3",
                                       "-march=native",
                                       "-fPIC",
                                       "-shared",
                                       "-o",
                                       object.string(),
                                       "-I" + folder_.path().string(),
                                       "-I" + fs::path(kernel.source).parent_path().string()};
    arguments.insert(arguments.end(), kernel.options.begin(), kernel.options.end());
    arguments.push_back(source.string());
    const runtime::ProcessOutput output = runtime::run_process(compiler, arguments);
    if (!output.succeeded()) {
      throw Error(ErrorCode::compile, output.line_with("error"));
    }
    void* const library = ::dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      throw Error(ErrorCode::compile, ::dlerror());
    }
    void* const symbol = ::dlsym(library, kernel.entry.c_str());
    if (symbol == nullptr) {
      throw Error(ErrorCode::compile, fmt::format("it has no extern \"C\" function {}", kernel.entry));
    }
    function_ = reinterpret_cast<Function>(symbol);
  }
  [[nodiscard]] Function function() const { return function_; }

 private:
  runtime::TemporaryFolder folder_;
  Function function_ = nullptr;
};

class HostContestant final : public BaseContestant {
 public:
  HostContestant(ContestantSpec spec, Kernel kernel, Device device, std::function<void()> alive)
      : BaseContestant(std::move(spec), std::move(kernel), std::move(alive)), device_(std::move(device)) {}

  [[nodiscard]] Answer feasible(const Problem& problem, Memory& memory) const override {
    if (device_.kind() != DeviceKind::cpu) {
      return {false, fmt::format("{} runs on the CPU, this tournament is held on {}: use --device cpu", file(),
                                 device_.name())};
    }
    return BaseContestant::feasible(problem, memory);
  }

  [[nodiscard]] Answer compile(const Problem&) const override {
    try {
      (void)library();
      return {true, fmt::format("{} by {}", file(), compiler())};
    } catch (const Error& error) {
      return {false, fmt::format("{} does not compile: {}", file(), error.what())};
    }
  }

  [[nodiscard]] MachineCode machine_code(const Problem&) const override {
    return {{}, "the audit reads GPU machine code, and this kernel is for the CPU"};
  }

  [[nodiscard]] std::unique_ptr<Runner> prepare(const Problem& problem, Memory& memory,
                                                const std::vector<DeviceSet>& sets) const override {
    const std::int64_t workspace_bytes = evaluate(kernel().workspace_bytes, shape_of(dual_gemm(problem)));
    return std::make_unique<HostRunner>(
        library().function(), Calls(problem, memory, sets, static_cast<std::size_t>(workspace_bytes)), alive());
  }

 private:
  [[nodiscard]] std::string file() const { return fs::path(kernel().source).filename().string(); }

  static std::string compiler() {
    const char* const chosen = std::getenv("CXX");
    return chosen != nullptr && *chosen != '\0' ? chosen : "c++";
  }

  /// Compiled when it is first asked for.
  [[nodiscard]] const Library& library() const {
    if (!library_) {
      library_.emplace(kernel(), compiler());
    }
    return *library_;
  }

  Device device_;
  mutable std::optional<Library> library_;
};

}  // namespace

std::unique_ptr<Contestant> make_host_contestant(const ContestantSpec& spec, const Kernel& kernel, const Device& device,
                                                 std::function<void()> alive) {
  return std::make_unique<HostContestant>(spec, kernel, device, std::move(alive));
}

}  // namespace thresher::arena::user_kernels
