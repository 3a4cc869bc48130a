#pragma once
/// The judge's side of a process in which a kernel runs. The process holds only the kernel and its memory, and is awake
/// only during a question. The judge trusts nothing that it says: this process's clock times it, and its outputs are
/// checked here.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arena/match_time.hpp"
#include "arena/random.hpp"
#include "arena/timing/clock.hpp"
#include "arena/user_kernels/line/doorbell.hpp"
#include "arena/user_kernels/line/wire.hpp"
#include "arena/user_kernels/process/delayed_input.hpp"
#include "runtime/process_tree.hpp"

namespace thresher::arena::user_kernels {

struct ProcessOptions {
  std::vector<std::string> command;  ///< calls serve_calls (call_server.hpp)
  std::string whose;                 ///< "the kernel's process", for sentences
  double call_limit_s = 60;          ///< for one call, and for the initialization of a loaded library
  double own_work_limit_s = 60;      ///< for each step that is no call, such as mapping memory or packing weights
  bool is_frozen = true;             ///< stopped between questions; not needed where no host code of a user runs
  std::filesystem::path readable{};  ///< a folder that it may read beside the system's; empty: none
  int gpu = -1;                      ///< the GPU that it may use; -1: none
  /// The template that it is copied from, instead of `command`, with its own confinement instead of `readable` and
  /// `gpu`. Null: it is started, and asked to confine itself.
  std::shared_ptr<runtime::ProcessTemplate> original{};
  std::shared_ptr<MatchTime> match_time{};  ///< it does not outlast this time; null: no limit
  bool is_contestants = false;              ///< waiting for it takes the contestant's share of that time
  /// The maximum memory, including memory that its own limit does not count; 0: slightly above that limit.
  std::uint64_t max_memory_bytes = 0;
};

/// A file descriptor that is closed on destruction.
class OwnedDescriptor {
 public:
  explicit OwnedDescriptor(int descriptor = -1) : descriptor_(descriptor) {}
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OwnedDescriptor& operator=(OwnedDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~OwnedDescriptor();
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

class KernelProcess {
 public:
  /// Shared memory by set: the inputs that only one call reads, and its outputs.
  struct Sets {
    std::vector<std::vector<DelayedInput*>> inputs{};
    std::vector<std::vector<std::span<std::byte>>> outputs{};
    /// Called at the sign for the last call of a batch, while the process is still awake.
    std::function<void()> done{};
  };

  /// Starts it and lets it load its kernel. Throws Error(io) when it cannot be started, Error as `ask` does.
  KernelProcess(ProcessOptions options, const Writer& load, int descriptor = -1);

  /// The answer to a question. Throws Error(device) when the process ended, was ended as unresponsive, or gave an
  /// invalid answer. The process is then gone for good, and every later call throws the same. Throws the Error that it
  /// reports. Throws MatchOver when the match's time is over, which ends a process at work.
  Reader ask(const Writer& question);
  /// The same for a question that waits for so many calls of the kernel.
  Reader ask_for_calls(const Writer& question, std::size_t calls);
  /// Records the time of a call; it sets the limits of later batches.
  void learn(double call_s) { slowest_call_s_ = std::max(slowest_call_s_, call_s); }
  /// Sent before the next question or call, if there is one, together with the descriptor.
  void ask_later(Writer question, OwnedDescriptor descriptor = OwnedDescriptor());

  /// Makes the calls of a batch one by one and returns microseconds by this process's watch. They last from the first
  /// ring of the bell to the sign for the last call, plus any time before or after in which the process computed. The
  /// inputs of a call are put in when the previous one is done. Throws as `ask` does, and Error(device) when outputs of
  /// a call changed after its sign.
  ///
  /// The watch continues while inputs are put in, which takes the same time for every contestant. A paused watch would
  /// give that time to the process's threads for free, to fetch weights or start on new inputs. A working thread cannot
  /// be distinguished from one that waits for the bell.
  double call(std::uint32_t binding, const Batch& batch, const Sets& sets);

  /// Ends the process, if it still runs, and throws Error(device) with the way it ended, else `why`.
  [[noreturn]] void fail(const std::string& why);

  [[nodiscard]] std::uint32_t next_number() { return ++last_number_; }
  /// "the kernel's process", for sentences.
  [[nodiscard]] const std::string& whose() const { return options_.whose; }
  /// Its protections, reported before any user code was loaded.
  [[nodiscard]] const runtime::Confined& confined() const { return confined_; }
  /// -1: it has ended.
  [[nodiscard]] pid_t pid() const { return tree_ ? tree_->pid() : -1; }

 private:
  class Awake;
  class Waiting;
  struct Later {
    Writer question;
    OwnedDescriptor descriptor;
  };

  void start();
  /// Confines the process once it exists; a copy of a template is confined already.
  void hold();
  /// The answer is trusted, since no user code is loaded yet.
  [[nodiscard]] runtime::Confined confine(bool gpu_first);
  void check() const;
  void ring(Doorbell::What what);
  /// `why` explains the end of a process without an answer within the limit; empty: that it did not answer.
  Reader exchange(Writer question, double limit_s, int descriptor, const std::string& why = "");
  Reader next_answer(std::uint32_t number, double limit_s, const std::string& why = "");
  /// One call with its inputs in place; `why` explains the end of a process that exceeds the limit.
  void make_call(std::size_t set, bool looks, double limit_s, const std::string& why);
  /// The time limit of that many calls, from the times that are known.
  [[nodiscard]] double limit_of(std::size_t calls) const;
  [[nodiscard]] std::string took_too_long() const;
  void ask_what_is_late();
  void await_done(bool looks, double limit_s, const std::string& why);
  /// The resource that it uses too much of, in a sentence. It checks only now and then, since a check takes time.
  [[nodiscard]] std::string excess();
  [[nodiscard]] bool is_match_over() const { return options_.match_time && options_.match_time->is_over(); }
  [[nodiscard]] double processor_us() const;

  ProcessOptions options_;
  OwnedDescriptor line_;
  std::unique_ptr<SharedDoorbell> doorbell_;
  std::unique_ptr<runtime::ProcessTree> tree_;
  runtime::Confined confined_;
  std::vector<Later> later_;
  std::string failure_;
  std::uint32_t rings_ = 0;
  std::uint32_t questions_ = 0;
  std::uint32_t last_number_ = 0;
  double slowest_call_s_ = 0;
  std::chrono::steady_clock::time_point looked_at_{};
  Random random_;
};

}  // namespace thresher::arena::user_kernels
