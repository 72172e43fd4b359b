#include "devices.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "environment.h"
#include "streams.h"

namespace simt {

namespace {

thread_local int current = 0;
DeviceSet enabled[kMostDevices] = {};  // guarded by api_mutex()

int asked() {
  const int count = std::atoi(setting("SIMT_DEVICES").value_or("1").c_str());
  return count >= 1 && count <= kMostDevices ? count : 0;
}

}  // namespace

int device_count() {
  static const int count = std::max(asked(), 1);
  return count;
}

std::string devices_refused() {
  if (asked()) return "";
  return "SIMT_DEVICES is '" + setting("SIMT_DEVICES").value_or("") + "'; it must be a number from 1 to " +
         std::to_string(kMostDevices);
}

int current_device() { return current; }
void set_current_device(int device) { current = device; }

DeviceSet reach_of(int device) { return enabled[device] | 1u << device; }

cudaError_t enable_peer(int device, int peer) {
  if (enabled[device] >> peer & 1) return cudaErrorPeerAccessAlreadyEnabled;
  enabled[device] |= 1u << peer;
  return cudaSuccess;
}

cudaError_t disable_peer(int device, int peer) {
  if (!(enabled[device] >> peer & 1)) return cudaErrorPeerAccessNotEnabled;
  enabled[device] &= ~(1u << peer);
  return cudaSuccess;
}

void forget_peers(int device) {
  enabled[device] = 0;
  for (DeviceSet& of_other : enabled) of_other &= ~(1u << device);
}

int turn_of_device(int device) {
  const std::vector<uint32_t> order = order_of(static_cast<uint32_t>(device_count()));
  return static_cast<int>(std::find(order.begin(), order.end(), static_cast<uint32_t>(device)) - order.begin());
}

int device_of(cudaStream_t handle) {
  const Stream* stream = find_stream(handle);
  return stream ? stream->device : -1;
}

}  // namespace simt
