#include "arena/rig/machine_info.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "thresher/device.hpp"

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The value of the first line that starts with `key`, without quotes.
std::string value_in(const fs::path& path, std::string_view key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) {
      std::string value = line.substr(line.find(separator) + 1);
      value.erase(0, value.find_first_not_of(" \t\""));
      value.erase(value.find_last_not_of(" \t\"") + 1);
      return value;
    }
  }
  return {};
}

std::size_t size_in_bytes(const std::string& text) {
  std::size_t value = 0;
  char unit = 0;
  std::istringstream(text) >> value >> unit;
  return value << (unit == 'K' ? 10U : unit == 'M' ? 20U : unit == 'G' ? 30U : 0U);
}

/// The highest level's caches, each counted once even if several processors share it.
std::size_t last_level_cache_bytes() {
  std::map<int, std::map<std::string, std::size_t>> by_level;  // level → shared_cpu_list → bytes
  std::error_code ignored;
  for (const auto& processor : fs::directory_iterator("/sys/devices/system/cpu", ignored)) {
    for (const auto& index : fs::directory_iterator(processor.path() / "cache", ignored)) {
      const std::string level = first_line(index.path() / "level");
      if (!level.empty()) {
        by_level[std::stoi(level)][first_line(index.path() / "shared_cpu_list")] =
            size_in_bytes(first_line(index.path() / "size"));
      }
    }
  }
  std::size_t bytes = 0;
  if (!by_level.empty()) {
    for (const auto& [processors, size] : by_level.rbegin()->second) {
      bytes += size;
    }
  }
  return bytes;
}

double clock_mhz() {
  const std::string khz = first_line("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  const std::string mhz = khz.empty() ? value_in("/proc/cpuinfo", "cpu MHz", ':') : "";
  return !khz.empty() ? std::stod(khz) / 1000 : !mhz.empty() ? std::stod(mhz) : 0;
}

MachineInfo read_machine() {
  constexpr std::array interesting{"avx2",     "fma",   "avx512f", "avx512_bf16", "avx512_fp16",
                                   "amx_bf16", "asimd", "asimdhp", "bf16",        "sve"};
  MachineInfo info;
  info.cpu = Device::cpu().name();
  info.processors = static_cast<int>(std::thread::hardware_concurrency());
  info.memory_bytes =
      static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  info.last_level_cache_bytes = last_level_cache_bytes();
  info.clock_mhz = clock_mhz();
  info.operating_system = value_in("/etc/os-release", "PRETTY_NAME", '=');
  utsname names{};
  if (::uname(&names) == 0) {
    info.kernel = fmt::format("{} {}", names.sysname, names.release);
  }
  std::string flags = value_in("/proc/cpuinfo", "flags", ':');
  if (flags.empty()) {
    flags = value_in("/proc/cpuinfo", "Features", ':');
  }
  std::istringstream words(flags);
  std::set<std::string> known;
  for (std::string word; words >> word;) {
    known.insert(word);
  }
  info.is_virtual = known.contains("hypervisor");
  for (const char* instruction : interesting) {
    if (known.contains(instruction)) {
      info.instructions += info.instructions.empty() ? instruction : std::string(" ") + instruction;
    }
  }
  return info;
}

}  // namespace

std::string host_name() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "";
}

const MachineInfo& machine_info() {
  static const MachineInfo info = read_machine();
  return info;
}

}  // namespace thresher::arena
