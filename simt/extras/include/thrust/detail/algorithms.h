// Thrust's algorithms, one element after the other. Each is a function of Serial on a kernel's iterators, and a name of
// thrust that takes a policy before them, or knows by the iterators where to run.
#pragma once
#include <functional>
#include <new>

#include "../functional.h"

namespace thrust {
namespace detail {

struct Serial {
  template <class It>
  using Buffer = std::vector<value_of<It>>;
  template <class It>
  static Buffer<It> copied(It first, It last) {
    Buffer<It> values;
    values.reserve(static_cast<std::size_t>(last - first));
    for (; first != last; ++first) values.push_back(*first);
    return values;
  }
  template <class Values, class It>
  static It written(const Values& values, It out) {
    for (const auto& value : values) {
      *out = value;
      ++out;
    }
    return out;
  }
  template <class Predicate>
  static auto negation(Predicate predicate) {
    return [predicate](const auto& value) mutable { return !predicate(value); };
  }

  // --- Copying and filling
  template <class In, class Out>
  static Out copy(In first, In last, Out out) {
    for (; first != last; ++first, ++out) *out = *first;
    return out;
  }
  template <class In, class Size, class Out>
  static Out copy_n(In first, Size n, Out out) {
    return copy(first, first + static_cast<std::ptrdiff_t>(n), out);
  }
  template <class In, class Out, class Predicate>
  static Out copy_if(In first, In last, Out out, Predicate predicate) {
    for (; first != last; ++first)
      if (predicate(*first)) *out = *first, ++out;
    return out;
  }
  template <class In, class Stencil, class Out, class Predicate>
  static Out copy_if(In first, In last, Stencil stencil, Out out, Predicate predicate) {
    for (; first != last; ++first, ++stencil)
      if (predicate(*stencil)) *out = *first, ++out;
    return out;
  }
  template <class It, class T>
  static void fill(It first, It last, T value) {
    for (; first != last; ++first) *first = value;
  }
  template <class It, class Size, class T>
  static It fill_n(It first, Size n, T value) {
    for (; n > 0; --n, ++first) *first = value;
    return first;
  }
  template <class It>
  static void sequence(It first, It last) {
    sequence(first, last, value_of<It>(0), value_of<It>(1));
  }
  template <class It, class T>
  static void sequence(It first, It last, T start) {
    sequence(first, last, start, T(1));
  }
  template <class It, class T>
  static void sequence(It first, It last, T start, T step) {
    for (std::ptrdiff_t i = 0; first != last; ++first, ++i) *first = static_cast<T>(start + step * static_cast<T>(i));
  }
  template <class It, class Function>
  static void tabulate(It first, It last, Function function) {
    for (std::ptrdiff_t i = 0; first != last; ++first, ++i) *first = function(i);
  }
  template <class It, class Generator>
  static void generate(It first, It last, Generator generator) {
    for (; first != last; ++first) *first = generator();
  }
  template <class It, class Size, class Generator>
  static It generate_n(It first, Size n, Generator generator) {
    for (; n > 0; --n, ++first) *first = generator();
    return first;
  }
  template <class It>
  static void reverse(It first, It last) {
    auto values = copied(first, last);
    std::reverse(values.begin(), values.end());
    written(values, first);
  }
  template <class It, class Engine>
  static void shuffle(It first, It last, Engine engine) {
    shuffle_copy(first, last, first, engine);
  }
  template <class In, class Out, class Engine>
  static Out shuffle_copy(In first, In last, Out out, Engine engine) {
    auto values = copied(first, last);
    for (std::size_t left = values.size(); left > 1; --left)
      std::swap(values[left - 1], values[static_cast<std::size_t>(engine()) % left]);
    return written(values, out);
  }
  template <class In, class Out>
  static Out reverse_copy(In first, In last, Out out) {
    while (first != last) {
      --last;
      *out = *last;
      ++out;
    }
    return out;
  }
  template <class A, class B>
  static B swap_ranges(A first, A last, B other) {
    for (; first != last; ++first, ++other) {
      const value_of<A> before = *first;
      *first = *other;
      *other = before;
    }
    return other;
  }
  template <class Map, class In, class Out>
  static Out gather(Map first, Map last, In in, Out out) {
    for (; first != last; ++first, ++out) *out = in[static_cast<std::ptrdiff_t>(*first)];
    return out;
  }
  template <class Map, class Stencil, class In, class Out, class Predicate>
  static Out gather_if(Map first, Map last, Stencil stencil, In in, Out out, Predicate predicate) {
    for (; first != last; ++first, ++stencil, ++out)
      if (predicate(*stencil)) *out = in[static_cast<std::ptrdiff_t>(*first)];
    return out;
  }
  template <class Map, class Stencil, class In, class Out>
  static Out gather_if(Map first, Map last, Stencil stencil, In in, Out out) {
    return gather_if(first, last, stencil, in, out, [](const auto& flag) { return static_cast<bool>(flag); });
  }
  template <class In, class Map, class Out>
  static void scatter(In first, In last, Map map, Out out) {
    for (; first != last; ++first, ++map) out[static_cast<std::ptrdiff_t>(*map)] = *first;
  }
  template <class In, class Map, class Stencil, class Out, class Predicate>
  static void scatter_if(In first, In last, Map map, Stencil stencil, Out out, Predicate predicate) {
    for (; first != last; ++first, ++map, ++stencil)
      if (predicate(*stencil)) out[static_cast<std::ptrdiff_t>(*map)] = *first;
  }
  template <class In, class Map, class Stencil, class Out>
  static void scatter_if(In first, In last, Map map, Stencil stencil, Out out) {
    scatter_if(first, last, map, stencil, out, [](const auto& flag) { return static_cast<bool>(flag); });
  }

  // --- Transformations
  template <class It, class Function>
  static It for_each(It first, It last, Function function) {
    for (; first != last; ++first) call(function, *first);
    return first;
  }
  template <class It, class Size, class Function>
  static It for_each_n(It first, Size n, Function function) {
    return for_each(first, first + static_cast<std::ptrdiff_t>(n), function);
  }
  template <class Function, class T>
  static void call(Function& function, T&& element) {  // functions may take a tuple of references by reference
    function(element);
  }
  template <class In, class Out, class Function>
  static Out transform(In first, In last, Out out, Function function) {
    for (; first != last; ++first, ++out) *out = function(*first);
    return out;
  }
  template <class A, class B, class Out, class Function>
  static Out transform(A first, A last, B other, Out out, Function function) {
    for (; first != last; ++first, ++other, ++out) *out = function(*first, *other);
    return out;
  }
  template <class In, class Out, class Function, class Predicate>
  static Out transform_if(In first, In last, Out out, Function function, Predicate predicate) {
    for (; first != last; ++first, ++out)
      if (predicate(*first)) *out = function(*first);
    return out;
  }
  template <class In, class Stencil, class Out, class Function, class Predicate>
  static Out transform_if(In first, In last, Stencil stencil, Out out, Function function, Predicate predicate) {
    for (; first != last; ++first, ++stencil, ++out)
      if (predicate(*stencil)) *out = function(*first);
    return out;
  }
  template <class A, class B, class Stencil, class Out, class Function, class Predicate>
  static Out transform_if(A first, A last, B other, Stencil stencil, Out out, Function function, Predicate predicate) {
    for (; first != last; ++first, ++other, ++stencil, ++out)
      if (predicate(*stencil)) *out = function(*first, *other);
    return out;
  }
  template <class It, class T>
  static void replace(It first, It last, T old, T value) {
    replace_if(
        first, last, [old](const auto& x) { return x == old; }, value);
  }
  template <class In, class Out, class T>
  static Out replace_copy(In first, In last, Out out, T old, T value) {
    return replace_copy_if(
        first, last, out, [old](const auto& x) { return x == old; }, value);
  }
  template <class It, class Predicate, class T>
  static void replace_if(It first, It last, Predicate predicate, T value) {
    for (; first != last; ++first)
      if (predicate(*first)) *first = value;
  }
  template <class It, class Stencil, class Predicate, class T>
  static void replace_if(It first, It last, Stencil stencil, Predicate predicate, T value) {
    for (; first != last; ++first, ++stencil)
      if (predicate(*stencil)) *first = value;
  }
  template <class In, class Out, class Predicate, class T>
  static Out replace_copy_if(In first, In last, Out out, Predicate predicate, T value) {
    for (; first != last; ++first, ++out) {
      if (predicate(*first))
        *out = value;
      else
        *out = *first;
    }
    return out;
  }
  template <class In, class Out>
  static Out adjacent_difference(In first, In last, Out out) {
    return adjacent_difference(first, last, out, std::minus<>());
  }
  template <class In, class Out, class Function>
  static Out adjacent_difference(In first, In last, Out out, Function function) {
    const auto values = copied(first, last);
    for (std::size_t i = 0; i < values.size(); ++i, ++out) {
      if (i)
        *out = function(values[i], values[i - 1]);
      else
        *out = values[i];
    }
    return out;
  }

  // --- Reductions
  template <class It>
  static value_of<It> reduce(It first, It last) {
    return reduce(first, last, value_of<It>{}, std::plus<>());
  }
  template <class It, class T>
  static T reduce(It first, It last, T start) {
    return reduce(first, last, start, std::plus<>());
  }
  template <class It, class T, class Function>
  static T reduce(It first, It last, T start, Function function) {
    for (; first != last; ++first) start = function(start, *first);
    return start;
  }
  template <class It, class Function, class T, class Combine>
  static T transform_reduce(It first, It last, Function function, T start, Combine combine) {
    for (; first != last; ++first) start = combine(start, function(*first));
    return start;
  }
  template <class A, class B, class T>
  static T inner_product(A first, A last, B other, T start) {
    return inner_product(first, last, other, start, std::plus<>(), std::multiplies<>());
  }
  template <class A, class B, class T, class Combine, class Function>
  static T inner_product(A first, A last, B other, T start, Combine combine, Function function) {
    for (; first != last; ++first, ++other) start = combine(start, function(*first, *other));
    return start;
  }
  template <class It, class T>
  static std::ptrdiff_t count(It first, It last, T value) {
    return count_if(first, last, [value](const auto& x) { return x == value; });
  }
  template <class It, class Predicate>
  static std::ptrdiff_t count_if(It first, It last, Predicate predicate) {
    std::ptrdiff_t found = 0;
    for (; first != last; ++first) found += predicate(*first) ? 1 : 0;
    return found;
  }
  template <class It, class Less = std::less<>>
  static It min_element(It first, It last, Less less = {}) {
    It least = first;
    for (; first != last; ++first)
      if (less(*first, *least)) least = first;
    return least;
  }
  template <class It, class Less = std::less<>>
  static It max_element(It first, It last, Less less = {}) {
    It greatest = first;
    for (; first != last; ++first)
      if (less(*greatest, *first)) greatest = first;
    return greatest;
  }
  template <class It, class Less = std::less<>>
  static std::pair<It, It> minmax_element(It first, It last, Less less = {}) {
    return {min_element(first, last, less), max_element(first, last, less)};
  }
  template <class It, class T>
  static It find(It first, It last, T value) {
    return find_if(first, last, [value](const auto& x) { return x == value; });
  }
  template <class It, class Predicate>
  static It find_if(It first, It last, Predicate predicate) {
    while (first != last && !predicate(*first)) ++first;
    return first;
  }
  template <class It, class Predicate>
  static It find_if_not(It first, It last, Predicate predicate) {
    while (first != last && predicate(*first)) ++first;
    return first;
  }
  template <class It, class Predicate>
  static bool all_of(It first, It last, Predicate predicate) {
    return find_if_not(first, last, predicate) == last;
  }
  template <class It, class Predicate>
  static bool any_of(It first, It last, Predicate predicate) {
    return find_if(first, last, predicate) != last;
  }
  template <class It, class Predicate>
  static bool none_of(It first, It last, Predicate predicate) {
    return find_if(first, last, predicate) == last;
  }
  template <class A, class B, class Equal = std::equal_to<>>
  static std::pair<A, B> mismatch(A first, A last, B other, Equal equal = {}) {
    while (first != last && equal(*first, *other)) ++first, ++other;
    return {first, other};
  }
  template <class A, class B, class Equal = std::equal_to<>>
  static bool equal(A first, A last, B other, Equal same = {}) {
    return mismatch(first, last, other, same).first == last;
  }
  template <class It, class Less = std::less<>>
  static It is_sorted_until(It first, It last, Less less = {}) {
    if (first == last) return last;
    for (It next = first + 1; next != last; ++next, ++first)
      if (less(*next, *first)) return next;
    return last;
  }
  template <class It, class Less = std::less<>>
  static bool is_sorted(It first, It last, Less less = {}) {
    return is_sorted_until(first, last, less) == last;
  }

  // --- Scans; the output may be the input
  template <class In, class Out>
  static Out inclusive_scan(In first, In last, Out out) {
    return inclusive_scan(first, last, out, std::plus<>());
  }
  template <class In, class Out, class Function>
  static Out inclusive_scan(In first, In last, Out out, Function function) {
    return transform_inclusive_scan(
        first, last, out, [](const auto& x) { return x; }, function);
  }
  template <class In, class Out, class Unary, class Function>
  static Out transform_inclusive_scan(In first, In last, Out out, Unary unary, Function function) {
    if (first == last) return out;
    using Sum = std::decay_t<decltype(unary(*first))>;
    Sum sum = unary(*first);
    *out = sum;
    for (++first, ++out; first != last; ++first, ++out) {
      sum = function(sum, unary(*first));
      *out = sum;
    }
    return out;
  }
  template <class In, class Out>
  static Out exclusive_scan(In first, In last, Out out) {
    return exclusive_scan(first, last, out, value_of<In>{});
  }
  template <class In, class Out, class T>
  static Out exclusive_scan(In first, In last, Out out, T start) {
    return exclusive_scan(first, last, out, start, std::plus<>());
  }
  template <class In, class Out, class T, class Function>
  static Out exclusive_scan(In first, In last, Out out, T start, Function function) {
    return transform_exclusive_scan(
        first, last, out, [](const auto& x) { return x; }, start, function);
  }
  template <class In, class Out, class Unary, class T, class Function>
  static Out transform_exclusive_scan(In first, In last, Out out, Unary unary, T start, Function function) {
    for (; first != last; ++first, ++out) {
      const value_of<In> here = *first;
      *out = start;
      start = function(start, unary(here));
    }
    return out;
  }
  template <class Keys, class Values, class Out, class Equal = std::equal_to<>, class Function = std::plus<>>
  static Out inclusive_scan_by_key(Keys first, Keys last, Values values, Out out, Equal same = {},
                                   Function function = {}) {
    if (first == last) return out;
    value_of<Keys> key = *first;
    value_of<Values> sum = *values;
    *out = sum;
    for (++first, ++values, ++out; first != last; ++first, ++values, ++out) {
      const value_of<Values> here = *values;
      const value_of<Keys> next = *first;
      sum = same(key, next) ? static_cast<value_of<Values>>(function(sum, here)) : here;
      key = next;
      *out = sum;
    }
    return out;
  }
  template <class Keys, class Values, class Out>
  static Out exclusive_scan_by_key(Keys first, Keys last, Values values, Out out) {
    return exclusive_scan_by_key(first, last, values, out, value_of<Values>{});
  }
  template <class Keys, class Values, class Out, class T, class Equal = std::equal_to<>, class Function = std::plus<>>
  static Out exclusive_scan_by_key(Keys first, Keys last, Values values, Out out, T start, Equal same = {},
                                   Function function = {}) {
    if (first == last) return out;
    value_of<Keys> key = *first;
    for (T sum = start; first != last; ++first, ++values, ++out) {
      const value_of<Values> here = *values;
      const value_of<Keys> next = *first;
      if (!same(key, next)) sum = start;
      key = next;
      *out = sum;
      sum = function(sum, here);
    }
    return out;
  }
  template <class Keys, class Values, class KeysOut, class ValuesOut, class Equal = std::equal_to<>,
            class Function = std::plus<>>
  static std::pair<KeysOut, ValuesOut> reduce_by_key(Keys first, Keys last, Values values, KeysOut keys_out,
                                                     ValuesOut values_out, Equal same = {}, Function function = {}) {
    while (first != last) {
      value_of<Keys> key = *first;
      const value_of<Keys> head = key;
      value_of<Values> sum = *values;
      for (++first, ++values; first != last && same(key, *first); ++first, ++values) {
        key = *first;
        sum = function(sum, *values);
      }
      *keys_out = head, *values_out = sum;
      ++keys_out, ++values_out;
    }
    return {keys_out, values_out};
  }

  // --- Selections
  template <class In, class Out, class Equal = std::equal_to<>>
  static Out unique_copy(In first, In last, Out out, Equal same = {}) {
    while (first != last) {
      const value_of<In> kept = *first;
      *out = kept;
      ++out;
      for (++first; first != last && same(kept, *first); ++first) {
      }
    }
    return out;
  }
  template <class It, class Equal = std::equal_to<>>
  static It unique(It first, It last, Equal same = {}) {
    return unique_copy(first, last, first, same);
  }
  template <class It, class Equal = std::equal_to<>>
  static std::ptrdiff_t unique_count(It first, It last, Equal same = {}) {
    std::ptrdiff_t found = 0;
    for (; first != last; ++found) {
      const value_of<It> kept = *first;
      while (first != last && same(kept, *first)) ++first;
    }
    return found;
  }
  template <class Keys, class Values, class KeysOut, class ValuesOut, class Equal = std::equal_to<>>
  static std::pair<KeysOut, ValuesOut> unique_by_key_copy(Keys first, Keys last, Values values, KeysOut keys_out,
                                                          ValuesOut values_out, Equal same = {}) {
    while (first != last) {
      const value_of<Keys> kept = *first;
      *keys_out = kept;
      *values_out = *values;
      ++keys_out, ++values_out;
      for (++first, ++values; first != last && same(kept, *first); ++first, ++values) {
      }
    }
    return {keys_out, values_out};
  }
  template <class Keys, class Values, class Equal = std::equal_to<>>
  static std::pair<Keys, Values> unique_by_key(Keys first, Keys last, Values values, Equal same = {}) {
    return unique_by_key_copy(first, last, values, first, values, same);
  }
  template <class In, class Out, class T>
  static Out remove_copy(In first, In last, Out out, T value) {
    return copy_if(first, last, out, [value](const auto& x) { return !(x == value); });
  }
  template <class In, class Out, class Predicate>
  static Out remove_copy_if(In first, In last, Out out, Predicate predicate) {
    return copy_if(first, last, out, negation(predicate));
  }
  template <class In, class Stencil, class Out, class Predicate>
  static Out remove_copy_if(In first, In last, Stencil stencil, Out out, Predicate predicate) {
    return copy_if(first, last, stencil, out, negation(predicate));
  }
  template <class It, class T>
  static It remove(It first, It last, T value) {
    return remove_copy(first, last, first, value);
  }
  template <class It, class Predicate>
  static It remove_if(It first, It last, Predicate predicate) {
    return remove_copy_if(first, last, first, predicate);
  }
  template <class It, class Stencil, class Predicate>
  static It remove_if(It first, It last, Stencil stencil, Predicate predicate) {
    return remove_copy_if(first, last, stencil, first, predicate);
  }
  template <class It, class Predicate>
  static It partition(It first, It last, Predicate predicate) {
    return partition(first, last, first, predicate);
  }
  template <class It, class Stencil, class Predicate>
  static It partition(It first, It last, Stencil stencil, Predicate predicate) {
    Buffer<It> yes, no;
    for (It it = first; it != last; ++it, ++stencil) (predicate(*stencil) ? yes : no).push_back(*it);
    const It middle = written(yes, first);
    written(no, middle);
    return middle;
  }
  template <class... A>
  static auto stable_partition(A... arguments) {
    return partition(arguments...);
  }
  template <class In, class Yes, class No, class Predicate>
  static std::pair<Yes, No> partition_copy(In first, In last, Yes yes, No no, Predicate predicate) {
    for (; first != last; ++first) {
      if (predicate(*first))
        *yes = *first, ++yes;
      else
        *no = *first, ++no;
    }
    return {yes, no};
  }
  template <class It, class Predicate>
  static It partition_point(It first, It last, Predicate predicate) {
    return find_if_not(first, last, predicate);
  }
  template <class It, class Predicate>
  static bool is_partitioned(It first, It last, Predicate predicate) {
    return none_of(find_if_not(first, last, predicate), last, predicate);
  }

  // --- Sorting, merging, searching
  template <class It, class Less = std::less<>>
  static void sort(It first, It last, Less less = {}) {
    auto values = copied(first, last);
    std::stable_sort(values.begin(), values.end(), less);
    written(values, first);
  }
  template <class Keys, class Values, class Less = std::less<>>
  static void sort_by_key(Keys first, Keys last, Values values, Less less = {}) {
    const auto keys = copied(first, last);
    const auto given = copied(values, values + (last - first));
    std::vector<std::size_t> order(keys.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return less(keys[a], keys[b]); });
    for (std::size_t from : order) {
      *first = keys[from], *values = given[from];
      ++first, ++values;
    }
  }
  template <class... A>
  static void stable_sort(A... arguments) {
    sort(arguments...);
  }
  template <class... A>
  static void stable_sort_by_key(A... arguments) {
    sort_by_key(arguments...);
  }
  template <class A, class B, class Out, class Less = std::less<>>
  static Out merge(A first, A last, B other, B other_last, Out out, Less less = {}) {
    const auto a = copied(first, last);
    const auto b = copied(other, other_last);
    return std::merge(a.begin(), a.end(), b.begin(), b.end(), out, less);
  }
  template <class A, class B, class V, class W, class KeysOut, class ValuesOut, class Less = std::less<>>
  static std::pair<KeysOut, ValuesOut> merge_by_key(A first, A last, B other, B other_last, V values, W other_values,
                                                    KeysOut keys_out, ValuesOut values_out, Less less = {}) {
    while (first != last || other != other_last) {
      if (other == other_last || (first != last && !less(*other, *first))) {
        *keys_out = *first, *values_out = *values;
        ++first, ++values;
      } else {
        *keys_out = *other, *values_out = *other_values;
        ++other, ++other_values;
      }
      ++keys_out, ++values_out;
    }
    return {keys_out, values_out};
  }
#define SIMT_SET(name)                                                               \
  template <class A, class B, class Out, class Less = std::less<>>                   \
  static Out name(A first, A last, B other, B other_last, Out out, Less less = {}) { \
    return std::name(first, last, other, other_last, out, less);                     \
  }
  SIMT_SET(set_union)
  SIMT_SET(set_intersection)
  SIMT_SET(set_difference)
  SIMT_SET(set_symmetric_difference)
#undef SIMT_SET

  // Of one value, or of a range of values into an output. What tells them apart is whether the third argument is an
  // iterator.
  template <class T, class = void>
  struct is_iterator : std::false_type {};
  template <class T>
  struct is_iterator<T, std::void_t<typename std::iterator_traits<T>::value_type>> : std::true_type {};

  template <class Find, class It, class T, class... Rest>
  static auto search(Find find, It first, It last, T value, Rest... rest) {
    if constexpr (is_iterator<T>::value)
      return search_all(find, first, last, value, rest...);
    else
      return find(first, last, value, rest...);
  }
  template <class Find, class It, class V, class Out, class... Less>
  static Out search_all(Find find, It first, It last, V values, V values_last, Out out, Less... less) {
    for (; values != values_last; ++values, ++out) {
      const value_of<V> value = *values;
      const auto found = find(first, last, value, less...);
      if constexpr (std::is_same_v<std::decay_t<decltype(found)>, bool>)
        *out = found;
      else
        *out = static_cast<std::ptrdiff_t>(found - first);
    }
    return out;
  }
  template <class... A>
  static auto lower_bound(A... arguments) {
    return search([](auto... a) { return std::lower_bound(a...); }, arguments...);
  }
  template <class... A>
  static auto upper_bound(A... arguments) {
    return search([](auto... a) { return std::upper_bound(a...); }, arguments...);
  }
  template <class... A>
  static auto binary_search(A... arguments) {
    return search([](auto... a) { return std::binary_search(a...); }, arguments...);
  }
  template <class It, class T, class... Less>
  static std::pair<It, It> equal_range(It first, It last, T value, Less... less) {
    return std::equal_range(first, last, value, less...);
  }
};

// A range may begin with a const_iterator and end with an iterator.
template <class Algorithm, class First, class Last, class... Rest>
auto with_one_type(Algorithm algorithm, First first, Last last, Rest... rest) {
  if constexpr (std::is_pointer_v<First> && std::is_pointer_v<Last> && !std::is_same_v<First, Last>) {
    using Both = const std::remove_pointer_t<First>*;
    if constexpr (std::is_convertible_v<Last, Both>)
      return algorithm(static_cast<Both>(first), static_cast<Both>(last), rest...);
    else
      return algorithm(first, last, rest...);
  } else {
    return algorithm(first, last, rest...);
  }
}

// From the memory of one side to that of the other, through a buffer of the host.
template <class In, class Out>
Out copy_across(In first, In last, Out out) {
  using Value = std::conditional_t<is_device<In>, value_of<In>, value_of<raw_t<Out>>>;
  const auto n = last - first;
  if (n <= 0) return out;
  std::allocator<Value> memory;
  const auto release = [&](Value* p) { memory.deallocate(p, static_cast<std::size_t>(n)); };
  Value* values = memory.allocate(static_cast<std::size_t>(n));
  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(Value);
  cudaError_t error = cudaSuccess;
  if constexpr (is_device<In>) {
    const auto from = Raw<In>::to(first);
    if constexpr (std::is_pointer_v<raw_t<In>>)
      error = cudaMemcpy(static_cast<void*>(values), static_cast<const void*>(from), bytes, cudaMemcpyDeviceToHost);
    else
      error = simt::run_and_wait("thrust::copy", nullptr, [=] { Serial::copy_n(from, n, values); });
    if (error == cudaSuccess) out = Serial::copy_n(values, n, out);
  } else {
    for (std::ptrdiff_t i = 0; i < n; ++i) new (values + i) Value(first[i]);
    const auto to = Raw<Out>::to(out);
    if constexpr (std::is_pointer_v<raw_t<Out>>)
      error = cudaMemcpy(static_cast<void*>(to), static_cast<const void*>(values), bytes, cudaMemcpyHostToDevice);
    else
      error = simt::run_and_wait("thrust::copy", nullptr, [=] { Serial::copy_n(values, n, to); });
    out += n;
  }
  release(values);
  check(error, "thrust::copy");
  return out;
}

}  // namespace detail

#define SIMT_ALGORITHM(name)                                                                                 \
  template <class... Arguments>                                                                              \
  auto name(const Arguments&... arguments) {                                                                 \
    const auto serial = [](auto... alike) { return detail::Serial::name(alike...); };                        \
    return detail::run(                                                                                      \
        "thrust::" #name, [=](auto... raw) { return detail::with_one_type(serial, raw...); }, arguments...); \
  }
// clang-format off
SIMT_ALGORITHM(copy_if) SIMT_ALGORITHM(fill) SIMT_ALGORITHM(fill_n) SIMT_ALGORITHM(sequence) SIMT_ALGORITHM(tabulate)
SIMT_ALGORITHM(generate) SIMT_ALGORITHM(generate_n) SIMT_ALGORITHM(reverse) SIMT_ALGORITHM(reverse_copy)
SIMT_ALGORITHM(shuffle) SIMT_ALGORITHM(shuffle_copy) SIMT_ALGORITHM(swap_ranges) SIMT_ALGORITHM(gather) SIMT_ALGORITHM(gather_if) SIMT_ALGORITHM(scatter)
SIMT_ALGORITHM(scatter_if) SIMT_ALGORITHM(for_each) SIMT_ALGORITHM(for_each_n) SIMT_ALGORITHM(transform)
SIMT_ALGORITHM(transform_if) SIMT_ALGORITHM(replace) SIMT_ALGORITHM(replace_if) SIMT_ALGORITHM(replace_copy) SIMT_ALGORITHM(replace_copy_if)
SIMT_ALGORITHM(adjacent_difference) SIMT_ALGORITHM(reduce) SIMT_ALGORITHM(transform_reduce) SIMT_ALGORITHM(inner_product)
SIMT_ALGORITHM(count) SIMT_ALGORITHM(count_if) SIMT_ALGORITHM(min_element) SIMT_ALGORITHM(max_element)
SIMT_ALGORITHM(minmax_element) SIMT_ALGORITHM(find) SIMT_ALGORITHM(find_if) SIMT_ALGORITHM(find_if_not)
SIMT_ALGORITHM(all_of) SIMT_ALGORITHM(any_of) SIMT_ALGORITHM(none_of) SIMT_ALGORITHM(mismatch) SIMT_ALGORITHM(equal)
SIMT_ALGORITHM(is_sorted) SIMT_ALGORITHM(is_sorted_until) SIMT_ALGORITHM(inclusive_scan) SIMT_ALGORITHM(exclusive_scan)
SIMT_ALGORITHM(transform_inclusive_scan) SIMT_ALGORITHM(transform_exclusive_scan) SIMT_ALGORITHM(inclusive_scan_by_key)
SIMT_ALGORITHM(exclusive_scan_by_key) SIMT_ALGORITHM(reduce_by_key) SIMT_ALGORITHM(unique) SIMT_ALGORITHM(unique_copy)
SIMT_ALGORITHM(unique_count) SIMT_ALGORITHM(unique_by_key) SIMT_ALGORITHM(unique_by_key_copy) SIMT_ALGORITHM(remove)
SIMT_ALGORITHM(remove_if) SIMT_ALGORITHM(remove_copy) SIMT_ALGORITHM(remove_copy_if) SIMT_ALGORITHM(partition)
SIMT_ALGORITHM(stable_partition) SIMT_ALGORITHM(partition_copy) SIMT_ALGORITHM(partition_point)
SIMT_ALGORITHM(is_partitioned) SIMT_ALGORITHM(sort) SIMT_ALGORITHM(stable_sort) SIMT_ALGORITHM(sort_by_key)
SIMT_ALGORITHM(stable_sort_by_key) SIMT_ALGORITHM(merge) SIMT_ALGORITHM(merge_by_key) SIMT_ALGORITHM(set_union)
SIMT_ALGORITHM(set_intersection) SIMT_ALGORITHM(set_difference) SIMT_ALGORITHM(set_symmetric_difference)
SIMT_ALGORITHM(lower_bound) SIMT_ALGORITHM(upper_bound) SIMT_ALGORITHM(binary_search) SIMT_ALGORITHM(equal_range)
// clang-format on
#undef SIMT_ALGORITHM

    // Copies also go from one side's memory to the other's. An iterator without memory is on both.
    template <class In, class Out>
    Out copy(In first, In last, Out out) {
  constexpr bool has_no_memory =
      !detail::is_device<In> && std::is_same_v<detail::reference_of<In>, detail::value_of<In>>;
  constexpr bool is_discarded = std::is_same_v<discard_iterator<>, Out>;
  if constexpr (detail::is_device<In> != detail::is_device<Out> && !has_no_memory && !is_discarded)
    return detail::copy_across(first, last, out);
  else
    return detail::run(
        "thrust::copy", [](auto... raw) { return detail::Serial::copy(raw...); }, first, last, out);
}
template <class Policy, class In, class Out, class = std::enable_if_t<detail::is_policy<Policy>>>
Out copy(const Policy& policy, In first, In last, Out out) {
  if constexpr (detail::is_device<In> != detail::is_device<Out>)
    return thrust::copy(first, last, out);
  else
    return detail::run(
        "thrust::copy", [](auto... raw) { return detail::Serial::copy(raw...); }, policy, first, last, out);
}
template <class In, class Size, class Out, class = std::enable_if_t<!detail::is_policy<In>>>
Out copy_n(In first, Size n, Out out) {
  return thrust::copy(first, first + static_cast<std::ptrdiff_t>(n), out);
}
template <class Policy, class In, class Size, class Out, class = std::enable_if_t<detail::is_policy<Policy>>>
Out copy_n(const Policy& policy, In first, Size n, Out out) {
  return thrust::copy(policy, first, first + static_cast<std::ptrdiff_t>(n), out);
}
template <class... Arguments>
auto uninitialized_copy(const Arguments&... arguments) {
  return thrust::copy(arguments...);
}
template <class... Arguments>
void uninitialized_fill(const Arguments&... arguments) {
  thrust::fill(arguments...);
}
template <class... Arguments>
auto uninitialized_fill_n(const Arguments&... arguments) {
  return thrust::fill_n(arguments...);
}

template <class T>
T min(const T& a, const T& b) {
  return b < a ? b : a;
}
template <class T>
T max(const T& a, const T& b) {
  return a < b ? b : a;
}
using std::swap;

}  // namespace thrust
