// The parts of the test program. Each prints a line for what it checked, and returns how many checks failed.
#pragma once

namespace q4_header_test {

int arguments();
int activations();
int rounded_scales();
int devices(bool cpu);
int repeated(bool cpu);
int batch_invariance();

}  // namespace q4_header_test
