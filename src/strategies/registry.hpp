#pragma once
/// The strategies of one operation, of both kinds of device.
#include <string>
#include <string_view>
#include <vector>

#include "strategies/strategy.hpp"
#include "thresher/error.hpp"

namespace thresher::strategies {

/// An operation has one, which its registry.cpp fills.
template <class Problem>
class Registry {
 public:
  using List = std::vector<const Strategy<Problem>*>;

  /// `operation` names it in messages. The first of a list is the first in documentation, which `plan` need not choose.
  Registry(std::string_view operation, List gpu, List cpu)
      : operation_(operation), gpu_(std::move(gpu)), cpu_(std::move(cpu)) {}

  [[nodiscard]] Strategies<Problem> of(DeviceKind kind) const { return kind == DeviceKind::cpu ? cpu_ : gpu_; }

  /// Appends one for the life of the process; `strategy` must live as long. Must not run while another thread reads the
  /// registry. Throws Error(invalid_argument) for a duplicate name within its kind of device.
  void add(const Strategy<Problem>& strategy) {
    List& list = strategy.device_kind() == DeviceKind::cpu ? cpu_ : gpu_;
    if (find_strategy<Problem>(list, strategy.name()) != nullptr) {
      throw Error(ErrorCode::invalid_argument, "there is already a strategy " + std::string(strategy.name()) + " of " +
                                                   operation_ + ": choose another name");
    }
    list.push_back(&strategy);
  }

 private:
  std::string operation_;
  List gpu_;
  List cpu_;
};

}  // namespace thresher::strategies
