# Run by thresher_embed: writes OUTPUT, a C++ source that holds FILES (relative to DIRECTORY) as raw string literals.
set(entries "")
foreach(name IN LISTS FILES)
  file(READ ${DIRECTORY}/${name} text)
  string(APPEND entries "    {\"${name}\", R\"thresher_text(${text})thresher_text\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"embedded/${SYMBOL}.hpp\"

namespace thresher::embedded {
namespace {
constexpr EmbeddedFile files[] = {
${entries}};
}  // namespace

std::span<const EmbeddedFile> ${SYMBOL}() { return files; }
}  // namespace thresher::embedded
")
