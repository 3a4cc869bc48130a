// torch.ops.thresher from C++, by PyTorch's stable ABI: one library for every torch from 2.10 on.
#include "torch_operators.h"

#include <dlfcn.h>
#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "thresher/thresher.h"

namespace {

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
};

/// Throws what PyTorch said, whose headers have one of two names for that.
void ok(AOTITorchError code) {
#ifdef STABLE_TORCH_ERROR_CODE_CHECK
  STABLE_TORCH_ERROR_CODE_CHECK(code);
#else
  TORCH_ERROR_CODE_CHECK(code);
#endif
}

/// A function of a library that torch has loaded, null where it has none of that name.
template <class Function>
Function loaded(const char* library_name, const char* name) {
  void* const library = dlopen(library_name, RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

struct DeleteTensor {
  void operator()(AtenTensorHandle tensor) const { aoti_torch_delete_tensor_object(tensor); }
};
using OwnedTensor = std::unique_ptr<AtenTensorOpaque, DeleteTensor>;

/// A tensor of the caller's.
class TensorView {
 public:
  explicit TensorView(AtenTensorHandle tensor) : tensor_(tensor) {}

  [[nodiscard]] AtenTensorHandle handle() const { return tensor_; }
  [[nodiscard]] bool is_defined() const {
    bool is_defined = false;
    ok(aoti_torch_is_defined(tensor_, &is_defined));
    return is_defined;
  }
  [[nodiscard]] void* data() const {
    void* data = nullptr;
    ok(aoti_torch_get_data_ptr(tensor_, &data));
    return data;
  }
  [[nodiscard]] std::size_t rank() const {
    std::int64_t rank = 0;
    ok(aoti_torch_get_dim(tensor_, &rank));
    return static_cast<std::size_t>(rank);
  }
  [[nodiscard]] std::span<const std::int64_t> sizes(std::size_t rank) const {
    return {pointer(&aoti_torch_get_sizes), rank};
  }
  [[nodiscard]] std::span<const std::int64_t> strides(std::size_t rank) const {
    return {pointer(&aoti_torch_get_strides), rank};
  }
  [[nodiscard]] std::int32_t dtype() const { return number(&aoti_torch_get_dtype); }
  [[nodiscard]] std::int32_t device_type() const { return number(&aoti_torch_get_device_type); }
  [[nodiscard]] std::int32_t device_index() const { return number(&aoti_torch_get_device_index); }
  [[nodiscard]] bool is_cuda() const { return device_type() == aoti_torch_device_type_cuda(); }

 private:
  template <class Get>
  std::int64_t* pointer(Get get) const {
    std::int64_t* values = nullptr;
    ok(get(tensor_, &values));
    return values;
  }
  template <class Get>
  std::int32_t number(Get get) const {
    std::int32_t value = 0;
    ok(get(tensor_, &value));
    return value;
  }

  AtenTensorHandle tensor_;
};

/// What one operator takes.
struct Description {
  std::string arguments;
  thresher_torch_places places{};
};

bool may_be_none(char argument) { return argument >= 'A' && argument <= 'Z'; }
char kind_of(char argument) { return may_be_none(argument) ? static_cast<char>(argument - 'A' + 'a') : argument; }
bool is_tensor(char argument) { return std::string_view("twp").find(kind_of(argument)) != std::string_view::npos; }

/// The arguments of one call, which stay the dispatcher's until they are dropped.
class Arguments {
 public:
  Arguments(const Description& description, StableIValue* stack) : description_(description), stack_(stack) {}

  [[nodiscard]] std::size_t count() const { return description_.arguments.size(); }
  [[nodiscard]] char operator[](std::size_t index) const { return description_.arguments[index]; }
  [[nodiscard]] bool is_none(std::size_t index) const {
    return may_be_none(description_.arguments[index]) && stack_[index] == 0;
  }
  [[nodiscard]] StableIValue value(std::size_t index) const {
    return may_be_none(description_.arguments[index]) ? *std::bit_cast<StableIValue*>(stack_[index]) : stack_[index];
  }
  [[nodiscard]] TensorView tensor(std::size_t index) const {
    return TensorView(std::bit_cast<AtenTensorHandle>(value(index)));
  }
  /// Null for what is not there.
  [[nodiscard]] void* data(std::int32_t place) const {
    return place < 0 || is_none(static_cast<std::size_t>(place)) ? nullptr
                                                                 : tensor(static_cast<std::size_t>(place)).data();
  }

  void drop() {
    for (std::size_t i = 0; i < count(); ++i) {
      if (is_none(i)) {
        continue;
      }
      const StableIValue given = value(i);
      if (is_tensor(description_.arguments[i])) {
        aoti_torch_delete_tensor_object(std::bit_cast<AtenTensorHandle>(given));
      } else if (kind_of(description_.arguments[i]) == 's') {
        torch_delete_string(std::bit_cast<StringHandle>(given));
      }
      if (may_be_none(description_.arguments[i])) {
        delete std::bit_cast<StableIValue*>(stack_[i]);
      }
    }
  }

 private:
  const Description& description_;
  StableIValue* stack_;
};

/// A new output like the one that the call gave first.
struct Output {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::int32_t dtype = 0;
};

/// Owners of calls that are gone, for Python to take.
struct Released {
  std::mutex mutex;
  std::vector<std::int64_t> owners;
};

// These live until the process ends, since threads may still be in a call when its destructors run.
Released& released() {
  static Released& all = *new Released;
  return all;
}

struct Call {
  thresher_torch_call how{};
  std::vector<Output> outputs;
  std::vector<const void*> blocks;

  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    const std::scoped_lock lock(released().mutex);
    released().owners.push_back(how.owner);
  }
};

struct HashText : std::hash<std::string_view> {
  using is_transparent = void;
};

struct Cache {
  std::shared_mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<const Call>, HashText, std::equal_to<>> calls;
  std::unordered_map<const void*, bool> blocks;  ///< on GPUs: whether PyTorch counts writes
  std::size_t most_calls = 0;

  [[nodiscard]] std::shared_ptr<const Call> find(std::string_view key) {
    const std::shared_lock lock(mutex);
    const auto found = calls.find(key);
    return found == calls.end() ? nullptr : found->second;
  }

  void add(std::string key, std::shared_ptr<const Call> call) {
    decltype(calls) dropped;
    const std::unique_lock lock(mutex);
    if (calls.size() >= most_calls) {
      dropped.swap(calls);
    }
    if (most_calls > 0) {
      calls.insert_or_assign(std::move(key), std::move(call));
    }
  }
};

Cache& cache() {
  static Cache& one = *new Cache;
  return one;
}

/// What Python says of the call that this thread has given it.
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

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append(std::string& key, std::span<const std::int64_t> values) {
  key.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

/// What PyTorch counts of writes to a tensor; -1 where it does not count.
std::int64_t version_of(TensorView tensor) {
  AtenTensorHandle again = nullptr;
  ok(aoti_torch_new_tensor_handle(tensor.handle(), &again));
  std::array<StableIValue, 1> stack{std::bit_cast<StableIValue>(again)};
  ok(torch_call_dispatcher("aten::_version", "", stack.data(), TORCH_ABI_VERSION));
  return std::bit_cast<std::int64_t>(stack[0]);
}

constexpr std::int64_t longest_header = 1 << 16;

/// What is known of packed weights: on the CPU their header, which may have been written over since the last call.
/// False where it has to be looked at first.
bool append_block(std::string& key, TensorView block, std::span<const std::int64_t> sizes) {
  const auto* bytes = static_cast<const char*>(block.data());
  append(key, bytes);
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
    append(key, has_version ? version_of(block) : std::int64_t{-1});
    return true;
  }
  std::int64_t length = 0;
  if (sizes.size() != 1 || sizes[0] < static_cast<std::int64_t>(sizeof length) || block.strides(1)[0] != 1) {
    return false;
  }
  std::memcpy(&length, bytes, sizeof length);
  if (length < 0 || length > longest_header) {
    return false;
  }
  key.append(bytes, static_cast<std::size_t>(std::min<std::int64_t>(length + 8, sizes[0])));
  return true;
}

bool append_tensor(std::string& key, TensorView tensor, char kind) {
  if (!tensor.is_defined()) {
    return false;
  }
  const std::size_t rank = tensor.rank();
  const auto sizes = tensor.sizes(rank);
  append(key, static_cast<std::int32_t>(rank));
  append(key, sizes);
  append(key, tensor.strides(rank));
  append(key, tensor.dtype());
  append(key, tensor.device_type());
  append(key, tensor.device_index());
  if (kind == 'p') {
    return append_block(key, tensor, sizes);
  }
  if (kind == 'w') {
    append(key, tensor.data());
  }
  return true;
}

void append_text(std::string& key, StringHandle text) {
  std::size_t length = 0;
  const char* characters = nullptr;
  ok(torch_string_length(text, &length));
  ok(torch_string_c_str(text, &characters));
  append(key, length);
  key.append(characters, length);
}

/// All that decides how a call is made. False where Python has to look at it.
bool make_key(std::string& key, std::size_t operator_index, const Arguments& arguments) {
  key.clear();
  append(key, operator_index);
  for (std::size_t i = 0; i < arguments.count(); ++i) {
    const bool is_none = arguments.is_none(i);
    key.push_back(is_none ? 0 : 1);
    if (is_none) {
      continue;
    }
    if (is_tensor(arguments[i])) {
      if (!append_tensor(key, arguments.tensor(i), kind_of(arguments[i]))) {
        return false;
      }
    } else if (kind_of(arguments[i]) == 's') {
      append_text(key, std::bit_cast<StringHandle>(arguments.value(i)));
    } else {
      append(key, arguments.value(i));
    }
  }
  std::uint32_t threads = 0;
  ok(torch_get_num_threads(&threads));
  append(key, threads);
  return true;
}

constexpr const char* cuda_library = "libtorch_cuda.so";

/// Whether the tensor lies on the GPU that is current in this thread.
bool is_on_current_gpu(TensorView tensor) {
  std::int32_t current = -1;
  return tensor.is_cuda() && aoti_torch_get_current_device_index(&current) == AOTI_TORCH_SUCCESS &&
         current == tensor.device_index();
}

void* current_stream(std::int32_t device) {
  using Get = AOTITorchError (*)(std::int32_t, void**);
  static const Get get = loaded<Get>(cuda_library, "aoti_torch_get_current_cuda_stream");
  if (get == nullptr) {
    throw std::runtime_error("a tensor lies on a GPU, but this torch has no streams of one");
  }
  void* stream = nullptr;
  ok(get(device, &stream));
  return stream;
}

/// Zeroes a new tensor: on the GPU that is current by the driver, without an operator of PyTorch.
void zero(AtenTensorHandle tensor, const Output& output, bool is_on_current_gpu, void* stream) {
  using Set = int (*)(unsigned long long, unsigned char, std::size_t, void*);
  static const Set set = loaded<Set>("libcuda.so.1", "cuMemsetD8Async");
  const TensorView view(tensor);
  if (is_on_current_gpu && set != nullptr) {
    std::size_t bytes = output.dtype == aoti_torch_dtype_float32() ? 4 : 2;
    for (const std::int64_t extent : output.sizes) {
      bytes *= static_cast<std::size_t>(extent);
    }
    if (bytes == 0 || set(reinterpret_cast<std::uintptr_t>(view.data()), 0, bytes, stream) == 0) {
      return;
    }
  }
  ok(aoti_torch_zero_(tensor));
}

OwnedTensor empty(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, std::int32_t dtype,
                  TensorView like) {
  AtenTensorHandle made = nullptr;
  ok(aoti_torch_empty_strided(static_cast<std::int64_t>(sizes.size()), sizes.data(), strides.data(), dtype,
                              like.device_type(), like.device_index(), &made));
  return OwnedTensor(made);
}

/// PyTorch's allocator of the GPU that is current, without a tensor around what it gives.
struct RawMemory {
  using Allocate = AOTITorchError (*)(std::uint64_t, void**);
  using Free = AOTITorchError (*)(void*);
  Allocate allocate = loaded<Allocate>(cuda_library, "aoti_torch_cuda_caching_allocator_raw_alloc");
  Free free = loaded<Free>(cuda_library, "aoti_torch_cuda_caching_allocator_raw_delete");

  [[nodiscard]] bool is_there() const { return allocate != nullptr && free != nullptr; }
};

const RawMemory& raw_memory() {
  static const RawMemory one;
  return one;
}

/// Memory that a call has to itself. PyTorch's allocator gives that of a GPU, so that a graph's own pool does while one
/// is captured; the stream's order lets it be given away again once the call is enqueued.
class Workspace {
 public:
  Workspace(std::int64_t bytes, TensorView like, bool is_cuda, bool is_on_current_gpu) {
    if (bytes == 0) {
      return;
    }
    if (is_on_current_gpu && raw_memory().is_there()) {
      ok(raw_memory().allocate(static_cast<std::uint64_t>(bytes), &data_));
      is_raw_ = true;
      return;
    }
    if (is_cuda) {
      const std::array<std::int64_t, 1> size{bytes};
      const std::array<std::int64_t, 1> stride{1};
      on_gpu_ = empty(size, stride, aoti_torch_dtype_uint8(), like);
      data_ = TensorView(on_gpu_.get()).data();
      return;
    }
    static thread_local std::unique_ptr<std::byte, decltype(&std::free)> memory{nullptr, &std::free};
    static thread_local std::int64_t size = 0;
    if (size < bytes) {
      const std::int64_t rounded = (bytes + 4095) / 4096 * 4096;
      memory.reset(static_cast<std::byte*>(std::aligned_alloc(4096, static_cast<std::size_t>(rounded))));
      size = memory == nullptr ? 0 : rounded;
      if (memory == nullptr) {
        throw std::bad_alloc();
      }
    }
    data_ = memory.get();
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace() {
    if (is_raw_) {
      (void)raw_memory().free(data_);
    }
  }
  [[nodiscard]] void* data() const { return data_; }

 private:
  OwnedTensor on_gpu_;
  void* data_ = nullptr;
  bool is_raw_ = false;
};

thresher_status run(const Call& call, const Arguments& arguments, const thresher_torch_places& at, void* stream,
                    void* out, void* lse, void* workspace) {
  const thresher_torch_call& how = call.how;
  const void* a = arguments.data(at.a);
  const void* scales = arguments.data(at.a_scales);
  const auto* global = static_cast<const float*>(how.a_scales_are_global ? scales : arguments.data(at.a_global_scale));
  scales = how.a_scales_are_global ? nullptr : scales;
  const auto numbers = [&](std::int32_t place) { return static_cast<const std::int32_t*>(arguments.data(place)); };
  const auto strides_of = [&](std::size_t tensor) {
    return how.has_strides[tensor] != 0 ? how.strides[tensor] : nullptr;
  };
  const auto floats = [&](std::int32_t place) { return static_cast<const float*>(arguments.data(place)); };
  switch (how.convention) {
    case THRESHER_TORCH_ROWS:
      return reinterpret_cast<decltype(&thresher_dual_gemm_run_flat)>(how.run)(
          static_cast<const thresher_dual_gemm*>(how.plan), stream, how.rows, a, how.a_stride, scales,
          how.a_scale_layout, global, out, how.out_stride, workspace);
    case THRESHER_TORCH_GROUPED: {
      const auto* counts = numbers(at.counts);
      return reinterpret_cast<decltype(&thresher_grouped_run_flat)>(how.run)(
          static_cast<const thresher_grouped*>(how.plan), stream, how.a_scale_layout, how.rows, how.tokens, a,
          how.a_stride, scales, global, out, how.out_stride, counts != nullptr ? counts : numbers(at.offsets),
          numbers(at.row_ids), floats(at.row_weights), workspace);
    }
    case THRESHER_TORCH_MOE:
      return reinterpret_cast<decltype(&thresher_moe_run_flat)>(how.run)(
          static_cast<const thresher_moe*>(how.plan), stream, how.rows, a, how.a_stride, scales, how.a_scale_layout,
          global, numbers(at.topk_ids), floats(at.topk_weights), out, how.out_stride, workspace);
    default:
      return reinterpret_cast<decltype(&thresher_attention_run_flat)>(how.run)(
          static_cast<const thresher_attention*>(how.plan), stream, a, strides_of(0), arguments.data(at.k),
          strides_of(1), arguments.data(at.v), strides_of(2), out, strides_of(3), static_cast<float*>(lse),
          numbers(at.cu_seqlens_q), numbers(at.cu_seqlens_k), workspace);
  }
}

/// thresher_places_are_known, and while one lives it is said.
std::int32_t (*places_are_known)(std::int32_t) = nullptr;

class KnownPlaces {
 public:
  KnownPlaces() : before_(say(1)) {}
  KnownPlaces(const KnownPlaces&) = delete;
  KnownPlaces& operator=(const KnownPlaces&) = delete;
  ~KnownPlaces() { say(before_); }

 private:
  static std::int32_t say(std::int32_t yes) { return places_are_known != nullptr ? places_are_known(yes) : 0; }

  std::int32_t before_;
};

/// False when the call is refused; nothing was written then, and Python says why.
bool run_kept(const Call& call, Arguments& arguments, const thresher_torch_places& at, StableIValue* stack) {
  const TensorView a = arguments.tensor(static_cast<std::size_t>(at.a));
  const bool is_cuda = a.is_cuda();
  const bool is_here = is_cuda && is_on_current_gpu(a);
  void* stream = is_cuda ? current_stream(a.device_index()) : nullptr;
  std::array<OwnedTensor, 2> made;
  std::array<void*, 2> outputs{arguments.data(at.out), nullptr};
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const Output& output = call.outputs[i];
    made[i] = empty(output.sizes, output.strides, output.dtype, a);
    if (call.how.zeros != 0) {
      zero(made[i].get(), output, is_here, stream);
    }
    outputs[i] = TensorView(made[i].get()).data();
  }
  const Workspace workspace(call.how.workspace_bytes, a, is_cuda, is_here);
  const KnownPlaces since_the_key_says_where_all_lie;
  if (run(call, arguments, at, stream, outputs[0], outputs[1], workspace.data()) != THRESHER_OK) {
    return false;
  }
  arguments.drop();
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    stack[i] = std::bit_cast<StableIValue>(made[i].release());
  }
  return true;
}

Output output_of(TensorView tensor) {
  const auto sizes = tensor.sizes(tensor.rank());
  const auto strides = tensor.strides(tensor.rank());
  return {{sizes.begin(), sizes.end()}, {strides.begin(), strides.end()}, tensor.dtype()};
}

void run_in_python(const char* name, std::string key, std::vector<const void*> blocks, StableIValue* stack,
                   std::uint64_t outputs) {
  Pending& said = pending();
  said = {.is_active = true, .has_failed = false, .call = nullptr, .sentence = {}};
  const AOTITorchError code =
      torch_call_dispatcher((std::string("thresher_python::") + name).c_str(), "", stack, TORCH_ABI_VERSION);
  said.is_active = false;
  const std::shared_ptr<Call> call = std::move(said.call);
  if (said.has_failed) {
    for (std::uint64_t i = 0; code == AOTI_TORCH_SUCCESS && i < outputs; ++i) {
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
    cache().add(std::move(key), call);
  }
}

Description& description(std::size_t index) {
  static std::array<Description, operator_names.size()>& all = *new std::array<Description, operator_names.size()>;
  return all[index];
}

template <std::size_t index>
void operate(StableIValue* stack, std::uint64_t inputs, std::uint64_t outputs) {
  const Description& known = description(index);
  Arguments arguments(known, stack);
  static thread_local std::string key;
  std::vector<const void*> blocks;
  // With gradients recorded Python has to look whether an input requires one.
  if (known.arguments.size() == inputs && !aoti_torch_grad_mode_is_enabled() && make_key(key, index, arguments)) {
    const auto call = cache().find(key);
    if (call != nullptr && run_kept(*call, arguments, known.places, stack)) {
      return;
    }
    for (std::size_t i = 0; i < arguments.count(); ++i) {
      if (kind_of(arguments[i]) == 'p') {
        blocks.push_back(arguments.tensor(i).data());
      }
    }
  } else {
    key.clear();
  }
  run_in_python(operator_names[index], key, std::move(blocks), stack, outputs);
}

template <std::size_t... indices>
void implement(torch::stable::detail::StableLibrary& library, std::index_sequence<indices...> /*unused*/) {
  (library.impl(operator_names[indices], &operate<indices>), ...);
}

constexpr auto all_operators = std::make_index_sequence<operator_names.size()>{};

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(thresher, CPU, library) { implement(library, all_operators); }
STABLE_TORCH_LIBRARY_IMPL(thresher, CUDA, library) { implement(library, all_operators); }

int32_t thresher_torch_describe(const char* name, const char* arguments, const thresher_torch_places* places) {
  const auto found = std::find(operator_names.begin(), operator_names.end(), std::string_view(name));
  if (found == operator_names.end()) {
    return 0;
  }
  description(static_cast<std::size_t>(found - operator_names.begin())) = {arguments, *places};
  return 1;
}

void thresher_torch_say_by(int32_t (*known)(int32_t)) { places_are_known = known; }

void thresher_torch_keep_at_most(int64_t calls) {
  decltype(Cache::calls) dropped;  // after the lock
  const std::unique_lock lock(cache().mutex);
  dropped.swap(cache().calls);
  cache().most_calls = static_cast<std::size_t>(std::max<int64_t>(calls, 0));
}

void thresher_torch_keep(const thresher_torch_call* call) {
  const auto kept = std::make_shared<Call>();
  kept->how = *call;
  if (pending().is_active) {
    pending().call = kept;
  }
}

void thresher_torch_fail(const char* sentence) {
  pending().has_failed = true;
  pending().sentence = sentence;
}

void thresher_torch_know_block(const void* block, int32_t has_version) {
  const std::unique_lock lock(cache().mutex);
  cache().blocks[block] = has_version != 0;
}

void thresher_torch_forget_block(const void* block) {
  std::vector<std::shared_ptr<const Call>> dropped;  // after the lock
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
