#include "arena/pitches/file_beneath.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "core/descriptor.hpp"
#include "core/printable.hpp"

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;

/// Opens the part without following a link. The descriptor refers to the same folder even if names change meanwhile.
Descriptor step(const Descriptor& folder, const fs::path& part) {
  return Descriptor(::openat(folder.value(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

bool is_link(const Descriptor& place) {
  struct stat status{};
  return ::fstat(place.value(), &status) == 0 && S_ISLNK(status.st_mode);
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
  Descriptor place(::open(folder.empty() ? "." : folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const fs::path& part : path) {
    if (place.value() < 0) {
      return unreadable_for(errno);
    }
    if (part.empty()) {
      return unreadable("it is not a regular file");
    }
    place = step(place, part);
    if (place.value() >= 0 && is_link(place)) {
      return unreadable(fmt::format("{} is a link, and only what lies in the pitch's folder itself is taken",
                                    quoted_name(part.string())));
    }
  }
  if (place.value() < 0) {
    return unreadable_for(errno);
  }
  return read_input_file(fmt::format("/proc/self/fd/{}", place.value()));
}

}  // namespace thresher::arena
