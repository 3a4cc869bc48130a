#pragma once
/// Adds the sums of all words; a thread has every (blocks · threads)-th word.
#include "machine/machine.hpp"
#include "strategies/word_sum/params.hpp"

namespace thresher::strategies::word_sum {

template <typename Params>
TH_KERNEL(threads, 1)
add_words(TH_GRID_CONSTANT const Params params) {
  const u64 step = static_cast<u64>(launch::block_count().x) * launch::thread_count();
  WordSums sums;
  for (u64 i = static_cast<u64>(launch::block_index().x) * launch::thread_count() + launch::thread_index();
       i < params.count; i += step) {
    sums.add(params.words.load(static_cast<i64>(i)), i);
  }
  params.sums.reduce_add(0, sums.first);
  params.sums.reduce_add(1, sums.second);
}

}  // namespace thresher::strategies::word_sum
