#include "arena/honesty/session.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "arena/random.hpp"
#include "formats/elements.hpp"

namespace thresher::arena::honesty {

Session::Session(const Problem& problem, const Contestant& contestant, Rig& rig, std::vector<Inputs> inputs,
                 SharedBuffers* ground, Places places, Memory* memory)
    : problem_(problem),
      contestant_(contestant),
      rig_(rig),
      memory_(memory ? *memory : rig.memory()),
      shapes_(problem.operation().outputs(problem)),
      inputs_(std::move(inputs)),
      ground_(ground) {
  if (ground_ != nullptr) {
    lie_on(*ground_, places);
  } else {
    for (const Inputs& each : inputs_) {
      places_.push_back(sets_.size());
      sets_.emplace_back(rig.memory(), each, shapes_);
    }
  }
  for (std::size_t set = 0; set < inputs_.size(); ++set) {
    poison(set, first_poison);
  }
  runner_ = contestant.prepare(problem_, memory_, sets_);
}

void Session::lie_on(SharedBuffers& ground, Places places) {
  sets_ = ground.sets();
  const std::size_t count = ground.count();
  const std::size_t start = places == Places::apart ? ground.random().below(count) : 0;
  for (std::size_t set = 0; set < inputs_.size(); ++set) {
    std::size_t place = places == Places::last       ? count - 1
                        : places == Places::together ? set
                                                     : (start + set * (count / inputs_.size())) % count;
    for (std::size_t tries = 0; places == Places::apart && tries < count; ++tries) {
      const bool is_free = std::find(places_.begin(), places_.end(), place) == places_.end();
      if (is_free && ground.group_of(place) == set % ground.pattern().plan.groups) {
        break;
      }
      place = (place + 1) % count;
    }
    const auto same_weights = std::find_if(places_.begin(), places_.end(), [&](std::size_t other) {
      return ground.group_of(other) == ground.group_of(place);
    });
    for (std::size_t i = 0; i < inputs_[set].size(); ++i) {
      HostTensor& input = inputs_[set][i];
      if (input.is_weight && same_weights != places_.end()) {
        input = inputs_[static_cast<std::size_t>(same_weights - places_.begin())][i];
      } else {
        sets_[place].replace(input);
      }
    }
    places_.push_back(place);
  }
}

void Session::run(std::size_t set, int calls) {
  for (int call = 0; call < calls; ++call) {
    runner_->run(rig_.stream(), places_[set]);
  }
  rig_.wait_for_stream();
}

/// A sample's calls including the one on `place`, and no other place of this session.
Batch Session::batch_around(std::size_t place) {
  const std::size_t count = ground_->count();
  const std::size_t calls = std::min(ground_->pattern().calls, count);
  const std::size_t first_try = ground_->random().below(calls);
  for (std::size_t attempt = 0; attempt < calls; ++attempt) {
    const std::size_t before = (first_try + attempt) % calls;
    const Batch batch{calls, (place + count - before) % count, count};
    bool is_alone = true;
    for (std::size_t call = 0; call < calls; ++call) {
      const std::size_t other = batch.set_of(call);
      is_alone = is_alone && (other == place || std::find(places_.begin(), places_.end(), other) == places_.end());
    }
    if (is_alone) {
      return batch;
    }
  }
  return {1, place, count};
}

Outputs Session::call(std::size_t set, std::uint8_t poisoned_with) {
  if (ground_ == nullptr) {
    poison(set, poisoned_with);
    run(set);
    return download(set);
  }
  const Batch batch = batch_around(places_[set]);
  std::vector<std::size_t> neighbours;
  for (std::size_t call = 0; call < batch.calls; ++call) {
    if (batch.set_of(call) != places_[set]) {
      neighbours.push_back(batch.set_of(call));
    }
  }
  ground_->refresh(neighbours);
  poison(set, poisoned_with);
  rig_.flush_caches();
  rig_.clock().rest(ground_->pattern().rest_s);
  (void)rig_.clock().measure(*runner_, batch);
  rig_.wait_for_stream();
  return download(set);
}

Reading Session::measure(std::size_t calls) {
  const Batch batch =
      places_.front() == 0 ? Batch{calls, 0, places_.size()} : Batch{1, places_.front(), places_.front() + 1};
  if (ground_ != nullptr) {
    rig_.clock().rest(ground_->pattern().rest_s);
  }
  return rig_.clock().measure(*runner_, batch);
}

void Session::prepare_anew(std::size_t set, const Inputs& inputs) {
  replace(set, inputs);
  runner_.reset();
  runner_ = contestant_.prepare(problem_, memory_, sets_);
}

Outputs Session::download(std::size_t set) const {
  Outputs outputs = shapes_;
  for (HostTensor& output : outputs) {
    output.values = sets_[places_[set]].download(output.name);
  }
  return outputs;
}

bool Session::is_poisoned(std::size_t set, std::uint8_t byte) const { return is_all(download(set), byte); }

void Session::replace(std::size_t set, const Inputs& inputs, const std::vector<std::string>& names) {
  for (const HostTensor& input : inputs) {
    if (!names.empty() && std::find(names.begin(), names.end(), input.name) == names.end()) {
      continue;
    }
    sets_[places_[set]].replace(input);
    Inputs& own = inputs_[set];
    *std::find_if(own.begin(), own.end(), [&](const HostTensor& known) { return known.name == input.name; }) = input;
  }
}

std::optional<std::string> Session::changed_input() const {
  for (std::size_t set = 0; set < inputs_.size(); ++set) {
    if (const std::vector<std::string> changed = sets_[places_[set]].changed_inputs(inputs_[set]); !changed.empty()) {
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
    // Exchanges values alone: the rows' scales stay, so that the result differs from a mere exchange of rows too.
    std::swap_ranges(tensor.values.begin() + static_cast<std::ptrdiff_t>(first * row_bytes),
                     tensor.values.begin() + static_cast<std::ptrdiff_t>((first + 1) * row_bytes),
                     tensor.values.begin() + static_cast<std::ptrdiff_t>(second * row_bytes));
  }
  return out;
}

Inputs negate_one_element(const Inputs& inputs, const std::string& name, std::uint64_t seed) {
  Inputs out = inputs;
  Random random(seed);
  for (HostTensor& tensor : out) {
    if (tensor.name == name) {
      arena::negate_one_element(tensor, random);
    }
  }
  return out;
}

Inputs zeroed(const Inputs& inputs) {
  Inputs out = inputs;
  for (HostTensor& tensor : out) {
    if (!tensor.is_weight && !tensor.is_index) {
      std::fill(tensor.values.begin(), tensor.values.end(), std::uint8_t{0});
    }
  }
  return out;
}

Inputs constant_rows(const Inputs& inputs) {
  Inputs out = inputs;
  for (HostTensor& tensor : out) {
    const auto rows = static_cast<std::size_t>(tensor.rows());
    if (tensor.is_weight || tensor.is_index || rows < 2) {
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
