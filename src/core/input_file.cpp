#include "core/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/descriptor.hpp"

namespace thresher {
namespace {

InputFile above(std::uint64_t max_bytes) {
  return unreadable(fmt::format("it has more than the {} bytes that such a file may have", max_bytes));
}

}  // namespace

InputFile unreadable(const std::string& why) { return {std::nullopt, "the file cannot be read: " + why}; }

InputFile unreadable_for(int error_number) { return unreadable(std::generic_category().message(error_number)); }

InputFile read_input_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status{};
  if (file.value() < 0 || ::fstat(file.value(), &status) != 0) {
    return unreadable_for(errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return unreadable("it is not a regular file");
  }
  if (static_cast<std::uint64_t>(status.st_size) > max_bytes) {
    return above(max_bytes);
  }
  // The file may grow while it is read: at most one byte above the limit is read.
  std::string bytes(static_cast<std::size_t>(status.st_size) + 1, '\0');
  std::size_t filled = 0;
  for (;;) {
    const ssize_t count = ::read(file.value(), bytes.data() + filled, bytes.size() - filled);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return unreadable_for(errno);
    }
    filled += static_cast<std::size_t>(count);
    if (filled > max_bytes) {
      return above(max_bytes);
    }
    if (count == 0) {
      break;
    }
    if (filled == bytes.size()) {
      bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(2 * bytes.size(), max_bytes + 1)));
    }
  }
  bytes.resize(filled);
  return {std::move(bytes), ""};
}

}  // namespace thresher
