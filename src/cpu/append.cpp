#include "cpu/append.hpp"

#include <cmath>
#include <cstring>
#include <vector>

#include "cpu/parallel.hpp"
#include "formats/numbers.hpp"
#include "reference/append_view.hpp"
#include "reference/attention_view.hpp"

namespace thresher::cpu {
namespace {

/// Cosines and sines of a token's pairs, each rounded once to float32.
struct Rotation {
  std::vector<float> cosines;
  std::vector<float> sines;
};

class Appender {
 public:
  Appender(const AppendProblem& problem, const AppendTensors& tensors)
      : problem_(problem), tensors_(tensors), pairs_(reference::rotary_dim(problem) / 2) {
    for (std::int64_t pair = 0; pair < pairs_; ++pair) {
      frequencies_.push_back(
          std::pow(static_cast<double>(problem.theta), -static_cast<double>(pair) / static_cast<double>(pairs_)));
    }
  }

  void token(std::int64_t index) const {
    const Rotation turns = rotation(index);
    std::vector<float> row(static_cast<std::size_t>(problem_.head_dim));
    if (tensors_.q.data != nullptr) {
      for (std::int64_t head = 0; head < problem_.heads; ++head) {
        turn(tensors_.q, reference::token_offset(tensors_.q, index, head), turns, row);
        write(tensors_.q_out, reference::token_offset(tensors_.q_out, index, head), row, 1.0F);
      }
    }
    const std::int64_t slot = reference::number(tensors_.slots, index);
    for (std::int64_t head = 0; head < problem_.kv_heads; ++head) {
      turn(tensors_.k, reference::token_offset(tensors_.k, index, head), turns, row);
      if (tensors_.k_out.data != nullptr) {
        write(tensors_.k_out, reference::token_offset(tensors_.k_out, index, head), row, 1.0F);
      }
      if (slot >= 0) {
        write(tensors_.k_cache, reference::slot_offset(tensors_.k_cache, slot, head), row,
              reference::descale_of(tensors_.k_descale, head));
        copy_value(index, slot, head);
      }
    }
  }

 private:
  [[nodiscard]] Rotation rotation(std::int64_t index) const {
    Rotation turns;
    if (pairs_ == 0) {
      return turns;
    }
    const std::int64_t position = reference::number(tensors_.positions, index);
    if (problem_.max_position > 0) {
      const Tensor& table = tensors_.cos_sin;
      const auto* const row = static_cast<const float*>(table.data) + position * table.strides[0];
      turns.cosines.assign(row, row + pairs_);
      turns.sines.assign(row + pairs_, row + 2 * pairs_);
      return turns;
    }
    for (const double frequency : frequencies_) {
      const double angle = static_cast<double>(position) * frequency;
      turns.cosines.push_back(static_cast<float>(std::cos(angle)));
      turns.sines.push_back(static_cast<float>(std::sin(angle)));
    }
    return turns;
  }

  void turn(const Tensor& tensor, std::int64_t offset, const Rotation& turns, std::vector<float>& row) const {
    for (std::size_t column = 0; column < row.size(); ++column) {
      row[column] = reference::stored(tensor, offset + static_cast<std::int64_t>(column));
    }
    for (std::int64_t pair = 0; pair < pairs_; ++pair) {
      const reference::Pair columns = reference::pair_of(problem_, pair);
      const auto at = static_cast<std::size_t>(pair);
      float& x = row[static_cast<std::size_t>(columns.x)];
      float& y = row[static_cast<std::size_t>(columns.y)];
      const float before = x;
      x = before * turns.cosines[at] - y * turns.sines[at];
      y = before * turns.sines[at] + y * turns.cosines[at];
    }
  }

  /// Divided by `descale` if the tensor is FP8.
  static void write(const Tensor& to, std::int64_t offset, const std::vector<float>& row, float descale) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      const std::size_t at = static_cast<std::size_t>(offset) + column;
      if (to.format == Format::fp8_e4m3) {
        static_cast<std::uint8_t*>(to.data)[at] = formats::float_to_e4m3(row[column] / descale);
      } else {
        static_cast<std::uint16_t*>(to.data)[at] =
            to.format == Format::fp16 ? formats::float_to_fp16(row[column]) : formats::float_to_bf16(row[column]);
      }
    }
  }

  void copy_value(std::int64_t index, std::int64_t slot, std::int64_t head) const {
    const std::int64_t from = reference::token_offset(tensors_.v, index, head);
    const std::int64_t to = reference::slot_offset(tensors_.v_cache, slot, head);
    const std::int64_t columns = reference::value_dim(problem_);
    if (tensors_.v_cache.format != Format::fp8_e4m3) {
      std::memcpy(static_cast<std::uint16_t*>(tensors_.v_cache.data) + to,
                  static_cast<const std::uint16_t*>(tensors_.v.data) + from, static_cast<std::size_t>(columns) * 2);
      return;
    }
    std::vector<float> row;
    for (std::int64_t column = 0; column < columns; ++column) {
      row.push_back(reference::stored(tensors_.v, from + column));
    }
    write(tensors_.v_cache, to, row, reference::descale_of(tensors_.v_descale, head));
  }

  const AppendProblem& problem_;
  const AppendTensors& tensors_;
  std::int64_t pairs_;
  std::vector<double> frequencies_;
};

}  // namespace

void append(const AppendProblem& problem, const AppendTensors& tensors, int threads) {
  const Appender appender(problem, tensors);
  parallel_for(resolve_threads(threads), tensors.k.shape[0], [&](std::int64_t token, int) { appender.token(token); });
}

}  // namespace thresher::cpu
