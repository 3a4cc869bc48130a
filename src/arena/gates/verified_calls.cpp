#include "arena/gates/verified_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "arena/ledger/sha256.hpp"
#include "arena/random.hpp"
#include "reference/parallel.hpp"

namespace thresher::arena {
namespace {

using reference::parallel_for;

std::vector<std::vector<HostTensor>> inputs_of_groups(const FreshInputs& fresh, std::size_t groups) {
  std::vector<std::vector<HostTensor>> inputs(groups);
  parallel_for(static_cast<std::int64_t>(groups), 0, [&](std::int64_t group) {
    inputs[static_cast<std::size_t>(group)] = fresh.inputs_of_group(static_cast<std::size_t>(group));
  });
  return inputs;
}

std::vector<HostTensor> download(const DeviceSet& set, std::vector<HostTensor> outputs) {
  for (HostTensor& output : outputs) {
    output.values = set.download(output.name);
  }
  return outputs;
}

std::vector<Rig*> rigs_of(const Contestant* contestant, const Contestant& baseline, Rig& own) {
  return {&baseline.rig(own), contestant == nullptr ? &baseline.rig(own) : &contestant->rig(own)};
}

/// Threads are worth starting for more than this.
constexpr std::size_t bytes_of_one_thread = std::size_t{1} << 20;
int threads_for(std::size_t bytes) { return bytes > bytes_of_one_thread ? 0 : 1; }

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
      secret_seed_(secret_seed),
      fresh_(problem, distribution, secret_seed),
      environment_(environment) {
  groups_ = inputs_of_groups(fresh_, 1);
  plan_ = plan_calls(problem, groups_.front(), rigs_of(contestant, baseline, own), calls, warm);
  groups_ = inputs_of_groups(fresh_, plan_.groups);
  calls_.resize(plan_.called() + plan_.trusted);
  home_.rig = &baseline.rig(own);
  home_.sets = make_call_sets(home_.rig->memory(), problem, plan_, groups_);
  home_.inspector = inspector_of(baseline, own);
  home_.runner = baseline.prepare(problem, home_.rig->memory(), home_.sets);
  if (contestant != nullptr) {
    call_contestant_back(*contestant, own);
  }
}

std::unique_ptr<Inspector> VerifiedCalls::inspector_of(const Contestant& maker, Rig& own) const {
  return problem_.operation().inspector(problem_, distribution_, groups_.front(),
                                        {own.device().kind(), maker.numerics()}, derive_seed(secret_seed_, "gauge"));
}

void VerifiedCalls::let_contestant_go() { away_.reset(); }

void VerifiedCalls::call_contestant_back(const Contestant& contestant, Rig& own) {
  Lane& there = away_.emplace();
  there.rig = &contestant.rig(own);
  there.sets = there.rig == home_.rig ? home_.sets : make_call_sets(there.rig->memory(), problem_, plan_, groups_);
  // The sets of a trusted computation are none of the contestant's.
  there.sets.erase(there.sets.begin() + static_cast<std::ptrdiff_t>(plan_.called()), there.sets.end());
  there.inspector = inspector_of(contestant, own);
  there.runner = contestant.prepare(problem_, there.rig->memory(), there.sets);
}

/// Nobody who knows some of the data can tell what comes.
std::uint64_t VerifiedCalls::next_seed() {
  return std::stoull(sha256(fmt::format("{} {}", secret_seed_, draws_++)).substr(0, 16), nullptr, 16);
}

VerifiedCalls::Call VerifiedCalls::fresh_call(std::uint64_t seed) const {
  return {fresh_.activations(seed), derive_seed(seed, "poison") % 2 == 0 ? first_poison : second_poison};
}

void VerifiedCalls::prepare(Role role, const Batch& batch, bool cold) {
  Lane& there = lane(role);
  std::vector<std::uint64_t> seeds(batch.calls);
  std::generate(seeds.begin(), seeds.end(), [&] { return next_seed(); });
  const std::size_t bytes = batch.calls * (groups_.front().front().bytes());
  parallel_for(static_cast<std::int64_t>(batch.calls), threads_for(bytes), [&](std::int64_t call) {
    const auto index = static_cast<std::size_t>(call);
    calls_[batch.set_of(index)] = fresh_call(seeds[index]);
  });
  for (std::size_t call = 0; call < batch.calls; ++call) {
    const std::size_t set = batch.set_of(call);
    for (const HostTensor& activation : calls_[set].activations) {
      there.sets[set].replace(activation);
    }
    there.sets[set].poison_outputs(calls_[set].poison);
  }
  if (cold) {
    there.rig->flush_caches();
  }
}

InputsOfCall VerifiedCalls::inputs_of(const Call& call, std::size_t group) const {
  InputsOfCall inputs;
  for (const HostTensor& input : groups_[group]) {
    const auto own = std::find_if(call.activations.begin(), call.activations.end(),
                                  [&](const HostTensor& activation) { return activation.name == input.name; });
    inputs.push_back(input.is_weight || own == call.activations.end() ? &input : &*own);
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

/// Some elements of every call.
std::string VerifiedCalls::look_at_each(Lane& there, const Batch& batch) {
  std::vector<Look> looks;
  Random random(next_seed());
  for (std::size_t call = 0; call < batch.calls; ++call) {
    looks.push_back(there.inspector->choose(random));
    read(there.sets[batch.set_of(call)], looks.back());
  }
  std::vector<std::string> faults(batch.calls);
  const std::size_t bytes = batch.calls * groups_.front().front().bytes() / 16;
  parallel_for(static_cast<std::int64_t>(batch.calls), threads_for(bytes), [&](std::int64_t index) {
    const auto call = static_cast<std::size_t>(index);
    const std::size_t set = batch.set_of(call);
    faults[call] =
        there.inspector->fault_in(looks[call], inputs_of(calls_[set], plan_.group_of(set)), calls_[set].poison);
  });
  for (std::size_t call = 0; call < batch.calls; ++call) {
    if (!faults[call].empty()) {
      return fmt::format("call {} of {} of a sample: {}", call + 1, batch.calls, faults[call]);
    }
  }
  return {};
}

/// Every element of one call, against what the baseline makes of a copy of its inputs.
std::string VerifiedCalls::look_at_whole(Lane& there, std::size_t set) {
  const std::size_t group = plan_.group_of(set);
  const std::size_t trusted = plan_.called() + group;
  for (const HostTensor& activation : calls_[set].activations) {
    home_.sets[trusted].replace(activation);
  }
  home_.sets[trusted].poison_outputs(calls_[set].poison);
  home_.runner->run(home_.rig->stream(), trusted);
  home_.rig->wait();
  Random random(next_seed());
  Look look = home_.inspector->choose(random);
  read(home_.sets[trusted], look);
  if (const std::string fault = home_.inspector->fault_in(look, inputs_of(calls_[set], group), calls_[set].poison);
      !fault.empty()) {
    return "the baseline that outputs are compared with is wrong itself: " + fault;
  }
  ++verification_.whole;
  return there.inspector->fault_against(download(there.sets[set], shapes_), download(home_.sets[trusted], shapes_));
}

std::string VerifiedCalls::changed_input(Lane& there, std::size_t set, bool with_weights) {
  std::vector<HostTensor> inputs = calls_[set].activations;
  if (with_weights) {
    for (const HostTensor& input : groups_[plan_.group_of(set)]) {
      if (input.is_weight) {
        inputs.push_back(input);
      }
    }
  }
  verification_.compared += inputs.size();
  const std::vector<std::string> changed = there.sets[set].changed_inputs(inputs);
  return changed.empty() ? "" : fmt::format("its input {} was written to", changed.front());
}

std::string VerifiedCalls::guard_damage(Lane& there, std::size_t set) {
  std::vector<std::string> damage = there.sets[set].guard_damage();
  return damage.empty() ? "" : damage.front();
}

std::string VerifiedCalls::inspect(Role role, const Batch& batch, bool closely) {
  Lane& there = lane(role);
  there.rig->wait();
  if (std::string changed = environment_.put_right(); !changed.empty()) {
    return changed;
  }
  ++verification_.samples;
  verification_.calls += batch.calls;
  if (std::string fault = look_at_each(there, batch); !fault.empty()) {
    return fault;
  }
  Random random(next_seed());
  const std::size_t call = random.below(batch.calls);
  const std::size_t set = batch.set_of(call);
  const auto in_words = [&](std::string fault) {
    return fault.empty() ? fault : fmt::format("call {} of {} of a sample: {}", call + 1, batch.calls, fault);
  };
  std::string fault = in_words(guard_damage(there, set));
  if (fault.empty()) {
    fault = in_words(changed_input(there, set, random.below(32) == 0));
  }
  // The baseline is compared with nothing but the definition: it would be compared with itself.
  if (fault.empty() && closely && role == Role::contestant) {
    fault = in_words(look_at_whole(there, set));
  }
  return fault;
}

std::string VerifiedCalls::last_look() {
  for (Lane* there : {&home_, away_ ? &*away_ : &home_}) {
    if (const std::vector<std::string> damage = there->runner->guard_damage(); !damage.empty()) {
      return damage.front();
    }
    for (std::size_t set = 0; set < there->sets.size(); ++set) {
      if (std::string damage = guard_damage(*there, set); !damage.empty()) {
        return damage;
      }
    }
    for (std::size_t group = 0; group < plan_.groups; ++group) {
      std::vector<HostTensor> weights = groups_[group];
      std::erase_if(weights, [](const HostTensor& input) { return !input.is_weight; });
      verification_.compared += weights.size();
      if (const std::vector<std::string> changed = there->sets[group].changed_inputs(weights); !changed.empty()) {
        return fmt::format("the weights {} were written to", changed.front());
      }
    }
  }
  return {};
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
    for (int call = 0; call < 2; ++call) {  // the first may compile, or fault pages in
      few.prepare(role, batch, true);
      us = clocked.clock.measure(clocked.runner, batch).us_per_call;
    }
    fastest_us = fastest_us == 0 ? us : std::min(fastest_us, us);
    shortest_us = std::max(shortest_us, clocked.clock.shortest_batch_us());
  }
  return static_cast<std::size_t>(
      std::clamp(std::ceil(shortest_us / std::max(fastest_us, 1e-3)), 1.0, static_cast<double>(max_sets)));
}

}  // namespace thresher::arena
