#include "arena/user_kernels/process/cuda_process_rig.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>

#include "arena/timing/cuda_clock.hpp"
#include "arena/user_kernels/process/call_descriptions.hpp"
#include "runtime/driver.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

constexpr std::uint32_t staging_piece = 0;
constexpr std::size_t reserve_bytes = std::size_t{1} << 30;

class CudaProcessRunner final : public Runner {
 public:
  CudaProcessRunner(CudaProcess& cuda, std::size_t& enqueued, const CubinLaunch& launch, Calls calls)
      : cuda_(cuda), enqueued_(enqueued), binding_(cuda.process().next_number()), calls_(std::move(calls)) {
    tell_calls(
        cuda_.process(), binding_, calls_, [](std::uintptr_t address) { return address; },  // the process's own memory
        Writer().put(launch));
  }
  ~CudaProcessRunner() override { cuda_.process().ask_later(Writer(Ask::unbind).put(binding_)); }

  void run(Stream, std::size_t set) override {
    ++enqueued_;
    (void)cuda_.process().ask_for_calls(Writer(Ask::enqueue).put(binding_).put(static_cast<std::uint32_t>(set)),
                                        enqueued_);
  }
  [[nodiscard]] std::vector<std::string> guard_damage() const override { return calls_.guard_damage(); }
  [[nodiscard]] Writer about(Ask ask, const Batch& batch) const { return Writer(ask).put(binding_).put(batch); }

 private:
  CudaProcess& cuda_;
  std::size_t& enqueued_;
  std::uint32_t binding_;
  Calls calls_;
};

}  // namespace

CudaProcess::CudaProcess(ProcessOptions options, int ordinal, const Writer& load, int image)
    : ordinal_(ordinal), process_(std::move(options), load, image) {
  OwnedDescriptor memory(make_shared_memory(staged_bytes));
  void* const base = ::mmap(nullptr, staged_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (base == MAP_FAILED) {
    throw Error(ErrorCode::out_of_memory, "memory for a kernel's data cannot be mapped: free some memory");
  }
  staged_ = static_cast<std::byte*>(base);
  process_.ask_later(Writer(Ask::share).put(staging_piece).put(std::uint64_t{staged_bytes}), std::move(memory));
}

CudaProcess::~CudaProcess() {
  if (staged_ != nullptr) {
    ::munmap(staged_, staged_bytes);
  }
}

void* CudaProcessMemory::allocate(std::size_t bytes) {
  const auto address =
      cuda_.process().ask(Writer(Ask::allocate).put(static_cast<std::uint64_t>(bytes))).get<std::uintptr_t>();
  return reinterpret_cast<void*>(address);  // a GPU address: this process never dereferences it
}

void CudaProcessMemory::release(void* memory) noexcept { cuda_.process().ask_later(Writer(Ask::release).put(memory)); }

void CudaProcessMemory::fill(void* to, std::uint8_t byte, std::size_t bytes) {
  (void)cuda_.process().ask(Writer(Ask::fill).put(to).put(byte).put(static_cast<std::uint64_t>(bytes)));
}

void CudaProcessMemory::upload(void* to, const void* from_host, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes; done += CudaProcess::staged_bytes) {
    const std::size_t some = std::min(bytes - done, CudaProcess::staged_bytes);
    std::memcpy(cuda_.staged(), static_cast<const std::byte*>(from_host) + done, some);
    (void)cuda_.process().ask(
        Writer(Ask::upload).put(static_cast<std::byte*>(to) + done).put(static_cast<std::uint64_t>(some)));
  }
}

void CudaProcessMemory::download(void* to_host, const void* from, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes; done += CudaProcess::staged_bytes) {
    const std::size_t some = std::min(bytes - done, CudaProcess::staged_bytes);
    (void)cuda_.process().ask(
        Writer(Ask::download).put(static_cast<const std::byte*>(from) + done).put(static_cast<std::uint64_t>(some)));
    std::memcpy(static_cast<std::byte*>(to_host) + done, cuda_.staged(), some);
  }
}

std::size_t CudaProcessMemory::available_bytes() {
  const std::size_t free_bytes = runtime::memory_info(cuda_.ordinal()).free_bytes;
  return free_bytes > reserve_bytes ? free_bytes - reserve_bytes : 0;
}

Reading CudaProcessClock::measure(Runner& runner, const Batch& batch) {
  auto* const bound = dynamic_cast<CudaProcessRunner*>(&runner);
  if (bound == nullptr) {
    throw Error(ErrorCode::internal, "the clock of another process was asked to time something that is not there");
  }
  (void)cuda_.process().ask_for_calls(bound->about(Ask::capture, batch), 1);
  std::future<Telemetry> telemetry = std::async(std::launch::async, gpu_telemetry, cuda_.ordinal());
  const auto start = std::chrono::steady_clock::now();
  const auto us_per_call = cuda_.process().ask_for_calls(bound->about(Ask::measure, batch), batch.calls).get<double>();
  const std::chrono::duration<double, std::micro> watch = std::chrono::steady_clock::now() - start;
  telemetry_ = telemetry.get();
  const double watch_us_per_call = watch.count() / static_cast<double>(batch.calls);
  cuda_.process().learn(watch_us_per_call * 1e-6);
  return {us_per_call, watch_us_per_call};
}

void CudaProcessClock::rest(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

double CudaProcessClock::now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

CudaProcessRig::CudaProcessRig(Rig& own, ProcessOptions options, const Writer& load, int image)
    : own_(own), cuda_(std::move(options), own.device().id().ordinal, load, image), memory_(cuda_), clock_(cuda_) {}

void CudaProcessRig::wait_by(Ask ask) {
  (void)cuda_.process().ask_for_calls(Writer(ask), std::max<std::size_t>(enqueued_, 1));
  enqueued_ = 0;
}

bool CudaProcessRig::hold_stream(double microseconds) {
  (void)cuda_.process().ask(Writer(Ask::hold_stream).put(microseconds));
  return true;
}

std::unique_ptr<Runner> CudaProcessRig::bind(const CubinLaunch& launch, Calls calls) {
  return std::make_unique<CudaProcessRunner>(cuda_, enqueued_, launch, std::move(calls));
}

}  // namespace thresher::arena::user_kernels
