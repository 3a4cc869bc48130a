#pragma once
/// The judge's side of a process in which a kernel runs. The process holds nothing but the kernel and the memory that
/// it works on, is awake only while it is asked something, and is believed nothing: it is watched by this process's
/// clock, and its outputs are looked at here.
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
#include "arena/user_kernels/process/held_back.hpp"
#include "runtime/process_tree.hpp"

namespace thresher::arena::user_kernels {

struct ProcessOptions {
  std::vector<std::string> command;  ///< ends up in serve_calls (call_server.hpp)
  std::string whose;                 ///< "the kernel's process", as sentences call it
  double call_limit_s = 60;          ///< for one call, and for what a library does when it is loaded
  double own_work_limit_s = 60;      ///< for each thing that is no call: to map memory, say, or to pack weights
  bool is_frozen = true;  ///< stopped while it is not asked anything; not where no host code of a user's runs
  std::filesystem::path readable{};  ///< a folder that it may read beside the system's; empty: none
  int gpu = -1;                      ///< that it may use; -1: none
  /// What it is a copy of, in place of `command`, and what confines it, in place of `readable` and `gpu`. Null: it is
  /// started, and asked to confine itself.
  std::shared_ptr<runtime::ProcessTemplate> original{};
  std::shared_ptr<MatchTime> match_time{};  ///< which it does not outlast; null: nobody limits it
  bool is_contestants = false;              ///< what is waited for is the contestant's share of that time
  /// That it may use, whatever its own limit counts; 0: a little more than that limit.
  std::uint64_t max_memory_bytes = 0;
};

/// A file descriptor that is closed with it.
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
  /// By set, in shared memory: what a call reads and no other call does, and what it writes.
  struct Sets {
    std::vector<std::vector<DelayedInput*>> inputs{};
    std::vector<std::span<const std::byte>> outputs{};
    /// At the sign that the last call of a batch is done, while the process is still awake.
    std::function<void()> done{};
  };

  /// Starts it and lets it load what it is for. Throws Error(io) when it cannot be started, Error as `ask` does.
  KernelProcess(ProcessOptions options, const Writer& load, int descriptor = -1);

  /// The answer to a question. Throws Error(device) when the process ended, was
  /// ended because it did not answer, or said something that is no answer: then it is gone for good, and everything
  /// throws the same. Throws the Error that it reports, and MatchOver when the match's time is over, which ends it if
  /// it is at work.
  Reader ask(const Writer& question);
  /// The same of a question that waits for so many calls of the kernel.
  Reader ask_for_calls(const Writer& question, std::size_t calls);
  /// What a call took, by which the limits of later batches are set.
  void learn(double call_s) { slowest_call_s_ = std::max(slowest_call_s_, call_s); }
  /// Asked before the next question or call, if there is one. `descriptor` is the process's then.
  void ask_later(Writer question, OwnedDescriptor descriptor = OwnedDescriptor());

  /// Has the calls of a batch made one by one, and says for how many microseconds by this process's watch: from the
  /// first ring of the bell to the sign that the last is done, and with the time before or after it in which the
  /// process computed all the same. What a call reads is put in when the one before is done. Throws as `ask` does, and
  /// Error(device) when outputs of a call changed after its sign.
  ///
  /// The watch goes on while inputs are put in, which takes the same time for whoever competes: a watch that stood
  /// still would give the process's threads that time for nothing, to fetch the next call's weights or to begin on what
  /// is put in, and none of the process's threads at work can be told from one that waits for the bell.
  double call(std::uint32_t binding, const Batch& batch, const Sets& sets);

  /// Ends the process, if it has not ended by itself, and throws Error(device): how it ended, else `why`.
  [[noreturn]] void fail(const std::string& why);

  [[nodiscard]] std::uint32_t next_number() { return ++last_number_; }
  /// "the kernel's process", as sentences call it.
  [[nodiscard]] const std::string& whose() const { return options_.whose; }
  /// What holds it, told before anything from outside was loaded.
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
  /// Once it is there; a process that is no copy, and so not confined yet, is asked to be now.
  void hold();
  /// The question is asked before anything from outside is loaded, so its answer is believed.
  [[nodiscard]] runtime::Confined confine(bool gpu_first);
  void check() const;
  void ring(Doorbell::What what);
  /// `why` it is ended if there is no answer within the limit; empty: that it did not answer.
  Reader exchange(Writer question, double limit_s, int descriptor, const std::string& why = "");
  Reader next_answer(std::uint32_t number, double limit_s, const std::string& why = "");
  /// One call, whose inputs are in; `why` the process is ended when it is not done within the limit.
  void make_call(std::size_t set, bool looks, double limit_s, const std::string& why);
  /// For so many calls, as far as is known what one takes.
  [[nodiscard]] double limit_of(std::size_t calls) const;
  [[nodiscard]] std::string took_too_long() const;
  void ask_what_is_late();
  void await_done(bool looks, double limit_s, const std::string& why);
  /// What it uses too much of, in a sentence; now and then, since looking takes time.
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
