#include "runtime/exported_memory.hpp"

#include <string>

#include "runtime/driver.hpp"
#include "runtime/driver_api.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {
namespace {

constexpr auto handle_type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

CUmemAllocationProp properties_of(int ordinal) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = handle_type;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = ordinal;
  return properties;
}

}  // namespace

ExportedMemory::ExportedMemory(int ordinal, std::size_t bytes) : ordinal_(ordinal) {
  const ContextGuard guard(ordinal);
  const CUmemAllocationProp properties = properties_of(ordinal);
  std::size_t page = 0;
  check(driver().allocation_granularity(&page, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
        "tell the pages of memory that is shared");
  bytes_ = (bytes + page - 1) / page * page;
  const CUresult created = driver().allocation_create(&allocation_, bytes_, &properties, 0);
  if (created == CUDA_ERROR_OUT_OF_MEMORY) {
    throw Error(ErrorCode::out_of_memory, std::to_string(bytes_ >> 20) + " MiB of GPU " + std::to_string(ordinal) +
                                              " are not to be had: free memory there or use a smaller problem");
  }
  check(created, "allocate memory that is shared");
  try {
    CUdeviceptr address = 0;
    check(driver().address_reserve(&address, bytes_, 0, 0, 0), "reserve addresses");
    data_ = reinterpret_cast<void*>(address);
    check(driver().address_map(address, bytes_, 0, allocation_, 0), "map memory that is shared");
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    check(driver().address_set_access(address, bytes_, &access, 1), "open memory that is shared");
  } catch (...) {
    release();
    throw;
  }
}

ExportedMemory::~ExportedMemory() {
  if (allocation_ != 0) {
    const ContextGuard guard(ordinal_);
    release();
  }
}

void ExportedMemory::release() noexcept {
  if (data_ != nullptr) {
    (void)driver().address_unmap(device_pointer(data_), bytes_);  // fails if nothing was mapped yet
    (void)driver().address_free(device_pointer(data_), bytes_);
  }
  (void)driver().allocation_release(allocation_);
}

int ExportedMemory::descriptor() const {
  const ContextGuard guard(ordinal_);
  int descriptor = -1;
  check(driver().allocation_export(&descriptor, allocation_, handle_type, 0), "share memory with another process");
  return descriptor;
}

}  // namespace thresher::runtime
