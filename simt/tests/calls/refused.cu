// What nvcc refuses. A comment at the end of a line is the error that is expected there, or the start of it.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

int elsewhere(int x);
__device__ int device_elsewhere(int x);

int host(int x) { return x + 1; }
__device__ int device(int x) { return x + 1; }
template <class T>
T host_template(T x) {
  return x;
}
namespace outer {
struct Counter {
  Counter() : count(0) {}
  ~Counter() { count = 1; }
  int next() { return ++count; }
  int operator+(int x) const { return count + x; }
  __device__ int of_device() { return count; }
  int count;
};
struct Holder {
  Counter counter;
};
}  // namespace outer
struct Square {
  int operator()(int x) const { return x * x; }
};

__global__ void kernel(int* a) { *a = 1; }
template <class T>
__global__ void kernel_template(T* a) {
  *a = 1;
}

__device__ void device_code(int* a) {
  a[0] = host(1);  // device_code calls host, which runs on the host only; write __device__ before host (line 12)
  kernel(a);       // device_code calls the kernel kernel; only host code launches kernels
}

template <class F>
__global__ void apply(int* a, F f) {
  *a = f(2);  // the kernel apply calls Square::operator(), which runs on the host only
}

__global__ void calls_host(int* a) {
  a[0] = host(1);              // the kernel calls_host calls host, which runs on the host only
  a[1] = host_template(a[0]);  // the kernel calls_host calls host_template, which runs on the host only
  a[2] = elsewhere(3);         // the kernel calls_host calls elsewhere, which runs on the host only
  a[3] = rand();               // the kernel calls_host uses rand(), which exists on the host only; call it before
  auto local = [](int x) {
    return host(x);  // this lambda calls host, which runs on the host only
  };
  a[4] = local(1);
}

__global__ void uses_members(int* a) {
  outer::Counter counter;  // the kernel uses_members calls the constructor of outer::Counter, which runs on the host
  a[0] = counter.next();   // the kernel uses_members calls outer::Counter::next, which runs on the host only
  a[1] = counter + 1;      // the kernel uses_members calls outer::Counter::operator+, which runs on the host only
}  // the kernel uses_members calls the destructor of outer::Counter, which runs on the host only
__global__ void uses_what_the_compiler_generates(int* a) {
  new (a) outer::Holder;  // the kernel uses_what_the_compiler_generates calls the constructor of outer::Counter, which
}

__global__ void uses_the_library(int* a, int n) {
  std::vector<int> v(n);          // the kernel uses_the_library uses std::vector, which exists on the host only; use an
  std::string s = "text";         // the kernel uses_the_library uses std::string, which exists on the host only
  std::map<int, int> m;           // the kernel uses_the_library uses std::map, which exists on the host only
  std::cout << v.size() << "\n";  // the kernel uses_the_library uses std::cout and the like, which exists on the host
  if (n < 0) throw n;             // the kernel uses_the_library throws an exception, which device code cannot do
}  // the kernel uses_the_library uses

int on_host_again(int* a) {
  kernel(a);           // on_host_again calls the kernel kernel like a function; launch it: kernel<<<blocks,
  kernel_template(a);  // on_host_again calls the kernel kernel_template like a function; launch it
  auto launches_later = [=] {
    kernel(a);  // this lambda calls the kernel kernel like a function
  };
  launches_later();
  outer::Counter counter;
  int list[2] = {1, 2};
  std::transform(list, list + 2, list, [](int x) {
    return device(x);  // this lambda runs on the host and calls device, which is __device__
  });
  return device(1) +            // on_host_again runs on the host and calls device, which is __device__; call it in a
         device_elsewhere(1) +  // on_host_again runs on the host and calls device_elsewhere, which is __device__
         counter
             .of_device();  // on_host_again runs on the host and calls outer::Counter::of_device, which is __device__
}

int main() {
  int* a;
  cudaMalloc(&a, 64);
  apply<<<1, 1>>>(a, Square());
  calls_host<<<1, 1>>>(a);
}
