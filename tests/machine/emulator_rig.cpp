#include <cstring>

#include "machine/emulator/engine/launch.hpp"
#include "machine/emulator/engine/tensor_map.hpp"
#include "machine/rig.hpp"

namespace thresher::machine::test {
namespace {

/// Runs every launch on several schedules and wants the same bytes of each.
class EmulatorRig final : public Rig {
 public:
  u64 place(const std::string& name, const void* data, std::size_t bytes, Use use) override {
    buffers_.push_back({std::vector<std::uint8_t>(bytes + 256), {}, use, bytes});
    Buffer& buffer = buffers_.back();
    const auto* from = static_cast<const std::uint8_t*>(data);
    buffer.initial.assign(from, from + bytes);
    std::memcpy(buffer.start(), data, bytes);
    memory_.add(name, buffer.start(), bytes, use);
    return static_cast<u64>(reinterpret_cast<std::uintptr_t>(buffer.start()));
  }

  TensorMap encode(const TensorMapDescription& description) override {
    return emulator::encode_tensor_map(description);
  }

  void launch(const LaunchShape& shape, const KernelRef& kernel, const void* params, std::size_t) override {
    std::vector<std::vector<std::uint8_t>> first;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      emulator::Options options;
      options.schedule = emulator::Schedule::from_seed(seed);
      for (Buffer& buffer : buffers_) {
        std::memcpy(buffer.start(), buffer.initial.data(), buffer.bytes);
      }
      const emulator::Report report = emulator::launch(shape, options, memory_, [&] { kernel.host(params); });
      for (const emulator::Finding& finding : report.findings) {
        ADD_FAILURE() << kernel.expression << ": " << to_string(finding);
      }
      std::vector<std::vector<std::uint8_t>> contents;
      for (Buffer& buffer : buffers_) {
        contents.emplace_back(buffer.start(), buffer.start() + buffer.bytes);
      }
      if (seed == 0) {
        first = std::move(contents);
      } else {
        ASSERT_TRUE(contents == first) << kernel.expression << " gives other bytes with seed " << seed;
      }
    }
  }

  void fetch(u64 address, void* to, std::size_t bytes) override {
    std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
  }

 private:
  struct Buffer {
    std::vector<std::uint8_t> room;
    std::vector<std::uint8_t> initial;
    Use use;
    std::size_t bytes;
    /// 256-byte aligned, as GPU memory is.
    std::uint8_t* start() {
      const auto address = reinterpret_cast<std::uintptr_t>(room.data());
      return room.data() + (256 - address % 256) % 256;
    }
  };
  std::vector<Buffer> buffers_;
  emulator::GlobalMemory memory_;
};

}  // namespace

std::unique_ptr<Rig> make_rig(std::string&) { return std::make_unique<EmulatorRig>(); }

}  // namespace thresher::machine::test
