// A file of packed weights, from memory with a name, and the same bytes as a block. Both must have the same contents.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <span>

#include "fuzzed.hpp"
#include "thresher/packed_block.hpp"
#include "thresher/packed_file.hpp"

using namespace thresher;

namespace {

class File {
 public:
  File() : descriptor_(::memfd_create("packed", 0)), path_("/proc/self/fd/" + std::to_string(descriptor_)) {}
  const std::string& with(std::string_view bytes) {
    fuzz::require(::ftruncate(descriptor_, 0) == 0 &&
                  ::pwrite(descriptor_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    return path_;
  }

 private:
  int descriptor_;
  std::string path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static File file;
  const std::string& path = file.with(fuzz::text_of(data, size));
  const bool is_dual = fuzz::understood([&] { (void)load_packed(Device::cpu(), path); });
  // The same bytes as a block in a caller's memory.
  alignas(256) static std::array<std::byte, std::size_t{1} << 16> room;
  if (size > room.size()) {
    return 0;
  }
  std::memcpy(room.data(), data, size);
  const std::span<const std::byte> block(room.data(), size);
  const bool is_dual_block = fuzz::understood([&] { (void)from_block(Device::cpu(), block, PackedCheck::content); });
  fuzz::require(!is_dual_block || is_dual);
  (void)fuzz::understood([&] { (void)grouped_from_block(Device::cpu(), block, PackedCheck::content); });
  return 0;
}
