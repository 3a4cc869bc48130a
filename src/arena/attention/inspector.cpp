#include "arena/attention/inspector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "arena/attention/inputs.hpp"
#include "formats/elements.hpp"
#include "reference/attention_rows.hpp"
#include "reference/attention_view.hpp"
#include "reference/output_format.hpp"
#include "reference/parallel.hpp"

namespace thresher::arena {
namespace {

using reference::AttentionRows;
using reference::AttentionSample;

constexpr std::int64_t queries_of_a_look = 4;
constexpr std::int64_t gauged_queries = 8;
/// The largest error of a few rows is a little less than that of all.
constexpr double beyond_the_gauge = 2;
constexpr std::int64_t rows_at_once = 256;

/// The largest errors of the plain computation.
struct Errors {
  double o = 0;
  double lse = 0;

  void raise(const AttentionRows& definition, const AttentionRows& plain) {
    raise(o, definition.o, plain.o);
    raise(lse, definition.lse, plain.lse);
  }

 private:
  static void raise(double& largest, const std::vector<double>& definition, const std::vector<double>& plain) {
    for (std::size_t i = 0; i < definition.size(); ++i) {
      if (std::isfinite(definition[i]) && std::isfinite(plain[i])) {
        largest = std::max(largest, std::fabs(plain[i] - definition[i]));
      }
    }
  }
};

double allowed_lse(double error, double value) { return 2 * error + std::ldexp(std::max(1.0, std::fabs(value)), -20); }

/// Equal where either is no finite number.
bool is_within(double value, double wanted, double allowed) {
  if (!std::isfinite(value) || !std::isfinite(wanted)) {
    return (std::isnan(value) && std::isnan(wanted)) || value == wanted;
  }
  return std::fabs(value - wanted) <= allowed;
}

class AttentionInspector final : public Inspector {
 public:
  AttentionInspector(const AttentionTask& task, const std::vector<HostTensor>& inputs, std::uint64_t seed)
      : task_(task), shapes_(attention_outputs(task)) {
    for (HostTensor& shape : shapes_) {
      shape.values = {};
    }
    const AttentionTensors tensors = tensors_of(pointers_to(inputs));
    Random random(seed);
    for (int head = 0; head < 2; ++head) {
      raise_to(errors_, tensors, samples_of(some_rows(random, gauged_queries), tensors));
    }
  }

  [[nodiscard]] Look choose(Random& random) const override {
    Look look;
    const AttentionTensors layout = tensors_of({});
    const AttentionProblem& p = task_.problem;
    for (const Row& row : some_rows(random, queries_of_a_look)) {
      look.place.insert(look.place.end(), {row.head, row.row});
      const std::int64_t batch = p.variable_length ? 0 : row.row / p.queries;
      const std::int64_t query = p.variable_length ? row.row : row.row % p.queries;
      const reference::HeadView view = reference::head_view(layout.o, batch, row.head, 0);
      const std::int64_t width = effective_value_dim(p);
      look.parts.push_back({0, (view.offset + query * view.row_stride) / width, 0, width});
      if (task_.lse) {
        const std::int64_t offset = reference::lse_offset(layout.lse, batch, row.head, 0) + query;
        const std::int64_t columns = shapes_.at(1).shape.back();
        look.parts.push_back({1, offset / columns, offset % columns, 1});
      }
    }
    return look;
  }

  [[nodiscard]] std::string fault_in(const Look& look, const InputsOfCall& inputs, std::uint8_t poison) const override {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < look.place.size(); i += 2) {
      rows.push_back({look.place[i], look.place[i + 1]});
    }
    const AttentionTensors tensors = tensors_of(inputs);
    const std::vector<AttentionSample> samples = samples_of(rows, tensors);
    const AttentionRows definition = reference::attention_rows(task_.problem, tensors, samples, 1);
    const AttentionRows plain = reference::attention_rows_plain_low_precision(task_.problem, tensors, samples, 1);
    Errors errors = errors_;
    errors.raise(definition, plain);
    const std::size_t parts_of_a_row = task_.lse ? 2 : 1;
    const auto width = static_cast<std::size_t>(effective_value_dim(task_.problem));
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const RowPart& part = look.parts[i * parts_of_a_row];
      std::vector<std::uint8_t> bytes = part.bytes;
      const Tensor there = Tensor::contiguous(bytes.data(), task_.problem.format, {1, part.columns});
      for (std::size_t column = 0; column < width; ++column) {
        const double value = formats::element(there, 0, static_cast<std::int64_t>(column));
        const double wanted = definition.o[i * width + column];
        const double allowed = 2 * errors.o + reference::ulp(task_.problem.format, wanted);
        if (!is_within(value, wanted, allowed)) {
          return sentence("o", samples[i], static_cast<std::int64_t>(column), value, wanted, allowed,
                          is_poison(&bytes[2 * column], 2, poison));
        }
      }
      if (task_.lse) {
        float value = 0;
        std::memcpy(&value, look.parts[i * parts_of_a_row + 1].bytes.data(), sizeof(value));
        const double wanted = definition.lse[i];
        const double allowed = allowed_lse(errors.lse, wanted);
        if (!is_within(static_cast<double>(value), wanted, allowed)) {
          return sentence("lse", samples[i], 0, static_cast<double>(value), wanted, allowed, false);
        }
      }
    }
    return {};
  }

  [[nodiscard]] std::string fault_against(const std::vector<HostTensor>& outputs,
                                          const std::vector<HostTensor>& trusted) const override {
    std::mutex guard;
    std::string first;
    for (std::size_t which = 0; which < outputs.size(); ++which) {
      const HostTensor& output = outputs[which];
      const std::int64_t columns = output.shape.back();
      const std::int64_t rows = columns == 0 ? 0 : output.elements() / columns;
      const Tensor here = Tensor::contiguous(outputs[which].view().data, output.format, {rows, columns});
      const Tensor there = Tensor::contiguous(trusted.at(which).view().data, output.format, {rows, columns});
      reference::parallel_for((rows + rows_at_once - 1) / rows_at_once, 0, [&](std::int64_t part) {
        std::string found =
            fault_of_rows(output, here, there, part * rows_at_once, std::min((part + 1) * rows_at_once, rows));
        if (!found.empty()) {
          const std::lock_guard lock(guard);
          first = first.empty() ? std::move(found) : first;
        }
      });
    }
    return first;
  }

 private:
  [[nodiscard]] std::string fault_of_rows(const HostTensor& output, const Tensor& here, const Tensor& there,
                                          std::int64_t row, std::int64_t last_row) const {
    const bool is_lse = output.format == Format::fp32;
    for (; row < last_row; ++row) {
      for (std::int64_t column = 0; column < here.shape[1]; ++column) {
        const double value = formats::element(here, row, column);
        const double wanted = formats::element(there, row, column);
        const double allowed = 2 * (is_lse ? allowed_lse(beyond_the_gauge * errors_.lse, wanted)
                                           : 2 * beyond_the_gauge * errors_.o + reference::ulp(output.format, wanted));
        if (!is_within(value, wanted, allowed)) {
          return fmt::format(
              "{}[{}, {}] is {}, a trusted computation of the same inputs gives {} and may lie {:.3g} off", output.name,
              row, column, value, wanted, allowed);
        }
      }
    }
    return {};
  }

  static std::string sentence(const char* what, const AttentionSample& at, std::int64_t column, double value,
                              double wanted, double allowed, bool is_unwritten) {
    const std::string place =
        fmt::format("{} of sequence {}, head {}, query {}, column {}", what, at.batch, at.head, at.query, column);
    return is_unwritten ? fmt::format("{} was not written, the definition gives {}", place, wanted)
                        : fmt::format("{} is {}, the definition gives {} ± {:.3g}", place, value, wanted, allowed);
  }

  void raise_to(Errors& errors, const AttentionTensors& tensors, const std::vector<AttentionSample>& samples) const {
    errors.raise(reference::attention_rows(task_.problem, tensors, samples),
                 reference::attention_rows_plain_low_precision(task_.problem, tensors, samples));
  }

  /// A query among those of all sequences, one behind the other.
  struct Row {
    std::int64_t head;
    std::int64_t row;
  };

  /// Rows of one head. They are of one sequence where all have as many queries, else in ascending order.
  [[nodiscard]] std::vector<Row> some_rows(Random& random, std::int64_t most) const {
    const AttentionProblem& p = task_.problem;
    if (p.queries == 0 || p.batch == 0) {
      return {};
    }
    const std::int64_t first = p.variable_length ? 0 : random.index(p.batch) * p.queries;
    const std::int64_t head = random.index(p.heads);
    std::vector<Row> rows;
    for (std::int64_t i = 0; i < std::min(most, p.queries); ++i) {
      rows.push_back({head, first + random.index(p.queries)});
    }
    std::sort(rows.begin(), rows.end(), [](const Row& one, const Row& other) { return one.row < other.row; });
    return rows;
  }

  /// Which sequences they belong to, as the tensors of the call say.
  [[nodiscard]] std::vector<AttentionSample> samples_of(const std::vector<Row>& rows,
                                                        const AttentionTensors& tensors) const {
    const AttentionProblem& p = task_.problem;
    std::vector<AttentionSample> samples;
    for (const Row& row : rows) {
      if (!p.variable_length) {
        samples.push_back({row.row / p.queries, row.head, row.row % p.queries});
        continue;
      }
      const auto* const offsets = static_cast<const std::int32_t*>(tensors.cu_seqlens_q.data);
      const auto* const behind = std::upper_bound(offsets, offsets + p.batch + 1, row.row);
      samples.push_back({behind - offsets - 1, row.head, row.row - behind[-1]});
    }
    return samples;
  }

  /// With null for what is not given.
  [[nodiscard]] AttentionTensors tensors_of(const InputsOfCall& inputs) const {
    InputsOfCall all = inputs;
    for (const HostTensor& output : shapes_) {
      all.push_back(&output);
    }
    return attention_tensors(task_, find_in(all));
  }

  AttentionTask task_;
  std::vector<HostTensor> shapes_;  ///< of the outputs, without data
  Errors errors_;
};

}  // namespace

std::unique_ptr<Inspector> make_attention_inspector(const AttentionTask& task, const std::vector<HostTensor>& inputs,
                                                    std::uint64_t seed) {
  return std::make_unique<AttentionInspector>(task, inputs, seed);
}

}  // namespace thresher::arena
