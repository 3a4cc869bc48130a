#ifndef THRESHER_TORCH_ABI_H
#define THRESHER_TORCH_ABI_H
/* What is used here of PyTorch's stable C interface, which libtorch_cpu.so of every torch from 2.10 on has
 * (torch/csrc/inductor/aoti_torch/c/shim.h and torch/csrc/stable/c/shim.h), declared so that a wheel is built where
 * torch is not installed. torch_abi_check.cpp holds it against PyTorch's headers where there are any. */
#include <cstddef>
#include <cstdint>

/* The version whose rules values on a stack follow: 2.10. */
constexpr uint64_t thresher_torch_abi_version = (uint64_t{2} << 56) | (uint64_t{10} << 48);

using StableIValue = uint64_t;
using AOTITorchError = int32_t;
constexpr AOTITorchError thresher_torch_success = 0;

class AtenTensorOpaque;
using AtenTensorHandle = AtenTensorOpaque*;
class TorchLibraryOpaque;
using TorchLibraryHandle = TorchLibraryOpaque*;
struct StringOpaque;
using StringHandle = StringOpaque*;

extern "C" {

/* A tensor. Sizes and strides stay the tensor's. */
AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle tensor);
AOTITorchError aoti_torch_new_tensor_handle(AtenTensorHandle tensor, AtenTensorHandle* made);
AOTITorchError aoti_torch_is_defined(AtenTensorHandle tensor, bool* is_defined);
AOTITorchError aoti_torch_get_data_ptr(AtenTensorHandle tensor, void** data);
AOTITorchError aoti_torch_get_dim(AtenTensorHandle tensor, int64_t* rank);
AOTITorchError aoti_torch_get_sizes(AtenTensorHandle tensor, int64_t** sizes);
AOTITorchError aoti_torch_get_strides(AtenTensorHandle tensor, int64_t** strides);
AOTITorchError aoti_torch_get_storage_offset(AtenTensorHandle tensor, int64_t* elements);
AOTITorchError aoti_torch_get_storage_size(AtenTensorHandle tensor, int64_t* bytes);
AOTITorchError aoti_torch_get_dtype(AtenTensorHandle tensor, int32_t* dtype);
AOTITorchError aoti_torch_get_device_type(AtenTensorHandle tensor, int32_t* type);
AOTITorchError aoti_torch_get_device_index(AtenTensorHandle tensor, int32_t* index);
AOTITorchError aoti_torch_empty_strided(int64_t rank, const int64_t* sizes, const int64_t* strides, int32_t dtype,
                                        int32_t device_type, int32_t device_index, AtenTensorHandle* made);
AOTITorchError aoti_torch_zero_(AtenTensorHandle tensor);

/* Numbers of types and devices. */
int32_t aoti_torch_device_type_cuda();
int32_t aoti_torch_dtype_uint8();
size_t aoti_torch_dtype_element_size(int32_t dtype);
AOTITorchError aoti_torch_get_current_device_index(int32_t* index);

bool aoti_torch_grad_mode_is_enabled();
AOTITorchError torch_get_num_threads(uint32_t* threads);

AOTITorchError torch_string_length(StringHandle text, size_t* length);
AOTITorchError torch_string_c_str(StringHandle text, const char** characters);
AOTITorchError torch_delete_string(StringHandle text);

/* Operators. A kernel takes its arguments off the stack and puts its results there. */
AOTITorchError torch_call_dispatcher(const char* name, const char* overload, StableIValue* stack, uint64_t abi_version);
AOTITorchError aoti_torch_library_init_impl(const char* name_space, const char* dispatch_key, const char* file,
                                            uint32_t line, TorchLibraryHandle* made);
AOTITorchError aoti_torch_delete_library_object(TorchLibraryHandle library);
AOTITorchError torch_library_impl(TorchLibraryHandle library, const char* name,
                                  void (*kernel)(StableIValue*, uint64_t inputs, uint64_t outputs),
                                  uint64_t abi_version);

} /* extern "C" */
#endif
