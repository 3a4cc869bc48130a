#pragma once
/// Integers of fixed width, number formats as bit patterns, short vectors, and the source site of a call.
///
/// Device code includes only the project's own headers, so these replace <cstdint>.
#include "machine/config.hpp"

namespace thresher::machine {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i8 = signed char;
using i16 = short;
using i32 = int;
using i64 = long long;

static_assert(sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8);

/// Number formats: bit patterns only. machine/numbers.hpp converts them.
struct Half {
  u16 bits;
};
struct BFloat16 {
  u16 bits;
};
struct E4M3 {
  u8 bits;
};

/// `count` values that are loaded and stored by one access of sizeof(T)*count bytes (2, 4, 8 or 16).
template <typename T, int count>
struct alignas(sizeof(T) * count) Vector {
  T at[count];
};

/// std::is_same_v, for device code.
template <typename T, typename U>
inline constexpr bool is_same = false;
template <typename T>
inline constexpr bool is_same<T, T> = true;
/// std::same_as, for device code.
template <typename T, typename U>
concept Same = is_same<T, U>;

namespace detail {
template <bool chooses_first, typename First, typename Second>
struct Conditional {
  using type = First;
};
template <typename First, typename Second>
struct Conditional<false, First, Second> {
  using type = Second;
};
}  // namespace detail
/// std::conditional_t, for device code.
template <bool chooses_first, typename First, typename Second>
using conditional = typename detail::Conditional<chooses_first, First, Second>::type;

/// The call of the vocabulary in the kernel's source, which the emulator's findings name. Empty on the GPU.
#if TH_GPU
struct Site {};
TH_DEVICE constexpr Site here() { return {}; }
#else
struct Site {
  const char* file = "";
  int line = 0;
};
/// As a default argument it is evaluated at the vocabulary call.
constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
#endif

}  // namespace thresher::machine
