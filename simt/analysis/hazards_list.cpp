#include "hazards_list.h"

#include <algorithm>
#include <cstdio>

#include "dump.h"
#include "json.h"

namespace simt::analysis {

namespace {

constexpr size_t kMostHazards = 1000;

std::string triple(uint3 i) {
  return "[" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + "]";
}

std::string end_json(const HazardEnd& end) {
  std::vector<std::string> parts;
  parts.push_back(end.file.empty() && end.pc ? place_json(end.pc) : place_json(end.file, end.line));
  if (!end.kind.empty()) parts.push_back("\"kind\": " + quoted(end.kind));
  if (end.has_thread) parts.push_back("\"thread\": " + triple(end.thread) + ", \"block\": " + triple(end.block));
  if (end.device >= 0) parts.push_back("\"device\": " + std::to_string(end.device));
  std::string json;
  for (const std::string& part : parts) json += (json.empty() ? "" : ", ") + part;
  return "{" + json + "}";
}

std::string hazard_json(const Hazard& h) {
  std::string json = "{\"what\": " + quoted(h.what) + ", \"detail\": " + quoted(h.detail) + ", \"space\": ";
  json += !h.has_space ? "null" : h.space == Space::shared ? "\"shared\"" : "\"global\"";
  json += ", \"kernel\": " + quoted(h.kernel) + ", \"count\": " + std::to_string(h.count);
  json += ", \"block\": " + (h.first.has_thread ? triple(h.first.block) : "null");
  json += ", \"other_block\": " + (h.second.has_thread ? triple(h.second.block) : "null");
  json += ",\n   \"first\": " + end_json(h.first) + ",\n   \"second\": " + (h.has_second ? end_json(h.second) : "null");
  char address[32] = "null";
  if (h.address) std::snprintf(address, sizeof address, "\"0x%zx\"", static_cast<size_t>(h.address));
  json += std::string(",\n   \"address\": ") + address;
  json += ", \"variable\": " + (h.variable.empty() ? "null" : quoted(h.variable));
  return json + ",\n   \"sentence\": " + quoted(h.sentence) + "}";
}

}  // namespace

Hazard* HazardList::count(const std::string& kernel, unsigned key, Pc first, Pc second, Distance distance,
                          bool& is_new) {
  const uint64_t number = kernels_.try_emplace(kernel, kernels_.size()).first->second;
  const auto [low, high] = std::minmax(first, second);
  const auto [found, inserted] = known_.try_emplace(Key{number, key, low, high}, hazards_.size());
  if (inserted) {
    if (hazards_.size() >= kMostHazards) {
      known_.erase(found);
      return nullptr;
    }
    hazards_.emplace_back();
    hazards_.back().kernel = kernel;
  }
  Hazard& hazard = hazards_[found->second];
  ++hazard.count;
  is_new = inserted || distance > hazard.distance;
  if (is_new) hazard.distance = distance;
  return &hazard;
}

std::string HazardList::json() const {
  std::string json = "[";
  const char* separator = "\n  ";
  for (const Hazard& hazard : hazards_) {
    json += separator + hazard_json(hazard);
    separator = ",\n  ";
  }
  return json + "]";
}

}  // namespace simt::analysis
