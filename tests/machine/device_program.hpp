#pragma once
// The GPU's side of the primitives' kernels: their text as NVRTC gets it.
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "runtime/nvrtc.hpp"
#include "strategies/device_program.hpp"

namespace thresher::machine::test {

inline std::string read_file(const std::string& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// `header` is named from tests/; its text must outlive the compilation. Name expressions are read in the global
/// namespace.
inline runtime::Program program_of(const std::string& header, const std::string& text,
                                   std::vector<std::string> expressions) {
  const std::span<const EmbeddedFile> sources = strategies::device_sources();
  runtime::Program program{.title = header,
                           .text = "#include \"" + header +
                                   "\"\nusing namespace thresher::machine;\nusing namespace thresher::machine::test;\n",
                           .headers = {sources.begin(), sources.end()},
                           .kernels = std::move(expressions),
                           .options = {}};
  program.headers.push_back({header, text});
  return program;
}

}  // namespace thresher::machine::test
