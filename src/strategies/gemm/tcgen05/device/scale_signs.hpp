#pragma once
/// Whether a token's scale has a sign, which the tensor core would not see: looked for by the finishing warps while
/// they have nothing else to do.
#include "machine/launch.hpp"
#include "machine/named_barrier.hpp"
#include "machine/warp.hpp"
#include "strategies/gemm/tcgen05/config.hpp"
#include "strategies/gemm/tcgen05/params.hpp"

namespace thresher::strategies::gemm::tcgen05::block_scaled {

using namespace machine;

template <Config config>
class ScaleSigns {
 public:
  TH_DEVICE explicit ScaleSigns(const DenseParams& params) : params_(params) {}

  /// All finishing threads call it, with four words that are theirs, and get the same answer.
  TH_DEVICE bool any(u32 token_tile, Shared<u32> scratch) const {
    constexpr u32 signs_barrier = 2;
    const bool in_warp = warp::any(seen_by_thread(token_tile) != 0);
    if (warp::lane() == 0) {
      scratch.store(launch::thread_index() / 32, in_warp ? 1 : 0);
    }
    named_barrier::sync(signs_barrier, pipeline::finishing_warps * 32);
    u32 found = 0;
    TH_UNROLL
    for (u32 w = 0; w < pipeline::finishing_warps; ++w) {
      found |= scratch.load(w);
    }
    return found != 0;
  }

 private:
  using Words = Vector<u32, 4>;

  /// A lane looks at the same four tokens of a group in every block along K: word j has those of token 32j + lane.
  TH_DEVICE u32 seen_by_thread(u32 token_tile) const {
    u32 seen = 0;
    TH_UNROLL
    for (u32 group = 0; group < token_scale_groups(config); ++group) {
      Words wanted;
      u32 wants = 0;
      TH_UNROLL
      for (u32 j = 0; j < 4; ++j) {
        const u32 row = group * 128 + j * 32 + warp::lane();
        const bool is_token = row < config.block_tokens && token_tile * config.block_tokens + row < params_.m;
        wanted.at[j] = is_token ? 0x80808080U : 0;
        wants |= wanted.at[j];
      }
      if (wants != 0) {
        seen |= seen_in_group(token_tile * token_scale_groups(config) + group, wanted);
      }
    }
    return seen;
  }

  /// The four warps take turns along K.
  TH_DEVICE u32 seen_in_group(u32 group, const Words& wanted) const {
    const u32 k_blocks = scale_k_blocks(params_.k);
    const Global<Words> scales =
        params_.scale_bytes.offset(static_cast<i64>(u64{group} * k_blocks * scale_block_bytes)).template as<Words>();
    u32 seen = 0;
    for (u32 block = launch::thread_index() / 32; block < k_blocks; block += pipeline::finishing_warps) {
      const Words words = scales.load(block * 32 + warp::lane());
      TH_UNROLL
      for (u32 j = 0; j < 4; ++j) {
        seen |= words.at[j] & wanted.at[j];
      }
    }
    return seen;
  }

  const DenseParams& params_;
};

}  // namespace thresher::strategies::gemm::tcgen05::block_scaled
