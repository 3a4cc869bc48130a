#pragma once
/// What a judge and the process of a kernel say to each other: questions and answers, each one datagram on a socket.
/// The process may be hostile. Whoever reads takes what is of the expected length and nothing else.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/confinement.hpp"
#include "thresher/error.hpp"
#include "thresher/own_kernel.h"

namespace thresher::arena::user_kernels {

/// The process's end of the socket, and the memory of the doorbell.
inline constexpr int line_descriptor = 3;
inline constexpr int doorbell_descriptor = 4;

/// No message is longer; a socket's buffer holds one.
inline constexpr std::size_t max_message_bytes = std::size_t{32} << 10;
/// Calls that one message tells of.
inline constexpr std::size_t calls_per_message = 64;
/// Every sentence of a process is cut to this length.
inline constexpr std::size_t max_sentence_bytes = 400;

/// The second word of each question, after its number. Each is answered with its number, then 0 and what was asked for,
/// or 1, an ErrorCode and a sentence.
enum class Ask : std::uint32_t {
  hello,    ///< whether it is there at all
  confine,  ///< folder that it may read, GPU or -1, whether that is opened first; answered with protections
  /// Path of a shared object or a .py file, its function; of a .py file its framework, and on a GPU the GPU's number, a
  /// folder to compile in and the C compiler's folder, all as text.
  load_library,
  load_strategy,  ///< label of a contestant of Thresher's own
  load_cubin,     ///< GPU, name of the kernel, bytes; with the memory that holds it
  share,          ///< number of a piece, bytes; with its memory
  unshare,        ///< number of a piece
  bind,           ///< number of a binding, launch; calls follow
  add_calls,      ///< number of a binding, calls
  complete,       ///< number of a binding: all its calls are there
  unbind,         ///< number of a binding
  // Of a GPU's process alone: what a rig is asked for.
  allocate,         ///< bytes; answered with an address
  release,          ///< address
  fill,             ///< address, byte, bytes
  upload,           ///< address, bytes, which lie in piece 0
  download,         ///< address, bytes, which come to lie in piece 0
  enqueue,          ///< number of a binding, set
  wait,             ///< for the whole GPU
  wait_for_stream,  ///< for the stream of `enqueue`
  hold_stream,      ///< microseconds
  capture,          ///< a batch: number of a binding, calls, first set, number of sets
  measure,          ///< the same, answered with microseconds a call by the GPU's clock
};

class Writer {
 public:
  Writer() = default;
  /// A question; its number is filled in when it is sent.
  explicit Writer(Ask ask) { put(std::uint32_t{0}).put(ask); }

  template <class T>
    requires std::is_trivially_copyable_v<T>
  Writer& put(const T& value) {
    append(&value, sizeof(T));
    return *this;
  }
  Writer& put(const std::string& text);
  void number(std::uint32_t value) { std::memcpy(bytes_.data(), &value, sizeof(value)); }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void append(const void* from, std::size_t count);

  std::vector<std::byte> bytes_;
};

/// Throws Error(device) where the message ends too early.
class Reader {
 public:
  Reader() = default;
  Reader(std::vector<std::byte> bytes, std::vector<int> descriptors)
      : bytes_(std::move(bytes)), descriptors_(std::move(descriptors)) {}

  template <class T>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] T get() {
    T value;
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }
  [[nodiscard]] std::string text();
  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }
  /// Throws Error(device) when there is none; the caller closes it.
  [[nodiscard]] int descriptor();

 private:
  const std::byte* take(std::size_t bytes);

  std::vector<std::byte> bytes_;
  std::vector<int> descriptors_;
  std::size_t at_ = 0;
};

/// What a process is held by.
void put(Writer& writer, const runtime::Confined& confined);
/// Throws Error(device) where the message ends too early.
[[nodiscard]] runtime::Confined read_confined(Reader& reader);

/// Sends one datagram with at most one descriptor. False when nobody is there, or will take it at once.
[[nodiscard]] bool send_message(int socket, std::span<const std::byte> bytes, int descriptor = -1);

/// The next datagram. Descriptors are taken only by the side that expects them, and closed else.
struct Received {
  enum class What : std::uint8_t { message, nothing_yet, end } what = What::end;
  std::vector<std::byte> bytes;
  std::vector<int> descriptors;
  bool is_cut = false;  ///< it was longer than a message may be
};
enum class Descriptors : std::uint8_t { refused, taken };
[[nodiscard]] Received receive_message(int socket, bool waits, Descriptors descriptors);

/// What a message says of the question with that number.
struct Reply {
  bool is_answer = false;
  std::optional<Error> refusal;
  Reader rest;
};
[[nodiscard]] Reply read_reply(const Received& received, std::uint32_t number);

/// Every address in a call, exchanged for what `translate` makes of it; null stays null.
template <class Translate>
void translate_addresses(thresher_own_dual_gemm& call, Translate&& translate) {
  const auto exchange = [&](auto*& address) {
    using Pointer = std::remove_reference_t<decltype(address)>;
    if (address != nullptr) {
      address = reinterpret_cast<Pointer>(translate(reinterpret_cast<std::uintptr_t>(address)));
    }
  };
  for (thresher_own_matrix* const matrix : {&call.a, &call.b1, &call.b2}) {
    exchange(matrix->values);
    exchange(matrix->scales);
    exchange(matrix->global_scale);
  }
  exchange(call.c);
  exchange(call.workspace);
}

/// An address in shared memory as both sides understand it: the number of a piece and the bytes from its beginning.
inline constexpr int place_bits = 40;
[[nodiscard]] constexpr std::uintptr_t place_of(std::uint32_t piece, std::uintptr_t offset) {
  return (static_cast<std::uintptr_t>(piece) + 1) << place_bits | offset;
}

/// What a process said, fit to be shown: letters, digits and punctuation of ASCII, at most so many.
[[nodiscard]] std::string printable(const std::string& text);

/// Memory that another process can be given; its length is settled for good. Throws Error(out_of_memory).
[[nodiscard]] int make_shared_memory(std::size_t bytes);

}  // namespace thresher::arena::user_kernels
