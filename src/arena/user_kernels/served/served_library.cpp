// A user kernel for the CPU, in its process.
#include <dlfcn.h>
#include <fmt/format.h>

#include <unordered_map>

#include "arena/user_kernels/served/served.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

using Function = void (*)(const void* call);

class ServedLibrary final : public Served {
 public:
  explicit ServedLibrary(Function function) : function_(function) {}
  void bind(std::uint32_t binding, Reader&) override { calls_[binding].clear(); }
  void add_call(std::uint32_t binding, std::vector<std::byte> call) override {
    calls_.at(binding).push_back(std::move(call));
  }
  void complete(std::uint32_t) override {}
  void unbind(std::uint32_t binding) override { calls_.erase(binding); }
  void call(std::uint32_t binding, std::uint32_t set) override {
    call_ = calls_.at(binding).at(set);  // the kernel gets a copy
    function_(call_.data());
  }

 private:
  Function function_;
  std::vector<std::byte> call_;
  std::unordered_map<std::uint32_t, std::vector<std::vector<std::byte>>> calls_;
};

}  // namespace

std::unique_ptr<Served> serve_library(Reader& question) {
  const std::string object = question.text();
  const std::string entry = question.text();
  // It stays loaded, since it may have started threads.
  void* const library = ::dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(ErrorCode::unsupported, ::dlerror());
  }
  void* const symbol = ::dlsym(library, entry.c_str());
  if (symbol == nullptr) {
    throw Error(ErrorCode::compile, fmt::format("it has no extern \"C\" function {}", entry));
  }
  return std::make_unique<ServedLibrary>(reinterpret_cast<Function>(symbol));
}

}  // namespace thresher::arena::user_kernels
