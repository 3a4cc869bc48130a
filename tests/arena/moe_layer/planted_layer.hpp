#pragma once
/// Contestants of layers made for tests: Thresher's layer on the CPU, with a mistake or a cheat planted.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "arena/moe_layer/inputs.hpp"
#include "arena/moe_layer/task.hpp"
#include "arena/planted.hpp"
#include "thresher/thresher.hpp"

namespace thresher::arena {

/// One call of a host kernel. What it computes is `task` on what its tensors name, which a mistake changes.
struct LayerKernelCall {
  LayerTask task;
  GroupedWeights gate_up;
  GroupedWeights down;
  MoeTensors tensors;
  std::vector<std::int32_t> ids{};  ///< of every choice
  std::vector<float> weights{};     ///< likewise
  std::size_t set = 0;

  LayerKernelCall(const LayerTask& of, const FindTensor& find)
      : task(of),
        gate_up(gate_up_weights(of, find)),
        down(down_weights(of, find)),
        tensors(layer_tensors(find)),
        ids(copied<std::int32_t>(tensors.topk_ids)),
        weights(copied<float>(tensors.topk_weights)) {}

  void compute() {
    const Device cpu = Device::cpu();
    MoeTensors of = tensors;
    of.topk_ids.data = ids.data();
    of.topk_weights.data = weights.data();
    const MoeLayer layer = plan(cpu, task.problem, gate_up, down, {.gate_up = {.threads = 1}, .down = {.threads = 1}});
    const Workspace workspace(cpu, layer.workspace_bytes());
    layer.run({}, of, workspace.data());
  }

 private:
  template <class T>
  static std::vector<T> copied(const Tensor& tensor) {
    const auto* const values = static_cast<const T*>(tensor.data);
    return {values, values + tensor.elements()};
  }
};

using LayerKernel = std::function<void(LayerKernelCall&)>;

class PlantedLayerRunner final : public Runner {
 public:
  PlantedLayerRunner(const LayerTask& task, const std::vector<DeviceSet>& sets, LayerKernel kernel, FakeClock* clock)
      : task_(task), sets_(sets), kernel_(std::move(kernel)), clock_(clock) {}
  void run(Stream, std::size_t set) override {
    LayerKernelCall call(task_, [&](std::string_view name) {
      const Tensor* const known = sets_[set].find(name);
      return known == nullptr ? Tensor{} : *known;
    });
    call.set = set;
    kernel_(call);
    if (clock_ != nullptr) {
      clock_->spend(60);
    }
  }

 private:
  LayerTask task_;
  const std::vector<DeviceSet>& sets_;
  LayerKernel kernel_;
  FakeClock* clock_;
};

/// `make` gives a kernel of its own to whatever is prepared.
class PlantedLayerContestant final : public Contestant {
 public:
  explicit PlantedLayerContestant(std::function<LayerKernel()> make, FakeClock* clock = nullptr)
      : Contestant({"moe_layer", "planted"}), make_(std::move(make)), clock_(clock) {}
  Answer feasible(const Problem&, Memory&) const override { return {true, "a fake needs nothing"}; }
  Answer compile(const Problem&) const override { return {true, "compiled with the tests"}; }
  std::unique_ptr<Runner> prepare(const Problem& problem, Memory&, const std::vector<DeviceSet>& sets) const override {
    return std::make_unique<PlantedLayerRunner>(problem.as<LayerTask>(), sets, make_(), clock_);
  }

 private:
  std::function<LayerKernel()> make_;
  FakeClock* clock_;
};

}  // namespace thresher::arena
