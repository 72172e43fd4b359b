// Kernel launches: what <<<>>> becomes, and CUDA's launch, attribute and occupancy functions.
//
// Every CUDA file includes this, so it does without <functional>, <vector> and <algorithm>: they would double the time
// that a small program takes to compile.
#pragma once
#include <type_traits>
#include <utility>

#include "cuda_runtime_api.h"
#include "vector_types.h"

namespace simt {

struct LaunchConfig {
  const char* kernel;  // its name, or null
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
  dim3 cluster_size{1, 1, 1};
  bool cooperative = false;
  bool dependent = false;          // may start before the launch before it has ended
  const void* function = nullptr;  // where it is known: the key of cudaFuncSetAttribute
  const char* file;
  int line;

  LaunchConfig(const char* kernel, dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr,
               const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : kernel(kernel), grid(grid), block(block), shared(shared), stream(stream), file(file), line(line) {}
  LaunchConfig& cluster(unsigned x, unsigned y = 1, unsigned z = 1) {
    cluster_size = dim3(x, y, z);
    return *this;
  }
};

// A kernel with its arguments. Pointers among them are listed, so that host memory handed to a kernel is refused.
class BoundKernel {
 public:
  struct Pointer {
    int position;  // among the arguments, from one
    const void* value;
    bool writable;
  };
  virtual ~BoundKernel() = default;
  virtual void run_thread() const = 0;
  const Pointer* begin() const { return pointers_; }
  const Pointer* end() const { return pointers_ + count_; }

 protected:
  BoundKernel(const Pointer* pointers, int count) : pointers_(pointers), count_(count) {}
  BoundKernel(const BoundKernel&) = delete;

 private:
  const Pointer* pointers_;
  int count_;
};

template <class Thread, int arguments>
class BoundTo final : public BoundKernel {
 public:
  template <class... Arguments>
  explicit BoundTo(Thread thread, const Arguments&... all)
      : BoundKernel(pointers_, count_of<Arguments...>), thread_(thread) {
    int position = 0, found = 0;
    (note(++position, found, all), ...);
  }
  void run_thread() const override { thread_(); }

 private:
  template <class T>
  static constexpr bool is_data_pointer = std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>;
  template <class... Arguments>
  static constexpr int count_of = (0 + ... + static_cast<int>(is_data_pointer<Arguments>));
  template <class T>
  void note(int position, int& found, const T& argument) {
    if constexpr (is_data_pointer<T>)
      pointers_[found++] = {position, const_cast<const void*>(static_cast<const volatile void*>(argument)),
                            !std::is_const_v<std::remove_pointer_t<T>>};
  }
  mutable Thread thread_;
  Pointer pointers_[arguments + 1];
};

// Takes the kernel over and deletes it when it has run, or when the graph that it was captured into goes.
cudaError_t launch_kernel(const LaunchConfig& config, const BoundKernel* kernel);
void start(const LaunchConfig& config, const BoundKernel* kernel);  // the same for <<<>>>, which returns no error

// What the translator puts before a call whose value the program throws away: `Discarded("cudaFree"), cudaFree(p);`
struct Discarded {
  const char *function, *file;
  int line;
  Discarded(const char* function, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : function(function), file(file), line(line) {}
};
void note_discarded(const char* function, const char* file, int line, cudaError_t error);
inline cudaError_t operator,(const Discarded& call, cudaError_t error) {
  if (error != cudaSuccess) note_discarded(call.function, call.file, call.line, error);
  return error;
}

// Kernels with a reference among their parameters see the caller's object, which must be managed memory.
template <class T>
struct Reference {
  T& object;
  explicit Reference(T& object) : object(object) {}
};

// A kernel's arguments are copied as bytes: none of their constructors and destructors runs for a launch or in a
// thread.
template <class T>
struct Bytes {
  alignas(T) unsigned char object[sizeof(T)];
  explicit Bytes(const T& given) { __builtin_memcpy(object, __builtin_addressof(given), sizeof(T)); }
};

// Whether g++ passes a class by its address, and lets the caller construct and destroy it.
template <class T>
constexpr bool is_passed_by_address =
    std::is_class_v<T> && !(std::is_trivially_destructible_v<T> &&
                            std::is_trivially_copy_constructible_v<T> == std::is_copy_constructible_v<T> &&
                            std::is_trivially_move_constructible_v<T> == std::is_move_constructible_v<T>);

// What a launch keeps of an argument.
template <class Parameter, class T = std::decay_t<Parameter>>
using Kept =
    std::conditional_t<std::is_lvalue_reference_v<Parameter> && !std::is_const_v<std::remove_reference_t<Parameter>>,
                       Reference<std::remove_reference_t<Parameter>>,
                       std::conditional_t<is_passed_by_address<T>, Bytes<T>, T>>;

// A parameter as a thread passes it.
template <class Parameter>
using Passed = std::conditional_t<is_passed_by_address<Parameter>, std::decay_t<Parameter>*, Parameter>;
template <class Parameter, class Copy>
decltype(auto) pass(Copy& copy) {
  if constexpr (std::is_lvalue_reference_v<Parameter> && !std::is_const_v<std::remove_reference_t<Parameter>>)
    return (copy.object);
  else if constexpr (!is_passed_by_address<std::decay_t<Parameter>>)
    return std::move(copy);
  else if constexpr (std::is_reference_v<Parameter>)
    return static_cast<Parameter>(reinterpret_cast<std::decay_t<Parameter>&>(copy.object));
  else
    return reinterpret_cast<std::decay_t<Parameter>*>(copy.object);
}

// A thread owns its parameters.
template <class... Parameters>
const BoundKernel* bind_arguments(void (*kernel)(Parameters...), const Kept<Parameters>&... kept) {
  const auto function = reinterpret_cast<void (*)(Passed<Parameters>...)>(kernel);
  auto thread = [function, kept...]() mutable {
    [&](auto... copies) { function(pass<Parameters>(copies)...); }(kept...);
  };
  return new BoundTo<decltype(thread), sizeof...(Parameters)>(std::move(thread), kept...);
}
template <class... Parameters, class... Arguments>
const BoundKernel* bind_converted(void (*kernel)(Parameters...), Arguments&... arguments) {
  return bind_arguments(kernel, static_cast<Kept<Parameters>>(arguments)...);
}

// launch(K, config)(arguments...): the parameter types are K's, so nullptr, 0 and {1, 2} convert as in a plain call.
template <class... Parameters>
auto launch(void (*kernel)(Parameters...), LaunchConfig config) {
  config.function = reinterpret_cast<const void*>(kernel);
  return [kernel, config](Parameters... arguments) { start(config, bind_converted(kernel, arguments...)); };
}

// For kernels whose template arguments follow from the call, overloaded ones and those with default arguments. Where
// an argument is passed by its address, the kernel's own address is needed: find(types...) gives it, if it can.
template <class T>
struct Type {
  using type = T;
};
template <class Type>
using As = typename Type::type;
template <class Type>
using AsConst = const std::remove_pointer_t<As<Type>>*;

template <class Call, class Find>
auto launch_deduced(Call call, Find find, LaunchConfig config) {
  return [call, find, config](auto... arguments) {
    constexpr bool needs_address = (false || ... || is_passed_by_address<decltype(arguments)>);
    if constexpr (needs_address && std::is_invocable_v<Find, Type<decltype(arguments)>...>) {
      start(config, bind_converted(find(Type<decltype(arguments)>()...), arguments...));
    } else {
      auto thread = [call, arguments...]() mutable {
        [&](auto... copies) { call(std::move(copies)...); }(arguments...);
      };
      using Bound = BoundTo<decltype(thread), sizeof...(arguments)>;
      start(config, new Bound(std::move(thread), arguments...));
    }
  };
}

// Kernels launched through an untyped pointer: how to bind an array of argument addresses.
using Binder = const BoundKernel* (*)(const void* function, void** arguments);
void register_kernel(const void* function, Binder binder);
cudaError_t launch_untyped(LaunchConfig config, const void* function, void** arguments);

template <class... Parameters>
struct TypedBinder {
  template <size_t... I>
  static const BoundKernel* bind_each(void (*kernel)(Parameters...), void** arguments, std::index_sequence<I...>) {
    (void)arguments;
    return bind_converted(kernel, *static_cast<std::decay_t<Parameters>*>(arguments[I])...);
  }
  static const BoundKernel* bind_all(const void* function, void** arguments) {
    return bind_each(reinterpret_cast<void (*)(Parameters...)>(const_cast<void*>(function)), arguments,
                     std::index_sequence_for<Parameters...>());
  }
};

template <class... Parameters>
const void* register_typed(void (*kernel)(Parameters...)) {
  const void* function = reinterpret_cast<const void*>(kernel);
  register_kernel(function, TypedBinder<Parameters...>::bind_all);
  return function;
}

// handle<K>() is K, and sees to it that K can be launched when all that is left of it is a void pointer.
template <auto kernel>
struct Registration {
  static const void* const function;
};
template <auto kernel>
const void* const Registration<kernel>::function = register_typed(kernel);
template <auto kernel>
constexpr auto handle() {
  (void)&Registration<kernel>::function;
  return kernel;
}

bool is_kernel(const void* function);
cudaError_t refuse(cudaError_t error);  // the last error, from now on
LaunchConfig from_cuda(const cudaLaunchConfig_t& config);
int blocks_per_multiprocessor(int block_size, size_t shared);

}  // namespace simt

// --- Launch --------------------------------------------------------------------------------------------------------

inline cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared = 0,
                                    cudaStream_t stream = nullptr) {
  return simt::launch_untyped({nullptr, grid, block, shared, stream}, function, arguments);
}
template <class... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, size_t shared = 0,
                             cudaStream_t stream = nullptr) {
  return cudaLaunchKernel(simt::register_typed(kernel), grid, block, arguments, shared, stream);
}

inline cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                               size_t shared = 0, cudaStream_t stream = nullptr) {
  simt::LaunchConfig config(nullptr, grid, block, shared, stream);
  config.cooperative = true;
  return simt::launch_untyped(config, function, arguments);
}
template <class... P>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments,
                                        size_t shared = 0, cudaStream_t stream = nullptr) {
  return cudaLaunchCooperativeKernel(simt::register_typed(kernel), grid, block, arguments, shared, stream);
}

inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  return config ? simt::launch_untyped(simt::from_cuda(*config), function, arguments)
                : simt::refuse(cudaErrorInvalidValue);
}
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... arguments) {
  if (!config) return simt::refuse(cudaErrorInvalidValue);
  simt::LaunchConfig own = simt::from_cuda(*config);
  own.function = reinterpret_cast<const void*>(kernel);
  return [&](P... converted) {
    return simt::launch_kernel(own, simt::bind_converted(kernel, converted...));
  }(std::forward<A>(arguments)...);
}

// --- Attributes ----------------------------------------------------------------------------------------------------

extern "C" {
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function);
cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache config);
cudaError_t cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig config);
}

template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class... P>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(P...)) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}
template <class... P>
cudaError_t cudaFuncSetCacheConfig(void (*kernel)(P...), cudaFuncCache config) {
  return cudaFuncSetCacheConfig(reinterpret_cast<const void*>(kernel), config);
}
template <class... P>
cudaError_t cudaFuncSetSharedMemConfig(void (*kernel)(P...), cudaSharedMemConfig config) {
  return cudaFuncSetSharedMemConfig(reinterpret_cast<const void*>(kernel), config);
}

// --- Occupancy: by threads, blocks and shared memory of the modelled multiprocessor; registers are not modelled -----

namespace simt {
template <class Kernel>
bool is_no_kernel(Kernel kernel) {
  return !is_kernel((const void*)kernel);
}
}  // namespace simt
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, Kernel kernel, int block_size,
                                                                   size_t shared, unsigned) {
  if (simt::is_no_kernel(kernel)) return simt::refuse(cudaErrorInvalidDeviceFunction);
  if (!blocks || block_size < 1) return simt::refuse(cudaErrorInvalidValue);
  *blocks = simt::blocks_per_multiprocessor(block_size, shared);
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel kernel, int block_size, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, block_size, shared, 0);
}
namespace simt {
// shared_of(context, size) is what a block of that size asks for.
cudaError_t occupancy_block_size(int* grid, int* block, size_t (*shared_of)(void* context, int size), void* context,
                                 int limit);
}  // namespace simt
template <class Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, Kernel kernel, size_t shared = 0, int limit = 0) {
  if (simt::is_no_kernel(kernel)) return simt::refuse(cudaErrorInvalidDeviceFunction);
  const auto same = [](void* context, int) { return *static_cast<size_t*>(context); };
  return simt::occupancy_block_size(grid, block, same, &shared, limit);
}
template <class SharedOfBlock, class Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid, int* block, Kernel kernel, SharedOfBlock shared,
                                                           int limit = 0) {
  if (simt::is_no_kernel(kernel)) return simt::refuse(cudaErrorInvalidDeviceFunction);
  const auto ask = [](void* context, int size) {
    return static_cast<size_t>((*static_cast<SharedOfBlock*>(context))(size));
  };
  return simt::occupancy_block_size(grid, block, ask, &shared, limit);
}
template <class Kernel>
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, Kernel kernel, int blocks, int block_size) {
  if (simt::is_no_kernel(kernel)) return simt::refuse(cudaErrorInvalidDeviceFunction);
  if (!bytes || blocks < 1 || block_size < 1) return simt::refuse(cudaErrorInvalidValue);
  const size_t part = 228 * 1024 / static_cast<size_t>(blocks) - 1024, most = 227 * 1024;
  *bytes = part < most ? part : most;
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, Kernel kernel, const cudaLaunchConfig_t* config) {
  if (simt::is_no_kernel(kernel)) return simt::refuse(cudaErrorInvalidDeviceFunction);
  if (!size || !config) return simt::refuse(cudaErrorInvalidValue);
  *size = 8;
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, Kernel kernel, const cudaLaunchConfig_t* config) {
  if (simt::is_no_kernel(kernel)) return simt::refuse(cudaErrorInvalidDeviceFunction);
  if (!clusters || !config) return simt::refuse(cudaErrorInvalidValue);
  const simt::LaunchConfig own = simt::from_cuda(*config);
  const unsigned threads = own.block.x * own.block.y * own.block.z;
  const unsigned blocks = own.cluster_size.x * own.cluster_size.y * own.cluster_size.z;
  const int resident = simt::blocks_per_multiprocessor(static_cast<int>(threads), own.shared);
  *clusters = static_cast<int>(4 * static_cast<unsigned>(resident) / (blocks ? blocks : 1));
  return cudaSuccess;
}
