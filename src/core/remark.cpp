#include "core/remark.hpp"

namespace thresher {

void print_note(std::FILE* to, std::string_view text) noexcept {
  [[maybe_unused]] const std::size_t written = std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
}

}  // namespace thresher
