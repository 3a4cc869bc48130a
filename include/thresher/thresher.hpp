#pragma once
/// Everything the library offers to C++.
#include "thresher/attention.hpp"
#include "thresher/device.hpp"
#include "thresher/dual_gemm.hpp"
#include "thresher/error.hpp"
#include "thresher/gemm.hpp"
#include "thresher/grouped_gemm.hpp"
#include "thresher/packed_block.hpp"
#include "thresher/packed_file.hpp"
#include "thresher/tensor.hpp"
#include "thresher/version.hpp"
#include "thresher/workspace.hpp"
