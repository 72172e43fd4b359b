// Prints what is known of its own addresses and of those of a shared object, for test_places.py.
#include "runtime/places.h"

#include <cstdio>

#include <here.h>  // of the device: inlined_from_a_header()

uintptr_t here_in_the_library();

namespace {

// The call, wherever the compiler inlines it.
inline __attribute__((always_inline)) uintptr_t inlined() { return here(); }

void show(const char* name, uintptr_t pc) {
  for (const simt::Frame& frame : simt::frames_of(pc))
    std::printf("%s frame: %s:%d\n", name, frame.file.c_str(), frame.line);
  const simt::Place place = simt::students_place(pc);
  std::printf("%s place: %s:%d\n", name, place.file.c_str(), place.line);
}

}  // namespace

void named(int) {}

int main() {
  show("own", inlined());
  show("header", inlined_from_a_header());
  show("library", here_in_the_library());
  show("nowhere", 16);
  show("data", uintptr_t(&stdout));
  std::printf("the symbol: %s\n", simt::symbol_of(uintptr_t(&named)).c_str());
  std::printf("no symbol: %s\n", simt::symbol_of(16).c_str());
}
