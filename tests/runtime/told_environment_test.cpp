// What processes of code from outside are told of the environment: names of a list, and nothing else.
#include "runtime/told_environment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace thresher::runtime {
namespace {

/// Sets variables for as long as it lives.
class Variables {
 public:
  explicit Variables(const std::map<std::string, std::string>& values) {
    for (const auto& [name, value] : values) {
      const char* const before = std::getenv(name.c_str());
      before_[name] = before == nullptr ? nullptr : std::make_unique<std::string>(before);
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  ~Variables() {
    for (const auto& [name, value] : before_) {
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
  }

 private:
  std::map<std::string, std::unique_ptr<std::string>> before_;
};

bool holds(const std::vector<std::string>& told, const std::string& entry) {
  return std::find(told.begin(), told.end(), entry) != told.end();
}

bool has_name(const std::vector<std::string>& told, const std::string& name) {
  return std::any_of(told.begin(), told.end(), [&](const std::string& entry) { return entry.starts_with(name + "="); });
}

TEST(ToldEnvironment, KernelsAreToldLanguageThreadsAndWhereLibrariesAre) {
  const Variables variables({{"LANG", "C.UTF-8"},
                             {"LC_NUMERIC", "C"},
                             {"TZ", "UTC"},
                             {"PATH", "/usr/bin"},
                             {"OMP_NUM_THREADS", "3"},
                             {"CUDA_VISIBLE_DEVICES", "1"},
                             {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
                             {"LD_LIBRARY_PATH", "/opt/lib"}});
  const std::vector<std::string> told = environment_for(Told::kernel);
  for (const char* entry : {"LANG=C.UTF-8", "LC_NUMERIC=C", "TZ=UTC", "PATH=/usr/bin", "OMP_NUM_THREADS=3",
                            "CUDA_VISIBLE_DEVICES=1", "CUDA_DEVICE_ORDER=PCI_BUS_ID", "LD_LIBRARY_PATH=/opt/lib"}) {
    EXPECT_TRUE(holds(told, entry)) << entry;
  }
}

TEST(ToldEnvironment, NobodyIsToldAnythingElse) {
  const Variables variables({{"HOST_SECRET", "x"},
                             {"HOME", "/home/alice"},
                             {"USER", "alice"},
                             {"AWS_SECRET_ACCESS_KEY", "x"},
                             {"LD_PRELOAD", ""},
                             {"PATHS", "x"},
                             {"MY_OMP_", "x"},
                             {"CUDA_VISIBLE_DEVICES_SECRET", "x"},
                             {"LANGUAGE", "x"}});
  for (const Told whom : {Told::kernel, Told::compiler}) {
    const std::vector<std::string> told = environment_for(whom);
    for (const char* name : {"HOST_SECRET", "HOME", "USER", "AWS_SECRET_ACCESS_KEY", "LD_PRELOAD", "PATHS", "MY_OMP_",
                             "CUDA_VISIBLE_DEVICES_SECRET", "LANGUAGE"}) {
      EXPECT_FALSE(has_name(told, name)) << name;
    }
  }
}

TEST(ToldEnvironment, CompilersAreToldLess) {
  const Variables variables({{"OMP_NUM_THREADS", "3"}, {"LANG", "C.UTF-8"}, {"PATH", "/usr/bin"}});
  const std::vector<std::string> told = environment_for(Told::compiler);
  EXPECT_FALSE(has_name(told, "OMP_NUM_THREADS"));
  EXPECT_FALSE(has_name(told, "LANG"));
  EXPECT_TRUE(holds(told, "PATH=/usr/bin"));
}

TEST(ToldEnvironment, WhatTheJudgeSetsComesBeforeTheHosts) {
  const Variables variables({{"PATH", "/usr/bin"}, {"HOME", "/home/alice"}});
  const std::vector<std::string> told = environment_for(Told::compiler, {{"PATH", "/bin"}, {"HOME", "/tmp/x"}});
  EXPECT_TRUE(holds(told, "PATH=/bin"));
  EXPECT_TRUE(holds(told, "HOME=/tmp/x"));
  EXPECT_FALSE(holds(told, "PATH=/usr/bin"));
  EXPECT_FALSE(holds(told, "HOME=/home/alice"));
}

}  // namespace
}  // namespace thresher::runtime
