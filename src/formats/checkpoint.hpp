#pragma once
/// The tensors of one or several safetensors files, found by name.
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors.hpp"

namespace thresher::formats {

class Checkpoint;

/// A tensor and the file that has it, which belongs to a checkpoint.
struct LocatedTensor {
  const SafetensorsFile* file = nullptr;
  const StoredTensor* tensor = nullptr;

  [[nodiscard]] std::vector<std::byte> read() const { return file->read(*tensor); }
};

/// "tensor 'b1' of model.safetensors", for error messages.
[[nodiscard]] std::string described(const LocatedTensor& located);

class Checkpoint {
 public:
  /// Each path is a safetensors file, an index (….index.json) or a folder with model.safetensors.index.json or
  /// model.safetensors. The files that an index names lie beside it, and are opened when a tensor of theirs is asked
  /// for: those that nothing is read of may be missing. Beside a tensor that is read they have none that the index does
  /// not place there. Throws Error naming the file when one cannot be read or is not valid, and naming the tensor when
  /// two files have it.
  explicit Checkpoint(std::span<const std::filesystem::path> paths);
  explicit Checkpoint(const std::filesystem::path& path) : Checkpoint(std::span(&path, 1)) {}

  [[nodiscard]] bool has(std::string_view name) const { return files_of_.find(name) != files_of_.end(); }
  /// The tensor `name`, which this has. Throws Error when its file is missing, is not valid or lacks it, and when a
  /// file that was opened has it or a part of it without a word in the index.
  [[nodiscard]] LocatedTensor find(std::string_view name) const;
  /// All names that begin with `prefix`, in order.
  [[nodiscard]] std::vector<std::string> names_from(std::string_view prefix) const;
  /// Throws Error(invalid_argument) where a file that was opened for an index has a tensor that begins with `prefix`
  /// and that the index does not place there: it would be left out in silence.
  void refuse_unlisted(std::string_view prefix) const;
  /// The names that there are, as many as fit a sentence, those that begin like `wanted` first; "no tensors".
  [[nodiscard]] std::string listing(std::string_view wanted) const;

  /// "model.safetensors", or "model.safetensors (and 2 more)", for error messages.
  [[nodiscard]] std::string title() const;
  /// Every file that may be read: indices and safetensors files.
  [[nodiscard]] const std::vector<std::filesystem::path>& paths() const noexcept { return paths_; }

 private:
  struct Source {
    std::filesystem::path path;
    std::string index;  ///< that names it; empty for one that was named itself
    mutable std::unique_ptr<SafetensorsFile> file;
  };

  void add_file(const std::filesystem::path& path);
  void add_index(const std::filesystem::path& path);
  void add_folder(const std::filesystem::path& path);
  void add_name(const std::string& name, std::size_t source);
  void note_unlisted(const Source& source) const;
  void refuse_unlisted_parts(std::string_view name) const;
  [[noreturn]] void refuse_unlisted(const std::string& name, const Source& source) const;
  const SafetensorsFile& opened(const Source& source, std::string_view wanted) const;

  std::vector<std::filesystem::path> given_;
  std::vector<std::filesystem::path> paths_;
  std::vector<Source> sources_;
  std::map<std::string, std::size_t, std::less<>> files_of_;              ///< tensor to its place in sources_
  mutable std::map<std::string, const Source*, std::less<>> unlisted_{};  ///< tensors of files that were opened
  mutable std::set<std::string, std::less<>> read_{};                     ///< what was asked for
};

}  // namespace thresher::formats
