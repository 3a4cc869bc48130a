#include "arena/pitches/file_beneath.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "core/printable.hpp"

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;

/// A place in the file system that stays the same, whatever is renamed or replaced meanwhile.
class Place {
 public:
  explicit Place(int descriptor) : descriptor_(descriptor) {}
  Place(Place&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Place& operator=(Place&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Place() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
  }
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

InputFile unreadable(const std::string& why) { return {std::nullopt, "the file cannot be read: " + why}; }

InputFile unreadable_for(int error_number) { return unreadable(std::generic_category().message(error_number)); }

/// Opened without following it, should it be a link.
Place step(const Place& folder, const fs::path& part) {
  return Place(::openat(folder.descriptor(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

bool is_link(const Place& place) {
  struct stat status{};
  return ::fstat(place.descriptor(), &status) == 0 && S_ISLNK(status.st_mode);
}

}  // namespace

std::string beneath_obstacle(const fs::path& path) {
  if (path.is_absolute()) {
    return "which is no path from the pitch's folder on";
  }
  for (const fs::path& part : path) {
    if (part == "..") {
      return "which leads out of the pitch's folder";
    }
  }
  return path.native().find('\0') == std::string::npos ? "" : "which holds a NUL character";
}

InputFile read_beneath(const fs::path& folder, const fs::path& path) {
  if (const std::string obstacle = beneath_obstacle(path); !obstacle.empty()) {
    return {std::nullopt, obstacle};
  }
  Place place(::open(folder.empty() ? "." : folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const fs::path& part : path) {
    if (place.descriptor() < 0) {
      return unreadable_for(errno);
    }
    if (part.empty()) {
      return unreadable("it is not a regular file");
    }
    place = step(place, part);
    if (place.descriptor() >= 0 && is_link(place)) {
      return unreadable(fmt::format("{} is a link, and only what lies in the pitch's folder itself is taken",
                                    quoted_name(part.string())));
    }
  }
  if (place.descriptor() < 0) {
    return unreadable_for(errno);
  }
  return read_input_file(fmt::format("/proc/self/fd/{}", place.descriptor()));
}

}  // namespace thresher::arena
