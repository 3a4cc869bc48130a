#pragma once
/// A contestant prepared over a few input sets, with all operations that experiments need.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arena/contestants/contestant.hpp"
#include "arena/honesty/ground.hpp"
#include "arena/honesty/honesty.hpp"
#include "arena/operation/operation.hpp"
#include "arena/rig/rig.hpp"

namespace thresher::arena::honesty {

/// Outputs of one call, in the order of Operation::outputs.
using Outputs = std::vector<HostTensor>;
/// The places of a session's sets among those of its SharedBuffers.
enum class Places : std::uint8_t {
  apart,     ///< each between sets of no session, with weights of its own as far as there are groups
  together,  ///< the first ones, so that batches cycle through them
  last,      ///< one that no other session uses
};

class Session {
 public:
  /// Prepares `contestant` over one set for each element of `inputs`. With a `ground` it prepares all of the ground's
  /// sets, and sets that share weights get equal weights. `ground` null: sets of its own. `memory` null: the rig's.
  Session(const Problem& problem, const Contestant& contestant, Rig& rig, std::vector<Inputs> inputs,
          SharedBuffers* ground, Places places = Places::apart, Memory* memory = nullptr);

  [[nodiscard]] const Inputs& inputs(std::size_t set) const { return inputs_[set]; }
  [[nodiscard]] std::size_t num_sets() const { return inputs_.size(); }
  [[nodiscard]] Runner& runner() { return *runner_; }

  /// One call on poisoned outputs, complete on return. On a ground it is one call of a sample, at a random place, made
  /// like timed ones.
  [[nodiscard]] Outputs call(std::size_t set, std::uint8_t poison);
  /// Makes so many calls, cycling through the sets of a session whose places are `together`.
  [[nodiscard]] Reading measure(std::size_t calls);
  /// Makes so many calls alone, and waits for their stream.
  void run(std::size_t set, int calls = 1);
  void poison(std::size_t set, std::uint8_t byte) { sets_[places_[set]].poison_outputs(byte); }
  [[nodiscard]] Outputs download(std::size_t set) const;
  [[nodiscard]] bool is_poisoned(std::size_t set, std::uint8_t byte) const;

  /// Overwrites the set's inputs of the same names: those in `names`, all when it is empty.
  void replace(std::size_t set, const Inputs& inputs, const std::vector<std::string>& names = {});
  /// The same, and prepares the contestant anew over the same buffers.
  void prepare_anew(std::size_t set, const Inputs& inputs);
  /// The name of an input that no longer holds its upload, if there is one.
  [[nodiscard]] std::optional<std::string> changed_input() const;
  /// Writes outside the buffers, in sentences.
  [[nodiscard]] std::vector<std::string> guard_damage() const;

 private:
  void lie_on(SharedBuffers& ground, Places places);
  [[nodiscard]] Batch batch_around(std::size_t place);

  const Problem& problem_;
  const Contestant& contestant_;
  Rig& rig_;
  Memory& memory_;
  Outputs shapes_;
  std::vector<Inputs> inputs_;
  SharedBuffers* ground_;
  std::vector<DeviceSet> sets_;
  std::vector<std::size_t> places_;  ///< the set of each element of inputs_
  std::unique_ptr<Runner> runner_;
};

[[nodiscard]] bool same_bits(const Outputs& a, const Outputs& b);
/// Whether every byte of every output is the poison.
[[nodiscard]] bool is_all(const Outputs& outputs, std::uint8_t byte);

/// `inputs` with two rows of the input `name` exchanged; `seed` chooses them, never the first or the last.
[[nodiscard]] Inputs swap_inner_rows(const Inputs& inputs, const std::string& name, std::uint64_t seed);
/// `inputs` with one element of the input `name` negated: the one of the greatest magnitude among random ones.
[[nodiscard]] Inputs negate_one_element(const Inputs& inputs, const std::string& name, std::uint64_t seed);
/// `inputs` with every value of the activations 0.
[[nodiscard]] Inputs zeroed(const Inputs& inputs);
/// `inputs` with every row of the activations equal to the first.
[[nodiscard]] Inputs constant_rows(const Inputs& inputs);

}  // namespace thresher::arena::honesty
