#include "cli/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <vector>

#include "arena/report/report.hpp"
#include "core/device_spec.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

namespace fs = std::filesystem;

constexpr double day_s = 86'400;

std::string not_seconds(const std::string& text) {
  double seconds = 0;
  const bool read = CLI::detail::lexical_cast(text, seconds);
  return read && seconds > 0 && seconds <= day_s
             ? ""
             : fmt::format("{} is not a time of more than 0 and at most {} s", text, day_s);
}

std::string no_shard(const std::string& text) {
  return arena::parse_shard(text)
             ? ""
             : fmt::format("{} is not I/N, shard I of N, with 1 <= I <= N <= {}", text, arena::max_shards);
}

}  // namespace

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code missing;
  if (fs::equivalent(a, b, missing)) {
    return true;
  }
  const auto whole = [&](const fs::path& path) { return fs::weakly_canonical(fs::absolute(path, missing), missing); };
  return !a.empty() && !b.empty() && whole(a) == whole(b);
}

void refuse_overwriting(const std::string& option, const std::string& output, const std::string& input) {
  if (same_file(output, input)) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} {} is a file that this command reads: name another, or what it holds is lost", option, output));
  }
}

void refuse_overwriting_model(const std::string& option, const std::string& output, const std::string& input) {
  std::error_code ignored;
  const fs::path folder = fs::is_directory(input, ignored) ? fs::path(input) : fs::path(input).parent_path();
  refuse_overwriting(option, output, input);
  refuse_overwriting(option, output, (folder / "config.json").string());
}

void refuse_overwriting_in(const std::string& report, const std::string& input) {
  for (const char* file : arena::report_files) {
    refuse_overwriting("--report", (fs::path(report) / file).string(), input);
  }
}

void refuse_output_in(const std::string& report, const std::string& option, const std::string& output) {
  for (const char* file : arena::report_files) {
    if (same_file(output, fs::path(report) / file)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} {} is a file of --report {}: name another, or one is lost in the other", option,
                              output, report));
    }
  }
}

void add_in_and_out(CLI::App& command, std::string& in, const std::string& in_what, std::string& out,
                    const std::string& out_what) {
  command.add_option("--in", in, in_what)->required();
  command.add_option("--out", out, out_what)->required();
  command.parse_complete_callback([&in, &out] { refuse_overwriting_model("--out", out, in); });
}

void add_device(CLI::App& command, std::string& device) {
  command.add_option("--device", device, "cpu, gpu, cuda:N or best")->capture_default_str();
}

CLI::Option* add_device_table(CLI::App& command, std::string& device, const std::string& what) {
  std::vector<std::string_view> names;
  for (const DeviceSpec& spec : device_specs()) {
    names.push_back(spec.name);
  }
  return command.add_option("--device,--device-table", device, fmt::format("{}: {}", what, fmt::join(names, ", ")));
}

void add_seconds(CLI::App& command, double& seconds, const std::string& what) {
  command.add_option("--seconds", seconds, what)
      ->check(CLI::Validator(not_seconds, "", "seconds"))
      ->capture_default_str();
}

CLI::Option* add_limit(CLI::App& command, const std::string& option, std::optional<double>& seconds,
                       const std::string& what) {
  return command.add_option(option, seconds, what)->check(CLI::Validator(not_seconds, "", "seconds"));
}

CLI::Option* add_shard(CLI::App& command, std::optional<arena::Shard>& shard, const std::string& what) {
  return command
      .add_option_function<std::string>(
          "--shard", [&shard](const std::string& text) { shard = arena::parse_shard(text); }, what)
      ->check(CLI::Validator(no_shard, "", "shard"))
      ->type_name("I/N");
}

void add_seed(CLI::App& command, std::optional<std::uint64_t>& seed, const std::string& what) {
  command.add_option("--seed", seed, what);
}

}  // namespace thresher::cli
