// The operators rms_norm and fused_add_rms_norm of PyTorch in C++, by the C functions that PyTorch 2.10 and newer
// export for libraries that are built without its headers. A call of such an operator takes the host less time than of
// one that is written in Python, as rms_norm/_operators.py has them for an older PyTorch.
#include <dlfcn.h>
#include <tvm/ffi/function.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "arrays.h"

namespace rms_norm_binding {
namespace {

// --- What PyTorch exports: its torch/csrc/inductor/aoti_torch/c/shim.h and torch/csrc/stable/c/shim.h ---------------

// An argument or a result. A number or a bool is its bits, a tensor or a string is a handle, which belongs to the one
// who gets it, and what may be None is nullptr or a pointer, made by new, to such a value.
using Value = uint64_t;
using Handle = void*;
constexpr uint64_t kVersion = uint64_t{2} << 56 | uint64_t{10} << 48;  // of the rules for values: PyTorch 2.10

// A function of the PyTorch that Python has loaded; `found` is nullptr if it has none of this name.
template <class... Parameters>
struct Function {
  int (*found)(Parameters...) = nullptr;

  explicit Function(const char* name, const char* library = "libtorch_cpu.so") {
    if (void* const loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD))
      found = reinterpret_cast<decltype(found)>(dlsym(loaded, name));
  }
  void operator()(Parameters... given) const {
    if (found(given...) != 0) throw std::runtime_error("a function of PyTorch failed, which has printed why");
  }
};

struct Torch {
  Function<Handle, int64_t*> get_dim{"aoti_torch_get_dim"};
  Function<Handle, int64_t**> get_sizes{"aoti_torch_get_sizes"};
  Function<Handle, int64_t**> get_strides{"aoti_torch_get_strides"};
  Function<Handle, int32_t*> get_dtype{"aoti_torch_get_dtype"};
  Function<Handle, int32_t*> get_device_type{"aoti_torch_get_device_type"};
  Function<Handle, int32_t*> get_device_index{"aoti_torch_get_device_index"};
  Function<Handle, void**> get_data_ptr{"aoti_torch_get_data_ptr"};
  Function<int64_t, const int64_t*, const int64_t*, int32_t, int32_t, int32_t, Handle*> empty_strided{
      "aoti_torch_empty_strided"};
  Function<Handle, Handle*> copy_handle{"aoti_torch_new_tensor_handle"};
  Function<Handle> delete_tensor{"aoti_torch_delete_tensor_object"};
  Function<int32_t, void**> get_stream{"aoti_torch_get_current_cuda_stream", "libtorch_cuda.so"};
  Function<Handle, const char**> get_text{"torch_string_c_str"};
  Function<Handle> delete_string{"torch_delete_string"};
  Function<const char*, const char*, Value*, uint64_t> call_operator{"torch_call_dispatcher"};
  Function<const char*, const char*, const char*, uint32_t, Handle*> new_library{"aoti_torch_library_init_impl"};
  Function<Handle, const char*, void (*)(Value*, uint64_t, uint64_t), uint64_t> implement{"torch_library_impl"};
};
// PyTorch 2.10 has the last one, and all others then. It is first asked for by register_operators().
const Torch& torch() {
  static const Torch found;
  return found;
}

// --- Values ---------------------------------------------------------------------------------------------------------

template <class T>
T as(Value value) {
  T result;
  std::memcpy(&result, &value, sizeof(T));
  return result;
}

struct String {
  Handle handle;
  const char* text = nullptr;
  explicit String(Value value) : handle(as<Handle>(value)) { torch().get_text(handle, &text); }
  String(const String&) = delete;
  ~String() { torch().delete_string(handle); }

  // Its place among the names that an option may have.
  int place(const char* option, const std::initializer_list<const char*>& names, const char* known) const {
    int i = 0;
    for (const char* name : names) {
      if (std::strcmp(text, name) == 0) return i;
      ++i;
    }
    throw std::invalid_argument(std::string(option) + " is '" + text + "'; " + known + " are known");
  }
};

constexpr int32_t kCudaOfTorch = 1;  // of PyTorch's types of devices; 0 is the CPU
constexpr int32_t kBFloat16OfTorch = 15;
// By PyTorch's numbers: uint8, int8, int16, int32, int64, float16, float32, float64, complex of two such, bool.
constexpr DLDataType kTypesOfTorch[] = {{kDLUInt, 8, 1},     {kDLInt, 8, 1},       {kDLInt, 16, 1},
                                        {kDLInt, 32, 1},     {kDLInt, 64, 1},      {kDLFloat, 16, 1},
                                        {kDLFloat, 32, 1},   {kDLFloat, 64, 1},    {kDLComplex, 32, 1},
                                        {kDLComplex, 64, 1}, {kDLComplex, 128, 1}, {kDLBool, 8, 1}};
DLDataType type_of_torch(int32_t number) {
  if (number < static_cast<int32_t>(std::size(kTypesOfTorch))) return kTypesOfTorch[number];
  if (number == kBFloat16OfTorch) return {kDLBfloat, 16, 1};
  return {static_cast<uint8_t>(number), 0, 0};  // see name_of()
}

// A tensor and its description; none for nullptr.
struct TorchTensor {
  Handle handle;
  int32_t dtype = 0, device_type = 0, device_index = 0;
  DLTensor described{};

  explicit TorchTensor(Handle given) : handle(given) {
    if (handle == nullptr) return;
    int64_t dimensions = 0;
    torch().get_dim(handle, &dimensions);
    torch().get_sizes(handle, &described.shape);
    torch().get_strides(handle, &described.strides);
    torch().get_dtype(handle, &dtype);
    torch().get_device_type(handle, &device_type);
    torch().get_device_index(handle, &device_index);
    torch().get_data_ptr(handle, &described.data);
    described.ndim = static_cast<int32_t>(dimensions);
    described.device = {device_type == kCudaOfTorch ? kDLCUDA : kDLCPU, std::max(0, device_index)};
    described.dtype = type_of_torch(dtype);
  }
  TorchTensor(const TorchTensor&) = delete;
  ~TorchTensor() {
    if (handle != nullptr) torch().delete_tensor(handle);
  }
  static Handle optional(Value value) {
    auto* const given = as<Value*>(value);
    const Handle handle = given ? as<Handle>(*given) : nullptr;
    delete given;
    return handle;
  }
  Value release() { return reinterpret_cast<Value>(std::exchange(handle, nullptr)); }
  const DLTensor* tensor() const { return handle ? &described : nullptr; }

  bool is_contiguous() const {
    int64_t wanted = 1;
    for (int i = described.ndim - 1; i >= 0; --i) {
      if (described.shape[i] == 0 || (described.shape[i] > 1 && described.strides[i] != wanted)) return false;
      wanted *= described.shape[i];
    }
    return true;
  }
  // As torch.empty_like(). Contiguous tensors are spared the way through PyTorch's dispatcher.
  Handle empty_like() const {
    Handle made = nullptr;
    if (is_contiguous()) {
      torch().empty_strided(described.ndim, described.shape, described.strides, dtype, device_type, device_index,
                            &made);
      return made;
    }
    torch().copy_handle(handle, &made);
    Value stack[] = {reinterpret_cast<Value>(made), 0, 0, 0, 0, 0};  // and None for each option
    torch().call_operator("aten::empty_like", "", stack, kVersion);
    return as<Handle>(stack[0]);
  }
};

// --- The operators --------------------------------------------------------------------------------------------------

// (x, residual if `adds`, weight or None, eps, weight_offset, rounding, dependent_launch, cache, batch_invariant) -> y,
// and the sum.
template <bool adds>
void run_operator(Value* stack, uint64_t, uint64_t) {
  const TorchTensor x(as<Handle>(stack[0])), residual(adds ? as<Handle>(stack[1]) : nullptr);
  const Value* const rest = stack + (adds ? 2 : 1);
  const TorchTensor weight(TorchTensor::optional(rest[0]));
  const String rounding(rest[3]), cache(rest[5]);
  rms_norm::Options options;
  options.eps = static_cast<float>(as<double>(rest[1]));
  options.weight_offset = static_cast<float>(as<double>(rest[2]));
  const int rounding_place = rounding.place("rounding", {"gemma", "llama"}, "'gemma' and 'llama'");
  options.rounding = static_cast<rms_norm::Rounding>(rounding_place);
  options.dependent_launch = as<bool>(rest[4]);
  constexpr char kCaches[] = "'tuned', 'normal' and 'evict_first'";
  options.cache = static_cast<rms_norm::Cache>(cache.place("cache", {"tuned", "normal", "evict_first"}, kCaches));
  options.batch_invariant = as<bool>(rest[6]);

  TorchTensor y(x.empty_like()), sum(adds ? residual.empty_like() : nullptr);
  void* stream = nullptr;
  if (kDevice == kDLCUDA && x.device_type == kCudaOfTorch) torch().get_stream(x.device_index, &stream);
  try {
    norm({x.tensor(), residual.tensor(), sum.tensor(), weight.tensor(), y.tensor()}, options,
         static_cast<cudaStream_t>(stream));
  } catch (const tvm::ffi::Error& error) {  // PyTorch makes RuntimeError of the one, and ValueError of the other
    if (error.kind() == "RuntimeError") throw std::runtime_error(error.message());
    throw std::invalid_argument(error.message());
  }
  stack[0] = y.release();
  if (adds) stack[1] = sum.release();
}

// Gives the operators, which Python has defined, these kernels. False if this PyTorch does not have what that needs.
bool register_operators() {
  static bool done = false;  // where Python loads its modules again
  if (torch().implement.found == nullptr || done) return done;
  done = true;
  for (const char* key : {"CPU", "CUDA"}) {
    Handle library = nullptr;  // stays for as long as the process does
    torch().new_library("rms_norm", key, "operators.cu", __LINE__, &library);
    for (const char* name : {"rms_norm", "_rms_norm"}) torch().implement(library, name, run_operator<false>, kVersion);
    for (const char* name : {"fused_add_rms_norm", "_fused_add_rms_norm"})
      torch().implement(library, name, run_operator<true>, kVersion);
  }
  return true;
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(register_operators, register_operators)

}  // namespace rms_norm_binding
