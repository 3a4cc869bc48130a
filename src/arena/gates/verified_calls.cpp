#include "arena/gates/verified_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "arena/ledger/sha256.hpp"
#include "arena/random.hpp"
#include "reference/parallel.hpp"

namespace thresher::arena {
namespace {

using reference::parallel_for;

std::vector<HostTensor> download(const DeviceSet& set, std::vector<HostTensor> outputs) {
  for (HostTensor& output : outputs) {
    output.values = set.download(output.name);
  }
  return outputs;
}

std::vector<Rig*> rigs_of(const Contestant* contestant, const Contestant& baseline, Rig& own) {
  return {&baseline.rig(own), contestant == nullptr ? &baseline.rig(own) : &contestant->rig(own)};
}

bool is_on_gpu(const Rig& rig) { return rig.device().kind() == DeviceKind::cuda; }

/// More threads pay off only above this size.
constexpr std::size_t bytes_of_one_thread = std::size_t{1} << 20;
int threads_for(std::size_t bytes) { return bytes > bytes_of_one_thread ? 0 : 1; }

/// The budget of one sample for checks against the definition.
constexpr double products_of_a_sample = 4e8;

bool is_unwritten(const Look& look, std::uint8_t poison) {
  return std::any_of(look.parts.begin(), look.parts.end(),
                     [&](const RowPart& part) { return is_poison(part.bytes.data(), part.bytes.size(), poison); });
}

}  // namespace

std::uint64_t secret_seed() {
  std::random_device source;
  return (std::uint64_t{source()} << 32) | source();
}

VerifiedCalls::VerifiedCalls(const Problem& problem, Distribution distribution, const Contestant* contestant,
                             const Contestant& baseline, Rig& own, const Environment& environment, std::size_t calls,
                             bool warm, std::uint64_t secret_seed)
    : problem_(problem),
      distribution_(distribution),
      shapes_(problem.operation().outputs(problem)),
      has_outputs_(
          std::any_of(shapes_.begin(), shapes_.end(), [](const HostTensor& shape) { return shape.elements() > 0; })),
      secret_seed_(secret_seed),
      fresh_(problem, distribution, secret_seed),
      baseline_contestant_(&baseline),
      environment_(environment),
      own_(own) {
  groups_.push_back(fresh_.inputs_of_group(0));
  plan_ = plan_calls(problem, groups_.front(), rigs_of(contestant, baseline, own), calls, warm);
  fresh_.add_groups(groups_, plan_.groups);
  calls_.resize(plan_.called() + plan_.trusted);
  baseline_.had.resize(calls_.size());
  baseline_.rig = &baseline.rig(own);
  baseline_.sets = make_call_sets(baseline_.rig->memory(), problem, plan_, groups_);
  baseline_.inspector = inspector_of(baseline, own);
  baseline_.runner = baseline.prepare(problem, baseline_.rig->memory(), baseline_.sets);
  if (contestant != nullptr) {
    call_contestant_back(*contestant, own);
  }
}

VerifiedCalls::~VerifiedCalls() {
  for (const Role role : {Role::baseline, Role::contestant}) {
    try {
      lane(role).rig->wait();
    } catch (const std::exception&) {
      continue;  // its caller learns of the error when it waits for its calls
    }
  }
}

std::unique_ptr<Inspector> VerifiedCalls::inspector_of(const Contestant& maker, Rig& own) const {
  return !has_outputs_ ? nullptr
                       : problem_.operation().inspector(problem_, distribution_, groups_.front(),
                                                        {own.device().kind(), maker.numerics()},
                                                        derive_seed(secret_seed_, "gauge"));
}

void VerifiedCalls::let_contestant_go() { contestant_.reset(); }

void VerifiedCalls::call_contestant_back(const Contestant& contestant, Rig& own) {
  Lane& there = contestant_.emplace();
  there.had.resize(calls_.size());
  there.rig = &contestant.rig(own);
  there.sets =
      there.rig == baseline_.rig ? baseline_.sets : make_call_sets(there.rig->memory(), problem_, plan_, groups_);
  // A trusted computation must not use the contestant's sets.
  there.sets.erase(there.sets.begin() + static_cast<std::ptrdiff_t>(plan_.called()), there.sets.end());
  there.inspector = inspector_of(contestant, own);
  there.runner = contestant.prepare(problem_, there.rig->memory(), there.sets);
  // Integers are chosen so that sums are exact; other signs would break that.
  weights_may_change_ = !contestant.packs_weights() && has_sets_of_its_own() && distribution_ != Distribution::integers;
}

const HostTensor& VerifiedCalls::weight_of(const Lane& there, std::size_t group, const HostTensor& input) const {
  const auto changed = there.changed_weights.find(group);
  if (changed != there.changed_weights.end()) {
    for (const HostTensor& weight : changed->second) {
      if (weight.name == input.name) {
        return weight;
      }
    }
  }
  return input;
}

/// Gives neighbouring rows of one weight other signs, mostly few of them, so that elements here and there seem the
/// same. Weights of warm calls change, before every one of the first samples and before some of the others. So do those
/// of a few groups, always the same, so that the host keeps few copies.
void VerifiedCalls::change_weights(Lane& there, const Batch& batch) {
  constexpr std::size_t groups_per_changed_one = 8;
  constexpr std::size_t first_warm_samples = 12;
  constexpr std::uint64_t warm_samples_per_change = 3;
  constexpr std::size_t max_bytes = std::size_t{1} << 20;
  Random random(next_seed());
  const std::size_t call = random.below(batch.calls);
  const std::size_t group = plan_.group_of(batch.set_of(call));
  const bool is_one_of_few = (group + secret_seed_) % groups_per_changed_one == 0;
  const auto is_drawn = [&] {
    return ++there.warm_samples <= first_warm_samples || random.below(warm_samples_per_change) == 0;
  };
  if (group == 0 ? !is_drawn() : !is_one_of_few) {
    return;
  }
  std::vector<HostTensor>& weights = there.changed_weights[group];
  if (weights.empty()) {
    std::copy_if(groups_[group].begin(), groups_[group].end(), std::back_inserter(weights),
                 [](const HostTensor& input) {
                   const bool is_matrix = input.shape.size() > 1;  // others are scales
                   return input.is_weight && is_matrix && !input.values.empty();
                 });
  }
  if (weights.empty()) {
    return;  // the operation has no weights
  }
  HostTensor& weight = weights[random.below(weights.size())];
  const std::size_t rows = static_cast<std::size_t>(weight.elements() / weight.shape.back());
  const std::size_t row_bytes = weight.values.size() / rows;
  const std::size_t max_rows = std::clamp<std::size_t>(max_bytes / row_bytes, 1, rows);
  const auto powers_of_two = static_cast<std::uint64_t>(std::bit_width(max_rows));
  const std::size_t count = std::min(max_rows, 1 + random.below(std::uint64_t{1} << random.below(powers_of_two)));
  const std::size_t offset = random.below(rows - count + 1) * row_bytes;
  flip_signs(std::span(weight.values).subspan(offset, count * row_bytes), weight.format, random);
  there.sets[group].replace(weight, offset, count * row_bytes);
  call_on_changed_weights_ = call;
}

/// Knowledge of some of the data must not predict the next.
std::uint64_t VerifiedCalls::next_seed() {
  return std::stoull(sha256(fmt::format("{} {}", secret_seed_, draws_++)).substr(0, 16), nullptr, 16);
}

VerifiedCalls::Call VerifiedCalls::make_call(const Order& order) const {
  const Recipe& recipe = order.recipe;
  Call call{recipe, fresh_.activations(recipe.seed), order.poison};
  std::vector<HostTensor*> data;
  for (HostTensor& activation : call.activations) {
    if (!activation.is_index) {
      data.push_back(&activation);
    }
  }
  if (recipe.change != 0 && !data.empty()) {
    Random random(recipe.change);
    negate_one_element(*data[random.below(data.size())], random);
  }
  return call;
}

SampleKind VerifiedCalls::draw_kind(Role role, const Batch& batch) {
  const Lane& there = lane(role);
  std::size_t had = 0;
  for (std::size_t call = 0; call < batch.calls; ++call) {
    had += there.had[batch.set_of(call)] ? 1 : 0;
  }
  const std::uint64_t draw = next_seed();
  if (role != Role::contestant || 2 * had < batch.calls || samples_of_a_look_back_ == 0 ||
      draw % samples_of_a_look_back_ != 0) {
    return SampleKind::counted;
  }
  // Integers are chosen so that sums are exact; another sign would break that.
  return (draw / samples_of_a_look_back_) % 2 == 0 || distribution_ == Distribution::integers ? SampleKind::seen
                                                                                              : SampleKind::changed;
}

/// Repeated inputs stay on the sets where they were, so that neither address nor data distinguish a call from the
/// previous one.
std::vector<VerifiedCalls::Order> VerifiedCalls::orders_of(Lane& there, const Batch& batch) {
  std::vector<Order> orders(batch.calls);
  for (std::size_t call = 0; call < batch.calls; ++call) {
    const std::size_t set = batch.set_of(call);
    Order& order = orders[call];
    std::optional<Recipe>& had = there.had[set];
    const bool is_fresh = kind_ == SampleKind::counted || !had;
    order.recipe = is_fresh ? Recipe{next_seed()} : *had;
    if (kind_ == SampleKind::changed && !is_fresh) {
      order.recipe.change = next_seed() | 1U;
    }
    order.poison = next_seed() % 2 == 0 ? first_poison : second_poison;
    if (repeated_ && repeated_->set == set) {
      order = {repeated_->recipe, repeated_->poison_before == first_poison ? second_poison : first_poison};
    }
    had = order.recipe;
  }
  repeated_.reset();
  return orders;
}

void VerifiedCalls::make_all_calls(Role role, const Batch& batch) {
  Lane& there = lane(role);
  kind_ = draw_kind(role, batch);
  const std::vector<Order> orders = orders_of(there, batch);
  const std::size_t bytes = batch.calls * (groups_.front().front().bytes());
  parallel_for(static_cast<std::int64_t>(batch.calls), threads_for(bytes), [&](std::int64_t call) {
    const auto index = static_cast<std::size_t>(call);
    calls_[batch.set_of(index)] = make_call(orders[index]);
  });
}

void VerifiedCalls::put_in_place(Lane& there, const Batch& batch) {
  call_on_changed_weights_.reset();
  if (weights_may_change_ && changes_weights_ && &there == &*contestant_) {
    change_weights(there, batch);
  }
  for (std::size_t call = 0; call < batch.calls; ++call) {
    const std::size_t set = batch.set_of(call);
    for (const HostTensor& activation : calls_[set].activations) {
      there.sets[set].replace(activation);
    }
    there.sets[set].poison_outputs(calls_[set].poison);
  }
}

void VerifiedCalls::prepare(Role role, const Batch& batch, bool cold) {
  make_all_calls(role, batch);
  put_in_place(lane(role), batch);
  if (cold) {
    lane(role).rig->flush_caches();
  }
}

void VerifiedCalls::make(Role role, const Batch& batch) {
  make_all_calls(role, batch);
  if (!is_on_gpu(*lane(role).rig)) {
    put_in_place(lane(role), batch);
  }
}

void VerifiedCalls::put_in_inputs(Role role, const Batch& batch) {
  if (is_on_gpu(*lane(role).rig)) {
    put_in_place(lane(role), batch);
  }
}

InputsOfCall VerifiedCalls::inputs_of(const Lane& there, std::size_t set) const {
  const std::vector<HostTensor>& activations = calls_[set].activations;
  const std::size_t group = plan_.group_of(set);
  InputsOfCall inputs;
  for (const HostTensor& input : groups_[group]) {
    const auto own = std::find_if(activations.begin(), activations.end(),
                                  [&](const HostTensor& activation) { return activation.name == input.name; });
    inputs.push_back(input.is_weight || own == activations.end() ? &weight_of(there, group, input) : &*own);
  }
  return inputs;
}

void VerifiedCalls::read(const DeviceSet& set, Look& look) const {
  for (RowPart& part : look.parts) {
    const HostTensor& shape = shapes_.at(part.output);
    const std::size_t element_bytes = static_cast<std::size_t>(bits(shape.format)) / 8;
    const auto first = static_cast<std::size_t>(part.row * shape.shape.back() + part.first_column);
    part.bytes =
        set.download(shape.name, first * element_bytes, static_cast<std::size_t>(part.columns) * element_bytes);
  }
}

/// Reads some elements of every call. The budget limits how many calls are checked against the definition; unwritten
/// ones come first.
std::string VerifiedCalls::look_at_each(Lane& there, const Batch& batch) {
  std::vector<Look> looks;
  std::vector<bool> unwritten;
  Random random(next_seed());
  for (std::size_t call = 0; call < batch.calls; ++call) {
    looks.push_back(there.inspector->choose(random));
    read(there.sets[batch.set_of(call)], looks.back());
    unwritten.push_back(is_unwritten(looks.back(), calls_[batch.set_of(call)].poison));
  }
  const std::vector<std::size_t> chosen = calls_to_look_at(there.inspector->products_of_a_look(), unwritten, random);
  std::vector<std::string> faults(chosen.size());
  const std::size_t bytes = chosen.size() * groups_.front().front().bytes() / 16;
  parallel_for(static_cast<std::int64_t>(chosen.size()), threads_for(bytes), [&](std::int64_t index) {
    const auto at = static_cast<std::size_t>(index);
    const std::size_t set = batch.set_of(chosen[at]);
    faults[at] = there.inspector->fault_in(looks[chosen[at]], inputs_of(there, set), calls_[set].poison);
  });
  verified_counts_.looked += chosen.size();
  for (std::size_t at = 0; at < chosen.size(); ++at) {
    if (!faults[at].empty()) {
      return fmt::format("call {} of {} of a sample: {}", chosen[at] + 1, batch.calls, faults[at]);
    }
  }
  return {};
}

const DeviceSet& VerifiedCalls::compute_trusted(const Lane& there, std::size_t set) {
  const std::size_t group = plan_.group_of(set);
  const bool has_changed = there.changed_weights.contains(group);
  const std::size_t trusted = has_changed ? 0 : plan_.called() + group;
  if (has_changed && !trusted_) {
    trusted_ = Trusted{{DeviceSet(baseline_.rig->memory(), groups_[group], shapes_)}};
  }
  DeviceSet& inputs = has_changed ? trusted_->sets.front() : baseline_.sets[trusted];
  for (const HostTensor* const input : inputs_of(there, set)) {
    if (has_changed || !input->is_weight) {
      inputs.replace(*input);
    }
  }
  inputs.poison_outputs(calls_[set].poison);
  if (has_changed) {  // it may pack weights
    trusted_->runner = baseline_contestant_->prepare(problem_, baseline_.rig->memory(), trusted_->sets);
  }
  (has_changed ? trusted_->runner : baseline_.runner)->run(baseline_.rig->stream(), trusted);
  baseline_.rig->wait();
  return inputs;
}

/// Compares every element of one call with the baseline's outputs on a copy of its inputs.
std::string VerifiedCalls::look_at_whole(Lane& there, std::size_t set) {
  const DeviceSet& trusted = compute_trusted(there, set);
  Random random(next_seed());
  Look look = baseline_.inspector->choose(random);
  read(trusted, look);
  if (const std::string fault = baseline_.inspector->fault_in(look, inputs_of(there, set), calls_[set].poison);
      !fault.empty()) {
    baseline_is_wrong_ = true;
    return "the baseline that outputs are compared with is wrong itself: " + fault;
  }
  ++verified_counts_.whole;
  return there.inspector->fault_against(download(there.sets[set], shapes_), download(trusted, shapes_));
}

std::string VerifiedCalls::changed_input(Lane& there, std::size_t set, bool with_weights) {
  std::vector<HostTensor> inputs = calls_[set].activations;
  if (with_weights) {
    for (const HostTensor* const input : inputs_of(there, set)) {
      if (input->is_weight) {
        inputs.push_back(*input);
      }
    }
  }
  verified_counts_.compared += inputs.size();
  const std::vector<std::string> changed = there.sets[set].changed_inputs(inputs);
  return changed.empty() ? "" : fmt::format("its input {} was written to", changed.front());
}

MadeCall VerifiedCalls::made(Role role, std::size_t set) const {
  MadeCall call{{}, download(lane(role).sets[set], shapes_), calls_[set].recipe, calls_[set].poison};
  for (const HostTensor* input : inputs_of(lane(role), set)) {
    call.inputs.push_back(*input);
  }
  return call;
}

std::string VerifiedCalls::damage_of(Role role, std::size_t set) const {
  std::vector<std::string> damage = lane(role).runner->guard_damage();
  if (damage.empty()) {
    damage = lane(role).sets[set].guard_damage();
  }
  return damage.empty() ? "" : damage.front();
}

std::string VerifiedCalls::change_of(Role role, std::size_t set) { return changed_input(lane(role), set, true); }

std::string VerifiedCalls::inspect(Role role, const Batch& batch, bool closely) {
  Lane& there = lane(role);
  there.rig->wait();
  std::string left_changed = environment_.restore();
  if (std::string on_device = own_.restore(); left_changed.empty()) {
    left_changed = std::move(on_device);
  }
  if (!left_changed.empty()) {
    return left_changed;
  }
  ++verified_counts_.samples;
  verified_counts_.calls += batch.calls;
  verified_counts_.uncounted += kind_ == SampleKind::counted ? 0 : 1;
  if (std::string fault = has_outputs_ ? look_at_each(there, batch) : ""; !fault.empty()) {
    return fault;
  }
  Random random(next_seed());
  const std::size_t call = call_on_changed_weights_.value_or(random.below(batch.calls));
  const std::size_t set = batch.set_of(call);
  const auto in_words = [&](std::string fault) {
    return fault.empty() ? fault : fmt::format("call {} of {} of a sample: {}", call + 1, batch.calls, fault);
  };
  std::string fault = in_words(damage_of(role, set));
  if (fault.empty()) {
    fault = in_words(changed_input(there, set, random.below(32) == 0));
  }
  // The baseline is compared only with the definition, never with itself.
  const bool looks_at_whole = closely || kind_ != SampleKind::counted || call_on_changed_weights_;
  if (fault.empty() && looks_at_whole && role == Role::contestant && has_outputs_) {
    fault = in_words(look_at_whole(there, set));
  }
  return fault;
}

std::string VerifiedCalls::damage(std::size_t most) {
  Random random(next_seed());
  for (const Role role : {Role::baseline, Role::contestant}) {
    if (const std::vector<std::string> damage = lane(role).runner->guard_damage(); !damage.empty()) {
      return damage.front();
    }
    if (role == Role::contestant && !has_sets_of_its_own()) {
      continue;
    }
    const std::vector<DeviceSet>& sets = lane(role).sets;
    for (std::size_t looked = 0; looked < std::min(most, sets.size()); ++looked) {
      const std::size_t set = most < sets.size() ? random.below(sets.size()) : looked;
      if (const std::vector<std::string> damage = sets[set].guard_damage(); !damage.empty()) {
        return damage.front();
      }
    }
  }
  return {};
}

std::string VerifiedCalls::last_look() {
  if (std::string damaged = damage(); !damaged.empty()) {
    return damaged;
  }
  for (const Role role : {Role::baseline, Role::contestant}) {
    if (role == Role::contestant && !has_sets_of_its_own()) {
      continue;
    }
    Lane* const there = &lane(role);
    for (std::size_t group = 0; group < plan_.groups; ++group) {
      std::vector<HostTensor> weights;
      for (const HostTensor& input : groups_[group]) {
        if (input.is_weight) {
          weights.push_back(weight_of(*there, group, input));
        }
      }
      verified_counts_.compared += weights.size();
      if (const std::vector<std::string> changed = there->sets[group].changed_inputs(weights); !changed.empty()) {
        return fmt::format("the weights {} were written to", changed.front());
      }
    }
  }
  return {};
}

std::vector<std::size_t> calls_to_look_at(double products_of_a_look, const std::vector<bool>& unwritten,
                                          Random& random) {
  std::vector<std::size_t> calls(unwritten.size());
  std::iota(calls.begin(), calls.end(), std::size_t{0});
  if (products_of_a_look * static_cast<double>(calls.size()) > products_of_a_sample) {
    random.shuffle(calls);
    std::partition(calls.begin(), calls.end(), [&](std::size_t call) { return unwritten[call]; });
    calls.resize(std::max<std::size_t>(1, static_cast<std::size_t>(products_of_a_sample / products_of_a_look)));
    std::sort(calls.begin(), calls.end());
  }
  return calls;
}

std::size_t estimated_calls(const Problem& problem, Distribution distribution, const Contestant* contestant,
                            const Contestant& baseline, Rig& own, const Environment& environment,
                            std::uint64_t secret_seed) {
  VerifiedCalls few(problem, distribution, contestant, baseline, own, environment, 1, true,
                    derive_seed(secret_seed, "estimate"));
  double fastest_us = 0;
  double shortest_us = 0;
  for (const Role role : {Role::baseline, Role::contestant}) {
    if (role == Role::contestant && contestant == nullptr) {
      continue;
    }
    Clocked clocked = role == Role::contestant ? *few.contestant() : few.baseline();
    const Batch batch = few.plan().ranges().warm.batch(1);
    double us = 0;
    for (int call = 0; call < 3; ++call) {
      few.prepare(role, batch, true);
      const double call_us = clocked.clock.measure(clocked.runner, batch).us_per_call;
      us = call < 2 ? call_us : std::min(us, call_us);  // the first may compile, or fault pages in
      few.wait(role);
      (void)environment.restore();  // a contestant that changes it does so again where it is checked
    }
    fastest_us = fastest_us == 0 ? us : std::min(fastest_us, us);
    shortest_us = std::max(shortest_us, clocked.clock.shortest_batch_us());
  }
  return static_cast<std::size_t>(
      std::clamp(std::ceil(shortest_us / std::max(fastest_us, 1e-3)), 1.0, static_cast<double>(max_sets)));
}

}  // namespace thresher::arena
