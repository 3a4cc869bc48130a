#include "runtime/nvrtc.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <sstream>
#include <system_error>

#include "runtime/driver.hpp"
#include "runtime/shared_library.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {
namespace {

// NVRTC's interface, which has not changed since CUDA 11.1; declared here so that its header is not needed.
using NvrtcProgram = struct OpaqueNvrtcProgram*;
using NvrtcResult = int;
constexpr NvrtcResult nvrtc_success = 0;

struct NvrtcApi {
  const char* (*error_string)(NvrtcResult) = nullptr;
  NvrtcResult (*version)(int*, int*) = nullptr;
  NvrtcResult (*supported_count)(int*) = nullptr;
  NvrtcResult (*supported)(int*) = nullptr;
  NvrtcResult (*create)(NvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  NvrtcResult (*destroy)(NvrtcProgram*) = nullptr;
  NvrtcResult (*compile)(NvrtcProgram, int, const char* const*) = nullptr;
  NvrtcResult (*cubin_size)(NvrtcProgram, std::size_t*) = nullptr;
  NvrtcResult (*cubin)(NvrtcProgram, char*) = nullptr;
  NvrtcResult (*log_size)(NvrtcProgram, std::size_t*) = nullptr;
  NvrtcResult (*log)(NvrtcProgram, char*) = nullptr;
  NvrtcResult (*add_name)(NvrtcProgram, const char*) = nullptr;
  NvrtcResult (*lowered_name)(NvrtcProgram, const char*, const char**) = nullptr;
};

struct Nvrtc {
  NvrtcStatus status;
  NvrtcApi api;
};

constexpr int oldest_nvrtc = 12000;  // the first that knows sm_90a

bool is_new_enough(const SharedLibrary& library) {
  const auto version = reinterpret_cast<decltype(NvrtcApi::version)>(library.symbol("nvrtcVersion"));
  int major = 0;
  int minor = 0;
  return version != nullptr && version(&major, &minor) == nvrtc_success && major * 1000 + minor * 10 >= oldest_nvrtc;
}

/// NVRTC loads its built-in functions by name, and finds them beside itself only if the loader searches there. If they
/// are already loaded from its folder, the name is enough. False when there are none.
bool load_builtins(const SharedLibrary& library) {
  bool loaded = false;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(std::filesystem::path(library.path()).parent_path(), ignored), end;
       !ignored && entry != end; entry.increment(ignored)) {
    if (entry->path().filename().string().starts_with("libnvrtc-builtins.so.")) {
      loaded = dlopen(entry->path().c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr || loaded;
    }
  }
  return loaded;
}

/// A library without its built-in functions cannot compile, so the search must continue.
bool is_usable(const SharedLibrary& library) { return is_new_enough(library) && load_builtins(library); }

constexpr std::string_view remedy =
    "install NVIDIA's NVRTC 12 or newer (a CUDA toolkit, or pip install nvidia-cuda-nvrtc), or point "
    "THRESHER_LIBRARY_PATH to its folder";

Nvrtc load_nvrtc() {
  Nvrtc nvrtc;
  NvrtcApi& api = nvrtc.api;
  const SharedLibrary library =
      SharedLibrary::open({"NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}, remedy},
                          {{"nvrtcGetErrorString", api.error_string},
                           {"nvrtcVersion", api.version},
                           {"nvrtcGetNumSupportedArchs", api.supported_count},
                           {"nvrtcGetSupportedArchs", api.supported},
                           {"nvrtcCreateProgram", api.create},
                           {"nvrtcDestroyProgram", api.destroy},
                           {"nvrtcCompileProgram", api.compile},
                           {"nvrtcGetCUBINSize", api.cubin_size},
                           {"nvrtcGetCUBIN", api.cubin},
                           {"nvrtcGetProgramLogSize", api.log_size},
                           {"nvrtcGetProgramLog", api.log},
                           {"nvrtcAddNameExpression", api.add_name},
                           {"nvrtcGetLoweredName", api.lowered_name}},
                          is_usable);
  nvrtc.status.library_path = library.path();
  nvrtc.status.problem = library.problem();
  if (!nvrtc.status.problem.empty()) {
    return nvrtc;
  }
  int major = 0;
  int minor = 0;
  nvrtc.api.version(&major, &minor);
  nvrtc.status.version = major * 1000 + minor * 10;
  if (nvrtc.status.version < oldest_nvrtc) {
    nvrtc.status.problem = "NVRTC " + version_text(nvrtc.status.version) + " (" + library.path() +
                           ") is too old, Thresher needs 12.0: " + std::string(remedy);
  }
  return nvrtc;
}

const Nvrtc& loaded_nvrtc() {
  static const Nvrtc* nvrtc = new Nvrtc(load_nvrtc());  // never destroyed: used by threads that outlive main
  return *nvrtc;
}

const NvrtcApi& api() {
  const Nvrtc& nvrtc = loaded_nvrtc();
  if (!nvrtc.status.problem.empty()) {
    throw Error(ErrorCode::unsupported, nvrtc.status.problem);
  }
  return nvrtc.api;
}

/// One NVRTC program object.
class Session {
 public:
  explicit Session(const Program& program) : title_(program.title) {
    std::vector<std::string> names;
    std::vector<std::string> texts;
    for (const EmbeddedFile& header : program.headers) {
      names.emplace_back(header.name);
      texts.emplace_back(header.text);
    }
    std::vector<const char*> name_pointers;
    std::vector<const char*> text_pointers;
    for (std::size_t i = 0; i < names.size(); ++i) {
      name_pointers.push_back(names[i].c_str());
      text_pointers.push_back(texts[i].c_str());
    }
    require(api().create(&program_, program.text.c_str(), (program.title + ".cu").c_str(),
                         static_cast<int>(names.size()), text_pointers.data(), name_pointers.data()));
    for (const std::string& kernel : program.kernels) {
      require(api().add_name(program_, kernel.c_str()));
    }
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { api().destroy(&program_); }

  NvrtcResult compile(std::span<const std::string> options) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) {
      pointers.push_back(option.c_str());
    }
    return api().compile(program_, static_cast<int>(pointers.size()), pointers.data());
  }

  [[nodiscard]] std::string log() const {
    std::size_t bytes = 0;
    require(api().log_size(program_, &bytes));
    std::string text(bytes, '\0');
    require(api().log(program_, text.data()));
    text.resize(text.find_last_not_of(std::string_view("\0\n", 2)) + 1);
    return text;
  }

  [[nodiscard]] std::vector<std::byte> image() const {
    std::size_t bytes = 0;
    require(api().cubin_size(program_, &bytes));
    std::vector<std::byte> cubin(bytes);
    require(api().cubin(program_, reinterpret_cast<char*>(cubin.data())));
    return cubin;
  }

  [[nodiscard]] std::string lowered_name(const std::string& expression) const {
    const char* lowered = nullptr;
    require(api().lowered_name(program_, expression.c_str(), &lowered));
    return lowered;
  }

 private:
  void require(NvrtcResult result) const {
    if (result != nvrtc_success) {
      throw Error(ErrorCode::compile, "NVRTC could not take " + title_ + " (" + api().error_string(result) + ")");
    }
  }
  std::string title_;
  NvrtcProgram program_ = nullptr;
};

/// NVRTC lists architectures as numbers: 90 covers sm_90 and sm_90a.
void require_arch(const std::string& arch) {
  int count = 0;
  api().supported_count(&count);
  std::vector<int> known(static_cast<std::size_t>(count));
  api().supported(known.data());
  const bool is_known = std::any_of(known.begin(), known.end(), [&](int number) {
    const std::string base = "sm_" + std::to_string(number);
    return arch.starts_with(base) && arch.size() <= base.size() + 1 &&
           (arch.size() == base.size() || arch.back() == 'a' || arch.back() == 'f');
  });
  if (!is_known) {
    throw Error(ErrorCode::unsupported, nvrtc_toolchain() + " (" + nvrtc_status().library_path +
                                            ") does not know the architecture " + arch + ": use a newer NVRTC");
  }
}

ResourceReport report_of(std::span<const NamedReport> reports, const std::string& lowered_name) {
  const auto found = std::find_if(reports.begin(), reports.end(),
                                  [&](const NamedReport& report) { return report.lowered_name == lowered_name; });
  if (found == reports.end()) {
    throw Error(ErrorCode::internal, "the compiler's log has no resource report of " + lowered_name);
  }
  return found->resources;
}

}  // namespace

const NvrtcStatus& nvrtc_status() noexcept { return loaded_nvrtc().status; }

std::span<const std::string_view> standard_options() noexcept {
  static constexpr std::array<std::string_view, 3> options{"--std=c++20", "--ptxas-options=-v",
                                                           "--device-as-default-execution-space"};
  return options;
}

std::string nvrtc_toolchain() {
  api();
  return "NVRTC " + version_text(nvrtc_status().version);
}

namespace {

/// One run of the compiler; the caller checks whether it succeeded.
struct Attempt {
  Attempt(const Program& program, std::span<const std::string> options)
      : session(program), succeeded(session.compile(options) == nvrtc_success), log(session.log()) {}

  /// NVRTC has its own cache, whose results have no ptxas log.
  [[nodiscard]] bool has_report() const { return log.find("Compiling entry function") != std::string::npos; }

  Session session;
  bool succeeded;
  std::string log;
};

/// The first lines with errors, and the number of further ones; the whole log if no line has an error.
std::string first_errors(const std::string& log) {
  constexpr int max_errors = 3;
  std::string told;
  int errors = 0;
  int left_out = 0;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const bool is_error = line.find("error") != std::string::npos;
    if (is_error && errors < max_errors) {
      told += (errors++ == 0 ? "" : "\n") + line;
    } else {
      ++left_out;
    }
  }
  return errors == 0     ? log
         : left_out == 0 ? told
                         : told + "\n(" + std::to_string(left_out) + " more lines of the compiler are left out)";
}

void require_good(const Program& program, const Attempt& attempt) {
  if (const std::string file = attempt.succeeded ? "" : missing_builtins(attempt.log); !file.empty()) {
    const NvrtcStatus& nvrtc = nvrtc_status();
    throw Error(ErrorCode::unsupported, nvrtc_toolchain() + " (" + nvrtc.library_path + ") cannot open " + file +
                                            ", which belongs beside it: " + std::string(remedy));
  }
  if (!attempt.succeeded) {
    throw Error(ErrorCode::compile, program.title + " did not compile for " + program.arch + " with " +
                                        nvrtc_toolchain() + ":\n" + first_errors(attempt.log));
  }
  if (const std::string_view line = performance_failure(attempt.log); !line.empty()) {
    throw Error(ErrorCode::compile, program.title + " compiled badly for " + program.arch + ": " + std::string(line));
  }
}

}  // namespace

Cubin compile(const Program& program) {
  require_arch(program.arch);
  std::vector<std::string> options(standard_options().begin(), standard_options().end());
  options.push_back("--gpu-architecture=" + program.arch);
  options.insert(options.end(), program.options.begin(), program.options.end());

  auto attempt = std::make_unique<Attempt>(program, options);
  if (attempt->succeeded && !attempt->has_report()) {
    options.emplace_back("--no-cache");
    attempt = std::make_unique<Attempt>(program, options);
  }
  require_good(program, *attempt);
  Cubin cubin;
  cubin.log = without_times(attempt->log);
  cubin.image = attempt->session.image();
  cubin.arch = program.arch;
  cubin.toolchain = nvrtc_toolchain();
  const std::vector<NamedReport> reports = parse_resource_log(cubin.log);
  for (const std::string& expression : program.kernels) {
    CompiledKernel kernel{expression, attempt->session.lowered_name(expression), {}};
    kernel.resources = report_of(reports, kernel.lowered_name);
    cubin.kernels.push_back(std::move(kernel));
  }
  return cubin;
}

std::string nvrtc_trial() {
  try {
    (void)compile({.title = "an empty kernel",
                   .text = "__global__ void nothing() {}",
                   .headers = {},
                   .kernels = {"nothing"},
                   .options = {}});
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace thresher::runtime
