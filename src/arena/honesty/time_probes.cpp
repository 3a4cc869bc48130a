#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "arena/honesty/probes.hpp"

namespace thresher::arena::honesty {
namespace {

/// Pairs of samples, taken one after the other. All of them must agree before anyone is accused: a machine that changes
/// its speed now and then cannot make every pair lie the same way.
constexpr int pairs = 7;
/// How much faster the suspicious sample must be in the middle pair, and at least in every pair.
struct Limits {
  double median;
  double every_pair;
};
constexpr Limits seen_inputs{.median = 2.5, .every_pair = 1.7};
/// Honest kernels may depend on their data a little: attention that follows a row's maximum only when it rises has less
/// to do on zeros. Whoever skips the work saves more than half.
constexpr Limits easy_inputs{.median = 3, .every_pair = 2};
constexpr std::size_t max_sets = 16;
/// A ratio needs no batch as long as a time does: a batch of a twentieth of the shortest that the clock trusts.
constexpr double share_per_batch = 0.05;
/// The clock may be off from the host's own watch by launch and waiting, not by half.
constexpr double clock_limit = 0.5;

/// The middle ratio of all pairs when they are suspicious. The first pair that is not ends it: nobody can be accused
/// then.
template <class Pair>
std::optional<double> suspicious_ratio(const Limits& limits, Pair take_pair) {
  std::vector<double> ratios;
  for (int pair = 0; pair < pairs; ++pair) {
    ratios.push_back(take_pair(pair));
    if (ratios.back() <= limits.every_pair) {
      return std::nullopt;
    }
  }
  std::sort(ratios.begin(), ratios.end());
  const double median = ratios[ratios.size() / 2];
  return median > limits.median ? std::optional(median) : std::nullopt;
}

std::vector<Inputs> draws(const Bench& bench, std::size_t count) {
  std::vector<Inputs> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(bench.draw(i + 1));
  }
  return all;
}

/// The same weights, which may have been packed, with activations that nobody has seen.
Inputs with_new_activations(const Bench& bench, const Inputs& inputs, std::uint64_t seed) {
  const Inputs activations = bench.draw_activations(seed);
  Inputs fresh = inputs;
  for (HostTensor& input : fresh) {
    const auto drawn = std::find_if(activations.begin(), activations.end(), [&](const HostTensor& activation) {
      return activation.name == input.name && !input.is_weight;
    });
    if (drawn != activations.end()) {
      input = *drawn;
    }
  }
  return fresh;
}

double us_per_call(const Bench& bench, Session& session, std::size_t calls) {
  return bench.rig.clock()
      .measure(session.runner(), {.calls = calls, .first_set = 0, .num_sets = session.num_sets()})
      .us_per_call;
}

/// Calls that a batch needs to be trusted, each on a set of its own; 0 when that would be too many.
std::size_t sets_for_a_batch(const Bench& bench) {
  Session session(bench.problem, bench.contestant, bench.rig, {bench.draw(1)});
  // The first call counts: later ones may be answered from a cache.
  const double us = std::max(1e-3, us_per_call(bench, session, 1));
  const double calls = std::ceil(share_per_batch * bench.rig.clock().shortest_batch_us() / us);
  return calls > static_cast<double>(max_sets) ? 0 : std::max<std::size_t>(2, static_cast<std::size_t>(calls));
}

// Inputs it has never seen against the same inputs once more. Before each sample the same other work brings clocks and
// caches into the same state: drawing inputs leaves the device idle.
Answer no_faster_on_inputs_it_has_seen(const Bench& bench) {
  const std::size_t sets = sets_for_a_batch(bench);
  if (sets == 0) {
    return {std::nullopt, "calls are too short for the clock to tell one batch of new inputs from another"};
  }
  Session session(bench.problem, bench.contestant, bench.rig, draws(bench, sets));
  Session other(bench.problem, bench.contestant, bench.rig, {bench.draw(sets + 1)});
  const auto sample = [&] {
    (void)us_per_call(bench, other, sets);
    return us_per_call(bench, session, sets);
  };
  (void)sample();
  const auto fresh_against_seen = [&](int pair) {
    for (std::size_t set = 0; set < sets; ++set) {
      const auto seed = 1000 + static_cast<std::uint64_t>(pair) * sets + set;
      session.replace(set, with_new_activations(bench, session.inputs(set), seed));
    }
    const double fresh_us = sample();
    const double seen_us = sample();
    return fresh_us / std::max(1e-9, seen_us);
  };
  const std::optional<double> ratio = suspicious_ratio(seen_inputs, fresh_against_seen);
  if (!ratio) {
    return {};
  }
  return {Accusation{"keeps answers for inputs it has seen",
                     fmt::format("new inputs take {:.1f} times as long as the same inputs once more", *ratio)},
          {}};
}

/// Random data against easy data in the same buffers.
Answer no_faster_on(const Bench& bench, const char* cheat, const char* what, Inputs (*easy)(const Inputs&)) {
  Session session(bench.problem, bench.contestant, bench.rig, {bench.draw(1)});
  session.run(0);
  const Inputs random = session.inputs(0);
  const Inputs easier = easy(random);
  const double once_us = std::max(1e-3, us_per_call(bench, session, 4));
  const auto calls = static_cast<std::size_t>(
      std::clamp(std::ceil(2 * bench.rig.clock().shortest_batch_us() / once_us), 2.0, 10000.0));
  const auto us_on = [&](const Inputs& inputs) {
    session.replace(0, inputs);
    return us_per_call(bench, session, calls);
  };
  const auto random_against_easy = [&](int pair) {  // in turns, so that being first costs both alike
    const bool easy_first = pair % 2 == 1;
    const double first_us = us_on(easy_first ? easier : random);
    const double second_us = us_on(easy_first ? random : easier);
    const double random_us = easy_first ? second_us : first_us;
    const double easy_us = easy_first ? first_us : second_us;
    return random_us / std::max(1e-9, easy_us);
  };
  const std::optional<double> ratio = suspicious_ratio(easy_inputs, random_against_easy);
  if (!ratio) {
    return {};
  }
  return {Accusation{cheat, fmt::format("random inputs take {:.1f} times as long as {}", *ratio, what)}, {}};
}

Answer no_faster_on_zeros(const Bench& bench) { return no_faster_on(bench, "skips work on zeros", "zeros", zeroed); }

Answer no_faster_on_constant_rows(const Bench& bench) {
  return no_faster_on(bench, "skips work on constant data", "rows that are all the same", constant_rows);
}

// What the device's clock says against the host's watch around it, on a batch that is long for both.
Answer the_clock_is_left_alone(const Bench& bench) {
  Session session(bench.problem, bench.contestant, bench.rig, {bench.draw(1)});
  session.run(0);
  const double once_us = std::max(1e-3, us_per_call(bench, session, 4));
  const auto calls = static_cast<std::size_t>(
      std::clamp(std::ceil(10 * bench.rig.clock().shortest_batch_us() / once_us), 4.0, 20000.0));
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Reading reading =
        bench.rig.clock().measure(session.runner(), {.calls = calls, .first_set = 0, .num_sets = 1});
    if (reading.us_per_call > clock_limit * reading.watch_us_per_call) {
      return {};
    }
  }
  return {Accusation{"tampers with the timer",
                     "the clock says less than half of what the host's own watch says, three times in a row"},
          {}};
}

// No kernel is faster than the matrix unit at its highest clock.
Answer no_faster_than_possible(const Bench& bench) {
  if (!bench.options.is_timed) {
    return {std::nullopt, "the suite is not timed"};
  }
  const Ceilings& ceilings = bench.rig.ceilings();
  const double peak = ceilings.rate(ceilings.peak_operations_per_s, bench.contestant.numerics());
  const Cost cost = bench.operation().cost(bench.problem);
  if (peak <= 0) {
    return {std::nullopt, "the peak of this machine is not known"};
  }
  const double floor_us = cost.operations / peak * 1e6;
  Session session(bench.problem, bench.contestant, bench.rig, {bench.draw(1)});
  session.run(0);
  const double once_us = std::max(1e-3, us_per_call(bench, session, 4));
  const auto calls = static_cast<std::size_t>(
      std::clamp(std::ceil(4 * bench.rig.clock().shortest_batch_us() / once_us), 4.0, 20000.0));
  const double us = us_per_call(bench, session, calls);
  if (us >= floor_us) {
    return {};
  }
  return {Accusation{"faster than is possible",
                     fmt::format("{:.3g} µs a call, under the {:.3g} µs that the matrix unit needs at its peak", us,
                                 floor_us)},
          {}};
}

}  // namespace

const std::vector<NamedProbe>& time_probes() {
  static const std::vector<NamedProbe> probes{
      {"the clock is left alone", the_clock_is_left_alone},
      {"no faster than possible", no_faster_than_possible},
      {"no faster on inputs it has seen", no_faster_on_inputs_it_has_seen},
      {"no faster on zeros", no_faster_on_zeros},
      {"no faster on constant data", no_faster_on_constant_rows},
  };
  return probes;
}

}  // namespace thresher::arena::honesty
