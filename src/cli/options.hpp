#pragma once
/// Options that several commands share, with the checks of their values.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "arena/results/shard.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace thresher::cli {

/// The maximum of every extent on a command line; the minimum is 1.
inline constexpr int max_extent = 1 << 24;

/// Whether two existing files are the same, or both names denote one new file.
[[nodiscard]] bool same_file(const std::filesystem::path& a, const std::filesystem::path& b);
/// Throws Error when `output`, the value of `option`, is the file `input`: writing it would destroy the input.
void refuse_overwriting(const std::string& option, const std::string& output, const std::string& input);
/// The same for `input`, a folder or file of a model, and for the config.json beside it.
void refuse_overwriting_model(const std::string& option, const std::string& output, const std::string& input);
/// The same for the files of a report in the folder `report`.
void refuse_overwriting_in(const std::string& report, const std::string& input);
/// Throws Error when `output`, the value of `option`, is one of those files: two outputs need two files.
void refuse_output_in(const std::string& report, const std::string& option, const std::string& output);

/// --in and --out, both required. --out must not name the file of --in, nor the config.json beside it. The strings must
/// outlive the parsing.
void add_in_and_out(CLI::App& command, std::string& in, const std::string& in_what, std::string& out,
                    const std::string& out_what);
/// --device, for Device::named.
void add_device(CLI::App& command, std::string& device);
/// --device and --device-table: a card of the planner's table, which need not be in this machine. `what` completes the
/// help.
CLI::Option* add_device_table(CLI::App& command, std::string& device, const std::string& what);
/// --seconds: more than 0 and at most a day.
void add_seconds(CLI::App& command, double& seconds, const std::string& what);
/// The same for `option`, which is optional.
CLI::Option* add_limit(CLI::App& command, const std::string& option, std::optional<double>& seconds,
                       const std::string& what);
/// --shard, in the form 2/3.
CLI::Option* add_shard(CLI::App& command, std::optional<arena::Shard>& shard, const std::string& what);
/// --seed: 0 to 2^64 - 1.
void add_seed(CLI::App& command, std::optional<std::uint64_t>& seed, const std::string& what);

}  // namespace thresher::cli
