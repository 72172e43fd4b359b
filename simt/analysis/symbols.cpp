#include "symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "places.h"

namespace simt::analysis {

namespace {

// The outermost scope of a mangled name: "simt" of _ZZN4simt6sharedIfE..., "" where it has none.
std::string scope_of(const char* name) {
  if (std::strncmp(name, "_Z", 2) != 0) return "";
  bool nested = false;
  for (name += 2; std::isupper(static_cast<unsigned char>(*name)) || *name == 'r'; ++name) {
    if (name[0] == 'S' && name[1] == 't') return "std";
    nested = nested || *name == 'N';
  }
  if (!nested || !std::isdigit(static_cast<unsigned char>(*name))) return "";
  char* text;
  const size_t length = std::strtoul(name, &text, 10);
  return std::string(text, strnlen(text, length));
}

// The name of a function or a class at namespace scope, as in _Z9atomicAddIiLi0EET_PS1_S1_ or _ZNK6__halfcvfEv.
bool is_cudas(const char* name) {
  name += std::strcspn(name, "0123456789");
  char* text;
  std::strtoul(name, &text, 10);
  if (std::strncmp(text, "__", 2) == 0) return true;
  if (std::strncmp(text, "atomic", 6) != 0) return false;
  const std::string rest(text + 6, strcspn(text + 6, "IPR"));  // up to the template arguments or the parameters
  for (const char* name : {"Add", "Sub", "Exch", "Min", "Max", "Dec", "And", "Or", "Xor", "CAS"})
    for (const char* scope : {"", "_block", "_system"})
      if (rest == std::string(name) + scope) return true;
  return std::strncmp(text, "atomicInc", 9) == 0;
}

// `code` is the function's, or 0: students may well have functions of such names.
Owner owner_of_name(const char* name, uintptr_t code) {
  const std::string scope = scope_of(name);
  if (scope == "std" || scope == "__gnu_cxx") return Owner::library;
  if (scope == "cub" || scope == "nvcuda") return code && !stands_in_headers(code) ? Owner::student : Owner::library;
  if (scope == "simt" || scope == "cuda" || scope == "cooperative_groups" || std::strncmp(name, "__tsan", 6) == 0)
    return Owner::device;
  if (std::strncmp(name, "_Z", 2) != 0 || !is_cudas(name)) return Owner::student;
  return code && !stands_in_headers(code) ? Owner::student : Owner::library;
}

struct Symbol {
  uintptr_t begin, end;
  const char* name;
  bool is_constant;  // __constant__
};

class Symbols {
 public:
  Symbols() {
    dl_iterate_phdr(
        [](dl_phdr_info* object, size_t, void* self) {
          static_cast<Symbols*>(self)->read_segments(*object);
          return 1;  // the first is the program
        },
        this);
    read_table();
  }

  Owner owner(uintptr_t code) const {
    return code - code_begin_ < owners_.size() ? owners_[code - code_begin_] : Owner::student;
  }
  bool is_data(uintptr_t address) const { return address - data_begin_ < data_end_ - data_begin_; }
  const Symbol* variable(uintptr_t address) const { return find(variables_, address); }
  const Symbol* function(uintptr_t address) const { return find(functions_, address); }

 private:
  void read_segments(const dl_phdr_info& object) {
    base_ = object.dlpi_addr;
    code_begin_ = data_begin_ = ~static_cast<uintptr_t>(0);
    for (int i = 0; i < object.dlpi_phnum; ++i) {
      const auto& segment = object.dlpi_phdr[i];
      if (segment.p_type != PT_LOAD) continue;
      const uintptr_t begin = base_ + segment.p_vaddr, end = begin + segment.p_memsz;
      if (segment.p_flags & PF_X) code_begin_ = std::min(code_begin_, begin), code_end_ = std::max(code_end_, end);
      if (segment.p_flags & PF_W) data_begin_ = std::min(data_begin_, begin), data_end_ = std::max(data_end_, end);
    }
    code_begin_ = std::min(code_begin_, code_end_);
    data_begin_ = std::min(data_begin_, data_end_);
    owners_.assign(code_end_ - code_begin_, Owner::student);
  }

  void read_table() {
    std::ifstream stream("/proc/self/exe", std::ios::binary);
    file_.assign(std::istreambuf_iterator<char>(stream), {});
    if (file_.size() < sizeof(ElfW(Ehdr))) return;
    const auto& header = at<ElfW(Ehdr)>(0);
    if (header.e_shoff + static_cast<size_t>(header.e_shnum) * sizeof(ElfW(Shdr)) > file_.size()) return;
    const auto* sections = &at<ElfW(Shdr)>(header.e_shoff);
    for (unsigned s = 0; s < header.e_shnum; ++s)
      if (sections[s].sh_type == SHT_SYMTAB)
        read_symbols(sections[s], sections[sections[s].sh_link], [&](unsigned section) {
          if (section >= header.e_shnum) return false;
          const char* name = &at<char>(sections[header.e_shstrndx].sh_offset + sections[section].sh_name);
          return std::strncmp(name, "simt_constant", 13) == 0;
        });
    for (auto* list : {&functions_, &variables_})
      std::sort(list->begin(), list->end(), [](const Symbol& a, const Symbol& b) { return a.begin < b.begin; });
  }

  template <class IsConstant>
  void read_symbols(const ElfW(Shdr) & table, const ElfW(Shdr) & names, IsConstant is_constant) {
    for (size_t i = 0; i < table.sh_size / sizeof(ElfW(Sym)); ++i) {
      const auto& symbol = at<ElfW(Sym)>(table.sh_offset + i * sizeof(ElfW(Sym)));
      const int type = symbol.st_info & 15;
      if (!symbol.st_size || symbol.st_shndx == SHN_UNDEF) continue;
      const uintptr_t begin = base_ + symbol.st_value;
      const Symbol found{begin, begin + symbol.st_size, &at<char>(names.sh_offset + symbol.st_name),
                         type == STT_OBJECT && is_constant(symbol.st_shndx)};
      if (type == STT_OBJECT) variables_.push_back(found);
      if (type != STT_FUNC || begin < code_begin_ || found.end > code_end_) continue;
      functions_.push_back(found);
      std::fill(owners_.begin() + static_cast<std::ptrdiff_t>(begin - code_begin_),
                owners_.begin() + static_cast<std::ptrdiff_t>(found.end - code_begin_),
                owner_of_name(found.name, begin));
    }
  }

  template <class T>
  const T& at(size_t offset) const {
    return *reinterpret_cast<const T*>(file_.data() + offset);
  }

  static const Symbol* find(const std::vector<Symbol>& symbols, uintptr_t address) {
    auto next = std::upper_bound(symbols.begin(), symbols.end(), address,
                                 [](uintptr_t a, const Symbol& symbol) { return a < symbol.begin; });
    if (next == symbols.begin()) return nullptr;
    --next;
    return address < next->end ? &*next : nullptr;
  }

  uintptr_t base_ = 0, code_begin_ = 0, code_end_ = 0, data_begin_ = 0, data_end_ = 0;
  std::vector<char> file_;
  std::vector<Owner> owners_;  // of each byte of code
  std::vector<Symbol> functions_, variables_;
};

const Symbols& symbols() {
  static const auto* symbols = new Symbols;
  return *symbols;
}

std::string demangled(const char* name) {
  if (std::strncmp(name, "_Z", 2) != 0) return name;
  int status;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  const std::string result = text ? text : name;
  std::free(text);
  return result;
}

struct Frame {
  const Frame* above;
  uintptr_t return_address;
};

template <class Passed>
Call first_not(Passed passed, Call call) {
  while (passed(symbols().owner(call.pc - 1))) {  // the return address is after the call, perhaps after its function
    const auto* frame = static_cast<const Frame*>(call.frame);
    const Frame* above = frame->above;
    if (above <= frame || reinterpret_cast<const char*>(above + 1) > call.stack_end) return {0, nullptr, nullptr};
    call.frame = above;
    call.pc = above->return_address;
  }
  return call;
}

}  // namespace

Owner owner_of(uintptr_t code) { return symbols().owner(code); }

Call students_call(Call call) {
  const Call found = first_not([](Owner owner) { return owner == Owner::library; }, call);
  return found.pc && symbols().owner(found.pc - 1) == Owner::student ? found : Call{0, nullptr, nullptr};
}

Call calling_call(Call call) {
  const Call found = first_not([](Owner owner) { return owner != Owner::student; }, call);
  return found.pc ? found : call;
}

bool is_program_data(uintptr_t address) { return symbols().is_data(address); }

bool find_variable(uintptr_t address, Variable& found) {
  const Symbol* symbol = symbols().variable(address);
  if (!symbol || symbol->is_constant || std::strncmp(symbol->name, "_ZGV", 4) == 0 ||
      owner_of_name(symbol->name, 0) != Owner::student)
    return false;
  found = {demangled(symbol->name), symbol->begin, symbol->end - symbol->begin};
  return true;
}

std::string function_name(uintptr_t code) {
  const Symbol* symbol = symbols().function(code);
  if (!symbol) return "";
  // Templates have their return type before the name and "[clone ...]" may follow: keep what stands between a blank and
  // a parenthesis, both outside of angle brackets.
  const std::string text = demangled(symbol->name);
  std::string name;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (text.compare(i, 21, "(anonymous namespace)") == 0) {
      name += text.substr(i, 21);
      i += 20;
      continue;
    }
    if (c == '<') ++depth;
    if (c == '>') --depth;
    if (depth == 0 && c == '(') break;
    if (depth == 0 && c == ' ')
      name.clear();
    else
      name += c;
  }
  return name;
}

}  // namespace simt::analysis
