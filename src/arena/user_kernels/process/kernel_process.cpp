#include "arena/user_kernels/process/kernel_process.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <optional>
#include <random>

#include "arena/user_kernels/line/kernel_confinement.hpp"
#include "arena/user_kernels/process/process_use.hpp"
#include "runtime/told_environment.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

using Watch = std::chrono::steady_clock;

/// Processor time that the process may use between waking and the bell, and between its sign and sleep. Waking up and
/// answering takes some ten microseconds; time beyond this allowance counts as the call's.
constexpr double idle_allowance_us = 100;
/// The time limit of a batch's call, as a multiple of the slowest call before.
constexpr double call_growth = 20;
/// The wait for a process that is just ending, before it counts as unresponsive.
constexpr double grace_s = 0.02;
/// The interval of checks of the process's resource use.
constexpr std::chrono::milliseconds between_looks{100};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_instrumented = true;  // its memory has no limit
#else
constexpr bool is_instrumented = false;
#endif
/// Bytes of a call's outputs that are read at its sign, and again when the process sleeps: for each call, and for the
/// last.
constexpr std::size_t looks_at_each = 8;
constexpr std::size_t looks_at_the_last = 64;

double seconds_since(Watch::time_point start) { return std::chrono::duration<double>(Watch::now() - start).count(); }

double microseconds_between(Watch::time_point start, Watch::time_point end) {
  return std::chrono::duration<double, std::micro>(end - start).count();
}

/// Samples of each call's outputs at its sign, before any input of the next call is there. A process that delays a part
/// of its calls, to make them together with others, has not written that part yet.
class OutputSamples {
 public:
  OutputSamples(Random& random, const Batch& batch, const std::vector<std::vector<std::span<std::byte>>>& outputs) {
    for (std::size_t call = 0; call < batch.calls; ++call) {
      const std::vector<std::span<std::byte>>& of_set = outputs[batch.set_of(call)];
      const bool is_written_again = call + batch.num_sets < batch.calls;
      const std::size_t looks = call + 1 == batch.calls ? looks_at_the_last : looks_at_each;
      for (std::size_t look = 0; look < looks && !is_written_again && !of_set.empty(); ++look) {
        const std::span<std::byte> output = of_set[look % of_set.size()];
        places_.push_back(&output[random.below(output.size())]);
      }
      ends_.push_back(places_.size());
    }
    bytes_.resize(places_.size());
  }
  void look_at(std::size_t call) {
    for (std::size_t i = call == 0 ? 0 : ends_[call - 1]; i < ends_[call]; ++i) {
      bytes_[i] = *static_cast<const volatile std::byte*>(places_[i]);
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  [[nodiscard]] bool still_hold() const {
    return std::equal(places_.begin(), places_.end(), bytes_.begin(),
                      [](const std::byte* place, std::byte byte) { return *place == byte; });
  }

 private:
  std::vector<const std::byte*> places_;  // of all calls in order
  std::vector<std::size_t> ends_;         // of each call's samples
  std::vector<std::byte> bytes_;
};

std::uint64_t secret_seed() {
  std::random_device source;
  return (std::uint64_t{source()} << 32) | source();
}

}  // namespace

OwnedDescriptor::~OwnedDescriptor() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

/// Keeps the process awake during its lifetime.
class KernelProcess::Awake {
 public:
  explicit Awake(KernelProcess& process) : process_(process) {
    if (process_.options_.is_frozen && process_.tree_) {
      process_.tree_->thaw();
    }
  }
  Awake(const Awake&) = delete;
  Awake& operator=(const Awake&) = delete;
  ~Awake() { freeze(); }
  void freeze() {
    if (!is_frozen_ && process_.options_.is_frozen && process_.tree_) {
      (void)process_.tree_->freeze();
    }
    is_frozen_ = true;
  }

 private:
  KernelProcess& process_;
  bool is_frozen_ = false;
};

/// The match's time runs while the process is waited for. It counts as the contestant's where the process is the
/// contestant's.
class KernelProcess::Waiting {
 public:
  explicit Waiting(const KernelProcess& process)
      : time_(process.options_.is_contestants ? process.options_.match_time.get() : nullptr),
        begun_s_(time_ == nullptr ? 0 : time_->now_s()) {}
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    if (time_ != nullptr) {
      time_->add_contestants(time_->now_s() - begun_s_);
    }
  }

 private:
  MatchTime* time_;
  double begun_s_;
};

KernelProcess::KernelProcess(ProcessOptions options, const Writer& load, int descriptor)
    : options_(std::move(options)), random_(secret_seed()) {
  if (options_.max_memory_bytes == 0) {
    const std::uint64_t limit = confinement_of_kernels({}).limits.data_bytes;
    options_.max_memory_bytes = limit + limit / 16;
  }
  start();
  hold();
  (void)exchange(load, options_.call_limit_s + 5, descriptor);
  const Awake falls_asleep(*this);
}

void KernelProcess::hold() {
  if (options_.original) {
    confined_ = tree_->confined();
    return;
  }
  try {
    confined_ = confine(false);
  } catch (const Error&) {
    if (options_.gpu < 0) {
      throw;
    }
    // Some drivers open a GPU in ways that a confined process cannot use. Threads that they started before are not
    // wholly confined, and the protections say so.
    tree_.reset();
    failure_.clear();
    start();
    confined_ = confine(true);
  }
}

runtime::Confined KernelProcess::confine(bool gpu_first) {
  const Writer question =
      Writer(Ask::confine).put(options_.readable.string()).put(std::int32_t{options_.gpu}).put(std::uint8_t{gpu_first});
  Reader answer = exchange(question, options_.own_work_limit_s, -1);
  return read_confined(answer);
}

void KernelProcess::start() {
  rings_ = 0;
  questions_ = 0;
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(ErrorCode::io, "no socket could be opened for a kernel's process: close some files");
  }
  line_ = OwnedDescriptor(ends[0]);
  const OwnedDescriptor its_end(ends[1]);
  const OwnedDescriptor page(make_shared_memory(sizeof(Doorbell)));
  doorbell_ = std::make_unique<SharedDoorbell>(page.get());
  const std::vector<std::pair<int, int>> descriptors{{its_end.get(), line_descriptor},
                                                     {page.get(), doorbell_descriptor}};
  if (options_.original) {
    tree_ = std::make_unique<runtime::ProcessTree>(options_.original, descriptors);
  } else {
    runtime::Command command;
    command.words = options_.command;
    command.descriptors = descriptors;
    command.environment = runtime::environment_for(runtime::Told::kernel);
    command.folder = options_.readable.empty() ? "/" : options_.readable;  // not the host's working folder
    tree_ = std::make_unique<runtime::ProcessTree>(command);
  }
  (void)exchange(Writer(Ask::hello), options_.own_work_limit_s, -1);
}

std::string KernelProcess::excess() {
  const Watch::time_point now = Watch::now();
  if (is_instrumented || !tree_ || now - looked_at_ < between_looks) {
    return "";
  }
  looked_at_ = now;
  constexpr std::uint64_t max_threads = 4096;
  const ProcessUse use = use_of(tree_->pid()).value_or(ProcessUse{});
  if (use.memory_bytes > options_.max_memory_bytes) {
    return fmt::format("{} took {} MiB of memory, of the {} MiB that it may, and was ended", options_.whose,
                       use.memory_bytes >> 20, options_.max_memory_bytes >> 20);
  }
  return use.threads > max_threads ? fmt::format("{} started {} threads, of the {} that it may, and was ended",
                                                 options_.whose, use.threads, max_threads)
                                   : "";
}

void KernelProcess::check() const {
  if (options_.match_time) {
    options_.match_time->check();
  }
  if (!failure_.empty()) {
    throw Error(ErrorCode::device, failure_);
  }
}

void KernelProcess::fail(const std::string& why) {
  if (failure_.empty()) {
    // It may have ended a moment ago: the way it ended says more than that it no longer answers.
    const std::optional<runtime::Ending> ended = tree_->wait(grace_s);
    failure_ = ended ? fmt::format("{} {}", options_.whose, ended->sentence()) : why;
    (void)tree_->end();
    tree_.reset();
  }
  if (options_.match_time) {
    options_.match_time->check();
  }
  throw Error(ErrorCode::device, failure_);
}

void KernelProcess::ring(Doorbell::What what) {
  (*doorbell_)->what = what;
  tell((*doorbell_)->rung, ++rings_);
}

Reader KernelProcess::exchange(Writer question, double limit_s, int descriptor, const std::string& why) {
  question.number(++questions_);
  if (!send_message(line_.get(), question.bytes(), descriptor)) {
    fail(options_.whose + " hung up");
  }
  ring(Doorbell::What::message);
  return next_answer(questions_, limit_s, why);
}

Reader KernelProcess::next_answer(std::uint32_t number, double limit_s, const std::string& why) {
  const Watch::time_point start = Watch::now();
  Received received;
  auto waiting = std::make_optional<Waiting>(*this);
  const double max_s = options_.match_time ? std::min(limit_s, options_.match_time->left_s()) : limit_s;
  for (;;) {
    received = receive_message(line_.get(), false, Descriptors::refused);
    if (received.what != Received::What::nothing_yet) {
      break;
    }
    const std::string too_much = excess();
    if (!too_much.empty()) {
      fail(too_much);
    }
    const double left_s = max_s - seconds_since(start);
    const double until_next_look_s = std::min(left_s, std::chrono::duration<double>(between_looks).count());
    std::array<pollfd, 2> waited{pollfd{line_.get(), POLLIN, 0}, pollfd{tree_->ended_descriptor(), POLLIN, 0}};
    const int ready =
        left_s > 0 ? ::poll(waited.data(), waited.size(), static_cast<int>(until_next_look_s * 1e3 + 1)) : 0;
    if (ready == 0 && left_s <= 0) {
      waiting.reset();
      fail(why.empty() ? fmt::format("{} did not answer for {:g} s and was ended", options_.whose, limit_s) : why);
    }
    if (ready > 0 && waited[1].revents != 0 && waited[0].revents == 0) {
      fail(options_.whose + " hung up");
    }
  }
  waiting.reset();
  if (received.what == Received::What::end) {
    (void)tree_->wait(1);  // a dying process closes its line a moment earlier
    fail(options_.whose + " hung up");
  }
  Reply reply = read_reply(received, number);
  if (reply.refusal) {
    throw Error(*reply.refusal);
  }
  if (!reply.is_answer) {
    fail(options_.whose + " said something that is no answer to what it was asked");
  }
  return std::move(reply.rest);
}

void KernelProcess::ask_later(Writer question, OwnedDescriptor descriptor) {
  later_.push_back({std::move(question), std::move(descriptor)});
}

void KernelProcess::ask_what_is_late() {
  const std::vector<Later> asked = std::exchange(later_, {});
  for (const Later& later : asked) {
    (void)exchange(later.question, options_.own_work_limit_s, later.descriptor.get());
  }
}

Reader KernelProcess::ask(const Writer& question) {
  check();
  const Awake awake(*this);
  ask_what_is_late();
  return exchange(question, options_.own_work_limit_s, -1);
}

Reader KernelProcess::ask_for_calls(const Writer& question, std::size_t calls) {
  check();
  const Awake awake(*this);
  ask_what_is_late();
  return exchange(question, limit_of(calls), -1, took_too_long());
}

double KernelProcess::limit_of(std::size_t calls) const {
  const double a_call_s =
      slowest_call_s_ > 0 ? std::min(options_.call_limit_s, call_growth * slowest_call_s_) : options_.call_limit_s;
  return options_.call_limit_s + static_cast<double>(calls - 1) * a_call_s;
}

std::string KernelProcess::took_too_long() const {
  return fmt::format("a call took longer than the {:g} s that it may, and {} was ended", options_.call_limit_s,
                     options_.whose);
}

void KernelProcess::await_done(bool looks, double limit_s, const std::string& why) {
  const Watch::time_point start = Watch::now();
  bool has_ended = false;
  std::string too_much;
  auto waiting = std::make_optional<Waiting>(*this);
  const bool done = await((*doorbell_)->done, rings_, looks, [&] {
    pollfd ended{tree_->ended_descriptor(), POLLIN, 0};
    has_ended = ::poll(&ended, 1, 0) > 0;
    too_much = excess();
    return has_ended || seconds_since(start) > limit_s || is_match_over() || !too_much.empty();
  });
  waiting.reset();
  if (!done) {
    fail(has_ended ? options_.whose + " ended" : too_much.empty() ? why : too_much);
  }
}

double KernelProcess::processor_us() const {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(tree_->pid(), &clock) != 0 || ::clock_gettime(clock, &used) != 0) {
    return 0;
  }
  return static_cast<double>(used.tv_sec) * 1e6 + static_cast<double>(used.tv_nsec) * 1e-3;
}

void KernelProcess::make_call(std::size_t set, bool looks, double limit_s, const std::string& why) {
  (*doorbell_)->set = static_cast<std::uint32_t>(set);
  ring(Doorbell::What::call);
  await_done(looks, limit_s, why);
  if ((*doorbell_)->status.load() != 0) {
    (void)next_answer(0, options_.own_work_limit_s);
    fail(options_.whose + " said that a call failed, and not why");
  }
}

double KernelProcess::call(std::uint32_t binding, const Batch& batch, const Sets& sets) {
  check();
  if (const std::string too_much = excess(); !too_much.empty()) {
    fail(too_much);
  }
  if (!later_.empty()) {
    const Awake awake(*this);
    ask_what_is_late();
  }
  const auto put_in = [&](std::size_t set) {
    for (DelayedInput* const input : sets.inputs[set]) {
      input->put_in();
    }
  };
  OutputSamples glances(random_, batch, sets.outputs);
  put_in(batch.set_of(0));
  const double used_asleep_us = processor_us();
  const Watch::time_point woken = Watch::now();
  ring(Doorbell::What::get_ready);
  Awake awake(*this);
  await_done(true, options_.own_work_limit_s,
             fmt::format("{} did not get ready for {:g} s and was ended", options_.whose, options_.own_work_limit_s));
  const double used_ready_us = processor_us();
  (*doorbell_)->binding = binding;
  const double limit_s = limit_of(batch.calls);
  const std::string too_long = took_too_long();
  const Watch::time_point rung = Watch::now();
  Watch::time_point done = rung;
  bool is_short = true;  // a judge that checks after each long call takes a processor from the next
  for (std::size_t call = 0; call < batch.calls; ++call) {
    if (call > 0) {
      glances.look_at(call - 1);
      put_in(batch.set_of(call));
    }
    const Watch::time_point begun = Watch::now();
    const double left_s = limit_s - std::chrono::duration<double>(begun - rung).count();
    make_call(batch.set_of(call), is_short, std::min(options_.call_limit_s, left_s), too_long);
    done = Watch::now();
    is_short = done - begun < looking;
  }
  glances.look_at(batch.calls - 1);
  if (sets.done) {
    sets.done();
  }
  const double used_done_us = processor_us();
  awake.freeze();
  const Watch::time_point asleep = Watch::now();
  if (!glances.still_hold()) {
    fail(options_.whose + " went on writing outputs after it had said that the call was done, and was ended");
  }
  // When all inputs are there before the bell, work that needs no processor may start unseen.
  const bool may_begin_unseen = static_cast<bool>(sets.done);
  const Watch::time_point start = may_begin_unseen || used_ready_us - used_asleep_us > idle_allowance_us ? woken : rung;
  const Watch::time_point end = processor_us() - used_done_us > idle_allowance_us ? asleep : done;
  const double us = microseconds_between(start, end);
  learn(us * 1e-6 / static_cast<double>(batch.calls));
  return us;
}

}  // namespace thresher::arena::user_kernels
