// Messages from a kernel's process to its judge, through a socket, and the questions that such a process reads. Every
// message is an answer, an error or invalid.
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "arena/user_kernels/line/wire.hpp"
#include "fuzzed.hpp"

using namespace thresher;
using namespace thresher::arena::user_kernels;

namespace {

struct Line {
  Line() { fuzz::require(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0); }
  std::array<int, 2> ends{};
};

void read_as_asked(Reader& reader, std::string_view kinds) {
  while (!kinds.empty()) {
    switch (fuzz::take_byte(kinds) % 5) {
      case 0: (void)reader.get<std::uint32_t>(); break;
      case 1: (void)reader.get<std::uint64_t>(); break;
      case 2: fuzz::require(reader.text().size() <= max_message_bytes); break;
      case 3: (void)reader.descriptor(); break;
      default: {
        const CallLayout layout = read_layout(reader);
        const std::span<const std::byte> told = reader.get_bytes(layout.bytes);
        std::vector<std::byte> call(told.begin(), told.end());
        translate_addresses(call, layout.addresses, [](std::uintptr_t address) { return address ^ 1; });
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Line line;
  std::string_view rest = fuzz::text_of(data, size);
  const std::string_view kinds = rest.substr(0, fuzz::take_byte(rest) % 16);
  if (rest.empty() || !send_message(line.ends[1], std::as_bytes(std::span(rest)))) {
    return 0;
  }
  const Received received = receive_message(line.ends[0], false, Descriptors::refused);
  fuzz::require(received.what == Received::What::message && received.descriptors.empty());
  const Reply reply = read_reply(received, 7);
  if (reply.refusal) {
    fuzz::require(std::string_view(reply.refusal->what()).size() <= max_sentence_bytes);
  }
  Reader reader(received.bytes, {});
  fuzz::understood([&] { read_as_asked(reader, kinds); }, ErrorCode::device);
  fuzz::require(printable(std::string(rest)).size() <= max_sentence_bytes);
  return 0;
}
