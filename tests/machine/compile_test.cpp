// Every kernel that the primitives' tests name compiles for Hopper, without warnings, on any machine that has NVRTC.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "machine/device_program.hpp"

namespace thresher::machine::test {
namespace {

/// Name expressions by header, as the tests write them.
std::map<std::string, std::set<std::string>> named_kernels() {
  const std::string folder = std::string(THRESHER_SOURCE_DIR) + "/tests/machine/";
  const std::regex named(R"re(RIG_KERNEL\("([a-z_]+\.hpp)",\s*([A-Za-z_0-9<>:,\s]+?)\))re");
  const std::regex products(R"re(  MULTIPLIES\(([A-Za-z_0-9:,\s]+)\);)re");
  std::map<std::string, std::set<std::string>> kernels;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".cpp" || entry.path().filename() == "compile_test.cpp") {
      continue;
    }
    const std::string text = read_file(entry.path());
    for (std::sregex_iterator match(text.begin(), text.end(), named), end; match != end; ++match) {
      if ((*match)[2].str().find("__VA_ARGS__") == std::string::npos) {
        kernels["machine/kernels/" + (*match)[1].str()].insert((*match)[2]);
      }
    }
    for (std::sregex_iterator match(text.begin(), text.end(), products), end; match != end; ++match) {
      kernels["machine/kernels/products.hpp"].insert("product<" + (*match)[1].str() + ">");
    }
  }
  return kernels;
}

TEST(PrimitiveKernels, CompileForHopper) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  const auto kernels = named_kernels();
  EXPECT_EQ(kernels.size(), 6U);
  for (const auto& [header, expressions] : kernels) {
    SCOPED_TRACE(header);
    const std::string text = read_file(std::string(THRESHER_SOURCE_DIR) + "/tests/" + header);
    const runtime::Cubin cubin = runtime::compile(program_of(header, text, {expressions.begin(), expressions.end()}));
    EXPECT_EQ(cubin.kernels.size(), expressions.size());
    EXPECT_EQ(cubin.log.find("warning"), std::string::npos) << cubin.log;
  }
}

// The rings that the emulator runs, for the cards that they are for: no spills, no warnings.
TEST(TensorKernels, CompileForBlackwell) {
  if (!runtime::nvrtc_status().problem.empty()) {
    GTEST_SKIP() << runtime::nvrtc_status().problem;
  }
  const auto shapes = [](const std::string& tile, const std::string& element) {
    return "planted::tensor_shapes<planted::TensorTile{thresher::machine::Group::" + tile +
           "}, thresher::machine::" + element + ">";
  };
  const std::string kind = "thresher::machine::tcgen05::Kind::";
  const std::vector<std::pair<std::string, std::vector<std::string>>> kernels = {
      {"tensor_ring", {"planted::tensor_ring"}},
      {"tensor_pair", {"planted::tensor_pair"}},
      {"tensor_neighbours", {"planted::tensor_neighbours"}},
      {"tensor_shapes",
       {shapes("block, " + kind + "f16, 64, 64", "BFloat16"), shapes("pair, " + kind + "f16, 128, 64", "Half"),
        shapes("pair, " + kind + "f8f6f4, 256, 32", "E4M3"), shapes("block, " + kind + "nvfp4, 128, 256", "Half")}}};
  for (const auto& [name, expressions] : kernels) {
    const std::string header = "emulator/kernels/" + name + ".hpp";
    const std::string text = read_file(std::string(THRESHER_SOURCE_DIR) + "/tests/" + header);
    for (const char* arch : {"sm_100f", "sm_103a"}) {
      runtime::Program program = program_of(header, text, expressions);
      program.text = "#include \"" + header + "\"\n";
      program.arch = arch;
      const runtime::Cubin cubin = runtime::compile(program);
      ASSERT_EQ(cubin.kernels.size(), expressions.size()) << arch;
      EXPECT_EQ(cubin.log.find("warning"), std::string::npos) << cubin.log;
      for (const auto& kernel : cubin.kernels) {
        EXPECT_EQ(kernel.resources.spill_store_bytes, 0) << arch;
      }
    }
  }
}

}  // namespace
}  // namespace thresher::machine::test
