#include "arena/pitches/kernel_options.hpp"

#include <algorithm>
#include <array>
#include <regex>
#include <sstream>
#include <string_view>

namespace thresher::arena::user_kernels {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest = 1000;

template <std::size_t count>
bool begins_with_one_of(const std::string& option, const std::array<std::string_view, count>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return option.starts_with(word); });
}

/// -D and -U with the name attached; the value may be anything without control characters.
bool defines(const std::string& option) {
  static const std::regex macro(
      R"(-(D[A-Za-z_][A-Za-z0-9_]*(\([A-Za-z0-9_, .]*\))?(=[^\x00-\x1f\x7f]*)?|U[A-Za-z_][A-Za-z0-9_]*))");
  return std::regex_match(option, macro);
}

/// -f and -m start hundreds of options; these read or write files, load plugins or change the compiled source.
constexpr std::array<std::string_view, 28> refused_of_host{"-fplugin",        "-fpass-plugin",
                                                           "-fdump",          "-fprofile",
                                                           "-fauto-profile",  "-fbranch-probabilities",
                                                           "-ftest-coverage", "-fmodule",
                                                           "-fpch",           "-fuse-ld",
                                                           "-fsave",          "-fopt-info",
                                                           "-fcallgraph",     "-fcompare-debug",
                                                           "-fdiagnostics",   "-ffile-prefix",
                                                           "-fmacro-prefix",  "-fdebug",
                                                           "-fstack-usage",   "-fself-test",
                                                           "-foffload",       "-fworking-directory",
                                                           "-fsyntax-only",   "-fembed",
                                                           "-flto-",          "-fada",
                                                           "-finput-charset", "-mllvm"};

bool is_allowed_on_host(const std::string& option) {
  static const std::regex kinds(
      R"(-O([0-3gsz]|fast)?|-[fm][a-z0-9][A-Za-z0-9_+.,=-]*|-std=[a-z0-9+:]+|--param=[a-z0-9-]+=[0-9]+)"
      R"(|-W[a-z0-9][A-Za-z0-9_+=-]*|-g[0-3]?|-ggdb[0-3]?|-w|-pthread|-pedantic)"
      R"(|-l(m|c|dl|rt|gomp|omp|pthread|atomic|stdc\+\+|quadmath))");
  return std::regex_match(option, kinds) && !begins_with_one_of(option, refused_of_host);
}

bool is_allowed_on_gpu(const std::string& option) {
  static const std::regex kinds(
      R"(--?(use_fast_math|extra-device-vectorization|restrict|generate-line-info|lineinfo|disable-warnings|w))"
      R"(|--?(device-int128|minimal|extensible-whole-program|ewp))"
      R"(|--?(ftz|prec-sqrt|prec-div|fmad)=(true|false))"
      R"(|--?maxrregcount=[0-9]+|--?std=c\+\+[0-9]+|--?diag-(suppress|warn|error)=[0-9,]+)"
      R"(|--(define-macro|undefine-macro)=[A-Za-z_][A-Za-z0-9_]*(=[^\x00-\x1f\x7f]*)?)");
  static const std::regex ptxas(
      R"(-v|-O[0-4]|--warn-on-spills|--warn-on-local-memory-usage|-dlcm=[a-z]+|--maxrregcount=[0-9]+)"
      R"(|--allow-expensive-optimizations=(true|false))");
  constexpr std::string_view for_ptxas = "--ptxas-options=";
  if (!option.starts_with(for_ptxas)) {
    return std::regex_match(option, kinds);
  }
  std::istringstream words(option.substr(for_ptxas.size()) + ",");
  bool all = option.size() > for_ptxas.size();
  for (std::string word; std::getline(words, word, ',');) {
    all = all && std::regex_match(word, ptxas);
  }
  return all;
}

}  // namespace

std::optional<fs::path> include_folder(const std::string& option) {
  constexpr std::string_view long_name = "--include-path=";
  return option.starts_with(long_name) ? std::optional(fs::path(option.substr(long_name.size())))
         : option.starts_with("-I")    ? std::optional(fs::path(option.substr(2)))
                                       : std::nullopt;
}

std::string option_obstacle(Language language, const std::string& option) {
  if (const auto folder = include_folder(option)) {
    const fs::path inside = folder->lexically_normal();
    const bool is_below =
        !inside.empty() && inside.is_relative() && *inside.begin() != ".." && inside.native()[0] != '-';
    return is_below ? "" : "names no folder beside the kernel or below";
  }
  const bool is_host = language == Language::host;
  const bool is_known = option.size() <= longest &&
                        (defines(option) || (is_host ? is_allowed_on_host(option) : is_allowed_on_gpu(option)));
  return is_known ? ""
         : is_host
             ? "is none that a pitch may ask of a C++ compiler (-O, -m, -f without files and plugins, -std, -D, -U, "
               "-W, -g, -I beside the kernel, -l of the system's m, gomp and pthread)"
             : "is none that a pitch may ask of NVRTC (--use_fast_math, --maxrregcount=, --std=, -D, -U, "
               "--ptxas-options= of -v, -O and -dlcm, -I beside the kernel, arithmetic and warnings)";
}

}  // namespace thresher::arena::user_kernels
