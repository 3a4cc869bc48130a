#pragma once
/// The rows of a knob table that every configuration of a product's kernel has: what its problem determines.
#include <string>
#include <string_view>

#include "pipeline/shape.hpp"
#include "strategies/gemm/device/plain_params.hpp"
#include "strategies/gemm/device/words.hpp"
#include "strategies/knob_table.hpp"

namespace thresher::strategies::gemm {

/// With more than two parts of K the block that keeps a column adds its own first, and which one that is depends on the
/// row's place in its tile (pipeline/merge.hpp).
inline constexpr int max_steady_split = 2;

/// The numerics that candidates are asked for; exact where they are left out.
inline Numerics asked_numerics(const Knobs& knobs) {
  const std::string* const numerics = knobs.find("numerics");
  return numerics != nullptr && *numerics == "fast" ? Numerics::fast : Numerics::exact;
}

/// How titles of programs go on behind a strategy's name; 16 bits are not mentioned.
constexpr std::string_view number_words(Number operand, Numerics numerics) {
  return promotes(operand, numerics) ? " FP8 accumulated in float32" : operand == Number::e4m3 ? " FP8" : "";
}

template <class Config>
Knob<Config> number_knob(std::string_view name, Number Config::* member) {
  return from_problem(choice<Config, Number>(
      name, member, "thresher::strategies::gemm::Number",
      {{"fp16", Number::fp16}, {"bf16", Number::bf16}, {"fp32", Number::fp32}, {"e4m3", Number::e4m3}}, ""));
}

template <class Config>
Knob<Config> scaling_knob(std::string_view name, Scaling Config::* member) {
  return from_problem(choice<Config, Scaling>(
      name, member, "thresher::strategies::gemm::Scaling",
      {{"none", Scaling::none}, {"tensor", Scaling::tensor}, {"row", Scaling::row}, {"block", Scaling::block}}, ""));
}

template <class Config>
Knob<Config> numerics_knob(std::string_view name, Numerics Config::* member, std::string_view help) {
  return choice<Config, Numerics>(name, member, "thresher::strategies::gemm::Numerics",
                                  {{"exact", Numerics::exact}, {"fast", Numerics::fast}}, help);
}

template <class Config>
Knob<Config> activation_knob(std::string_view name, ActivationCode Config::* member) {
  return from_problem(choice<Config, ActivationCode>(name, member, "thresher::strategies::gemm::ActivationCode",
                                                     {{"silu", ActivationCode::silu},
                                                      {"gelu_tanh", ActivationCode::gelu_tanh},
                                                      {"swiglu_clamped", ActivationCode::swiglu_clamped},
                                                      {"situ", ActivationCode::situ},
                                                      {"relu2", ActivationCode::relu2}},
                                                     ""));
}

/// This knob is not a choice either: `thresher profile` sets it.
template <class Config>
Knob<Config> ablation_knob(std::string_view name, pipeline::Ablation Config::* member) {
  using pipeline::Ablation;
  return from_problem(choice<Config, Ablation>(name, member, "thresher::pipeline::Ablation",
                                               {{"none", Ablation::none},
                                                {"no_epilogue", Ablation::no_epilogue},
                                                {"epilogue_twice", Ablation::epilogue_twice},
                                                {"loads_only", Ablation::loads_only},
                                                {"products_only", Ablation::products_only},
                                                {"first_operand", Ablation::first_operand}},
                                               ""));
}

/// The registers of a role after register reallocation (setmaxnreg); 0 leaves what the launch gives.
template <class Config>
Knob<Config> registers_knob(std::string_view name, int Config::* member, std::string_view help) {
  Knob<Config> knob = range(name, member, 24, 240, 8, help);
  knob.allowed.insert(knob.allowed.begin(), "0");
  return knob;
}

}  // namespace thresher::strategies::gemm
