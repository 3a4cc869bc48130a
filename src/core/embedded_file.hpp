#pragma once
/// Text that the build embeds in the library, so that nothing is read from disk at run time (see thresher_embed in
/// cmake/ThresherEmbed.cmake).
#include <string_view>

namespace thresher {

struct EmbeddedFile {
  std::string_view name;  ///< as an #include directive writes it, e.g. "machine/ptx/barrier.hpp"
  std::string_view text;
};

}  // namespace thresher
