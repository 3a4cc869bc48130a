#include "arena/audit/machine_code.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "thresher/error.hpp"

namespace thresher::arena {

ReadCode read_code(const Disassembler& tools, const KernelCode& code) {
  ReadCode read{{}, how_to_get_a_disassembler()};
  Disassembly listing;
  const SassFunction* function = nullptr;
  if (tools.found()) {
    try {
      listing = disassemble(tools, code.image);
      const auto found = std::find_if(listing.functions.begin(), listing.functions.end(),
                                      [&](const SassFunction& each) { return each.name == code.kernel; });
      function = found == listing.functions.end() ? nullptr : &*found;
      read.why_no_code = "the disassembly has no kernel " + code.kernel;
    } catch (const Error& error) {
      read.why_no_code = error.what();
    }
  }
  read.report = audit(code.kernel, &code.resources, function, code.dynamic_shared_bytes);
  return read;
}

std::string resources_text(const KernelCode& code) {
  const int spilled = code.resources.spill_store_bytes + code.resources.spill_load_bytes;
  return fmt::format("{} registers, {}, {} bytes of shared memory", code.resources.registers,
                     spilled == 0 ? "nothing spilled" : fmt::format("{} bytes spilled", spilled),
                     code.resources.static_shared_bytes + code.dynamic_shared_bytes);
}

}  // namespace thresher::arena
