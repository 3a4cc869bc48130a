# thresher_layer(NAME SOURCES ... [DEPENDS layer ...] [LINK library ...] [PRECOMPILED kind])
#
# One static library thresher_NAME (alias thresher::NAME) from the files of src/NAME. DEPENDS names the layers below it
# that its public headers need or its sources call; LINK names third-party libraries. The direction of dependence is
# the order of add_subdirectory in the top CMakeLists.txt: a layer can only depend on one that was added before it.
add_library(thresher_options INTERFACE)
target_compile_features(thresher_options INTERFACE cxx_std_20)
install(TARGETS thresher_options EXPORT thresher-targets)
# For the project's own files alone: who builds Thresher as a part of something else chooses their own warnings.
# g++ 12 sees strings overrun, overlap and overflow inside std::string where they do not: whether it does depends on how long
# the path is that a build lies under.
set(thresher_warnings -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Werror)

# thresher_compile_together(TARGET SOURCE...): up to six files of one folder are one translation unit, since most of the time
# goes into headers and templates that all of them use. What is unnamed or static is so in all of them: it needs a name of its
# own in its folder. What the build writes stays apart, and so does what Highway compiles once for each kind of processor.
function(thresher_compile_together target)
  foreach(source IN LISTS ARGN)
    if(IS_ABSOLUTE ${source} OR NOT source MATCHES "\\.cpp$")
      continue()
    endif()
    file(STRINGS ${source} compiled_often REGEX "hwy/foreach_target.h")
    if(compiled_often)
      continue()
    endif()
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "of_${folder}" folder)
    if(NOT DEFINED members_${folder})
      set(members_${folder} 0)
    endif()
    math(EXPR part "${members_${folder}} / 6")
    math(EXPR members_${folder} "${members_${folder}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${part})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # g++ takes what is unnamed in such a file for a header's.
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
endfunction()

# thresher_library(TARGET): how every library of the project is compiled.
function(thresher_library target)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE ${thresher_warnings})
endfunction()

function(thresher_layer name)
  cmake_parse_arguments(ARG "" "PRECOMPILED" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_library(thresher_${name} STATIC ${ARG_SOURCES})
  add_library(thresher::${name} ALIAS thresher_${name})
  set_target_properties(thresher_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(thresher_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(thresher_${name} PUBLIC thresher_options)
  thresher_library(thresher_${name})
  foreach(dependency IN LISTS ARG_DEPENDS)
    if(NOT TARGET thresher_${dependency})
      message(FATAL_ERROR "Layer ${name} depends on ${dependency}, which is not below it")
    endif()
    target_link_libraries(thresher_${name} PUBLIC thresher_${dependency})
  endforeach()
  target_link_libraries(thresher_${name} PRIVATE ${ARG_LINK})
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED library)
  endif()
  thresher_use_precompiled(thresher_${name} ${ARG_PRECOMPILED})
  thresher_compile_together(thresher_${name} ${ARG_SOURCES})
endfunction()

# thresher_test(NAME SOURCES ... [DEPENDS layer ...] [LINK library ...] [LABEL label] [PREFIX prefix])
#
# One GoogleTest executable test_NAME; every TEST becomes a ctest test with the label (cpu by default), its name
# after the prefix where two executables share their tests (a folder's tests with one name would share their labels too).
function(thresher_test name)
  cmake_parse_arguments(ARG "" "PREFIX;LABEL" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_executable(test_${name} ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPENDS PREPEND thresher::)
  target_link_libraries(test_${name} PRIVATE ${ARG_DEPENDS} ${ARG_LINK} GTest::gtest_main)
  target_compile_options(test_${name} PRIVATE ${thresher_warnings})
  target_compile_definitions(test_${name} PRIVATE THRESHER_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if("nlohmann_json::nlohmann_json" IN_LIST ARG_LINK)
    thresher_use_precompiled(test_${name} json_tests)
  else()
    thresher_use_precompiled(test_${name} tests)
  endif()
  thresher_compile_together(test_${name} ${ARG_SOURCES})
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  # One: gtest_discover_tests takes a second for a property's name, and loses those behind it.
  if(NOT ARG_LABEL)
    set(ARG_LABEL cpu)
  endif()
  # Several tests share the processors: threads of OpenMP that look for work would keep them from each other.
  gtest_discover_tests(test_${name} TEST_PREFIX "${ARG_PREFIX}" DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 300 ENVIRONMENT "OMP_WAIT_POLICY=passive")
endfunction()
