// A .cu file, compiled with NVRTC: on a machine without a GPU too, where it is audited and not run.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "arena/audit/expectations.hpp"
#include "arena/dual_gemm/task.hpp"
#include "arena/user_kernels/base_contestant.hpp"
#include "arena/user_kernels/toolkit.hpp"
#include "embedded/own_kernel_files.hpp"
#include "runtime/driver.hpp"
#include "runtime/kernel.hpp"
#include "runtime/nvrtc.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

/// The first line of a compiler's log that tells of an error.
std::string first_error(const std::string& log) {
  const std::size_t found = log.find("error");
  if (found == std::string::npos) {
    return log.substr(0, log.find('\n'));
  }
  const std::size_t before = log.rfind('\n', found);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return log.substr(begin, log.find('\n', begin) - begin);
}

runtime::Extent3 extent(const std::vector<std::int64_t>& values) {
  constexpr std::int64_t most = 0x7FFFFFFF;
  runtime::Extent3 out;
  unsigned* const sides[] = {&out.x, &out.y, &out.z};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 1 || values[i] > most) {
      throw Error(ErrorCode::invalid_argument, fmt::format("its grid has {} blocks along one side", values[i]));
    }
    *sides[i] = static_cast<unsigned>(values[i]);
  }
  return out;
}

class CudaRunner final : public Runner {
 public:
  CudaRunner(runtime::Kernel kernel, const runtime::LaunchConfig& launch, Calls calls, std::function<void()> alive)
      : kernel_(std::move(kernel)), launch_(launch), calls_(std::move(calls)), alive_(std::move(alive)) {}

  void run(Stream stream, std::size_t set) override {
    alive_();
    runtime::LaunchConfig launch = launch_;
    launch.stream = stream;
    kernel_.launch_with(launch, calls_[set]);
  }
  [[nodiscard]] std::vector<std::string> guard_damage() const override { return calls_.guard_damage(); }

 private:
  runtime::Kernel kernel_;
  runtime::LaunchConfig launch_;
  Calls calls_;
  std::function<void()> alive_;
};

class CudaContestant final : public BaseContestant {
 public:
  CudaContestant(ContestantSpec spec, Kernel kernel, Device device, std::function<void()> alive)
      : BaseContestant(std::move(spec), std::move(kernel), std::move(alive)), device_(std::move(device)) {}

  [[nodiscard]] std::string cannot_run() const override {
    return device_.kind() == DeviceKind::cuda ? "" : "no GPU: the kernel was compiled for " + arch() + " and not run";
  }

  [[nodiscard]] Answer compile(const Problem& problem) const override {
    if (const std::string& missing = runtime::nvrtc_status().problem; !missing.empty()) {
      Answer answer;
      answer.not_judged = missing;
      return answer;
    }
    try {
      const KernelCode code = machine_code(problem).kernels.front();
      return {true, fmt::format("{} by {} for {}: {}", code.title, code.toolchain, arch(), resources_text(code))};
    } catch (const Error& error) {
      return {false, fmt::format("{} does not compile: {}", title(), first_error(error.what())),
              CompilerLog{error.what()}};
    }
  }

  [[nodiscard]] MachineCode machine_code(const Problem& problem) const override {
    if (const std::string& missing = runtime::nvrtc_status().problem; !missing.empty()) {
      return {{}, missing};
    }
    KernelCode code;
    code.title = title();
    code.kernel = compiled().kernels.front().lowered_name;
    code.image = compiled().image;
    code.toolchain = compiled().toolchain;
    code.resources = compiled().kernels.front().resources;
    code.dynamic_shared_bytes = static_cast<int>(shared_bytes(problem));
    code.expected = expected_of_any_kernel();
    code.expected.uses_shared_memory = code.dynamic_shared_bytes + code.resources.static_shared_bytes > 0;
    return {{code}, ""};
  }

  [[nodiscard]] std::unique_ptr<Runner> prepare(const Problem& problem, Memory& memory,
                                                const std::vector<DeviceSet>& sets) const override {
    const Shape shape = shape_of(dual_gemm(problem));
    if (!module_) {
      module_.emplace(device_.id().ordinal, compiled().image);
    }
    const runtime::Kernel loaded = module_->kernel(compiled().kernels.front().lowered_name);
    runtime::LaunchConfig launch;
    std::vector<std::int64_t> grid;
    for (const std::string& side : kernel().grid) {
      grid.push_back(evaluate(side, shape));
    }
    launch.grid = extent(grid);
    launch.block = extent(kernel().block);
    launch.dynamic_shared_bytes = static_cast<unsigned>(shared_bytes(problem));
    if (launch.dynamic_shared_bytes > 0) {
      loaded.allow_dynamic_shared(launch.dynamic_shared_bytes);
    }
    Calls calls(problem, memory, sets, static_cast<std::size_t>(evaluate(kernel().workspace_bytes, shape)));
    return std::make_unique<CudaRunner>(loaded, launch, std::move(calls), alive());
  }

 private:
  [[nodiscard]] std::string arch() const {
    return device_.kind() == DeviceKind::cuda ? runtime::device_properties(device_.id().ordinal).arch() : kernel().arch;
  }

  [[nodiscard]] std::string title() const { return std::filesystem::path(kernel().source).filename().string(); }

  [[nodiscard]] std::int64_t shared_bytes(const Problem& problem) const {
    constexpr std::int64_t most = std::int64_t{1} << 20;
    const std::int64_t bytes = evaluate(kernel().shared_bytes, shape_of(dual_gemm(problem)));
    if (bytes < 0 || bytes > most) {
      throw Error(ErrorCode::invalid_argument, fmt::format("shared_bytes is {} for {}", bytes, label(problem)));
    }
    return bytes;
  }

  /// Compiled when it is first asked for.
  [[nodiscard]] const runtime::Cubin& compiled() const {
    if (!cubin_) {
      runtime::Program program;
      program.title = std::filesystem::path(kernel().source).stem().string();  // the compiler appends .cu
      program.text = kernel().text;
      const std::span<const EmbeddedFile> headers = embedded::own_kernel_files();
      for (const EmbeddedFile& header : headers) {
        program.headers.push_back({"thresher/own_kernel.h", header.text});
      }
      program.kernels = {kernel().entry};
      program.options = kernel().options;
      if (const std::filesystem::path toolkit = toolkit_headers(); !toolkit.empty()) {
        program.options.push_back("--include-path=" + toolkit.string());
      }
      program.arch = arch();
      cubin_ = runtime::compile(program);
    }
    return *cubin_;
  }

  Device device_;
  mutable std::optional<runtime::Cubin> cubin_;
  mutable std::optional<runtime::Module> module_;
};

}  // namespace

std::unique_ptr<Contestant> make_cuda_contestant(const ContestantSpec& spec, const Kernel& kernel, const Device& device,
                                                 std::function<void()> alive) {
  return std::make_unique<CudaContestant>(spec, kernel, device, std::move(alive));
}

}  // namespace thresher::arena::user_kernels
