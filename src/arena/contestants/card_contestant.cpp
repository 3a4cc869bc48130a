// Contestants of tournaments on a card that is not here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "arena/contestants/registry.hpp"
#include "arena/operations.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

/// A strategy of Thresher's own as it would run on the card.
class CardContestant final : public Contestant {
 public:
  CardContestant(const Operation& operation, ContestantSpec spec, const DeviceSpec& card)
      : Contestant(std::move(spec)), operation_(operation), card_(card) {}

  [[nodiscard]] Numerics numerics() const override { return operation_.numerics(spec()); }

  [[nodiscard]] std::string unsupported_reason(const Problem& problem) const override {
    const PlannerResult outlook = this->outlook(problem);
    return outlook.is_for_other_formats ? outlook.infeasible_reasons.front() : "";
  }

  [[nodiscard]] std::string cannot_run() const override {
    return fmt::format("nothing of it was run: {} ({}) is a card of the planner's table and not this machine's",
                       card_.name, thresher::name(card_.arch));
  }

  /// Whether the card's memory holds it is not known.
  [[nodiscard]] Answer feasible(const Problem& problem, Memory&) const override {
    const PlannerResult outlook = this->outlook(problem);
    return outlook.infeasible_reasons.empty() || outlook.is_unknown
               ? Answer{true, fmt::format("{} has no obstacle on {}", arena::label(problem), card_.name)}
               : Answer{false, fmt::format("{}", fmt::join(outlook.infeasible_reasons, "; "))};
  }

  [[nodiscard]] Answer compile(const Problem& problem) const override {
    const MachineCode code = machine_code(problem);
    if (code.kernels.empty()) {
      Answer answer;
      answer.not_judged = code.not_judged;
      return answer;
    }
    return compiled(code, "");
  }

  /// Without a compiler only built-in code is available; the rest is not judged.
  [[nodiscard]] MachineCode machine_code(const Problem& problem) const override {
    try {
      return operation_.machine_code(problem, spec(), card_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) {
        throw;
      }
      return {{}, error.what()};
    }
  }

  [[nodiscard]] Emulation emulation(const Problem& problem) const override {
    const EmulatedOperation* const emulated = operation_.emulated();
    return emulated != nullptr
               ? emulated->planned(problem, operation_.plan_request(spec()), card_)
               : Emulation{nullptr, fmt::format("the emulator has no kernels of {}", operation_.name())};
  }

  [[nodiscard]] std::unique_ptr<Runner> prepare(const Problem&, Memory&, const std::vector<DeviceSet>&) const override {
    throw Error(ErrorCode::internal, cannot_run());
  }

 private:
  [[nodiscard]] PlannerResult outlook(const Problem& problem) const {
    return operation_.outlook(problem, spec(), card_, {});
  }

  const Operation& operation_;
  const DeviceSpec& card_;
};

class CardRegistry final : public Registry {
 public:
  explicit CardRegistry(const DeviceSpec& card) : card_(card) {}

  [[nodiscard]] std::vector<std::string> strategies(const std::string& operation) const override {
    return find_operation(operation).contestants(DeviceKind::cuda);
  }

  [[nodiscard]] std::unique_ptr<Contestant> create(const ContestantSpec& spec) const override {
    const std::vector<std::string> known = strategies(spec.operation);
    if (std::find(known.begin(), known.end(), spec.strategy) == known.end()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("contestant {}: there is no such strategy on {}, expected one of {}", label(spec),
                              card_.name, fmt::join(known, ", ")));
    }
    const Operation& operation = find_operation(spec.operation);
    (void)operation.outlook(operation.example(), spec, card_, {});  // knobs that there are
    return std::make_unique<CardContestant>(operation, spec, card_);
  }

 private:
  const DeviceSpec& card_;
};

}  // namespace

std::unique_ptr<Registry> card_registry(const DeviceSpec& card) { return std::make_unique<CardRegistry>(card); }

}  // namespace thresher::arena
