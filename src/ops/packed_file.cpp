#include "thresher/packed_file.hpp"

#include <fmt/format.h>

#include "formats/safetensors.hpp"
#include "ops/backend.hpp"
#include "ops/device_operations.hpp"
#include "ops/packed_image.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace {

class PackedFileSource final : public ops::PackedSource {
 public:
  explicit PackedFileSource(const std::string& path) : file_(path) {}
  [[nodiscard]] std::string name() const override { return "packed weights " + file_.path(); }
  [[nodiscard]] const formats::SafetensorsHeader& header() const override { return file_.header(); }
  [[nodiscard]] ops::Bytes read(const formats::StoredTensor& tensor) const override { return file_.read(tensor); }

 private:
  formats::SafetensorsFile file_;
};

}  // namespace

void save_packed(const PackedWeights& weights, const std::string& path) {
  ops::write_packed_file(path, weights.storage().content());
}

PackedWeights load_packed(const Device& device, const std::string& path) {
  const PackedFileSource source(path);
  ops::PackedContent content = ops::read_packed_image(source, PackedCheck::content);
  ops::expect_dual_gemm(source, content);
  try {
    return PackedWeights(ops::operations_for(device.kind()).restore(device, std::move(content)));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", source.name(), error.what()));
  }
}

}  // namespace thresher
