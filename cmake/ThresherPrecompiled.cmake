# Precompiled headers: the standard library and the heavy packages are parsed once for each kind of target instead of
# once a file. Sources include what they use all the same, so that the build without them (THRESHER_PRECOMPILED_HEADERS
# off) compiles too.
option(THRESHER_PRECOMPILED_HEADERS "Parse the headers of the standard library and of packages once" ON)

set(thresher_standard_headers <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <cstddef> <cstdint> <cstring>
    <filesystem> <fstream> <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <random> <span> <string>
    <string_view> <utility> <vector> <fmt/format.h> <fmt/ranges.h>)

# thresher_precompiled_kind(KIND library|program [OPTIONS ...] [HEADERS ...] [LINK ...]): headers and compiler options that
# targets of KIND share. A program's objects are compiled otherwise than a library's (-fPIE, -fPIC), which is why a kind
# is one or the other.
function(thresher_precompiled_kind kind type)
  cmake_parse_arguments(ARG "" "" "OPTIONS;HEADERS;LINK" ${ARGN})
  set_property(GLOBAL PROPERTY thresher_options_of_${kind} "${ARG_OPTIONS}")
  if(NOT THRESHER_PRECOMPILED_HEADERS)
    return()
  endif()
  file(WRITE ${PROJECT_BINARY_DIR}/generated/precompiled_${kind}.cpp "int main() { return 0; }\n")
  if(type STREQUAL program)
    add_executable(thresher_precompiled_${kind} EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/generated/precompiled_${kind}.cpp)
    target_compile_options(thresher_precompiled_${kind} PRIVATE ${thresher_warnings})  # -Wpedantic changes predefined macros
  else()
    add_library(thresher_precompiled_${kind} STATIC EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/generated/precompiled_${kind}.cpp)
    thresher_library(thresher_precompiled_${kind})
  endif()
  target_compile_options(thresher_precompiled_${kind} PRIVATE ${ARG_OPTIONS})
  target_link_libraries(thresher_precompiled_${kind} PRIVATE thresher_options fmt::fmt ${ARG_LINK})
  target_precompile_headers(thresher_precompiled_${kind} PRIVATE ${thresher_standard_headers} ${ARG_HEADERS})
endfunction()

# thresher_use_precompiled(TARGET KIND)
function(thresher_use_precompiled target kind)
  get_property(options GLOBAL PROPERTY thresher_options_of_${kind})
  target_compile_options(${target} PRIVATE ${options})
  if(THRESHER_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM thresher_precompiled_${kind})
    target_link_libraries(${target} PRIVATE fmt::fmt)
  endif()
endfunction()
