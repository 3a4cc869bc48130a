# thresher_embed(TARGET SYMBOL files...)
#
# Puts text files into TARGET as data: generates embedded/SYMBOL.hpp, which declares
#   std::span<const thresher::EmbeddedFile> thresher::embedded::SYMBOL();
# and the source that defines it. Files are given relative to src/ and keep that name, which is how device code
# includes them. A changed file rebuilds the data.
function(thresher_embed target symbol)
  set(source_directory ${PROJECT_SOURCE_DIR}/src)
  set(generated_directory ${PROJECT_BINARY_DIR}/generated)
  set(header ${generated_directory}/embedded/${symbol}.hpp)
  set(source ${generated_directory}/embedded/${symbol}.cpp)
  list(TRANSFORM ARGN PREPEND ${source_directory}/ OUTPUT_VARIABLE inputs)
  file(CONFIGURE OUTPUT ${header} @ONLY CONTENT "#pragma once
#include <span>

#include \"core/embedded_file.hpp\"

namespace thresher::embedded {
std::span<const EmbeddedFile> @symbol@();
}
")
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DSYMBOL=${symbol} -DDIRECTORY=${source_directory} "-DFILES=${ARGN}" -DOUTPUT=${source}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
    DEPENDS ${inputs} ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
    COMMENT "Embedding ${symbol}" VERBATIM)
  target_sources(${target} PRIVATE ${source})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${generated_directory}>)
endfunction()
