#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <string_view>

#include "arena/honesty/probes.hpp"
#include "arena/honesty/scrambled_memory.hpp"
#include "arena/random.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::honesty {
namespace {

Answer accuse(std::string cheat, std::string sentence) {
  return {Accusation{std::move(cheat), std::move(sentence)}, {}};
}

Answer cannot_tell(std::string why) { return {std::nullopt, std::move(why), true}; }

constexpr const char* right_for_others = "the outputs of other inputs are the right ones here too";

void wait(const Bench& bench) {
  bench.rig.clock().rest(bench.options.wait_s);
  bench.rig.wait();
}

/// Whether the outputs begin with the bytes of an input.
std::optional<std::string> copied_input(const Inputs& inputs, const Outputs& outputs) {
  for (const HostTensor& input : inputs) {
    const std::size_t bytes = std::min(input.values.size(), outputs.front().values.size());
    if (bytes >= 32 && std::memcmp(input.values.data(), outputs.front().values.data(), bytes) == 0) {
      return input.name;
    }
  }
  return std::nullopt;
}

/// Whether every element is NaN.
bool is_all_nan(const Outputs& outputs) {
  const HostTensor& output = outputs.front();
  const auto is_nan = [&](std::size_t i) {
    if (output.format == Format::fp32) {
      float value = 0;
      std::memcpy(&value, &output.values[4 * i], sizeof(value));
      return std::isnan(value);
    }
    if (output.format == Format::fp8_e4m3) {
      return (output.values[i] & 0x7FU) == 0x7FU;
    }
    std::uint16_t half = 0;
    std::memcpy(&half, &output.values[2 * i], sizeof(half));
    const std::uint16_t infinity = output.format == Format::fp16 ? 0x7C00 : 0x7F80;
    return (half & 0x7FFFU) > infinity;
  };
  const auto elements = static_cast<std::size_t>(output.elements());
  for (std::size_t i = 0; i < elements; ++i) {
    if (!is_nan(i)) {
      return false;
    }
  }
  return elements > 0;
}

/// Names a wrong answer that no other experiment explains, by its appearance.
Answer wrong(const std::string& cheat, const Inputs& inputs, const Outputs& outputs, const Finding& finding) {
  if (const auto copied = copied_input(inputs, outputs)) {
    return accuse("returns its input", fmt::format("the outputs are the bytes of its input {}", *copied));
  }
  if (is_all_nan(outputs)) {
    return accuse("NaN instead of an answer", "every element is NaN where the definition has numbers");
  }
  return accuse(cheat, fmt::format("{}: {}", finding.fault, finding.sentence));
}

// Nothing may be written before a call, and preparation may not make the inputs easier.
Answer before_any_call(const Bench& bench) {
  const Session session = bench.session({bench.draw(1)});
  wait(bench);
  if (const auto changed = session.changed_input()) {
    return accuse("makes its data easy", fmt::format("its input {} was changed while it was prepared", *changed));
  }
  if (!session.is_poisoned(0, first_poison)) {
    return accuse("works before it is called", "outputs were written after preparing and before the first call");
  }
  return {};
}

// A call computes its own outputs and no others.
Answer one_call_one_output(const Bench& bench) {
  Session session = bench.session({bench.draw(1), bench.draw(2), bench.draw(3)});
  const Outputs outputs = session.call(1, first_poison);
  if (!session.is_poisoned(0, first_poison) || !session.is_poisoned(2, first_poison)) {
    return accuse("one launch serves many calls", "a call on one input set wrote the outputs of others");
  }
  if (const auto changed = session.changed_input()) {
    return accuse("changes its inputs", fmt::format("its input {} was written to", *changed));
  }
  if (const std::vector<std::string> damage = session.guard_damage(); !damage.empty()) {
    return accuse("writes outside its outputs", damage.front());
  }
  const Finding finding = bench.judge(session.inputs(1), outputs);
  return finding.correct ? Answer{} : wrong("wrong on inputs of its own", session.inputs(1), outputs, finding);
}

/// Whether a call writes its outputs while its own stream is kept busy. Inconclusive when the host was too slow to look
/// in time.
bool works_while_its_stream_is_held(const Bench& bench, Session& session) {
  constexpr double hold_us = 100e3;
  Clock& clock = bench.rig.clock();
  const double start_s = clock.now_s();
  session.poison(0, first_poison);
  if (!bench.rig.hold_stream(hold_us)) {
    return false;
  }
  session.runner().run(bench.rig.stream(), 0);
  clock.rest(bench.options.wait_s);
  const bool is_written = !session.is_poisoned(0, first_poison);
  const double passed_us = (clock.now_s() - start_s) * 1e6;
  bench.rig.wait();
  return is_written && passed_us < hold_us;
}

// When calls have returned (and their stream is idle), their work is done. Several calls run, so that hidden work is
// still going on when the outputs are poisoned.
Answer nothing_after_the_call(const Bench& bench) {
  Session session = bench.session({bench.draw(1)});
  session.run(0, 16);
  session.poison(0, second_poison);
  wait(bench);
  if (!session.is_poisoned(0, second_poison)) {
    return accuse("works on another stream",
                  "outputs were still being written after the call had returned and its stream was idle");
  }
  if (works_while_its_stream_is_held(bench, session)) {
    return accuse("works on another stream", "outputs were written while the call's own stream was kept busy");
  }
  return {};
}

// Every input set is computed from its own inputs.
Answer every_set_has_its_own_inputs(const Bench& bench) {
  Session session = bench.session({bench.draw(1), bench.draw(2), bench.draw(3)});
  const Outputs first = session.call(0, first_poison);
  for (const std::size_t set : {std::size_t{1}, std::size_t{2}}) {
    const Outputs outputs = session.call(set, first_poison);
    const Finding finding = bench.judge(session.inputs(set), outputs);
    if (same_bits(outputs, first)) {
      return finding.correct ? cannot_tell(right_for_others)
                             : accuse("reuses the inputs of another set",
                                      "different inputs gave the outputs of the first set: cold inputs were promised");
    }
    if (!finding.correct) {
      return wrong("reuses part of another set's inputs", session.inputs(set), outputs, finding);
    }
  }
  return {};
}

std::vector<std::string> activations_of(const Inputs& inputs) {
  std::vector<std::string> names;
  for (const HostTensor& input : inputs) {
    if (!input.is_weight) {
      names.push_back(input.name);
    }
  }
  return names;
}

/// The tensors that hold data, whose elements may be exchanged and negated.
std::vector<std::string> data_of(const Inputs& inputs) {
  std::vector<std::string> names;
  for (const HostTensor& input : inputs) {
    if (!input.is_weight && !input.is_index) {
      names.push_back(input.name);
    }
  }
  return names;
}

// New activations at the same addresses.
Answer new_data_at_old_addresses(const Bench& bench) {
  Session session = bench.session({bench.draw(1)});
  const Outputs before = session.call(0, first_poison);
  for (const std::uint64_t seed : {2, 3}) {
    session.replace(0, bench.draw(seed), activations_of(session.inputs(0)));
    const Outputs now = session.call(0, seed == 2 ? second_poison : first_poison);
    const Finding finding = bench.judge(session.inputs(0), now);
    if (same_bits(now, before)) {
      return finding.correct ? cannot_tell(right_for_others)
                             : accuse("answers from a cache keyed by pointer",
                                      "new data at the same addresses gave the old outputs");
    }
    if (is_all(now, seed == 2 ? second_poison : first_poison)) {
      return accuse("leaves the outputs of last time", "a second call on the same buffers wrote nothing");
    }
    if (!finding.correct) {
      return wrong("wrong on new data at old addresses", session.inputs(0), now, finding);
    }
  }
  return {};
}

// A change that sampling a few elements does not notice.
Answer a_small_change_deep_inside(const Bench& bench) {
  Session session = bench.session({bench.draw(1)});
  Outputs before = session.call(0, first_poison);
  for (const std::string& name : data_of(session.inputs(0))) {
    const std::uint64_t seed = derive_seed(bench.options.secret_seed, name);
    const Inputs changed = swap_inner_rows(session.inputs(0), name, seed);
    if (changed[0].values == session.inputs(0)[0].values && changed.size() == 1) {
      continue;
    }
    session.replace(0, changed);
    Outputs now = session.call(0, second_poison);
    const Finding finding = bench.judge(session.inputs(0), now);
    if (!finding.correct) {
      return same_bits(now, before)
                 ? accuse("answers from a cache keyed by a fingerprint of the inputs",
                          fmt::format("two rows inside {} were exchanged, and the outputs stayed the same", name))
                 : wrong("does not look at all of its inputs", session.inputs(0), now, finding);
    }
    before = std::move(now);
  }
  return {};
}

/// `inputs` with those of the same name replaced by `others`.
Inputs with(Inputs inputs, const Inputs& others) {
  for (HostTensor& input : inputs) {
    const auto other =
        std::find_if(others.begin(), others.end(), [&](const HostTensor& one) { return one.name == input.name; });
    input = other == others.end() ? input : *other;
  }
  return inputs;
}

/// The largest number of an output's elements with equal value.
std::int64_t max_alike(const HostTensor& output) {
  const auto elements = static_cast<std::size_t>(output.elements());
  const std::size_t bytes = elements == 0 ? 0 : output.values.size() / elements;
  std::map<std::string_view, std::int64_t> counts;
  std::int64_t most = 0;
  for (std::size_t i = 0; bytes > 0 && i < elements; ++i) {
    const char* const value = reinterpret_cast<const char*>(output.values.data()) + i * bytes;
    most = std::max(most, ++counts[std::string_view(value, bytes)]);
  }
  return most;
}

/// Why right outputs may stay equal however often single elements of the input `name` are negated; empty where they may
/// not.
std::string why_elements_may_not_matter(const Bench& bench, const Inputs& inputs, const std::string& name,
                                        const Outputs& outputs, Distribution distribution) {
  constexpr std::int64_t least = 4;
  constexpr std::int64_t share = 8;
  const std::int64_t elements = outputs.front().elements();
  if (const std::int64_t alike = max_alike(outputs.front()); alike >= least && alike * share > elements) {
    return fmt::format("{} of {} elements of the right outputs have one value", alike, elements);
  }
  Inputs others =
      bench.operation().inputs(bench.problem, distribution, derive_seed(bench.options.secret_seed, "others"));
  std::erase_if(others, [&](const HostTensor& other) { return other.name != name; });
  return bench.judge(with(inputs, others), outputs, distribution).correct
             ? fmt::format("the outputs are the right ones for any {}", name)
             : "";
}

/// One element of `name` was negated, and the outputs stayed equal.
Answer unchanged(const Bench& bench, const char* cheat, const Inputs& inputs, const std::string& name,
                 const Outputs& outputs, bool are_right, Distribution distribution) {
  const std::string why =
      are_right ? why_elements_may_not_matter(bench, inputs, name, outputs, distribution) : std::string();
  return why.empty()
             ? accuse(cheat, fmt::format("one element of {} was negated, and the outputs stayed the same", name))
             : cannot_tell(why);
}

/// Watches the outputs of calls whose inputs have one negated element.
class ElementWatch {
 public:
  /// `all_matter`: whether the outputs depend on every element of every input.
  ElementWatch(Outputs before, bool all_matter) : before_(std::move(before)), all_matter_(all_matter) {}
  /// Whether new inputs got old answers: wrong ones, or equal ones too often for chance.
  [[nodiscard]] bool gives_old_answers(const Outputs& now, bool is_correct) {
    const bool is_same = same_bits(now, before_);
    times_same_ = is_same ? times_same_ + 1 : 0;
    before_ = now;
    return is_same && (!is_correct || (all_matter_ && times_same_ == changes));
  }

  /// The number of changes per input. A change rarely leaves every output bit equal; this many in a row never do.
  static constexpr std::uint64_t changes = 3;

 private:
  Outputs before_;
  bool all_matter_;
  std::uint64_t times_same_ = 0;
};

constexpr const char* by_fingerprint = "answers from a cache keyed by a fingerprint of the inputs";
/// A distribution in which greater elements do not swallow smaller ones.
Distribution distribution_of_elements(const Bench& bench) {
  return bench.operation().offers(bench.problem, Distribution::contest) ? Distribution::contest : Distribution::normal;
}

// Negates single elements in place, several times. A kernel that compares only a part of its inputs, or a sum that
// swallows the rest, mistakes them for the old ones.
Answer single_elements_matter(const Bench& bench) {
  const Distribution distribution = distribution_of_elements(bench);
  Session session = bench.session({bench.draw(bench.options.secret_seed, distribution)}, distribution);
  ElementWatch watch(session.call(0, first_poison), bench.operation().uses_every_element(bench.problem));
  for (const std::string& name : data_of(session.inputs(0))) {
    for (std::uint64_t change = 0; change < ElementWatch::changes; ++change) {
      const std::uint64_t seed = derive_seed(bench.options.secret_seed + change, name + " element");
      session.replace(0, negate_one_element(session.inputs(0), name, seed), {name});
      const Outputs now = session.call(0, change % 2 == 0 ? second_poison : first_poison);
      const Finding finding = bench.judge(session.inputs(0), now, distribution);
      if (watch.gives_old_answers(now, finding.correct)) {
        return unchanged(bench, by_fingerprint, session.inputs(0), name, now, finding.correct, distribution);
      }
      if (!finding.correct) {
        return wrong("does not look at all of its inputs", session.inputs(0), now, finding);
      }
    }
  }
  return {};
}

// Weights change at the same addresses, first two rows, then single elements. Where nothing may be packed they change
// between calls, else before the contestant is prepared anew.
Answer weights_are_looked_at(const Bench& bench) {
  constexpr const char* keeps = "keeps converted weights from an earlier call";
  const Distribution distribution = distribution_of_elements(bench);
  const Inputs inputs = bench.draw(bench.options.secret_seed + 1, distribution);
  std::vector<std::string> weights;
  for (const HostTensor& input : inputs) {
    if (input.is_weight) {
      weights.push_back(input.name);
    }
  }
  if (weights.empty()) {
    return {std::nullopt, "the operation has no weights"};
  }
  Session session = bench.session({inputs}, distribution);
  const auto call_with = [&](const Inputs& changed, std::uint8_t poison) {
    if (bench.options.weights_are_packed) {
      session.prepare_anew(0, changed);
    } else {
      session.replace(0, changed);
    }
    return session.call(0, poison);
  };
  const Outputs before = session.call(0, first_poison);
  Inputs changed = inputs;
  for (const std::string& name : weights) {
    changed = swap_inner_rows(changed, name, derive_seed(bench.options.secret_seed, name));
  }
  const Outputs exchanged = call_with(changed, second_poison);
  if (const Finding finding = bench.judge(changed, exchanged, distribution); !finding.correct) {
    return same_bits(exchanged, before)
               ? accuse(keeps, "two rows of each weight matrix were exchanged, and the outputs stayed the same")
               : wrong("wrong on changed weights", changed, exchanged, finding);
  }
  ElementWatch watch(exchanged, bench.operation().uses_every_element(bench.problem));
  for (const std::string& name : weights) {
    for (std::uint64_t change = 0; change < ElementWatch::changes; ++change) {
      changed = negate_one_element(changed, name, derive_seed(bench.options.secret_seed + change, name + " element"));
      const Outputs now = call_with(changed, change % 2 == 0 ? first_poison : second_poison);
      const Finding finding = bench.judge(changed, now, distribution);
      if (watch.gives_old_answers(now, finding.correct)) {
        return unchanged(bench, keeps, changed, name, now, finding.correct, distribution);
      }
      if (!finding.correct) {
        return wrong("wrong on changed weights", changed, now, finding);
      }
    }
  }
  return {};
}

// Other counts, offsets or ids at the same addresses. A kernel that caches them, or skips groups that look empty,
// fails.
Answer counts_are_read_in_every_call(const Bench& bench) {
  constexpr std::uint64_t changes = 5;
  const auto others = [&](std::uint64_t change) {
    return bench.operation().rearranged(bench.problem, Distribution::full_range, change,
                                        derive_seed(bench.options.secret_seed, "counts"));
  };
  if (!others(0)) {
    return {std::nullopt, "the operation has no counts"};
  }
  Session session = bench.session({bench.draw(1)});
  Outputs before = session.call(0, first_poison);
  for (std::uint64_t change = 0; change < changes; ++change) {
    session.replace(0, with(session.inputs(0), *others(change)));
    Outputs now = session.call(0, first_poison);
    if (const Finding finding = bench.judge(session.inputs(0), now); !finding.correct) {
      return same_bits(now, before)
                 ? accuse("keeps the counts of an earlier call",
                          "each group got other rows, and the outputs stayed the same")
                 : wrong("computes for other counts than it is given", session.inputs(0), now, finding);
    }
    before = std::move(now);
  }
  return {};
}

// Right on data from the announced seed and wrong on data from a secret one.
Answer a_seed_nobody_announced(const Bench& bench) {
  for (const Distribution distribution : {Distribution::contest, Distribution::full_range}) {
    if (!bench.operation().offers(bench.problem, distribution)) {
      continue;
    }
    const Inputs announced = bench.operation().inputs(bench.problem, distribution, bench.options.seed);
    Session session = bench.session({announced, bench.draw(1, distribution)}, distribution);
    const Outputs known = session.call(0, first_poison);
    if (const Finding finding = bench.judge(announced, known, distribution); !finding.correct) {
      return wrong(finding.fault, announced, known, finding);
    }
    const Outputs outputs = session.call(1, first_poison);
    if (const Finding finding = bench.judge(session.inputs(1), outputs, distribution); !finding.correct) {
      return wrong("knows the announced seed", session.inputs(1), outputs, finding);
    }
  }
  return {};
}

// A shape that no suite lists.
Answer a_shape_nobody_listed(const Bench& bench) {
  const std::optional<Problem> neighbour = bench.operation().neighbour(bench.problem);
  if (!neighbour || !bench.contestant.feasible(*neighbour, bench.rig.memory()).yes) {
    return {std::nullopt, "the neighbouring shape is not feasible"};
  }
  const Bench there{*neighbour, bench.contestant, bench.rig, bench.options};
  try {
    Session session = there.session({there.draw(bench.options.secret_seed)});
    const Outputs outputs = session.call(0, first_poison);
    const Finding finding = there.judge(session.inputs(0), outputs);
    return finding.correct ? Answer{} : wrong("right only for listed shapes", session.inputs(0), outputs, finding);
  } catch (const Error& error) {
    // Rejecting a shape with an error is no cheat.
    return {std::nullopt, fmt::format("{}{}", refuses_another_shape, error.what())};
  }
}

// Small integers come out bit for bit only if every step has the declared precision.
Answer declared_precision(const Bench& bench) {
  if (!bench.operation().offers(bench.problem, Distribution::integers)) {
    return {std::nullopt, "the operation has no exact inputs for this problem"};
  }
  Session session =
      bench.session({bench.draw(bench.options.secret_seed, Distribution::integers)}, Distribution::integers);
  const Outputs outputs = session.call(0, first_poison);
  const Finding finding = bench.judge(session.inputs(0), outputs, Distribution::integers);
  return finding.correct ? Answer{}
                         : wrong("computes in lower precision than declared", session.inputs(0), outputs, finding);
}

// Right in the first calls and in the last of many, in batches of the clock's size.
Answer right_after_many_calls(const Bench& bench) {
  Session session = bench.session({bench.draw(1), bench.draw(2)}, Distribution::full_range, Places::together);
  // Poisoned as the batches are: an operation may have padding rows.
  const std::array<Outputs, 2> first{session.call(0, second_poison), session.call(1, second_poison)};
  // The last batch is short again: in a long one, the first calls would have written the elements that later ones leave
  // out.
  constexpr double longest_batch_us = 250e3;
  constexpr double fewest_calls = 20;
  auto many = static_cast<double>(bench.options.calls_before_late_check);
  for (const bool is_long : {false, true, false}) {
    const std::size_t calls = is_long ? static_cast<std::size_t>(many) : 1;
    session.poison(0, second_poison);
    session.poison(1, second_poison);
    const Reading reading = session.measure(2 * calls);
    many = std::min(many, std::max(fewest_calls, longest_batch_us / std::max(1e-3, 2 * reading.us_per_call)));
    for (const std::size_t set : {std::size_t{0}, std::size_t{1}}) {
      const Outputs now = session.download(set);
      if (is_all(now, second_poison)) {
        return accuse("stops working once it is warm",
                      fmt::format("no output was written in a batch of {} calls", 2 * calls));
      }
      if (!same_bits(now, first[set])) {
        return accuse("right at first and wrong later",
                      fmt::format("after a batch of {} calls the outputs differ from the first call's", 2 * calls));
      }
    }
  }
  return {};
}

// Any earlier content of its workspace must do.
Answer any_workspace_will_do(const Bench& bench) {
  std::optional<Outputs> first;
  for (const std::uint8_t byte : {std::uint8_t{0x00}, std::uint8_t{0xFF}, std::uint8_t{0x3C}}) {
    ScrambledMemory memory(bench.rig.memory(), byte);
    Session session = bench.session({bench.draw(1)}, Distribution::full_range, Places::apart, &memory);
    const Outputs outputs = session.call(0, first_poison);
    if (first && !same_bits(outputs, *first)) {
      return accuse("depends on what its workspace held",
                    fmt::format("workspace filled with 0x{:02X} gave other outputs than with zeros", byte));
    }
    first = first ? std::move(first) : outputs;
  }
  return {};
}

}  // namespace

SharedBuffers* Bench::ground(Distribution distribution) const {
  if (grounds == nullptr) {
    return nullptr;
  }
  if (grounds->ground == nullptr || grounds->distribution != distribution) {
    grounds->ground.reset();
    grounds->ground =
        std::make_unique<SharedBuffers>(problem, rig, grounds->pattern, distribution, draw(0, distribution),
                                        derive_seed(options.secret_seed, name(distribution)));
    grounds->distribution = distribution;
  }
  return grounds->ground.get();
}

Inputs Bench::draw(std::uint64_t seed, Distribution distribution) const {
  const std::uint64_t own_seed = derive_seed(seed ^ options.secret_seed, "honesty");
  if (drawn == nullptr) {
    return operation().inputs(problem, distribution, own_seed);
  }
  const auto known = drawn->find(distribution);
  Inputs& all = known != drawn->end()
                    ? known->second
                    : drawn->emplace(distribution, operation().inputs(problem, distribution, own_seed)).first->second;
  Inputs inputs = all;
  Random random(own_seed);
  for (const HostTensor& activation : operation().activations(problem, distribution, own_seed)) {
    const auto place = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const HostTensor& input) { return input.name == activation.name; });
    if (place != inputs.end() && !place->is_weight) {
      *place = activation;
    }
  }
  for (HostTensor& input : inputs) {
    if (input.is_weight && input.rows() > 1) {
      input = rotate_rows(input, 1 + random.index(input.rows() - 1));
    }
  }
  return inputs;
}

Inputs Bench::draw_activations(std::uint64_t seed) const {
  return operation().activations(problem, Distribution::full_range, derive_seed(seed ^ options.secret_seed, "honesty"));
}

Finding Bench::judge(const Inputs& inputs, const Outputs& outputs, Distribution distribution) const {
  return operation()
      .judge(problem, distribution, inputs, {rig.device().kind(), contestant.numerics()},
             derive_seed(options.secret_seed, "judged elements"))
      ->judge(outputs);
}

const std::vector<NamedProbe>& data_probes() {
  static const std::vector<NamedProbe> probes{
      {"before any call", before_any_call},
      {"nothing after the call", nothing_after_the_call},
      {"a seed nobody announced", a_seed_nobody_announced},
      {"one call, one output", one_call_one_output},
      {"every set has its own inputs", every_set_has_its_own_inputs},
      {"new data at old addresses", new_data_at_old_addresses},
      {"a small change deep inside", a_small_change_deep_inside},
      {"single elements matter", single_elements_matter},
      {"weights are looked at", weights_are_looked_at},
      {"counts are read in every call", counts_are_read_in_every_call},
      {"a shape nobody listed", a_shape_nobody_listed},
      {"the declared precision", declared_precision},
      {"right after many calls", right_after_many_calls},
      {"any workspace will do", any_workspace_will_do},
  };
  return probes;
}

}  // namespace thresher::arena::honesty
