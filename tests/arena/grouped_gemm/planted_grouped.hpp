#pragma once
/// Contestants of the grouped products made for tests: the definition on the host, with a mistake or a cheat planted.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "arena/gemm/inputs.hpp"
#include "arena/gemm/task.hpp"
#include "arena/planted.hpp"
#include "formats/quantize_row.hpp"
#include "reference/grouped_judgement.hpp"

namespace thresher::arena {

/// One call of a host kernel; what it computes are the rows that `call.owned` gives to experts.
struct GroupedKernelCall {
  ProductTask task;
  reference::GroupedCall call;
  std::size_t set = 0;
  int number = 0;  ///< calls of this runner before this one

  /// Writes every row that an expert owns.
  void compute() const {
    for (const reference::GroupRegion& part : reference::whole(call)) {
      const reference::Outputs outputs =
          grouped_outputs(call, part, reference::Accumulation::float32, Numerics::exact, 1);
      const std::int64_t first = call.owned.groups[static_cast<std::size_t>(part.expert)].first;
      std::size_t i = 0;
      for (const std::int64_t row : part.region.rows) {
        if (format_traits(call.problem.out).is_quantized_output()) {
          std::vector<float> values;
          for (; values.size() < part.region.columns.size(); ++i) {
            values.push_back(static_cast<float>(outputs.value[i]));
          }
          const Tensor c = group_output(call, part.expert);
          formats::quantize_row(c, task.problem.layout == RowLayout::slots ? row : first + row, values);
          continue;
        }
        for (const std::int64_t column : part.region.columns) {
          write(first + row, column, outputs.value[i++]);
        }
      }
    }
  }

  /// A row of C, with slots one behind the other.
  void write(std::int64_t row, std::int64_t column, double value) const {
    const Tensor& c = call.tensors.c;
    const KernelCall flat{.problem = {},
                          .a = {},
                          .b1 = {},
                          .b2 = {},
                          .c = Tensor::contiguous(c.data, c.format, {c.elements() / task.problem.n, task.problem.n})};
    flat.write(row, column, static_cast<float>(value));
  }
};

using GroupedKernel = std::function<void(GroupedKernelCall&)>;

class PlantedGroupedRunner final : public Runner {
 public:
  PlantedGroupedRunner(const ProductTask& task, const std::vector<DeviceSet>& sets, GroupedKernel kernel,
                       FakeClock* clock)
      : task_(task), sets_(sets), kernel_(std::move(kernel)), clock_(clock) {}
  void run(Stream, std::size_t set) override {
    const FindTensor find = [&](std::string_view name) {
      const Tensor* const known = sets_[set].find(name);
      return known == nullptr ? Tensor{} : *known;
    };
    GroupedKernelCall call{
        task_, reference::grouped_call(task_.problem, grouped_weights(task_, find), grouped_tensors(task_, find)), set,
        calls_++};
    kernel_(call);
    if (clock_ != nullptr) {
      clock_->spend(60);
    }
  }

 private:
  ProductTask task_;
  const std::vector<DeviceSet>& sets_;
  GroupedKernel kernel_;
  FakeClock* clock_;
  int calls_ = 0;
};

/// `make` gives a kernel of its own to whatever is prepared.
class PlantedGroupedContestant final : public Contestant {
 public:
  PlantedGroupedContestant(std::function<GroupedKernel()> make, FakeClock* clock = nullptr)
      : Contestant({"grouped_dual_gemm", "planted"}), make_(std::move(make)), clock_(clock) {}
  Answer feasible(const Problem&, Memory&) const override { return {true, "a fake needs nothing"}; }
  Answer compile(const Problem&) const override { return {true, "compiled with the tests"}; }
  std::unique_ptr<Runner> prepare(const Problem& problem, Memory&, const std::vector<DeviceSet>& sets) const override {
    return std::make_unique<PlantedGroupedRunner>(problem.as<ProductTask>(), sets, make_(), clock_);
  }

 private:
  std::function<GroupedKernel()> make_;
  FakeClock* clock_;
};

}  // namespace thresher::arena
