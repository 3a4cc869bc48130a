// A stand-in for NVRTC that knows everything and compiles nothing, because it cannot open its built-in functions.
#include <cstddef>
#include <cstring>

namespace {

constexpr int success = 0;
constexpr int builtin_failure = 7;
constexpr char log[] =
    "nvrtc: error: failed to open libnvrtc-builtins.so.13.0.\n  Make sure that libnvrtc-builtins.so.13.0 is installed "
    "correctly.";

}  // namespace

extern "C" {
const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"; }
int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return success;
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return success;
}
int nvrtcGetSupportedArchs(int* archs) {
  *archs = 90;
  return success;
}
int nvrtcCreateProgram(void** program, const char*, const char*, int, const char* const*, const char* const*) {
  *program = nullptr;
  return success;
}
int nvrtcDestroyProgram(void**) { return success; }
int nvrtcCompileProgram(void*, int, const char* const*) { return builtin_failure; }
int nvrtcGetCUBINSize(void*, std::size_t*) { return builtin_failure; }
int nvrtcGetCUBIN(void*, char*) { return builtin_failure; }
int nvrtcGetProgramLogSize(void*, std::size_t* bytes) {
  *bytes = sizeof log;
  return success;
}
int nvrtcGetProgramLog(void*, char* to) {
  std::memcpy(to, log, sizeof log);
  return success;
}
int nvrtcAddNameExpression(void*, const char*) { return success; }
int nvrtcGetLoweredName(void*, const char*, const char**) { return builtin_failure; }
}
