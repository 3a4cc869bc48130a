#include "runtime/shared_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <system_error>

namespace thresher::runtime {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> path_list(const char* variable) {
  std::vector<fs::path> entries;
  const char* value = std::getenv(variable);
  for (std::string_view rest = value == nullptr ? "" : value; !rest.empty();) {
    const std::size_t colon = rest.find(':');
    if (colon != 0) {
      entries.emplace_back(rest.substr(0, colon));
    }
    rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  }
  return entries;
}

std::vector<fs::path> children(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (fs::directory_iterator entry(directory, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    found.push_back(entry->path());
  }
  return found;
}

/// Library folders of the nvidia-* wheels: site-packages/nvidia/NAME/lib.
void add_wheels(const fs::path& site_packages, std::vector<fs::path>& directories) {
  for (const fs::path& package : children(site_packages / "nvidia")) {
    directories.push_back(package / "lib");
  }
}

void add_python_prefix(const fs::path& prefix, std::vector<fs::path>& directories) {
  for (const fs::path& lib : children(prefix / "lib")) {
    if (lib.filename().string().starts_with("python3")) {
      add_wheels(lib / "site-packages", directories);
      add_wheels(lib / "dist-packages", directories);
    }
  }
}

std::string file_of(void* handle, std::string_view fallback) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name[0] != '\0') {
    return map->l_name;
  }
  return std::string(fallback);
}

}  // namespace

std::vector<fs::path> search_directories() {
  std::vector<fs::path> candidates;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"}) {
    for (const fs::path& root : path_list(variable)) {
      candidates.push_back(root / "lib64");
      candidates.push_back(root / "lib");
    }
  }
  candidates.emplace_back("/usr/local/cuda/lib64");
  for (const fs::path& entry : children("/usr/local")) {
    if (entry.filename().string().starts_with("cuda-")) {
      candidates.push_back(entry / "lib64");
    }
  }
  candidates.emplace_back("/usr/local/nvidia/lib64");
  for (const fs::path& entry : path_list("PYTHONPATH")) {
    add_wheels(entry, candidates);
  }
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    for (const fs::path& prefix : path_list(variable)) {
      add_python_prefix(prefix, candidates);
    }
  }
  for (const fs::path& home : path_list("HOME")) {
    add_python_prefix(home / ".local", candidates);
  }
  add_python_prefix("/usr/local", candidates);
  add_python_prefix("/usr", candidates);

  std::vector<fs::path> existing;
  for (const fs::path& candidate : candidates) {
    std::error_code ignored;
    if (fs::is_directory(candidate, ignored)) {
      existing.push_back(candidate);
    }
  }
  return existing;
}

void SharedLibrary::load(const LibraryName& name) {
  std::string first_failure;
  const auto try_open = [&](const std::string& file) {
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      path_ = file_of(handle_, file);
    } else if (const char* failure = dlerror(); first_failure.empty() && failure != nullptr) {
      first_failure = failure;
    }
    return loaded();
  };
  const auto try_directory = [&](const fs::path& directory) {
    for (const std::string_view file : name.file_names) {
      std::error_code ignored;
      const fs::path candidate = directory / file;
      if (fs::exists(candidate, ignored) && try_open(candidate.string())) {
        return true;
      }
    }
    return false;
  };

  for (const fs::path& directory : path_list("THRESHER_LIBRARY_PATH")) {
    if (try_directory(directory)) {
      return;
    }
  }
  for (const std::string_view file : name.file_names) {
    if (try_open(std::string(file))) {
      return;
    }
  }
  for (const fs::path& directory : search_directories()) {
    if (try_directory(directory)) {
      return;
    }
  }
  problem_ = std::string(name.title) + " could not be loaded (" + first_failure + "): " + std::string(name.remedy);
}

SharedLibrary SharedLibrary::open(const LibraryName& name, std::initializer_list<Symbol> symbols) {
  SharedLibrary library;
  library.load(name);
  for (const Symbol& symbol : symbols) {
    void* const address = library.symbol(symbol.name());
    symbol.set(address);
    if (address == nullptr && library.problem_.empty()) {
      library.problem_ = std::string(name.title) + " (" + library.path_ + ") has no function " + symbol.name() + ": " +
                         std::string(name.remedy_when_old.empty() ? name.remedy : name.remedy_when_old);
    }
  }
  return library;
}

void* SharedLibrary::symbol(const char* symbol_name) const noexcept {
  return handle_ == nullptr ? nullptr : dlsym(handle_, symbol_name);
}

}  // namespace thresher::runtime
