// The gradients of x in float32 and float16.
#include "tests/headers/rms_norm/backward.h"

namespace header_test {

static const bool added = [] {
  gradients().push_back([](std::vector<Group>& groups, bool quick) {
    begin_with<float>(groups, quick), add_others<float>(groups, quick);
    begin_with<__half>(groups, quick), add_others<__half>(groups, quick);
  });
  return true;
}();

}  // namespace header_test
