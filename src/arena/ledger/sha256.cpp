#include "arena/ledger/sha256.hpp"

#include <openssl/evp.h>

#include <array>

#include "thresher/error.hpp"

namespace thresher::arena {

std::string sha256(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned bytes = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &bytes, EVP_sha256(), nullptr) != 1) {
    throw Error(ErrorCode::internal, "the cryptographic library computes no SHA-256");
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (unsigned i = 0; i < bytes; ++i) {
    hex += digits[digest[i] >> 4];
    hex += digits[digest[i] & 0xF];
  }
  return hex;
}

}  // namespace thresher::arena
