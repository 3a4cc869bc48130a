// Entries of the caches of compiled programs. The raw bytes are almost never a valid entry; with their own fingerprint
// added, the content is parsed. A change of an entry's last byte must always be detected.
#include "core/fingerprint.hpp"
#include "fuzzed.hpp"
#include "runtime/cubin_cache.hpp"
#include "runtime/host_compiler.hpp"

using namespace thresher;

namespace {

void check(std::string_view entry) {
  if (const auto cubin = runtime::deserialise("key", entry)) {
    const std::string again = runtime::serialise("key", *cubin);
    fuzz::require(runtime::deserialise("key", again).has_value());
    std::string other = again;
    other[again.size() / 2] = static_cast<char>(other[again.size() / 2] ^ 1);
    fuzz::require(!runtime::deserialise("key", other) && !runtime::deserialise("another key", again));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  check(bytes);
  const std::string whole = "thresher cubin 1\n" + std::string(bytes);
  check(whole + Fingerprint().add(whole).hex());

  std::string library = runtime::host_cache_entry(bytes);
  fuzz::require(runtime::is_whole_host_cache_entry(library));
  library.back() = static_cast<char>(library.back() ^ 1);
  fuzz::require(!runtime::is_whole_host_cache_entry(library));
  (void)runtime::is_whole_host_cache_entry(bytes);
  return 0;
}
