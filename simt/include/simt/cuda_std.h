// cuda::std is the host's standard library, but for what must know the scheduler: the types that wait.
#pragma once

namespace cuda {
namespace std {

using namespace ::std;

}  // namespace std
}  // namespace cuda
