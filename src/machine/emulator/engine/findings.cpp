#include "machine/emulator/engine/findings.hpp"

namespace thresher::emulator {

void Findings::report(FindingKind kind, std::string sentence, std::vector<std::string> details) {
  if (found_.size() < options_.max_findings) {
    found_.push_back({kind, std::move(sentence), std::move(details), options_.schedule.seed});
  }
  if (found_.size() >= options_.max_findings) {
    stopping_ = true;
  }
}

bool Findings::first_time(FindingKind kind, std::uint32_t site_number, std::uint64_t key) {
  return reported_.emplace(static_cast<std::uint64_t>(kind) << 32 | site_number, key).second;
}

void Findings::fatal(FindingKind kind, std::string sentence, std::vector<std::string> details) {
  report(kind, std::move(sentence), std::move(details));
  stopping_ = true;
  if (cluster_.current != nullptr) {
    throw StopThread{};
  }
}

}  // namespace thresher::emulator
