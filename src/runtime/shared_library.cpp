#include "runtime/shared_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <system_error>
#include <utility>

#include "runtime/nvidia_wheels.hpp"

namespace thresher::runtime {
namespace {

namespace fs = std::filesystem;

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
  for (const char* name : {"CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"}) {
    for (const fs::path& root : path_list(process_environment, name)) {
      candidates.push_back(root / "lib64");
      candidates.push_back(root / "lib");
    }
  }
  for (fs::path& wheel : own_wheel_folders("lib")) {
    candidates.push_back(std::move(wheel));
  }
  candidates.emplace_back("/usr/local/cuda/lib64");
  for (const fs::path& entry : children("/usr/local")) {
    if (entry.filename().string().starts_with("cuda-")) {
      candidates.push_back(entry / "lib64");
    }
  }
  candidates.emplace_back("/usr/local/nvidia/lib64");
  for (fs::path& wheel : nvidia_wheel_folders("lib")) {
    candidates.push_back(std::move(wheel));
  }

  std::vector<fs::path> existing;
  for (const fs::path& candidate : candidates) {
    std::error_code ignored;
    if (fs::is_directory(candidate, ignored)) {
      existing.push_back(candidate);
    }
  }
  return existing;
}

/// Opens one file after the other until one has every function and is accepted. Otherwise keeps the first that opened.
class SharedLibrary::Search {
 public:
  Search(const LibraryName& name, std::initializer_list<Symbol> symbols, const Accepts& accepts)
      : name_(name), symbols_(symbols), accepts_(accepts) {}

  /// True when the search is over.
  bool takes(const std::string& file) {
    SharedLibrary opened;
    opened.handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!opened.loaded()) {
      if (const char* failure = dlerror(); first_failure_.empty() && failure != nullptr) {
        first_failure_ = failure;
      }
      return false;
    }
    std::error_code ignored;
    opened.path_ = fs::absolute(file_of(opened.handle_, file), ignored).string();
    for (const Symbol& symbol : symbols_) {
      if (opened.symbol(symbol.name()) == nullptr) {
        opened.problem_ = std::string(name_.title) + " (" + opened.path_ + ") has no function " + symbol.name() + ": " +
                          std::string(name_.remedy_when_old.empty() ? name_.remedy : name_.remedy_when_old);
        break;
      }
    }
    const bool is_good = opened.problem_.empty() && (!accepts_ || accepts_(opened));
    if (!found_.loaded() || is_good) {
      found_ = opened;
    }
    return is_good;
  }

  bool takes_from(const fs::path& directory) {
    for (const std::string_view file : name_.file_names) {
      std::error_code ignored;
      const fs::path candidate = directory / file;
      if (fs::exists(candidate, ignored) && takes(candidate.string())) {
        return true;
      }
    }
    return false;
  }

  void run() {
    for (const fs::path& directory : path_list(process_environment, "THRESHER_LIBRARY_PATH")) {
      if (takes_from(directory)) {
        return;
      }
    }
    for (const std::string_view file : name_.file_names) {
      if (takes(std::string(file))) {
        return;
      }
    }
    for (const fs::path& directory : search_directories()) {
      if (takes_from(directory)) {
        return;
      }
    }
  }

  SharedLibrary result() {
    if (!found_.loaded()) {
      found_.problem_ =
          std::string(name_.title) + " could not be loaded (" + first_failure_ + "): " + std::string(name_.remedy);
    }
    return found_;
  }

 private:
  const LibraryName& name_;
  std::initializer_list<Symbol> symbols_;
  const Accepts& accepts_;
  std::string first_failure_;
  SharedLibrary found_;
};

SharedLibrary SharedLibrary::open(const LibraryName& name, std::initializer_list<Symbol> symbols,
                                  const Accepts& accepts) {
  Search search(name, symbols, accepts);
  search.run();
  SharedLibrary library = search.result();
  for (const Symbol& symbol : symbols) {
    symbol.set(library.symbol(symbol.name()));
  }
  return library;
}

void* SharedLibrary::symbol(const char* symbol_name) const noexcept {
  return handle_ == nullptr ? nullptr : dlsym(handle_, symbol_name);
}

}  // namespace thresher::runtime
