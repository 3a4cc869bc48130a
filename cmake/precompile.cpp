// Run by the build: compiles default_programs() for the given architectures, several at a time, and writes a C++ source
// that defines built_in_cubins(). Unchanged code comes from the folder KEPT. Without NVRTC
// the list is empty, and the library compiles at run time.
//
// usage: precompile OUTPUT.cpp KEPT ARCH...
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ops/built_in_cubins.hpp"
#include "ops/cuda_programs.hpp"
#include "runtime/cubin_cache.hpp"
#include "thresher/error.hpp"

namespace {

using namespace thresher;

/// A string literal; every byte as three octal digits, so that no digit that follows is taken in.
std::string literal(std::string_view bytes) {
  constexpr std::size_t bytes_per_line = 512;
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    text += i % bytes_per_line == 0 ? (i == 0 ? "\"" : "\"\n\"") : "";
    text += '\\';
    text += static_cast<char>('0' + (byte >> 6));
    text += static_cast<char>('0' + ((byte >> 3) & 7));
    text += static_cast<char>('0' + (byte & 7));
  }
  return text + "\"";
}

std::string entry_source(const runtime::Program& program, const runtime::CubinCache& kept) {
  const std::string key = ops::built_in_key(program);
  const std::string entry = runtime::serialise(key, runtime::compile_cached(program, kept).cubin);
  return "    {\"" + key + "\", std::string_view(" + literal(entry) + ", " + std::to_string(entry.size()) + ")},\n";
}

/// The entries of all programs, in their order. Throws what the first program threw that does not compile.
std::string entry_sources(const std::vector<runtime::Program>& programs, const runtime::CubinCache& kept) {
  std::vector<std::string> entries(programs.size());
  std::vector<std::exception_ptr> failures(programs.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < programs.size(); i = next++) {
      try {
        entries[i] = entry_source(programs[i], kept);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    for (unsigned worker = 0; worker < std::max(1U, std::thread::hardware_concurrency()); ++worker) {
      workers.emplace_back(work);
    }
  }
  std::string all;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    if (failures[i]) {
      std::rethrow_exception(failures[i]);
    }
    all += entries[i];
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) try {
  std::string entries;
  if (const std::string& problem = runtime::nvrtc_status().problem; !problem.empty()) {
    std::fprintf(stderr, "No machine code is built in, kernels will be compiled at run time: %s\n", problem.c_str());
  } else {
    std::vector<runtime::Program> programs;
    std::set<std::string> keys;  // the code of a family is that of each of its architectures
    for (int i = 3; i < argc; ++i) {
      for (const strategies::DeviceProgram& program : ops::default_programs(argv[i])) {
        runtime::Program input = ops::compiler_input(program, argv[i]);
        if (keys.insert(ops::built_in_key(input)).second) {
          programs.push_back(std::move(input));
        }
      }
    }
    entries = entry_sources(programs, runtime::CubinCache(argv[2]));
  }
  std::ofstream output(argv[1]);
  output << "#include <vector>\n\n#include \"ops/built_in_cubins.hpp\"\n\nnamespace thresher::ops {\n\n"
            "std::span<const BuiltInCubin> built_in_cubins() {\n  static const std::vector<BuiltInCubin> cubins{\n"
         << entries << "  };\n  return cubins;\n}\n\n}  // namespace thresher::ops\n";
  output.close();
  return output.fail() ? 1 : 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
