#include "counters.h"

#include <algorithm>

#include "devices.h"
#include "hooks.h"
#include "memory.h"
#include "recorder.h"
#include "scheduler.h"
#include "state.h"

namespace simt::analysis {

namespace {

constexpr uintptr_t kSector = 32;
constexpr unsigned kBanks = 32, kBankWidth = 4;

unsigned lanes_in(uint32_t mask) { return static_cast<unsigned>(__builtin_popcount(mask)); }

template <class Visit>
void for_each_lane(uint32_t mask, Visit visit) {
  for (; mask; mask &= mask - 1) visit(static_cast<unsigned>(__builtin_ctz(mask)));
}

// Wavefronts of the lanes that are served together.
unsigned passes(const Request& request, uint32_t mask, bool merge_equal) {
  std::vector<uintptr_t> words;
  for_each_lane(mask, [&](unsigned lane) {
    const uintptr_t begin = request.address[lane] / kBankWidth;
    const uintptr_t end = (request.address[lane] + request.size + kBankWidth - 1) / kBankWidth;
    for (uintptr_t word = begin; word < end; ++word) words.push_back(word);
  });
  std::sort(words.begin(), words.end());
  if (merge_equal) words.erase(std::unique(words.begin(), words.end()), words.end());
  unsigned of_bank[kBanks] = {};
  for (const uintptr_t word : words) ++of_bank[word % kBanks];
  return *std::max_element(of_bank, of_bank + kBanks);
}

// Lanes that update one word atomically take turns, and each turn touches its sectors.
Sectors sectors_in_turns(const Request& request) {
  Request all = request, turn = request;
  all.kind = turn.kind = Kind::load;
  Sectors sum = sectors_of(all);
  sum.touched = 0;
  for (uint32_t left = request.mask; left; left &= ~turn.mask) {
    turn.mask = 0;
    for_each_lane(left, [&](unsigned lane) {
      bool is_free = true;
      for_each_lane(turn.mask, [&](unsigned other) { is_free &= request.address[other] != request.address[lane]; });
      if (is_free) turn.mask |= 1u << lane;
    });
    sum.touched += sectors_of(turn).touched;
  }
  return sum;
}

}  // namespace

Sectors sectors_of(const Request& request) {
  if (request.kind == Kind::atomic) return sectors_in_turns(request);
  std::vector<uintptr_t> begins;
  for_each_lane(request.mask, [&](unsigned lane) { begins.push_back(request.address[lane]); });
  std::sort(begins.begin(), begins.end());
  uintptr_t bytes = 0, covered = 0, next_sector = 0;
  unsigned touched = 0;
  for (const uintptr_t begin : begins) {
    const uintptr_t end = begin + request.size;
    if (end > covered) bytes += end - std::max(begin, covered);
    covered = std::max(covered, end);
    const uintptr_t first = std::max(begin / kSector, next_sector), last = (end - 1) / kSector;
    if (last >= first) touched += static_cast<unsigned>(last - first + 1);
    next_sector = std::max(next_sector, last + 1);
  }
  return {touched, static_cast<unsigned>((bytes + kSector - 1) / kSector)};
}

namespace {

// Two groups of lanes are served together if each lane's neighbour, or each lane's next but one, wants the same word or
// nothing.
bool merge(const Request& request, uint32_t mask) {
  const auto pairs_with = [&](unsigned step) {
    bool all = true;
    for_each_lane(mask, [&](unsigned lane) {
      const unsigned other = lane ^ step;
      all = all && (!(mask >> other & 1) || request.address[other] == request.address[lane]);
    });
    return all;
  };
  return pairs_with(1) || pairs_with(2);
}

}  // namespace

// Accesses of 8 bytes are served by half warps, of 16 bytes by quarter warps. Two halves of a load may be merged, and
// two quarters of one half. All lanes that want one word share it; atomics are done one lane after the other.
Wavefronts wavefronts_of(const Request& request) {
  const bool is_atomic = request.kind == Kind::atomic;
  Wavefronts sum{0, 0};
  const auto serve = [&](uint32_t lanes) {
    const uint32_t mask = request.mask & lanes;
    if (!mask) return;
    sum.taken += passes(request, mask, !is_atomic);
    const unsigned row = kBanks * kBankWidth;
    sum.ideal += request.size <= 16 ? 1 : static_cast<unsigned>((request.size + row - 1) / row);
  };
  if (request.size <= 4) {
    serve(~0u);
  } else if (request.size <= 8) {
    if (request.kind == Kind::load && merge(request, request.mask)) {
      serve(~0u);
    } else {
      serve(0xffff);
      serve(0xffff0000);
    }
  } else if (request.size <= 16) {
    for (const uint32_t half : {0xffffu, 0xffff0000u}) {
      if (request.kind == Kind::load && merge(request, request.mask & half)) {
        serve(half);
      } else {
        serve(half & 0x00ff00ff);
        serve(half & 0xff00ff00);
      }
    }
  } else {  // bulk copies
    for_each_lane(request.mask, [&](unsigned lane) { serve(1u << lane); });
  }
  return sum;
}

Wavefronts wavefronts_in_each_block(const Request& request) {
  Wavefronts sum{0, 0};
  for (uint32_t left = request.mask; left;) {
    Request of_block = request;
    const char* arena = worker ? worker->arena_at(request.address[__builtin_ctz(left)]) : nullptr;
    if (arena) {
      of_block.mask = 0;
      for_each_lane(left, [&](unsigned lane) {
        if (worker->arena_at(request.address[lane]) == arena) of_block.mask |= 1u << lane;
      });
    }
    const Wavefronts one = wavefronts_of(of_block);
    sum.taken += one.taken;
    sum.ideal += one.ideal;
    left &= ~of_block.mask;
  }
  return sum;
}

void ByteSet::add(uintptr_t address, size_t size) {
  while (size) {
    const uintptr_t page = address / kPage, offset = address % kPage;
    const size_t here = std::min<size_t>(size, kPage - offset);
    if (!last_ || page != last_page_) {
      last_ = &pages_[page];
      last_page_ = page;
    }
    for (uintptr_t at = offset; at < offset + here;) {
      const size_t bits = std::min<size_t>(64 - at % 64, offset + here - at);
      (*last_)[at / 64] |= (bits == 64 ? ~static_cast<uint64_t>(0) : (static_cast<uint64_t>(1) << bits) - 1) << at % 64;
      at += bits;
    }
    address += here;
    size -= here;
  }
}

uint64_t ByteSet::count() const {
  uint64_t sum = 0;
  for (const auto& [number, page] : pages_)
    for (const uint64_t word : page) sum += static_cast<unsigned>(__builtin_popcountll(word));
  return sum;
}

Counters& counters() {
  static auto* counters = new Counters;
  return *counters;
}

Counters::Running& Counters::now() {
  if (!latest_ || latest_id_ != running_launch) {
    latest_ = &running_[running_launch];
    latest_id_ = running_launch;
  }
  return *latest_;
}

// An atomic crosses in both directions: its operand, and what it found.
void Counters::count_link(const Running& running, const Request& request, Site& site) {
  Allocation a{};
  for_each_lane(request.mask, [&](unsigned lane) {
    const uintptr_t address = request.address[lane];
    if (address - a.begin >= a.size && !find_allocation(reinterpret_cast<const void*>(address), a)) a = {};
    if (a.kind != MemoryKind::device || a.device == running.device || address - a.begin >= a.size) return;
    if (request.kind != Kind::store && !(request.kind == Kind::atomic && request.overwrites))
      site.read_from_peers += request.size;
    if (request.kind != Kind::load) site.written_to_peers += request.size;
  });
}

void Counters::launch_begins(const LaunchInfo& launch) {
  Running& running = now();
  running = {};
  running.device = launch.device;
  if (!is_profiling) return;
  const auto same = [&](dim3 a, dim3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; };
  const auto found = std::find_if(kernels_.begin(), kernels_.end(), [&](const Kernel* k) {
    return k->launch.kernel == launch.kernel && same(k->launch.grid, launch.grid) &&
           same(k->launch.block, launch.block) && same(k->launch.cluster, launch.cluster) &&
           k->launch.dynamic_shared == launch.dynamic_shared;
  });
  Kernel* const kernel = running.kernel = found == kernels_.end() ? new Kernel : *found;
  kernel->launch = launch;
  if (!kernel->launches) kernels_.push_back(kernel);
  ++kernel->launches;
}

void Counters::launch_ends() {
  const Running& running = now();
  if (Kernel* kernel = running.kernel) {
    kernel->distinct_load_bytes += running.loaded.count();
    kernel->distinct_store_bytes += running.stored.count();
    kernel->distinct_atomic_bytes += running.updated.count();
    kernel->busiest_thread_bytes += running.most_moved;
  }
  running_.erase(running_launch);
  latest_ = nullptr;
}

void Counters::block_ends(const BlockInfo& block) {
  Kernel* const kernel = now().kernel;
  if (!kernel) return;
  ++kernel->blocks;
  now().moved.erase(block.sequence);
  const size_t dynamic = (kernel->launch.dynamic_shared + 127) / 128 * 128;
  kernel->static_shared = std::max(kernel->static_shared, block.shared_size - std::min(block.shared_size, dynamic));
}

void Counters::request(const Request& request) {
  Running& running = now();
  Kernel* const kernel = running.kernel;
  if (!kernel) return;
  Site& site = kernel->sites[{request.pc, request.space, request.kind, request.size, request.is_async}];
  if (!site.requests) site.like = request;
  const uint64_t lanes = lanes_in(request.mask), bytes = lanes * request.size;
  ++site.requests;
  site.lanes += lanes;
  site.bytes += bytes;
  unsigned cost, ideal;
  if (request.space == Space::global) {
    const Sectors sectors = sectors_of(request);
    cost = sectors.touched, ideal = sectors.ideal;
    const bool loads = request.kind != Kind::store, stores = request.kind != Kind::load;
    if (loads) kernel->load_bytes += bytes;
    if (stores) kernel->store_bytes += bytes;
    if (several_devices()) count_link(running, request, site);
    std::vector<uint64_t>& moved = running.moved[request.where.block->sequence];
    moved.resize(std::max<size_t>(moved.size(), 32 * (request.where.warp + 1)));
    for_each_lane(request.mask, [&](unsigned lane) {
      ByteSet& touched = loads && stores ? running.updated : loads ? running.loaded : running.stored;
      touched.add(request.address[lane], request.size);
      if (request.size <= kLargestAccess)
        running.most_moved = std::max(running.most_moved, moved[32 * request.where.warp + lane] += request.size);
    });
  } else {
    const Wavefronts wavefronts = wavefronts_in_each_block(request);
    cost = wavefronts.taken, ideal = wavefronts.ideal;
  }
  site.units += cost;
  site.ideal += ideal;
  WorstRequest& worst = site.worst;
  const unsigned excess = cost - std::min(cost, ideal);
  if (site.requests > 1 && std::make_pair(excess, cost) <= std::make_pair(worst.excess, worst.cost)) return;
  const Named named = name_of(request.address[__builtin_ctz(request.mask)]);
  worst.cost = cost;
  worst.excess = excess;
  worst.block = request.where.block->index;
  worst.warp = request.where.warp;
  worst.mask = request.mask;
  worst.begin = named.begin;
  worst.base = named.base;
  std::copy(request.address, request.address + 32, worst.address.begin());
}

void Counters::called(const OperationCall& call) {
  Kernel* const kernel = now().kernel;
  if (!kernel) return;
  OperationCount& count = kernel->operations[{call.pc, call.operation}];
  ++count.calls;
  count.lanes += lanes_in(call.mask);
}

void Counters::ran(WarpRef, Pc pc, uint32_t mask) {
  Kernel* const kernel = now().kernel;
  if (!kernel) return;
  BlockCount& count = kernel->blocks_run[pc];
  ++count.times;
  count.lanes += lanes_in(mask);
}

}  // namespace simt::analysis
