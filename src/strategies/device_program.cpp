#include "strategies/device_program.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "embedded/device_source_files.hpp"

namespace thresher::strategies {
namespace {

void add_included(std::string_view text, std::set<std::string_view>& names) {
  constexpr std::string_view directive = "#include \"";
  for (std::size_t at = text.find(directive); at != std::string_view::npos; at = text.find(directive, at)) {
    at += directive.size();
    const std::string_view name = text.substr(at, text.find('"', at) - at);
    const auto sources = device_sources();
    const auto source = std::ranges::find(sources, name, &EmbeddedFile::name);
    if (source != sources.end() && names.insert(name).second) {
      add_included(source->text, names);
    }
  }
}

}  // namespace

std::span<const EmbeddedFile> device_sources() { return embedded::device_source_files(); }

std::vector<EmbeddedFile> included_sources(std::string_view text) {
  std::set<std::string_view> names;
  add_included(text, names);
  std::vector<EmbeddedFile> included;
  std::ranges::copy_if(device_sources(), std::back_inserter(included),
                       [&](const EmbeddedFile& source) { return names.contains(source.name); });
  return included;
}

}  // namespace thresher::strategies
