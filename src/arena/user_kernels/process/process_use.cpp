#include "arena/user_kernels/process/process_use.hpp"

#include <fstream>
#include <string>

namespace thresher::arena::user_kernels {

std::optional<ProcessUse> use_of(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  std::optional<ProcessUse> use;
  for (std::string name; status >> name;) {
    std::uint64_t value = 0;
    if (name == "RssAnon:" || name == "VmPTE:" || name == "VmSwap:") {
      use = use.value_or(ProcessUse{});
      use->memory_bytes += status >> value ? value << 10 : 0;  // in units of 1024 bytes
    } else if (name == "Threads:" && use && status >> value) {
      use->threads = value;
    }
  }
  return use;
}

}  // namespace thresher::arena::user_kernels
