// Times calls of an empty kernel in another process: in batches of one call and of a thousand, and with activations
// that are put in before each.
//
//   bench_call_server THRESHER     THRESHER: the command
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "arena/user_kernels/process/kernel_process.hpp"
#include "arena/user_kernels/process/shared_memory.hpp"
#include "runtime/host_compiler.hpp"
#include "runtime/process.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

void print(const char* what, std::vector<double> us) {
  std::sort(us.begin(), us.end());
  const auto at = [&](double share) {
    return us[static_cast<std::size_t>(share * static_cast<double>(us.size() - 1))];
  };
  fmt::print("{:<44} {:>9.2f} us   10 % {:>9.2f}   90 % {:>9.2f}\n", what, at(0.5), at(0.1), at(0.9));
}

double us_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

Writer empty_kernel(const std::filesystem::path& folder) {
  std::ofstream(folder / "empty.cpp") << "extern \"C\" void empty(const void*) {}\n";
  const auto built = runtime::run_process(
      runtime::find_host_compiler().path,
      {"-O2", "-shared", "-fPIC", "-o", (folder / "empty.so").string(), (folder / "empty.cpp").string()});
  if (!built.succeeded()) {
    throw Error(ErrorCode::compile, built.text);
  }
  return Writer(Ask::load_library).put((folder / "empty.so").string()).put(std::string("empty"));
}

/// Activations of that size for as many calls as a sample may have.
class Activations {
 public:
  static constexpr std::size_t calls = 64;

  Activations(KernelProcess& process, std::size_t bytes) : memory_(process), fresh_(bytes) {
    for (std::size_t set = 0; set < calls; ++set) {
      places_.push_back({static_cast<std::byte*>(memory_.allocate(bytes)), bytes});
      sets_.inputs.push_back({&memory_.delay_input(places_.back())});
      sets_.outputs.emplace_back();
    }
  }
  double us_per_call(KernelProcess& process, std::uint32_t binding) {
    for (const std::span<std::byte> place : places_) {
      memory_.upload(place.data(), fresh_.data(), fresh_.size());
    }
    return process.call(binding, {calls, 0, calls}, sets_) / static_cast<double>(calls);
  }

 private:
  SharedMemory memory_;
  std::vector<std::byte> fresh_;
  std::vector<std::span<std::byte>> places_;
  KernelProcess::Sets sets_;
};

void measure(const std::string& command) {
  const runtime::TemporaryFolder folder;
  const Writer load = empty_kernel(folder.path());
  ProcessOptions options{{command, "serve-calls"}, "the kernel's process"};
  options.readable = folder.path();
  constexpr int samples = 200;
  std::vector<double> started;
  for (int i = 0; i < 10; ++i) {
    started.push_back(us_of([&] { const KernelProcess process(options, load); }));
  }
  print("a process: started, loaded, ended", started);

  KernelProcess process(options, load);
  const std::uint32_t binding = process.next_number();
  constexpr std::array<std::byte, 256> call{};
  Writer about(Ask::bind);
  about.put(binding);
  put(about, CallLayout{call.size(), {}});
  process.ask_later(std::move(about));
  for (std::size_t set = 0; set < Activations::calls; ++set) {
    process.ask_later(Writer(Ask::add_calls).put(binding).put_bytes(call));
  }
  (void)process.ask(Writer(Ask::complete).put(binding));
  const KernelProcess::Sets empty{{{}}, {{}}};
  std::vector<double> turns;
  std::vector<double> rings;
  std::vector<double> single;
  for (int i = 0; i < samples; ++i) {
    turns.push_back(us_of([&] { single.push_back(process.call(binding, {1, 0, 1}, empty)); }));
    rings.push_back(process.call(binding, {1000, 0, 1}, empty) / 1000);
  }
  print("a turn: awake, one call, asleep", turns);
  print("that call by the watch", single);
  print("a ring of the bell, one of a thousand", rings);
  for (const std::size_t kib : {8, 128, 2048}) {
    Activations activations(process, kib << 10);
    std::vector<double> calls;
    for (int i = 0; i < samples / 4; ++i) {
      calls.push_back(activations.us_per_call(process, binding));
    }
    print(fmt::format("the same with {} KiB of activations", kib).c_str(), calls);
  }
}

}  // namespace
}  // namespace thresher::arena::user_kernels

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: bench_call_server THRESHER\n");
    return 2;
  }
  thresher::arena::user_kernels::measure(argv[1]);
  return 0;
}
