#pragma once
/// The location of a dual GEMM's weights: the files and the names in them.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "formats/operands.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace thresher::cli {

/// --in, once or several times, for add_checkpoint's command.
void add_checkpoint(CLI::App& command, std::vector<std::string>& in, const std::string& what);
/// Opens them. Throws Error when `out`, the value of --out, is one of the files that may be read, config.json too.
[[nodiscard]] formats::Checkpoint open_checkpoint(const std::vector<std::string>& in, const std::string& out);

/// The names of gate and up, or of both in one tensor.
class WeightNames {
 public:
  /// --gate, --up, --gate-up and --gate-up-order, none of them together with `other`. This object must outlive the
  /// parsing.
  void add_to(CLI::App& command, CLI::Option* other = nullptr);

  [[nodiscard]] formats::GateUp load(const formats::Checkpoint& checkpoint, ScaleLayout layout) const;
  /// Throws Error when gate and up, as two tensors, have one name.
  void check_are_two() const;
  /// The names themselves: of gate and up, or of both in one and their order.
  [[nodiscard]] const std::string& gate_name() const noexcept { return gate_; }
  [[nodiscard]] const std::string& up_name() const noexcept { return up_; }
  [[nodiscard]] const std::string& fused_name() const noexcept { return fused_; }  ///< empty: two tensors
  /// The name of the gate, or of both in one.
  [[nodiscard]] const std::string& first_name() const noexcept { return fused_.empty() ? gate_ : fused_; }
  [[nodiscard]] GateUpOrder order() const noexcept { return order_; }
  /// The option names, for sentences.
  [[nodiscard]] std::string gate() const;
  [[nodiscard]] std::string up() const;

 private:
  std::string gate_ = "b1";
  std::string up_ = "b2";
  std::string fused_;
  GateUpOrder order_ = GateUpOrder::gate_first;
};

/// Prints a line for each MXFP4 operand or stack: its container, and which numerics are exact.
template <class... Matrices>
void say_what_holds_mxfp4(const Matrices&... matrices) {
  const auto say = [](const auto& matrix) {
    if (matrix.is_mxfp4()) {
      fmt::print("{}: {}\n", matrix.source(), matrix.stored_as());
    }
  };
  (say(matrices), ...);
}

/// For the footers of commands.
extern const char* const checkpoint_help;

}  // namespace thresher::cli
