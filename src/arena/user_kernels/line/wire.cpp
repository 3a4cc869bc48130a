#include "arena/user_kernels/line/wire.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

constexpr std::size_t max_descriptors = 8;

std::vector<int> descriptors_in(msghdr& header) {
  std::vector<int> found;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
      const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int descriptor = -1;
        std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
        found.push_back(descriptor);
      }
    }
  }
  return found;
}

}  // namespace

Writer& Writer::put(const std::string& text) {
  put(static_cast<std::uint32_t>(text.size()));
  append(text.data(), text.size());
  return *this;
}

Writer& Writer::put_bytes(std::span<const std::byte> bytes) {
  append(bytes.data(), bytes.size());
  return *this;
}

void Writer::append(const void* from, std::size_t count) {
  const std::size_t begin = bytes_.size();
  bytes_.resize(begin + count);
  std::memcpy(bytes_.data() + begin, from, count);
}

const std::byte* Reader::take(std::size_t bytes) {
  if (bytes > bytes_.size() - at_) {
    throw Error(ErrorCode::device, "a message ends too early");
  }
  const std::byte* const taken = bytes_.data() + at_;
  at_ += bytes;
  return taken;
}

std::string Reader::text() {
  const auto length = get<std::uint32_t>();
  const auto* const bytes = reinterpret_cast<const char*>(take(length));
  return {bytes, length};
}

int Reader::descriptor() {
  if (descriptors_.empty()) {
    throw Error(ErrorCode::device, "a message lacks its memory");
  }
  const int descriptor = descriptors_.back();
  descriptors_.pop_back();
  return descriptor;
}

void put(Writer& writer, const runtime::Confined& confined) {
  writer.put(static_cast<std::uint32_t>(confined.protections.size()));
  for (const runtime::Protection& protection : confined.protections) {
    writer.put(protection.what).put(std::uint8_t{protection.in_force}).put(protection.sentence);
  }
}

runtime::Confined read_confined(Reader& reader) {
  runtime::Confined confined;
  for (auto left = reader.get<std::uint32_t>(); left > 0; --left) {
    runtime::Protection& protection = confined.protections.emplace_back();
    protection.what = reader.text();
    protection.in_force = reader.get<std::uint8_t>() != 0;
    protection.sentence = reader.text();
  }
  return confined;
}

void put(Writer& writer, const CallLayout& layout) {
  writer.put(layout.bytes).put(static_cast<std::uint32_t>(layout.addresses.size()));
  writer.put_bytes(std::as_bytes(std::span(layout.addresses)));
}

CallLayout read_layout(Reader& reader) {
  CallLayout layout;
  layout.bytes = reader.get<std::uint32_t>();
  for (auto left = reader.get<std::uint32_t>(); left > 0; --left) {
    layout.addresses.push_back(reader.get<std::uint32_t>());
    if (layout.bytes < sizeof(std::uintptr_t) || layout.addresses.back() > layout.bytes - sizeof(std::uintptr_t)) {
      throw Error(ErrorCode::device, "an address lies beyond its call");
    }
  }
  return layout;
}

bool send_message(int socket, std::span<const std::byte> bytes, int descriptor) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

Received receive_message(int socket, bool waits, Descriptors wanted) {
  Received received;
  received.bytes.resize(max_message_bytes);
  iovec part{received.bytes.data(), received.bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(max_descriptors * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t count = -1;
  do {
    count = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | (waits ? 0 : MSG_DONTWAIT));
  } while (count < 0 && errno == EINTR);
  received.bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  if (count <= 0) {
    received.what =
        count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? Received::What::nothing_yet : Received::What::end;
    return received;
  }
  received.what = Received::What::message;
  received.is_cut = (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  received.descriptors = descriptors_in(header);
  if (wanted == Descriptors::refused) {
    for (const int descriptor : received.descriptors) {
      ::close(descriptor);
    }
    received.descriptors.clear();
  }
  return received;
}

Reply read_reply(const Received& received, std::uint32_t number) {
  Reply reply;
  reply.rest = Reader(received.bytes, {});
  try {
    if (received.is_cut || reply.rest.get<std::uint32_t>() != number) {
      return reply;
    }
    if (reply.rest.get<std::uint32_t>() != 0) {
      const auto code = reply.rest.get<std::uint32_t>();
      reply.refusal.emplace(
          code <= static_cast<std::uint32_t>(ErrorCode::internal) ? static_cast<ErrorCode>(code) : ErrorCode::device,
          printable(reply.rest.text()));
    }
    reply.is_answer = true;
  } catch (const Error&) {  // the message ends too early
    reply.is_answer = false;
  }
  return reply;
}

std::string printable(const std::string& text) {
  std::string shown = text.substr(0, max_sentence_bytes);
  std::replace_if(shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}

int make_shared_memory(std::size_t bytes) {
  const int memory = ::memfd_create("thresher", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory < 0 || ::ftruncate(memory, static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    if (memory >= 0) {
      ::close(memory);
    }
    throw Error(ErrorCode::out_of_memory,
                fmt::format("{} KiB of shared memory are not to be had: free some memory", bytes >> 10));
  }
  return memory;
}

}  // namespace thresher::arena::user_kernels
