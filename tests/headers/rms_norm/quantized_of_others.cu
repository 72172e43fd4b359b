// Other types that end in 8 bits: the other formats, and float32 and float16.
#include "tests/headers/rms_norm/quantized.h"

namespace header_test {

static const bool added = [] {
  quantized_forms().push_back([](std::vector<Group>& groups, bool quick) {
    add_quantized<__nv_bfloat16, void, float, int8_t>(groups, quick);
    add_quantized<__half, void, float, __nv_fp8_e5m2>(groups, quick);
    add_quantized<float, float, float, __nv_fp8_e4m3>(groups, quick);
  });
  return true;
}();

}  // namespace header_test
