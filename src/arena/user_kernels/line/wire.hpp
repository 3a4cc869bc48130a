#pragma once
/// The messages between a judge and a kernel's process: questions and answers, each one datagram on a socket. The
/// process may be hostile. A reader accepts only messages of the expected length.
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

namespace thresher::arena::user_kernels {

/// The process's end of the socket, and the doorbell's memory.
inline constexpr int line_descriptor = 3;
inline constexpr int doorbell_descriptor = 4;

/// The maximum length of a message; a socket's buffer holds one.
inline constexpr std::size_t max_message_bytes = std::size_t{32} << 10;
/// The maximum length of the calls in one message.
inline constexpr std::size_t max_calls_bytes = max_message_bytes / 2;
/// Sentences of a process are cut to this length.
inline constexpr std::size_t max_sentence_bytes = 400;

/// The second word of each question, after its number. Each answer has the question's number, then 0 and the result, or
/// 1, an ErrorCode and a sentence.
enum class Ask : std::uint32_t {
  hello,    ///< whether it exists at all
  confine,  ///< readable folder, GPU or -1, whether the GPU is opened first; answered with protections
  /// All as text: the path of a shared object or a .py file, and its function. For a .py file also its framework and
  /// the arguments of its calls, and on a GPU the GPU's number, a folder to compile in and the C compiler's folder.
  load_library,
  load_strategy,  ///< label of one of Thresher's own contestants
  load_cubin,     ///< GPU, name of the kernel, bytes; with the memory that holds it
  share,          ///< number of a piece, bytes; with its memory
  unshare,        ///< number of a piece
  bind,           ///< number of a binding, layout of its calls, and what its kernel needs beside; calls follow
  add_calls,      ///< number of a binding, calls
  complete,       ///< number of a binding, which then has all its calls
  unbind,         ///< number of a binding
  // Only for a GPU's process: the operations of a rig.
  allocate,         ///< bytes; answered with an address
  release,          ///< address
  fill,             ///< address, byte, bytes
  upload,           ///< address, and the number of bytes in piece 0
  download,         ///< address, and the number of bytes to put into piece 0
  enqueue,          ///< number of a binding, set
  wait,             ///< for the whole GPU
  wait_for_stream,  ///< for the stream of `enqueue`
  hold_stream,      ///< microseconds
  capture,          ///< a batch: number of a binding, calls, first set, number of sets
  measure,          ///< the same, answered with microseconds per call by the GPU's clock
};

class Writer {
 public:
  Writer() = default;
  /// A question; sending fills in its number.
  explicit Writer(Ask ask) { put(std::uint32_t{0}).put(ask); }

  template <class T>
    requires std::is_trivially_copyable_v<T>
  Writer& put(const T& value) {
    append(&value, sizeof(T));
    return *this;
  }
  Writer& put(const std::string& text);
  /// The bytes themselves, without their number.
  Writer& put_bytes(std::span<const std::byte> bytes);
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
  [[nodiscard]] std::span<const std::byte> get_bytes(std::size_t bytes) { return {take(bytes), bytes}; }
  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }
  /// Throws Error(device) when there is none; the caller closes it.
  [[nodiscard]] int descriptor();

 private:
  const std::byte* take(std::size_t bytes);

  std::vector<std::byte> bytes_;
  std::vector<int> descriptors_;
  std::size_t at_ = 0;
};

/// The protections of a process.
void put(Writer& writer, const runtime::Confined& confined);
/// Throws Error(device) where the message ends too early.
[[nodiscard]] runtime::Confined read_confined(Reader& reader);

/// Sends one datagram with at most one descriptor. False when no peer exists, or it cannot take the message at once.
[[nodiscard]] bool send_message(int socket, std::span<const std::byte> bytes, int descriptor = -1);

/// The next datagram. Only the side that expects descriptors takes them; the other closes them.
struct Received {
  enum class What : std::uint8_t { message, nothing_yet, end } what = What::end;
  std::vector<std::byte> bytes;
  std::vector<int> descriptors;
  bool is_cut = false;  ///< it exceeded the maximum length
};
enum class Descriptors : std::uint8_t { refused, taken };
[[nodiscard]] Received receive_message(int socket, bool waits, Descriptors descriptors);

/// The answer to the question with that number.
struct Reply {
  bool is_answer = false;
  std::optional<Error> refusal;
  Reader rest;
};
[[nodiscard]] Reply read_reply(const Received& received, std::uint32_t number);

/// All calls of a binding have as many bytes, and addresses at the same offsets.
struct CallLayout {
  std::uint32_t bytes = 0;
  std::vector<std::uint32_t> addresses{};
};
void put(Writer& writer, const CallLayout& layout);
/// Throws Error(device) where the message ends too early, or an address lies beyond the call.
[[nodiscard]] CallLayout read_layout(Reader& reader);

/// Replaces every address in a call by `translate` of it; null stays null.
template <class Translate>
void translate_addresses(std::span<std::byte> call, const std::vector<std::uint32_t>& addresses,
                         const Translate& translate) {
  for (const std::uint32_t offset : addresses) {
    std::uintptr_t address = 0;
    std::memcpy(&address, &call[offset], sizeof(address));
    if (address != 0) {
      address = translate(address);
      std::memcpy(&call[offset], &address, sizeof(address));
    }
  }
}

/// An address in shared memory for both sides: the number of a piece and the offset in it, in bytes.
inline constexpr int place_bits = 40;
[[nodiscard]] constexpr std::uintptr_t place_of(std::uint32_t piece, std::uintptr_t offset) {
  return (static_cast<std::uintptr_t>(piece) + 1) << place_bits | offset;
}

/// A process's text made fit to print: letters, digits and punctuation of ASCII, up to a maximum length.
[[nodiscard]] std::string printable(const std::string& text);

/// Memory that another process can map; its length is fixed. Throws Error(out_of_memory).
[[nodiscard]] int make_shared_memory(std::size_t bytes);

}  // namespace thresher::arena::user_kernels
