#pragma once
/// The parameters of an operator, and the arguments of one call.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "torch_operators.h"
#include "torch_tensors.hpp"

namespace thresher::torch_binding {

/// The parameters of one operator.
struct Description {
  std::string arguments;
  thresher_torch_places places{};
};

inline bool may_be_none(char argument) { return argument >= 'A' && argument <= 'Z'; }
inline char kind_of(char argument) {
  return may_be_none(argument) ? static_cast<char>(argument - 'A' + 'a') : argument;
}
inline bool is_tensor(char argument) {
  return std::string_view("twop").find(kind_of(argument)) != std::string_view::npos;
}

inline bool is_written(char argument) { return kind_of(argument) == 'o'; }

/// The arguments of one call, which belong to the dispatcher until they are dropped.
class Arguments {
 public:
  Arguments(const Description& description, StableIValue* stack) : description_(description), stack_(stack) {}

  [[nodiscard]] std::size_t count() const { return description_.arguments.size(); }
  [[nodiscard]] char operator[](std::size_t index) const { return description_.arguments[index]; }
  [[nodiscard]] const thresher_torch_places& at() const { return description_.places; }
  [[nodiscard]] bool is_none(std::size_t index) const {
    return may_be_none(description_.arguments[index]) && stack_[index] == 0;
  }
  [[nodiscard]] StableIValue value(std::size_t index) const {
    return may_be_none(description_.arguments[index]) ? *std::bit_cast<StableIValue*>(stack_[index]) : stack_[index];
  }
  [[nodiscard]] TensorView tensor(std::size_t index) const {
    return TensorView(std::bit_cast<AtenTensorHandle>(value(index)));
  }
  /// Null for an absent argument.
  [[nodiscard]] void* data(std::int32_t place) const {
    return place < 0 || is_none(static_cast<std::size_t>(place)) ? nullptr
                                                                 : tensor(static_cast<std::size_t>(place)).data();
  }

  void drop() {
    for (std::size_t i = 0; i < count(); ++i) {
      if (is_none(i)) {
        continue;
      }
      const StableIValue given = value(i);
      if (is_tensor(description_.arguments[i])) {
        aoti_torch_delete_tensor_object(std::bit_cast<AtenTensorHandle>(given));
      } else if (kind_of(description_.arguments[i]) == 's') {
        torch_delete_string(std::bit_cast<StringHandle>(given));
      }
      if (may_be_none(description_.arguments[i])) {
        delete std::bit_cast<StableIValue*>(stack_[i]);
      }
    }
  }

 private:
  const Description& description_;
  StableIValue* stack_;
};

}  // namespace thresher::torch_binding
