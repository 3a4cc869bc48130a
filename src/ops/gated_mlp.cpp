#include "thresher/gated_mlp.hpp"

#include <utility>

#include "ops/layer_parts.hpp"
#include "ops/packed_product.hpp"
#include "runtime/known_places.hpp"

namespace thresher {

class PackedGatedMlpWeights::Storage {
 public:
  PackedWeights gate_up;
  PackedGemmWeights down;
};

class GatedMlp::Backend : public ops::PlannedLayer<GatedMlpProblem> {
 public:
  /// Calls read `weights` in place.
  Backend(const Device& device, const GatedMlpProblem& problem, DualGemm gate_up, Gemm down,
          const GatedMlpWeights& weights)
      : PlannedLayer(device, problem),
        gate_up_(std::move(gate_up)),
        down_(std::move(down)),
        weights_(weights),
        intermediate_(device, problem.intermediate, problem.intermediate_scale, problem.tokens,
                      problem.intermediate_size, pieces_),
        gate_up_piece_(strategies::add_piece(pieces_, "of gate and up", gate_up_.workspace_bytes())),
        down_piece_(strategies::add_piece(pieces_, "of down", down_.workspace_bytes())) {}

  [[nodiscard]] const DualGemm& gate_up() const noexcept { return gate_up_; }
  [[nodiscard]] const Gemm& down() const noexcept { return down_; }

  void run(Stream stream, const Tensor& x, const Tensor& out, void* workspace) const {
    check_x(x);
    const std::int64_t tokens = x.shape[0];
    check_out(out, tokens, {{"x", &x}, {"gate", &weights_.gate}, {"up", &weights_.up}, {"down", &weights_.down}},
              workspace);
    if (tokens == 0) {
      return;
    }
    require_on_gpu({{"x", x.data}, {"out", out.data}, {"workspace", workspace}});
    const runtime::ValidatedPointers validated;
    const Tensor hidden = intermediate_.tensor(tokens, workspace);
    ops::of_product("gate and up, whose a is x",
                    [&] { gate_up_.run(stream, x, hidden, at(workspace, gate_up_piece_)); });
    ops::of_product("down, whose c is out", [&] { down_.run(stream, hidden, out, at(workspace, down_piece_)); });
  }

 private:
  DualGemm gate_up_;
  Gemm down_;
  GatedMlpWeights weights_;
  ops::Intermediate intermediate_;
  std::size_t gate_up_piece_;
  std::size_t down_piece_;
};

void GatedMlp::run(Stream stream, const Tensor& x, const Tensor& out, void* workspace) const {
  backend_->run(stream, x, out, workspace);
}
std::size_t GatedMlp::workspace_bytes() const { return backend_->workspace_bytes(); }
const GatedMlpProblem& GatedMlp::problem() const { return backend_->problem(); }
const std::string& GatedMlp::gate_up_strategy() const { return backend_->gate_up().strategy(); }
const std::string& GatedMlp::down_strategy() const { return backend_->down().strategy(); }

PackedGatedMlpWeights::PackedGatedMlpWeights(PackedWeights gate_up, PackedGemmWeights down) {
  if (gate_up.device().id() != down.device().id()) {
    ops::refuse("gate and up were packed for {}, but down for {}: pack them for one device", gate_up.device().name(),
                down.device().name());
  }
  storage_ = std::make_shared<const Storage>(Storage{std::move(gate_up), std::move(down)});
}

const Device& PackedGatedMlpWeights::device() const noexcept { return storage_->gate_up.device(); }

PackedGatedMlpWeights pack(const Device& device, const GatedMlpWeights& weights, const PackOptions& options) {
  return {ops::of_product("gate and up", [&] { return pack(device, weights.gate, weights.up, options); }),
          ops::of_product("down", [&] { return pack(device, GemmWeights{.b = weights.down}, options); })};
}

namespace {

/// `plan_gate_up()` and `plan_down()` plan the products. Calls read `weights` in place.
GatedMlp plan_layer(const Device& device, const GatedMlpProblem& problem, const GatedMlpWeights& weights,
                    const auto& plan_gate_up, const auto& plan_down) {
  ops::check_layer(problem, "problem.tokens", problem.tokens);
  DualGemm gate_up = ops::of_product("gate and up", plan_gate_up);
  Gemm down = ops::of_product("down", plan_down);
  return GatedMlp(
      std::make_shared<const GatedMlp::Backend>(device, problem, std::move(gate_up), std::move(down), weights));
}

}  // namespace

GatedMlp plan(const Device& device, const GatedMlpProblem& problem, const PackedGatedMlpWeights& weights,
              const GatedMlpOptions& options) {
  const PackedGatedMlpWeights::Storage& packed = weights.storage();
  GatedMlpWeights in_place;
  if (device.kind() == DeviceKind::cpu) {  // packing copies on a GPU
    const GroupedWeights& gate_up = packed.gate_up.storage().weights();
    in_place = {.gate = gate_up.b1, .up = gate_up.b2, .down = packed.down.grouped().storage().weights().b1};
  }
  return plan_layer(
      device, problem, in_place,
      [&] { return plan(device, ops::gate_up_problem(problem), packed.gate_up, options.gate_up); },
      [&] { return plan(device, ops::down_problem(problem), packed.down, options.down); });
}

GatedMlp plan(const Device& device, const GatedMlpProblem& problem, const GatedMlpWeights& weights,
              const GatedMlpOptions& options) {
  return plan_layer(
      device, problem, weights,
      [&] { return plan(device, ops::gate_up_problem(problem), weights.gate, weights.up, options.gate_up); },
      [&] { return plan(device, ops::down_problem(problem), GemmWeights{.b = weights.down}, options.down); });
}

}  // namespace thresher
