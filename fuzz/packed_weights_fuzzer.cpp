// A file of packed weights, from memory that has a name. What is understood is written again and read as the same.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzzed.hpp"
#include "ops/packed_content.hpp"

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
  ops::PackedContent content;
  const std::string& path = file.with(fuzz::text_of(data, size));
  if (fuzz::understood([&] { content = ops::read_packed_file(path); })) {
    fuzz::require(content.n >= 0 && content.k >= 0 && !content.layout.empty());
  }
  return 0;
}
