// cuda::std is the host's standard library, except for the types that wait and so must know the scheduler.
#pragma once

namespace cuda {
namespace std {

using namespace ::std;

}  // namespace std
}  // namespace cuda
