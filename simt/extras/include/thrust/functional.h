// Thrust's function objects and placeholders.
#pragma once
#include <functional>

#include "detail/iterators.h"

namespace thrust {

template <class Argument, class Result>
struct unary_function {
  using argument_type = Argument;
  using result_type = Result;
};
template <class First, class Second, class Result>
struct binary_function {
  using first_argument_type = First;
  using second_argument_type = Second;
  using result_type = Result;
};

#define SIMT_FUNCTION(name, Result, parameters, expression)             \
  template <class T = void>                                             \
  struct name {                                                         \
    using result_type = Result;                                         \
    constexpr Result operator() parameters const { return expression; } \
  };
#define SIMT_BINARY(name, expression)                          \
  SIMT_FUNCTION(name, T, (const T& a, const T& b), expression) \
  template <>                                                  \
  struct name<void> {                                          \
    template <class A, class B>                                \
    constexpr auto operator()(const A& a, const B& b) const {  \
      return expression;                                       \
    }                                                          \
  };
#define SIMT_PREDICATE(name, expression)                          \
  SIMT_FUNCTION(name, bool, (const T& a, const T& b), expression) \
  template <>                                                     \
  struct name<void> {                                             \
    template <class A, class B>                                   \
    constexpr bool operator()(const A& a, const B& b) const {     \
      return expression;                                          \
    }                                                             \
  };
#define SIMT_UNARY(name, expression)               \
  SIMT_FUNCTION(name, T, (const T& a), expression) \
  template <>                                      \
  struct name<void> {                              \
    template <class A>                             \
    constexpr auto operator()(const A& a) const {  \
      return expression;                           \
    }                                              \
  };
SIMT_BINARY(plus, a + b)
SIMT_BINARY(minus, a - b)
SIMT_BINARY(multiplies, a* b)
SIMT_BINARY(divides, a / b)
SIMT_BINARY(modulus, a % b)
SIMT_BINARY(bit_and, a& b)
SIMT_BINARY(bit_or, a | b)
SIMT_BINARY(bit_xor, a ^ b)
SIMT_BINARY(maximum, a < b ? b : a)
SIMT_BINARY(minimum, b < a ? b : a)
SIMT_PREDICATE(equal_to, a == b)
SIMT_PREDICATE(not_equal_to, a != b)
SIMT_PREDICATE(greater, a > b)
SIMT_PREDICATE(less, a < b)
SIMT_PREDICATE(greater_equal, a >= b)
SIMT_PREDICATE(less_equal, a <= b)
SIMT_PREDICATE(logical_and, a&& b)
SIMT_PREDICATE(logical_or, a || b)
SIMT_UNARY(negate, -a)
SIMT_UNARY(square, a* a)
SIMT_UNARY(identity, a)
SIMT_UNARY(logical_not, !a)
#undef SIMT_UNARY
#undef SIMT_PREDICATE
#undef SIMT_BINARY
#undef SIMT_FUNCTION

template <class First = void, class Second = void>
struct project1st {
  template <class A, class B>
  constexpr A operator()(const A& a, const B&) const {
    return a;
  }
};
template <class First = void, class Second = void>
struct project2nd {
  template <class A, class B>
  constexpr B operator()(const A&, const B& b) const {
    return b;
  }
};
template <class Predicate>
struct unary_negate {
  Predicate predicate;
  template <class... A>
  bool operator()(const A&... a) const {
    return !predicate(a...);
  }
};
template <class Predicate>
unary_negate<Predicate> not1(const Predicate& predicate) {
  return {predicate};
}
template <class Predicate>
unary_negate<Predicate> not2(const Predicate& predicate) {
  return {predicate};
}
template <class Predicate>
unary_negate<Predicate> not_fn(const Predicate& predicate) {
  return {predicate};
}

// --- Placeholders: 2 * _1 + _2 is a function object ------------------------------------------------------------------
namespace detail {
template <class Function>
struct Expression {
  Function function;
  template <class... A>
  auto operator()(const A&... a) const {
    return function(a...);
  }
};
template <std::size_t i>
struct Argument {
  template <class... A>
  auto operator()(const A&... a) const {
    return std::get<i>(std::tuple<const A&...>(a...));
  }
};
template <class T>
struct is_expression : std::false_type {};
template <class Function>
struct is_expression<Expression<Function>> : std::true_type {};
template <class T>
auto evaluated(const T& part) {
  if constexpr (is_expression<T>::value)
    return part;
  else
    return [part](const auto&...) { return part; };
}
template <class Combine, class Left, class Right>
auto combined(Combine combine, const Left& left, const Right& right) {
  auto function = [combine, l = evaluated(left), r = evaluated(right)](const auto&... a) {
    return combine(l(a...), r(a...));
  };
  return Expression<decltype(function)>{function};
}
#define SIMT_EXPRESSION(op)                                                                                 \
  template <class L, class R, class = std::enable_if_t<is_expression<L>::value || is_expression<R>::value>> \
  auto operator op(const L& left, const R& right) {                                                         \
    return combined([](const auto& a, const auto& b) { return a op b; }, left, right);                      \
  }
SIMT_EXPRESSION(+)
SIMT_EXPRESSION(-)
SIMT_EXPRESSION(*)
SIMT_EXPRESSION(/)
SIMT_EXPRESSION(%)
SIMT_EXPRESSION(==)
SIMT_EXPRESSION(!=)
SIMT_EXPRESSION(<)
SIMT_EXPRESSION(>)
SIMT_EXPRESSION(<=)
SIMT_EXPRESSION(>=)
SIMT_EXPRESSION(&&)
SIMT_EXPRESSION(||)
SIMT_EXPRESSION(&)
SIMT_EXPRESSION(|)
SIMT_EXPRESSION(^)
#undef SIMT_EXPRESSION
template <class Function>
auto operator-(const Expression<Function>& e) {
  return combined([](const auto& a, int) { return -a; }, e, 0);
}
template <class Function>
auto operator!(const Expression<Function>& e) {
  return combined([](const auto& a, int) { return !a; }, e, 0);
}
}  // namespace detail
namespace placeholders {
inline constexpr detail::Expression<detail::Argument<0>> _1{};
inline constexpr detail::Expression<detail::Argument<1>> _2{};
inline constexpr detail::Expression<detail::Argument<2>> _3{};
inline constexpr detail::Expression<detail::Argument<3>> _4{};
}  // namespace placeholders

}  // namespace thrust
