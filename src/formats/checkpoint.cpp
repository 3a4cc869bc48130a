#include "formats/checkpoint.hpp"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "core/printable.hpp"
#include "formats/reject.hpp"
#include "formats/shard_index.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

namespace fs = std::filesystem;

constexpr const char* usual_index = "model.safetensors.index.json";
constexpr const char* usual_file = "model.safetensors";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace

std::string described(const LocatedTensor& located) {
  return fmt::format("tensor {} of {}", quoted_name(located.tensor->name), located.file->path());
}

Checkpoint::Checkpoint(std::span<const fs::path> paths) : given_(paths.begin(), paths.end()) {
  for (const fs::path& path : paths) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      add_folder(path);
    } else if (path.string().ends_with(".index.json")) {
      add_index(path);
    } else {
      add_file(path);
    }
  }
}

void Checkpoint::add_folder(const fs::path& path) {
  const bool has_index = is_there(path / usual_index);
  const bool has_file = is_there(path / usual_file);
  if (has_index == has_file) {
    reject(fmt::format("the folder {} has {} {} {} {}: name the files that are to be read", path.string(),
                       has_index ? "both" : "neither", usual_index, has_index ? "and" : "nor", usual_file));
  }
  has_index ? add_index(path / usual_index) : add_file(path / usual_file);
}

void Checkpoint::add_file(const fs::path& path) {
  paths_.push_back(path);
  sources_.push_back({path, {}, std::make_unique<SafetensorsFile>(path)});
  for (const StoredTensor& tensor : sources_.back().file->header().tensors) {
    add_name(tensor.name, sources_.size() - 1);
  }
}

void Checkpoint::add_index(const fs::path& path) {
  paths_.push_back(path);
  std::map<std::string, std::size_t> sources;
  for (const auto& [name, file] : read_shard_index(path)) {
    const auto [source, is_new] = sources.emplace(file, sources_.size());
    if (is_new) {
      sources_.push_back({path.parent_path() / file, path.string(), nullptr});
      paths_.push_back(sources_.back().path);
    }
    add_name(name, source->second);
  }
}

void Checkpoint::add_name(const std::string& name, std::size_t source) {
  const auto [found, is_new] = files_of_.emplace(name, source);
  if (!is_new) {
    reject(fmt::format("tensor {} is in {} and in {}, but only one of them may have it", quoted_name(name),
                       sources_[found->second].path.string(), sources_[source].path.string()));
  }
}

const SafetensorsFile& Checkpoint::opened(const Source& source, std::string_view wanted) const {
  if (source.file == nullptr) {
    if (!is_there(source.path)) {
      throw Error(ErrorCode::io, fmt::format("{} is missing, where {} has the tensor {}", source.path.string(),
                                             source.index, quoted_name(wanted)));
    }
    source.file = std::make_unique<SafetensorsFile>(source.path);
    note_unlisted(source);
  }
  return *source.file;
}

void Checkpoint::note_unlisted(const Source& source) const {
  bool is_new = false;
  for (const StoredTensor& tensor : source.file->header().tensors) {
    const auto listed = files_of_.find(tensor.name);
    if (listed == files_of_.end() || &sources_[listed->second] != &source) {
      is_new |= unlisted_.emplace(tensor.name, &source).second;
    }
  }
  if (is_new) {
    for (const std::string& name : read_) {
      refuse_unlisted_parts(name);
    }
  }
}

/// X.weight, X.… and X_… of X and X.weight.
void Checkpoint::refuse_unlisted_parts(std::string_view name) const {
  constexpr std::string_view weight = ".weight";
  const std::string_view layer = name.ends_with(weight) ? name.substr(0, name.size() - weight.size()) : name;
  for (auto found = unlisted_.lower_bound(layer); found != unlisted_.end() && found->first.starts_with(layer);
       ++found) {
    const std::string_view rest = std::string_view(found->first).substr(layer.size());
    if (rest.empty() || rest.front() == '.' || rest.front() == '_') {
      refuse_unlisted(found->first, *found->second);
    }
  }
}

void Checkpoint::refuse_unlisted(std::string_view prefix) const {
  const auto found = unlisted_.lower_bound(prefix);
  if (found != unlisted_.end() && found->first.starts_with(prefix)) {
    refuse_unlisted(found->first, *found->second);
  }
}

void Checkpoint::refuse_unlisted(const std::string& name, const Source& source) const {
  const auto listed = files_of_.find(name);
  if (listed != files_of_.end()) {
    reject(fmt::format("tensor {} is in {} and in {}, but only one of them may have it", quoted_name(name),
                       sources_[listed->second].path.string(), source.path.string()));
  }
  reject(fmt::format("{} has the tensor {}, which {} does not list", source.path.string(), quoted_name(name),
                     source.index));
}

LocatedTensor Checkpoint::find(std::string_view name) const {
  const Source& source = sources_[files_of_.find(name)->second];
  const SafetensorsFile& file = opened(source, name);
  if (!unlisted_.empty()) {
    refuse_unlisted_parts(name);
  }
  read_.emplace(name);
  const StoredTensor* tensor = file.find(name);
  if (tensor == nullptr) {
    reject(fmt::format("{} has no tensor {}, which {} places there", file.path(), quoted_name(name), source.index));
  }
  return {&file, tensor};
}

std::vector<std::string> Checkpoint::names_from(std::string_view prefix) const {
  std::vector<std::string> names;
  for (auto found = files_of_.lower_bound(prefix); found != files_of_.end() && found->first.starts_with(prefix);
       ++found) {
    names.push_back(found->first);
  }
  return names;
}

std::string Checkpoint::listing(std::string_view wanted) const {
  constexpr std::size_t most = 8;
  std::vector<std::string> names = names_from(wanted);
  for (auto entry = files_of_.begin(); entry != files_of_.end() && names.size() <= most; ++entry) {
    if (!entry->first.starts_with(wanted)) {
      names.push_back(entry->first);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) {
    text += (i == 0 ? "" : ", ") + quoted_name(names[i]);
  }
  return names.empty() ? "no tensors" : text + (names.size() > most ? ", …" : "");
}

std::string Checkpoint::title() const {
  const std::size_t more = given_.size() - 1;
  return given_.front().string() + (more == 0 ? "" : fmt::format(" (and {} more)", more));
}

}  // namespace thresher::formats
