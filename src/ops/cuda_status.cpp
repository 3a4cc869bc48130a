#include "ops/cuda_status.hpp"

#include <algorithm>
#include <vector>

#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "strategies/status_words.hpp"

namespace thresher::ops {

std::uint32_t status_flags(Stream stream, const void* workspace, std::size_t workspace_bytes, int ordinal) {
  runtime::synchronize(stream, ordinal);
  std::uint32_t count = 0;
  runtime::copy(&count, workspace, sizeof count, ordinal);
  std::vector<std::uint32_t> words(
      std::min<std::size_t>(std::size_t{count} + 1, workspace_bytes / sizeof(std::uint32_t)));
  runtime::copy(words.data(), workspace, words.size() * sizeof(std::uint32_t), ordinal);
  return strategies::flags_in(words);
}

}  // namespace thresher::ops
