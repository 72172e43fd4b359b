// The detector of hazards, driven by events that no kernel made: who does what in which order is written out here.
#include "analysis/hazards.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <memory>

namespace simt::analysis {

// What the rest of the analysis would say.
std::string place_json(Pc pc) { return "\"pc\": " + std::to_string(pc); }
std::string place_json(const std::string& file, int line) {
  return "\"file\": \"" + file + "\", \"line\": " + std::to_string(line);
}
std::string variable_text(uintptr_t) { return "x \"0\""; }

}  // namespace simt::analysis

using namespace simt::analysis;

namespace {

constexpr uint32_t kAll = ~0u;
alignas(4096) unsigned char global_bytes[1 << 16];
alignas(4096) unsigned char shared_bytes[16][1 << 18];
constexpr auto global = [](int word) { return uintptr_t(global_bytes + 4 * word); };
constexpr auto shared = [](int word, int block = 0) { return uintptr_t(shared_bytes[block] + 4 * word); };

unsigned count_of(const std::string& text, const std::string& part) {
  unsigned count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// A launch; lines are pcs. found() is what was reported since it began.
class Kernel {
 public:
  explicit Kernel(unsigned threads = 64, unsigned blocks = 1, unsigned cluster = 1) {
    before_ = hazards_json();
    static unsigned launches = 0;
    name_ = "kernel" + std::to_string(++launches);
    d().launch_begins({launches, name_, dim3(blocks), dim3(threads), dim3(cluster), 0, false});
    for (unsigned b = 0; b < blocks; ++b) {
      blocks_.push_back({b, {b, 0, 0}, b / cluster, b % cluster, shared(0, int(b % 16)), 1024});
      if (blocks <= 16) d().block_begins(blocks_.back());
    }
  }
  ~Kernel() { d().launch_ends(); }
  static Observer& d() { return hazards(); }

  WarpRef warp(unsigned w, unsigned b = 0) { return {&blocks_[b], w}; }
  BlockInfo& block(unsigned b) { return blocks_[b]; }

  struct Options {
    Space space = Space::shared;
    uint32_t mask = kAll, size = 4;
    int stride = 4;
    bool is_volatile = false, is_async = false, acquires = false, releases = false;
    const void* stored = nullptr;
    uint32_t unwritten = 0;
  };
  void access(Kind kind, WarpRef where, Pc line, uintptr_t address, Options o) {
    Request r{{kind, o.is_volatile, o.is_async, o.acquires, o.releases}, where, line, o.space, o.size, o.mask, {}};
    for (int lane = 0; lane < 32; ++lane) r.address[lane] = address + uintptr_t(lane * o.stride);
    r.stored = static_cast<const unsigned char*>(o.stored);
    r.unwritten = o.unwritten;
    d().request(r);
  }
  void load(WarpRef w, Pc line, uintptr_t address, Options o) { access(Kind::load, w, line, address, o); }
  void store(WarpRef w, Pc line, uintptr_t address, Options o) { access(Kind::store, w, line, address, o); }
  void atomic(WarpRef w, Pc line, uintptr_t address, Options o) { access(Kind::atomic, w, line, address, o); }
  void load(WarpRef w, Pc line, uintptr_t address) { load(w, line, address, {}); }
  void store(WarpRef w, Pc line, uintptr_t address) { store(w, line, address, {}); }
  void barrier(unsigned b = 0) { d().block_barrier_completed(blocks_[b]); }
  void cluster_barrier(unsigned first, unsigned behind) {  // of blocks of one warp
    for (unsigned b = first; b < behind; ++b)
      for (unsigned lane = 0; lane < 32; ++lane) d().cluster_barrier_arrived(warp(0, b), lane);
    for (unsigned b = first; b < behind; ++b)
      for (unsigned lane = 0; lane < 32; ++lane) d().cluster_barrier_waited(warp(0, b), lane);
  }
  void end(unsigned b = 0) { d().block_ends(blocks_[b]); }
  void fence(WarpRef w, unsigned lane = 0, FenceScope scope = FenceScope::device) { d().fenced(w, lane, scope); }

  const std::string& name() const { return name_; }
  std::string json() const { return hazards_json(); }
  unsigned found() const { return count_of(json(), name_ + "\""); }
  bool has(const std::string& part) const {
    const std::string all = json();
    const size_t at = all.find(name_ + "\"");
    const bool is_there = at != std::string::npos && all.find(part, all.rfind("{\"what\"", at)) != std::string::npos;
    if (!is_there) MESSAGE("no " << part << " in " << all.substr(before_.size() - 1));
    return is_there;
  }
  bool between(Pc first, Pc second) const {
    return has("\"first\": {\"pc\": " + std::to_string(first) + ",") &&
           has("\"second\": {\"pc\": " + std::to_string(second) + ",");
  }

 private:
  std::vector<BlockInfo> blocks_;
  std::string before_, name_;
};

using Options = Kernel::Options;
Options with(Space space, uint32_t mask = kAll) {
  Options o;
  o.space = space;
  o.mask = mask;
  return o;
}
Options one_lane(unsigned lane = 0, Space space = Space::global) { return with(space, 1u << lane); }
Options volatile_lane(unsigned lane = 0, Space space = Space::global) {
  Options o = one_lane(lane, space);
  o.is_volatile = true;
  return o;
}

}  // namespace

TEST_CASE("a barrier orders two warps, and without it they race") {
  {
    Kernel k;
    k.store(k.warp(0), 1, shared(0));
    k.barrier();
    k.load(k.warp(1), 2, shared(0));
    k.barrier();
    k.store(k.warp(0), 3, shared(0));
    CHECK(k.found() == 0);
  }
  {
    Kernel k;
    k.store(k.warp(0), 1, shared(0));
    k.load(k.warp(1), 2, shared(0));
    k.load(k.warp(1), 2, shared(0));
    CHECK(k.found() == 1);
    CHECK(k.between(1, 2));
    CHECK(k.has("\"what\": \"race\", \"detail\": \"read after write\", \"space\": \"shared\""));
    CHECK(k.has("\"count\": 64"));
    CHECK(k.has("\"kind\": \"load\", \"thread\": [32,0,0], \"block\": [0,0,0]"));
    CHECK(k.has("\"variable\": \"x \\\"0\\\"\""));
    CHECK(k.has("Put __syncthreads()"));
  }
  {
    Kernel k;
    k.store(k.warp(0), 1, shared(0));
    k.store(k.warp(1), 2, shared(0));
    CHECK(k.between(1, 2));
    CHECK(k.has("write after write"));
  }
}

TEST_CASE("a read before a write, whoever read first or last") {
  for (const unsigned writer : {0u, 1u, 2u}) {
    Kernel k(96);
    k.store(k.warp(0), 1, shared(0));
    k.barrier();
    for (unsigned w = 0; w < 3; ++w) k.load(k.warp(w), 2, shared(0), with(Space::shared));
    k.store(k.warp(writer), 3, shared(0));
    CHECK(k.found() == 1);
    CHECK(k.between(2, 3));
    CHECK(k.has("write after read"));
  }
}

TEST_CASE("one pair of lines is one hazard, whichever comes first") {
  Kernel k;
  k.store(k.warp(0), 1, shared(0));
  k.load(k.warp(1), 2, shared(0));
  k.store(k.warp(0), 1, shared(0));
  CHECK(k.found() == 1);
  CHECK(k.has("\"count\": 64"));
}

TEST_CASE("lanes of a warp need __syncwarp; the same instruction needs nothing") {
  {
    Kernel k(32);
    k.store(k.warp(0), 1, shared(0));
    k.load(k.warp(0), 2, shared(1), with(Space::shared, 0x7fffffff));
    CHECK(k.found() == 1);
    CHECK(k.has("__syncwarp"));
  }
  {
    Kernel k(32);
    k.store(k.warp(0), 1, shared(0));
    k.d().warp_synchronized(k.warp(0), kAll);
    k.load(k.warp(0), 2, shared(1), with(Space::shared, 0x7fffffff));
    CHECK(k.found() == 0);
    k.store(k.warp(0), 3, shared(0));  // a lane overwrites what its neighbour has read
    CHECK(k.found() == 1);
    CHECK(k.between(2, 3));
  }
  {
    Kernel k(48);  // the last warp has 16 lanes
    k.store(k.warp(1), 1, shared(0), with(Space::shared, 0xffff));
    k.d().warp_synchronized(k.warp(1), 0xffff);
    k.load(k.warp(1), 2, shared(1), with(Space::shared, 0x7fff));
    CHECK(k.found() == 0);
  }
}

TEST_CASE("a part of a warp is synchronized, the rest is not") {
  Kernel k(32);
  k.store(k.warp(0), 1, shared(0));
  k.d().warp_synchronized(k.warp(0), 0xff);
  k.load(k.warp(0), 2, shared(1), with(Space::shared, 0x7f));
  CHECK(k.found() == 0);
  k.d().warp_synchronized(k.warp(0), 0xff80);  // lane 7 passes on to lane 15 what it knows of lane 0
  k.load(k.warp(0), 3, shared(0), {Space::shared, 1u << 15, 4, 0});
  CHECK(k.found() == 0);
  k.load(k.warp(0), 4, shared(0), {Space::shared, 1u << 16, 4, 0});
  CHECK(k.found() == 1);
  CHECK(k.between(1, 4));
}

TEST_CASE("the volatile tail of a reduction") {
  Kernel k(32);
  Options v = with(Space::shared);
  v.is_volatile = true;
  k.store(k.warp(0), 1, shared(0));
  k.store(k.warp(0), 1, shared(32));
  k.barrier();
  for (int step = 16; step > 0; step /= 2) {
    k.load(k.warp(0), 2, shared(step), v);
    k.load(k.warp(0), 3, shared(0), v);
    k.store(k.warp(0), 4, shared(0), v);
  }
  CHECK(k.found() == 1);
  CHECK(k.between(2, 4));
}

TEST_CASE("lanes that store to one address in one instruction") {
  float values[32] = {};
  Options o = with(Space::shared);
  o.stride = 0;
  o.stored = values;
  {
    Kernel k(32);
    k.store(k.warp(0), 1, shared(0), o);
    CHECK(k.found() == 0);
  }
  values[5] = 1;
  {
    Kernel k(32);
    k.store(k.warp(0), 1, shared(0), o);
    CHECK(k.found() == 1);
    CHECK(k.between(1, 1));
    CHECK(k.has("different values in one instruction"));
  }
  o.stored = nullptr;  // nobody knows the values
  Kernel k(32);
  k.store(k.warp(0), 1, shared(0), o);
  CHECK(k.found() == 0);
}

TEST_CASE("warps that store the same value do no harm") {
  int values[32] = {};
  Options o = with(Space::global);
  o.stride = 0;
  o.stored = values;
  Kernel k(64);
  k.store(k.warp(0), 1, global(0), o);
  k.store(k.warp(1), 2, global(0), o);
  CHECK(k.found() == 0);
  values[0] = 1;
  o.mask = 1;
  k.store(k.warp(1), 3, global(0), o);
  CHECK(k.found() == 1);
}

TEST_CASE("bytes of one word are distinguished") {
  Kernel k(96);
  Options bytes = with(Space::shared);
  bytes.size = 1;
  bytes.stride = 2;
  k.store(k.warp(0), 1, shared(0), bytes);
  k.store(k.warp(1), 2, shared(0) + 1, bytes);
  CHECK(k.found() == 0);
  k.load(k.warp(2), 3, shared(0) + 1, {Space::shared, 1, 1, 1});
  CHECK(k.found() == 1);
  CHECK(k.between(2, 3));
  k.load(k.warp(2), 4, shared(1) + 2, {Space::shared, 1, 2, 2});
  CHECK(k.found() == 3);
}

TEST_CASE("a word is split when smaller accesses come") {
  Kernel k(64);
  k.store(k.warp(0), 1, shared(0));
  k.barrier();
  k.store(k.warp(1), 2, shared(0), {Space::shared, 1, 2, 2});
  k.load(k.warp(0), 3, shared(0) + 2, {Space::shared, 1, 2, 2});
  CHECK(k.found() == 0);
  k.load(k.warp(0), 4, shared(0), {Space::shared, 1, 4, 4});
  CHECK(k.between(2, 4));
}

TEST_CASE("wide accesses and page ends") {
  Kernel k(64);
  k.store(k.warp(0), 1, shared(1024 - 32), {Space::shared, kAll, 16, 16});
  k.load(k.warp(1), 2, shared(1024 + 7), {Space::shared, 1, 4, 4});
  CHECK(k.found() == 1);
  CHECK(k.has("\"first\": {\"pc\": 1, \"kind\": \"store\", \"thread\": [9,0,0]"));
}

TEST_CASE("global memory that nothing wrote") {
  Options read = one_lane();
  read.unwritten = 1;
  std::string name;
  {
    Kernel k(32);
    k.load(k.warp(0), 1, global(500), read);
    k.load(k.warp(0), 1, global(500), read);
    CHECK(k.found() == 0);  // until the launch has ended, a write may come that it races with
    name = k.name();
  }
  CHECK(count_of(hazards_json(), name + "\", \"count\": 1") == 1);
  {
    Kernel k(32, 2);
    k.load(k.warp(0), 2, global(500), read);
    k.store(k.warp(0, 1), 3, global(500), one_lane());
    name = k.name();
  }
  CHECK(count_of(hazards_json(), name + "\"") == 1);
  CHECK(count_of(hazards_json(), "a block reads what another writes\", \"space\": \"global\", \"kernel\": \"" + name) ==
        1);
}

TEST_CASE("shared memory that nothing wrote") {
  {
    Kernel k(32);
    k.store(k.warp(0), 1, shared(0));
    k.barrier();
    k.load(k.warp(0), 2, shared(0));
    k.load(k.warp(0), 3, shared(1));
    k.end();
    CHECK(k.found() == 1);
    CHECK(k.has("\"what\": \"uninitialized\""));
    CHECK(k.has("\"second\": null"));
    CHECK(k.has("\"first\": {\"pc\": 3, \"kind\": \"load\", \"thread\": [31,0,0]"));
  }
  {
    Kernel k(32);
    k.store(k.warp(0), 1, shared(0));
    k.end();
    BlockInfo again = k.block(0);
    again.sequence = 7;
    k.d().block_begins(again);
    k.load({&again, 0}, 2, shared(0));  // what the block before left there
    k.d().warp_synchronized({&again, 0}, kAll);
    k.store({&again, 0}, 3, shared(0));
    k.d().block_ends(again);
    CHECK(k.found() == 1);
    CHECK(k.has("uninitialized"));
  }
  {
    Kernel k(64);
    k.load(k.warp(0), 1, shared(0));  // comes before the write, and need not
    k.store(k.warp(1), 2, shared(0));
    k.end();
    CHECK(k.found() == 1);
    CHECK(k.between(1, 2));
  }
  {
    Kernel k(32);
    k.atomic(k.warp(0), 1, shared(0), {Space::shared, kAll, 4, 0});
    k.end();
    CHECK(k.found() == 1);
    CHECK(k.has("\"kind\": \"atomic\""));
  }
  for (const uint32_t size : {4u, 8u}) {
    Kernel k(32);
    k.store(k.warp(0), 1, shared(0), {Space::shared, 1, 1, 1});  // a member of a structure, before padding
    k.load(k.warp(0), 2, shared(0), {Space::shared, 1, size, 8});
    k.end();
    CHECK(k.found() == (size == 4 ? 0 : 1));
  }
}

TEST_CASE("blocks race in global memory, launches and grid barriers order them") {
  {
    Kernel k(32, 2);
    k.store(k.warp(0, 0), 1, global(0), with(Space::global));
    k.load(k.warp(0, 1), 2, global(0), with(Space::global));
    CHECK(k.between(1, 2));
    CHECK(k.has("\"block\": [0,0,0], \"other_block\": [1,0,0]"));
  }
  {
    Kernel k(32, 2);
    k.load(k.warp(0, 1), 2, global(0), with(Space::global));
    CHECK(k.found() == 0);
    k.d().grid_barrier_completed();
    k.store(k.warp(0, 0), 1, global(0), with(Space::global));
    k.d().grid_barrier_completed();
    k.load(k.warp(0, 1), 2, global(0), with(Space::global));
    CHECK(k.found() == 0);
    k.store(k.warp(0, 0), 3, global(0), with(Space::global));
    CHECK(k.found() == 1);
  }
}

TEST_CASE("many blocks read what one writes") {
  for (const unsigned writer : {0u, 3u, 7u}) {
    Kernel k(32, 8);
    for (unsigned b = 0; b < 8; ++b) k.load(k.warp(0, b), 1, global(0), with(Space::global));
    k.barrier(writer);
    k.store(k.warp(0, writer), 2, global(0), with(Space::global));
    CHECK(k.found() == 1);
  }
}

TEST_CASE("atomics race with plain accesses, not with each other") {
  Kernel k(32, 3);
  for (unsigned b = 0; b < 3; ++b) k.atomic(k.warp(0, b), 1, global(0), with(Space::global));
  CHECK(k.found() == 0);
  k.load(k.warp(0, 2), 2, global(0), with(Space::global));
  k.end(2);
  CHECK(k.found() == 1);
  CHECK(k.has("One of the accesses is atomic"));
}

TEST_CASE("a plain load before the thread's own atomic there is a first look") {
  Kernel k(32, 2);
  k.atomic(k.warp(0, 0), 1, global(0), with(Space::global));
  k.load(k.warp(0, 1), 2, global(0), with(Space::global));
  k.atomic(k.warp(0, 0), 3, global(0), with(Space::global));
  k.atomic(k.warp(0, 1), 4, global(0), with(Space::global));
  k.end(0);
  k.end(1);
  CHECK(k.found() == 0);
}

TEST_CASE("an atomic after a barrier is no second look") {
  Kernel k(64);
  const auto one = one_lane(0, Space::shared);
  k.store(k.warp(0), 1, shared(0), one);
  k.barrier();
  k.atomic(k.warp(0), 2, shared(0), one);
  k.load(k.warp(1), 3, shared(0), one);
  k.barrier();
  k.atomic(k.warp(1), 4, shared(0), one);
  k.end();
  CHECK(k.found() == 1);
  CHECK(k.between(2, 3));
}

TEST_CASE("a store after the thread's own atomic comes after the atomics before that") {
  Kernel k(32, 2);
  const auto one = one_lane(0, Space::global);
  k.atomic(k.warp(0, 0), 1, global(0), one);
  k.atomic(k.warp(0, 1), 2, global(0), one);
  k.store(k.warp(0, 1), 3, global(0), one);
  CHECK(k.found() == 0);
  k.atomic(k.warp(0, 0), 4, global(0), one);
  CHECK(k.found() == 1);
  CHECK(k.between(3, 4));
}

TEST_CASE("an atomic hides no other from a later plain read") {
  Kernel k(64);
  k.store(k.warp(0), 1, shared(0), one_lane(0, Space::shared));
  k.barrier();
  k.atomic(k.warp(1), 2, shared(0), one_lane(0, Space::shared));
  k.atomic(k.warp(0), 3, shared(0), one_lane(0, Space::shared));
  k.load(k.warp(0), 4, shared(0), one_lane(0, Space::shared));
  k.end();
  CHECK(k.found() == 1);
  CHECK(k.between(2, 4));
}

namespace {

// Every block leaves a partial result and takes a number; the last one adds up.
unsigned last_block(bool fenced, bool fence_before_barrier, FenceScope scope = FenceScope::device) {
  constexpr unsigned kBlocks = 40;
  Kernel k(64, kBlocks);
  for (unsigned b = 0; b < kBlocks; ++b) {
    k.d().block_begins(k.block(b));
    for (unsigned w = 0; w < 2; ++w) {
      k.store(k.warp(w, b), 1, global(int(64 * b + 32 * w)), with(Space::global));
      if (fenced && fence_before_barrier)
        for (unsigned lane = 0; lane < 32; ++lane) k.fence(k.warp(w, b), lane, scope);
    }
    k.barrier(b);
    if (fenced && !fence_before_barrier) k.fence(k.warp(1, b), 3, scope);
    k.atomic(k.warp(1, b), 2, global(5000), {Space::global, 1u << 3, 4, 0});
    k.barrier(b);
    if (b == kBlocks - 1)
      for (unsigned i = 0; i < kBlocks; ++i)
        for (unsigned w = 0; w < 2; ++w) k.load(k.warp(w, b), 3, global(int(64 * i + 32 * w)), with(Space::global));
    k.d().block_ends(k.block(b));
  }
  if (k.found()) {
    CHECK(k.between(1, 3));
    CHECK(k.has("__threadfence()"));
  }
  return k.found();
}

}  // namespace

TEST_CASE("the last block adds up what all have written") {
  CHECK(last_block(true, false) == 0);
  CHECK(last_block(true, true) == 0);
  CHECK(last_block(false, false) == 1);
  CHECK(last_block(true, false, FenceScope::block) == 1);
}

TEST_CASE("a spin lock, with and without its fences") {
  for (const bool fenced : {true, false}) {
    Kernel k(32, 3);
    for (const unsigned b : {0u, 1u, 2u, 0u}) {
      const WarpRef w = k.warp(0, b);
      k.atomic(w, 1, global(0), one_lane());  // taken
      if (fenced) k.fence(w);
      k.load(w, 2, global(1), one_lane());
      k.store(w, 3, global(1), one_lane());
      if (fenced) k.fence(w);
      k.atomic(w, 4, global(0), one_lane());  // freed
    }
    CHECK(k.found() == (fenced ? 0 : 2));
  }
}

TEST_CASE("a flag: volatile with a fence, or released and acquired") {
  for (const bool fenced : {true, false}) {
    Kernel k(32, 2);
    k.store(k.warp(0, 0), 1, global(1), one_lane());
    if (fenced) k.fence(k.warp(0, 0));
    k.store(k.warp(0, 0), 2, global(0), volatile_lane());
    k.load(k.warp(0, 1), 3, global(0), volatile_lane());
    k.fence(k.warp(0, 1));
    k.load(k.warp(0, 1), 4, global(1), one_lane());
    CHECK(k.found() == (fenced ? 0 : 1));
    k.load(k.warp(0, 1), 5, global(0), one_lane(1));  // another lane knows nothing of it
    CHECK(k.found() == (fenced ? 1 : 2));
  }
  Kernel k(32, 2);
  Options release = one_lane(), acquire = one_lane();
  release.releases = acquire.acquires = true;
  k.store(k.warp(0, 0), 1, global(1), one_lane());
  k.atomic(k.warp(0, 0), 2, global(0), release);
  k.atomic(k.warp(0, 1), 3, global(0), acquire);
  k.load(k.warp(0, 1), 4, global(1), one_lane());
  CHECK(k.found() == 0);
  k.store(k.warp(0, 0), 5, global(1), one_lane());
  CHECK(k.between(4, 5));
}

TEST_CASE("a volatile flag within a warp") {
  for (const bool fenced : {true, false}) {
    Kernel k(32);
    const auto load = [&](Pc line, int word, unsigned lane) {
      Options o = volatile_lane(lane);
      o.stride = 0;
      k.load(k.warp(0), line, global(word), o);
    };
    load(1, 0, 5);
    k.store(k.warp(0), 2, global(1), volatile_lane());
    if (fenced) k.fence(k.warp(0));
    k.store(k.warp(0), 3, global(0), volatile_lane());
    load(1, 0, 5);
    load(4, 1, 5);
    CHECK(k.found() == (fenced ? 0 : 2));
  }
}

TEST_CASE("a plain flag is a race") {
  Kernel k(32, 2);
  k.store(k.warp(0, 0), 1, global(0), one_lane());
  k.load(k.warp(0, 1), 2, global(0), volatile_lane());
  CHECK(k.found() == 1);
}

TEST_CASE("what is passed on from block to block") {
  constexpr unsigned kBlocks = 300;  // as in a scan that looks back
  Kernel k(32, kBlocks);
  for (unsigned b = 0; b < kBlocks; ++b) {
    k.d().block_begins(k.block(b));
    if (b) {
      k.load(k.warp(0, b), 1, global(int(2 * b - 2)), volatile_lane());
      k.load(k.warp(0, b), 2, global(int(2 * b - 1)), one_lane());
      k.load(k.warp(0, b), 3, global(1), one_lane());  // of the first block
    }
    k.store(k.warp(0, b), 4, global(int(2 * b + 1)), one_lane());
    k.fence(k.warp(0, b));
    k.store(k.warp(0, b), 5, global(int(2 * b)), volatile_lane());
    k.d().block_ends(k.block(b));
  }
  CHECK(k.found() == 0);
}

TEST_CASE("clusters: arrive and wait") {
  for (const bool waits : {true, false}) {
    Kernel k(64, 4, 2);
    const auto arrive = [&](unsigned b) {
      for (unsigned t = 0; t < 64; ++t) k.d().cluster_barrier_arrived(k.warp(t / 32, b), t % 32);
    };
    const auto wait = [&](unsigned b) {
      for (unsigned t = 0; t < 64; ++t) k.d().cluster_barrier_waited(k.warp(t / 32, b), t % 32);
    };
    for (int round = 0; round < 5; ++round) {
      k.store(k.warp(1, 2), 1, shared(0, 2));
      arrive(2);
      arrive(3);
      wait(2);
      if (waits) wait(3);
      k.load(k.warp(0, 3), 2, shared(0, 2));
      if (!waits) break;
      arrive(3);
      arrive(2);
      wait(3);
      wait(2);
    }
    CHECK(k.found() == (waits ? 0 : 1));
    if (!waits) CHECK(k.has("cluster.sync()"));
  }
  Kernel k(64, 4, 2);
  for (unsigned t = 0; t < 64; ++t) k.d().cluster_barrier_arrived(k.warp(t / 32, 0), t % 32);
  k.store(k.warp(0, 0), 1, shared(0, 0));  // after the arrival
  for (unsigned t = 0; t < 64; ++t) k.d().cluster_barrier_arrived(k.warp(t / 32, 1), t % 32);
  for (unsigned b = 0; b < 2; ++b)
    for (unsigned t = 0; t < 64; ++t) k.d().cluster_barrier_waited(k.warp(t / 32, b), t % 32);
  k.load(k.warp(0, 1), 2, shared(0, 0));
  CHECK(k.found() == 1);
}

TEST_CASE("a thread that has exited counts as arrived at the cluster barriers after that") {
  for (const bool waits : {true, false}) {
    Kernel k(32, 2, 2);
    k.store(k.warp(0, 0), 1, shared(0, 0));
    k.cluster_barrier(0, 2);
    k.store(k.warp(0, 0), 2, shared(256, 0));
    for (unsigned lane = 0; lane < 32; ++lane) k.d().left_cluster(k.warp(0, 0), lane);
    k.load(k.warp(0, 1), 3, shared(0, 0));
    for (int round = 0; waits && round < 5; ++round) {
      k.cluster_barrier(1, 2);
      k.load(k.warp(0, 1), 4, shared(0, 0));
    }
    CHECK(k.found() == 0);
    k.load(k.warp(0, 1), 5, shared(256, 0));
    CHECK(k.found() == (waits ? 0 : 1));
  }
}

TEST_CASE("a block of a cluster must outlive those who read its memory") {
  for (const bool outlives : {true, false}) {
    Kernel k(32, 2, 2);
    k.store(k.warp(0, 0), 1, shared(0, 0));
    k.cluster_barrier(0, 2);
    k.load(k.warp(0, 1), 2, shared(0, 0));
    if (outlives) k.cluster_barrier(0, 2);
    k.end(0);
    k.end(1);
    CHECK(k.found() == (outlives ? 0 : 1));
    if (!outlives) CHECK(k.has("\"first\": {\"pc\": 2, "));
  }
}

TEST_CASE("a cluster's result is published by one of its threads") {
  Kernel k(32, 4, 2);
  k.store(k.warp(0, 0), 1, global(0), with(Space::global));
  k.cluster_barrier(0, 2);
  k.fence(k.warp(0, 1), 7);
  k.store(k.warp(0, 1), 2, global(100), volatile_lane(7));
  k.load(k.warp(0, 2), 3, global(100), volatile_lane(7));
  k.load(k.warp(0, 2), 4, global(0), {Space::global, 1u << 7, 4, 4});
  CHECK(k.found() == 0);
}

TEST_CASE("barriers in memory") {
  for (const bool waits : {true, false}) {
    Kernel k(64);
    for (int round = 0; round < 4; ++round) {
      k.store(k.warp(0), 1, shared(0));
      for (unsigned lane = 0; lane < 32; ++lane) k.d().released(k.warp(0), lane, reinterpret_cast<void*>(shared(100)));
      if (waits)
        for (unsigned lane = 0; lane < 32; ++lane)
          k.d().acquired(k.warp(1), lane, reinterpret_cast<void*>(shared(100)));
      k.load(k.warp(1), 2, shared(1), with(Space::shared, 0x7fffffff));
      for (unsigned lane = 0; lane < 32; ++lane) k.d().released(k.warp(1), lane, reinterpret_cast<void*>(shared(102)));
      for (unsigned lane = 0; lane < 32; ++lane) k.d().acquired(k.warp(0), lane, reinterpret_cast<void*>(shared(102)));
    }
    CHECK(k.found() == (waits ? 0 : 1));
  }
}

TEST_CASE("asynchronous copies") {
  const auto copy = [](Kernel& k) {
    Options o = with(Space::shared);
    o.is_async = true;
    k.store(k.warp(0), 1, shared(0), o);
  };
  const auto land = [](Kernel& k, const void* object = nullptr) {
    for (unsigned lane = 0; lane < 32; ++lane)
      k.d().landed(k.warp(0), lane, reinterpret_cast<void*>(shared(int(lane))), 4, object);
  };
  {
    Kernel k;
    copy(k);
    k.barrier();  // does not help
    k.load(k.warp(0), 2, shared(0));
    CHECK(k.found() == 1);
    CHECK(k.between(1, 2));
    CHECK(k.has("read before a copy has landed"));
  }
  {
    Kernel k;
    copy(k);
    land(k);
    k.load(k.warp(0), 2, shared(0));  // each lane its own
    CHECK(k.found() == 0);
    k.load(k.warp(1), 3, shared(0));
    CHECK(k.between(1, 3));
    k.barrier();
    k.load(k.warp(1), 4, shared(0));
    copy(k);
    CHECK(k.between(4, 1));
  }
  {
    Kernel k;
    void* object = reinterpret_cast<void*>(shared(100));
    copy(k);
    land(k, object);
    k.load(k.warp(1), 2, shared(0), one_lane(1, Space::shared));
    CHECK(k.found() == 1);
    k.d().acquired(k.warp(1), 0, object);
    k.load(k.warp(1), 3, shared(0), one_lane(0, Space::shared));
    CHECK(k.found() == 1);
  }
}

TEST_CASE("faults of the runtime become hazards") {
  Kernel k(64);
  for (const FaultKind kind :
       {FaultKind::out_of_bounds, FaultKind::misaligned, FaultKind::mask, FaultKind::barrier, FaultKind::timeout})
    k.d().faulted({k.warp(1), 3, 719, "a \"sentence\"", "file.cu", 12, 0, kind, "", 0, 77});
  CHECK(k.found() == 5);
  for (const char* what : {"out_of_bounds", "misaligned", "mask", "barrier", "timeout"})
    CHECK(k.has("\"what\": \"" + std::string(what) + "\""));
  CHECK(k.has("\"file\": \"file.cu\", \"line\": 12, \"thread\": [35,0,0]"));
  CHECK(k.has("\"second\": {\"pc\": 77}"));
  CHECK(k.has("a \\\"sentence\\\""));
}

TEST_CASE("speed: a stage on 64 rows of 8192 columns") {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_ptr<unsigned char[]> memory(new unsigned char[64 * 8192 * 8]);
  Kernel k(256, 64);
  uint64_t accesses = 0;
  for (unsigned b = 0; b < 64; ++b) {
    k.d().block_begins(k.block(b));
    const uintptr_t row = uintptr_t(memory.get()) / 4096 * 4096 + 4096 + b * 32768;
    for (int pass = 0; pass < 3; ++pass)
      for (unsigned i = 0; i < 256; ++i) {
        k.access(pass == 2 ? Kind::store : Kind::load, k.warp(i % 8, b), Pc(10 + pass),
                 row + 128 * i + (pass == 2 ? 64 * 32768 : 0), with(Space::global));
        k.load(k.warp(i % 8, b), 20, global(int(32 * i)), with(Space::global));  // the weight
        accesses += 64;
      }
    k.barrier(b);
    k.d().block_ends(k.block(b));
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  CHECK(k.found() == 0);
  MESSAGE((double(accesses) / seconds / 1e6) << " million lane accesses a second");
  CHECK(seconds < 10);
}
