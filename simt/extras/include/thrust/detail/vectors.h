// device_vector and host_vector.
#pragma once
#include <initializer_list>
#include <memory>

#include "algorithms.h"

namespace thrust {
namespace detail {

struct HostSpace {
  template <class T>
  using pointer = T*;
  template <class T>
  static T* allocate(std::size_t n) {
    return n ? std::allocator<T>().allocate(n) : nullptr;
  }
  template <class T>
  static void release(T* data, std::size_t n) {
    if (data) std::allocator<T>().deallocate(data, n);
  }
  template <class Body>
  static void run(Body body) {
    body();
  }
};
struct DeviceSpace {
  template <class T>
  using pointer = device_ptr<T>;
  template <class T>
  static T* allocate(std::size_t n) {
    return n ? device_malloc<T>(n).get() : nullptr;
  }
  template <class T>
  static void release(T* data, std::size_t) {
    if (data) cudaFree(data);  // at the program's end the device may be gone
  }
  template <class Body>
  static void run(Body body) {
    check(simt::run_and_wait("thrust::device_vector", nullptr, body), "device_vector");
  }
};

template <class T, class Space>
class Vector {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using pointer = typename Space::template pointer<T>;
  using const_pointer = typename Space::template pointer<const T>;
  using reference = typename std::iterator_traits<pointer>::reference;
  using const_reference = typename std::iterator_traits<const_pointer>::reference;
  using iterator = pointer;
  using const_iterator = const_pointer;
  using reverse_iterator = thrust::reverse_iterator<iterator>;
  using const_reverse_iterator = thrust::reverse_iterator<const_iterator>;

  Vector() = default;
  explicit Vector(size_type n) { resize(n); }
  Vector(size_type n, const T& value) { resize(n, value); }
  Vector(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  template <class It, class = typename std::iterator_traits<It>::iterator_category>
  Vector(It first, It last) {
    assign(first, last);
  }
  Vector(const Vector& other) { assign(other.begin(), other.end()); }
  Vector(Vector&& other) noexcept { swap(other); }
  template <class U, class OtherSpace>
  Vector(const Vector<U, OtherSpace>& other) {
    assign(other.begin(), other.end());
  }
  template <class U, class A>
  Vector(const std::vector<U, A>& other) {
    assign(other.data(), other.data() + other.size());
  }
  ~Vector() {
    destroy(0, size_);
    Space::template release<T>(data_, capacity_);
  }
  Vector& operator=(const Vector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  Vector& operator=(Vector&& other) noexcept {
    swap(other);
    return *this;
  }
  template <class U, class OtherSpace>
  Vector& operator=(const Vector<U, OtherSpace>& other) {
    assign(other.begin(), other.end());
    return *this;
  }
  template <class U, class A>
  Vector& operator=(const std::vector<U, A>& other) {
    assign(other.data(), other.data() + other.size());
    return *this;
  }
  Vector& operator=(std::initializer_list<T> values) {
    assign(values.begin(), values.end());
    return *this;
  }

  size_type size() const { return size_; }
  size_type capacity() const { return capacity_; }
  size_type max_size() const { return static_cast<size_type>(-1) / 2 / sizeof(T); }
  bool empty() const { return size_ == 0; }
  pointer data() { return pointer(data_); }
  const_pointer data() const { return const_pointer(data_); }
  iterator begin() { return iterator(data_); }
  iterator end() { return iterator(data_ + size_); }
  const_iterator begin() const { return const_iterator(data_); }
  const_iterator end() const { return const_iterator(data_ + size_); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  reverse_iterator rbegin() { return reverse_iterator(end()); }
  reverse_iterator rend() { return reverse_iterator(begin()); }
  const_reverse_iterator rbegin() const { return const_reverse_iterator(end()); }
  const_reverse_iterator rend() const { return const_reverse_iterator(begin()); }
  reference operator[](size_type i) { return begin()[static_cast<difference_type>(i)]; }
  const_reference operator[](size_type i) const { return begin()[static_cast<difference_type>(i)]; }
  reference front() { return *begin(); }
  const_reference front() const { return *begin(); }
  reference back() { return (*this)[size_ - 1]; }
  const_reference back() const { return (*this)[size_ - 1]; }

  void reserve(size_type n) {
    if (n > capacity_) move_to(n);
  }
  void shrink_to_fit() {
    if (capacity_ > size_) move_to(size_);
  }
  void resize(size_type n) { resize(n, T()); }
  void resize(size_type n, const T& value) {
    reserve(n);
    if (n < size_) destroy(n, size_);
    T* const data = data_;
    const size_type from = size_;
    if (n > from)
      Space::run([=] {
        for (size_type i = from; i < n; ++i) new (data + i) T(value);
      });
    size_ = n;
  }
  void clear() { resize(0); }
  void push_back(const T& value) {
    if (size_ == capacity_) move_to(size_ < 4 ? 8 : 2 * size_);
    resize(size_ + 1, value);
  }
  template <class... Arguments>
  void emplace_back(Arguments&&... arguments) {
    push_back(T(std::forward<Arguments>(arguments)...));
  }
  void pop_back() { resize(size_ - 1); }
  void assign(size_type n, const T& value) {
    clear();
    resize(n, value);
  }
  template <class It, class = typename std::iterator_traits<It>::iterator_category>
  void assign(It first, It last) {
    if constexpr (std::is_base_of_v<std::random_access_iterator_tag,
                                    typename std::iterator_traits<It>::iterator_category>) {
      const size_type n = static_cast<size_type>(last - first);
      if (n <= capacity_) {  // in the same memory, to which the program may have pointers
        resize(n);
        thrust::copy(first, last, begin());
        return;
      }
      Vector fresh;
      fresh.resize(n);
      thrust::copy(first, last, fresh.begin());
      swap(fresh);
    } else {
      const std::vector<T> values(first, last);
      assign(values.data(), values.data() + values.size());
    }
  }
  iterator erase(const_iterator at) { return erase(at, at + 1); }
  iterator erase(const_iterator first, const_iterator last) {
    const difference_type from = first - cbegin(), to = last - cbegin();
    Vector rest(begin() + to, end());
    resize(static_cast<size_type>(from));
    append(rest.begin(), rest.end());
    return begin() + from;
  }
  iterator insert(const_iterator at, const T& value) {
    insert(at, &value, &value + 1);
    return begin() + (at - cbegin());
  }
  void insert(const_iterator at, size_type n, const T& value) {
    const std::vector<T> values(n, value);
    insert(at, values.data(), values.data() + n);
  }
  template <class It, class = typename std::iterator_traits<It>::iterator_category>
  void insert(const_iterator at, It first, It last) {
    const difference_type from = at - cbegin();
    Vector added(first, last), rest(begin() + from, end());
    resize(static_cast<size_type>(from));
    append(added.begin(), added.end());
    append(rest.begin(), rest.end());
  }
  void swap(Vector& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  friend void swap(Vector& a, Vector& b) noexcept { a.swap(b); }

 private:
  template <class It>
  void append(It first, It last) {
    const size_type before = size_;
    resize(size_ + static_cast<size_type>(last - first));
    thrust::copy(first, last, begin() + static_cast<difference_type>(before));
  }
  void move_to(size_type capacity) {
    T* const to = Space::template allocate<T>(capacity);
    T* const from = data_;
    const size_type n = size_;
    if (n)
      Space::run([=] {
        for (size_type i = 0; i < n; ++i) {
          new (to + i) T(std::move(from[i]));
          from[i].~T();
        }
      });
    Space::template release<T>(data_, capacity_);
    data_ = to;
    capacity_ = capacity;
  }
  void destroy(size_type from, size_type to) {
    T* const data = data_;
    if constexpr (!std::is_trivially_destructible_v<T>)
      if (to > from)
        Space::run([=] {
          for (size_type i = from; i < to; ++i) data[i].~T();
        });
  }

  T* data_ = nullptr;
  size_type size_ = 0, capacity_ = 0;
};

template <class T, class A, class U, class B>
bool operator==(const Vector<T, A>& a, const Vector<U, B>& b) {
  if (a.size() != b.size()) return false;
  if constexpr (std::is_same_v<A, B>) {
    return thrust::equal(a.begin(), a.end(), b.begin());
  } else {
    const Vector<T, HostSpace> here(a);
    const Vector<U, HostSpace> there(b);
    return here == there;
  }
}
template <class T, class A, class U, class B>
bool operator!=(const Vector<T, A>& a, const Vector<U, B>& b) {
  return !(a == b);
}
template <class T, class A, class U, class B>
bool operator==(const Vector<T, A>& a, const std::vector<U, B>& b) {
  return a == Vector<U, HostSpace>(b);
}
template <class T, class A, class U, class B>
bool operator==(const std::vector<U, B>& b, const Vector<T, A>& a) {
  return a == b;
}

}  // namespace detail

// A vector's allocator is a name only: the memory is always cudaMalloc's, and elements are always initialized.
template <class T>
class device_allocator {
 public:
  using value_type = T;
  using pointer = device_ptr<T>;
  using const_pointer = device_ptr<const T>;
  using reference = device_reference<T>;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  pointer allocate(size_type n) { return device_malloc<T>(n); }
  void deallocate(pointer at, size_type) { device_free(at); }
};
template <class T>
using device_malloc_allocator = device_allocator<T>;

template <class T, class = void>
class device_vector : public detail::Vector<T, detail::DeviceSpace> {
 public:
  using detail::Vector<T, detail::DeviceSpace>::Vector;
  using detail::Vector<T, detail::DeviceSpace>::operator=;
  device_vector() = default;
};
template <class T, class = void>
class host_vector : public detail::Vector<T, detail::HostSpace> {
 public:
  using detail::Vector<T, detail::HostSpace>::Vector;
  using detail::Vector<T, detail::HostSpace>::operator=;
  host_vector() = default;
};

}  // namespace thrust
