// A strategy of Thresher's own in a process, on the tensors that a user kernel would get.
#include <optional>
#include <unordered_map>

#include "arena/contestants/registry.hpp"
#include "arena/operations.hpp"
#include "arena/user_kernels/line/strategy_call.hpp"
#include "arena/user_kernels/served/served.hpp"

namespace thresher::arena::user_kernels {
namespace {

class ServedStrategy final : public Served {
 public:
  explicit ServedStrategy(std::unique_ptr<Contestant> contestant) : contestant_(std::move(contestant)) {}
  void bind(std::uint32_t binding, Reader& about) override {
    const Operation& operation = find_operation(about.text());
    const Problem problem = operation.from_bytes(about.text());
    bindings_.insert_or_assign(binding, Binding{problem, read_names(about)});
  }
  void add_call(std::uint32_t binding, std::vector<std::byte> call) override {
    Binding& bound = bindings_.at(binding);
    bound.sets.emplace_back(tensors_from(call, bound.names));
  }
  void complete(std::uint32_t binding) override {
    Binding& bound = bindings_.at(binding);
    bound.runner = contestant_->prepare(bound.problem, memory_, bound.sets);
  }
  void unbind(std::uint32_t binding) override { bindings_.erase(binding); }
  void call(std::uint32_t binding, std::uint32_t set) override { bindings_.at(binding).runner->run(Stream{}, set); }

 private:
  struct Binding {
    Problem problem;
    std::vector<std::string> names;
    std::vector<DeviceSet> sets{};
    std::unique_ptr<Runner> runner{};
  };
  std::unique_ptr<Contestant> contestant_;
  HostMemory memory_;
  std::unordered_map<std::uint32_t, Binding> bindings_;
};

}  // namespace

std::unique_ptr<Served> serve_strategy(Reader& question) {
  auto strategy = library_registry(Device::cpu())->create(parse_label(question.text()));
  return std::make_unique<ServedStrategy>(std::move(strategy));
}

}  // namespace thresher::arena::user_kernels
