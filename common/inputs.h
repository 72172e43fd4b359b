// Test inputs from a counter-based generator: the same seed gives the same bits on every machine and thread count.
#pragma once
#include <cstdint>

namespace ladder {

// rows × cols floats. Rows differ in kind (row modulo 8) so that each term of the formula matters somewhere: ordinary
// rows; rows near 1e-3, where mean(x²) is below eps; rows near 1e3; a row of zeros (never the first). The last column
// is heavy, about a twentieth of the row's sum of squares, so that a sum that drops the tail is visibly wrong.
void fill_input(float* input, int64_t rows, int64_t cols, uint64_t seed);

// cols floats of either sign, magnitude 0.5 to 1.5: never near 1 as a whole, never zero.
void fill_weight(float* weight, int64_t cols, uint64_t seed);

}  // namespace ladder
