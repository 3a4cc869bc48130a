#pragma once
/// The cache of calls, keyed by everything that determines a call.
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "torch_arguments.hpp"
#include "torch_operators.h"
#include "torch_run.hpp"

namespace thresher::torch_binding {

/// Describes a new output like that of the first call.
struct Output {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::int32_t dtype = 0;
  std::size_t bytes = 0;
};

/// The data that repeat a call.
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

/// Everything that determines a call, valid until this thread asks again; empty where Python must check the call.
[[nodiscard]] std::string_view key_of(std::size_t operator_index, const Arguments& arguments);

/// Null where the cache has no call with this key.
[[nodiscard]] std::shared_ptr<const Call> kept(std::string_view key);
void keep(std::string_view key, std::shared_ptr<const Call> call);

}  // namespace thresher::torch_binding
