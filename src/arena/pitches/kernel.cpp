#include "arena/pitches/kernel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "arena/config/config.hpp"
#include "arena/operation/operation.hpp"
#include "arena/pitches/call_structure.hpp"
#include "arena/pitches/file_beneath.hpp"
#include "arena/pitches/kernel_options.hpp"
#include "core/printable.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t max_threads = 1024;
constexpr double day_s = 86'400;

Language language_of(const ConfigTable& table, const fs::path& source) {
  const std::string extension = source.extension().string();
  if (extension == ".cu") {
    return Language::cuda;
  }
  if (extension == ".cpp" || extension == ".cc" || extension == ".cxx" || extension == ".c") {
    return Language::host;
  }
  if (extension == ".py") {
    return Language::python;
  }
  table.fail("source", fmt::format("is {}, expected a .cu file for a GPU, or a .cpp or .py file for the CPU",
                                   printable(source.string().substr(0, 200))));
}

/// The first is 1, the others are 16.
Extents sample_extents(const Operation& operation) {
  Extents extents = extents_of(arguments_of(operation));
  for (auto& [name, value] : extents) {
    value = name == extents.front().first ? 1 : 16;
  }
  return extents;
}

/// Evaluates it with sample extents, so that a mistake shows before anything runs.
std::string expression(const ConfigTable& table, const std::string& key, const std::string& text, std::int64_t least,
                       const Extents& sample) {
  std::int64_t value = 0;
  try {
    value = evaluate(text, sample);
  } catch (const Error& error) {
    table.fail(key, fmt::format("holds {}", error.what()));
  }
  if (value < least) {
    std::vector<std::string> values;
    for (const auto& [name, extent] : sample) {
      values.push_back(fmt::format("{} = {}", name, extent));
    }
    table.fail(key, fmt::format("holds \"{}\", which is {} for {}, but must be at least {}", text.substr(0, 120), value,
                                fmt::join(values, ", "), least));
  }
  return text;
}

std::vector<std::string> read_grid(const ConfigTable& table, const Extents& sample) {
  const std::vector<std::string> grid = table.texts("grid");
  if (grid.size() > 3) {
    table.fail("grid", "must have one to three expressions");
  }
  for (const std::string& text : grid) {
    (void)expression(table, "grid", text, 1, sample);
  }
  return grid;
}

std::vector<std::int64_t> read_block(const ConfigTable& table) {
  const std::vector<std::int64_t> block = table.integers("block");
  std::int64_t threads = 1;
  for (const std::int64_t extent : block) {
    threads = extent < 1 || extent > max_threads ? max_threads + 1 : threads * extent;
  }
  if (block.size() > 3 || threads > max_threads) {
    table.fail("block", fmt::format("must be one to three numbers from 1 up whose product is at most {}", max_threads));
  }
  return block;
}

bool is_identifier(const std::string& text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

std::vector<std::string> read_options(const ConfigTable& table, Language language) {
  const std::vector<std::string> options = table.has("options") ? table.texts("options") : std::vector<std::string>{};
  if (!options.empty() && language == Language::python) {
    table.fail("options", "is for a compiler, which a .py file has none of");
  }
  for (const std::string& option : options) {
    if (const std::string obstacle = option_obstacle(language, option); !obstacle.empty()) {
      table.fail("options", fmt::format("holds \"{}\", which {}", printable(option.substr(0, 100)), obstacle));
    }
  }
  return options;
}

void read_launch(const ConfigTable& table, const Extents& sample, Kernel& kernel) {
  kernel.grid = read_grid(table, sample);
  kernel.block = read_block(table);
  kernel.shared_bytes = expression(table, "shared_bytes", table.text_or("shared_bytes", "0"), 0, sample);
  kernel.arch = table.text_or("arch", kernel.arch);
}

std::string read_framework(const ConfigTable& table) {
  std::string framework = table.text_or("framework", "numpy");
  if (framework != "numpy" && framework != "torch") {
    table.fail("framework",
               fmt::format("is \"{}\", expected \"numpy\" or \"torch\"", printable(framework.substr(0, 100))));
  }
  return framework;
}

/// "fp16*nvfp4->bf16" with every format's name taken out; empty where a word is no format.
std::string without_formats(const std::string& text) {
  std::string between;
  std::string word;
  for (const char c : text + "\n") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
      continue;
    }
    if (!word.empty() && std::none_of(all_formats.begin(), all_formats.end(),
                                      [&](Format format) { return thresher::name(format) == word; })) {
      return "";
    }
    between += word.empty() ? "" : "?";
    between += c;
    word.clear();
  }
  return between;
}

std::vector<std::string> read_formats(const ConfigTable& table, const Operation& operation) {
  const std::vector<std::string> formats = table.has("formats") ? table.texts("formats") : std::vector<std::string>{};
  const std::string example = operation.formats_text(operation.example());
  for (const std::string& text : formats) {
    if (without_formats(text) != without_formats(example)) {
      table.fail("formats",
                 fmt::format("holds \"{}\", expected formats as in {}", printable(text.substr(0, 100)), example));
    }
    if (std::count(formats.begin(), formats.end(), text) > 1) {
      table.fail("formats", fmt::format("holds \"{}\" twice", text));
    }
  }
  return formats;
}

/// A competitor writes the pitch, so it may only name files beneath its own folder.
std::string read_source(const ConfigTable& table, const fs::path& folder, Language& language) {
  const fs::path source = table.text("source");
  const std::string shown = printable((folder / source).string().substr(0, 200));
  if (const std::string obstacle = beneath_obstacle(source); !obstacle.empty()) {
    table.fail("source",
               fmt::format("is {}, {}: name a file beside the pitch or below", quoted_name(source.string()), obstacle));
  }
  if (printable(source.native()) != source.native()) {
    table.fail("source", fmt::format("is {}, whose name holds characters that are not shown: give the file another",
                                     quoted_name(source.string())));
  }
  language = language_of(table, folder / source);
  InputFile file = read_beneath(folder, source);
  if (!file.bytes) {
    table.fail("source", fmt::format("names {}: {}", shown, file.obstacle));
  }
  if (!is_utf8(*file.bytes)) {
    table.fail("source", fmt::format("names {}, which is no text in UTF-8", shown));
  }
  return std::move(*file.bytes);
}

}  // namespace

Kernel read_kernel(const ConfigTable& table, const std::string& pitch_file, const Operation& operation) {
  const Extents sample = sample_extents(operation);
  Kernel kernel;
  kernel.operation = operation.name();
  const fs::path folder = fs::path(pitch_file).parent_path();
  kernel.text = read_source(table, folder, kernel.language);
  kernel.source = fs::absolute(folder / table.text("source")).string();
  kernel.entry = table.text("entry");
  if (!is_identifier(kernel.entry)) {
    table.fail("entry",
               fmt::format("is \"{}\", expected the name of {} function", printable(kernel.entry.substr(0, 100)),
                           kernel.language == Language::python ? "a" : "an extern \"C\""));
  }
  if (kernel.language == Language::cuda) {
    read_launch(table, sample, kernel);
  }
  if (kernel.language == Language::python) {
    kernel.framework = read_framework(table);
  }
  kernel.workspace_bytes = expression(table, "workspace_bytes", table.text_or("workspace_bytes", "0"), 0, sample);
  kernel.options = read_options(table, kernel.language);
  kernel.formats = read_formats(table, operation);
  kernel.time_limit_s = table.optional_number("time_limit_s");
  if (kernel.time_limit_s && !(*kernel.time_limit_s > 0 && *kernel.time_limit_s <= day_s)) {
    table.fail("time_limit_s", fmt::format("must be greater than 0 and at most {}", day_s));
  }
  table.reject_unknown();
  return kernel;
}

Extents extents_of(const std::vector<Argument>& arguments) {
  Extents extents;
  for (const Argument& argument : arguments) {
    if (argument.kind == ArgumentKind::extent) {
      extents.emplace_back(argument.name, argument.integer);
    }
  }
  return extents;
}

std::int64_t evaluate(std::string_view text, const Problem& problem) {
  return evaluate(text, extents_of(arguments_of(problem)));
}

}  // namespace thresher::arena::user_kernels
