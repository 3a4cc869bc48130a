#pragma once
/// What the arena has to know of an operation: its data, its judge and its cost. Everything else in the arena treats
/// all operations alike.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arena/data/distribution.hpp"
#include "arena/data/host_tensor.hpp"
#include "arena/suites/problem.hpp"

namespace thresher::arena {

/// Faults that a judge names when it knows nothing better; what happened in other calls may explain them.
inline constexpr const char* wrong_values = "wrong values";
inline constexpr const char* one_tile_wrong = "one tile wrong";

/// What a judge says about one call's outputs.
struct [[nodiscard]] Finding {
  bool correct = true;
  std::string fault;       ///< the kind of mistake in a few words, "gate and up swapped"; empty when correct
  std::string sentence;    ///< the worst element and tile with their places
  std::string evidence;    ///< the same and more as a JSON object
  double worst_ratio = 0;  ///< error over what is allowed, of the worst element
};

/// Knows the right outputs for one set of inputs, or for a random part of them that touches every tile.
class Judge {
 public:
  virtual ~Judge() = default;
  /// `outputs` in the order of Operation::outputs.
  virtual Finding judge(const std::vector<HostTensor>& outputs) const = 0;
};

/// Who made the outputs that are judged.
struct Maker {
  DeviceKind device = DeviceKind::cpu;  ///< says how sums are rounded
  Numerics numerics = Numerics::exact;  ///< that it declares, of problems with NVFP4 weights
};

/// The least that any kernel has to do.
struct Cost {
  double operations = 0;        ///< multiplications and additions of the matrix products
  double compulsory_bytes = 0;  ///< every input read once and every output written once
};

class Operation {
 public:
  virtual ~Operation() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Some distributions make no sense for some problems.
  [[nodiscard]] virtual bool offers(const Problem& problem, Distribution distribution) const = 0;
  [[nodiscard]] virtual std::vector<HostTensor> inputs(const Problem& problem, Distribution distribution,
                                                       std::uint64_t seed) const = 0;
  /// Formats and shapes of the outputs.
  [[nodiscard]] virtual std::vector<HostTensor> outputs(const Problem& problem) const = 0;
  /// Input set `index` made cheaply from set 0: other data of the same distribution.
  [[nodiscard]] virtual std::vector<HostTensor> variation(const std::vector<HostTensor>& inputs,
                                                          std::size_t index) const = 0;
  /// Judges all outputs where the definition is cheap enough, else a random part of every tile, chosen by
  /// `seed`.
  [[nodiscard]] virtual std::unique_ptr<Judge> judge(const Problem& problem, Distribution distribution,
                                                     const std::vector<HostTensor>& inputs, const Maker& maker,
                                                     std::uint64_t seed) const = 0;
  [[nodiscard]] virtual Cost cost(const Problem& problem) const = 0;

  // For the gate `honest`.
  /// The inputs other than weights, made without making the weights.
  [[nodiscard]] virtual std::vector<HostTensor> activations(const Problem& problem, Distribution distribution,
                                                            std::uint64_t seed) const {
    return inputs(problem, distribution, seed);
  }
  /// The problem with a shape that no suite lists; nothing when the operation has none to offer.
  [[nodiscard]] virtual std::optional<Problem> neighbour(const Problem&) const { return std::nullopt; }
  /// The problem with its greatest extent halved; nothing when it is small.
  [[nodiscard]] virtual std::optional<Problem> smaller(const Problem&) const { return std::nullopt; }
};

/// Throws Error(internal) for an operation that parse_suite would have refused.
[[nodiscard]] const Operation& find_operation(std::string_view name);

}  // namespace thresher::arena
