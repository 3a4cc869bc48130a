# Precompiled headers: the standard library and the heavy packages are parsed once for each kind of target instead of
# once a file. Sources include what they use all the same, so that the build without them (THRESHER_PRECOMPILED_HEADERS
# off) compiles too.
option(THRESHER_PRECOMPILED_HEADERS "Parse the headers of the standard library and of packages once" ON)

set(thresher_standard_headers <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <cstddef> <cstdint> <cstring>
    <filesystem> <fstream> <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <random> <span> <string>
    <string_view> <utility> <vector> <fmt/format.h> <fmt/ranges.h>)

# thresher_precompiled_kind(KIND library|program [HEADERS ...] [LINK ...]): headers that targets of KIND share.
# A program's objects are compiled otherwise than a library's (-fPIE, -fPIC), which is why a kind is one or the other.
function(thresher_precompiled_kind kind type)
  if(NOT THRESHER_PRECOMPILED_HEADERS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "HEADERS;LINK" ${ARGN})
  file(WRITE ${PROJECT_BINARY_DIR}/generated/precompiled_${kind}.cpp "int main() { return 0; }\n")
  if(type STREQUAL program)
    add_executable(thresher_precompiled_${kind} EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/generated/precompiled_${kind}.cpp)
  else()
    add_library(thresher_precompiled_${kind} STATIC EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/generated/precompiled_${kind}.cpp)
  endif()
  target_link_libraries(thresher_precompiled_${kind} PRIVATE thresher_options fmt::fmt ${ARG_LINK})
  target_compile_options(thresher_precompiled_${kind} PRIVATE ${thresher_warnings})  # -Wpedantic changes predefined macros
  target_precompile_headers(thresher_precompiled_${kind} PRIVATE ${thresher_standard_headers} ${ARG_HEADERS})
endfunction()

# thresher_use_precompiled(TARGET KIND)
function(thresher_use_precompiled target kind)
  if(THRESHER_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM thresher_precompiled_${kind})
    target_link_libraries(${target} PRIVATE fmt::fmt)
  endif()
endfunction()
