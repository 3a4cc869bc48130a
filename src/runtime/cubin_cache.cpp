#include "runtime/cubin_cache.hpp"

#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

#include "core/fingerprint.hpp"
#include "core/input_file.hpp"
#include "runtime/cache_folder.hpp"

namespace thresher::runtime {
namespace {

namespace fs = std::filesystem;

// Entry: magic, then fields, each a 64-bit length and its bytes, then the fingerprint of all that in hexadecimal.
constexpr std::string_view magic = "thresher cubin 1\n";
constexpr std::size_t checksum_digits = 32;
constexpr std::uint64_t max_entry_bytes = std::uint64_t{256} << 20;

class Writer {
 public:
  void field(std::string_view bytes) {
    number(bytes.size());
    text_ += bytes;
  }
  void number(std::uint64_t value) {
    std::array<char, sizeof value> raw{};
    std::memcpy(raw.data(), &value, sizeof value);
    text_.append(raw.data(), raw.size());
  }
  std::string finish() && {
    std::string whole = std::string(magic) + text_;
    return whole + Fingerprint().add(whole).hex();
  }

 private:
  std::string text_;
};

/// Reads the output of Writer; `failed()` once a field was incomplete.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  std::string_view field() {
    const std::uint64_t length = number();
    if (length > rest_.size()) {
      failed_ = true;
      return {};
    }
    const std::string_view bytes = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return bytes;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    if (rest_.size() < sizeof value) {
      failed_ = true;
      return 0;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  [[nodiscard]] bool complete() const { return !failed_ && rest_.empty(); }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

constexpr int ResourceReport::* resource_members[] = {
    &ResourceReport::registers,        &ResourceReport::stack_bytes,         &ResourceReport::spill_store_bytes,
    &ResourceReport::spill_load_bytes, &ResourceReport::static_shared_bytes, &ResourceReport::barriers};

const char* set_variable(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

std::string entry_name(const std::string& key) { return key + ".cubin"; }

}  // namespace

fs::path CubinCache::default_directory() {
  if (const char* own = set_variable("THRESHER_CACHE")) {
    return own;
  }
  if (const char* cache_home = set_variable("XDG_CACHE_HOME")) {
    return fs::path(cache_home) / "thresher";
  }
  if (const char* home = set_variable("HOME")) {
    return fs::path(home) / ".cache" / "thresher";
  }
  return {};
}

std::optional<Cubin> CubinCache::find(const std::string& key) const {
  if (directory_.empty()) {
    return std::nullopt;
  }
  const InputFile entry = read_input_file(directory_ / entry_name(key), max_entry_bytes);
  return entry.bytes ? deserialise(key, *entry.bytes) : std::nullopt;
}

std::string CubinCache::store(const std::string& key, const Cubin& cubin) const {
  return directory_.empty() ? "there is no cache, because THRESHER_CACHE, XDG_CACHE_HOME and HOME are not set"
                            : keep_file(directory_, entry_name(key), serialise(key, cubin));
}

std::string cache_key(const Program& program, const std::string& toolchain) {
  Fingerprint print;
  print.add(toolchain).add(program.arch).add(program.title).add(program.text);
  for (const std::string_view option : standard_options()) {
    print.add(option);
  }
  print.add("options");
  for (const std::string& option : program.options) {
    print.add(option);
  }
  print.add("kernels");
  for (const std::string& kernel : program.kernels) {
    print.add(kernel);
  }
  print.add("headers");
  for (const EmbeddedFile& header : program.headers) {
    print.add(header.name).add(header.text);
  }
  return print.hex();
}

std::string serialise(const std::string& key, const Cubin& cubin) {
  Writer writer;
  writer.field(key);
  writer.field(cubin.arch);
  writer.field(cubin.toolchain);
  writer.field(cubin.log);
  writer.field({reinterpret_cast<const char*>(cubin.image.data()), cubin.image.size()});
  writer.number(cubin.kernels.size());
  for (const CompiledKernel& kernel : cubin.kernels) {
    writer.field(kernel.expression);
    writer.field(kernel.lowered_name);
    for (const auto member : resource_members) {
      writer.number(static_cast<std::uint64_t>(kernel.resources.*member));
    }
  }
  return std::move(writer).finish();
}

std::optional<Cubin> deserialise(const std::string& key, std::string_view bytes) {
  if (!bytes.starts_with(magic) || bytes.size() < magic.size() + checksum_digits) {
    return std::nullopt;
  }
  const std::string_view checksum = bytes.substr(bytes.size() - checksum_digits);
  const std::string_view whole = bytes.substr(0, bytes.size() - checksum_digits);
  if (Fingerprint().add(whole).hex() != checksum) {
    return std::nullopt;
  }
  Reader reader(whole.substr(magic.size()));
  if (reader.field() != key) {
    return std::nullopt;
  }
  Cubin cubin;
  cubin.arch = reader.field();
  cubin.toolchain = reader.field();
  cubin.log = reader.field();
  const auto image = std::as_bytes(std::span(reader.field()));
  cubin.image.assign(image.begin(), image.end());
  for (std::uint64_t kernels = reader.number(); kernels > 0 && !reader.failed(); --kernels) {
    CompiledKernel kernel;
    kernel.expression = reader.field();
    kernel.lowered_name = reader.field();
    for (const auto member : resource_members) {
      kernel.resources.*member = static_cast<int>(reader.number());
    }
    cubin.kernels.push_back(std::move(kernel));
  }
  return reader.complete() ? std::optional(std::move(cubin)) : std::nullopt;
}

CachedCompilation compile_cached(const Program& program, const CubinCache& cache, const Compiler& compiler,
                                 std::chrono::milliseconds patience) {
  const std::string key = cache_key(program, compiler.toolchain);
  if (std::optional<Cubin> cubin = cache.find(key)) {
    return {.cubin = std::move(*cubin), .was_cached = true, .not_kept = {}};
  }
  std::optional<EntryLock> lock;
  if (!cache.directory().empty()) {
    lock.emplace(cache.directory(), key, patience);
    if (std::optional<Cubin> cubin = cache.find(key)) {  // the previous holder of the lock has made it
      return {.cubin = std::move(*cubin), .was_cached = true, .not_kept = {}};
    }
  }
  CachedCompilation made{.cubin = compiler.compile(program), .was_cached = false, .not_kept = {}};
  made.not_kept = cache.store(key, made.cubin);
  return made;
}

CachedCompilation compile_cached(const Program& program, const CubinCache& cache) {
  constexpr std::chrono::minutes patience{2};  // the longest compilation of a program when all processors are busy
  return compile_cached(program, cache, {nvrtc_toolchain(), compile}, patience);
}

std::optional<Cubin> find_cached(const Program& program, const CubinCache& cache) {
  return cache.find(cache_key(program, nvrtc_toolchain()));
}

}  // namespace thresher::runtime
