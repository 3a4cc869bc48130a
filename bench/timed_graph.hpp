#pragma once
/// Graphs of calls that are timed in turn, so that clocks are the same for all.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "runtime/stream.hpp"

namespace thresher::bench {

/// A graph of `calls`, and the microseconds of a call in each round.
struct TimedGraph {
  runtime::Graph graph;
  std::size_t calls = 1;
  std::vector<double> us{};

  [[nodiscard]] double median() const {
    std::vector<double> sorted = us;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

/// Launches each graph in every round, after a short rest. A round ahead of these does not count. `timed(one)` is the
/// TimedGraph& of one of `all`.
template <class All, class Timed>
void time_in_turn(All& all, int rounds, const Timed& timed) {
  constexpr auto rest = std::chrono::milliseconds(3);
  const runtime::OwnedStream stream(0);
  const runtime::Event begin(0);
  const runtime::Event end(0);
  for (int round = -1; round < rounds; ++round) {
    for (auto& one : all) {
      TimedGraph& of = timed(one);
      std::this_thread::sleep_for(rest);
      begin.record(stream.get());
      of.graph.launch(stream.get());
      end.record(stream.get());
      const double us = end.elapsed_us_since(begin) / static_cast<double>(of.calls);
      if (round >= 0) {
        of.us.push_back(us);
      }
    }
  }
}

}  // namespace thresher::bench
