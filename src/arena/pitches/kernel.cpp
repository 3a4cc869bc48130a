#include "arena/pitches/kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "arena/config/config.hpp"
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

/// Evaluates it with a sample shape, so that a mistake shows before anything runs.
std::string expression(const ConfigTable& table, const std::string& key, const std::string& text, std::int64_t least) {
  std::int64_t value = 0;
  try {
    value = evaluate(text, {1, 16, 16});
  } catch (const Error& error) {
    table.fail(key, fmt::format("holds {}", error.what()));
  }
  if (value < least) {
    table.fail(key, fmt::format("holds \"{}\", which is {} for m = 1, n = 16, k = 16, but must be at least {}",
                                text.substr(0, 120), value, least));
  }
  return text;
}

std::vector<std::string> read_grid(const ConfigTable& table) {
  const std::vector<std::string> grid = table.texts("grid");
  if (grid.size() > 3) {
    table.fail("grid", "must have one to three expressions");
  }
  for (const std::string& text : grid) {
    (void)expression(table, "grid", text, 1);
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

void read_launch(const ConfigTable& table, Kernel& kernel) {
  kernel.grid = read_grid(table);
  kernel.block = read_block(table);
  kernel.shared_bytes = expression(table, "shared_bytes", table.text_or("shared_bytes", "0"), 0);
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

std::vector<std::string> read_formats(const ConfigTable& table) {
  const std::vector<std::string> formats = table.has("formats") ? table.texts("formats") : std::vector<std::string>{};
  std::set<std::string> known;
  for (const Format a : formats_given_outside) {
    for (const Format b : formats_given_outside) {
      for (const Format out : unscaled_output_formats) {
        known.insert(formats_text({.a = a, .b = b, .out = out}));
      }
    }
  }
  for (const std::string& text : formats) {
    if (!known.contains(text)) {
      table.fail("formats", fmt::format("holds \"{}\", expected A*B->OUT as in nvfp4*nvfp4->fp16",
                                        printable(text.substr(0, 100))));
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

Kernel read_kernel(const ConfigTable& table, const std::string& pitch_file) {
  Kernel kernel;
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
    read_launch(table, kernel);
  }
  if (kernel.language == Language::python) {
    kernel.framework = read_framework(table);
  }
  kernel.workspace_bytes = expression(table, "workspace_bytes", table.text_or("workspace_bytes", "0"), 0);
  kernel.options = read_options(table, kernel.language);
  kernel.formats = read_formats(table);
  kernel.time_limit_s = table.optional_number("time_limit_s");
  if (kernel.time_limit_s && !(*kernel.time_limit_s > 0 && *kernel.time_limit_s <= day_s)) {
    table.fail("time_limit_s", fmt::format("must be greater than 0 and at most {}", day_s));
  }
  table.reject_unknown();
  return kernel;
}

std::string formats_text(const DualGemmProblem& problem) {
  return fmt::format("{}*{}->{}", name(problem.a), name(problem.b), name(problem.out));
}

Shape shape_of(const DualGemmProblem& problem) { return {problem.m, problem.n, problem.k}; }

}  // namespace thresher::arena::user_kernels
