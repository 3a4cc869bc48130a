#pragma once
/// Feed-forward layers of checkpoints as tests of `thresher run gated-mlp` make them, and what is expected of a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/refusal.hpp"
#include "formats/numbers.hpp"
#include "formats/safetensors.hpp"
#include "support/silu.hpp"

namespace thresher::testing {

namespace fs = std::filesystem;
using formats::Dtype;

inline constexpr std::int64_t hidden_size = 32;
inline constexpr std::int64_t intermediate_size = 16;
inline constexpr std::int64_t tokens = 3;

/// Quarters from −1 to 1, which every format holds.
inline float quarter(std::int64_t i) { return static_cast<float>(i * 7 % 9 - 4) / 4; }

/// A matrix of such numbers.
struct LayerMatrix {
  std::int64_t rows;
  std::int64_t columns;
  std::vector<float> values;

  LayerMatrix(std::int64_t rows_of, std::int64_t columns_of, std::int64_t first) : rows(rows_of), columns(columns_of) {
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      values.push_back(quarter(first + i));
    }
  }
  [[nodiscard]] std::vector<double> times(const std::vector<double>& x) const {
    std::vector<double> products(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < values.size(); ++i) {
      products[i / static_cast<std::size_t>(columns)] +=
          static_cast<double>(values[i]) * x[i % static_cast<std::size_t>(columns)];
    }
    return products;
  }
};

struct LayerExpert {
  LayerMatrix gate;
  LayerMatrix up;
  LayerMatrix down;

  explicit LayerExpert(std::int64_t first)
      : gate(intermediate_size, hidden_size, first),
        up(intermediate_size, hidden_size, 3 * first + 1),
        down(hidden_size, intermediate_size, 5 * first + 2) {}
  [[nodiscard]] std::vector<double> operator()(const std::vector<double>& x) const {
    return (*this)(x, [](double of_gate, double of_up) { return silu(of_gate) * of_up; });
  }
  [[nodiscard]] std::vector<double> operator()(const std::vector<double>& x,
                                               const std::function<double(double, double)>& gated) const {
    std::vector<double> hidden = gate.times(x);
    const std::vector<double> of_up = up.times(x);
    for (std::size_t i = 0; i < hidden.size(); ++i) {
      hidden[i] = gated(hidden[i], of_up[i]);
    }
    return down.times(hidden);
  }
};

inline void write_file(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

/// A file in the making.
class LayerFile {
 public:
  template <class T>
  void add(const std::string& name, Dtype dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    add_bytes(name, dtype, std::move(shape), std::move(bytes));
  }
  void add_bytes(const std::string& name, Dtype dtype, std::vector<std::int64_t> shape, std::vector<std::byte> bytes) {
    tensors_[name] = {dtype, std::move(shape), std::move(bytes)};
  }
  /// The three matrices of `place`, with their names.
  void add_layer(const std::string& place, const LayerExpert& layer,
                 const std::array<const char*, 3>& names = {"gate_proj", "up_proj", "down_proj"}) {
    add_bf16(place + names[0], layer.gate);
    add_bf16(place + names[1], layer.up);
    add_bf16(place + names[2], layer.down);
  }
  void add_bf16(const std::string& name, const LayerMatrix& matrix) {
    std::vector<std::uint16_t> values;
    for (const float value : matrix.values) {
      values.push_back(formats::float_to_bf16(value));
    }
    add(name + ".weight", Dtype::bf16, {matrix.rows, matrix.columns}, values);
  }
  void remove(const std::string& name) { tensors_.erase(name); }
  void save(const fs::path& path) const {
    std::vector<formats::TensorToWrite> all;
    for (const auto& [name, one] : tensors_) {
      all.push_back({name, one.dtype, one.shape, one.bytes});
    }
    formats::write_safetensors(path, all);
  }

 private:
  struct One {
    Dtype dtype;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;
  };
  std::map<std::string, One> tensors_;
};

class RunGatedMlp : public ::testing::Test {
 protected:
  static std::vector<double> token(std::int64_t row) {
    std::vector<double> x;
    for (std::int64_t i = 0; i < hidden_size; ++i) {
      x.push_back(static_cast<double>(quarter(11 * row + 2 * i)));
    }
    return x;
  }
  /// x, and the choices of each token: of expert 2 and 0; of 1, and of no expert; of none.
  void save_tokens() {
    std::vector<std::uint16_t> x;
    for (std::int64_t row = 0; row < tokens; ++row) {
      for (const double value : token(row)) {
        x.push_back(formats::float_to_bf16(static_cast<float>(value)));
      }
    }
    LayerFile file;
    file.add("x", Dtype::bf16, {tokens, hidden_size}, x);
    file.add("topk_ids", Dtype::i32, {tokens, 2}, std::vector<std::int32_t>{2, 0, 1, -1, 3, 99});
    file.add("topk_weights", Dtype::f32, {tokens, 2}, std::vector<float>{0.75F, 0.25F, 1.5F, 9.0F, 1.0F, 1.0F});
    file.save(folder_ / "x.safetensors");
  }
  [[nodiscard]] Outcome run(const std::string& arguments) const {
    return run_thresher(folder_.path(),
                        "run gated-mlp --in x.safetensors --out out.safetensors --device cpu " + arguments);
  }
  [[nodiscard]] std::vector<float> result() const {
    const formats::SafetensorsFile file(folder_ / "out.safetensors");
    const std::vector<std::byte> bytes = file.read(*file.find("out"));
    std::vector<float> out(bytes.size() / sizeof(float));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    EXPECT_EQ(file.find("out")->shape, (std::vector<std::int64_t>{tokens, hidden_size}));
    return out;
  }
  /// The intermediate is rounded to bf16.
  static void expect_near(const std::vector<double>& wanted, const float* values) {
    double magnitude = 1;
    for (const double value : wanted) {
      magnitude = std::max(magnitude, std::fabs(value));
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(values[i]), wanted[i], 0.01 * magnitude) << i;
    }
  }
  /// Runs it and holds every row against `layer`.
  void expect_layer(const std::string& arguments, const std::string& found,
                    const std::function<std::vector<double>(const std::vector<double>&, std::int64_t)>& layer) {
    save_tokens();
    const Outcome outcome = run("--out-type fp32 " + arguments);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find(found), std::string::npos) << outcome.out;
    const std::vector<float> out = result();
    for (std::int64_t row = 0; row < tokens; ++row) {
      expect_near(layer(token(row), row), out.data() + row * hidden_size);
    }
  }
  void expect_refusal(const std::string& arguments, const std::string& part) const {
    SCOPED_TRACE(arguments);
    thresher::testing::expect_refused(run(arguments), folder_.path(), part);
  }

  ScratchFolder folder_;
};

/// Row by row what save_tokens chose among three experts.
inline std::vector<double> total_experts(
    const std::vector<LayerExpert>& experts, const std::vector<double>& x, std::int64_t row,
    const std::function<double(double, double)>& gated = [](double of_gate, double of_up) {
      return silu(of_gate) * of_up;
    }) {
  std::vector<double> sum(static_cast<std::size_t>(hidden_size));
  const auto add = [&](double weight, std::size_t expert) {
    const std::vector<double> out = experts[expert](x, gated);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += weight * out[i];
    }
  };
  if (row == 0) {
    add(0.75, 2);
    add(0.25, 0);
  } else if (row == 1) {
    add(1.5, 1);
  }
  return sum;
}

}  // namespace thresher::testing
