#include "arena/timing/processor_use.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

namespace thresher::arena {
namespace {

/// A thread that ran or waited for a smaller share of the time hardly needed a processor.
constexpr double share_of_who_wants_to_run = 0.05;

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::optional<ThreadUse> use_of_thread(const std::filesystem::path& folder) {
  std::ifstream file(folder / "schedstat");
  ThreadUse use;
  return file >> use.ran_ns >> use.waited_ns >> use.runs ? std::optional(use) : std::nullopt;
}

/// The use since `before`; all of it where another thread had its number before.
ThreadUse since(const ThreadUse& now, const ThreadUse* before) {
  if (before == nullptr || now.ran_ns < before->ran_ns || now.waited_ns < before->waited_ns ||
      now.runs < before->runs) {
    return now;
  }
  return {now.ran_ns - before->ran_ns, now.waited_ns - before->waited_ns, now.runs - before->runs};
}

}  // namespace

std::optional<ThreadUses> thread_uses(pid_t process, const std::filesystem::path& proc) {
  const std::filesystem::path tasks = proc / (process == 0 ? "self" : std::to_string(process)) / "task";
  ThreadUses uses;
  std::error_code gone;
  std::filesystem::directory_iterator task(tasks, gone);
  for (; !gone && task != std::filesystem::directory_iterator(); task.increment(gone)) {
    const std::string name = task->path().filename().string();
    pid_t thread = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), thread).ec != std::errc()) {
      continue;
    }
    if (const std::optional<ThreadUse> use = use_of_thread(task->path())) {
      uses[thread] = *use;  // otherwise it ended a moment ago, or the kernel does not count
    }
  }
  return uses.empty() ? std::nullopt : std::optional(std::move(uses));
}

std::optional<double> waited_share(const ThreadUses& before, const ThreadUses& after, double passed_us,
                                   unsigned processors) {
  double waited_us = 0;
  unsigned want_to_run = 0;
  for (const auto& [thread, now] : after) {
    const auto known = before.find(thread);
    const ThreadUse use = since(now, known == before.end() ? nullptr : &known->second);
    const double waking = static_cast<double>(use.runs) * waking_us;
    const double waited = static_cast<double>(use.waited_ns) * 1e-3;
    waited_us += waited > waking ? waited - waking : 0;
    const double wanted_us = static_cast<double>(use.ran_ns) * 1e-3 + waited;
    want_to_run += wanted_us > share_of_who_wants_to_run * passed_us ? 1 : 0;
  }
  if (want_to_run > processors) {
    return std::nullopt;
  }
  return passed_us > 0 ? waited_us / passed_us : 0;
}

unsigned usable_processors() {
  cpu_set_t processors{};
  const bool known = ::sched_getaffinity(0, sizeof(processors), &processors) == 0;
  return known ? static_cast<unsigned>(CPU_COUNT(&processors)) : std::max(1U, std::thread::hardware_concurrency());
}

ProcessorWatch::ProcessorWatch(pid_t process) : process_(process), before_(thread_uses(process)), start_us_(now_us()) {}

std::optional<double> ProcessorWatch::waited() const {
  const double passed_us = now_us() - start_us_;
  const std::optional<ThreadUses> after = thread_uses(process_);
  return before_ && after ? waited_share(*before_, *after, passed_us, usable_processors()) : std::nullopt;
}

}  // namespace thresher::arena
