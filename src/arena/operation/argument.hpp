#pragma once
/// The arguments of a user kernel: tensors of a call and facts of its problem, in the order of the kernel's structure.
/// Structures of C, signatures of Python and docs/reference/kernel-arguments.md are made from them.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arena/operation/find_tensor.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::arena {

enum class ArgumentKind : std::uint8_t {
  tensor,         ///< thresher_own_tensor
  matrix,         ///< thresher_own_matrix, of fp16, bf16 or nvfp4
  output_matrix,  ///< three members: values, row stride and format
  extent,         ///< long long; expressions of pitches know it, and a Python function finds it in shapes
  integer,        ///< int
  flag,           ///< int, 0 or 1
  choice,         ///< int, an index into `choices`
  format,         ///< int, a Format; `choices` are the names of all
  number,         ///< float
};

enum class ArgumentRole : std::uint8_t { activation, weight, output };

/// One argument. Name, kind and order are the same for every problem of an operation.
struct Argument {
  std::string name;
  ArgumentKind kind = ArgumentKind::extent;
  std::string about;  ///< a clause for the structure and the page
  // A tensor also has these.
  ArgumentRole role = ArgumentRole::activation;
  bool is_optional = false;  ///< some problems have none
  std::string tensor{};      ///< its name in input sets
  Tensor value{};            ///< without data where the problem has none
  // Anything else has these.
  std::int64_t integer = 0;  ///< of anything but a number
  float number = 0;
  std::vector<std::string> choices{};
  /// A Python function without this parameter computes with this value; empty: any value is left to it.
  std::optional<double> usual{};

  [[nodiscard]] bool is_tensor() const noexcept { return kind <= ArgumentKind::output_matrix; }
};

/// Arguments of a call whose tensors `find` knows; each function appends one and returns it.
class Arguments {
 public:
  explicit Arguments(FindTensor find) : find_(std::move(find)) {}

  /// The tensor `tensor` of an input set, or of the argument's own name.
  Argument& input(const char* name, const char* about, const char* tensor = nullptr);
  Argument& weight(const char* name, const char* about, const char* tensor = nullptr);
  Argument& output(const char* name, const char* about);
  Argument& extent(const char* name, const char* about, std::int64_t value);
  Argument& integer(const char* name, const char* about, std::int64_t value);
  Argument& flag(const char* name, const char* about, bool value);
  Argument& choice(const char* name, const char* about, std::vector<std::string> choices, std::size_t value);
  Argument& format(const char* name, const char* about, Format value);
  Argument& number(const char* name, const char* about, float value);
  /// The order of gate and up in one tensor; empty: in two.
  void order(const std::optional<GateUpOrder>& order);
  /// The kind of activation and the parameters of swiglu_clamped.
  void activation(const Activation& activation);

  [[nodiscard]] std::vector<Argument> all() && { return std::move(all_); }

 private:
  Argument& add(const char* name, ArgumentKind kind, const char* about);

  FindTensor find_;
  std::vector<Argument> all_;
};

/// Makes the argument one that some problems lack.
inline void make_optional(Argument& argument) { argument.is_optional = true; }

/// Knows no tensor, for the arguments of an operation or a problem without a call.
[[nodiscard]] inline Tensor no_tensor(std::string_view) { return {}; }

}  // namespace thresher::arena
