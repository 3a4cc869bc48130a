#pragma once
/// The machine code of one kernel in a cubin, without the names that the compiler gave it.
#include <elf.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/fingerprint.hpp"

namespace thresher::test {

class CubinSections {
 public:
  /// `image` has to outlive this.
  explicit CubinSections(std::span<const std::byte> image)
      : image_(reinterpret_cast<const char*>(image.data()), image.size()) {
    const auto header = read<Elf64_Ehdr>(0);
    if (!image_.starts_with(ELFMAG)) {
      throw std::runtime_error("a cubin is no ELF file");
    }
    const auto names = read<Elf64_Shdr>(header.e_shoff + sizeof(Elf64_Shdr) * header.e_shstrndx);
    for (std::size_t i = 0; i < header.e_shnum; ++i) {
      const auto section = read<Elf64_Shdr>(header.e_shoff + sizeof(Elf64_Shdr) * i);
      const std::string_view name = image_.substr(names.sh_offset + section.sh_name);
      sections_.push_back({name.substr(0, name.find('\0')),
                           section.sh_type == SHT_NOBITS ? "" : image_.substr(section.sh_offset, section.sh_size)});
    }
  }

  /// Empty where there is no such section.
  [[nodiscard]] std::string_view find(std::string_view name) const {
    for (const Section& section : sections_) {
      if (section.name == name) {
        return section.bytes;
      }
    }
    return {};
  }

  /// "Cuda compilation tools, release 13.0, V13.0.88", whose machine code another release need not make.
  [[nodiscard]] std::string compiler() const {
    const std::string_view note = find(".note.nv.tkinfo");
    const std::size_t start = note.find("Cuda compilation tools");
    return start == std::string_view::npos ? "unknown" : std::string(note.substr(start).data());
  }

 private:
  struct Section {
    std::string_view name;
    std::string_view bytes;
  };
  template <class Struct>
  [[nodiscard]] Struct read(std::size_t offset) const {
    Struct value;
    std::memcpy(&value, image_.substr(offset, sizeof value).data(), sizeof value);
    return value;
  }

  std::string_view image_;
  std::vector<Section> sections_;
};

/// The instructions of a kernel, and the literals that the compiler put beside them. No kernel reads a table or a
/// constant of the program: those lie in the order of their names, so a new name would change the instructions too.
inline std::string code_hash(const CubinSections& cubin, const std::string& lowered_name) {
  const std::string_view instructions = cubin.find(".text." + lowered_name);
  if (instructions.empty()) {
    throw std::runtime_error("a cubin has no kernel " + lowered_name);
  }
  return Fingerprint()
      .add(instructions)
      .add(cubin.find(".nv.constant2." + lowered_name))
      .add(cubin.find(".nv.constant3"))
      .hex();
}

}  // namespace thresher::test
