// What inline PTX costs: its accesses are those of the line that holds it.
#include "../testing.h"

#include <map>

#include "analysis/counters.h"
#include "analysis/hooks.h"

using namespace simt::analysis;

namespace {

// A row of `stride` elements of two bytes: 64 lets all rows begin in the same banks.
template <int stride>
__global__ void matrices(const float4* in, float4* out) {
  __shared__ __align__(16) unsigned short tile[32][stride];
  const unsigned t = threadIdx.x, at = static_cast<unsigned>(__cvta_generic_to_shared(tile[t]));
  float4 v;
  asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(in + t));
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w));
  __syncwarp();
  unsigned r[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
  out[t] = make_float4(__uint_as_float(r[0]), __uint_as_float(r[1]), __uint_as_float(r[2]), __uint_as_float(r[3]));
}

struct Sum {
  uint64_t requests = 0, units = 0;
};
Sum sum_of(Space space, Kind kind) {
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  Sum sum;
  for (const auto& [key, site] : counters().kernels().back()->sites)
    if (site.like.space == space && site.like.kind == kind && site.like.size == 16)
      sum.requests += site.requests, sum.units += site.units;
  return sum;
}

}  // namespace

TEST_CASE("vectors and ldmatrix are one request each; rows in the same banks take a wavefront each") {
  Device<float4> in(32), out(32);
  matrices<72><<<1, 32>>>(in.data, out.data);
  CHECK(sum_of(Space::global, Kind::load).requests == 1);
  CHECK(sum_of(Space::global, Kind::load).units == 16);
  CHECK(sum_of(Space::shared, Kind::store).requests == 1);
  CHECK(sum_of(Space::shared, Kind::load).requests == 1);
  CHECK(sum_of(Space::shared, Kind::load).units == 4);
  matrices<64><<<1, 32>>>(in.data, out.data);
  CHECK(sum_of(Space::shared, Kind::load).requests == 1);
  CHECK(sum_of(Space::shared, Kind::load).units == 32);
}
