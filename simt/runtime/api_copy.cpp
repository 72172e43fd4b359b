// Copies, fills and symbols. Every range is checked before it is touched.
#include <link.h>

#include <cstring>
#include <string>

#include "in_flight.h"
#include "memory.h"
#include "streams.h"

using namespace simt;

bool (*simt::find_array)(cudaArray_const_t array, cudaPitchedPtr& place, size_t& element) = nullptr;

namespace {

// A pitched box of bytes; a plain range has one row.
struct Box {
  const void* pointer;
  size_t row_pitch, slice_pitch;
};
struct Extent {
  size_t width, height = 1, depth = 1;
  bool empty() const { return !width || !height || !depth; }
};

char* row_of(const Box& box, size_t y, size_t z) {
  return static_cast<char*>(const_cast<void*>(box.pointer)) + z * box.slice_pitch + y * box.row_pitch;
}

bool multiply_add(size_t a, size_t b, size_t& sum) {
  size_t product;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(sum, product, &sum);
}

// Bytes from the box's first to its last, or false where that is no size.
bool span(const Box& box, Extent extent, size_t& size) {
  size = extent.width;
  return multiply_add(box.row_pitch, extent.height - 1, size) && multiply_add(box.slice_pitch, extent.depth - 1, size);
}

// Only the program's own variables are symbols: no temporaries, no strings.
bool is_variable(const void* address, bool writable) {
  struct Search {
    uintptr_t address;
    unsigned flags;
    bool found;
  } search{reinterpret_cast<uintptr_t>(address), static_cast<unsigned>(writable ? PF_R | PF_W : PF_R), false};
  const auto visit = [](dl_phdr_info* object, size_t, void* data) {
    auto& s = *static_cast<Search*>(data);
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const auto& segment = object->dlpi_phdr[i];
      const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
      if (segment.p_type == PT_LOAD && (segment.p_flags & s.flags) == s.flags && s.address >= begin &&
          s.address < begin + segment.p_memsz)
        s.found = true;
    }
    return static_cast<int>(s.found);
  };
  dl_iterate_phdr(visit, &search);
  return search.found;
}

// Why a range may not be on a side of a copy.
std::string why_not(Side side, const char* role, const void* pointer, size_t size) {
  Allocation a;
  const bool is_known = find_allocation(pointer, a);
  if (is_known && (side == Side::device || a.kind != MemoryKind::device))
    return std::string("its ") + role + " has " +
           std::to_string(a.begin + a.size - reinterpret_cast<uintptr_t>(pointer)) + " bytes left in its " +
           std::to_string(a.size) + "-byte allocation (" + a.made_by + "), and " + std::to_string(size) +
           " are asked for";
  if (side == Side::host)
    return std::string("its ") + role + " is " + (is_known ? "device memory" : describe_address(pointer)) +
           ", and the direction says host memory; the destination comes first, then the source";
  if (is_variable(pointer, false))
    return std::string("its ") + role +
           " is a variable of the program, and the direction says device memory; copy a __constant__ or __device__ "
           "variable with cudaMemcpyToSymbol or cudaMemcpyFromSymbol; otherwise the destination comes first";
  return std::string("its ") + role + " is " + describe_address(pointer) + ", and " +
         (is_host_memory(pointer) ? "the direction says device memory; the destination comes first, then the source"
                                  : "it must be live device memory");
}

cudaError_t check_range(Side side, const char* role, const Box& box, Extent extent) {
  size_t size = 0;
  if (span(box, extent, size) && stands_on(side, box.pointer, size)) return cudaSuccess;
  explain(why_not(side, role, box.pointer, size));
  return cudaErrorInvalidValue;
}

Side infer(const void* pointer) {
  Allocation a;
  return find_allocation(pointer, a) || in_device_space(pointer) ? Side::device : Side::host;
}

cudaError_t check_copy(const Box& dst, const Box& src, Extent extent, cudaMemcpyKind kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (extent.empty()) return cudaSuccess;
  if (extent.width > dst.row_pitch || extent.width > src.row_pitch) return cudaErrorInvalidPitchValue;
  Side to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ? Side::device : Side::host;
  Side from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ? Side::device : Side::host;
  if (kind == cudaMemcpyDefault) {
    to = infer(dst.pointer);
    from = infer(src.pointer);
  }
  const cudaError_t error = check_range(to, "destination", dst, extent);
  return error == cudaSuccess ? check_range(from, "source", src, extent) : error;
}

cudaError_t copy(const Box& dst, const Box& src, Extent extent, cudaMemcpyKind kind) {
  const cudaError_t error = check_copy(dst, src, extent, kind);
  if (error != cudaSuccess || extent.empty()) return error;
  size_t dst_size = 0, src_size = 0;
  span(dst, extent, dst_size);
  span(src, extent, src_size);
  const OpenRange open_dst(dst.pointer, dst_size), open_src(src.pointer, src_size);
  for (size_t z = 0; z < extent.depth; ++z)
    for (size_t y = 0; y < extent.height; ++y) {
      std::memmove(row_of(dst, y, z), row_of(src, y, z), extent.width);
      note_written(row_of(dst, y, z), extent.width);
    }
  return cudaSuccess;
}

cudaError_t check_set(const Box& dst, Extent extent) {
  if (extent.empty()) return cudaSuccess;
  return extent.width > dst.row_pitch ? cudaErrorInvalidPitchValue
                                      : check_range(Side::device, "destination", dst, extent);
}

// Fills with a value of 1, 2 or 4 bytes.
cudaError_t set(const Box& dst, unsigned value, size_t value_size, Extent extent) {
  const cudaError_t error = check_set(dst, extent);
  if (error != cudaSuccess || extent.empty()) return error;
  size_t size = 0;
  span(dst, extent, size);
  const OpenRange open(dst.pointer, size);
  for (size_t z = 0; z < extent.depth; ++z)
    for (size_t y = 0; y < extent.height; ++y) {
      char* row = row_of(dst, y, z);
      note_written(row, extent.width);
      if (value_size == 1)
        std::memset(row, static_cast<int>(value), extent.width);
      else
        for (size_t x = 0; x < extent.width; x += value_size) std::memcpy(row + x, &value, value_size);
    }
  return cudaSuccess;
}

// Wrong arguments are refused at the call, even where the copy itself waits in a graph.
cudaError_t enqueue_copy(const Box& dst, const Box& src, Extent extent, cudaMemcpyKind kind, cudaStream_t stream) {
  const cudaError_t error = check_copy(dst, src, extent, kind);
  if (error != cudaSuccess) return error;
  return enqueue(
      stream, [=] { return copy(dst, src, extent, kind); }, cudaGraphNodeTypeMemcpy);
}

int device_of_memory(const void* pointer) {
  Allocation a;
  return find_allocation(pointer, a) && a.kind == MemoryKind::device ? a.device : current_device();
}

cudaError_t copy_now(const Box& dst, const Box& src, Extent extent, cudaMemcpyKind kind) {
  cudaError_t error = check_legacy_stream();
  if (error == cudaSuccess) error = check_unsafe_call();
  was_waited_for();
  if (several_devices() && error == cudaSuccess) {  // it comes after what both devices were given
    join(*find_stream(nullptr), {}, 1u << device_of_memory(dst.pointer) | 1u << device_of_memory(src.pointer));
  }
  return error == cudaSuccess ? enqueue_copy(dst, src, extent, kind, nullptr) : error;
}

// A call that returns when its copy has ended.
template <class Copy>
cudaError_t finish(Copy copy) {
  const cudaError_t error = api(copy);
  if (!several_devices() || error != cudaSuccess) return error;
  wait_for_stream(nullptr);
  return record(cudaSuccess);
}

// Of a copy between peers that names the devices.
cudaError_t check_owners(const void* dst, int dst_device, const void* src, int src_device, size_t count) {
  const auto belongs = [&](const char* role, const void* pointer, int device) {
    Allocation a;
    if (!find_allocation(pointer, a) || a.kind != MemoryKind::device || a.device == device) return true;
    explain(std::string("its ") + role + " is memory of device " + std::to_string(a.device) +
            ", and the call names device " + std::to_string(device));
    return false;
  };
  return !count || (belongs("destination", dst, dst_device) && belongs("source", src, src_device))
             ? cudaSuccess
             : cudaErrorInvalidValue;
}

cudaError_t enqueue_set(const Box& dst, unsigned value, Extent extent, cudaStream_t stream, size_t value_size = 1) {
  const cudaError_t error = check_set(dst, extent);
  if (error != cudaSuccess) return error;
  return enqueue(
      stream, [=] { return set(dst, value, value_size, extent); }, cudaGraphNodeTypeMemset);
}

Box plain(const void* pointer, size_t size) { return {pointer, size, size}; }

Box pitched(const cudaPitchedPtr& p, const cudaPos& at = {}) {
  const size_t offset = at.z * p.pitch * p.ysize + at.y * p.pitch + at.x;
  return {p.ptr ? static_cast<char*>(p.ptr) + offset : nullptr, p.pitch, p.pitch * p.ysize};
}

bool from_array(cudaArray_const_t array, cudaPos at, Extent extent, Box& box, size_t& element) {
  cudaPitchedPtr place;
  if (!find_array || !find_array(array, place, element) || at.x + extent.width > place.xsize ||
      at.y + extent.height > place.ysize)
    return false;
  at.x *= element;
  box = pitched(place, at);
  return true;
}

template <class Run>
cudaError_t copy_3d(const cudaMemcpy3DParms* p, Run run) {
  if (!p) return cudaErrorInvalidValue;
  Extent extent{p->extent.width, p->extent.height, p->extent.depth};
  Box from = pitched(p->srcPtr, p->srcPos), to = pitched(p->dstPtr, p->dstPos);
  size_t element = 1;  // where an array takes part, widths are counted in its elements
  if (p->srcArray && !from_array(p->srcArray, p->srcPos, extent, from, element)) return cudaErrorInvalidValue;
  if (p->dstArray && !from_array(p->dstArray, p->dstPos, extent, to, element)) return cudaErrorInvalidValue;
  extent.width *= element;
  return run(to, from, extent, p->kind);
}

}  // namespace

// --- Copies --------------------------------------------------------------------------------------------------------

cudaError_t cudaMemcpy(void* dst, const void* src, size_t count, cudaMemcpyKind kind) {
  return finish([&] { return copy_now(plain(dst, count), plain(src, count), {count}, kind); });
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t count, cudaMemcpyKind kind, cudaStream_t stream) {
  return api([&] { return enqueue_copy(plain(dst, count), plain(src, count), {count}, kind, stream); });
}

cudaError_t cudaMemcpyPeer(void* dst, int dstDevice, const void* src, int srcDevice, size_t count) {
  return finish([&] {
    if (!is_device(dstDevice) || !is_device(srcDevice)) return cudaErrorInvalidDevice;
    if (const cudaError_t error = check_owners(dst, dstDevice, src, srcDevice, count)) return error;
    return copy_now(plain(dst, count), plain(src, count), {count}, cudaMemcpyDeviceToDevice);
  });
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int dstDevice, const void* src, int srcDevice, size_t count,
                                cudaStream_t stream) {
  return api([&] {
    if (!is_device(dstDevice) || !is_device(srcDevice)) return cudaErrorInvalidDevice;
    if (const cudaError_t error = check_owners(dst, dstDevice, src, srcDevice, count)) return error;
    return enqueue_copy(plain(dst, count), plain(src, count), {count}, cudaMemcpyDeviceToDevice, stream);
  });
}

cudaError_t cudaMemcpy2D(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  return finish([&] { return copy_now({dst, dpitch, 0}, {src, spitch, 0}, {width, height}, kind); });
}

cudaError_t cudaMemcpy2DAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return api([&] { return enqueue_copy({dst, dpitch, 0}, {src, spitch, 0}, {width, height}, kind, stream); });
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters) {
  return finish([&] { return copy_3d(parameters, copy_now); });
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parameters, cudaStream_t stream) {
  return api([&] {
    return copy_3d(parameters, [stream](const Box& dst, const Box& src, Extent extent, cudaMemcpyKind kind) {
      return enqueue_copy(dst, src, extent, kind, stream);
    });
  });
}

// Setting device memory does not wait for it, so these go through the stream alone.
cudaError_t cudaMemset(void* pointer, int value, size_t count) { return cudaMemsetAsync(pointer, value, count); }

cudaError_t cudaMemsetAsync(void* pointer, int value, size_t count, cudaStream_t stream) {
  return api([&] { return enqueue_set(plain(pointer, count), static_cast<unsigned>(value), {count}, stream); });
}

cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  return cudaMemset2DAsync(pointer, pitch, value, width, height);
}

cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return api([&] { return enqueue_set({pointer, pitch, 0}, static_cast<unsigned>(value), {width, height}, stream); });
}

cudaError_t cudaMemset3D(cudaPitchedPtr pointer, int value, cudaExtent extent) {
  return cudaMemset3DAsync(pointer, value, extent);
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr pointer, int value, cudaExtent extent, cudaStream_t stream) {
  return api([&] {
    return enqueue_set(pitched(pointer), static_cast<unsigned>(value), {extent.width, extent.height, extent.depth},
                       stream);
  });
}

namespace simt {
cudaError_t enqueue_fill(const cudaMemsetParams& p, cudaStream_t stream) {
  if (p.elementSize != 1 && p.elementSize != 2 && p.elementSize != 4) return cudaErrorInvalidValue;
  const size_t width = p.width * p.elementSize;
  const size_t pitch = p.height > 1 ? p.pitch : width;
  return enqueue_set({p.dst, pitch, 0}, p.value, {width, p.height}, stream, p.elementSize);
}
}  // namespace simt

// --- Symbols: __device__ and __constant__ variables are plain variables of the program -----------------------------

namespace simt {

namespace {
// The variable as a range that copies may use; it stays known once its address was asked for.
class Symbol {
 public:
  Symbol(const void* symbol, size_t size) {
    const Allocation range{reinterpret_cast<uintptr_t>(symbol), size, MemoryKind::symbol, "__device__ variable", 0};
    added_ = add_foreign(range);
    begin_ = range.begin;
  }
  ~Symbol() {
    if (added_) remove_foreign(begin_);
  }
  void keep() { added_ = false; }

 private:
  uintptr_t begin_;
  bool added_;
};

cudaError_t copy_symbol(const void* symbol, bool write, size_t size, size_t count, size_t offset, const Box& dst,
                        const Box& src, cudaMemcpyKind kind, cudaStream_t stream, bool async) {
  if (!is_variable(symbol, write)) return cudaErrorInvalidSymbol;
  if (offset > size || count > size - offset) return cudaErrorInvalidValue;
  Symbol range(symbol, size);
  if (is_capturing(stream) || several_devices()) range.keep();
  return async ? enqueue_copy(dst, src, {count}, kind, stream) : copy_now(dst, src, {count}, kind);
}
}  // namespace

cudaError_t copy_to_symbol(const void* symbol, size_t size, const void* src, size_t count, size_t offset,
                           cudaMemcpyKind kind, cudaStream_t stream, bool async) {
  const auto copy = [&] {
    if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost) return cudaErrorInvalidMemcpyDirection;
    return copy_symbol(symbol, true, size, count, offset, plain(static_cast<const char*>(symbol) + offset, count),
                       plain(src, count), kind, stream, async);
  };
  return async ? api(copy) : finish(copy);
}

cudaError_t copy_from_symbol(void* dst, const void* symbol, size_t size, size_t count, size_t offset,
                             cudaMemcpyKind kind, cudaStream_t stream, bool async) {
  const auto copy = [&] {
    if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice) return cudaErrorInvalidMemcpyDirection;
    return copy_symbol(symbol, false, size, count, offset, plain(dst, count),
                       plain(static_cast<const char*>(symbol) + offset, count), kind, stream, async);
  };
  return async ? api(copy) : finish(copy);
}

cudaError_t symbol_address(void** pointer, const void* symbol, size_t size) {
  return api([&] {
    if (!pointer) return cudaErrorInvalidValue;
    if (!is_variable(symbol, false)) return cudaErrorInvalidSymbol;
    if (several_devices())
      return not_supported(
          "cudaGetSymbolAddress: the copies of a __device__ variable lie at one address for all devices of the CPU "
          "device, so that a peer would use its own; allocate the memory with cudaMalloc");
    Symbol(symbol, size).keep();
    *pointer = const_cast<void*>(symbol);
    return cudaSuccess;
  });
}

}  // namespace simt
