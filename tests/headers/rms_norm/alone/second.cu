#include <rms_norm/rms_norm.cuh>

cudaError_t call(const float* x, float* y);

int main() {
  rms_norm::Options options;
  options.eps = 1e-5f;
  const auto* x = static_cast<const __nv_bfloat16*>(nullptr);
  const auto* weight = static_cast<const float*>(nullptr);
  const auto error = rms_norm::fused_add_rms_norm(x, x, static_cast<__nv_bfloat16*>(nullptr), weight,
                                                  static_cast<__half*>(nullptr), 1, 1, options);
  return call(nullptr, nullptr) == cudaErrorInvalidValue && error == cudaErrorInvalidValue ? 0 : 1;
}
