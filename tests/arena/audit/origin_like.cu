// Like the attention kernel that this project answers: it declares shared memory that it never touches, keeps an array
// of 512 floats a thread, and reads global memory two bytes at a time. The audit must refuse it in those words.
#include <cuda_fp16.h>

extern "C" __global__ void origin_like(const __half* q, const __half* k, const __half* v, __half* o, int keys,
                                       int dim) {
  extern __shared__ __half tile[];
  float logits[512];
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  float largest = -1e30F;
  for (int j = 0; j < keys; ++j) {
    float sum = 0;
    for (int d = 0; d < dim; ++d) {
      sum += __half2float(q[row * dim + d]) * __half2float(k[j * dim + d]);
    }
    logits[j] = sum;
    largest = fmaxf(largest, sum);
  }
  float total = 0;
  for (int j = 0; j < keys; ++j) {
    logits[j] = __expf(logits[j] - largest);
    total += logits[j];
  }
  for (int d = 0; d < dim; ++d) {
    float sum = 0;
    for (int j = 0; j < keys; ++j) {
      sum += logits[j] * __half2float(v[j * dim + d]);
    }
    o[row * dim + d] = __float2half(sum / total);
  }
}
