// Where Thrust's algorithms run on the CPU device: those on device memory as a kernel of one thread, so that the
// functions that they call are device code, and errors are a kernel's; all others in the calling thread.
#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../version.h"
#include "simt/launch.h"

namespace simt {

class Worker;
extern __thread Worker* worker;  // null outside a kernel

// What execution_space.py knows: a kernel may use the library's functions through the first of these, and the body of
// the second one is device code.
template <class Body>
decltype(auto) call_here(Body&& body) {
  return body();
}
template <class Body>
cudaError_t run_as_kernel(const char* name, cudaStream_t stream, Body body) {
  if (worker) {
    body();
    return cudaSuccess;
  }
  return launch_kernel({name, dim3(1), dim3(1), 0, stream}, new BoundTo<Body, 0>(std::move(body)));
}
template <class Body>
cudaError_t run_and_wait(const char* name, cudaStream_t stream, Body body) {
  const cudaError_t error = run_as_kernel(name, stream, std::move(body));
  return error == cudaSuccess && !worker ? cudaStreamSynchronize(stream) : error;
}

}  // namespace simt

namespace thrust {

struct error_category {};
inline const error_category& cuda_category() {
  static constexpr error_category category;
  return category;
}
class system_error : public std::runtime_error {
 public:
  system_error(int error, const error_category&, const std::string& what = "thrust")
      : system_error(static_cast<cudaError_t>(error), what) {}
  system_error(cudaError_t error, const std::string& what)
      : std::runtime_error(what + ": " + cudaGetErrorString(error)), error_(error) {}
  cudaError_t code() const { return error_; }

 private:
  cudaError_t error_;
};
namespace system {
using thrust::cuda_category;
using thrust::system_error;
}  // namespace system

namespace detail {
inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw system_error(error, what);
}
}  // namespace detail

// --- Execution policies --------------------------------------------------------------------------------------------
struct host_system_tag {};
struct device_system_tag {};
namespace detail {

struct Policy {};
struct HostPolicy : Policy {
  using system = host_system_tag;
  template <class Allocator>
  HostPolicy operator()(const Allocator&) const {
    return *this;
  }
};
struct DevicePolicy : Policy {
  using system = device_system_tag;
  cudaStream_t stream = nullptr;
  DevicePolicy on(cudaStream_t other) const {
    DevicePolicy policy;
    policy.stream = other;
    return policy;
  }
  template <class Allocator>
  DevicePolicy operator()(const Allocator&) const {
    return *this;
  }
};
template <class T>
constexpr bool is_policy = std::is_base_of_v<Policy, std::decay_t<T>>;

}  // namespace detail

inline constexpr detail::HostPolicy host, seq;
inline constexpr detail::DevicePolicy device;
namespace cuda {
inline constexpr detail::DevicePolicy par, par_nosync;
using tag = device_system_tag;
}  // namespace cuda
namespace cpp {
inline constexpr detail::HostPolicy par;
}
namespace omp {
inline constexpr detail::HostPolicy par;
}
namespace system {
namespace cuda = thrust::cuda;
namespace cpp = thrust::cpp;
namespace omp = thrust::omp;
}  // namespace system

// --- Pointers and references to device memory ------------------------------------------------------------------------
template <class T>
class device_ptr;

namespace detail {
// The host's accesses are copies, as with CUDA; a kernel reads and writes the memory itself.
template <class T>
std::remove_const_t<T> read(const T* from) {
  using Value = std::remove_const_t<T>;
  if (simt::worker) return *from;
  return simt::call_here([=] {
    alignas(Value) unsigned char bytes[sizeof(Value)];
    check(cudaMemcpy(bytes, static_cast<const void*>(from), sizeof(Value), cudaMemcpyDeviceToHost), "device_reference");
    return *reinterpret_cast<Value*>(bytes);
  });
}
template <class T>
void write(T* to, const T& value) {
  if (simt::worker)
    *to = value;
  else
    simt::call_here([&] {
      check(cudaMemcpy(static_cast<void*>(to), static_cast<const void*>(&value), sizeof(T), cudaMemcpyHostToDevice),
            "device_reference");
    });
}
}  // namespace detail

template <class T>
class device_reference {
 public:
  using value_type = std::remove_const_t<T>;
  using pointer = device_ptr<T>;
  explicit device_reference(T* at) : at_(at) {}
  explicit device_reference(const device_ptr<T>& at) : at_(at.get()) {}
  device_reference(const device_reference&) = default;
  operator value_type() const { return detail::read(at_); }
  device_ptr<T> operator&() const { return device_ptr<T>(at_); }
  const device_reference& operator=(const value_type& value) const {
    detail::write(at_, value);
    return *this;
  }
  const device_reference& operator=(const device_reference& other) const { return *this = value_type(other); }
  device_reference& operator=(const device_reference& other) {
    detail::write(at_, value_type(other));
    return *this;
  }
  template <class U>
  const device_reference& operator=(const device_reference<U>& other) const {
    return *this = value_type(typename device_reference<U>::value_type(other));
  }
#define SIMT_COMPOUND(op)                                     \
  template <class U>                                          \
  const device_reference& operator op##=(const U& by) const { \
    return *this = value_type(value_type(*this) op by);       \
  }
  SIMT_COMPOUND(+)
  SIMT_COMPOUND(-)
  SIMT_COMPOUND(*)
  SIMT_COMPOUND(/)
  SIMT_COMPOUND(%)
  SIMT_COMPOUND(&)
  SIMT_COMPOUND(|)
  SIMT_COMPOUND(^)
#undef SIMT_COMPOUND
  const device_reference& operator++() const { return *this += 1; }
  const device_reference& operator--() const { return *this -= 1; }
  value_type operator++(int) const {
    const value_type before = *this;
    ++*this;
    return before;
  }
  value_type operator--(int) const {
    const value_type before = *this;
    --*this;
    return before;
  }
  friend void swap(const device_reference& a, const device_reference& b) {
    const value_type before = a;
    a = b;
    b = before;
  }
  template <class Stream>
  friend auto operator<<(Stream& stream, const device_reference& reference)
      -> decltype(stream << std::declval<value_type>()) {
    return stream << value_type(reference);
  }

 private:
  T* at_;
};

template <class T>
class device_ptr {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = std::remove_const_t<T>;
  using difference_type = std::ptrdiff_t;
  using pointer = device_ptr;
  using reference = device_reference<T>;
  using element_type = T;
  device_ptr() : at_(nullptr) {}
  device_ptr(std::nullptr_t) : at_(nullptr) {}
  explicit device_ptr(T* at) : at_(at) {}
  template <class U, class = std::enable_if_t<std::is_convertible_v<U*, T*>>>
  device_ptr(const device_ptr<U>& other) : at_(other.get()) {}
  T* get() const { return at_; }
  explicit operator bool() const { return at_ != nullptr; }
  reference operator*() const { return reference(at_); }
  reference operator[](difference_type i) const { return reference(at_ + i); }
  device_ptr& operator+=(difference_type n) { return at_ += n, *this; }
  device_ptr& operator-=(difference_type n) { return at_ -= n, *this; }
  device_ptr& operator++() { return ++at_, *this; }
  device_ptr& operator--() { return --at_, *this; }
  device_ptr operator++(int) { return device_ptr(at_++); }
  device_ptr operator--(int) { return device_ptr(at_--); }
  friend device_ptr operator+(device_ptr p, difference_type n) { return device_ptr(p.at_ + n); }
  friend device_ptr operator+(difference_type n, device_ptr p) { return device_ptr(p.at_ + n); }
  friend device_ptr operator-(device_ptr p, difference_type n) { return device_ptr(p.at_ - n); }
  template <class U>
  difference_type operator-(const device_ptr<U>& other) const {
    return at_ - other.get();
  }

 private:
  T* at_;
};
template <>
class device_ptr<void> {
 public:
  explicit device_ptr(void* at) : at_(at) {}
  void* get() const { return at_; }
  template <class T>
  explicit operator device_ptr<T>() const {
    return device_ptr<T>(static_cast<T*>(at_));
  }

 private:
  void* at_;
};
#define SIMT_COMPARISON(op)                                          \
  template <class T, class U>                                        \
  bool operator op(const device_ptr<T>& a, const device_ptr<U>& b) { \
    return a.get() op b.get();                                       \
  }
SIMT_COMPARISON(==)
SIMT_COMPARISON(!=)
SIMT_COMPARISON(<)
SIMT_COMPARISON(<=)
SIMT_COMPARISON(>)
SIMT_COMPARISON(>=)
#undef SIMT_COMPARISON

template <class T>
T* raw_pointer_cast(const device_ptr<T>& pointer) {
  return pointer.get();
}
template <class T>
T* raw_pointer_cast(T* pointer) {
  return pointer;
}
template <class T>
device_ptr<T> device_pointer_cast(T* pointer) {
  return device_ptr<T>(pointer);
}
template <class T>
device_ptr<T> device_pointer_cast(const device_ptr<T>& pointer) {
  return pointer;
}
template <class T>
T& raw_reference_cast(const device_reference<T>& reference) {
  return *(&reference).get();
}
template <class T>
T& raw_reference_cast(T& reference) {
  return reference;
}

template <class T>
device_ptr<T> device_malloc(std::size_t n) {
  void* pointer = nullptr;
  detail::check(cudaMalloc(&pointer, n * sizeof(T)), "device_malloc");
  return device_ptr<T>(static_cast<T*>(pointer));
}
inline device_ptr<void> device_malloc(std::size_t n) { return device_ptr<void>(device_malloc<char>(n).get()); }
template <class T>
void device_free(device_ptr<T> pointer) {
  detail::check(cudaFree(const_cast<std::remove_const_t<T>*>(pointer.get())), "device_free");
}

// --- What an algorithm's iterators are in the kernel, and back
// ---------------------------------------------------------
namespace detail {

// Pointers to device memory are plain pointers there. Iterators on others do the same with those (iterators.h).
template <class T, class = void>
struct Raw {
  using type = T;
  static constexpr bool is_device = false;
  static const T& to(const T& value) { return value; }
  static const T& back(const T& value) { return value; }
};
template <class T>
struct Raw<device_ptr<T>> {
  using type = T*;
  static constexpr bool is_device = true;
  static T* to(const device_ptr<T>& pointer) { return pointer.get(); }
  static device_ptr<T> back(T* pointer) { return device_ptr<T>(pointer); }
};
template <class T>
struct Raw<device_reference<T>> {  // a value that a function is given
  using type = std::remove_const_t<T>;
  static constexpr bool is_device = false;
  static type to(const device_reference<T>& value) { return value; }
  static const type& back(const type& value) { return value; }
};
template <class T>
using raw_t = typename Raw<std::decay_t<T>>::type;
template <class T>
constexpr bool is_device = Raw<std::decay_t<T>>::is_device;

// A result in the caller's iterators: of the first argument that the kernel sees as the result's type.
template <class Result>
Result in_callers_words(const Result& result, std::tuple<>*) {
  return result;
}
template <class Result, class First, class... Rest>
auto in_callers_words(const Result& result, std::tuple<First, Rest...>*) {
  if constexpr (std::is_same_v<raw_t<First>, Result> && !std::is_same_v<First, Result>)
    return Raw<First>::back(result);
  else
    return in_callers_words(result, static_cast<std::tuple<Rest...>*>(nullptr));
}

template <class T>
constexpr bool is_pair = false;
template <class A, class B>
constexpr bool is_pair<std::pair<A, B>> = true;

template <class... Arguments, class Result>
auto translated(const Result& result) {
  constexpr std::tuple<Arguments...>* of = nullptr;
  if constexpr (is_pair<Result>)
    return std::make_pair(in_callers_words(result.first, of), in_callers_words(result.second, of));
  else
    return in_callers_words(result, of);
}

template <class Algorithm, class... Arguments>
auto run_on_device(const char* name, cudaStream_t stream, Algorithm algorithm, const Arguments&... arguments) {
  using Result = decltype(algorithm(std::declval<raw_t<Arguments>>()...));
  std::tuple<raw_t<Arguments>...> raw(Raw<Arguments>::to(arguments)...);
  if constexpr (std::is_void_v<Result>) {
    check(simt::run_and_wait(name, stream, [=]() mutable { std::apply(algorithm, raw); }), name);
  } else {
    std::optional<Result> result;
    std::optional<Result>* to = &result;
    check(simt::run_and_wait(name, stream, [=]() mutable { to->emplace(std::apply(algorithm, raw)); }), name);
    return translated<Arguments...>(*result);
  }
}

template <class Algorithm, class First, class... Rest>
auto run(const char* name, Algorithm algorithm, const First& first, const Rest&... rest) {
  if constexpr (is_policy<First>) {
    if constexpr (std::is_same_v<typename First::system, device_system_tag>)
      return run_on_device(name, first.stream, algorithm, rest...);
    else if constexpr ((is_device<Rest> || ...))  // seq, in a kernel
      return translated<Rest...>(simt::call_here([&] { return algorithm(Raw<Rest>::to(rest)...); }));
    else
      return simt::call_here([&] { return algorithm(rest...); });
  } else if constexpr (is_device<First> || (is_device<Rest> || ...)) {
    return run_on_device(name, nullptr, algorithm, first, rest...);
  } else {
    return algorithm(first, rest...);
  }
}

}  // namespace detail
}  // namespace thrust
