#include "hazards_shadow.h"

#include <cstring>

namespace simt::analysis {

std::unique_ptr<Cell[]> Shadow::make_cells(unsigned cell_bits) {
  std::unique_ptr<Cell[]> cells(new Cell[cells_in(cell_bits)]);
  std::memset(static_cast<void*>(cells.get()), 0xff, cells_in(cell_bits) * sizeof(Cell));  // no access exists
  return cells;
}

Shadow::Page& Shadow::find(uint64_t number, bool shared) {
  std::unique_ptr<Page>& page = pages_[number];
  if (!page) {
    if (bytes_ >= kBudget) make_room();
    page.reset(new Page{number, 2, shared, make_cells(2)});
    bytes_ += cells_in(2) * sizeof(Cell);
    if (!shared) ages_.push_back(number);
  }
  return *page;
}

// The parts of a cell start with what is known of the whole.
void Shadow::refine(Page& page, uint64_t bits) {
  const unsigned fine = bits & 1 ? 0 : 1;
  std::unique_ptr<Cell[]> cells = make_cells(fine);
  const unsigned parts_bits = page.cell_bits - fine;
  for (size_t i = 0; i < cells_in(fine); ++i) {
    cells[i] = page.cells[i >> parts_bits];
    const size_t part = i & ((1u << parts_bits) - 1);
    cells[i].value >>= 8 * (part << fine);
    if (fine < 2) cells[i].value &= fine ? 0xffff : 0xff;
  }
  bytes_ += (cells_in(fine) - cells_in(page.cell_bits)) * sizeof(Cell);
  page.cells = std::move(cells);
  page.cell_bits = fine;
}

void Shadow::make_room() {
  while (bytes_ >= kBudget && !ages_.empty()) {
    const auto oldest = pages_.find(ages_.front());
    ages_.pop_front();
    bytes_ -= cells_in(oldest->second->cell_bits) * sizeof(Cell);
    Page*& recent = recent_[oldest->first % kRecent];
    if (recent == oldest->second.get()) recent = nullptr;
    pages_.erase(oldest);
  }
}

Shadow Shadow::take_global() {
  Shadow taken;
  for (auto& [number, page] : pages_) {
    if (page->shared) continue;
    taken.bytes_ += cells_in(page->cell_bits) * sizeof(Cell);
    taken.pages_.emplace(number, std::move(page));
  }
  clear();
  return taken;
}

void Shadow::clear() {
  pages_.clear();
  ages_.clear();
  bytes_ = 0;
  std::memset(recent_, 0, sizeof recent_);
}

}  // namespace simt::analysis
