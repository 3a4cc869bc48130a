#pragma once
/// A call of a user kernel as bytes: the structure that its operation's arguments make.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "arena/operation/argument.hpp"
#include "arena/operation/problem.hpp"

namespace thresher::arena::user_kernels {

struct CallStructure {
  std::vector<std::byte> bytes;
  std::vector<std::uint32_t> addresses;  ///< offsets of everything that is an address
  std::vector<std::uint32_t> offsets;    ///< of each argument, and of the workspace behind them
};

/// For the receiver: C has a structure with members of the declared kinds, Python tensors of one kind.
enum class Receiver : std::uint8_t { c, python };

/// The last two members are the workspace and its bytes. Two calls of an operation differ only in bytes.
[[nodiscard]] CallStructure call_structure(const std::vector<Argument>& arguments, Receiver receiver, void* workspace,
                                           std::int64_t workspace_bytes);

/// Those of an operation, without a problem: names and kinds alone mean something.
[[nodiscard]] std::vector<Argument> arguments_of(const Operation& operation);
/// Those of a problem, without a call.
[[nodiscard]] std::vector<Argument> arguments_of(const Problem& problem);

/// "thresher_own_dual_gemm".
[[nodiscard]] std::string structure_name(const Operation& operation);

/// The arguments and their offsets as JSON, for the process of a Python kernel (served/python_server.py).
[[nodiscard]] std::string python_arguments(const Operation& operation);

}  // namespace thresher::arena::user_kernels
