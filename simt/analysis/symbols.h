// The program's symbols: to whom code belongs, and which variable is at an address.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "lockstep.h"

namespace simt::analysis {

enum class Owner : uint8_t {
  student,
  library,  // the C++ library: what it accesses, it accesses for its caller
  device,   // the CPU device and its headers: their own state is not analysed
};

Owner owner_of(uintptr_t code);

// The place in the student's code that led to a call: the call itself, or the first of the student's above it.
Call students_call(Call call);  // passes over the C++ library only; its pc is zero where the device calls for itself
Call calling_call(Call call);   // passes over the device as well

// A variable of the program in memory that can be written; false where there is none, it is __constant__, or it is not
// the student's.
struct Variable {
  std::string name;
  uintptr_t begin;
  size_t size;
};
bool is_program_data(uintptr_t address);
bool find_variable(uintptr_t address, Variable& found);

// The demangled name of the function at an address without its parameters, or nothing.
std::string function_name(uintptr_t code);

}  // namespace simt::analysis
