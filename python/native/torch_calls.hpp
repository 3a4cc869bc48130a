#pragma once
/// The calls that are kept, by all that decides how each is made.
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "torch_arguments.hpp"
#include "torch_operators.h"
#include "torch_run.hpp"

namespace thresher::torch_binding {

/// A new output like the one that the call gave first.
struct Output {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::int32_t dtype = 0;
  std::size_t bytes = 0;
};

/// How a call is made again.
struct Call {
  thresher_torch_call how{};
  AppendTemplate append;
  std::vector<Output> outputs;
  std::vector<const void*> blocks;

  explicit Call(const thresher_torch_call& given);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call();
};

/// All that decides how a call is made, which stays as it is until this thread asks again; empty where Python has to
/// look at the call.
[[nodiscard]] std::string_view key_of(std::size_t operator_index, const Arguments& arguments);

/// Null where no call of this key is kept.
[[nodiscard]] std::shared_ptr<const Call> kept(std::string_view key);
void keep(std::string_view key, std::shared_ptr<const Call> call);

}  // namespace thresher::torch_binding
