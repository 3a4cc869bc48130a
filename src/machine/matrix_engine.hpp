#pragma once
/// The tensor cores' interface for skeletons: they issue products, commit them as a group, retire groups, and read the
/// accumulators of retired ones. This concept hides the differences between architectures.
#include "machine/wgmma.hpp"

namespace thresher::machine {

/// The architectures whose matrix engine the vocabulary has. A kernel is written for one of them, and the emulator runs
/// it as that one does.
enum class Arch : u8 { sm_90a };

/// An engine's `Accumulators<n>` are a thread's part of a float32 tile [64, n]. Its `Fragment` is a thread's part of an
/// A operand in registers, its `Descriptor<swizzle>` an operand in shared memory.
///
/// Order in every warpgroup: fence() — multiply… — commit() — retire<pending>() — settle(accumulators) — get. Between a
/// multiply and the retire() that waits for its group, accumulators and fragments must not be accessed. The shared
/// memory that it reads must not be refilled either. An engine that keeps its accumulators elsewhere fetches them in
/// settle().
template <class Engine>
concept MatrixEngine = requires(
    typename Engine::template Accumulators<64>& sums, const typename Engine::template Accumulators<64>& read,
    typename Engine::Fragment& fragment, typename Engine::template Descriptor<Swizzle::b128> operand, Shared<u8> tile) {
  requires Engine::template Accumulators<64>::elements == 32;
  { read.get(0) } -> Same<float>;
  { sums.set(0, 0.0F) } -> Same<void>;
  { fragment.word[3] } -> Same<u32&>;
  { Engine::template descriptor<Swizzle::b128>(tile, 16, 1024) } -> Same<decltype(operand)>;
  { operand.advance(32) } -> Same<decltype(operand)>;
  { operand.later(32) } -> Same<decltype(operand)>;
  { Engine::fence() } -> Same<void>;
  { Engine::template multiply<Half>(sums, operand, operand, true) } -> Same<void>;
  { Engine::template multiply<Half>(sums, fragment, operand, true) } -> Same<void>;
  { Engine::template multiply_columns<Half>(sums, fragment, operand, true) } -> Same<void>;
  { Engine::commit() } -> Same<void>;
  { Engine::template retire<1>() } -> Same<void>;
  { Engine::settle(sums) } -> Same<void>;
  { Engine::settle(fragment) } -> Same<void>;
};

/// Hopper's wgmma.
struct WarpgroupEngine {
  template <int columns>
  using Accumulators = machine::Accumulators<columns>;
  using Fragment = wgmma::Fragment;
  template <Swizzle swizzle>
  using Descriptor = wgmma::Descriptor<swizzle>;

  /// An operand at `start`; wgmma::Descriptor explains the two distances.
  template <Swizzle swizzle>
  static TH_DEVICE Descriptor<swizzle> descriptor(Shared<u8> start, u32 leading_bytes, u32 stride_bytes) {
    return wgmma::descriptor<swizzle>(start, leading_bytes, stride_bytes);
  }

  /// Orders writes to accumulators and fragments before the products that follow.
  static TH_DEVICE void fence(Site site = here()) { wgmma::fence(site); }

  /// Issues D (+)= A·Bᵀ: A in shared memory or a fragment; k is the contiguous dimension of both operands.
  template <typename Element, int columns, class A, Swizzle swizzle>
  static TH_DEVICE void multiply(Accumulators<columns>& d, const A& a, Descriptor<swizzle> b, bool accumulate,
                                 Site site = here()) {
    wgmma::multiply<Element>(d, a, b, accumulate, site);
  }
  /// The same with a B whose contiguous dimension is n.
  template <typename Element, int columns, Swizzle swizzle>
  static TH_DEVICE void multiply_columns(Accumulators<columns>& d, const Fragment& a, Descriptor<swizzle> b,
                                         bool accumulate, Site site = here()) {
    wgmma::multiply<Element, wgmma::Major::mn>(d, a, b, accumulate, site);
  }

  /// Closes the group of the products issued since the last commit.
  static TH_DEVICE void commit(Site site = here()) { wgmma::commit(site); }
  /// Waits until at most `pending` groups are in flight.
  template <int pending>
  static TH_DEVICE void retire(Site site = here()) {
    wgmma::wait<pending>(site);
  }

  /// Accumulators of a retired group, or fragments: the compiler moves no access across this point.
  template <int columns>
  static TH_DEVICE void settle(Accumulators<columns>& accumulators, Site site = here()) {
    wgmma::settle(accumulators, site);
  }
  static TH_DEVICE void settle(Fragment& fragment, Site site = here()) { wgmma::settle(fragment, site); }
};

template <Arch arch>
struct EngineOfArch;
template <>
struct EngineOfArch<Arch::sm_90a> {
  using type = WarpgroupEngine;
};

/// The matrix engine of an architecture.
template <Arch arch>
using EngineOf = typename EngineOfArch<arch>::type;

static_assert(MatrixEngine<EngineOf<Arch::sm_90a>>);

}  // namespace thresher::machine
