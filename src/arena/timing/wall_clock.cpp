#include "arena/timing/wall_clock.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "arena/timing/processor_use.hpp"

namespace thresher::arena {
namespace {

std::optional<double> read_number(const std::filesystem::path& path) {
  std::ifstream file(path);
  double value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

std::optional<double> cpu_clock_mhz() {
  if (const auto khz = read_number("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq")) {
    return *khz / 1000;
  }
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("cpu MHz")) {
      return std::stod(line.substr(line.find(':') + 1));
    }
  }
  return std::nullopt;
}

std::optional<double> hottest_zone_c() {
  std::optional<double> hottest;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/thermal", ignored)) {
    if (entry.path().filename().string().starts_with("thermal_zone")) {
      if (const auto millidegrees = read_number(entry.path() / "temp")) {
        hottest = std::max(hottest.value_or(-273.0), *millidegrees / 1000);
      }
    }
  }
  return hottest;
}

}  // namespace

Reading WallClock::measure(Runner& runner, const Batch& batch) {
  const ProcessorWatch waiting(0);
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t call = 0; call < batch.calls; ++call) {
    runner.run(Stream{}, batch.set_of(call));
  }
  const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - start;
  const double us_per_call = elapsed.count() / static_cast<double>(batch.calls);
  return {us_per_call, us_per_call, waiting.waited()};
}

std::string WallClock::unseen() const {
  return thread_uses(0) ? "" : "this system does not tell what threads wait for a processor";
}

void WallClock::rest(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

double WallClock::now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Telemetry WallClock::telemetry() {
  Telemetry telemetry;
  telemetry.clock_mhz = cpu_clock_mhz();
  telemetry.temperature_c = hottest_zone_c();
  return telemetry;
}

}  // namespace thresher::arena
