#pragma once
/// Memory whose new blocks hold a chosen byte, as leftovers of another process would.
#include "arena/rig/memory.hpp"

namespace thresher::arena::honesty {

class ScrambledMemory final : public Memory {
 public:
  ScrambledMemory(Memory& below, std::uint8_t byte) : below_(below), byte_(byte) {}
  [[nodiscard]] DeviceId device() const override { return below_.device(); }
  [[nodiscard]] void* allocate(std::size_t bytes) override {
    void* memory = below_.allocate(bytes);
    below_.fill(memory, byte_, bytes);
    return memory;
  }
  void release(void* memory) noexcept override { below_.release(memory); }
  void fill(void* to, std::uint8_t byte, std::size_t bytes) override { below_.fill(to, byte, bytes); }
  void upload(void* to, const void* from, std::size_t bytes) override { below_.upload(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { below_.download(to, from, bytes); }
  [[nodiscard]] std::size_t available_bytes() override { return below_.available_bytes(); }

 private:
  Memory& below_;
  std::uint8_t byte_;
};

}  // namespace thresher::arena::honesty
