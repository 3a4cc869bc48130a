#include "torch_run.hpp"

#include <cstdint>

namespace thresher::torch_binding {
namespace {

const std::int32_t* numbers(const Arguments& arguments, std::int32_t place) {
  return static_cast<const std::int32_t*>(arguments.data(place));
}

const float* floats(const Arguments& arguments, std::int32_t place) {
  return static_cast<const float*>(arguments.data(place));
}

/// The tokens of a product or of a layer.
struct Tokens {
  const void* values;
  const void* scales;
  const float* global_scale;

  Tokens(const thresher_torch_call& how, const Arguments& arguments)
      : values(arguments.data(arguments.at().a)),
        scales(arguments.data(arguments.at().a_scales)),
        global_scale(floats(arguments, arguments.at().a_global_scale)) {
    if (how.a_scales_are_global != 0) {
      global_scale = static_cast<const float*>(scales);
      scales = nullptr;
    }
  }
};

thresher_status run_rows(const thresher_torch_call& how, const Arguments& arguments, void* stream,
                         const Memory& memory) {
  const Tokens a(how, arguments);
  return reinterpret_cast<decltype(&thresher_dual_gemm_run_flat)>(how.run)(
      static_cast<const thresher_dual_gemm*>(how.plan), stream, how.rows, a.values, how.a_stride, a.scales,
      how.a_scale_layout, a.global_scale, memory.out, how.out_stride, memory.workspace);
}

thresher_status run_grouped(const thresher_torch_call& how, const Arguments& arguments, void* stream,
                            const Memory& memory) {
  const thresher_torch_places& at = arguments.at();
  const Tokens a(how, arguments);
  const std::int32_t* const counts = numbers(arguments, at.counts);
  return reinterpret_cast<decltype(&thresher_grouped_run_flat)>(how.run)(
      static_cast<const thresher_grouped*>(how.plan), stream, how.a_scale_layout, how.rows, how.tokens, a.values,
      how.a_stride, a.scales, a.global_scale, memory.out, how.out_stride,
      counts != nullptr ? counts : numbers(arguments, at.offsets), numbers(arguments, at.row_ids),
      floats(arguments, at.row_weights), memory.workspace);
}

thresher_status run_moe(const thresher_torch_call& how, const Arguments& arguments, void* stream,
                        const Memory& memory) {
  const thresher_torch_places& at = arguments.at();
  const Tokens x(how, arguments);
  return reinterpret_cast<decltype(&thresher_moe_run_flat)>(how.run)(
      static_cast<const thresher_moe*>(how.plan), stream, how.rows, x.values, how.a_stride, x.scales,
      how.a_scale_layout, x.global_scale, numbers(arguments, at.topk_ids), floats(arguments, at.topk_weights),
      memory.out, how.out_stride, memory.workspace);
}

/// The strides of q, k, v or out, in this order; null for a contiguous tensor.
const std::int64_t* strides_of(const thresher_torch_call& how, std::size_t tensor) {
  return how.has_strides[tensor] != 0 ? how.strides[tensor] : nullptr;
}

thresher_status run_attention(const thresher_torch_call& how, const Arguments& arguments, void* stream,
                              const Memory& memory) {
  const thresher_torch_places& at = arguments.at();
  const float* const q_descale = floats(arguments, at.q_descale);
  const float* const k_descale = floats(arguments, at.k_descale);
  const float* const v_descale = floats(arguments, at.v_descale);
  return reinterpret_cast<decltype(&thresher_attention_run_serving_flat)>(how.run)(
      static_cast<const thresher_attention*>(how.plan), stream, arguments.data(at.q), strides_of(how, 0),
      arguments.data(at.k), strides_of(how, 1), arguments.data(at.v), strides_of(how, 2), memory.out,
      strides_of(how, 3), static_cast<float*>(memory.second), numbers(arguments, at.cu_seqlens_q),
      numbers(arguments, at.cu_seqlens_k), numbers(arguments, at.block_table), how.table_stride,
      numbers(arguments, at.seqused_k), floats(arguments, at.sinks), q_descale,
      q_descale != nullptr ? how.descale_strides[0] : nullptr, k_descale,
      k_descale != nullptr ? how.descale_strides[1] : nullptr, v_descale,
      v_descale != nullptr ? how.descale_strides[2] : nullptr, memory.workspace);
}

thresher_status run_quantize(const thresher_torch_call& how, const Arguments& arguments, void* stream,
                             const Memory& memory) {
  return reinterpret_cast<decltype(&thresher_quantize_run_flat)>(how.run)(
      static_cast<const thresher_quantize*>(how.plan), stream, how.rows, arguments.data(arguments.at().a), how.a_stride,
      memory.out, 0, static_cast<float*>(memory.second), how.a_scale_layout, how.scales_are_powers_of_two);
}

/// A tensor of an append, and its place among the arguments.
struct View {
  const thresher_tensor* thresher_append_tensors::* in_tensors;
  std::int32_t thresher_torch_places::* in_arguments;
};

constexpr std::array views{
    View{&thresher_append_tensors::q, &thresher_torch_places::q},
    View{&thresher_append_tensors::q_out, &thresher_torch_places::q_out},
    View{&thresher_append_tensors::k, &thresher_torch_places::k},
    View{&thresher_append_tensors::v, &thresher_torch_places::v},
    View{&thresher_append_tensors::k_out, &thresher_torch_places::k_out},
    View{&thresher_append_tensors::cos_sin, &thresher_torch_places::cos_sin},
    View{&thresher_append_tensors::k_cache, &thresher_torch_places::k_cache},
    View{&thresher_append_tensors::v_cache, &thresher_torch_places::v_cache},
    View{&thresher_append_tensors::k_descale, &thresher_torch_places::k_descale},
    View{&thresher_append_tensors::v_descale, &thresher_torch_places::v_descale},
};

}  // namespace

AppendTemplate::AppendTemplate(const thresher_append_tensors* given) {
  static_assert(views.size() == max_views);
  if (given == nullptr) {
    return;
  }
  tensors_ = *given;
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (const thresher_tensor* const tensor = given->*views[i].in_tensors; tensor != nullptr) {
      views_[i] = *tensor;
    }
  }
}

thresher_status AppendTemplate::run(const thresher_torch_call& how, const Arguments& arguments, void* stream) const {
  const thresher_torch_places& at = arguments.at();
  thresher_append_tensors tensors = tensors_;
  std::array<thresher_tensor, max_views> of_call = views_;
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (tensors.*views[i].in_tensors != nullptr) {
      of_call[i].data = arguments.data(at.*views[i].in_arguments);
      tensors.*views[i].in_tensors = &of_call[i];
    }
  }
  tensors.positions = arguments.data(at.positions);
  tensors.slots = arguments.data(at.slots);
  return reinterpret_cast<decltype(&thresher_append_run)>(how.run)(static_cast<const thresher_append*>(how.plan),
                                                                   stream, &tensors);
}

thresher_status run(const thresher_torch_call& how, const AppendTemplate& append, const Arguments& arguments,
                    void* stream, const Memory& memory) {
  switch (how.convention) {
    case THRESHER_TORCH_ROWS: return run_rows(how, arguments, stream, memory);
    case THRESHER_TORCH_GROUPED: return run_grouped(how, arguments, stream, memory);
    case THRESHER_TORCH_MOE: return run_moe(how, arguments, stream, memory);
    case THRESHER_TORCH_ATTENTION: return run_attention(how, arguments, stream, memory);
    case THRESHER_TORCH_QUANTIZE: return run_quantize(how, arguments, stream, memory);
    default: return append.run(how, arguments, stream);
  }
}

}  // namespace thresher::torch_binding
