// Replaces the GPU when Thresher is built without CUDA's headers or with THRESHER_GPU off: every call fails with that
// reason.
#include <string>

#include "runtime/cublaslt.hpp"
#include "runtime/driver.hpp"
#include "runtime/exported_memory.hpp"
#include "runtime/kernel.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "runtime/tensor_map.hpp"
#include "thresher/error.hpp"

namespace thresher::runtime {

struct LoadedModule {};

namespace {

constexpr const char* reason =
    "this build of Thresher has no GPU support (cuda.h was missing, or THRESHER_GPU was off): build it again with "
    "CUDA_HOME set to a CUDA toolkit or with the package nvidia-cuda-runtime, or use the CPU";

[[noreturn]] void refuse() { throw Error(ErrorCode::unsupported, reason); }

}  // namespace

const DriverStatus& driver_status() noexcept {
  static const DriverStatus* status = new DriverStatus{false, "", 0, 0, reason};
  return *status;
}

std::string DeviceProperties::arch() const { refuse(); }
const DeviceProperties& device_properties(int) { refuse(); }
MemoryInfo memory_info(int) { refuse(); }
ContextGuard::ContextGuard(int) { refuse(); }
ContextGuard::~ContextGuard() = default;
std::size_t persisting_cache_bytes(int) { refuse(); }
void set_persisting_cache_bytes(int, std::size_t) { refuse(); }
void reset_persisting_cache(int) { refuse(); }
void synchronize_device(int) { refuse(); }
DeviceId pointer_device(const void*) { return {}; }
void require_on_gpu(const void*, int, const char*) { refuse(); }

DeviceBuffer::DeviceBuffer(int, std::size_t, const char*) { refuse(); }
DeviceBuffer::~DeviceBuffer() = default;
void copy_async(void*, const void*, std::size_t, Stream, int) { refuse(); }
void copy(void*, const void*, std::size_t, int) { refuse(); }
void fill_async(void*, std::uint8_t, std::size_t, Stream, int) { refuse(); }

ExportedMemory::ExportedMemory(int, std::size_t) { refuse(); }
ExportedMemory::~ExportedMemory() = default;
int ExportedMemory::descriptor() const { refuse(); }

void synchronize(Stream, int) { refuse(); }
OwnedStream::OwnedStream(int) { refuse(); }
OwnedStream::~OwnedStream() = default;
Event::Event(int) { refuse(); }
Event::~Event() = default;
void Event::record(Stream) const { refuse(); }
void Event::synchronize() const { refuse(); }
void Event::block(Stream) const { refuse(); }
double Event::elapsed_us_since(const Event&) const { refuse(); }
Graph Graph::capture(int, const std::function<void(Stream)>&) { refuse(); }
Graph::~Graph() = default;
void Graph::launch(Stream) const { refuse(); }
void load_kernels(int, const std::function<void(Stream)>&) { refuse(); }

Module::Module(int, std::span<const std::byte>) { refuse(); }
Kernel Module::kernel(const std::string&) const { refuse(); }
void Kernel::allow_dynamic_shared(std::size_t) const { refuse(); }
void Kernel::allow_large_clusters() const { refuse(); }
void Kernel::launch(const LaunchConfig&, std::span<void*>) const { refuse(); }
void Kernel::launch(const LaunchConfig&, std::span<void*>, const ContextGuard&) const { refuse(); }
int Kernel::blocks_per_multiprocessor(int, std::size_t) const { refuse(); }
int Kernel::resident_clusters(const LaunchConfig&) const { refuse(); }
int Kernel::registers() const { refuse(); }
std::size_t Kernel::static_shared_bytes() const { refuse(); }
std::size_t Kernel::local_bytes() const { refuse(); }
int Kernel::ordinal() const noexcept { return 0; }

TensorMap encode_tiled(const TiledView&) { refuse(); }
TensorMap encode_tiled(const TiledView&, const ContextGuard&) { refuse(); }

const CublasLtStatus& cublaslt_status() noexcept {
  static const CublasLtStatus* status = new CublasLtStatus{"", 0, reason};
  return *status;
}
struct Matmul::Plan {};
Matmul::Matmul(int, const MatmulShape&) { refuse(); }
Matmul::Matmul(Matmul&&) noexcept = default;
Matmul& Matmul::operator=(Matmul&&) noexcept = default;
Matmul::~Matmul() = default;
std::size_t Matmul::workspace_bytes() const noexcept { return 0; }
void Matmul::run(Stream, std::int64_t, const void*, std::int64_t, const void*, void*, void*) const { refuse(); }

}  // namespace thresher::runtime
