#include "planner/dual_gemm_config.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

#include "thresher/error.hpp"

namespace thresher::planner {
namespace {

constexpr std::array strategies{Strategy::two_pass, Strategy::sequential, Strategy::interleaved, Strategy::pingpong};

struct IntKnob {
  std::string_view name;
  int DualGemmConfig::*member;
};

constexpr std::array int_knobs{
    IntKnob{"stages", &DualGemmConfig::stages},
    IntKnob{"math_warpgroups", &DualGemmConfig::math_warpgroups},
    IntKnob{"cluster", &DualGemmConfig::cluster},
    IntKnob{"split_k", &DualGemmConfig::split_k},
    IntKnob{"blocks", &DualGemmConfig::blocks_per_multiprocessor},
    IntKnob{"loader_registers", &DualGemmConfig::loader_registers},
    IntKnob{"math_registers", &DualGemmConfig::math_registers},
};

[[noreturn]] void refuse(std::string_view word) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("configuration word \"{}\" is not known: use two_pass, sequential, interleaved or pingpong, "
                          "exact or fast, ROWSxTOKENSxK, stages=, math_warpgroups=, cluster=, split_k=, blocks=, "
                          "loader_registers=, math_registers=, tma, tokens_as_rows, same_tokens, persistent or "
                          "dependent_launch",
                          word));
}

int positive(std::string_view digits, std::string_view word) {
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value < 1 || value > 1 << 16) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("configuration word \"{}\" needs whole numbers from 1 to 65536", word));
  }
  return value;
}

Tile parse_tile(std::string_view word) {
  const std::size_t first = word.find('x');
  const std::size_t second = first == std::string_view::npos ? first : word.find('x', first + 1);
  if (second == std::string_view::npos) {
    refuse(word);
  }
  return {positive(word.substr(0, first), word), positive(word.substr(first + 1, second - first - 1), word),
          positive(word.substr(second + 1), word)};
}

bool apply_name(DualGemmConfig& config, std::string_view word) {
  for (const Strategy strategy : strategies) {
    if (word == name(strategy)) {
      config.strategy = strategy;
      return true;
    }
  }
  for (const Numerics numerics : {Numerics::exact, Numerics::fast}) {
    if (word == thresher::name(numerics)) {
      config.numerics = numerics;
      return true;
    }
  }
  return false;
}

bool apply_switch(DualGemmConfig& config, std::string_view word) {
  if (word == "tma") {
    config.epilogue = Epilogue::tma;
  } else if (word == "tokens_as_rows") {
    config.mma_rows = MmaRows::tokens;
  } else if (word == "same_tokens") {
    config.raster = Raster::same_tokens;
  } else if (word == "persistent") {
    config.persistent = true;
  } else if (word == "dependent_launch") {
    config.dependent_launch = true;
  } else {
    return false;
  }
  return true;
}

void apply(DualGemmConfig& config, std::string_view word) {
  if (const std::size_t equals = word.find('='); equals != std::string_view::npos) {
    for (const IntKnob& knob : int_knobs) {
      if (word.substr(0, equals) == knob.name) {
        config.*knob.member = positive(word.substr(equals + 1), word);
        return;
      }
    }
    refuse(word);
  }
  if (!apply_name(config, word) && !apply_switch(config, word)) {
    config.tile = parse_tile(word);
  }
}

}  // namespace

std::string_view name(Strategy strategy) noexcept {
  switch (strategy) {
    case Strategy::two_pass: return "two_pass";
    case Strategy::sequential: return "sequential";
    case Strategy::interleaved: return "interleaved";
    case Strategy::pingpong: return "pingpong";
  }
  return "?";
}

std::string_view name(Epilogue epilogue) noexcept { return epilogue == Epilogue::simt ? "simt" : "tma"; }

bool converts_weights(const DualGemmProblem& problem, const DeviceSpec& device) noexcept {
  return problem.b == Format::nvfp4 && !(device.ops_per_clock_nvfp4 > 0 && problem.a == Format::nvfp4);
}

bool converts_tokens(const DualGemmProblem& problem, const DeviceSpec& device) noexcept {
  return problem.a == Format::nvfp4 && !(device.ops_per_clock_nvfp4 > 0 && problem.b == Format::nvfp4);
}

MatrixType matrix_type(const DualGemmProblem& problem, const DualGemmConfig& config,
                       const DeviceSpec& device) noexcept {
  if (problem.a == Format::nvfp4 && problem.b == Format::nvfp4 && device.ops_per_clock_nvfp4 > 0) {
    return MatrixType::nvfp4;
  }
  return config.numerics == Numerics::fast ? MatrixType::fp8 : MatrixType::bits16;
}

double stored_bits(Format format) noexcept { return format_traits(format).stored_bits(); }

double stored_bits(MatrixType type) noexcept {
  return type == MatrixType::bits16 ? 16 : type == MatrixType::fp8 ? 8 : 4.5;
}

std::string text(const DualGemmConfig& config) {
  if (config.strategy == Strategy::two_pass) {
    return "two_pass";
  }
  std::string out = fmt::format("{} {} {}x{}x{}", name(config.strategy), thresher::name(config.numerics),
                                config.tile.weight_rows, config.tile.tokens, config.tile.k);
  const DualGemmConfig defaults;
  for (const IntKnob& knob : int_knobs) {
    if (config.*knob.member != defaults.*knob.member || knob.name == "stages") {
      out += fmt::format(" {}={}", knob.name, config.*knob.member);
    }
  }
  const std::array<std::pair<bool, std::string_view>, 5> switches{
      {{config.epilogue == Epilogue::tma, " tma"},
       {config.mma_rows == MmaRows::tokens, " tokens_as_rows"},
       {config.raster == Raster::same_tokens, " same_tokens"},
       {config.persistent, " persistent"},
       {config.dependent_launch, " dependent_launch"}}};
  for (const auto& [on, word] : switches) {
    if (on) {
      out += word;
    }
  }
  return out;
}

DualGemmConfig parse_config(std::string_view text) {
  DualGemmConfig config;
  while (!text.empty()) {
    const std::size_t end = text.find(' ');
    const std::string_view word = text.substr(0, end);
    if (!word.empty()) {
      apply(config, word);
    }
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return config;
}

}  // namespace thresher::planner
