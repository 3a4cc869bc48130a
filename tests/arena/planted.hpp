#pragma once
/// Contestants made for tests: the definition on the host with a mistake planted, on a machine with a fake clock.
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "arena/contestants/contestant.hpp"
#include "arena/fake_clock.hpp"
#include "arena/gemm/task.hpp"
#include "arena/rig/rig.hpp"
#include "formats/numbers.hpp"
#include "reference/dual_gemm_fast.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {

class FakeRig final : public Rig {
 public:
  explicit FakeRig(FakeMachine machine = {}, std::uint64_t seed = 1) : clock_(std::move(machine), seed) {}
  std::string name() const override { return "fake"; }
  Device device() const override { return Device::cpu(); }
  Memory& memory() override { return memory_; }
  Clock& clock() override { return clock_; }
  FakeClock& fake_clock() { return clock_; }
  Stream stream() override { return {}; }
  void wait() override {}
  std::size_t last_level_cache_bytes() const override { return 1 << 13; }
  const Ceilings& ceilings() override { return ceilings_; }
  Machine machine() const override {
    Machine fake{"cpu", {}};
    fake.host.cpu = "a fake machine";
    return fake;
  }

 private:
  HostMemory memory_;
  FakeClock clock_;
  Ceilings ceilings_{1e12, 8e11, 1e11, "made up"};
};

/// One call of a host kernel.
struct KernelCall {
  DualGemmProblem problem;
  Tensor a, b1, b2, c;
  int number = 0;  ///< calls of this runner before this one

  void write(std::int64_t row, std::int64_t column, float value) const {
    std::byte* place = static_cast<std::byte*>(c.data) + (row * c.strides[0] + column) * bits(c.format) / 8;
    const std::uint16_t half = c.format == Format::fp16 ? formats::float_to_fp16(value) : formats::float_to_bf16(value);
    if (c.format == Format::fp32) {
      std::memcpy(place, &value, sizeof(value));
    } else {
      std::memcpy(place, &half, sizeof(half));
    }
  }

  void write_all(const std::vector<double>& values) const {
    for (std::int64_t row = 0; row < problem.m; ++row) {
      for (std::int64_t column = 0; column < problem.n; ++column) {
        write(row, column, static_cast<float>(values[static_cast<std::size_t>(row * problem.n + column)]));
      }
    }
  }

  std::vector<double> definition() const {
    return reference::plain_low_precision(problem, a, b1, b2, reference::whole(problem),
                                          reference::Accumulation::float32)
        .value;
  }
};

using Kernel = std::function<void(const KernelCall&)>;

inline void honest_kernel(const KernelCall& call) { call.write_all(call.definition()); }

class PlantedRunner final : public Runner {
 public:
  PlantedRunner(const Problem& problem, const std::vector<DeviceSet>& sets, Kernel kernel, FakeClock* clock, double us)
      : problem_(problem), sets_(sets), kernel_(std::move(kernel)), clock_(clock), us_(us) {}
  void run(Stream, std::size_t set) override {
    const DeviceSet& data = sets_[set];
    kernel_({dual_gemm(problem_), data.tensor("a"), data.tensor("b1"), data.tensor("b2"), data.tensor("c"), calls_});
    ++calls_;
    if (clock_ != nullptr) {
      clock_->spend(us_);
    }
  }

 private:
  Problem problem_;
  const std::vector<DeviceSet>& sets_;
  Kernel kernel_;
  FakeClock* clock_;
  double us_;
  int calls_ = 0;
};

/// One whose strategy's name begins with "nvfp4" is made for NVFP4 activations alone.
class PlantedContestant : public Contestant {
 public:
  PlantedContestant(const std::string& strategy, Kernel kernel, FakeClock* clock = nullptr, double us = 0)
      : Contestant({"dual_gemm", strategy}), kernel_(std::move(kernel)), clock_(clock), us_(us) {}
  std::string unsupported_reason(const Problem& problem) const override {
    const bool refuses = spec().strategy.starts_with("nvfp4") && dual_gemm(problem).a != Format::nvfp4;
    return refuses ? "it takes nvfp4 alone" : "";
  }
  Answer feasible(const Problem&, Memory&) const override { return {true, "a fake needs nothing"}; }
  Answer compile(const Problem&) const override { return {true, "compiled with the tests"}; }
  std::unique_ptr<Runner> prepare(const Problem& problem, Memory&, const std::vector<DeviceSet>& sets) const override {
    if (std::string obstacle = unsupported_reason(problem); !obstacle.empty()) {
      throw Error(ErrorCode::unsupported, std::move(obstacle));
    }
    return std::make_unique<PlantedRunner>(problem, sets, kernel_, clock_, us_);
  }

 private:
  Kernel kernel_;
  FakeClock* clock_;
  double us_;
};

}  // namespace thresher::arena
