// 64 running sums a thread under a limit of 32 registers: the compiler spills.
extern "C" __global__ void __launch_bounds__(1024, 2) spilled(const float4* in, float4* out, int n) {
  __shared__ float4 tile[1024];
  float4 sums[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) sums[i] = in[threadIdx.x + i * 1024];
  for (int step = 0; step < n; ++step) {
    tile[threadIdx.x] = in[step * 1024 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const float4 a = tile[(threadIdx.x + i) & 1023];
      sums[i].x += a.x * sums[(i + 1) & 15].y;
      sums[i].y += a.y * sums[(i + 3) & 15].z;
      sums[i].z += a.z * sums[(i + 5) & 15].w;
      sums[i].w += a.w * sums[(i + 7) & 15].x;
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 16; ++i) out[threadIdx.x + i * 1024] = sums[i];
}
