// Thrust's iterators.
#pragma once
#include "device.h"

namespace thrust {

using std::get;
using std::make_pair;
using std::make_tuple;
using std::pair;
using std::tie;
using std::tuple;
using std::tuple_element;
using std::tuple_size;

template <class Iterator>
struct iterator_traits : std::iterator_traits<Iterator> {};
#define SIMT_TRAIT(name)                                               \
  template <class Iterator>                                            \
  struct iterator_##name {                                             \
    using type = typename std::iterator_traits<Iterator>::name##_type; \
  };                                                                   \
  template <class Iterator>                                            \
  using iterator_##name##_t = typename iterator_##name<Iterator>::type;
SIMT_TRAIT(value)
SIMT_TRAIT(difference)
#undef SIMT_TRAIT
template <class Iterator>
struct iterator_reference {
  using type = typename std::iterator_traits<Iterator>::reference;
};
template <class Iterator>
struct iterator_pointer {
  using type = typename std::iterator_traits<Iterator>::pointer;
};
template <class Iterator>
struct iterator_system {
  using type = std::conditional_t<detail::is_device<Iterator>, device_system_tag, host_system_tag>;
};
using use_default = void;

namespace detail {

// The operators of a random-access iterator that has *, advance(n), and distance_to(other).
template <class Self, class Value, class Reference>
class Iterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = Value;
  using difference_type = std::ptrdiff_t;
  using pointer = const Value*;
  using reference = Reference;

  Self& operator++() { return self() += 1; }
  Self& operator--() { return self() += -1; }
  Self operator++(int) {
    Self before = self();
    self() += 1;
    return before;
  }
  Self operator--(int) {
    Self before = self();
    self() += -1;
    return before;
  }
  Self& operator+=(difference_type n) {
    self().advance(n);
    return self();
  }
  Self& operator-=(difference_type n) { return self() += -n; }
  Reference operator[](difference_type n) const { return *(self() + n); }
  friend Self operator+(Self it, difference_type n) { return it += n; }
  friend Self operator+(difference_type n, Self it) { return it += n; }
  friend Self operator-(Self it, difference_type n) { return it += -n; }
  friend difference_type operator-(const Self& a, const Self& b) { return b.distance_to(a); }
  friend bool operator==(const Self& a, const Self& b) { return b.distance_to(a) == 0; }
  friend bool operator!=(const Self& a, const Self& b) { return b.distance_to(a) != 0; }
  friend bool operator<(const Self& a, const Self& b) { return b.distance_to(a) < 0; }
  friend bool operator>(const Self& a, const Self& b) { return b.distance_to(a) > 0; }
  friend bool operator<=(const Self& a, const Self& b) { return b.distance_to(a) <= 0; }
  friend bool operator>=(const Self& a, const Self& b) { return b.distance_to(a) >= 0; }

 private:
  Self& self() { return static_cast<Self&>(*this); }
  const Self& self() const { return static_cast<const Self&>(*this); }
};

template <class T>
using value_of = typename std::iterator_traits<T>::value_type;
template <class T>
using reference_of = typename std::iterator_traits<T>::reference;

}  // namespace detail

template <class T, class System = void, class Traversal = void, class Difference = void>
class counting_iterator : public detail::Iterator<counting_iterator<T, System, Traversal, Difference>, T, T> {
 public:
  counting_iterator() = default;
  explicit counting_iterator(T at) : at_(at) {}
  T operator*() const { return at_; }
  T base() const { return at_; }
  void advance(std::ptrdiff_t n) { at_ = static_cast<T>(at_ + n); }
  std::ptrdiff_t distance_to(const counting_iterator& other) const {
    return static_cast<std::ptrdiff_t>(other.at_) - static_cast<std::ptrdiff_t>(at_);
  }

 private:
  T at_{};
};
template <class T>
counting_iterator<T> make_counting_iterator(T at) {
  return counting_iterator<T>(at);
}

template <class T, class Difference = void, class System = void>
class constant_iterator : public detail::Iterator<constant_iterator<T, Difference, System>, T, T> {
 public:
  constant_iterator() = default;
  explicit constant_iterator(T value, std::ptrdiff_t at = 0) : value_(value), at_(at) {}
  T operator*() const { return value_; }
  void advance(std::ptrdiff_t n) { at_ += n; }
  std::ptrdiff_t distance_to(const constant_iterator& other) const { return other.at_ - at_; }

 private:
  T value_{};
  std::ptrdiff_t at_ = 0;
};
template <class T>
constant_iterator<T> make_constant_iterator(T value, std::ptrdiff_t at = 0) {
  return constant_iterator<T>(value, at);
}

namespace detail {
struct Discarded {
  template <class T>
  const Discarded& operator=(const T&) const {
    return *this;
  }
};
}  // namespace detail
template <class System = void>
class discard_iterator : public detail::Iterator<discard_iterator<System>, detail::Discarded, detail::Discarded> {
 public:
  explicit discard_iterator(std::ptrdiff_t at = 0) : at_(at) {}
  detail::Discarded operator*() const { return {}; }
  void advance(std::ptrdiff_t n) { at_ += n; }
  std::ptrdiff_t distance_to(const discard_iterator& other) const { return other.at_ - at_; }

 private:
  std::ptrdiff_t at_;
};
inline discard_iterator<> make_discard_iterator(std::ptrdiff_t at = 0) { return discard_iterator<>(at); }

namespace detail {
template <class Function, class It>
using applied = std::decay_t<std::invoke_result_t<Function, reference_of<raw_t<It>>>>;
template <class Given, class Function, class It>
struct ResultOf {
  using type = Given;
};
template <class Function, class It>
struct ResultOf<void, Function, It> {
  using type = applied<Function, It>;
};
}  // namespace detail
template <class Function, class It, class Reference = void, class Value = void>
class transform_iterator
    : public detail::Iterator<transform_iterator<Function, It, Reference, Value>,
                              std::decay_t<typename detail::ResultOf<Reference, Function, It>::type>,
                              typename detail::ResultOf<Reference, Function, It>::type> {
 public:
  transform_iterator() = default;
  explicit transform_iterator(It base, Function function = Function()) : base_(base), function_(function) {}
  typename transform_iterator::reference operator*() const { return function_(*base_); }
  const It& base() const { return base_; }
  Function functor() const { return function_; }
  void advance(std::ptrdiff_t n) { base_ += n; }
  std::ptrdiff_t distance_to(const transform_iterator& other) const { return other.base_ - base_; }

 private:
  It base_;
  mutable Function function_;
};
template <class Function, class It>
transform_iterator<Function, It> make_transform_iterator(It base, Function function) {
  return transform_iterator<Function, It>(base, function);
}

namespace detail {
template <class Function, class It>
struct TransformedOutput {
  Function function;
  It at;
  template <class T>
  const TransformedOutput& operator=(const T& value) const {
    *at = Function(function)(value);
    return *this;
  }
};
}  // namespace detail
template <class Function, class It>
class transform_output_iterator : public detail::Iterator<transform_output_iterator<Function, It>, detail::value_of<It>,
                                                          detail::TransformedOutput<Function, It>> {
 public:
  transform_output_iterator(It base, Function function) : base_(base), function_(function) {}
  detail::TransformedOutput<Function, It> operator*() const { return {function_, base_}; }
  const It& base() const { return base_; }
  Function functor() const { return function_; }
  void advance(std::ptrdiff_t n) { base_ += n; }
  std::ptrdiff_t distance_to(const transform_output_iterator& other) const { return other.base_ - base_; }

 private:
  It base_;
  Function function_;
};
template <class Function, class It>
transform_output_iterator<Function, It> make_transform_output_iterator(It base, Function function) {
  return {base, function};
}

template <class Elements, class Indices>
class permutation_iterator : public detail::Iterator<permutation_iterator<Elements, Indices>,
                                                     detail::value_of<Elements>, detail::reference_of<Elements>> {
 public:
  permutation_iterator() = default;
  permutation_iterator(Elements elements, Indices indices) : elements_(elements), indices_(indices) {}
  detail::reference_of<Elements> operator*() const {
    return *(elements_ + static_cast<std::ptrdiff_t>(static_cast<detail::value_of<Indices>>(*indices_)));
  }
  const Elements& elements() const { return elements_; }
  const Indices& base() const { return indices_; }
  void advance(std::ptrdiff_t n) { indices_ += n; }
  std::ptrdiff_t distance_to(const permutation_iterator& other) const { return other.indices_ - indices_; }

 private:
  Elements elements_;
  Indices indices_;
};
template <class Elements, class Indices>
permutation_iterator<Elements, Indices> make_permutation_iterator(Elements elements, Indices indices) {
  return {elements, indices};
}

template <class It>
class reverse_iterator : public detail::Iterator<reverse_iterator<It>, detail::value_of<It>, detail::reference_of<It>> {
 public:
  reverse_iterator() = default;
  explicit reverse_iterator(It base) : base_(base) {}
  detail::reference_of<It> operator*() const { return *(base_ - 1); }
  const It& base() const { return base_; }
  void advance(std::ptrdiff_t n) { base_ -= n; }
  std::ptrdiff_t distance_to(const reverse_iterator& other) const { return base_ - other.base_; }

 private:
  It base_;
};
template <class It>
reverse_iterator<It> make_reverse_iterator(It base) {
  return reverse_iterator<It>(base);
}

template <class Tuple>
class zip_iterator;
template <class... Its>
class zip_iterator<std::tuple<Its...>>
    : public detail::Iterator<zip_iterator<std::tuple<Its...>>, std::tuple<detail::value_of<Its>...>,
                              std::tuple<detail::reference_of<Its>...>> {
 public:
  zip_iterator() = default;
  zip_iterator(const std::tuple<Its...>& iterators) : iterators_(iterators) {}
  std::tuple<detail::reference_of<Its>...> operator*() const {
    return std::apply([](const Its&... its) { return std::tuple<detail::reference_of<Its>...>(*its...); }, iterators_);
  }
  const std::tuple<Its...>& get_iterator_tuple() const { return iterators_; }
  void advance(std::ptrdiff_t n) {
    std::apply([n](Its&... its) { ((its += n), ...); }, iterators_);
  }
  std::ptrdiff_t distance_to(const zip_iterator& other) const {
    return std::get<0>(other.iterators_) - std::get<0>(iterators_);
  }

 private:
  std::tuple<Its...> iterators_;
};
template <class... Its>
zip_iterator<std::tuple<Its...>> make_zip_iterator(const std::tuple<Its...>& iterators) {
  return iterators;
}
template <class... Its>
zip_iterator<std::tuple<Its...>> make_zip_iterator(Its... iterators) {
  return std::tuple<Its...>(iterators...);
}
template <class Function>
struct zip_function {
  Function function;
  template <class Tuple>
  decltype(auto) operator()(Tuple&& tuple) const {
    return std::apply(function, std::forward<Tuple>(tuple));
  }
};
template <class Function>
zip_function<Function> make_zip_function(Function function) {
  return {function};
}

namespace detail {

// A counting iterator may say where it is for.
template <class T, class Traversal, class Difference>
struct Raw<counting_iterator<T, device_system_tag, Traversal, Difference>> {
  using type = counting_iterator<T, device_system_tag, Traversal, Difference>;
  static constexpr bool is_device = true;
  static const type& to(const type& it) { return it; }
};

// Iterators on device memory, on plain pointers and back.
template <class Function, class It, class Reference, class Value>
struct Raw<transform_iterator<Function, It, Reference, Value>> {
  using mine = transform_iterator<Function, It, Reference, Value>;
  using type = transform_iterator<Function, raw_t<It>, Reference, Value>;
  static constexpr bool is_device = detail::is_device<It>;
  static type to(const mine& it) { return type(Raw<It>::to(it.base()), it.functor()); }
  static mine back(const type& it) { return mine(Raw<It>::back(it.base()), it.functor()); }
};
template <class Function, class It>
struct Raw<transform_output_iterator<Function, It>> {
  using mine = transform_output_iterator<Function, It>;
  using type = transform_output_iterator<Function, raw_t<It>>;
  static constexpr bool is_device = detail::is_device<It>;
  static type to(const mine& it) { return type(Raw<It>::to(it.base()), it.functor()); }
  static mine back(const type& it) { return mine(Raw<It>::back(it.base()), it.functor()); }
};
template <class E, class I>
struct Raw<permutation_iterator<E, I>> {
  using mine = permutation_iterator<E, I>;
  using type = permutation_iterator<raw_t<E>, raw_t<I>>;
  static constexpr bool is_device = detail::is_device<E> || detail::is_device<I>;
  static type to(const mine& it) { return type(Raw<E>::to(it.elements()), Raw<I>::to(it.base())); }
  static mine back(const type& it) { return mine(Raw<E>::back(it.elements()), Raw<I>::back(it.base())); }
};
template <class It>
struct Raw<reverse_iterator<It>> {
  using mine = reverse_iterator<It>;
  using type = reverse_iterator<raw_t<It>>;
  static constexpr bool is_device = detail::is_device<It>;
  static type to(const mine& it) { return type(Raw<It>::to(it.base())); }
  static mine back(const type& it) { return mine(Raw<It>::back(it.base())); }
};
template <class... Its>
struct Raw<zip_iterator<std::tuple<Its...>>> {
  using mine = zip_iterator<std::tuple<Its...>>;
  using type = zip_iterator<std::tuple<raw_t<Its>...>>;
  static constexpr bool is_device = (detail::is_device<Its> || ...);
  static type to(const mine& it) {
    return std::apply([](const Its&... its) { return type(std::tuple<raw_t<Its>...>(Raw<Its>::to(its)...)); },
                      it.get_iterator_tuple());
  }
  static mine back(const type& it) {
    return std::apply([](const raw_t<Its>&... its) { return mine(std::tuple<Its...>(Raw<Its>::back(its)...)); },
                      it.get_iterator_tuple());
  }
};

}  // namespace detail

template <class It, class Distance>
void advance(It& it, Distance n) {
  it += static_cast<std::ptrdiff_t>(n);
}
template <class It>
typename std::iterator_traits<It>::difference_type distance(It first, It last) {
  return last - first;
}
template <class It>
It next(It it, std::ptrdiff_t n = 1) {
  return it + n;
}
template <class It>
It prev(It it, std::ptrdiff_t n = 1) {
  return it - n;
}

}  // namespace thrust
