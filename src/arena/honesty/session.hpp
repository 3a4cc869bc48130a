#pragma once
/// A contestant prepared over a few input sets, with everything that an experiment does to them.
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
/// Where the sets of a session lie among those of its ground.
enum class Places : std::uint8_t {
  apart,     ///< each beside sets of nobody's, with weights of its own as far as there are groups
  together,  ///< the first ones, so that batches pass over them in turn
  last,      ///< one that no other session uses
};

class Session {
 public:
  /// Prepares `contestant` over one set for each element of `inputs`: on a ground, over all of its sets, where what has
  /// the weights of a set before is given those. `ground` null: sets of its own. `memory` null: the rig's.
  Session(const Problem& problem, const Contestant& contestant, Rig& rig, std::vector<Inputs> inputs,
          SharedBuffers* ground, Places places = Places::apart, Memory* memory = nullptr);

  [[nodiscard]] const Inputs& inputs(std::size_t set) const { return inputs_[set]; }
  [[nodiscard]] std::size_t num_sets() const { return inputs_.size(); }
  [[nodiscard]] Runner& runner() { return *runner_; }

  /// One call on poisoned outputs, complete on return. On a ground it is one of a sample's, at a place that is drawn,
  /// and made as those that are timed are.
  [[nodiscard]] Outputs call(std::size_t set, std::uint8_t poison);
  /// So many calls on the sets of a session that lies together, in turn.
  [[nodiscard]] Reading measure(std::size_t calls);
  /// So many calls alone, until their stream is done.
  void run(std::size_t set, int calls = 1);
  void poison(std::size_t set, std::uint8_t byte) { sets_[places_[set]].poison_outputs(byte); }
  [[nodiscard]] Outputs download(std::size_t set) const;
  [[nodiscard]] bool is_poisoned(std::size_t set, std::uint8_t byte) const;

  /// Puts other data where those of the set's inputs lie that have their names: those of `names`, all when it is empty.
  void replace(std::size_t set, const Inputs& inputs, const std::vector<std::string>& names = {});
  /// The same, and the contestant is prepared anew over the same buffers.
  void prepare_anew(std::size_t set, const Inputs& inputs);
  /// The name of an input that no longer holds what it was given, if there is one.
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
  std::vector<std::size_t> places_;  ///< of each element of inputs_ among the sets
  std::unique_ptr<Runner> runner_;
};

[[nodiscard]] bool same_bits(const Outputs& a, const Outputs& b);
/// Whether every byte of every output is the poison.
[[nodiscard]] bool is_all(const Outputs& outputs, std::uint8_t byte);

/// `inputs` with two rows of the input `name`, chosen by `seed` away from the first and the last, given new places.
[[nodiscard]] Inputs swap_inner_rows(const Inputs& inputs, const std::string& name, std::uint64_t seed);
/// `inputs` with one element of the input `name` negated: the one of the greatest magnitude among random ones.
[[nodiscard]] Inputs negate_one_element(const Inputs& inputs, const std::string& name, std::uint64_t seed);
/// `inputs` with every value of the activations 0.
[[nodiscard]] Inputs zeroed(const Inputs& inputs);
/// `inputs` with every row of the activations equal to the first.
[[nodiscard]] Inputs constant_rows(const Inputs& inputs);

}  // namespace thresher::arena::honesty
