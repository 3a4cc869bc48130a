// Shared memory really used, 16-byte accesses, no matrix instruction.
extern "C" __global__ void staged(const float4* in, float4* out, int n) {
  __shared__ float4 tile[256];
  float4 sum = make_float4(0, 0, 0, 0);
  for (int step = 0; step < n; ++step) {
    tile[threadIdx.x] = in[(step * gridDim.x + blockIdx.x) * 256 + threadIdx.x];
    __syncthreads();
    const float4 a = tile[255 - threadIdx.x];
    sum.x += a.x;
    sum.y += a.y;
    sum.z += a.z;
    sum.w += a.w;
    __syncthreads();
  }
  out[blockIdx.x * 256 + threadIdx.x] = sum;
}
