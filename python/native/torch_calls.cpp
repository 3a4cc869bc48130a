#include "torch_calls.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "torch_autograd.hpp"

namespace thresher::torch_binding {
namespace {

/// Owners of dropped calls, for Python to take.
struct Released {
  std::mutex mutex;
  std::vector<std::int64_t> owners;
};

// These live until the process ends, since threads may still be in a call when its destructors run.
Released& released() {
  static Released& all = *new Released;
  return all;
}

struct HashText : std::hash<std::string_view> {
  using is_transparent = void;
};

struct Cache {
  std::shared_mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<const Call>, HashText, std::equal_to<>> calls;
  std::unordered_map<const void*, bool> blocks;  ///< on GPUs: whether PyTorch counts writes
  std::size_t max_calls = 0;
};

Cache& cache() {
  static Cache& one = *new Cache;
  return one;
}

/// A sequence of bytes, in memory that is reused.
class Key {
 public:
  void clear() { size_ = 0; }
  /// Makes room for that many bytes before `put`.
  void reserve(std::size_t bytes) {
    if (bytes_.size() < size_ + bytes) {
      bytes_.resize(2 * (size_ + bytes));
    }
  }
  void put(const void* from, std::size_t bytes) {
    std::memcpy(bytes_.data() + size_, from, bytes);
    size_ += bytes;
  }
  template <class T>
  void put(const T& value) {
    put(&value, sizeof value);
  }
  void put(std::span<const std::int64_t> values) { put(values.data(), values.size_bytes()); }
  [[nodiscard]] std::string_view text() const { return {bytes_.data(), size_}; }

 private:
  std::vector<char> bytes_;
  std::size_t size_ = 0;
};

/// PyTorch's count of writes to a tensor; -1 where it does not count.
std::int64_t version_of(TensorView tensor) {
  AtenTensorHandle again = nullptr;
  ok(aoti_torch_new_tensor_handle(tensor.handle(), &again));
  std::array<StableIValue, 1> stack{std::bit_cast<StableIValue>(again)};
  ok(torch_call_dispatcher("aten::_version", "", stack.data(), thresher_torch_abi_version));
  return std::bit_cast<std::int64_t>(stack[0]);
}

/// Whether all bytes of packed weights lie in their storage, which may have shrunk since.
bool is_whole(TensorView block, std::span<const std::int64_t> sizes) {
  return sizes.size() == 1 && block.storage_offset() + sizes[0] <= block.storage_bytes();
}

constexpr std::int64_t longest_header = 1 << 16;

/// Adds the known facts about packed weights: on the CPU their header, which may have been overwritten since the last
/// call. False where the weights must be checked first.
bool put_block(Key& key, TensorView block, std::span<const std::int64_t> sizes) {
  if (!is_whole(block, sizes)) {
    return false;
  }
  const auto* bytes = static_cast<const char*>(block.data());
  key.put(bytes);
  if (block.is_cuda()) {
    bool has_version = false;
    {
      const std::shared_lock lock(cache().mutex);
      const auto found = cache().blocks.find(bytes);
      if (found == cache().blocks.end()) {
        return false;
      }
      has_version = found->second;
    }
    key.put(has_version ? version_of(block) : std::int64_t{-1});
    return true;
  }
  std::int64_t length = 0;
  if (sizes[0] < static_cast<std::int64_t>(sizeof length) || block.strides(1)[0] != 1) {
    return false;
  }
  std::memcpy(&length, bytes, sizeof length);
  if (length < 0 || length > longest_header) {
    return false;
  }
  const auto header = static_cast<std::size_t>(std::min<std::int64_t>(length + 8, sizes[0]));
  key.reserve(header);
  key.put(bytes, header);
  return true;
}

/// False where Python must check the call: it rejects a tensor without memory, and its operator counts writes.
bool put_tensor(Key& key, TensorView tensor, char kind) {
  if (!tensor.has_memory() || (kind == 'o' && !counts_writes())) {
    return false;
  }
  const std::size_t rank = tensor.rank();
  constexpr std::size_t beside_extents = 64;
  key.reserve(2 * rank * sizeof(std::int64_t) + beside_extents);
  const auto sizes = tensor.sizes(rank);
  key.put(static_cast<std::int32_t>(rank));
  key.put(sizes);
  key.put(tensor.strides(rank));
  key.put(tensor.dtype());
  key.put(tensor.device_type());
  key.put(tensor.device_index());
  if (kind == 'p') {
    return put_block(key, tensor, sizes);
  }
  if (kind == 'w') {
    key.put(tensor.data());
  }
  return true;
}

void put_text(Key& key, StringHandle text) {
  std::size_t length = 0;
  const char* characters = nullptr;
  ok(torch_string_length(text, &length));
  ok(torch_string_c_str(text, &characters));
  key.reserve(sizeof length + length);
  key.put(length);
  key.put(characters, length);
}

bool put_argument(Key& key, const Arguments& arguments, std::size_t index) {
  constexpr std::size_t of_number = 1 + sizeof(StableIValue);
  key.reserve(of_number);
  const bool is_none = arguments.is_none(index);
  key.put(static_cast<char>(is_none ? 0 : 1));
  if (is_none) {
    return true;
  }
  if (is_tensor(arguments[index])) {
    return put_tensor(key, arguments.tensor(index), kind_of(arguments[index]));
  }
  if (kind_of(arguments[index]) == 's') {
    put_text(key, std::bit_cast<StringHandle>(arguments.value(index)));
  } else {
    key.put(arguments.value(index));
  }
  return true;
}

}  // namespace

Call::Call(const thresher_torch_call& given) : how(given), append(given.append) { how.append = nullptr; }

Call::~Call() {
  const std::scoped_lock lock(released().mutex);
  released().owners.push_back(how.owner);
}

std::string_view key_of(std::size_t operator_index, const Arguments& arguments) {
  static thread_local Key key;
  std::uint32_t threads = 0;
  ok(torch_get_num_threads(&threads));
  key.clear();
  key.reserve(sizeof operator_index + sizeof threads);
  key.put(operator_index);
  key.put(threads);
  for (std::size_t i = 0; i < arguments.count(); ++i) {
    if (!put_argument(key, arguments, i)) {
      return {};
    }
  }
  return key.text();
}

std::shared_ptr<const Call> kept(std::string_view key) {
  const std::shared_lock lock(cache().mutex);
  const auto found = cache().calls.find(key);
  return found == cache().calls.end() ? nullptr : found->second;
}

void keep(std::string_view key, std::shared_ptr<const Call> call) {
  decltype(Cache::calls) dropped;  // destroyed after the lock is released
  const std::unique_lock lock(cache().mutex);
  if (cache().calls.size() >= cache().max_calls) {
    dropped.swap(cache().calls);
  }
  if (cache().max_calls > 0) {
    cache().calls.insert_or_assign(std::string(key), std::move(call));
  }
}

}  // namespace thresher::torch_binding

using namespace thresher::torch_binding;

void thresher_torch_keep_at_most(int64_t calls) {
  decltype(Cache::calls) dropped;  // destroyed after the lock is released
  const std::unique_lock lock(cache().mutex);
  dropped.swap(cache().calls);
  cache().max_calls = static_cast<std::size_t>(std::max<int64_t>(calls, 0));
}

void thresher_torch_know_block(const void* block, int32_t has_version) {
  const std::unique_lock lock(cache().mutex);
  cache().blocks[block] = has_version != 0;
}

void thresher_torch_forget_block(const void* block) {
  std::vector<std::shared_ptr<const Call>> dropped;  // destroyed after the lock is released
  const std::unique_lock lock(cache().mutex);
  cache().blocks.erase(block);
  std::erase_if(cache().calls, [&](auto& entry) {
    if (std::find(entry.second->blocks.begin(), entry.second->blocks.end(), block) == entry.second->blocks.end()) {
      return false;
    }
    dropped.push_back(entry.second);
    return true;
  });
}

int32_t thresher_torch_released(int64_t* owners, int32_t capacity) {
  const std::scoped_lock lock(released().mutex);
  auto& all = released().owners;
  const auto count = std::min(all.size(), static_cast<std::size_t>(std::max(capacity, 0)));
  std::copy_n(all.end() - static_cast<std::ptrdiff_t>(count), count, owners);
  all.resize(all.size() - count);
  return static_cast<int32_t>(count);
}
