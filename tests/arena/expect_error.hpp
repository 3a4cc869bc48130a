#pragma once
/// The sentence of the Error that `body` throws; a failure of the test when it throws none.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "thresher/error.hpp"

namespace thresher::arena {

inline std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

}  // namespace thresher::arena
