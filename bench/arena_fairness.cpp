// Checks that the arena neither accuses honest contestants nor finds a difference between equal ones.
//
//   bench_arena_fairness THRESHER tournaments COUNT quiet|busy [PITCH.toml...]
//   bench_arena_fairness THRESHER matches COUNT quiet|busy [PITCH.toml...]
//
// THRESHER is the command. A tournament judges a baseline and one challenger. The challengers alternate: a strategy of
// Thresher's own in this process, one in another, and the kernel of a pitch, which needs a compiler. A contestant that
// fails a gate was accused. A match compares a contestant with itself. "busy" runs one thread per processor that
// alternates work and sleep, at most a fifth of a second each. The exit status is 1 when a contestant was accused, or
// more than 5 % of the matches said "faster" or "slower".
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "arena/gates/match.hpp"
#include "arena/gates/timed.hpp"
#include "arena/operation/contestant_spec.hpp"
#include "arena/pitches/pitch.hpp"
#include "arena/random.hpp"
#include "arena/user_kernels/contestant.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

/// Simulates a shared machine with threads of another process, which are not counted as the judge's.
class Crowd {
 public:
  /// It works while it is called. Make it before there is any thread.
  Crowd() {
    void* const page =
        ::mmap(nullptr, sizeof(std::atomic<unsigned>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || (threads_ = new (page) std::atomic<unsigned>(0), process_ = ::fork()) < 0) {
      throw Error(ErrorCode::io, "a crowd could not be started");
    }
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (*threads_ == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      std::vector<std::thread> threads;
      for (unsigned i = 0; i < threads_->load(); ++i) {
        threads.emplace_back([i] { live(i); });
      }
      threads.front().join();
    }
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  void call(unsigned threads) { *threads_ = threads; }

 private:
  using Clock = std::chrono::steady_clock;

  [[noreturn]] static void live(unsigned seed) {
    Random random(seed + 1);
    std::vector<double> memory(std::size_t{4} << 20);
    for (;;) {
      const auto span = [&] { return std::chrono::milliseconds(1 + random.below(200)); };
      const bool streams = random.below(2) == 0;
      for (const auto until = Clock::now() + span(); Clock::now() < until;) {
        const std::size_t words = streams ? memory.size() : 512;
        for (std::size_t i = 0; i < words; i += 8) {
          memory[i] += 1;
        }
      }
      std::this_thread::sleep_for(span());
    }
  }

  std::atomic<unsigned>* threads_ = nullptr;
  pid_t process_ = -1;
};

Suite suite_of(const std::string& distributions) {
  return parse_suite("title = \"Small\"\noperation = \"dual_gemm\"\ndistributions = [" + distributions +
                         "]\n[[problem]]\nm = 8\nn = 96\nk = 128\na = \"fp16\"\nb = \"fp16\"\nout = \"fp16\"\n",
                     "small", "small.toml");
}

/// The contestants.
class Field {
 public:
  Field(std::string server, const std::vector<std::string>& pitches)
      : server_{std::move(server), "serve-calls"},
        rig_(make_rig("cpu")),
        registry_(library_registry(rig_->device())),
        threads_(std::max(1U, std::thread::hardware_concurrency() / 2)) {
    for (const std::string& path : pitches) {
      pitches_.push_back(load_pitch(path));
    }
  }

  [[nodiscard]] Rig& rig() const { return *rig_; }
  [[nodiscard]] std::size_t kernels() const { return pitches_.size(); }
  /// A strategy in this process, with half of the processors.
  [[nodiscard]] std::unique_ptr<Contestant> own(const std::string& strategy) const {
    return registry_->create(spec(strategy));
  }
  /// The same in a process of its own.
  [[nodiscard]] std::unique_ptr<Contestant> served(const std::string& strategy) const {
    user_kernels::Kernel for_the_cpu;
    for_the_cpu.language = user_kernels::Language::host;
    return user_kernels::baseline_of(for_the_cpu, spec(strategy), rig_->device(), *registry_, server_);
  }
  [[nodiscard]] std::unique_ptr<Contestant> kernel(std::size_t which, const std::string& suffix = "") const {
    const Pitch& pitch = pitches_.at(which);
    ContestantSpec spec = pitch.contestant;
    spec.strategy += suffix;
    return user_kernels::bring(spec, *pitch.kernel, rig_->device(), *registry_, server_);
  }

 private:
  [[nodiscard]] ContestantSpec spec(const std::string& strategy) const {
    return parse_label(fmt::format("dual_gemm/{}[threads={}]", strategy, threads_));
  }

  std::vector<std::string> server_;
  std::unique_ptr<Rig> rig_;
  std::unique_ptr<Registry> registry_;
  unsigned threads_;
  std::vector<Pitch> pitches_;
};

Entry held(const Field& field, const Suite& suite, const Contestant& contestant, const Contestant& baseline,
           std::uint64_t seed, double seconds, const std::vector<std::unique_ptr<Gate>>& gates) {
  Progress progress = Progress::silent();
  TimingOptions timing = timing_options(suite, seconds);
  timing.rest_s = 0.005;  // a tournament's are longer; most of the time would be pauses
  Match match{suite, contestant, baseline, nullptr, field.rig(), seed, timing, progress};
  return hold_match(match, gates, {});
}

/// Judges a baseline alone at first, then with a challenger: in this process, in another, or a user kernel.
int hold_tournaments(const Field& field, int count) {
  const Suite suite = suite_of(R"("contest", "full_range")");
  const auto gates = standard_gates();
  const std::size_t kinds = field.kernels() > 0 ? 3 : 2;
  std::map<std::string, int> verdicts;
  for (int i = 0; i < count; ++i) {
    const auto number = static_cast<std::size_t>(i);
    const auto hold = [&](const Contestant& contestant, const Contestant& baseline) {
      const Entry entry = held(field, suite, contestant, baseline, number, 0.1, gates);
      ++verdicts[plain_verdict(entry)];
      if (entry.verdict == Verdict::failed) {
        fmt::print("tournament {}: {}: {}: {}\n", i + 1, entry.contestant, plain_verdict(entry), entry.sentence);
        std::fflush(stdout);
      }
    };
    const std::size_t round = number / kinds;
    const std::string strategy = round % 2 == 0 ? "interleaved" : "two_pass";
    const std::string baseline_strategy = round % 2 == 0 ? "two_pass" : "interleaved";
    const auto baseline = number % kinds == 0 ? field.own(baseline_strategy) : field.served(baseline_strategy);
    const auto challenger = number % kinds == 0   ? field.own(strategy)
                            : number % kinds == 1 ? field.served(strategy)
                                                  : field.kernel(round % field.kernels());
    if (round < 2) {
      hold(*baseline, *baseline);
    }
    hold(*challenger, *baseline);
  }
  int accused = 0;
  int matches = 0;
  for (const auto& [verdict, times] : verdicts) {
    fmt::print("{}: {}\n", verdict, times);
    matches += times;
    accused += verdict.starts_with("failed at") ? times : 0;
  }
  fmt::print("{} tournaments, {} matches of honest contestants: {} accused\n", count, matches, accused);
  return accused == 0 ? 0 : 1;
}

int hold_matches(const Field& field, int count) {
  const Suite suite = suite_of(R"("contest")");
  std::vector<std::unique_ptr<Gate>> gates;
  for (std::unique_ptr<Gate>& gate : standard_gates()) {
    if (gate->kind() == GateKind::timed || gate->kind() == GateKind::verdict) {
      gates.push_back(std::move(gate));
    }
  }
  std::map<std::string, int> verdicts;
  const int kinds = field.kernels() > 0 ? 3 : 2;
  for (int i = 0; i < count; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    const std::size_t kernel = field.kernels() > 0 ? (seed / 3) % field.kernels() : 0;
    const auto make = [&](const std::string& suffix) {
      return i % kinds == 0   ? field.own("interleaved")
             : i % kinds == 1 ? field.served("interleaved")
                              : field.kernel(kernel, suffix);
    };
    const auto one = make("_one");
    const auto other = make("_other");
    const Entry entry = held(field, suite, *one, *other, seed, 0.4, gates);
    const std::string verdict = plain_verdict(entry);
    ++verdicts[verdict];
    if (entry.verdict != Verdict::within_noise) {
      fmt::print("match {} of {} {}: {}: {}\n", i + 1, entry.contestant,
                 i % kinds == 0 ? "in the same process" : "in processes of their own", verdict, entry.sentence);
      std::fflush(stdout);
    }
  }
  int told_apart = 0;
  for (const auto& [verdict, times] : verdicts) {
    fmt::print("{}: {} of {}\n", verdict, times, count);
    told_apart += verdict == "within noise" ? 0 : times;
  }
  fmt::print("{} matches of a contestant with itself: {} ({:.1f} %) said that there is a difference\n", count,
             told_apart, 100.0 * told_apart / count);
  return 20 * told_apart <= count ? 0 : 1;
}

int run(const std::vector<std::string>& words) {
  if (words.size() < 4 || (words[1] != "tournaments" && words[1] != "matches") ||
      (words[3] != "quiet" && words[3] != "busy")) {
    fmt::print(stderr, "usage: bench_arena_fairness THRESHER tournaments|matches COUNT quiet|busy [PITCH.toml...]\n");
    return 2;
  }
  Crowd crowd;
  const Field field(words[0], {words.begin() + 4, words.end()});
  (void)field.rig().ceilings();
  if (words[3] == "busy") {
    crowd.call(std::thread::hardware_concurrency());
  }
  const int count = std::stoi(words[2]);
  return words[1] == "tournaments" ? hold_tournaments(field, count) : hold_matches(field, count);
}

}  // namespace
}  // namespace thresher::arena

int main(int argc, char** argv) {
  try {
    return thresher::arena::run({argv + 1, argv + argc});
  } catch (const thresher::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
