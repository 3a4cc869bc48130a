#pragma once
/// A page that judge and process share: how a call is asked for and told done without a system call on the way there.
/// What the process writes into it is a claim and nothing more: it says when to stop a watch and to look at outputs.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace thresher::arena::user_kernels {

struct Doorbell {
  using Word = std::atomic<std::uint32_t>;
  static constexpr std::size_t line_bytes = 64;

  enum class What : std::uint32_t {
    message,    ///< there is one on the line
    get_ready,  ///< look at the bell, for a call is about to come
    call,       ///< the call below
  };

  alignas(line_bytes) Word rung;  ///< by the judge: rises with each ring
  alignas(line_bytes) Word done;  ///< by the process: the ring that it is through with
  Word status;                    ///< by the process: 0, or else its next message says what is the matter
  // What the ring is about, written by the judge beforehand.
  alignas(line_bytes) What what;
  std::uint32_t binding;
  std::uint32_t set;
};
static_assert(Doorbell::Word::is_always_lock_free);

/// The page behind a descriptor. Throws Error(io).
class SharedDoorbell {
 public:
  explicit SharedDoorbell(int descriptor);
  SharedDoorbell(const SharedDoorbell&) = delete;
  SharedDoorbell& operator=(const SharedDoorbell&) = delete;
  ~SharedDoorbell();
  [[nodiscard]] Doorbell& operator*() const { return *page_; }
  [[nodiscard]] Doorbell* operator->() const { return page_; }

 private:
  Doorbell* page_;
};

/// How long whoever waits looks before it sleeps: the length of a short call, no more, since a judge that looks takes
/// a processor from the kernel that it waits for.
inline constexpr std::chrono::microseconds looking{50};

/// Writes the word and wakes who sleeps on it.
void tell(Doorbell::Word& word, std::uint32_t value);
/// Until the word is another than `old`: which. Sleeps without end.
[[nodiscard]] std::uint32_t await_change(const Doorbell::Word& word, std::uint32_t old);
/// Until the word has that value: true. False once `gives_up` says so, which is asked every few milliseconds while
/// asleep, however often the word changes. `looks`: before it sleeps.
[[nodiscard]] bool await(const Doorbell::Word& word, std::uint32_t value, bool looks,
                         const std::function<bool()>& gives_up);

}  // namespace thresher::arena::user_kernels
