// An operation that the tensor memory skeleton cannot run does not compile, and the compiler says in a sentence what is
// wrong.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "machine/device_program.hpp"
#include "pipeline/refusals.hpp"

namespace thresher::pipeline::test::tensor {
namespace {

const std::string header = "pipeline/tensor_operations.hpp";
const std::array<Refusal, 9> refusals{{
    {"there are no 'void load_weights(const LoadSlot&, const Tile&, u32 k_step, u32 member) const', 'load_tokens' "
     "alike "
     "and 'u32 slot_load_bytes(const Tile&) const'",
     1},
    {"there is no 'void multiply(Shared<u8> slot, Columns sums, Columns scales, u32 tile_width, bool first) const'", 1},
    {"there is no 'Ahead ahead(const Tile&, const BlockPlace&, Shared<u32> scratch) const'", 1},
    {"there is no 'void finish(sums, const Tile&, u32 first, const BlockPlace&, Shared<u8> staging, const Ahead&) "
     "const'",
     1},
    {"the sums and a set of scales for each slot take more than the 512 columns of tensor memory", 1},
    {"slots and staging take more than 227 KiB of shared memory", 1},
    {"slots start at swizzle atoms: their bytes are a multiple of 1024", 1},
    {"a persistent block finishes one accumulator while it fills another, and no other block does", 1},
    {"partial sums land in the slots", 1},
}};

TEST(TensorOperations, AreTakenWhereTheyAreInOrder) {
  const Outcome outcome = compile_for_host(header, "");
  EXPECT_TRUE(outcome.compiled) << outcome.log;
}

TEST(TensorOperations, AreRefusedInASentence) {
  const Outcome outcome = compile_for_host(header, "-DBAD_OPERATIONS");
  EXPECT_FALSE(outcome.compiled);
  expect_refusals(refusals, outcome.log);
  EXPECT_NE(outcome.log.find("Unshaped"), std::string::npos) << outcome.log;
}

TEST(TensorOperations, CompileForBlackwell) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  const std::string text = machine::test::read_file(std::string(THRESHER_SOURCE_DIR) + "/tests/" + header);
  runtime::Program program = machine::test::program_of(header, text, {"thresher::pipeline::test::kernel"});
  program.text = "#include \"" + header + "\"\n";
  program.arch = "sm_100f";
  EXPECT_EQ(runtime::compile(program).kernels.size(), 1U);
}

}  // namespace
}  // namespace thresher::pipeline::test::tensor
