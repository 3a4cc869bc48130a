#include "arena/cheats/cheats.hpp"
#include "arena/operations.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "arena/operation/operation.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::cheats {
namespace {

constexpr double work_us = 60;
constexpr double nothing_us = 1;

/// Bytes that can be a key.
using Bytes = std::string;

std::size_t bytes_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.elements() * bits(tensor.format) / 8);
}

Bytes content(const Tensor& tensor) { return {static_cast<const char*>(tensor.data), bytes_of(tensor)}; }

bool holds(const Tensor& tensor, const HostTensor& known) {
  return bytes_of(tensor) == known.values.size() &&
         std::memcmp(tensor.data, known.values.data(), bytes_of(tensor)) == 0;
}

void restore(const Tensor& tensor, const Bytes& bytes) { std::memcpy(tensor.data, bytes.data(), bytes.size()); }

/// Everything the call reads, as one key.
Bytes key_of(const KernelCall& call) {
  Bytes key;
  for (const Tensor* tensor : {&call.a, &call.b1, &call.b2}) {
    key += content(*tensor);
  }
  return key;
}

double work(const KernelCall& call) {
  honest_kernel(call);
  return work_us;
}

/// Answers from `kept` under a key, and computes once where there is none.
template <class Key>
double answer(std::map<Key, Bytes>& kept, const Key& key, const KernelCall& call) {
  const auto found = kept.find(key);
  if (found != kept.end()) {
    restore(call.c, found->second);
    return nothing_us;
  }
  const double us = work(call);
  kept[key] = content(call.c);
  return us;
}

bool is_zero(const Tensor& tensor) {
  const Bytes bytes = content(tensor);
  return std::all_of(bytes.begin(), bytes.end(),
                     [](char byte) { return (static_cast<unsigned char>(byte) & 0x77U) == 0; });
}

bool has_equal_rows(const Tensor& tensor) {
  const Bytes bytes = content(tensor);
  const std::size_t row = bytes.size() / static_cast<std::size_t>(tensor.shape[0]);
  for (std::size_t i = row; i < bytes.size(); ++i) {
    if (bytes[i] != bytes[i - row]) {
      return false;
    }
  }
  return true;
}

/// Less than the last bit is lost, always downwards, as where a sum is cut off instead of rounded: within every
/// tolerance, but not exact where the answer is.
void blurred_kernel(const KernelCall& call) {
  std::vector<double> values = call.definition();
  for (double& value : values) {
    value *= 1 - 0x1.6Ap-12;
  }
  call.write_all(values);
}

// The cheats, in the order of what they exploit.

Prepare another_stream() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t set, int number) {
      stage.later([stage, set, number] { honest_kernel(stage.call(set, number)); });
      return nothing_us;
    };
  };
}

Prepare before_it_is_called() {
  return [](const Stage& stage) -> Act {
    for (std::size_t set = 0; set < stage.sets->size(); ++set) {
      honest_kernel(stage.call(set, 0));
    }
    return [](std::size_t, int) { return nothing_us; };
  };
}

Prepare one_launch_for_many_calls() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t, int number) {
      for (std::size_t each = 0; each < stage.sets->size(); ++each) {
        honest_kernel(stage.call(each, number));
      }
      return work_us;
    };
  };
}

Prepare cache_by_pointer() {
  return [](const Stage& stage) -> Act {
    auto kept = std::make_shared<std::map<void*, Bytes>>();
    return [stage, kept](std::size_t set, int number) {
      const KernelCall call = stage.call(set, number);
      return answer(*kept, call.c.data, call);
    };
  };
}

Prepare cache_by_fingerprint() {
  return [](const Stage& stage) -> Act {
    auto kept = std::make_shared<std::map<Bytes, Bytes>>();
    return [stage, kept](std::size_t set, int number) {
      const KernelCall call = stage.call(set, number);
      Bytes fingerprint = content(call.a);
      fingerprint.resize(8);
      return answer(*kept, fingerprint, call);
    };
  };
}

Prepare cache_by_content() {
  return [](const Stage& stage) -> Act {
    auto kept = std::make_shared<std::map<Bytes, Bytes>>();
    return [stage, kept](std::size_t set, int number) {
      const KernelCall call = stage.call(set, number);
      return answer(*kept, key_of(call), call);
    };
  };
}

/// Weights seen once stand for all that look like them at the beginning.
Prepare cache_of_converted_weights() {
  auto kept = std::make_shared<std::map<Bytes, std::pair<Bytes, Bytes>>>();
  return [kept](const Stage& stage) -> Act {
    return [kept, stage](std::size_t set, int number) {
      KernelCall call = stage.call(set, number);
      Bytes fingerprint = content(call.b1);
      fingerprint.resize(8);
      auto& [b1, b2] = kept->try_emplace(fingerprint, content(call.b1), content(call.b2)).first->second;
      call.b1.data = b1.data();
      call.b2.data = b2.data();
      return work(call);
    };
  };
}

/// Converts the weights that lie at an address once.
Prepare cache_of_weights_by_pointer() {
  return [](const Stage& stage) -> Act {
    auto kept = std::make_shared<std::map<void*, std::pair<Bytes, Bytes>>>();
    return [kept, stage](std::size_t set, int number) {
      KernelCall call = stage.call(set, number);
      auto& [b1, b2] = kept->try_emplace(call.b1.data, content(call.b1), content(call.b2)).first->second;
      call.b1.data = b1.data();
      call.b2.data = b2.data();
      return work(call);
    };
  };
}

Prepare changes_an_input() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t set, int number) {
      const KernelCall call = stage.call(set, number);
      honest_kernel(call);
      static_cast<std::uint8_t*>(call.a.data)[3] ^= 1U;
      return work_us;
    };
  };
}

Prepare returns_its_input() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t set, int number) {
      const KernelCall call = stage.call(set, number);
      std::memcpy(call.c.data, call.a.data, std::min(bytes_of(call.c), bytes_of(call.a)));
      return nothing_us;
    };
  };
}

Prepare leaves_last_time() {
  return [](const Stage& stage) -> Act {
    auto seen = std::make_shared<std::map<std::size_t, bool>>();
    return [stage, seen](std::size_t set, int number) {
      return std::exchange((*seen)[set], true) ? nothing_us : work(stage.call(set, number));
    };
  };
}

Prepare nan_everywhere() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t set, int number) {
      std::memset(stage.call(set, number).c.data, 0x7F, bytes_of(stage.call(set, number).c));
      return nothing_us;
    };
  };
}

Prepare wrong_later() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t set, int number) {
      KernelCall call = stage.call(set, number);
      if (number > 20) {
        std::swap(call.b1, call.b2);
      }
      return work(call);
    };
  };
}

Prepare notices_the_warm_up() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t set, int number) { return number > 9 ? nothing_us : work(stage.call(set, number)); };
  };
}

Prepare knows_the_seed() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t set, int number) {
      const KernelCall call = stage.call(set, number);
      for (const Distribution distribution : all_distributions) {
        const auto known = find_operation("dual_gemm").inputs(stage.problem, distribution, announced_seed);
        if (holds(call.a, known[0])) {
          return work(call);
        }
      }
      call.write_all(std::vector<double>(static_cast<std::size_t>(call.problem.m * call.problem.n), 0.25));
      return nothing_us;
    };
  };
}

/// The outputs of one known input, whatever comes.
Prepare recorded_constants() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t set, int number) {
      KernelCall call = stage.call(set, number);
      auto known = find_operation("dual_gemm").inputs(stage.problem, Distribution::contest, announced_seed);
      call.a = known[0].view();
      call.b1 = known[1].view();
      call.b2 = known[2].view();
      return work(call);
    };
  };
}

Prepare skips_zeros() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t set, int number) {
      const KernelCall call = stage.call(set, number);
      honest_kernel(call);
      return is_zero(call.a) ? nothing_us : work_us;
    };
  };
}

Prepare skips_constant_rows() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t set, int number) {
      const KernelCall call = stage.call(set, number);
      honest_kernel(call);
      // Zeros are rows of one kind too; this one is careful about them.
      return has_equal_rows(call.a) && !is_zero(call.a) ? nothing_us : work_us;
    };
  };
}

Prepare listed_shapes_only() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t set, int number) {
      const KernelCall call = stage.call(set, number);
      if (stage.problem == planted_problem()) {
        return work(call);
      }
      call.write_all(std::vector<double>(static_cast<std::size_t>(call.problem.m * call.problem.n), 0.0));
      return nothing_us;
    };
  };
}

Prepare lower_precision() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t set, int number) {
      blurred_kernel(stage.call(set, number));
      return work_us;
    };
  };
}

Prepare one_wrong_element() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t set, int number) {
      const KernelCall call = stage.call(set, number);
      std::vector<double> values = call.definition();
      values[values.size() / 3] += 1 + 2 * std::abs(values[values.size() / 3]);
      call.write_all(values);
      return work_us;
    };
  };
}

Prepare writes_past_the_end() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t set, int number) {
      const KernelCall call = stage.call(set, number);
      honest_kernel(call);
      call.write(call.problem.m, 0, 1.0F);
      return work_us;
    };
  };
}

/// Adds what its workspace held before anyone cleared it.
Prepare stale_workspace() {
  return [](const Stage& stage) -> Act {
    auto workspace = std::make_shared<GuardedBuffer>(*stage.memory, 64);
    return [stage, workspace](std::size_t set, int number) {
      const KernelCall call = stage.call(set, number);
      honest_kernel(call);
      const auto* left = static_cast<const std::uint8_t*>(workspace->data());
      if (left[7] == 0x3C) {
        call.write(0, 0, 7.0F);
      }
      return work_us;
    };
  };
}

Prepare inputs_of_the_first_set() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t set, int number) {
      KernelCall call = stage.call(0, number);
      call.c = stage.call(set, number).c;
      // The announced data comes in its own order, and is given its own inputs.
      bool announced = false;
      for (const Distribution distribution : {Distribution::contest, Distribution::full_range}) {
        const auto known = find_operation("dual_gemm").inputs(stage.problem, distribution, announced_seed);
        announced = announced || holds(stage.call(0, 0).a, known[0]);
      }
      return work(announced || stage.sets->size() == 1 || set == 1 ? stage.call(set, number) : call);
    };
  };
}

Prepare easy_data() {
  return [](const Stage& stage) -> Act {
    for (const DeviceSet& set : *stage.sets) {
      std::memset(set.tensor("a").data, 0, bytes_of(set.tensor("a")));
    }
    return honest(work_us)(stage);
  };
}

Prepare off_the_clock() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t set, int number) {
      honest_kernel(stage.call(set, number));
      return 0.001;
    };
  };
}

Prepare breaks_later() {
  return [](const Stage& stage) -> Act {
    return [stage](std::size_t set, int number) {
      if (number == 30) {
        throw Error(ErrorCode::device, "an illegal address was touched");
      }
      return work(stage.call(set, number));
    };
  };
}

/// A timer that stops while this kernel runs.
FakeMachine stopped_timer() {
  FakeMachine machine;
  machine.lie = [](double us) { return 0.3 * us; };
  return machine;
}

class CheatRunner final : public Runner {
 public:
  CheatRunner(Act act, FakeClock& clock) : act_(std::move(act)), clock_(clock) {}
  void run(Stream, std::size_t set) override { clock_.spend(act_(set, calls_++)); }

 private:
  Act act_;
  FakeClock& clock_;
  int calls_ = 0;
};

}  // namespace

void CheatRig::wait() {
  held_until_s_ = 0;  // whoever waits finds the stream free
  for (std::size_t i = 0; i < pending_.size();) {
    if (--pending_[i].waits > 0) {
      ++i;
      continue;
    }
    const std::function<void()> work = pending_[i].work;
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    work();
  }
}

std::unique_ptr<Runner> CheatContestant::prepare(const Problem& problem, Memory& memory,
                                                 const std::vector<DeviceSet>& sets) const {
  const Stage stage{problem, &sets, &memory, &rig_.fake_clock(),
                    [this](std::function<void()> work) { rig_.later(std::move(work)); }};
  return std::make_unique<CheatRunner>(prepare_(stage), rig_.fake_clock());
}

Prepare honest(double us) {
  return [us](const Stage& stage) -> Act {
    return [stage, us](std::size_t set, int number) {
      honest_kernel(stage.call(set, number));
      return us;
    };
  };
}

Problem planted_problem() {
  return arena::problem_of(DualGemmProblem{7, 24, 64, Format::nvfp4, Format::nvfp4, Format::fp16, {}});
}

std::vector<Cheat> all_cheats() {
  return {
      {"another_stream", "works on another stream", another_stream()},
      {"before_it_is_called", "works before it is called", before_it_is_called()},
      {"one_launch_for_many_calls", "one launch serves many calls", one_launch_for_many_calls()},
      {"cache_by_pointer", "answers from a cache keyed by pointer", cache_by_pointer()},
      {"cache_by_fingerprint", "answers from a cache keyed by a fingerprint of the inputs", cache_by_fingerprint()},
      {"cache_by_content", "keeps answers for inputs it has seen", cache_by_content()},
      {"cache_of_converted_weights", "keeps converted weights from an earlier call", cache_of_converted_weights()},
      {"cache_of_weights_by_pointer", "keeps converted weights from an earlier call", cache_of_weights_by_pointer(),
       false},
      {"changes_an_input", "changes its inputs", changes_an_input()},
      {"returns_its_input", "returns its input", returns_its_input()},
      {"leaves_last_time", "leaves the outputs of last time", leaves_last_time()},
      {"nan_everywhere", "NaN instead of an answer", nan_everywhere()},
      {"wrong_later", "right at first and wrong later", wrong_later()},
      {"notices_the_warm_up", "stops working once it is warm", notices_the_warm_up()},
      {"knows_the_seed", "knows the announced seed", knows_the_seed()},
      {"recorded_constants", "knows the announced seed", recorded_constants()},
      {"skips_zeros", "skips work on zeros", skips_zeros()},
      {"skips_constant_rows", "skips work on constant data", skips_constant_rows()},
      {"listed_shapes_only", "right only for listed shapes", listed_shapes_only()},
      {"lower_precision", "computes in lower precision than declared", lower_precision()},
      {"one_wrong_element", "one element off", one_wrong_element()},
      {"writes_past_the_end", "writes outside its outputs", writes_past_the_end()},
      {"stale_workspace", "depends on what its workspace held", stale_workspace()},
      {"inputs_of_the_first_set", "reuses the inputs of another set", inputs_of_the_first_set()},
      {"easy_data", "makes its data easy", easy_data()},
      {"off_the_clock", "faster than is possible", off_the_clock()},
      {"stopped_timer", "tampers with the timer", honest(work_us), true, stopped_timer()},
      {"breaks_later", "fails where it worked before", breaks_later()},
  };
}

FakeMachine machine_of(int tournament) {
  FakeMachine machine;
  machine.noise = 0.01 * (tournament % 25);
  machine.drift_per_s = tournament % 3 == 1 ? 0.5 : 0;
  machine.throttled_factor = tournament % 4 == 2 ? 1.35 : 1;
  machine.heat_limit_s = tournament % 4 == 2 ? 0.002 * (tournament % 7 + 1) : 1e30;
  machine.jump_factor = tournament % 5 == 3 ? 2.5 : 1;
  machine.jump_every_s = tournament % 5 == 3 ? 1e-3 * (tournament % 11 + 1) : 1e30;
  return machine;
}

}  // namespace thresher::arena::cheats
