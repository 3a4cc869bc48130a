#pragma once
/// What a tournament and the process that judges a kernel from outside say to each other: one JSON object a line.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "arena/results/gate.hpp"
#include "arena/results/record.hpp"

namespace thresher::arena::user_kernels {

[[nodiscard]] nlohmann::json to_wire(const GateResult& gate);
[[nodiscard]] GateResult gate_from_wire(const nlohmann::json& json);
[[nodiscard]] nlohmann::json to_wire(const Measurement& measurement);
[[nodiscard]] Measurement measurement_from_wire(const nlohmann::json& json);

/// One line, ended; what is no UTF-8 is replaced.
[[nodiscard]] std::string line_of(const nlohmann::json& json);

/// The worker's end of the line.
inline constexpr int worker_descriptor = 3;

}  // namespace thresher::arena::user_kernels
