# thresher_install(layer ...): installs the layers as static libraries with the public headers and the CMake package.
# find_package(thresher) then gives thresher::thresher for C++, and thresher::c, the shared library of the C interface.
include(CMakePackageConfigHelpers)

function(thresher_install)
  add_library(thresher_thresher INTERFACE)
  set_target_properties(thresher_thresher PROPERTIES EXPORT_NAME thresher)
  add_library(thresher::thresher ALIAS thresher_thresher)
  target_link_libraries(thresher_thresher INTERFACE thresher_ops)

  list(TRANSFORM ARGN PREPEND thresher_ OUTPUT_VARIABLE targets)
  install(TARGETS ${targets} thresher_thresher EXPORT thresher-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/thresher DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/thresher)
  install(EXPORT thresher-targets NAMESPACE thresher:: DESTINATION ${package})
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/thresher-config.cmake.in
    ${PROJECT_BINARY_DIR}/thresher-config.cmake INSTALL_DESTINATION ${package})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/thresher-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/thresher-config.cmake ${PROJECT_BINARY_DIR}/thresher-config-version.cmake
    DESTINATION ${package})
endfunction()
