// The type of all elements of a call that chooses it when it runs, and the way from there to a template.
#pragma once

struct __half;
struct __nv_bfloat16;

namespace ladder {

enum class Dtype { half, bfloat16, float32 };

// Calls body with a null pointer of the type: dispatch(call.dtype, [&](auto* type) { ... }).
template <class Body>
void dispatch(Dtype dtype, Body body) {
  if (dtype == Dtype::half) return body(static_cast<__half*>(nullptr));
  if (dtype == Dtype::bfloat16) return body(static_cast<__nv_bfloat16*>(nullptr));
  body(static_cast<float*>(nullptr));
}

}  // namespace ladder
