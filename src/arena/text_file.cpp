#include "arena/text_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "thresher/error.hpp"

namespace thresher::arena {

std::optional<std::string> read_text(const std::filesystem::path& path) {
  std::error_code error;
  std::ifstream stream(path, std::ios::binary);
  if (!stream || std::filesystem::is_directory(path, error)) {
    return std::nullopt;
  }
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

void write_text(const std::filesystem::path& path, std::string_view text, std::string_view what) {
  const std::filesystem::path draft = path.string() + fmt::format(".{}.tmp", ::getpid());
  errno = 0;
  std::ofstream stream(draft, std::ios::binary | std::ios::trunc);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  std::error_code error;
  if (stream) {
    std::filesystem::rename(draft, path, error);
  } else {
    error = std::error_code(errno == 0 ? EIO : errno, std::generic_category());
  }
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(draft, ignored);
    throw Error(ErrorCode::io, fmt::format("{} {} cannot be written: {}", what, path.string(), error.message()));
  }
}

}  // namespace thresher::arena
