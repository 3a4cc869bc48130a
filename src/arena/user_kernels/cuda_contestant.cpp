// A .cu file, compiled with NVRTC. On a machine without a GPU it is audited and not run.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <optional>

#include "arena/audit/expectations.hpp"
#include "arena/user_kernels/base_contestant.hpp"
#include "arena/user_kernels/compile/cuda_build.hpp"
#include "arena/user_kernels/process/cuda_process_rig.hpp"
#include "runtime/driver.hpp"
#include "runtime/nvrtc.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

/// The first error line of a compiler's log.
std::string first_error(const std::string& log) {
  const std::size_t found = log.find("error");
  if (found == std::string::npos) {
    return log.substr(0, log.find('\n'));
  }
  const std::size_t before = log.rfind('\n', found);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return log.substr(begin, log.find('\n', begin) - begin);
}

std::array<std::uint32_t, 3> extent(const std::vector<std::int64_t>& values) {
  constexpr std::int64_t most = 0x7FFFFFFF;
  std::array<std::uint32_t, 3> out{1, 1, 1};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 1 || values[i] > most) {
      throw Error(ErrorCode::invalid_argument, fmt::format("its grid has {} blocks along one side", values[i]));
    }
    out[i] = static_cast<std::uint32_t>(values[i]);
  }
  return out;
}

class CudaContestant final : public BaseContestant {
 public:
  CudaContestant(ContestantSpec spec, Kernel kernel, Device device, std::vector<std::string> server)
      : BaseContestant(std::move(spec), std::move(kernel)), device_(std::move(device)), server_(std::move(server)) {}

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
      return {true,
              fmt::format("{} by {} for {}: {}", code.title, by_whom(build().record), arch(), resources_text(code)),
              evidence_of(build().record)};
    } catch (const Error& error) {
      return {false, fmt::format("{} does not compile: {}", title(), in_a_sentence(first_error(error.what()))),
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
    std::vector<std::int64_t> grid;
    for (const std::string& side : kernel().grid) {
      grid.push_back(evaluate(side, problem));
    }
    const CubinLaunch launch{extent(grid), extent(kernel().block), static_cast<std::uint32_t>(shared_bytes(problem))};
    return rig_->bind(
        launch, Calls(problem, memory, sets, static_cast<std::size_t>(evaluate(kernel().workspace_bytes, problem)),
                      Receiver::c));
  }

  [[nodiscard]] Rig& rig(Rig& own) const override {
    if (!rig_) {
      const auto& image = compiled().image;
      const OwnedDescriptor memory(make_shared_memory(image.size()));
      if (::pwrite(memory.get(), image.data(), image.size(), 0) != static_cast<ssize_t>(image.size())) {
        throw Error(ErrorCode::out_of_memory, "the kernel's machine code finds no room in memory: free some");
      }
      const Writer load = Writer(Ask::load_cubin)
                              .put(std::int32_t{device_.id().ordinal})
                              .put(compiled().kernels.front().lowered_name)
                              .put(static_cast<std::uint64_t>(image.size()));
      // No host code of the user runs there, so it need not be stopped.
      ProcessOptions options{server_, "the kernel's process", call_limit_s()};
      options.is_frozen = false;
      options.gpu = device_.id().ordinal;
      rig_ = std::make_unique<CudaProcessRig>(own, timed(options), load, memory.get());
    }
    return *rig_;
  }
  void start_anew() const override { rig_.reset(); }
  [[nodiscard]] runtime::Confined confined() const override { return rig_ ? rig_->confined() : runtime::Confined{}; }

 private:
  [[nodiscard]] std::string arch() const {
    return device_.kind() == DeviceKind::cuda ? runtime::device_properties(device_.id().ordinal).arch() : kernel().arch;
  }

  [[nodiscard]] std::string title() const { return std::filesystem::path(kernel().source).filename().string(); }

  [[nodiscard]] std::int64_t shared_bytes(const Problem& problem) const {
    constexpr std::int64_t most = std::int64_t{1} << 20;
    const std::int64_t bytes = evaluate(kernel().shared_bytes, problem);
    if (bytes < 0 || bytes > most) {
      throw Error(ErrorCode::invalid_argument, fmt::format("shared_bytes is {} for {}", bytes, label(problem)));
    }
    return bytes;
  }

  /// Compiles on first use.
  [[nodiscard]] const runtime::Cubin& compiled() const { return build().cubin; }
  [[nodiscard]] const CudaBuild& build() const {
    if (!build_) {
      build_ = build_cuda(kernel(), arch(), server_.empty() ? "" : server_.front());
    }
    return *build_;
  }

  Device device_;
  mutable std::optional<CudaBuild> build_;
  std::vector<std::string> server_;
  mutable std::unique_ptr<CudaProcessRig> rig_;
};

}  // namespace

std::unique_ptr<Contestant> make_cuda_contestant(const ContestantSpec& spec, const Kernel& kernel, const Device& device,
                                                 const std::vector<std::string>& server) {
  return std::make_unique<CudaContestant>(spec, kernel, device, server);
}

}  // namespace thresher::arena::user_kernels
