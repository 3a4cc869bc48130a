#include "arena/honesty/session.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "arena/random.hpp"
#include "formats/elements.hpp"

namespace thresher::arena::honesty {

Session::Session(const Problem& problem, const Contestant& contestant, Rig& rig, std::vector<Inputs> inputs,
                 Memory* memory)
    : problem_(problem),
      rig_(rig),
      memory_(memory ? *memory : rig.memory()),
      shapes_(problem.operation().outputs(problem)),
      inputs_(std::move(inputs)) {
  for (const Inputs& each : inputs_) {
    sets_.emplace_back(rig.memory(), each, shapes_);
    sets_.back().poison_outputs(first_poison);
  }
  runner_ = contestant.prepare(problem_, memory_, sets_);
}

void Session::run(std::size_t set, int calls) {
  for (int call = 0; call < calls; ++call) {
    runner_->run(rig_.stream(), set);
  }
  rig_.wait_for_stream();
}

Outputs Session::call(std::size_t set, std::uint8_t poison) {
  sets_[set].poison_outputs(poison);
  run(set);
  return download(set);
}

Outputs Session::download(std::size_t set) const {
  Outputs outputs = shapes_;
  for (HostTensor& output : outputs) {
    output.values = sets_[set].download(output.name);
  }
  return outputs;
}

bool Session::is_poisoned(std::size_t set, std::uint8_t byte) const { return is_all(download(set), byte); }

void Session::replace(std::size_t set, const Inputs& inputs, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const HostTensor& input = inputs[i];
    if (!names.empty() && std::find(names.begin(), names.end(), input.name) == names.end()) {
      continue;
    }
    sets_[set].replace(input);
    inputs_[set][i] = input;
  }
}

std::optional<std::string> Session::changed_input() const {
  for (std::size_t set = 0; set < sets_.size(); ++set) {
    if (const std::vector<std::string> changed = sets_[set].changed_inputs(inputs_[set]); !changed.empty()) {
      return changed.front();
    }
  }
  return std::nullopt;
}

std::vector<std::string> Session::guard_damage() const {
  std::vector<std::string> sentences = runner_->guard_damage();
  for (const DeviceSet& set : sets_) {
    const std::vector<std::string> more = set.guard_damage();
    sentences.insert(sentences.end(), more.begin(), more.end());
  }
  return sentences;
}

bool same_bits(const Outputs& a, const Outputs& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const HostTensor& x, const HostTensor& y) { return x.values == y.values; });
}

bool is_all(const Outputs& outputs, std::uint8_t byte) {
  return std::all_of(outputs.begin(), outputs.end(), [byte](const HostTensor& output) {
    return std::all_of(output.values.begin(), output.values.end(), [byte](std::uint8_t b) { return b == byte; });
  });
}

Inputs swap_inner_rows(const Inputs& inputs, const std::string& name, std::uint64_t seed) {
  Inputs out = inputs;
  for (HostTensor& tensor : out) {
    const std::int64_t rows = tensor.rows();
    if (tensor.name != name || rows < 2) {
      continue;
    }
    const std::size_t row_bytes = tensor.values.size() / static_cast<std::size_t>(rows);
    Random random(seed);
    const auto inner = [&] {
      return static_cast<std::size_t>(rows > 3 ? 1 + random.below(static_cast<std::uint64_t>(rows - 2))
                                               : random.below(2));
    };
    const std::size_t first = inner();
    std::size_t second = inner();
    for (int tries = 0; second == first && tries < 64; ++tries) {
      second = inner();
    }
    second = second == first ? (first == 0 ? 1 : 0) : second;
    // Values alone: the rows' scales stay, so that the result differs from a mere exchange of rows too.
    std::swap_ranges(tensor.values.begin() + static_cast<std::ptrdiff_t>(first * row_bytes),
                     tensor.values.begin() + static_cast<std::ptrdiff_t>((first + 1) * row_bytes),
                     tensor.values.begin() + static_cast<std::ptrdiff_t>(second * row_bytes));
  }
  return out;
}

Inputs negate_one_element(const Inputs& inputs, const std::string& name, std::uint64_t seed) {
  constexpr int candidates = 256;
  Inputs out = inputs;
  Random random(seed);
  for (HostTensor& tensor : out) {
    const std::int64_t elements = tensor.elements();
    if (tensor.name != name || elements == 0) {
      continue;
    }
    const std::int64_t columns = tensor.shape.back();
    const Tensor view = tensor.view();
    std::int64_t chosen = 0;
    double greatest = -1;
    for (int i = 0; i < candidates; ++i) {
      const std::int64_t row = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(elements / columns)));
      const std::int64_t column = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(columns)));
      const double magnitude = std::fabs(formats::element(view, row, column));
      if (magnitude > greatest) {
        greatest = magnitude;
        chosen = row * columns + column;
      }
    }
    const std::int64_t sign_bit = (chosen + 1) * bits(tensor.format) - 1;
    tensor.values[static_cast<std::size_t>(sign_bit / 8)] ^= static_cast<std::uint8_t>(1U << (sign_bit % 8));
  }
  return out;
}

Inputs zeroed(const Inputs& inputs) {
  Inputs out = inputs;
  for (HostTensor& tensor : out) {
    if (!tensor.is_weight) {
      std::fill(tensor.values.begin(), tensor.values.end(), std::uint8_t{0});
    }
  }
  return out;
}

Inputs constant_rows(const Inputs& inputs) {
  Inputs out = inputs;
  for (HostTensor& tensor : out) {
    const auto rows = static_cast<std::size_t>(tensor.rows());
    if (tensor.is_weight || rows < 2) {
      continue;
    }
    const std::size_t row_bytes = tensor.values.size() / rows;
    for (std::size_t row = 1; row < rows; ++row) {
      std::memcpy(&tensor.values[row * row_bytes], tensor.values.data(), row_bytes);
    }
  }
  return out;
}

}  // namespace thresher::arena::honesty
