// What it costs to call a kernel in another process: an empty one, in batches of one call and of a thousand.
//
//   bench_call_server THRESHER     THRESHER: the command
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "arena/user_kernels/kernel_process.hpp"
#include "runtime/host_compiler.hpp"
#include "runtime/process.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

void print(const char* what, std::vector<double> us) {
  std::sort(us.begin(), us.end());
  const auto at = [&](double share) { return us[static_cast<std::size_t>(share * static_cast<double>(us.size() - 1))]; };
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
  process.ask_later(Writer(Ask::bind).put(binding));
  process.ask_later(Writer(Ask::add_calls).put(binding).put(thresher_own_dual_gemm{}));
  (void)process.ask(Writer(Ask::complete).put(binding));
  std::vector<double> turns;
  std::vector<double> rings;
  std::vector<double> single;
  for (int i = 0; i < samples; ++i) {
    turns.push_back(us_of([&] { single.push_back(process.call(binding, {1, 0, 1}, {{}})); }));
    rings.push_back(process.call(binding, {1000, 0, 1}, {{}}) / 1000);
  }
  print("a turn: awake, one call, asleep", turns);
  print("that call by the watch", single);
  print("a ring of the bell, one of a thousand", rings);
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
