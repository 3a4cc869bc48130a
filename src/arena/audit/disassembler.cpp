#include "arena/audit/disassembler.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "thresher/error.hpp"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace thresher::arena {
namespace {

namespace fs = std::filesystem;

/// Standard output and error of one program.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) {
      throw Error(ErrorCode::io, "no pipe could be opened: close some files");
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    ::close(ends_[0]);
    close_writer();
  }
  [[nodiscard]] int writer() const { return ends_[1]; }
  void close_writer() {
    if (ends_[1] >= 0) {
      ::close(ends_[1]);
      ends_[1] = -1;
    }
  }
  std::string read_all() {
    close_writer();
    std::string text;
    std::array<char, 1 << 16> buffer{};
    for (ssize_t got = 0; (got = ::read(ends_[0], buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

std::string output_of(const fs::path& program, const std::vector<std::string>& arguments) {
  Pipe pipe;
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe.writer(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipe.writer(), STDERR_FILENO);
  std::vector<std::string> words{program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  pid_t child = -1;
  const int failed = ::posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    throw Error(ErrorCode::io, fmt::format("{} could not be started: check that it may be executed", program.string()));
  }
  std::string text = pipe.read_all();
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw Error(ErrorCode::io, fmt::format("{} failed: {}", program.string(), text.substr(0, text.find('\n'))));
  }
  return text;
}

fs::path found_in(const std::vector<fs::path>& folders, const char* program) {
  for (const fs::path& folder : folders) {
    if (!folder.empty() && ::access((folder / program).c_str(), X_OK) == 0) {
      return folder / program;
    }
  }
  return {};
}

/// A file of its own in the system's folder for such, removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::span<const std::byte> content) {
    std::string pattern = (fs::temp_directory_path() / "thresher-audit-XXXXXX").string();
    const int file = ::mkstemp(pattern.data());
    if (file < 0) {
      throw Error(ErrorCode::io,
                  fmt::format("no file could be made in {}: set TMPDIR", fs::temp_directory_path().string()));
    }
    ::close(file);
    path_ = pattern;
    std::ofstream stream(path_, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

Disassembler find_disassembler(const std::function<const char*(const char*)>& environment) {
  const auto value = [&](const char* variable) {
    const char* found = environment ? environment(variable) : std::getenv(variable);
    return std::string_view(found ? found : "");
  };
  std::vector<fs::path> folders;
  for (std::string_view path = value("PATH"); !path.empty();) {
    const std::size_t end = path.find(':');
    folders.emplace_back(path.substr(0, end));
    path = end == std::string_view::npos ? std::string_view{} : path.substr(end + 1);
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string_view root = value(variable); !root.empty()) {
      folders.push_back(fs::path(root) / "bin");
    }
  }
  folders.emplace_back("/usr/local/cuda/bin");
  folders.emplace_back("/opt/cuda/bin");
  return {found_in(folders, "nvdisasm"), found_in(folders, "cuobjdump")};
}

std::string how_to_get_a_disassembler() {
  return "no nvdisasm or cuobjdump on PATH or in a CUDA toolkit: install the toolkit's cuda-nvdisasm and "
         "cuda-cuobjdump "
         "packages (or Debian's nvidia-cuda-toolkit), or set CUDA_HOME";
}

Disassembly disassemble(const Disassembler& tools, const fs::path& cubin) {
  if (!tools.found()) {
    throw Error(ErrorCode::unsupported, how_to_get_a_disassembler());
  }
  Disassembly out;
  if (!tools.cuobjdump.empty()) {
    out.resources = parse_resource_usage(output_of(tools.cuobjdump, {"-res-usage", cubin.string()}));
  }
  // nvdisasm reads cubins only; cuobjdump reads objects and programs too.
  const bool whole_program = !tools.cuobjdump.empty();
  out.functions = parse_sass(whole_program ? output_of(tools.cuobjdump, {"-sass", cubin.string()})
                                           : output_of(tools.nvdisasm, {"-c", cubin.string()}));
  return out;
}

Disassembly disassemble(const Disassembler& tools, std::span<const std::byte> cubin) {
  const TemporaryFile file(cubin);
  return disassemble(tools, file.path());
}

}  // namespace thresher::arena
