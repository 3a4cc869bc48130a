// A user kernel for a GPU, in its process: machine code in a context of its own. No host code of the user runs here.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <span>
#include <unordered_map>

#include "arena/rig/cuda_memory.hpp"
#include "arena/timing/cuda_clock.hpp"
#include "arena/user_kernels/line/cubin_launch.hpp"
#include "arena/user_kernels/served/served.hpp"
#include "ops/cuda_pause.hpp"
#include "runtime/driver.hpp"
#include "runtime/kernel.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

class CubinRunner final : public Runner {
 public:
  CubinRunner(runtime::Kernel kernel, const CubinLaunch& launch) : kernel_(std::move(kernel)) {
    config_.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
    config_.block = {launch.block[0], launch.block[1], launch.block[2]};
    config_.dynamic_shared_bytes = launch.dynamic_shared_bytes;
    if (config_.dynamic_shared_bytes > 0) {
      kernel_.allow_dynamic_shared(config_.dynamic_shared_bytes);
    }
  }
  void add(std::vector<std::byte> call) { calls_.push_back(std::move(call)); }
  void run(Stream stream, std::size_t set) override {
    runtime::LaunchConfig config = config_;
    config.stream = stream;
    std::array<void*, 1> structure{calls_.at(set).data()};
    kernel_.launch(config, structure);
  }

 private:
  runtime::Kernel kernel_;
  runtime::LaunchConfig config_;
  std::vector<std::vector<std::byte>> calls_;
};

class ServedCubin final : public Served {
 public:
  ServedCubin(int ordinal, const std::string& kernel, std::span<const std::byte> image)
      : ordinal_(ordinal),
        memory_(ordinal),
        clock_(ordinal),
        stream_(ordinal),
        pause_(ordinal),
        module_(ordinal, image),
        kernel_(module_.kernel(kernel)) {}

  void bind(std::uint32_t binding, Reader& launch) override {
    runners_[binding] = std::make_unique<CubinRunner>(kernel_, launch.get<CubinLaunch>());
  }
  void add_call(std::uint32_t binding, std::vector<std::byte> call) override { runner(binding).add(std::move(call)); }
  void complete(std::uint32_t) override {}
  void unbind(std::uint32_t binding) override { runners_.erase(binding); }
  void call(std::uint32_t binding, std::uint32_t set) override {
    runner(binding).run(stream_.get(), set);
    stream_.synchronize();
  }

  void answer(Ask ask, Reader& question, std::byte* piece, Writer& answer) override {
    switch (ask) {
      case Ask::allocate:
        answer.put(reinterpret_cast<std::uintptr_t>(memory_.allocate(question.get<std::uint64_t>())));
        return;
      case Ask::release: memory_.release(question.get<void*>()); return;
      case Ask::fill: {
        auto* const to = question.get<void*>();
        const auto byte = question.get<std::uint8_t>();
        memory_.fill(to, byte, question.get<std::uint64_t>());
        return;
      }
      case Ask::upload: {
        auto* const to = question.get<void*>();
        memory_.upload(to, piece, question.get<std::uint64_t>());
        return;
      }
      case Ask::download: {
        const auto* const from = question.get<const void*>();
        memory_.download(piece, from, question.get<std::uint64_t>());
        return;
      }
      case Ask::enqueue: {
        const auto binding = question.get<std::uint32_t>();
        runner(binding).run(stream_.get(), question.get<std::uint32_t>());
        return;
      }
      case Ask::wait: runtime::synchronize_device(ordinal_); return;
      case Ask::wait_for_stream: stream_.synchronize(); return;
      case Ask::hold_stream: pause_.enqueue(stream_.get(), question.get<double>()); return;
      case Ask::capture: {
        const auto binding = question.get<std::uint32_t>();
        clock_.get_ready(runner(binding), question.get<Batch>());
        return;
      }
      case Ask::measure: {
        const auto binding = question.get<std::uint32_t>();
        answer.put(clock_.time(runner(binding), question.get<Batch>()).us_per_call);
        return;
      }
      default: Served::answer(ask, question, piece, answer);
    }
  }

 private:
  CubinRunner& runner(std::uint32_t binding) { return *runners_.at(binding); }

  int ordinal_;
  CudaMemory memory_;
  CudaClock clock_;
  runtime::OwnedStream stream_;
  ops::CudaPause pause_;
  runtime::Module module_;
  runtime::Kernel kernel_;
  std::unordered_map<std::uint32_t, std::unique_ptr<CubinRunner>> runners_;
};

}  // namespace

std::unique_ptr<Served> serve_cubin(Reader& question) {
  const auto ordinal = question.get<std::int32_t>();
  const std::string kernel = question.text();
  const auto bytes = question.get<std::uint64_t>();
  const int memory = question.descriptor();
  void* const image = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, memory, 0);
  ::close(memory);
  if (image == MAP_FAILED) {
    throw Error(ErrorCode::out_of_memory, "the kernel's machine code cannot be mapped");
  }
  auto served = std::make_unique<ServedCubin>(ordinal, kernel, std::span(static_cast<const std::byte*>(image), bytes));
  ::munmap(image, bytes);
  return served;
}

}  // namespace thresher::arena::user_kernels
