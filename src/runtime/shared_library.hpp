#pragma once
/// Libraries that are loaded on first use, so that one binary runs with and without them.
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace thresher::runtime {

/// The names of a library, and the remedy for a user who lacks it.
struct LibraryName {
  std::string_view title;                    ///< "NVRTC"
  std::vector<std::string_view> file_names;  ///< newest first, e.g. "libnvrtc.so.13"
  std::string_view remedy;                   ///< when it is missing, an imperative clause
  std::string_view remedy_when_old{};        ///< when it lacks a function; `remedy` if empty
};

/// A function of a library by name, and the pointer that receives it.
class Symbol {
 public:
  template <class Function>
  Symbol(const char* name, Function*& pointer)
      : name_(name), pointer_(&pointer), set_([](void* where, void* address) {
          *static_cast<Function**>(where) = reinterpret_cast<Function*>(address);
        }) {}
  [[nodiscard]] const char* name() const noexcept { return name_; }
  void set(void* address) const { set_(pointer_, address); }

 private:
  const char* name_;
  void* pointer_;
  void (*set_)(void* where, void* address);
};

/// An opened library, or the reason why there is none. Never unloaded: its functions live as long as the process.
class SharedLibrary {
 public:
  /// Searches THRESHER_LIBRARY_PATH, then the loader's paths, then `search_directories()`, for the first library that
  /// has all `symbols` and that `accepts` accepts. If there is none, it takes the first that can be loaded. Sets the
  /// pointers of `symbols`, to null if the library lacks the function. Does not throw.
  using Accepts = std::function<bool(const SharedLibrary&)>;
  static SharedLibrary open(const LibraryName& name, std::initializer_list<Symbol> symbols = {},
                            const Accepts& accepts = {});

  [[nodiscard]] bool loaded() const noexcept { return handle_ != nullptr; }
  /// The loaded file; empty when not loaded.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// One sentence: what is missing, the searched folders and the remedy; empty when it is loaded and has every symbol.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  /// Null when the library has no such symbol.
  [[nodiscard]] void* symbol(const char* symbol_name) const noexcept;

 private:
  class Search;

  void* handle_ = nullptr;
  std::string path_;
  std::string problem_;
};

/// Existing folders outside the loader's path where CUDA libraries are commonly installed. They are CUDA_HOME,
/// CUDA_PATH, those of `own_wheel_folders`, /usr/local/cuda*, and those of `nvidia_wheel_folders`.
std::vector<std::filesystem::path> search_directories();

}  // namespace thresher::runtime
