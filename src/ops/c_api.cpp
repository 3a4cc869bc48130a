// The C interface: errors, devices and structs that can grow.
#include <utility>

#include "core/printable.hpp"
#include "ops/c_common.hpp"
#include "runtime/known_places.hpp"

namespace thresher::c {
namespace {

thread_local std::string last_error;

void require_buffer(const char* to, std::size_t capacity) {
  if (to == nullptr || capacity == 0) {
    refuse("the buffer for a name is null or empty");
  }
}

/// As much as fits.
void copy_text(const std::string& text, char* to, std::size_t capacity) {
  require_buffer(to, capacity);
  const std::size_t length = std::min(text.size(), capacity - 1);
  text.copy(to, length);
  to[length] = '\0';
}

}  // namespace

thresher_status fail(thresher_status status, const char* sentence) noexcept {
  try {
    // What a compiler says has lines.
    last_error = status == THRESHER_COMPILE ? printable_lines(sentence) : printable(sentence);
  } catch (const std::bad_alloc&) {
    last_error.clear();
  }
  return status;
}

thresher_status status_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument: return THRESHER_INVALID_ARGUMENT;
    case ErrorCode::unsupported: return THRESHER_UNSUPPORTED;
    case ErrorCode::out_of_memory: return THRESHER_OUT_OF_MEMORY;
    case ErrorCode::io: return THRESHER_IO;
    case ErrorCode::device: return THRESHER_DEVICE;
    case ErrorCode::compile: return THRESHER_COMPILE;
    case ErrorCode::internal: return THRESHER_INTERNAL;
  }
  return THRESHER_INTERNAL;
}

void refuse(const std::string& sentence) { throw Error(ErrorCode::invalid_argument, sentence); }

void require_size(const char* argument, std::uint32_t size, std::size_t least) {
  const std::size_t min_size = (least + struct_alignment - 1) / struct_alignment * struct_alignment;
  if (size < min_size) {
    refuse(std::string(argument) + ".struct_size is " + std::to_string(size) + ", expected at least " +
           std::to_string(min_size) + ": initialise the struct with its _init function");
  }
  if (size > max_struct_bytes) {
    refuse(std::string(argument) + ".struct_size is " + std::to_string(size) + ", expected at most " +
           std::to_string(max_struct_bytes) + ": initialise the struct with its _init function");
  }
  if (size % struct_alignment != 0) {
    refuse(std::string(argument) + ".struct_size is " + std::to_string(size) + ", expected a multiple of " +
           std::to_string(struct_alignment) +
           ", where no member is cut in two: initialise the struct with its _init function");
  }
}

void require_zero(const char* argument, const void* bytes, std::size_t count) {
  const auto* first = static_cast<const unsigned char*>(bytes);
  if (std::any_of(first, first + count, [](unsigned char byte) { return byte != 0; })) {
    throw Error(ErrorCode::unsupported, std::string(argument) + " sets members that Thresher " + thresher::version() +
                                            " does not know, among its last " + std::to_string(count) +
                                            " bytes: use a newer library or leave them 0");
  }
}

Format format_of(thresher_format format, const char* argument) {
  static_assert(static_cast<int>(Format::fp8_block) == THRESHER_FP8_BLOCK &&
                static_cast<int>(Format::uint8) == THRESHER_UINT8 && static_cast<int>(Format::nvfp4) == THRESHER_NVFP4);
  return enumerator(format, all_formats.back(), argument);
}

DeviceId id_of(thresher_device device) {
  const DeviceKind kind = enumerator(device.kind, DeviceKind::cuda, "device.kind");
  if (device.ordinal < 0 || (kind == DeviceKind::cpu && device.ordinal != 0)) {
    refuse("device.ordinal is " + std::to_string(device.ordinal) +
           (kind == DeviceKind::cpu ? ", expected 0: there is one CPU" : ", expected 0 or more"));
  }
  return {kind, device.ordinal};
}

Device device_of(thresher_device device) {
  const DeviceId id = id_of(device);
  return id.kind == DeviceKind::cpu ? Device::cpu() : Device::cuda(id.ordinal);
}

void copy_names(const std::vector<std::string>& names, char* to, std::size_t capacity) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ",") + name;
  }
  require_buffer(to, capacity);
  if (text.size() >= capacity) {
    refuse("the buffer for names has " + std::to_string(capacity) + " bytes, expected at least " +
           std::to_string(text.size() + 1) + " for \"" + text + "\"");
  }
  copy_text(text, to, capacity);
}

Tensor tensor_of(const thresher_tensor* tensor, const char* argument) {
  const thresher_tensor given = known(tensor, argument, offsetof(thresher_tensor, strides), thresher_tensor{});
  if (given.rank < 0 || given.rank > max_rank) {
    refuse(std::string(argument) + ".rank is " + std::to_string(given.rank) + ", expected 0 to " +
           std::to_string(max_rank));
  }
  require_unset(given.reserved, (std::string(argument) + ".reserved").c_str());
  const auto rank = static_cast<std::size_t>(given.rank);
  Tensor made = Tensor::contiguous(given.data, format_of(given.format, (std::string(argument) + ".format").c_str()),
                                   std::span(given.shape, rank), id_of(given.device));
  if (std::any_of(given.strides, given.strides + rank, [](std::int64_t stride) { return stride != 0; })) {
    std::copy_n(given.strides, rank, made.strides.begin());
  }
  return made;
}

Tensor optional_tensor(const thresher_tensor* tensor, const char* argument) {
  return tensor == nullptr ? Tensor{} : tensor_of(tensor, argument);
}

}  // namespace thresher::c

using namespace thresher;
using namespace thresher::c;

const char* thresher_version(void) { return thresher::version(); }

int32_t thresher_places_are_known(int32_t yes) { return std::exchange(runtime::places_are_known, yes != 0) ? 1 : 0; }

const char* thresher_last_error(void) { return last_error.c_str(); }

thresher_status thresher_best_device(thresher_device* device) {
  return guarded([&] {
    required(device, "device");
    const DeviceId id = Device::best().id();
    *device = {static_cast<thresher_device_kind>(id.kind), id.ordinal};
  });
}

thresher_status thresher_device_name(thresher_device device, char* name, size_t capacity) {
  return guarded([&] { copy_text(device_of(device).name(), name, capacity); });
}
