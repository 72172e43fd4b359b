// What is known of the threads of a grid, block by block. A persistent trie: copies share what they have in common, so
// that thousands of blocks may each know of all the blocks before them.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace simt::analysis {

using Clock = uint32_t;

// Of one block: everything that any of its threads did before `bound`, and what single threads did up to their clock.
struct BlockKnowledge {
  Clock bound = 0;
  std::vector<std::pair<uint16_t, Clock>> threads;  // sorted by thread

  bool knows(unsigned thread, Clock clock) const {
    if (clock < bound) return true;
    const auto found = std::lower_bound(threads.begin(), threads.end(), std::pair<uint16_t, Clock>(thread, 0));
    return found != threads.end() && found->first == thread && clock <= found->second;
  }
  bool covers(const BlockKnowledge& other) const {
    return other.bound <= bound && std::all_of(other.threads.begin(), other.threads.end(),
                                               [&](const auto& t) { return knows(t.first, t.second); });
  }
  static BlockKnowledge both(const BlockKnowledge& a, const BlockKnowledge& b) {
    BlockKnowledge sum{std::max(a.bound, b.bound), {}};
    const auto add = [&](const std::pair<uint16_t, Clock>& thread) {
      if (thread.second >= sum.bound) sum.threads.push_back(thread);
    };
    auto i = a.threads.begin(), j = b.threads.begin();
    while (i != a.threads.end() || j != b.threads.end()) {
      if (j == b.threads.end() || (i != a.threads.end() && i->first < j->first))
        add(*i++);
      else if (i == a.threads.end() || j->first < i->first)
        add(*j++);
      else
        add({i->first, std::max(i++->second, j++->second)});
    }
    return sum;
  }
};

class Knowledge {
 public:
  Knowledge() = default;  // nothing is known
  Knowledge(uint64_t block, BlockKnowledge of_block) : root_(std::make_shared<BlockKnowledge>(std::move(of_block))) {
    for (uint64_t rest = block; rest; rest /= kFan) ++height_;
    for (unsigned level = 0; level < height_; ++level, block /= kFan) {
      Children parent;
      parent[block % kFan] = std::move(root_);
      root_ = std::make_shared<Children>(std::move(parent));
    }
  }

  bool empty() const { return !root_; }

  bool knows(uint64_t block, unsigned thread, Clock clock) const {
    const Node* node = &root_;
    for (unsigned level = height_; level-- > 0 && *node;) node = &children(*node)[block >> kBits * level & (kFan - 1)];
    if (block >> kBits * height_ || !*node) return false;
    return static_cast<const BlockKnowledge*>(node->get())->knows(thread, clock);
  }

  void add(Knowledge other) {
    if (other.empty() || root_ == other.root_) return;
    if (empty()) {
      *this = std::move(other);
      return;
    }
    grow(other.height_);
    other.grow(height_);
    root_ = both(root_, other.root_, height_);
  }

 private:
  static constexpr unsigned kBits = 5, kFan = 1 << kBits;
  using Node = std::shared_ptr<const void>;  // Children, or at height 0 a BlockKnowledge
  using Children = std::array<Node, kFan>;
  static const Children& children(const Node& node) { return *static_cast<const Children*>(node.get()); }

  void grow(unsigned height) {
    for (; height_ < height; ++height_) root_ = std::make_shared<Children>(Children{std::move(root_)});
  }

  // One of the two if it contains the other, so that equal parts stay shared.
  static Node both(const Node& a, const Node& b, unsigned height) {
    if (a == b || !b) return a;
    if (!a) return b;
    if (height == 0) {
      const auto &of_a = *static_cast<const BlockKnowledge*>(a.get()),
                 &of_b = *static_cast<const BlockKnowledge*>(b.get());
      if (of_a.covers(of_b)) return a;
      if (of_b.covers(of_a)) return b;
      return std::make_shared<BlockKnowledge>(BlockKnowledge::both(of_a, of_b));
    }
    Children sum;
    bool is_a = true, is_b = true;
    for (unsigned i = 0; i < kFan; ++i) {
      sum[i] = both(children(a)[i], children(b)[i], height - 1);
      is_a = is_a && sum[i] == children(a)[i];
      is_b = is_b && sum[i] == children(b)[i];
    }
    return is_a ? a : is_b ? b : std::make_shared<Children>(std::move(sum));
  }

  Node root_;
  unsigned height_ = 0;
};

}  // namespace simt::analysis
