// Values of options and keys with a syntax of their own: knobs, expectations of the audit, compiler options,
// expressions, patterns, and printed names.
#include "arena/audit/expectations.hpp"
#include "arena/pitches/expression.hpp"
#include "arena/pitches/kernel_options.hpp"
#include "formats/glob.hpp"
#include "fuzzed.hpp"
#include "thresher/knobs.hpp"

using namespace thresher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = fuzz::text_of(data, size);
  const std::uint8_t kind = fuzz::take_byte(rest);
  const std::string_view first = fuzz::take_text(rest);
  switch (kind % 6) {
    case 0:
      fuzz::understood([&] {
        const Knobs knobs = Knobs::parse(first);
        fuzz::require(Knobs::parse(knobs.text()) == knobs);
      });
      break;
    case 1:
      fuzz::understood([&] {
        arena::AuditExpectations expectations;
        arena::set_expectation(expectations, first, rest);
      });
      break;
    case 2:
      for (const auto language : {arena::user_kernels::Language::cuda, arena::user_kernels::Language::host}) {
        if (arena::user_kernels::option_obstacle(language, std::string(first)).empty()) {
          fuzz::require(first.starts_with('-'));
          (void)arena::user_kernels::include_folder(std::string(first));
        }
      }
      break;
    case 3:
      fuzz::understood([&] {
        constexpr std::int64_t most = std::int64_t{1} << 62;
        const std::int64_t value = arena::user_kernels::evaluate(first, {{"m", 7}, {"n", 24}, {"k", 32}});
        fuzz::require(value >= -most && value <= most);
      });
      break;
    case 4:
      fuzz::require(!formats::matches(first, rest) || formats::matches("*", rest));
      fuzz::require(formats::has_wildcards(first) || formats::matches(first, rest) == (first == rest));
      break;
    default: {
      const std::string shown = printable(first);
      fuzz::require(printable(shown) == shown && is_utf8(shown));
      fuzz::require(shown.starts_with(first_columns(shown, rest.size())));
      fuzz::require(quoted_name(first).size() <= 4 * 120 + 8);
    }
  }
  return 0;
}
