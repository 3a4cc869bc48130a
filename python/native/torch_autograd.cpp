#include "torch_autograd.hpp"

#include <atomic>
#include <memory>

#include "torch_abi.h"
#include "torch_tensors.hpp"

namespace thresher::torch_binding {
namespace {

std::atomic<std::uint64_t> autograd_keys{0};

/// Mirrors c10::impl::ExcludeDispatchKeyGuard for a DispatchKeySet, which is a number.
struct Guard {
  using Construct = void (*)(void* guard, std::uint64_t keys);
  using Destroy = void (*)(void* guard);
  Construct construct = loaded<Construct>("libc10.so", "_ZN3c104impl23ExcludeDispatchKeyGuardC1ENS_14DispatchKeySetE");
  Destroy destroy = loaded<Destroy>("libc10.so", "_ZN3c104impl23ExcludeDispatchKeyGuardD1Ev");

  [[nodiscard]] bool is_there() const { return construct != nullptr && destroy != nullptr; }
};

const Guard& guard() {
  static const Guard one;
  return one;
}

/// Mirrors torch::autograd::ForwardADLevel.
struct ForwardLevels {
  using HasAny = bool (*)();
  using Get = std::shared_ptr<void> (*)(std::uint64_t index);
  HasAny has_any = loaded<HasAny>("libtorch_cpu.so", "_ZN5torch8autograd14ForwardADLevel13has_any_levelEv");
  Get get = loaded<Get>("libtorch_cpu.so", "_ZN5torch8autograd14ForwardADLevel14try_get_by_idxEm");

  /// True where it is unknown.
  [[nodiscard]] bool is_one_open() const {
    if (has_any != nullptr) {
      return has_any();
    }
    return get == nullptr || get(0) != nullptr;
  }
};

/// The write counter of an at::Tensor, to which a handle points.
struct Writes {
  using IsInference = bool (*)(AtenTensorHandle tensor);
  using Count = void (*)(AtenTensorHandle tensor);
  IsInference is_inference = loaded<IsInference>("libtorch_cpu.so", "_ZN2at6native12is_inferenceERKNS_6TensorE");
  Count count = loaded<Count>("libtorch_cpu.so", "_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE");
};

const Writes& writes() {
  static const Writes one;
  return one;
}

/// True where it is unknown.
bool has_dispatch_mode() {
  using IsEnabled = bool (*)();
  static const auto is_enabled = loaded<IsEnabled>("libc10.so", "_ZN3c104impl21dispatch_mode_enabledEv");
  return is_enabled == nullptr || is_enabled();
}

}  // namespace

void set_autograd_keys(std::uint64_t keys) { autograd_keys = keys; }

bool may_go_below_autograd() {
  static const ForwardLevels levels;
  return !aoti_torch_grad_mode_is_enabled() && autograd_keys != 0 && guard().is_there() && !has_dispatch_mode() &&
         !levels.is_one_open();
}

bool counts_writes() { return writes().is_inference != nullptr && writes().count != nullptr; }

void count_write(TensorView written) {
  if (!writes().is_inference(written.handle())) {
    writes().count(written.handle());
  }
}

BelowAutograd::BelowAutograd() { guard().construct(guard_, autograd_keys); }

BelowAutograd::~BelowAutograd() { guard().destroy(guard_); }

}  // namespace thresher::torch_binding
