// One thread of a group calls a function; the others pass by, or get its result.
#pragma once
#include "tile.h"

namespace cooperative_groups {

template <class Group, class Function, class... Arguments>
void invoke_one(const Group& group, Function&& function, Arguments&&... arguments) {
  if (group.thread_rank() == 0) std::forward<Function>(function)(std::forward<Arguments>(arguments)...);
}

template <class Group, class Function, class... Arguments>
auto invoke_one_broadcast(const Group& group, Function&& function, Arguments&&... arguments) {
  using Result = details::Plain<decltype(function(std::forward<Arguments>(arguments)...))>;
  static_assert(!std::is_void_v<Result>, "invoke_one_broadcast needs a function that returns a value");
  Result result{};
  if (group.thread_rank() == 0) result = std::forward<Function>(function)(std::forward<Arguments>(arguments)...);
  return group.shfl(result, 0);
}

}  // namespace cooperative_groups
