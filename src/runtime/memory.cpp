#include "runtime/memory.hpp"

#include <string>

#include "runtime/driver.hpp"
#include "runtime/driver_api.hpp"
#include "runtime/stream.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {
namespace {

std::string gibibytes(std::size_t bytes) {
  const std::string hundredths = std::to_string(bytes / (std::size_t{1} << 30) * 100 +
                                                bytes % (std::size_t{1} << 30) * 100 / (std::size_t{1} << 30));
  const std::string padded = std::string(hundredths.size() < 3 ? 3 - hundredths.size() : 0, '0') + hundredths;
  return padded.substr(0, padded.size() - 2) + "." + padded.substr(padded.size() - 2) + " GiB";
}

}  // namespace

DeviceBuffer::DeviceBuffer(int ordinal, std::size_t bytes, const char* purpose) : bytes_(bytes), ordinal_(ordinal) {
  if (bytes == 0) {
    return;
  }
  const ContextGuard guard(ordinal);
  CUdeviceptr pointer = 0;
  const CUresult result = driver().memory_allocate(&pointer, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    const MemoryInfo info = memory_info(ordinal);
    throw Error(ErrorCode::out_of_memory, std::string(purpose) + " needs " + gibibytes(bytes) + " of GPU " +
                                              std::to_string(ordinal) + ", which has " + gibibytes(info.free_bytes) +
                                              " free of " + gibibytes(info.total_bytes) +
                                              ": free memory there or use a smaller problem");
  }
  check(result, "allocate GPU memory");
  data_ = reinterpret_cast<void*>(pointer);
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) {
    const ContextGuard guard(ordinal_);
    driver().memory_free(device_pointer(data_));
  }
}

void copy_async(void* to, const void* from, std::size_t bytes, Stream stream, int ordinal) {
  if (bytes == 0) {
    return;
  }
  const ContextGuard guard(ordinal);
  check(driver().copy_async(device_pointer(to), device_pointer(from), bytes, stream_handle(stream.handle)),
        "copy memory");
}

void copy(void* to, const void* from, std::size_t bytes, int ordinal) {
  copy_async(to, from, bytes, Stream{}, ordinal);
  synchronize(Stream{}, ordinal);
}

void fill_async(void* memory, std::uint8_t byte, std::size_t bytes, Stream stream, int ordinal) {
  if (bytes == 0) {
    return;
  }
  const ContextGuard guard(ordinal);
  check(driver().set8_async(device_pointer(memory), byte, bytes, stream_handle(stream.handle)), "fill memory");
}

}  // namespace thresher::runtime
