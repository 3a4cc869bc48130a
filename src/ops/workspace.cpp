#include "thresher/workspace.hpp"

#include "ops/device_memory.hpp"

namespace thresher {

class Workspace::Memory : public ops::DeviceMemory {
 public:
  using DeviceMemory::DeviceMemory;
};

Workspace::Workspace(const Device& device, std::size_t bytes)
    : memory_(std::make_shared<const Memory>(bytes, device)) {}

void* Workspace::data() const noexcept { return memory_->data(); }
std::size_t Workspace::bytes() const noexcept { return memory_->bytes(); }

}  // namespace thresher
