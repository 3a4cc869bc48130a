// Attention as a few C functions, so that a Python process that times PyTorch can time Thresher beside it.
#include <algorithm>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "runtime/stream.hpp"
#include "thresher/attention.hpp"

namespace {

using namespace thresher;

struct Planned {
  Attention attention;
  AttentionTensors tensors;
};

thread_local std::string last_error;

/// "stages=2 cluster=1".
std::map<std::string, int> parse_knobs(const std::string& text) {
  std::map<std::string, int> knobs;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::size_t equals = text.find('=', begin);
    knobs[text.substr(begin, equals - begin)] = std::stoi(text.substr(equals + 1, end - equals - 1));
    begin = end + 1;
  }
  return knobs;
}

}  // namespace

extern "C" {

const char* th_error() { return last_error.c_str(); }

/// Contiguous [B,H,S,D] tensors; null on failure.
void* th_plan(int batch, int heads, int kv_heads, int queries, int keys, int head_dim, int is_bf16, int causal,
              const char* strategy, const char* knobs, int dependent, void* q, void* k, void* v, void* o, void* lse) {
  try {
    const Format format = is_bf16 != 0 ? Format::bf16 : Format::fp16;
    const AttentionProblem problem{.batch = batch,
                                   .heads = heads,
                                   .kv_heads = kv_heads,
                                   .queries = queries,
                                   .keys = keys,
                                   .head_dim = head_dim,
                                   .format = format,
                                   .causal = causal != 0};
    const DeviceId gpu{DeviceKind::cuda, 0};
    AttentionTensors tensors{.q = Tensor::contiguous(q, format, {batch, heads, queries, head_dim}, gpu),
                             .k = Tensor::contiguous(k, format, {batch, kv_heads, keys, head_dim}, gpu),
                             .v = Tensor::contiguous(v, format, {batch, kv_heads, keys, head_dim}, gpu),
                             .o = Tensor::contiguous(o, format, {batch, heads, queries, head_dim}, gpu)};
    if (lse != nullptr) {
      tensors.lse = Tensor::contiguous(lse, Format::fp32, {batch, heads, queries}, gpu);
    }
    return new Planned{plan(Device::cuda(0), problem,
                            {.strategy = strategy, .knobs = parse_knobs(knobs), .dependent_launch = dependent != 0}),
                       tensors};
  } catch (const std::exception& error) {
    last_error = error.what();
    return nullptr;
  }
}

int th_run(void* planned, void* stream) {
  try {
    const auto& p = *static_cast<Planned*>(planned);
    p.attention.run({stream}, p.tensors);
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
    return 1;
  }
}

/// Microseconds between two events around one call: the smallest of `count`, and their median.
double th_one_call_us(void* planned, int count, double* median) {
  try {
    const auto& p = *static_cast<Planned*>(planned);
    const runtime::OwnedStream stream(0);
    const runtime::Event begin(0);
    const runtime::Event end(0);
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
      begin.record(stream.get());
      p.attention.run(stream.get(), p.tensors);
      end.record(stream.get());
      times.push_back(end.elapsed_us_since(begin));
    }
    std::sort(times.begin(), times.end());
    *median = times[times.size() / 2];
    return times.front();
  } catch (const std::exception& error) {
    last_error = error.what();
    return -1.0;
  }
}

}  // extern "C"
