// The form that ledgers keep parts of a record in: what was written once is read for ever.
#include "arena/results/record_json.hpp"

#include <gtest/gtest.h>

namespace thresher::arena {
namespace {

const MachineInfo host{"a CPU", 2, 1024, 512, 2400.5, "an OS", "a kernel", true, "avx2"};
constexpr const char* host_json =
    R"({"clock_mhz":2400.5,"cpu":"a CPU","device":"cpu","instructions":"avx2","kernel":"a kernel",)"
    R"("last_level_cache_bytes":512,"memory_bytes":1024,"operating_system":"an OS","processors":2,)"
    R"("virtual_machine":true})";

TEST(RecordJson, AGpuIsDescribedWithItsHost) {
  EXPECT_EQ(to_json(Machine{"cpu", host}), host_json);
  const GpuInfo gpu{"NVIDIA H200", "sm_90a", 132, 1980, 4096, 2048, 700, "580.1", "13.0", "13.1", 130100};
  EXPECT_EQ(to_json(Machine{"cuda:0", host, gpu}),
            R"({"arch":"sm_90a","clock_mhz":1980.0,"cublaslt":130100,"device":"cuda:0","driver":"580.1",)"
            R"("driver_cuda":"13.0","gpu":"NVIDIA H200","host":)" +
                std::string(host_json) +
                R"(,"last_level_cache_bytes":2048,"memory_bytes":4096,"multiprocessors":132,"nvrtc":"13.1",)"
                R"("power_limit_w":700.0})");
}

TEST(RecordJson, AToolchainIsVersionsAndFlags) {
  EXPECT_EQ(to_json(Toolchain{"0.2.0", "GCC 12.2.0", "Release", "-O3", "3.0.1", "3.40.1"}),
            R"({"build_type":"Release","compiler":"GCC 12.2.0","flags":"-O3","onednn":"3.0.1","sqlite":"3.40.1",)"
            R"("thresher":"0.2.0"})");
}

TEST(RecordJson, ClocksAreReadBackAsTheyWereWritten) {
  EXPECT_EQ(to_json(ClockSummary{"wall clock", 2400.0, 2600.5, {"power cap", "heat"}}),
            R"({"clock":"wall clock","highest_mhz":2600.5,"lowest_mhz":2400.0,)"
            R"("throttle_reasons":["heat","power cap"]})");
  for (const char* json : {R"({"clock":"wall clock","highest_mhz":2600.5,"lowest_mhz":2400.0,"throttle_reasons":[]})",
                           R"({"clock":"wall clock","throttle_reasons":["heat"]})", "{}"}) {
    EXPECT_EQ(to_json(clocks_from_json(json)), json);
  }
}

TEST(RecordJson, SuitesAreNamedInTheArguments) {
  EXPECT_EQ(suites_from_json(R"({"seconds":6,"suites":[{"name":"origin","text":""},{"name":"edges"}]})"),
            (std::vector<std::string>{"origin", "edges"}));
  EXPECT_TRUE(suites_from_json("{}").empty());
}

}  // namespace
}  // namespace thresher::arena
