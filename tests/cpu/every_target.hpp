#pragma once
/// Running a check once for each instruction set that the vectorised files were compiled for and this CPU has.
#include <gtest/gtest.h>

#include <hwy/targets.h>

namespace thresher::test {

template <typename Check>
void on_every_target(const Check& check) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(target));
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace thresher::test
