// What judge and kernel's process say to each other, as the judge reads it: nothing that comes makes it read too far,
// wait for ever or show what is no plain text.
#include "arena/user_kernels/line/wire.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "arena/user_kernels/line/doorbell.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

struct Line {
  Line() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0); }
  ~Line() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  std::array<int, 2> ends{};
};

int open_descriptors() {
  int count = 0;
  for (int number = 0; number < 256; ++number) {
    count += ::fcntl(number, F_GETFD) >= 0;
  }
  return count;
}

TEST(Wire, WhatIsPutIsReadAndNoMore) {
  Reader reader(Writer().put(std::uint32_t{7}).put(std::string("mine")).bytes(), {});
  EXPECT_EQ(reader.get<std::uint32_t>(), 7U);
  EXPECT_EQ(reader.text(), "mine");
  EXPECT_TRUE(reader.at_end());
  EXPECT_THROW((void)reader.get<std::uint32_t>(), Error);
  EXPECT_THROW((void)reader.descriptor(), Error);
  Reader longer_than_it_is(Writer().put(std::uint32_t{0xFFFFFFFF}).bytes(), {});
  EXPECT_THROW((void)longer_than_it_is.text(), Error);
}

TEST(Wire, WhatHoldsAProcessIsTold) {
  Writer writer;
  put(writer, {{{"files", true, "reads nothing"}, {"system calls", false, "this kernel has no filters"}}});
  Reader reader(writer.bytes(), {});
  const runtime::Confined confined = read_confined(reader);
  ASSERT_EQ(confined.protections.size(), 2U);
  EXPECT_TRUE(confined.protections[0].in_force);
  EXPECT_EQ(confined.missing(), "system calls: this kernel has no filters");
  Reader more_than_there_is(Writer().put(std::uint32_t{1000}).bytes(), {});
  EXPECT_THROW((void)read_confined(more_than_there_is), Error);
}

TEST(Wire, ALongMessageIsCutAndSaidToBe) {
  const Line line;
  const std::vector<std::byte> longer(max_message_bytes + 1);
  ASSERT_TRUE(send_message(line.ends[0], longer));
  const Received received = receive_message(line.ends[1], false, Descriptors::refused);
  EXPECT_EQ(received.what, Received::What::message);
  EXPECT_TRUE(received.is_cut);
  EXPECT_EQ(received.bytes.size(), max_message_bytes);
  EXPECT_EQ(receive_message(line.ends[1], false, Descriptors::refused).what, Received::What::nothing_yet);
}

TEST(Wire, DescriptorsThatNobodyExpectsAreClosed) {
  const Line line;
  const int before = open_descriptors();
  ASSERT_TRUE(send_message(line.ends[0], Writer(Ask::hello).bytes(), line.ends[0]));
  const Received received = receive_message(line.ends[1], false, Descriptors::refused);
  EXPECT_EQ(received.what, Received::What::message);
  EXPECT_TRUE(received.descriptors.empty());
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Wire, SharedMemoryKeepsItsLength) {
  const int memory = make_shared_memory(8192);
  EXPECT_NE(::ftruncate(memory, 0), 0);
  EXPECT_NE(::ftruncate(memory, 1 << 20), 0);
  ::close(memory);
}

TEST(Wire, WordsOfAProcessAreShownAsPlainText) {
  EXPECT_EQ(printable("plain text, 100 %"), "plain text, 100 %");
  EXPECT_EQ(printable("\033[31mred\007\n\xC2\x9B"), "?[31mred????");
  EXPECT_EQ(printable(std::string(100000, 'x')).size(), max_sentence_bytes);
}

TEST(Wire, EveryAddressOfACallIsTranslatedAndNullStaysNull) {
  std::array<std::uintptr_t, 4> call{100, 200, 0, 400};
  const std::vector<std::uint32_t> addresses{8, 16, 24};
  int translated = 0;
  translate_addresses(std::as_writable_bytes(std::span(call)), addresses, [&](std::uintptr_t address) {
    ++translated;
    return address + 1;
  });
  EXPECT_EQ(translated, 2);
  EXPECT_EQ(call, (std::array<std::uintptr_t, 4>{100, 201, 0, 401}));
}

TEST(Wire, ALayoutIsReadAsItWasPutAndNamesNoAddressBeyondItsCall) {
  const auto read = [](const CallLayout& layout) {
    Writer writer;
    put(writer, layout);
    Reader reader(writer.bytes(), {});
    return read_layout(reader);
  };
  const CallLayout layout = read({24, {0, 16}});
  EXPECT_EQ(layout.bytes, 24U);
  EXPECT_EQ(layout.addresses, (std::vector<std::uint32_t>{0, 16}));
  EXPECT_THROW((void)read({24, {17}}), Error);
  EXPECT_THROW((void)read({4, {0}}), Error);
}

TEST(Doorbell, AWordThatKeepsChangingKeepsNobodyWaiting) {
  Doorbell bell{};
  std::atomic<bool> stop = false;
  std::thread stirs([&] {
    for (std::uint32_t value = 1; !stop.load(); value += 2) {
      tell(bell.done, value);
    }
  });
  int asked = 0;
  EXPECT_FALSE(await(bell.done, 2, true, [&] { return ++asked == 3; }));
  stop.store(true);
  stirs.join();
}

}  // namespace
}  // namespace thresher::arena::user_kernels
