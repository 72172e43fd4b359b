// Inline PTX against the same in C++: arithmetic, conversions, memory, lanes and tensor cores.
#include "testing.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>

// --- Arithmetic ----------------------------------------------------------------------------------------------------

template <class T, class Kernel>
std::vector<T> run(size_t count, Kernel kernel, unsigned threads = 1) {
  Device<T> out(count);
  kernel<<<1, threads>>>(out.data);
  return out.host();
}

__global__ void integers(unsigned* out) {
  unsigned a = 0xdeadbeef, b = 12, r;
  asm("add.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  out[0] = r;
  asm("mad.lo.s32 %0, %1, %2, -5;" : "=r"(r) : "r"(a), "r"(b));
  out[1] = r;
  asm("lop3.b32 %0, %1, %2, %3, 0xE8;" : "=r"(r) : "r"(a), "r"(0xffu), "r"(0xff00ff00u));  // the majority
  out[2] = r;
  asm("prmt.b32 %0, %1, %2, 0x3715;" : "=r"(r) : "r"(a), "r"(0x01020304u));
  out[3] = r;
  asm("bfe.u32 %0, %1, 8, 12;" : "=r"(r) : "r"(a));
  out[4] = r;
  asm("bfe.s32 %0, %1, 8, 16;" : "=r"(r) : "r"(a));
  out[5] = r;
  asm("bfi.b32 %0, %1, %2, 4, 8;" : "=r"(r) : "r"(0xabu), "r"(a));
  out[6] = r;
  asm("shf.l.wrap.b32 %0, %1, %2, 8;" : "=r"(r) : "r"(a), "r"(0x11223344u));
  out[7] = r;
  asm("{\n\t.reg .pred p, q;\n\t.reg .u32 t<2>;  // two\n\tsetp.gt.s32 p, %1, 0;\n\tmov.u32 t0, 7;\n\tmov.u32 t1, "
      "9;\n\t"
      "not.pred q, p;\n\tselp.u32 %0, t0, t1, p;\n\t@q add.u32 %0, %0, 100;\n\t@!q add.u32 %0, %0, 200;\n\t}"
      : "=r"(r)
      : "r"(a));
  out[8] = r;
  asm("shr.s32 %0, %1, 4; popc.b32 %0, %0;" : "=r"(r) : "r"(a));
  out[9] = r;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(0x01ff0203u), "r"(0x05060708u), "r"(10));
  out[10] = r;
  asm("clz.b32 %0, %1;" : "=r"(r) : "r"(0x00ff0000u));
  out[11] = r;
  unsigned long long wide;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(wide) : "r"(a), "r"(16u));
  out[12] = unsigned(wide >> 32);
  asm("mov.b64 {%0, %1}, %2;" : "=r"(out[13]), "=r"(out[14]) : "l"(0x1122334455667788ull));
  asm("mov.b64 %0, {%1, %2};" : "=l"(wide) : "r"(5u), "r"(6u));
  out[15] = unsigned(wide >> 32) * 100 + unsigned(wide);
  asm("add.u32 %0, %0, 1;" : "+r"(r));
  out[16] = r;
}
TEST_CASE("integers") {
  const auto out = run<unsigned>(17, integers);
  const unsigned a = 0xdeadbeef;
  CHECK(out[0] == a + 12);
  CHECK(out[1] == a * 12 - 5);
  CHECK(out[2] == ((a & 0xffu) | (a & 0xff00ff00u)));
  CHECK(out[3] == 0xde01be03);
  CHECK(out[4] == (a >> 8 & 0xfff));
  CHECK(out[5] == unsigned(int(short(a >> 8))));
  CHECK(out[6] == ((a & ~0xff0u) | 0xab0));
  CHECK(out[7] == (0x11223344u << 8 | a >> 24));
  CHECK(out[8] == 109);
  CHECK(out[9] == unsigned(__builtin_popcount(unsigned(int(a) >> 4))));
  CHECK(out[10] == unsigned(10 + 5 - 6 + 14 + 24));
  CHECK(out[11] == 8);
  CHECK(out[12] == a >> 28);
  CHECK(out[13] == 0x55667788);
  CHECK(out[14] == 0x11223344);
  CHECK(out[15] == 605);
  CHECK(out[16] == 9);
}

__global__ void reals(float* out) {
  float x = 1.75f, y = -0.3f, r;
  asm("fma.rn.f32 %0, %1, %2, 0f3F800000;" : "=f"(r) : "f"(x), "f"(y));
  out[0] = r;
  asm("add.ftz.f32 %0, %1, 2.5;" : "=f"(r) : "f"(x));
  out[1] = r;
  asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
  out[2] = r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(3.f));
  out[3] = r;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(4.f));
  out[4] = r;
  asm("mul.sat.f32 %0, %1, %1;" : "=f"(r) : "f"(x));
  out[5] = r;
  asm("{.reg .pred p; setp.lt.f32 p, %1, 2.0; selp.f32 %0, %0, 9.5, p;}" : "+f"(r) : "f"(y));
  int i;
  asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(i) : "f"(-2.9f));
  out[6] = float(i);
  asm("cvt.rn.f32.s32 %0, %1;" : "=f"(r) : "r"(-7));
  out[7] = r;
  unsigned short h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(0.1f));
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(h));
  out[8] = r;
  unsigned pair, sum;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(2.f), "f"(3.f));
  asm("fma.rn.bf16x2 %0, %1, %1, %1;" : "=r"(sum) : "r"(pair));
  out[9] = __uint_as_float(sum << 16);
  out[10] = __uint_as_float(sum & 0xffff0000);
  double d;
  asm("fma.rn.f64 %0, %1, %1, %1;" : "=d"(d) : "d"(1.5));
  out[11] = float(d);
  __half2 halves = __floats2half2_rn(1.5f, 2.f);
  asm("{add.f16x2 %0, %1, %1;}" : "=r"(sum) : "r"(reinterpret_cast<unsigned&>(halves)));
  out[12] = __low2float(reinterpret_cast<__half2&>(sum));
  out[13] = __high2float(reinterpret_cast<__half2&>(sum));
}
TEST_CASE("floating point") {
  const std::vector<float> expected = {
      std::fma(1.75f, -0.3f, 1.f), 4.25f, 1.75f, 8, 0.5f, 1, -2, -7, 0.0999755859375f, 12, 6, 3.75f, 3, 4};
  CHECK(run<float>(expected.size(), reals) == expected);
}

// --- Memory --------------------------------------------------------------------------------------------------------

__global__ void memory(const float4* in, float* out, unsigned* flag) {
  __shared__ float tile[64];
  const unsigned t = threadIdx.x;
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(tile + 2 * t));
  float4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(in + t));
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(v.x + v.y), "f"(v.z + v.w) : "memory");
  asm volatile("bar.sync 0;" ::: "memory");
  float other;
  asm volatile("ld.shared.f32 %0, [%1+4];" : "=f"(other) : "r"(at ^ 8));
  asm volatile("st.global.cs.f32 [%0], %1;" ::"l"(out + t), "f"(other));
  asm volatile("prefetch.global.L2 [%0];" ::"l"(in));
  asm volatile("red.global.add.u32 [%0], 2;" ::"l"(flag));
  unsigned old;
  asm volatile("atom.global.max.u32 %0, [%1], %2;" : "=r"(old) : "l"(flag + 1), "r"(t));
  if (t == 0) {
    asm volatile("atom.acq_rel.gpu.global.cas.b32 %0, [%1], 0, 5;" : "=r"(old) : "l"(flag + 2));
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag + 2), "r"(old + 7));
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(old) : "l"(flag + 2));
    asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"(flag + 3), "r"(old + 1));
    signed char narrow = -3;
    flag[4] = unsigned(narrow);
    asm volatile("ld.global.s8 %0, [%1];" : "=r"(old) : "l"(flag + 4));
    flag[5] = old;
  }
}
TEST_CASE("loads, stores and atomics") {
  std::vector<float4> in(32);
  for (int t = 0; t < 32; ++t) in[size_t(t)] = {float(t), 1, float(2 * t), 2};
  const Device<float4> device_in(in);
  Device<float> out(32);
  Device<unsigned> flag(6);
  memory<<<1, 32>>>(device_in.data, out.data, flag.data);
  const auto got = out.host();
  for (int t = 0; t < 32; ++t) CHECK(got[size_t(t)] == float(2 * (t ^ 1) + 2));
  CHECK(flag.host() == std::vector<unsigned>{64, 31, 7, 8, unsigned(-3), unsigned(-3)});
}

__global__ void copies(const float* in, float* out) {
  extern __shared__ float staged[];
  const unsigned t = threadIdx.x, to = static_cast<unsigned>(__cvta_generic_to_shared(staged + 4 * t));
  const int bytes = t == 3 ? 8 : 16;
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n" ::"r"(to), "l"(in + 4 * t), "r"(bytes));
  asm volatile("cp.async.commit_group;\n" ::);
  asm volatile("cp.async.wait_group %0;\n" ::"n"(0));
  for (int i = 0; i < 4; ++i) out[4 * t + i] = staged[4 * t + i];
}
TEST_CASE("asynchronous copies") {
  std::vector<float> in(128);
  for (size_t i = 0; i < in.size(); ++i) in[i] = float(i);
  const Device<float> device_in(in);
  Device<float> out(128);
  copies<<<1, 32, 512>>>(device_in.data, out.data);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  in[14] = in[15] = 0;
  CHECK(out.host() == in);
}

// --- Registers and lanes -------------------------------------------------------------------------------------------

__global__ void lanes(unsigned* out) {
  unsigned lane, below, value, shuffled, ballot, sum, tid;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
  asm("mov.u32 %0, %%tid.x;" : "=r"(tid));
  asm("{.reg .u32 a, b; mov.u32 a, %%ctaid.x; mov.u32 b, %%ntid.x; mad.lo.u32 %0, a, b, %1;}" : "=r"(value) : "r"(tid));
  asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 0x1f, 0xffffffff;" : "=r"(shuffled) : "r"(value * 10));
  out[lane] = shuffled;
  unsigned in_range = 5;
  asm volatile("{.reg .pred p; shfl.sync.up.b32 %0|p, %2, 3, 0x0, 0xffffffff; selp.u32 %1, 1, 0, p;}"
               : "=r"(shuffled), "=r"(in_range)
               : "r"(lane));
  out[32 + lane] = shuffled * 10 + in_range;
  asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 5; vote.sync.ballot.b32 %0, p, -1; }" : "=r"(ballot) : "r"(lane));
  asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(lane));
  out[64 + lane] = ballot + sum + __popc(below);
}
TEST_CASE("registers and lanes") {
  const auto out = run<unsigned>(96, lanes, 32);
  for (unsigned l = 0; l < 32; ++l) {
    CHECK(out[l] == (l ^ 1) * 10);
    CHECK(out[32 + l] == (l < 3 ? l * 10 : (l - 3) * 10 + 1));
    CHECK(out[64 + l] == 31 + 496 + l);
  }
}

// --- Tensor cores --------------------------------------------------------------------------------------------------

// As a matrix multiplication has it: tiles in shared memory, ldmatrix for both, mma.sync, and the layout of the sums.
template <class T>
__global__ void multiply_tile(const T* a, const T* b, float* d) {
  __shared__ __align__(16) T tile_a[16][24], tile_b[16][8];
  for (unsigned i = threadIdx.x; i < 256; i += 32) tile_a[i / 16][i % 16] = a[i];
  for (unsigned i = threadIdx.x; i < 128; i += 32) tile_b[i / 8][i % 8] = b[i];
  __syncwarp();
  const unsigned lane = threadIdx.x;
  unsigned ra[4], rb[2];
  const unsigned at_a = static_cast<unsigned>(__cvta_generic_to_shared(&tile_a[lane % 16][lane / 16 * 8]));
  const unsigned at_b = static_cast<unsigned>(__cvta_generic_to_shared(&tile_b[lane % 16][0]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
               : "r"(at_a));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];\n"
               : "=r"(rb[0]), "=r"(rb[1])
               : "r"(at_b));
  float c[4] = {1, 1, 1, 1};
  if constexpr (sizeof(T) == 2 && std::is_same_v<T, __half>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  for (unsigned i = 0; i < 4; ++i) d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = c[i];
}
template <class T>
void check_tile() {
  std::vector<T> a(256), b(128);
  std::vector<float> fa(256), fb(128);
  for (int i = 0; i < 256; ++i) fa[size_t(i)] = float(i * 37 % 19 - 9), a[size_t(i)] = T(fa[size_t(i)]);
  for (int i = 0; i < 128; ++i) fb[size_t(i)] = float(i * 53 % 23 - 11), b[size_t(i)] = T(fb[size_t(i)]);
  const Device<T> device_a(a), device_b(b);
  Device<float> d(128);
  multiply_tile<<<1, 32>>>(device_a.data, device_b.data, d.data);
  const auto got = d.host();
  int wrong = 0;
  for (size_t m = 0; m < 16; ++m)
    for (size_t n = 0; n < 8; ++n) {
      float sum = 1;
      for (size_t k = 0; k < 16; ++k) sum += fa[m * 16 + k] * fb[k * 8 + n];
      wrong += got[m * 8 + n] != sum;
    }
  CHECK(wrong == 0);
}
TEST_CASE("a product of tiles by tensor cores") {
  check_tile<__half>();
  check_tile<__nv_bfloat16>();
}

// The layouts of the other types, from the tables of the PTX manual.
__global__ void other_products(int* bytes, float* floats, double* doubles) {
  const int lane = int(threadIdx.x), row = lane / 4, quarter = lane % 4;
  const auto a = [](int m, int k) { return (m * 5 + k * 3) % 7 - 3; };
  const auto b = [](int k, int n) { return (k * 2 + n * 9) % 11 - 5; };
  int ia[4], ib[2], c[4] = {};
  for (int r = 0; r < 4; ++r) {
    unsigned word = 0;
    for (int i = 0; i < 4; ++i) word |= unsigned(a(row + r % 2 * 8, quarter * 4 + i + r / 2 * 16) & 0xff) << 8 * i;
    ia[r] = int(word);
  }
  for (int r = 0; r < 2; ++r) {
    unsigned word = 0;
    for (int i = 0; i < 4; ++i) word |= unsigned(b(quarter * 4 + i + r * 16, row) & 0xff) << 8 * i;
    ib[r] = int(word);
  }
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(ia[0]), "r"(ia[1]), "r"(ia[2]), "r"(ia[3]), "r"(ib[0]), "r"(ib[1]));
  for (int i = 0; i < 4; ++i) bytes[(row + i / 2 * 8) * 8 + quarter * 2 + i % 2] = c[i];

  float fa[4], fb[2], fc[4] = {};
  for (int r = 0; r < 4; ++r) fa[r] = float(a(row + r % 2 * 8, quarter + r / 2 * 4));
  for (int r = 0; r < 2; ++r) fb[r] = float(b(quarter + r * 4, row));
  unsigned ta[4], tb[2];
  for (int r = 0; r < 4; ++r) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(ta[r]) : "f"(fa[r]));
  for (int r = 0; r < 2; ++r) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(tb[r]) : "f"(fb[r]));
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(fc[0]), "+f"(fc[1]), "+f"(fc[2]), "+f"(fc[3])
      : "r"(ta[0]), "r"(ta[1]), "r"(ta[2]), "r"(ta[3]), "r"(tb[0]), "r"(tb[1]));
  for (int i = 0; i < 4; ++i) floats[(row + i / 2 * 8) * 8 + quarter * 2 + i % 2] = fc[i];

  double da = a(row, quarter), db = b(quarter, row), dc[2];
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%4,%5};"
               : "=d"(dc[0]), "=d"(dc[1])
               : "d"(da), "d"(db), "d"(0.5), "d"(0.5));
  for (int i = 0; i < 2; ++i) doubles[row * 8 + quarter * 2 + i] = dc[i];
}
TEST_CASE("products of bytes, of tf32 and of doubles") {
  Device<int> bytes(128);
  Device<float> floats(128);
  Device<double> doubles(64);
  other_products<<<1, 32>>>(bytes.data, floats.data, doubles.data);
  const auto of_bytes = bytes.host();
  const auto of_floats = floats.host();
  const auto of_doubles = doubles.host();
  const auto product = [](int m, int n, int depth) {
    int sum = 0;
    for (int k = 0; k < depth; ++k) sum += ((m * 5 + k * 3) % 7 - 3) * ((k * 2 + n * 9) % 11 - 5);
    return sum;
  };
  int wrong = 0;
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 8; ++n) {
      wrong += of_bytes[size_t(m * 8 + n)] != product(m, n, 32);
      wrong += of_floats[size_t(m * 8 + n)] != float(product(m, n, 8));
      if (m < 8) wrong += of_doubles[size_t(m * 8 + n)] != product(m, n, 4) + 0.5;
    }
  CHECK(wrong == 0);
}

__global__ void transpose_tile(unsigned short* data) {
  __shared__ __align__(16) unsigned short tile[16][8];
  for (unsigned i = threadIdx.x; i < 128; i += 32) tile[i / 8][i % 8] = data[i];
  __syncwarp();
  unsigned r[2];
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&tile[threadIdx.x % 16][0]));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at));
  __syncwarp();
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(at), "r"(r[0]), "r"(r[1]));
  __syncwarp();
  for (unsigned i = threadIdx.x; i < 128; i += 32) data[i] = tile[i / 8][i % 8];
}
TEST_CASE("matrices of 8 by 8 stored transposed") {
  std::vector<unsigned short> in(128);
  for (size_t i = 0; i < 128; ++i) in[i] = static_cast<unsigned short>(i);
  Device<unsigned short> data(in);
  transpose_tile<<<1, 32>>>(data.data);
  const auto got = data.host();
  int wrong = 0;
  for (size_t m = 0; m < 2; ++m)
    for (size_t i = 0; i < 64; ++i) wrong += got[m * 64 + i] != m * 64 + i % 8 * 8 + i / 8;
  CHECK(wrong == 0);
}
