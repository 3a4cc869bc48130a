// torch.ops.thresher from C++, by PyTorch's stable ABI: one library for every torch from 2.10 on.
#include "torch_operators.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "torch_arguments.hpp"
#include "torch_autograd.hpp"
#include "torch_calls.hpp"
#include "torch_gpu.hpp"
#include "torch_run.hpp"
#include "torch_tensors.hpp"

namespace {

using namespace thresher::torch_binding;

constexpr std::array operator_names{
    "dual_gemm",
    "dual_gemm_out",
    "dual_gemm_packed",
    "dual_gemm_packed_out",
    "gemm",
    "gemm_out",
    "gemm_packed",
    "gemm_packed_out",
    "grouped_dual_gemm",
    "grouped_dual_gemm_out",
    "grouped_dual_gemm_packed",
    "grouped_dual_gemm_packed_out",
    "grouped_gemm",
    "grouped_gemm_out",
    "grouped_gemm_packed",
    "grouped_gemm_packed_out",
    "gated_mlp",
    "gated_mlp_out",
    "moe",
    "moe_out",
    "attention",
    "attention_with_lse",
    "attention_out",
    "append",
    "quantize",
};

/// Python's answer about the call that this thread passed to it.
struct Pending {
  bool is_active = false;
  bool has_failed = false;
  std::shared_ptr<Call> call;
  std::string sentence;
};

Pending& pending() {
  static thread_local Pending one;
  return one;
}

/// thresher_places_are_known; a ValidatedPointers sets it for its lifetime.
std::int32_t (*places_are_known)(std::int32_t) = nullptr;

class ValidatedPointers {
 public:
  ValidatedPointers() : before_(say(1)) {}
  ValidatedPointers(const ValidatedPointers&) = delete;
  ValidatedPointers& operator=(const ValidatedPointers&) = delete;
  ~ValidatedPointers() { say(before_); }

 private:
  static std::int32_t say(std::int32_t yes) { return places_are_known != nullptr ? places_are_known(yes) : 0; }

  std::int32_t before_;
};

void count_writes(const Arguments& arguments) {
  for (std::size_t i = 0; i < arguments.count(); ++i) {
    if (is_written(arguments[i]) && !arguments.is_none(i)) {
      count_write(arguments.tensor(i));
    }
  }
}

/// False when the call is rejected; nothing was written then, and Python reports why.
bool run_kept(const Call& call, Arguments& arguments, StableIValue* stack) {
  const thresher_torch_places& at = arguments.at();
  const TensorView a = arguments.tensor(static_cast<std::size_t>(at.a));
  const bool is_cuda = a.is_cuda();
  const bool is_here = is_cuda && is_on_current_gpu(a);
  void* stream = is_cuda ? current_stream(a.device_index()) : nullptr;
  std::array<OwnedTensor, 2> made;
  std::array<void*, 2> outputs{arguments.data(at.out), arguments.data(at.lse)};
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const Output& output = call.outputs[i];
    made[i] = empty(output.sizes, output.strides, output.dtype, a);
    const TensorView view(made[i].get());
    if (call.how.zeros != 0) {
      zero(view, output.bytes, is_here, stream);
    }
    outputs[i] = view.data();
  }
  const Workspace workspace(call.how.workspace_bytes, a, is_cuda, is_here);
  const ValidatedPointers since_the_key_says_where_all_lie;
  if (run(call.how, call.append, arguments, stream, {outputs[0], outputs[1], workspace.data()}) != THRESHER_OK) {
    return false;
  }
  count_writes(arguments);
  arguments.drop();
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    stack[i] = std::bit_cast<StableIValue>(made[i].release());
  }
  return true;
}

Output output_of(TensorView tensor) {
  const auto sizes = tensor.sizes(tensor.rank());
  const auto strides = tensor.strides(tensor.rank());
  std::size_t bytes = aoti_torch_dtype_element_size(tensor.dtype());
  for (const std::int64_t extent : sizes) {
    bytes *= static_cast<std::size_t>(extent);
  }
  return {{sizes.begin(), sizes.end()}, {strides.begin(), strides.end()}, tensor.dtype(), bytes};
}

/// The names of all operators in one namespace.
template <std::size_t count>
std::array<std::string, count> names_in(std::string_view name_space, const std::array<const char*, count>& names) {
  std::array<std::string, count> all;
  std::transform(names.begin(), names.end(), all.begin(),
                 [&](const char* name) { return std::string(name_space) + "::" + name; });
  return all;
}

/// key: empty for a call that is not cached.
void run_in_python(std::size_t index, const std::string& key, std::vector<const void*> blocks, StableIValue* stack,
                   std::uint64_t outputs) {
  static const auto& names = *new auto(names_in("thresher_python", operator_names));
  Pending& said = pending();
  said = {.is_active = true, .has_failed = false, .call = nullptr, .sentence = {}};
  const AOTITorchError code = torch_call_dispatcher(names[index].c_str(), "", stack, thresher_torch_abi_version);
  said.is_active = false;
  const std::shared_ptr<Call> call = std::move(said.call);
  if (said.has_failed) {
    for (std::uint64_t i = 0; code == thresher_torch_success && i < outputs; ++i) {
      aoti_torch_delete_tensor_object(std::bit_cast<AtenTensorHandle>(stack[i]));
    }
    throw std::runtime_error(said.sentence);
  }
  ok(code);
  if (call != nullptr && !key.empty()) {
    for (std::uint64_t i = 0; i < outputs; ++i) {
      call->outputs.push_back(output_of(TensorView(std::bit_cast<AtenTensorHandle>(stack[i]))));
    }
    call->blocks = std::move(blocks);
    keep(key, call);
  }
}

Description& description(std::size_t index) {
  static std::array<Description, operator_names.size()>& all = *new std::array<Description, operator_names.size()>;
  return all[index];
}

std::vector<const void*> blocks_of(const Arguments& arguments) {
  std::vector<const void*> blocks;
  for (std::size_t i = 0; i < arguments.count(); ++i) {
    if (kind_of(arguments[i]) == 'p') {
      blocks.push_back(arguments.tensor(i).data());
    }
  }
  return blocks;
}

/// Runs code that may throw while the arguments have no other owner.
template <class Run>
auto or_drop(Arguments& arguments, const Run& run) {
  try {
    return run();
  } catch (...) {
    arguments.drop();
    throw;
  }
}

template <std::size_t index>
void operate(StableIValue* stack, std::uint64_t inputs, std::uint64_t outputs) {
  const Description& known = description(index);
  Arguments arguments(known, stack);
  const std::string_view key = known.arguments.size() == inputs
                                   ? or_drop(arguments, [&] { return key_of(index, arguments); })
                                   : std::string_view();
  if (key.empty()) {
    run_in_python(index, {}, {}, stack, outputs);
    return;
  }
  const auto call = kept(key);
  if (call == nullptr || !or_drop(arguments, [&] { return run_kept(*call, arguments, stack); })) {
    run_in_python(index, std::string(key), blocks_of(arguments), stack, outputs);
  }
}

/// The same operator at the keys below autograd.
void run_below_autograd(std::size_t index, StableIValue* stack) {
  static const auto& names = *new auto(names_in("thresher", operator_names));
  pending().has_failed = false;
  const BelowAutograd here;
  const AOTITorchError code = torch_call_dispatcher(names[index].c_str(), "", stack, thresher_torch_abi_version);
  if (code != thresher_torch_success && pending().has_failed) {
    throw std::runtime_error(pending().sentence);
  }
  ok(code);
}

bool have_memory(const Arguments& arguments) {
  for (std::size_t i = 0; i < arguments.count(); ++i) {
    if (is_tensor(arguments[i]) && !arguments.is_none(i) && !arguments.tensor(i).has_memory()) {
      return false;
    }
  }
  return true;
}

/// At the keys of autograd: Python checks whether an input needs a derivative, and then rejects the call.
template <std::size_t index>
void refuse_derivatives(StableIValue* stack, std::uint64_t inputs, std::uint64_t outputs) {
  const Description& known = description(index);
  Arguments arguments(known, stack);
  if (known.arguments.size() == inputs && may_go_below_autograd() &&
      or_drop(arguments, [&] { return have_memory(arguments); })) {
    run_below_autograd(index, stack);
  } else {
    run_in_python(index, {}, {}, stack, outputs);
  }
}

using Kernel = void (*)(StableIValue* stack, std::uint64_t inputs, std::uint64_t outputs);
using Kernels = std::array<Kernel, operator_names.size()>;

template <std::size_t... indices>
constexpr Kernels operate_kernels(std::index_sequence<indices...> /*unused*/) {
  return {&operate<indices>...};
}

template <std::size_t... indices>
constexpr Kernels autograd_kernels(std::index_sequence<indices...> /*unused*/) {
  return {&refuse_derivatives<indices>...};
}

/// Registers the operators at one dispatch key, for its lifetime.
class Implementations {
 public:
  Implementations(const char* key, const Kernels& kernels) {
    const auto worked = [](AOTITorchError code) { return code == thresher_torch_success; };
    are_known_ = worked(aoti_torch_library_init_impl("thresher", key, __FILE__, __LINE__, &library_));
    for (std::size_t i = 0; are_known_ && i < kernels.size(); ++i) {
      are_known_ = worked(torch_library_impl(library_, operator_names[i], kernels[i], thresher_torch_abi_version));
    }
  }
  Implementations(const Implementations&) = delete;
  Implementations& operator=(const Implementations&) = delete;
  ~Implementations() { aoti_torch_delete_library_object(library_); }

  /// Whether PyTorch accepted all of them.
  [[nodiscard]] bool are_known() const { return are_known_; }

 private:
  TorchLibraryHandle library_ = nullptr;
  bool are_known_ = false;
};

constexpr auto all_operators = std::make_index_sequence<operator_names.size()>{};
const std::array implementations{
    std::make_unique<Implementations>("CPU", operate_kernels(all_operators)),
    std::make_unique<Implementations>("CUDA", operate_kernels(all_operators)),
    std::make_unique<Implementations>("AutogradCPU", autograd_kernels(all_operators)),
    std::make_unique<Implementations>("AutogradCUDA", autograd_kernels(all_operators)),
};

}  // namespace

int32_t thresher_torch_describe(const char* name, const char* arguments, const thresher_torch_places* places) {
  const auto found = std::find(operator_names.begin(), operator_names.end(), std::string_view(name));
  if (found == operator_names.end()) {
    return 0;
  }
  description(static_cast<std::size_t>(found - operator_names.begin())) = {arguments, *places};
  return 1;
}

int32_t thresher_torch_is_ready() {
  const auto is_known = [](const auto& one) { return one->are_known(); };
  return std::all_of(implementations.begin(), implementations.end(), is_known) ? 1 : 0;
}

void thresher_torch_autograd_keys(uint64_t keys) { set_autograd_keys(keys); }

void thresher_torch_say_by(int32_t (*known)(int32_t)) { places_are_known = known; }

void thresher_torch_keep(const thresher_torch_call* call) {
  const auto kept = std::make_shared<Call>(*call);
  if (pending().is_active) {
    pending().call = kept;
  }
}

void thresher_torch_fail(const char* sentence) {
  pending().has_failed = true;
  pending().sentence = sentence;
}
