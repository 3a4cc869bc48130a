# Configures tests/install/consumer, which takes Thresher in by add_subdirectory, and checks its files with the flags
# that it got. usage: cmake -DBUILD=... -DSOURCE=... -DCOMPILER=... -P add_subdirectory.cmake
function(must)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${output}")
  endif()
endfunction()

set(work ${BUILD}/tests/install/consumer)
file(REMOVE_RECURSE ${work})
must(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/tests/install/consumer -B ${work} -DTHRESHER_SOURCE=${SOURCE}
  -DCMAKE_CXX_COMPILER=${COMPILER})

file(STRINGS ${work}/compile_commands.json commands REGEX "\"command\".*/(careless|strict)\\.cpp\"")
list(LENGTH commands count)
if(NOT count EQUAL 2)
  message(FATAL_ERROR "${count} of the consumer's 2 files were found")
endif()
foreach(command IN LISTS commands)
  string(REGEX REPLACE "^ *\"command\": \"(.*)\",?$" "\\1" command "${command}")
  separate_arguments(command UNIX_COMMAND "${command}")
  must(${command} -fsyntax-only)
endforeach()

file(STRINGS ${work}/compile_commands.json own REGEX "\"command\".*/src/core/CMakeFiles/[^ ]*unity[^ ]*\.cxx\"")
foreach(flag -fPIC -Werror)
  if(NOT own MATCHES " ${flag} ")
    message(FATAL_ERROR "Thresher's own file is compiled without ${flag}: ${own}")
  endif()
endforeach()
