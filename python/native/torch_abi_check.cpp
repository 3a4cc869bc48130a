// Compiled where PyTorch's headers are found, and never linked. A declaration of torch_abi.h that differs from theirs
// is an error.
#include <torch/csrc/stable/c/shim.h>

#include "torch_abi.h"

static_assert(thresher_torch_success == AOTI_TORCH_SUCCESS);
static_assert(thresher_torch_abi_version == TORCH_VERSION_2_10_0);
