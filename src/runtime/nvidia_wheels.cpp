#include "runtime/nvidia_wheels.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <string>
#include <system_error>

namespace thresher::runtime {
namespace {

namespace fs = std::filesystem;

bool starts_with(const fs::path& name, std::string_view prefix) { return name.filename().string().starts_with(prefix); }

bool holds_packages(const fs::path& folder) {
  return folder.filename() == "site-packages" || folder.filename() == "dist-packages";
}

/// The file that holds this function: libthresher.so or a program.
fs::path own_file() {
  Dl_info info{};
  std::error_code error;
  if (dladdr(reinterpret_cast<void*>(&own_wheel_folders), &info) != 0 && info.dli_fname != nullptr &&
      fs::path(info.dli_fname).is_absolute()) {
    return info.dli_fname;
  }
  return fs::read_symlink("/proc/self/exe", error);
}

class WheelFolders {
 public:
  explicit WheelFolders(std::string_view part) : part_(part) {}

  void add_packages(const fs::path& site_packages) {
    for (const fs::path& package : children(site_packages / "nvidia")) {
      std::error_code ignored;
      if (const fs::path folder = package / part_; fs::is_directory(folder, ignored)) {
        found_.push_back(folder);
      }
    }
  }

  void add_prefix(const fs::path& prefix) {
    for (const fs::path& lib : children(prefix / "lib")) {
      if (starts_with(lib, "python3")) {
        add_packages(lib / "site-packages");
        add_packages(lib / "dist-packages");
      }
    }
  }

  void add_own_packages() {
    for (fs::path folder = own_file().parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
      if (holds_packages(folder)) {
        add_packages(folder);
        return;
      }
    }
  }

  void add_fetched(const fs::path& cache) {
    for (const fs::path& environment : children(cache / "thresher" / "python")) {
      std::error_code ignored;
      if (starts_with(environment, "cuda-") && fs::exists(environment / "complete", ignored)) {
        add_prefix(environment);
      }
    }
  }

  std::vector<fs::path> take() { return std::move(found_); }

 private:
  std::string part_;
  std::vector<fs::path> found_;
};

}  // namespace

std::vector<fs::path> children(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (fs::directory_iterator entry(directory, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> path_list(const Environment& environment, const char* name) {
  std::vector<fs::path> entries;
  const char* value = environment(name);
  for (std::string_view rest = value == nullptr ? "" : value; !rest.empty();) {
    const std::size_t colon = rest.find(':');
    if (colon != 0) {
      entries.emplace_back(rest.substr(0, colon));
    }
    rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  }
  return entries;
}

std::vector<fs::path> own_wheel_folders(std::string_view part) {
  WheelFolders folders(part);
  folders.add_own_packages();
  return folders.take();
}

std::vector<fs::path> nvidia_wheel_folders(std::string_view part, const Environment& environment) {
  WheelFolders folders(part);
  for (const fs::path& entry : path_list(environment, "PYTHONPATH")) {
    if (entry.is_absolute()) {  // a relative entry is the working folder, whose files are not trusted
      folders.add_packages(entry);
    }
  }
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    for (const fs::path& prefix : path_list(environment, variable)) {
      folders.add_prefix(prefix);
    }
  }
  for (const fs::path& home : path_list(environment, "HOME")) {
    folders.add_prefix(home / ".local");
  }
  if (const char* cache = environment("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    folders.add_fetched(cache);
  } else if (const auto homes = path_list(environment, "HOME"); !homes.empty()) {
    folders.add_fetched(homes.front() / ".cache");
  }
  folders.add_prefix("/usr/local");
  folders.add_prefix("/usr");
  return folders.take();
}

}  // namespace thresher::runtime
