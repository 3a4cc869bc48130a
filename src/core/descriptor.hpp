#pragma once
/// An open file's descriptor; the destructor closes it.
#include <unistd.h>

#include <utility>

namespace thresher {

class Descriptor {
 public:
  /// Negative if nothing is open.
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() {
    if (value_ >= 0) {
      ::close(value_);
    }
  }
  [[nodiscard]] int value() const { return value_; }

 private:
  int value_;
};

}  // namespace thresher
