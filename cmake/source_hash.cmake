cmake_minimum_required(VERSION 3.25)
# Hashes every file under src/ and include/ of DIRECTORY and writes OUTPUT, a C++ source that returns the hash, when it
# has changed. Run at every build (src/arena/CMakeLists.txt).
file(GLOB_RECURSE files RELATIVE ${DIRECTORY} ${DIRECTORY}/src/* ${DIRECTORY}/include/*)
list(SORT files)
set(hashes "")
foreach(name IN LISTS files)
  file(SHA256 ${DIRECTORY}/${name} hash)
  string(APPEND hashes "${name} ${hash}\n")
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 16 hash)
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT "#include \"arena/contestants/toolchain.hpp\"

namespace thresher::arena {

std::string source_hash() { return \"@hash@\"; }

}  // namespace thresher::arena
")
