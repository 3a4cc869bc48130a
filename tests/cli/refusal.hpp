#pragma once
/// What every refusal of a command that writes a file holds to.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "cli/command.hpp"

namespace thresher::testing {

/// Status 2, one line that has `part`, nothing on standard output, and no out.safetensors in the folder.
inline void expect_refused(const Outcome& outcome, const std::filesystem::path& folder, const std::string& part) {
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("thresher: ")) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "out.safetensors"));
}

}  // namespace thresher::testing
