// Turns addresses of code into places in the source, by the debug information of the program and of its shared objects.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace simt {

// What is not known is empty, or 0.
struct Frame {
  std::string function;  // as the linker knows it
  std::string file;
  int line = 0;
};

// The calls that the compiler has inlined at an instruction, the innermost first, and the function around them.
// Of a return address, the call stands one byte before.
std::vector<Frame> frames_of(uintptr_t pc);

struct Place {
  std::string file;  // its real path
  int line = 0;
};

// The innermost of these frames in the student's own code: those of the CPU device and of the system's headers are
// walked out of.
Place students_place(uintptr_t pc);

// The path without links and dots; the path itself where there is no such file.
std::string real_path(const std::string& path);

// The function of the program at an address, if it is none of the runtime's own and none without debug information.
struct CodeRange {
  uintptr_t begin = 0, end = 0;
};
CodeRange program_function_at(uintptr_t code);

// Whether the function at an address stands in the CPU device's headers; false also where that is not known.
bool stands_in_headers(uintptr_t code);

// The linker's name of the function at an address, or nothing.
std::string symbol_of(uintptr_t code);

}  // namespace simt
