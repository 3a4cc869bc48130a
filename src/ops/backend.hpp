#pragma once
/// What a device offers for a planned dual GEMM. `DualGemm` validates; a backend launches.
#include "ops/packed_content.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher {

class DualGemm::Backend {
 public:
  Backend(DualGemmProblem problem, DeviceId device, std::string strategy)
      : problem_(problem), device_(device), strategy_(std::move(strategy)) {}
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// Enqueues everything. `a` and `c` are validated, on `device()`, and m > 0.
  virtual void run(Stream stream, const Tensor& a, const Tensor& c, void* workspace) const {
    prepare(stream, a, workspace);
    run_prepared(stream, a, c, workspace);
  }
  /// Enqueues what the strategy makes of A before the product. `a` is validated, on `device()`, and m > 0.
  virtual void prepare(Stream /*stream*/, const Tensor& /*a*/, void* /*workspace*/) const {}
  /// Enqueues the product. `a` and `c` are validated, on `device()`, m > 0, and `prepare` has been enqueued.
  virtual void run_prepared(Stream stream, const Tensor& a, const Tensor& c, void* workspace) const = 0;
  /// Bytes that both need at `workspace`; 0 means that null is accepted.
  [[nodiscard]] virtual std::size_t workspace_bytes() const = 0;
  /// Alignment in bytes that the data pointers of `a` and `c` need; `workspace` needs 256.
  [[nodiscard]] virtual std::size_t data_alignment() const = 0;

  [[nodiscard]] const DualGemmProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] DeviceId device() const noexcept { return device_; }
  [[nodiscard]] const std::string& strategy() const noexcept { return strategy_; }

 private:
  DualGemmProblem problem_;
  DeviceId device_;
  std::string strategy_;
};

/// Weights as `pack` left them for one device.
class PackedWeights::Storage {
 public:
  Storage(Device device, const Tensor& b1_gate, const Tensor& b2_up, Numerics numerics)
      : device_(std::move(device)), b1_gate_(b1_gate), b2_up_(b2_up), numerics_(numerics) {}
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  virtual ~Storage() = default;

  [[nodiscard]] const Device& device() const noexcept { return device_; }
  /// The weights that were packed: shapes and formats always; the data as well where packing is the identity.
  [[nodiscard]] const Tensor& b1_gate() const noexcept { return b1_gate_; }
  [[nodiscard]] const Tensor& b2_up() const noexcept { return b2_up_; }
  [[nodiscard]] Numerics numerics() const noexcept { return numerics_; }
  /// What files and blocks keep, in the host's memory. Here, where packing is the identity, the matrices, seen where
  /// they lie.
  [[nodiscard]] virtual ops::PackedContent content() const;
  /// The same, seen in the device's memory where it is kept there as a block has it; else as `content` gives it.
  [[nodiscard]] virtual ops::PackedContent held() const { return content(); }

 protected:
  /// A content with the shapes, format and numerics, without bytes.
  [[nodiscard]] ops::PackedContent outline(std::string layout) const;

 private:
  Device device_;
  Tensor b1_gate_;
  Tensor b2_up_;
  Numerics numerics_;
};

}  // namespace thresher
