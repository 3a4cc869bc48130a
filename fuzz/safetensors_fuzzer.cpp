// Any bytes are either rejected with an Error or parsed completely. Parsed tensors fill the data exactly, and the
// rewritten header parses to the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "formats/safetensors_header.hpp"
#include "thresher/error.hpp"

namespace {

using namespace thresher;
using namespace thresher::formats;

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

void check_header(std::string_view json, std::uint64_t data_bytes) {
  SafetensorsHeader header;
  try {
    header = parse_safetensors_header(json, data_bytes, "fuzzed");
  } catch (const Error& error) {
    require(error.code() == ErrorCode::invalid_argument);
    return;
  }
  std::uint64_t covered = 0;
  for (const StoredTensor& tensor : header.tensors) {
    require(tensor.begin == covered && tensor.bytes() == stored_bytes(tensor, "fuzzed"));
    covered = tensor.end;
  }
  require(covered == data_bytes);
  const std::string made = make_safetensors_header(header);
  const std::uint64_t length =
      safetensors_header_length(std::as_bytes(std::span(made)), made.size() + data_bytes, "fuzzed");
  SafetensorsHeader again = parse_safetensors_header(std::string_view(made).substr(8, length), data_bytes, "fuzzed");
  require(again == header);
}

void check_file(std::span<const std::byte> file) {
  std::uint64_t length = 0;
  try {
    length = safetensors_header_length(file.first(file.size() < 8 ? file.size() : 8), file.size(), "fuzzed");
  } catch (const Error& error) {
    require(error.code() == ErrorCode::invalid_argument);
    return;
  }
  check_header({reinterpret_cast<const char*>(file.data()) + 8, length}, file.size() - 8 - length);
}

}  // namespace

/// Parses the input once as a file, and once as 8 bytes of data size with the JSON behind them. Few random lengths are
/// right, so most inputs reach the JSON only the second way.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check_file(std::as_bytes(std::span(data, size)));
  if (size >= 8) {
    std::uint64_t data_bytes = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      data_bytes |= std::uint64_t{data[i]} << (8 * i);
    }
    check_header({reinterpret_cast<const char*>(data) + 8, size - 8}, data_bytes);
  }
  return 0;
}
