// The output of disassemblers. No text is rejected: lines without an instruction are skipped.
#include "arena/audit/sass.hpp"
#include "fuzzed.hpp"

using namespace thresher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  for (const arena::SassFunction& function : arena::parse_sass(text)) {
    int counted = 0;
    for (const auto& [mnemonic, count] : function.by_mnemonic) {
      fuzz::require(count > 0);
      counted += count;
    }
    fuzz::require(counted == function.instructions && function.highest_register >= -1);
    fuzz::require(function.count("LDG") >= function.count("LDG", "128"));
  }
  for (const arena::SassResources& resources : arena::parse_resource_usage(text)) {
    fuzz::require(!resources.name.empty());
  }
  return 0;
}
