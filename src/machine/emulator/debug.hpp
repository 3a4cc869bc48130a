#pragma once
/// Names and expectations, for findings.
#include "machine/debug.hpp"
#include "machine/emulator/barrier.hpp"
#include "machine/emulator/engine/calls.hpp"

namespace thresher::machine::debug {

inline void role(const char* name, u32 index) { emulator::calls::set_role(name, index); }
inline void name_barrier(Barrier barrier, const char* name, u32 index) {
  emulator::calls::name_barrier(barrier.address, name, index);
}
inline void name_shared(Shared<u8> start, u32 bytes, const char* name, u32 index) {
  emulator::calls::name_shared(start.address, bytes, name, index);
}
inline void expect(bool condition, const char* sentence, Site site) {
  emulator::calls::expect(condition, sentence, site);
}

}  // namespace thresher::machine::debug
