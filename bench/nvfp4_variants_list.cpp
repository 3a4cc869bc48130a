#include "nvfp4_variants_list.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "planner/predict.hpp"
#include "strategies/dual_gemm/packed/candidates.hpp"
#include "strategies/dual_gemm/packed/launch.hpp"
#include "strategies/dual_gemm/packed/program.hpp"

namespace thresher::bench {
namespace {

using device_code::Config;
using device_code::Numerics;
using device_code::Overlap;
using pipeline::Ablation;

struct Registers {
  int loader = 0;
  int math = 0;
};

Config config(Numerics numerics, int warpgroups, int tokens, int per_slot, int stages, int split = 1,
              Registers registers = {}, Overlap overlap = Overlap::step, int resident = 1) {
  return {.numerics = numerics,
          .math_warpgroups = warpgroups,
          .block_tokens = tokens,
          .blocks_per_slot = per_slot,
          .stages = stages,
          .split_k = split,
          .blocks_resident = resident,
          .overlap = overlap,
          .loader_registers = registers.loader,
          .math_registers = registers.math};
}

int smallest_tile(std::int64_t m) { return m <= 8 ? 8 : m <= 16 ? 16 : m <= 32 ? 32 : 64; }

/// The best by prediction first.
std::vector<Config> ranked(Numerics numerics, const device_code::Extents& e, std::size_t count) {
  std::vector<Config> all = device_code::candidates(numerics, e.m);
  const DualGemmProblem problem{.m = e.m, .n = e.n, .k = e.k, .a = Format::nvfp4, .b = Format::nvfp4};
  const auto predicted_us = [&](const Config& one) {
    return planner::predict(device_code::planned_call(problem, one).work, device_spec("H200")).us();
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Config& x, const Config& y) { return predicted_us(x) < predicted_us(y); });
  all.resize(std::min(count, all.size()));
  return all;
}

std::vector<Config> exact_configs(const device_code::Extents& e) {
  std::vector<Config> all = ranked(Numerics::exact, e, 3);
  if (e.m <= 64) {
    const int t = smallest_tile(e.m);
    if (t <= 16) {
      // Many small blocks: no multiprocessor has much more to do than another.
      all.push_back(config(Numerics::exact, 1, 16, 2, 3, 2, {}, Overlap::none, 7));
      all.push_back(config(Numerics::exact, 1, 16, 1, 6, 2, {}, Overlap::none, 7));
    }
    all.push_back(config(Numerics::exact, 1, t, 4, t <= 16 ? 4 : 2, 1, {}, Overlap::none, 4));
    all.push_back(config(Numerics::exact, 2, t, 2, t <= 16 ? 8 : t == 32 ? 5 : 4, 1, {}, Overlap::none, 2));
    if (t == 64) {
      all.push_back(config(Numerics::exact, 4, t, 2, 6, 1, {}, Overlap::step, 1));
    }
    return all;
  }
  for (const int split : {1, 2}) {
    all.push_back(config(Numerics::exact, 2, 128, 2, 5, split));  // registers left for the kernel that prepares tokens
    all.push_back(config(Numerics::exact, 3, 128, 2, 4, split));
  }
  all.push_back(config(Numerics::exact, 2, 128, 2, 5, 1, {}, Overlap::block));
  all.push_back(config(Numerics::exact, 2, 128, 4, 2, 1));
  for (const int split : {1, 2}) {
    all.push_back(config(Numerics::exact, 4, 128, 2, 4, split, {24, 112}, Overlap::none));
  }
  return all;
}

std::vector<Config> fast_configs(const device_code::Extents& e) {
  std::vector<Config> all = ranked(Numerics::fast, e, 2);
  if (e.m <= 64) {
    const int t = smallest_tile(e.m);
    const int stages = t == 8 ? 10 : t == 64 ? 6 : 8;
    all.push_back(config(Numerics::fast, 2, t, 1, stages, 1, {}, Overlap::none, 2));
    all.push_back(config(Numerics::fast, 2, t, 1, stages, 1, {}, Overlap::step, 2));
    all.push_back(config(Numerics::fast, 4, t, 1, 8, 1, {}, Overlap::step, 1));
    if (t <= 16) {
      all.push_back(config(Numerics::fast, 1, 16, 1, 4, 2, {}, Overlap::none, 7));
    }
    all.push_back(config(Numerics::fast, 1, t, 2, t == 64 ? 2 : 4, 1, {}, Overlap::none, 4));
    all.push_back(config(Numerics::fast, 1, t, 1, t == 64 ? 4 : t == 16 ? 8 : 9, 1, {}, Overlap::none, 4));
    if (t < 64) {
      all.push_back(config(Numerics::fast, 3, t, 1, 6, 1, {}, Overlap::none, 2));
    }
    all.push_back(config(Numerics::fast, 2, t, 2, t == 64 ? 3 : 4, 1, {}, Overlap::block, 2));
    all.push_back(config(Numerics::fast, 2, t, 1, stages, 1, {}, Overlap::block, 2));
    return all;
  }
  for (const int split : {1, 2}) {
    all.push_back(config(Numerics::fast, 2, 128, 1, 8, split));
    all.push_back(config(Numerics::fast, 2, 128, 2, 4, split));
    all.push_back(config(Numerics::fast, 3, 128, 1, 7, split));
    if (e.m > 128) {
      all.push_back(config(Numerics::fast, 2, 256, 1, 5, split, {24, 240}));
    }
  }
  all.push_back(config(Numerics::fast, 2, 128, 1, 8, 1, {}, Overlap::block));
  all.push_back(config(Numerics::fast, 2, 128, 2, 4, 1, {}, Overlap::block));
  all.push_back(config(Numerics::fast, 2, 256, 1, 5, e.m > 256 ? 1 : 2, {24, 240}, Overlap::block));
  all.push_back(config(Numerics::fast, 3, 128, 1, 7, e.m > 256 ? 1 : 2, {24, 160}, Overlap::step));
  all.push_back(config(Numerics::fast, 3, 128, 1, 7, e.m > 256 ? 1 : 2, {}, Overlap::block));
  all.push_back(config(Numerics::fast, 3, 128, 2, 3, e.m > 256 ? 1 : 2));
  all.push_back(config(Numerics::fast, 3, 128, 1, 7, e.m > 256 ? 1 : 2, {}, Overlap::none));
  for (const int split : {1, 2}) {
    all.push_back(config(Numerics::fast, 4, 128, 1, 6, split, {24, 112}, Overlap::none));
  }
  all.push_back(config(Numerics::fast, 2, 128, 2, 4, 1, {40, 216}));
  all.push_back(config(Numerics::fast, 3, 128, 1, 7, 1, {24, 160}));
  return all;
}

bool fits(const Config& c) {
  constexpr int shared_of_multiprocessor = 228 * 1024;
  constexpr int reserved_per_block = 1024;
  return (device_code::shared_bytes(c) + reserved_per_block) * c.blocks_resident <= shared_of_multiprocessor;
}

const char* name_of(Tokens tokens) {
  return tokens == Tokens::prepared ? "prepared" : tokens == Tokens::fp16 ? "fp16" : "nvfp4";
}

const char* name_of(Overlap overlap) {
  return overlap == Overlap::none ? "none" : overlap == Overlap::step ? "step" : "block";
}

const char* name_of(Ablation ablation) {
  return ablation == Ablation::loads_only      ? " (loads only)"
         : ablation == Ablation::products_only ? " (products only)"
         : ablation == Ablation::no_epilogue   ? " (no epilogue)"
         : ablation == Ablation::first_operand ? " (first operand)"
                                               : "";
}

}  // namespace

std::vector<Variant> variants(const device_code::Extents& e) {
  std::vector<Variant> all;
  const auto add = [&](const Config& c, std::initializer_list<Tokens> kinds) {
    for (const Tokens tokens : kinds) {
      const bool known =
          std::any_of(all.begin(), all.end(), [&](const Variant& v) { return v.config == c && v.tokens == tokens; });
      if (fits(c) && !known) {
        all.push_back({c, tokens});
      }
    }
  };
  const std::vector<Config> exact = exact_configs(e);
  const std::vector<Config> fast = fast_configs(e);
  add(fast.front(), {Tokens::prepared, Tokens::fp16, Tokens::nvfp4});
  for (const Ablation ablation : {Ablation::loads_only, Ablation::products_only, Ablation::no_epilogue}) {
    Config part = fast.front();
    part.ablation = ablation;
    add(part, {Tokens::prepared});
  }
  if (e.m > 64) {
    const int split = e.m == 256 ? 2 : 1;
    for (Config part :
         {fast.front(), config(Numerics::fast, 2, 128, 2, 4),
          config(Numerics::fast, 2, 128, 2, 4, 1, {}, Overlap::block), config(Numerics::fast, 3, 128, 1, 7, split)}) {
      for (const Ablation ablation : {Ablation::products_only, Ablation::first_operand}) {
        part.ablation = ablation;
        add(part, {Tokens::prepared});
      }
    }
  }
  for (const Config& c : fast) {
    add(c, {Tokens::prepared, Tokens::nvfp4});
  }
  for (const Config& c : exact) {
    add(c, {Tokens::prepared, Tokens::nvfp4});
  }
  return all;
}

std::string words(const Variant& v) {
  const Config& c = v.config;
  return fmt::format("{:<5} {:<8} {}x{}x{} st{} split{} {}{}{}{}", c.numerics == Numerics::fast ? "fast" : "exact",
                     name_of(v.tokens), 64 * c.math_warpgroups, c.block_tokens,
                     c.blocks_per_slot * static_cast<int>(device_code::weight_block_k(c)), c.stages, c.split_k,
                     name_of(c.overlap),
                     c.math_registers > 0 ? fmt::format(" regs{}/{}", c.math_registers, c.loader_registers) : "",
                     c.blocks_resident > 1 ? fmt::format(" x{}", c.blocks_resident) : "", name_of(c.ablation));
}

}  // namespace thresher::bench
