#include "emulator/support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "formats/numbers.hpp"
#include "machine/emulator/engine/random.hpp"

namespace thresher::emulator::test {

std::vector<Finding> findings_of(const Subject& subject, std::uint64_t seed) {
  for (const GlobalMemory::Buffer& buffer : subject.memory.buffers()) {
    if (buffer.use == Use::output) {
      std::memset(reinterpret_cast<void*>(buffer.address), 0xA5, buffer.bytes);
    }
  }
  Options options = subject.options;
  options.schedule = Schedule::from_seed(seed);
  return launch(subject.shape, options, subject.memory, subject.kernel).findings;
}

std::string text_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += to_string(finding);
  }
  return text;
}

void expect_found(const Subject& subject, FindingKind kind, const std::vector<std::string>& words) {
  std::string others;
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    for (const Finding& finding : findings_of(subject, seed)) {
      const std::string text = to_string(finding);
      const bool says_all = std::all_of(words.begin(), words.end(),
                                        [&](const std::string& word) { return text.find(word) != std::string::npos; });
      if (finding.kind == kind && says_all) {
        return;
      }
      others += seed == 0 ? text : "";
    }
  }
  ADD_FAILURE() << "no '" << name(kind) << "' in " << schedules << " schedules; the first one found\n" << others;
}

void expect_clean(const Subject& subject, std::uint64_t schedule_count) {
  for (std::uint64_t seed = 0; seed < schedule_count; ++seed) {
    const std::vector<Finding> findings = findings_of(subject, seed);
    ASSERT_TRUE(findings.empty()) << text_of(findings);
    ASSERT_TRUE(!subject.correct || subject.correct()) << "wrong outputs with seed " << seed;
  }
}

machine::TensorMap map_2d(const void* data, machine::ElementType element, std::uint64_t rows, std::uint64_t columns,
                          std::uint32_t box_rows, std::uint32_t box_columns, machine::Swizzle swizzle) {
  machine::TensorMapDescription description;
  description.address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data));
  description.element = element;
  description.swizzle = swizzle;
  description.rank = 2;
  description.extent[0] = columns;
  description.extent[1] = rows;
  description.stride_bytes[1] = columns * machine::element_bytes(element);
  description.box[0] = box_columns;
  description.box[1] = box_rows;
  return encode_tensor_map(description);
}

std::vector<std::uint16_t> small_halves(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::uint16_t> values(count);
  for (std::uint16_t& value : values) {
    value = formats::float_to_fp16(static_cast<float>(random.below(17)) - 8.0F);
  }
  return values;
}

}  // namespace thresher::emulator::test
