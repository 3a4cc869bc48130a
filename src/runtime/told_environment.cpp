#include "runtime/told_environment.hpp"

#include <algorithm>
#include <array>
#include <string_view>

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace thresher::runtime {
namespace {

struct Name {
  std::string_view name;  ///< a final '*' matches all names with that prefix
  bool for_compilers;     ///< not only for kernels
};

constexpr std::array given{
    Name{"CUDA_DEVICE_ORDER", false},    Name{"CUDA_HOME", true},    Name{"CUDA_PATH", true},
    Name{"CUDA_VISIBLE_DEVICES", false}, Name{"LANG", false},        Name{"LC_*", false},
    Name{"LD_LIBRARY_PATH", true},       Name{"OMP_*", false},       Name{"PATH", true},
    Name{"THRESHER_LIBRARY_PATH", true}, Name{"TZ", false},
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    Name{"ASAN_OPTIONS", true},          Name{"TSAN_OPTIONS", true}, Name{"UBSAN_OPTIONS", true},
#endif
};

bool is_given(std::string_view name, Told whom) {
  return std::any_of(given.begin(), given.end(), [&](const Name& one) {
    const bool is_meant =
        one.name.ends_with('*') ? name.starts_with(one.name.substr(0, one.name.size() - 1)) : name == one.name;
    return is_meant && (whom == Told::kernel || one.for_compilers);
  });
}

}  // namespace

std::vector<std::string> environment_for(Told whom, std::initializer_list<std::pair<const char*, std::string>> own) {
  std::vector<std::string> told;
  for (const auto& [name, value] : own) {
    told.push_back(std::string(name) + "=" + value);
  }
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool is_set = std::any_of(own.begin(), own.end(), [&](const auto& one) { return one.first == name; });
    if (!is_set && is_given(name, whom)) {
      told.emplace_back(text);
    }
  }
  return told;
}

}  // namespace thresher::runtime
