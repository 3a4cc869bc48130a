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

/// A tensor and its file, which belongs to a checkpoint.
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
  /// model.safetensors. The files that an index names are beside it. They are opened when one of their tensors is
  /// needed, so that unused ones may be missing. An opened file must not have parts of a tensor that the index does not
  /// place there. Throws Error naming the file when one cannot be read or is not valid, and naming the tensor when two
  /// files have it.
  explicit Checkpoint(std::span<const std::filesystem::path> paths);
  explicit Checkpoint(const std::filesystem::path& path) : Checkpoint(std::span(&path, 1)) {}

  [[nodiscard]] bool has(std::string_view name) const { return files_of_.find(name) != files_of_.end(); }
  /// The tensor `name`, which this checkpoint has. Throws Error when its file is missing, is not valid or lacks it.
  /// Throws too when an opened file has the tensor, or a part of it, that the index does not list.
  [[nodiscard]] LocatedTensor find(std::string_view name) const;
  /// All names that begin with `prefix`, in order.
  [[nodiscard]] std::vector<std::string> names_from(std::string_view prefix) const;
  /// Throws Error(invalid_argument) when an opened file of an index has a tensor that begins with `prefix` and is not
  /// in the index. It would be left out silently.
  void refuse_unlisted(std::string_view prefix) const;
  /// The names there are, as many as fit a sentence, those that begin like `wanted` first; "no tensors" without any.
  [[nodiscard]] std::string listing(std::string_view wanted) const;

  /// "model.safetensors", or "model.safetensors (and 2 more)", for error messages.
  [[nodiscard]] std::string title() const;
  /// Every file that may be read: indices and safetensors files.
  [[nodiscard]] const std::vector<std::filesystem::path>& paths() const noexcept { return paths_; }

 private:
  struct Source {
    std::filesystem::path path;
    std::string index;  ///< that names the file; empty for a file given directly
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
  std::map<std::string, std::size_t, std::less<>> files_of_;              ///< tensor to its index in sources_
  mutable std::map<std::string, const Source*, std::less<>> unlisted_{};  ///< tensors of opened files
  mutable std::set<std::string, std::less<>> read_{};                     ///< the names that were requested
};

}  // namespace thresher::formats
