#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "arena/honesty/probes.hpp"
#include "arena/timing/statistics.hpp"
#include "arena/timing/timing.hpp"
#include "reference/parallel.hpp"

namespace thresher::arena::honesty {
namespace {

/// Turns of a series. In each, two samples that must take the same time give the noise, and a third is the suspicious
/// one.
constexpr int turns = 8;
/// A series without an effect after so many turns is given up: it cannot accuse.
constexpr std::size_t first_turns = 3;
/// Series that must agree in sequence: a machine that changes its speed now and then cannot cause that.
constexpr int series = 2;
/// The least effects that count (docs/harness/audit-and-honesty.md); above them the spread of the samples decides. New
/// inputs were written a moment ago and seen ones were not, which caches notice.
constexpr double floor_of_seen_inputs = 1.1;
/// Honest kernels may depend a little on their data. Attention that updates its running maximum only when it rises has
/// less to do on zeros, and a card draws less power. Timed data are never easy, so a kernel that saves less than half
/// gains nothing.
constexpr double floor_of_easy_data = 2;
constexpr std::size_t max_sets = 16;
constexpr std::size_t max_host_bytes = std::size_t{1} << 30;
/// A ratio needs smaller batches than a time: a twentieth of the shortest that the clock trusts.
constexpr double share_per_batch = 0.05;
/// The clock may differ from the host's watch by launch and waiting, but not by half.
constexpr double clock_limit = 0.5;

/// The limit of turns that are repeated because a sample waited for busy processors.
constexpr int max_repeated_turns = 2 * turns;
constexpr const char* busy = "this machine is busy: too many samples waited for processors that others used";

/// One turn: the saving of the suspicious sample, and the apparent saving between two equal samples.
struct Turn {
  double suspicious = 1;
  double equal = 1;
  bool waited = false;  ///< one of its samples waited: it cannot accuse
};

/// Microseconds, and whether threads waited too much of them for busy processors.
struct Sample {
  double us = 0;
  bool waited = false;
};

/// The result of a series of turns.
struct Suspicion {
  std::optional<double> ratio{};  ///< empty: nothing
  bool is_busy = false;           ///< the machine is busy, so that nothing was shown
};

/// The median saving of a series when it exceeds, by `floor` and beyond doubt, the apparent saving of equal samples. A
/// turn with a waiting sample is repeated where the others look suspicious.
template <class TakeTurn>
Suspicion suspicious_ratio(double floor, TakeTurn take_turn) {
  double found = 1;
  int repeated = 0;
  for (int one = 0; one < series; ++one) {
    std::vector<double> all;
    std::vector<double> suspicious;
    std::vector<double> equal;
    for (int turn = 0; turn < turns; ++turn) {
      Turn taken;
      do {
        taken = take_turn(one * turns + turn);
        all.push_back(taken.suspicious);
        if (all.size() == first_turns && median(all) <= floor) {
          return {};
        }
      } while (taken.waited && ++repeated <= max_repeated_turns);
      if (taken.waited) {
        return {.is_busy = true};
      }
      suspicious.push_back(taken.suspicious);
      equal.push_back(taken.equal);
    }
    if (!is_beyond_doubt(suspicious, equal, floor)) {
      return {};
    }
    found = median(suspicious);
  }
  return {found};
}

/// The inputs that are no weights, which may have been packed.
Inputs activations_in(const Inputs& inputs) {
  Inputs activations;
  std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(activations),
               [](const HostTensor& input) { return !input.is_weight; });
  return activations;
}

std::size_t bytes_of(const Inputs& inputs) {
  return std::accumulate(inputs.begin(), inputs.end(), std::size_t{0},
                         [](std::size_t bytes, const HostTensor& input) { return bytes + input.bytes(); });
}

/// Makes one element per index, on all processors: inputs may be large.
template <class Make>
std::vector<Inputs> each_of(std::size_t count, const Make& make) {
  std::vector<Inputs> all(count);
  reference::parallel_for(static_cast<std::int64_t>(count), 0, [&](std::int64_t index) {
    all[static_cast<std::size_t>(index)] = make(static_cast<std::size_t>(index));
  });
  return all;
}

std::vector<Inputs> draws(const Bench& bench, std::size_t count) {
  (void)bench.draw(0);  // the others reuse its weights
  return each_of(count, [&](std::size_t index) { return bench.draw(index + 1); });
}

Sample take_sample(const Bench& bench, Session& session, std::size_t calls) {
  bench.rig.flush_caches();
  const Reading reading = session.measure(calls);
  return {reading.us_per_call, reading.waited_share.value_or(0) > max_waited_share};
}

double us_per_call(const Bench& bench, Session& session, std::size_t calls) {
  return take_sample(bench, session, calls).us;
}

/// The time ratio of `greater` to `smaller`; neither is 0 for long.
double ratio_of(const Sample& greater, const Sample& smaller) { return greater.us / std::max(1e-9, smaller.us); }

/// Calls that a trusted batch needs, each on a set of its own; 0 when that would be too many. On a ground it is the
/// size of a sample, as far as host memory allows, and one set is left over.
std::size_t sets_for_a_batch(const Bench& bench) {
  if (const SharedBuffers* const ground = bench.ground()) {
    const std::size_t affordable = max_host_bytes / std::max<std::size_t>(bytes_of(bench.draw(1)), 1);
    return std::min({ground->pattern().calls, ground->count() - 1, std::max<std::size_t>(affordable, 1)});
  }
  Session session = bench.session({bench.draw(1)});
  // The first call counts: a cache may answer later ones.
  const double us = std::max(1e-3, us_per_call(bench, session, 1));
  const double calls = std::ceil(share_per_batch * bench.rig.clock().shortest_batch_us() / us);
  return calls > static_cast<double>(max_sets) ? 0 : std::max<std::size_t>(2, static_cast<std::size_t>(calls));
}

// Compares unseen inputs with a repetition of the same inputs. Before each sample the same other work brings clocks and
// caches into the same state: drawing inputs leaves the device idle.
Answer no_faster_on_inputs_it_has_seen(const Bench& bench) {
  const std::size_t sets = sets_for_a_batch(bench);
  if (sets == 0) {
    return {std::nullopt, "calls are too short for the clock to tell one batch of new inputs from another"};
  }
  Session session = bench.session(draws(bench, sets), Distribution::full_range, Places::together);
  Session other = bench.session({bench.draw(sets + 1)}, Distribution::full_range, Places::last);
  const auto sample = [&] {
    (void)us_per_call(bench, other, sets);
    return take_sample(bench, session, sets);
  };
  (void)sample();
  std::uint64_t seed = 1000;
  const auto sample_of_new = [&] {
    const std::vector<Inputs> fresh =
        each_of(sets, [&](std::size_t set) { return activations_in(bench.draw_activations(seed + set)); });
    seed += sets;
    for (std::size_t set = 0; set < sets; ++set) {
      session.replace(set, fresh[set]);
    }
    return sample();
  };
  const auto new_against_seen = [&](int) {
    const Sample on_new = sample_of_new();
    const Sample on_other = sample_of_new();
    const Sample on_seen = sample();
    return Turn{ratio_of(on_other, on_seen), ratio_of(on_new, on_other),
                on_new.waited || on_other.waited || on_seen.waited};
  };
  const Suspicion found = suspicious_ratio(floor_of_seen_inputs, new_against_seen);
  if (!found.ratio) {
    return {std::nullopt, found.is_busy ? busy : ""};
  }
  return {Accusation{"keeps answers for inputs it has seen",
                     fmt::format("new inputs take {:.1f} times as long as the same inputs once more", *found.ratio)},
          {}};
}

/// Compares random data with easy data in the same buffers: on a ground in samples like timed ones, else repeatedly on
/// one set.
Answer no_faster_on(const Bench& bench, const char* cheat, const char* what, Inputs (*easy)(const Inputs&)) {
  const std::size_t sets = bench.grounds != nullptr ? sets_for_a_batch(bench) : 1;
  Session session = bench.session(draws(bench, sets), Distribution::full_range, Places::together);
  session.run(0);
  std::vector<Inputs> random;
  std::vector<Inputs> easier;
  for (std::size_t set = 0; set < sets; ++set) {
    random.push_back(activations_in(session.inputs(set)));
    easier.push_back(easy(random.back()));
  }
  std::size_t calls = sets;
  if (bench.grounds == nullptr) {
    const double once_us = std::max(1e-3, us_per_call(bench, session, 4));
    calls = static_cast<std::size_t>(
        std::clamp(std::ceil(2 * bench.rig.clock().shortest_batch_us() / once_us), 2.0, 10000.0));
  }
  const auto sample_on = [&](const std::vector<Inputs>& inputs) {
    for (std::size_t set = 0; set < sets; ++set) {
      session.replace(set, inputs[set]);
    }
    return take_sample(bench, session, calls);
  };
  const auto random_against_easy = [&](int turn) {  // alternating, so that the cost of being first is shared
    const bool easy_first = turn % 2 == 1;
    const Sample first = sample_on(easy_first ? easier : random);
    const Sample middle = sample_on(random);
    const Sample last = sample_on(easy_first ? random : easier);
    return Turn{ratio_of(middle, easy_first ? first : last), ratio_of(middle, easy_first ? last : first),
                first.waited || middle.waited || last.waited};
  };
  const Suspicion found = suspicious_ratio(floor_of_easy_data, random_against_easy);
  if (!found.ratio) {
    return {std::nullopt, found.is_busy ? busy : ""};
  }
  return {Accusation{cheat, fmt::format("random inputs take {:.1f} times as long as {}", *found.ratio, what)}, {}};
}

Answer no_faster_on_zeros(const Bench& bench) { return no_faster_on(bench, "skips work on zeros", "zeros", zeroed); }

Answer no_faster_on_constant_rows(const Bench& bench) {
  return no_faster_on(bench, "skips work on constant data", "rows that are all the same", constant_rows);
}

// Compares the device's clock with the host's watch around it, on a batch that is long for both.
Answer the_clock_is_left_alone(const Bench& bench) {
  Session session = bench.session({bench.draw(1)}, Distribution::full_range, Places::together);
  session.run(0);
  const double once_us = std::max(1e-3, us_per_call(bench, session, 4));
  const auto calls = static_cast<std::size_t>(
      std::clamp(std::ceil(10 * bench.rig.clock().shortest_batch_us() / once_us), 4.0, 20000.0));
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Reading reading = session.measure(calls);
    if (reading.us_per_call > clock_limit * reading.watch_us_per_call) {
      return {};
    }
  }
  return {Accusation{"tampers with the timer",
                     "the clock says less than half of what the host's own watch says, three times in a row"},
          {}};
}

// No kernel is faster than the machine's peak at its highest clock.
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
  Session session = bench.session({bench.draw(1)}, Distribution::full_range, Places::together);
  session.run(0);
  const double once_us = std::max(1e-3, us_per_call(bench, session, 4));
  const auto calls = static_cast<std::size_t>(
      std::clamp(std::ceil(4 * bench.rig.clock().shortest_batch_us() / once_us), 4.0, 20000.0));
  const double us = us_per_call(bench, session, calls);
  if (us >= floor_us) {
    return {};
  }
  return {Accusation{"faster than is possible", fmt::format("{:.3g} µs a call, under the {:.3g} µs that the tensor "
                                                            "cores or the widest vector unit need at their peak",
                                                            us, floor_us)},
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
