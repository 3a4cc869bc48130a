#include "thresher/packed_file.hpp"

#include <utility>

#include "formats/safetensors.hpp"
#include "ops/packed_image.hpp"

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
  return PackedWeights(ops::restore_from(source, device, std::move(content)));
}

}  // namespace thresher
