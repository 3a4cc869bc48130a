#include "thresher/gated_mlp.hpp"

#include <utility>
#include <variant>

#include "ops/layer_parts.hpp"
#include "ops/packed_product.hpp"
#include "runtime/known_places.hpp"

namespace thresher {

class PackedGatedMlpWeights::Storage {
 public:
  std::variant<PackedWeights, PackedGemmWeights> gate_up;  ///< the second is up alone
  PackedGemmWeights down;

  [[nodiscard]] const Device& device() const noexcept { return down.device(); }
  /// Where they lie.
  [[nodiscard]] GatedMlpWeights in_place() const {
    const Tensor& of_down = down.grouped().storage().weights().b1;
    if (const auto* const both = std::get_if<PackedWeights>(&gate_up)) {
      const GroupedWeights& weights = both->storage().weights();
      return {.gate = weights.b1, .up = weights.b2, .down = of_down};
    }
    return {.up = std::get<PackedGemmWeights>(gate_up).grouped().storage().weights().b1, .down = of_down};
  }
};

namespace {

/// The product that makes the intermediate: that of gate and up, or of up alone.
class FirstProduct {
 public:
  template <class Planned>
  FirstProduct(Planned planned) : planned_(std::move(planned)) {}  // NOLINT

  void run(Stream stream, const Tensor& x, const Tensor& hidden, void* workspace) const {
    std::visit([&](const auto& planned) { planned.run(stream, x, hidden, workspace); }, planned_);
  }
  [[nodiscard]] std::size_t workspace_bytes() const {
    return std::visit([](const auto& planned) { return planned.workspace_bytes(); }, planned_);
  }
  [[nodiscard]] const std::string& strategy() const {
    return std::visit([](const auto& planned) -> const std::string& { return planned.strategy(); }, planned_);
  }

 private:
  std::variant<DualGemm, Gemm> planned_;
};

}  // namespace

class GatedMlp::Backend : public ops::PlannedLayer<GatedMlpProblem> {
 public:
  /// Calls read `weights` in place.
  Backend(const Device& device, const GatedMlpProblem& problem, FirstProduct gate_up, Gemm down,
          const GatedMlpWeights& weights)
      : PlannedLayer(device, problem),
        gate_up_(std::move(gate_up)),
        down_(std::move(down)),
        weights_(weights),
        intermediate_(device, problem.intermediate, problem.intermediate_scale, problem.tokens,
                      problem.intermediate_size, pieces_),
        gate_up_piece_(strategies::add_piece(pieces_, "of gate and up", gate_up_.workspace_bytes())),
        down_piece_(strategies::add_piece(pieces_, "of down", down_.workspace_bytes())) {}

  [[nodiscard]] const FirstProduct& gate_up() const noexcept { return gate_up_; }
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
  FirstProduct gate_up_;
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

namespace {

void check_one_device(const char* first, const Device& of_first, const Device& of_down) {
  if (of_first.id() != of_down.id()) {
    ops::refuse("{} packed for {}, but down for {}: pack them for one device", first, of_first.name(), of_down.name());
  }
}

}  // namespace

PackedGatedMlpWeights::PackedGatedMlpWeights(PackedWeights gate_up, PackedGemmWeights down) {
  check_one_device("gate and up were", gate_up.device(), down.device());
  storage_ = std::make_shared<const Storage>(Storage{std::move(gate_up), std::move(down)});
}

PackedGatedMlpWeights::PackedGatedMlpWeights(PackedGemmWeights up, PackedGemmWeights down) {
  check_one_device("up was", up.device(), down.device());
  storage_ = std::make_shared<const Storage>(Storage{std::move(up), std::move(down)});
}

const Device& PackedGatedMlpWeights::device() const noexcept { return storage_->device(); }

PackedGatedMlpWeights pack(const Device& device, const GatedMlpWeights& weights, const PackOptions& options) {
  const auto pack_one = [&](const char* name, const Tensor& b) {
    return ops::of_product(name, [&] { return pack(device, GemmWeights{.b = b}, options); });
  };
  if (weights.gate.rank == 0) {
    return {pack_one("up", weights.up), pack_one("down", weights.down)};
  }
  return {ops::of_product("gate and up", [&] { return pack(device, weights.gate, weights.up, options); }),
          pack_one("down", weights.down)};
}

namespace {

/// `plan_gate_up()` and `plan_down()` plan the products. Calls read `weights` in place.
GatedMlp plan_layer(const Device& device, const GatedMlpProblem& problem, const GatedMlpWeights& weights,
                    const auto& plan_gate_up, const auto& plan_down) {
  ops::check_layer(problem, "problem.tokens", problem.tokens);
  FirstProduct gate_up = ops::of_product(is_gated(problem.activation) ? "gate and up" : "up", plan_gate_up);
  Gemm down = ops::of_product("down", plan_down);
  return GatedMlp(
      std::make_shared<const GatedMlp::Backend>(device, problem, std::move(gate_up), std::move(down), weights));
}

void check_gate(const GatedMlpProblem& problem, bool has_gate) {
  if (has_gate != is_gated(problem.activation)) {
    ops::refuse("the weights have {} gate, but problem.activation is {}", has_gate ? "a" : "no",
                name(problem.activation.kind));
  }
}

}  // namespace

GatedMlp plan(const Device& device, const GatedMlpProblem& problem, const PackedGatedMlpWeights& weights,
              const GatedMlpOptions& options) {
  const PackedGatedMlpWeights::Storage& packed = weights.storage();
  const auto* const gate_up = std::get_if<PackedWeights>(&packed.gate_up);
  check_gate(problem, gate_up != nullptr);
  const GatedMlpWeights in_place = device.kind() == DeviceKind::cpu ? packed.in_place() : GatedMlpWeights{};
  return plan_layer(
      device, problem, in_place,
      [&]() -> FirstProduct {
        if (gate_up != nullptr) {
          return plan(device, ops::gate_up_problem(problem), *gate_up, options.gate_up);
        }
        return plan(device, ops::up_problem(problem), std::get<PackedGemmWeights>(packed.gate_up), options.gate_up);
      },
      [&] { return plan(device, ops::down_problem(problem), packed.down, options.down); });
}

GatedMlp plan(const Device& device, const GatedMlpProblem& problem, const GatedMlpWeights& weights,
              const GatedMlpOptions& options) {
  const bool has_gate = weights.gate.rank > 0;
  check_gate(problem, has_gate);
  return plan_layer(
      device, problem, weights,
      [&]() -> FirstProduct {
        if (has_gate) {
          return plan(device, ops::gate_up_problem(problem), weights.gate, weights.up, options.gate_up);
        }
        return plan(device, ops::up_problem(problem), GemmWeights{.b = weights.up}, options.gate_up);
      },
      [&] { return plan(device, ops::down_problem(problem), GemmWeights{.b = weights.down}, options.down); });
}

}  // namespace thresher
