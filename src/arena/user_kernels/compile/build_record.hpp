#pragma once
/// What a user's kernel was built from and by what: all that the compiler read, so that what the ledger keeps is what
/// ran.
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "arena/results/build_evidence.hpp"
#include "runtime/confinement.hpp"

namespace thresher::arena::user_kernels {

/// A file beside the kernel.
struct SourceFile {
  std::string path;  ///< from the kernel's folder
  std::string text;
};

struct BuildRecord {
  std::string compiler;  ///< "g++ (Debian 12.2.0-14+deb12u1) 12.2.0"
  std::vector<ToolFile> tools;
  std::vector<std::string> options;
  SourceFile kernel;
  std::vector<SourceFile> files;                    ///< that the kernel includes, in the order of their paths
  std::vector<std::filesystem::path> system_files;  ///< the compiler's, the toolkit's and the system's headers
  runtime::Confined confined;                       ///< what the compiler was held by
};

/// "g++ … by the script /home/me/cxx", what a gate's sentence says.
[[nodiscard]] std::string by_whom(const BuildRecord& record);

/// For the ledger: each file with its SHA-256, those beside the kernel with their text, the system's as one hash of
/// all.
[[nodiscard]] BuildEvidence evidence_of(const BuildRecord& record);

/// The tool at `path`. Throws Error(io) when it cannot be read.
[[nodiscard]] ToolFile tool_file(const std::filesystem::path& path);

/// Whether `path`, with what links in it name put in their places, lies in the folder or below.
[[nodiscard]] bool lies_below(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Reads the files beside the kernel that it includes and copies them to where it is compiled, at the same places from
/// there. Throws Error(compile) for what is no text, and for more than the ledger keeps.
class IncludedFiles {
 public:
  IncludedFiles(std::filesystem::path from, std::filesystem::path to) : from_(std::move(from)), to_(std::move(to)) {}
  /// `file` lies below the folder that is copied from. Returns its text; nothing happens when it was added before.
  const std::string& add(const std::filesystem::path& file);
  [[nodiscard]] std::vector<SourceFile> sorted() &&;

 private:
  std::filesystem::path from_;
  std::filesystem::path to_;
  std::vector<SourceFile> files_;
  std::size_t bytes_ = 0;
};

/// What a compiler says of a kernel, which may have it say anything, fit for a sentence: one line of a few hundred
/// characters that are shown.
[[nodiscard]] std::string in_a_sentence(std::string_view said);

}  // namespace thresher::arena::user_kernels
