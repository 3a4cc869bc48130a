#pragma once
/// A page that judge and process share. It starts a call and reports its end without a system call in between. The
/// judge does not trust the process's writes: they only decide when to stop a watch and to check outputs.
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
    message,    ///< a message waits on the line
    get_ready,  ///< poll the bell, since a call comes soon
    call,       ///< make the call below
  };

  alignas(line_bytes) Word rung;  ///< by the judge: increases with each ring
  alignas(line_bytes) Word done;  ///< by the process: the ring that it has finished
  Word status;                    ///< by the process: 0, or else its next message tells the error
  // The purpose of the ring, written by the judge before it rings.
  alignas(line_bytes) What what;
  std::uint32_t binding;
  std::uint32_t set;
};
static_assert(Doorbell::Word::is_always_lock_free);

/// The page of a descriptor. Throws Error(io).
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

/// How long a waiter polls before it sleeps: the length of a short call. A judge that polls longer takes a processor
/// from the kernel.
inline constexpr std::chrono::microseconds looking{50};

/// Writes the word and wakes its sleepers.
void tell(Doorbell::Word& word, std::uint32_t value);
/// Waits until the word differs from `old` and returns it. Sleeps without a limit.
[[nodiscard]] std::uint32_t await_change(const Doorbell::Word& word, std::uint32_t old);
/// Waits until the word has that value and returns true. Returns false once `gives_up` does, which is called every few
/// milliseconds during sleep, however often the word changes. `looks`: polls before it sleeps.
[[nodiscard]] bool await(const Doorbell::Word& word, std::uint32_t value, bool looks,
                         const std::function<bool()>& gives_up);

}  // namespace thresher::arena::user_kernels
