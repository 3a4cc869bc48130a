#pragma once
/// The findings of a launch so far, and whether they end it.
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "machine/emulator/engine/launch.hpp"
#include "machine/emulator/engine/state.hpp"

namespace thresher::emulator {

/// Thrown through a thread's stack to end it when the launch stops.
struct StopThread {};

class Findings {
 public:
  Findings(const Options& options, const Cluster& cluster) : options_(options), cluster_(cluster) {}

  void report(FindingKind kind, std::string sentence, std::vector<std::string> details = {});
  /// Whether this `key` has no report yet.
  bool first_time(FindingKind kind, std::uint32_t site_number, std::uint64_t key);
  /// Reports and ends the launch. Throws StopThread in a thread; returns if asynchronous work found it.
  void fatal(FindingKind kind, std::string sentence, std::vector<std::string> details = {});

  void stop() { stopping_ = true; }
  [[nodiscard]] bool stopping() const { return stopping_; }
  [[nodiscard]] bool empty() const { return found_.empty(); }
  [[nodiscard]] std::vector<Finding> take() { return std::move(found_); }

 private:
  const Options& options_;
  const Cluster& cluster_;
  std::vector<Finding> found_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> reported_;
  bool stopping_ = false;
};

}  // namespace thresher::emulator
