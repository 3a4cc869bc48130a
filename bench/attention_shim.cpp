// Times one call between two events, from C++: from Python the host's cost would dominate.
#include <algorithm>
#include <vector>

#include "runtime/stream.hpp"
#include "thresher/thresher.h"

/// Times thresher_attention_run_flat in microseconds: the smallest of `count`, and their median; below 0 when one
/// fails.
extern "C" double thresher_bench_one_call_us(const thresher_attention* plan, const void* q, const void* k,
                                             const void* v, void* o, float* lse, void* workspace, int count,
                                             double* median) {
  using namespace thresher;
  const runtime::OwnedStream stream(0);
  const runtime::Event begin(0);
  const runtime::Event end(0);
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    begin.record(stream.get());
    if (thresher_attention_run_flat(plan, stream.get().handle, q, nullptr, k, nullptr, v, nullptr, o, nullptr, lse,
                                    nullptr, nullptr, workspace) != THRESHER_OK) {
      return -1.0;
    }
    end.record(stream.get());
    times.push_back(end.elapsed_us_since(begin));
  }
  std::sort(times.begin(), times.end());
  *median = times[times.size() / 2];
  return times.front();
}
