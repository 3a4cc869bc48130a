// Quantization of tokens on a GPU: the definition bit by bit.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "runtime/memory.hpp"
#include "runtime/stream.hpp"
#include "support/gpu.hpp"
#include "support/quantize_case.hpp"
#include "thresher/thresher.hpp"

namespace thresher::ops {
namespace {

using test::OnGpu;
using test::QuantizeCase;

class CudaQuantize : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_GPU(); }
};

std::string fault(QuantizeCase& host) {
  return host.fault_after([&] {
    const OnGpu values(host.values);
    const OnGpu codes(host.codes);
    const OnGpu scales(host.scales);
    Tensor x = host.x;
    Tensor out = host.out;
    x.device = out.device = {DeviceKind::cuda, 0};
    x.data = values.data();
    out.data = codes.data();
    out.scales.data = scales.data();
    plan(Device::cuda(0), host.problem).run({}, x, out);
    runtime::synchronize({}, 0);
    host.codes = codes.download<std::uint8_t>();
    host.scales = scales.download<float>();
    host.out.data = host.codes.data();
    host.out.scales.data = host.scales.data();
    EXPECT_TRUE(codes.guards_intact() && scales.guards_intact());
  });
}

TEST_F(CudaQuantize, GivesTheBitsOfTheDefinition) {
  for (const Format x : {Format::fp16, Format::bf16}) {
    for (const Format out : {Format::fp8_block, Format::fp8_row}) {
      for (const std::int64_t columns : {16, 128, 2880, 4096, 18432}) {
        for (const bool powers_of_two : {false, true}) {
          QuantizeCase host({.rows = 131, .columns = columns, .x = x, .out = out}, {.powers_of_two = powers_of_two});
          EXPECT_EQ(fault(host), "") << name(x) << " " << name(out) << " " << columns << powers_of_two;
        }
      }
    }
  }
}

TEST_F(CudaQuantize, RowsMayLieApartAndScalesInColumns) {
  for (const std::int64_t gap : {0, 3, 8}) {
    QuantizeCase host({.rows = 70, .columns = 1552}, {.scales = ScaleLayout::column_major, .gap = gap});
    EXPECT_EQ(fault(host), "") << gap;
  }
}

}  // namespace
}  // namespace thresher::ops
