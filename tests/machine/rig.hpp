#pragma once
// The primitives' tests are written once: kernels in the vocabulary, oracles on the host, and a Rig that runs a kernel
// either in the emulator, on several schedules, or on a GPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "machine/emulator/engine/global_memory.hpp"
#include "machine/emulator/engine/launch_shape.hpp"
#include "machine/tensor_map.hpp"

namespace thresher::machine::test {

using emulator::LaunchShape;
using emulator::Use;

/// One kernel in both forms. Made by RIG_KERNEL.
struct KernelRef {
  std::string header;                ///< under tests/, for the GPU's compiler
  std::string expression;            ///< its name there
  void (*host)(const void* params);  ///< calls it with the parameters
};

template <auto kernel, class Params>
void call(const void* params) {
  kernel(*static_cast<const Params*>(params));
}

template <auto kernel, class Params>
KernelRef kernel_ref(const char* header, const std::string& expression, void (*)(Params)) {
  return {header, expression, &call<kernel, Params>};
}

/// RIG_KERNEL("tma.hpp", load_box<2>): `...` is the name expression, all its template arguments spelt out.
#define RIG_KERNEL(header, ...) \
  ::thresher::machine::test::kernel_ref<&__VA_ARGS__>("machine/kernels/" header, #__VA_ARGS__, &__VA_ARGS__)

class Rig {
 public:
  virtual ~Rig() = default;
  /// Memory that the next launches may touch, filled from `data`; its address for parameters.
  virtual u64 place(const std::string& name, const void* data, std::size_t bytes, Use use) = 0;
  virtual TensorMap encode(const TensorMapDescription& description) = 0;
  /// Runs to the end. Findings are test failures.
  virtual void launch(const LaunchShape& shape, const KernelRef& kernel, const void* params, std::size_t bytes) = 0;
  /// What memory holds after the launch.
  virtual void fetch(u64 address, void* to, std::size_t bytes) = 0;
};

/// The rig of this executable: emulator_rig.cpp or gpu_rig.cpp. Null when there is nothing to run on; `why` says so.
std::unique_ptr<Rig> make_rig(std::string& why);

/// A buffer of the rig and its copy on the host.
template <typename T>
struct Array {
  std::vector<T> host;
  u64 address = 0;
  [[nodiscard]] std::size_t bytes() const { return host.size() * sizeof(T); }
};

class Primitive : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    rig_ = make_rig(why);
    if (rig_ == nullptr) {
      GTEST_SKIP() << why;
    }
  }

  template <typename T>
  Array<T> input(const std::string& name, std::vector<T> values) {
    Array<T> array{std::move(values)};
    array.address = rig_->place(name, array.host.data(), array.bytes(), Use::input);
    return array;
  }
  /// Filled with a value that no kernel here computes.
  template <typename T>
  Array<T> output(const std::string& name, std::size_t count) {
    Array<T> array{std::vector<T>(count)};
    std::fill_n(reinterpret_cast<unsigned char*>(array.host.data()), array.bytes(), static_cast<unsigned char>(0xA5));
    array.address = rig_->place(name, array.host.data(), array.bytes(), Use::output);
    return array;
  }
  template <typename T>
  Array<T> input_output(const std::string& name, std::vector<T> values) {
    Array<T> array{std::move(values)};
    array.address = rig_->place(name, array.host.data(), array.bytes(), Use::input_output);
    return array;
  }
  template <typename Params>
  void launch(const LaunchShape& shape, const KernelRef& kernel, const Params& params) {
    rig_->launch(shape, kernel, &params, sizeof params);
  }
  template <typename T>
  void fetch(Array<T>& array) {
    rig_->fetch(array.address, array.host.data(), array.bytes());
  }
  Rig& rig() { return *rig_; }

 private:
  std::unique_ptr<Rig> rig_;
};

inline LaunchShape blocks_of(std::uint32_t threads, std::uint32_t shared_bytes = 0, std::uint32_t blocks = 1,
                             std::uint32_t cluster = 1) {
  LaunchShape shape;
  shape.grid.x = blocks;
  shape.block = threads;
  shape.cluster.x = cluster;
  shape.dynamic_shared_bytes = shared_bytes;
  return shape;
}

}  // namespace thresher::machine::test
