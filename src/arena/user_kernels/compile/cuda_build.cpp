#include "arena/user_kernels/compile/cuda_build.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "arena/operations.hpp"
#include "arena/pitches/call_structure.hpp"
#include "arena/pitches/kernel_options.hpp"
#include "arena/text_file.hpp"
#include "arena/user_kernels/compile/host_toolchain.hpp"
#include "arena/user_kernels/compile/include_lines.hpp"
#include "arena/user_kernels/compile/toolkit.hpp"
#include "core/input_file.hpp"
#include "embedded/own_kernel_files.hpp"
#include "runtime/process.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::uint64_t max_image_bytes = std::uint64_t{256} << 20;
constexpr std::uint64_t max_request_bytes = 8 * max_text_bytes;  // a text whose every byte is escaped
constexpr std::string_view own_header = "thresher/own_kernel.h";
constexpr std::string_view own_header_folder = "thresher/";

runtime::Confinement confinement_in(const fs::path& folder) {
  runtime::Confinement confinement;
  confinement.writable = {folder / "out"};
  confinement.readable = {folder, toolkit_headers()};
  if (const fs::path library = runtime::nvrtc_status().library_path; library.is_absolute()) {
    confinement.readable.push_back(library.parent_path());
    confinement.readable.push_back(fs::weakly_canonical(library).parent_path());
  }
  confinement.limits.data_bytes = std::uint64_t{8} << 30;
  confinement.limits.more_processes = 256;
  confinement.limits.file_bytes = std::uint64_t{256} << 20;
  confinement.limits.cpu_s = 240;
  confinement.limits.open_files = 1024;
  return confinement;
}

/// Follows the includes of a kernel as written, even those that a condition leaves out. Files beside the kernel are
/// copied; the compiler can read nothing else.
class Includes {
 public:
  Includes(const Kernel& kernel, const fs::path& to)
      : origin_(fs::path(kernel.source).parent_path()), toolkit_(toolkit_headers()), beside_(origin_, to) {
    folders_.push_back(origin_);
    for (const std::string& option : kernel.options) {
      if (const auto folder = include_folder(option)) {
        folders_.push_back(origin_ / *folder);
      }
    }
    follow(kernel.text, origin_);
  }

  [[nodiscard]] std::vector<fs::path> system_files() const { return {toolkit_files_.begin(), toolkit_files_.end()}; }
  [[nodiscard]] std::vector<SourceFile> files() && { return std::move(beside_).sorted(); }

 private:
  void follow(const std::string& text, const fs::path& folder) {
    for (const std::string& what : include_lines(text)) {
      const std::string name = name_in(what);
      if (name.empty()) {
        throw Error(ErrorCode::compile,
                    fmt::format("it includes {}: a file is kept only when it is named in quotes", what));
      }
      take(name, folder);
    }
  }

  /// The name in "name" or <name>; empty for anything else.
  static std::string name_in(const std::string& what) {
    const char close = what.starts_with('"') ? '"' : what.starts_with('<') ? '>' : '\0';
    const std::size_t end = close == '\0' ? std::string::npos : what.find(close, 1);
    return end == std::string::npos ? "" : what.substr(1, end - 1);
  }

  void take(const std::string& name, const fs::path& folder) {
    if (name == own_header) {
      return;
    }
    std::vector<fs::path> places{folder / name};
    for (const fs::path& other : folders_) {
      places.push_back(other / name);
    }
    std::error_code ignored;
    for (const fs::path& place : places) {
      if (fs::is_regular_file(place, ignored)) {
        follow_beside(place, name);
        return;
      }
    }
    if (!toolkit_.empty() && fs::is_regular_file(toolkit_ / name, ignored)) {
      follow_toolkit(toolkit_ / name, name);
    }  // otherwise NVRTC has it built in, or reports that it is missing
  }

  void follow_beside(const fs::path& file, const std::string& name) {
    const fs::path real = fs::weakly_canonical(file);
    if (!toolkit_.empty() && lies_below(file, toolkit_)) {
      follow_toolkit(file, name);
    } else if (!lies_below(file, origin_)) {
      refuse(name);
    } else if (seen_.insert(real).second) {
      follow(std::string(beside_.add(file)), real.parent_path());
    }
  }

  void follow_toolkit(const fs::path& file, const std::string& name) {
    if (!lies_below(file, toolkit_)) {
      refuse(name);
    }
    const fs::path plain = file.lexically_normal();
    if (toolkit_files_.insert(plain).second) {
      std::error_code ignored;
      for (const std::string& what : include_lines(read_input_file(plain).bytes.value_or(""))) {
        const std::string other = name_in(what);
        if (other.empty()) {
          continue;
        }
        for (const fs::path& place : {plain.parent_path() / other, toolkit_ / other}) {
          if (fs::is_regular_file(place, ignored) && lies_below(place, toolkit_)) {
            follow_toolkit(place, other);
            break;
          }
        }
      }
    }
  }

  [[noreturn]] static void refuse(const std::string& name) {
    throw Error(ErrorCode::compile,
                fmt::format("it includes {}, which lies neither beside it nor among the compiler's headers", name));
  }

  fs::path origin_;
  fs::path toolkit_;
  std::vector<fs::path> folders_;
  IncludedFiles beside_;
  std::set<fs::path> seen_;
  std::set<fs::path> toolkit_files_;
};

/// The options with the folders of -I replaced by those of the copies.
std::vector<std::string> options_of(const Kernel& kernel, const fs::path& sources) {
  std::vector<std::string> options{"--include-path=" + sources.string()};
  for (const std::string& option : kernel.options) {
    const auto folder = include_folder(option);
    options.push_back(folder ? "--include-path=" + (sources / *folder).lexically_normal().string() : option);
  }
  if (const fs::path toolkit = toolkit_headers(); !toolkit.empty()) {
    options.push_back("--include-path=" + toolkit.string());
  }
  return options;
}

Json to_json(const runtime::Cubin& cubin) {
  Json kernels = Json::array();
  for (const runtime::CompiledKernel& kernel : cubin.kernels) {
    const runtime::ResourceReport& r = kernel.resources;
    kernels.push_back(
        {{"expression", kernel.expression},
         {"lowered_name", kernel.lowered_name},
         {"resources",
          {r.registers, r.stack_bytes, r.spill_store_bytes, r.spill_load_bytes, r.static_shared_bytes, r.barriers}}});
  }
  return {{"kernels", kernels}, {"arch", cubin.arch}, {"toolchain", cubin.toolchain}, {"log", cubin.log}};
}

runtime::Cubin cubin_from(const Json& json, const std::string& image) {
  runtime::Cubin cubin;
  cubin.arch = json.at("arch");
  cubin.toolchain = json.at("toolchain");
  cubin.log = json.at("log");
  const auto* const bytes = reinterpret_cast<const std::byte*>(image.data());
  cubin.image.assign(bytes, bytes + image.size());
  for (const Json& kernel : json.at("kernels")) {
    const Json& r = kernel.at("resources");
    cubin.kernels.push_back(
        {kernel.at("expression"), kernel.at("lowered_name"), {r.at(0), r.at(1), r.at(2), r.at(3), r.at(4), r.at(5)}});
  }
  if (cubin.kernels.empty()) {
    throw Error(ErrorCode::compile, "its compiler told of no kernel");
  }
  return cubin;
}

/// Follows the kernel's text. A launch passes one struct by value, and the driver does not compare that with what the
/// kernel takes.
std::string signature_check(const Kernel& kernel) {
  const Operation& operation = find_operation(kernel.operation);
  return fmt::format(
      "\ntemplate <class Call> char (&thresher_own_takes(void (*)(Call)))[sizeof(Call) == {1} ? 2 : 1];\n"
      "char (&thresher_own_takes(...))[1];\n"
      "static_assert(sizeof(thresher_own_takes(&{0})) == 2, \"{0} must take one argument, a {2} by value\");\n",
      kernel.entry, call_structure(arguments_of(operation), Receiver::c, nullptr, 0).bytes.size(),
      structure_name(operation));
}

void write_request(const Kernel& kernel, const std::string& arch, const fs::path& folder) {
  const Json request{{"title", fs::path(kernel.source).stem().string()},  // the compiler appends .cu
                     {"text", kernel.text + signature_check(kernel)},
                     {"entry", kernel.entry},
                     {"options", options_of(kernel, folder / "src")},
                     {"arch", arch}};
  write_text(folder / "request.json", request.dump(), "what is to be compiled");
}

runtime::ProcessOutput run(const fs::path& thresher, const fs::path& folder) {
  runtime::Command command;
  command.words = {thresher.string(), "compile-confined", folder.string()};
  command.folder = folder / "src";
  command.environment = compiler_environment(folder / "out");
  if (const fs::path library = runtime::nvrtc_status().library_path; library.is_absolute()) {
    // The first entry of a name wins, so this one overrides the host's.
    command.environment->insert(command.environment->begin(),
                                fmt::format("THRESHER_LIBRARY_PATH={}", library.parent_path().string()));
  }
  command.confinement = confinement_in(folder);
  command.confinement->executable = {thresher};
  command.confinement->may_exec = true;
  return runtime::run_process(std::move(command), {.time_s = compiler_limit_s});
}

}  // namespace

CudaBuild build_cuda(const Kernel& kernel, const std::string& arch, const fs::path& thresher) {
  const runtime::TemporaryFolder folder;
  for (const char* name : {"src", "out"}) {
    fs::create_directory(folder.path() / name);
  }
  Includes includes(kernel, folder.path() / "src");
  write_request(kernel, arch, folder.path());
  const runtime::ProcessOutput output = run(thresher, folder.path());
  if (!output.succeeded()) {
    throw Error(ErrorCode::compile, !output.stopped_because.empty()
                                        ? "the compiler was ended: " + output.stopped_because
                                    : output.text.empty() ? "the compiler " + runtime::Ending{output.status}.sentence()
                                                          : output.text);
  }
  const fs::path out = folder.path() / "out";
  const Json answer = Json::parse(read_input_file(out / "answer.json").bytes.value_or(""), nullptr, false);
  if (!answer.is_object()) {
    throw Error(ErrorCode::compile, "its compiler gave no answer");
  }
  try {
    CudaBuild build;
    build.cubin = cubin_from(answer, read_input_file(out / "image", max_image_bytes).bytes.value_or(""));
    build.record.compiler = build.cubin.toolchain;
    if (const fs::path library = runtime::nvrtc_status().library_path; library.is_absolute()) {
      build.record.tools.push_back(tool_file(fs::weakly_canonical(library)));
    }
    build.record.options = kernel.options;
    build.record.kernel = {fs::path(kernel.source).filename().string(), kernel.text};
    build.record.system_files = includes.system_files();
    build.record.files = std::move(includes).files();
    build.record.confined = output.confined;
    return build;
  } catch (const Json::exception&) {
    throw Error(ErrorCode::compile, "its compiler gave an answer that is none");
  }
}

void compile_confined(const fs::path& folder) {
  int status = 1;
  try {
    (void)runtime::confine_self(confinement_in(folder));  // from here on it cannot start programs either
    const Json request = Json::parse(read_input_file(folder / "request.json", max_request_bytes).bytes.value_or(""));
    const std::string text = request.at("text");
    runtime::Program program;
    program.title = request.at("title");
    program.text = text;
    for (const EmbeddedFile& header : embedded::own_kernel_files()) {
      program.headers.push_back({header.name.substr(header.name.find(own_header_folder)), header.text});
    }
    program.kernels = {request.at("entry")};
    program.options = request.at("options").get<std::vector<std::string>>();
    program.arch = request.at("arch");
    const runtime::Cubin cubin = runtime::compile(program);
    const std::string_view image(reinterpret_cast<const char*>(cubin.image.data()), cubin.image.size());
    write_text(folder / "out/image", image, "the machine code");
    write_text(folder / "out/answer.json", to_json(cubin).dump(-1, ' ', false, Json::error_handler_t::replace),
               "the answer");
    status = 0;
  } catch (const std::exception& error) {
    fmt::print("{}", error.what());
  }
  std::fflush(stdout);
  ::_exit(status);  // skips all exit handlers of the compiler
}

}  // namespace thresher::arena::user_kernels
