#include "arena/user_kernels/line/kernel_confinement.hpp"

#include "arena/rig/memory.hpp"

namespace thresher::arena::user_kernels {

runtime::Confinement confinement_of_kernels(std::vector<std::filesystem::path> readable) {
  constexpr double share_of_memory = 0.75;
  runtime::Confinement wanted;
  wanted.readable = std::move(readable);
  wanted.limits.data_bytes =
      static_cast<std::uint64_t>(share_of_memory * static_cast<double>(HostMemory().available_bytes()));
  wanted.limits.more_processes = 4096;
  wanted.limits.file_bytes = std::uint64_t{1} << 20;
  wanted.limits.open_files = 256;
  return wanted;
}

}  // namespace thresher::arena::user_kernels
