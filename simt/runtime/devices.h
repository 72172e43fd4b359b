// The devices: how many there are, which of them a thread uses, and which may reach the memory of which.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cuda_runtime_api.h"

namespace simt {

constexpr int kMostDevices = 8;

int device_count();    // SIMT_DEVICES, as it is when this is called first
int current_device();  // of a host thread, or in an operation the device of its stream
void set_current_device(int device);
inline bool is_device(int device) { return device >= 0 && device < device_count(); }
inline bool several_devices() {
  static const bool several = device_count() > 1;
  return several;
}
std::string devices_refused();  // "" or what is wrong with SIMT_DEVICES

// A set of devices: bit d is device d.
using DeviceSet = uint32_t;
constexpr DeviceSet kAllDevices = (1u << kMostDevices) - 1;
DeviceSet reach_of(int device);  // whose memory its kernels may use; under api_mutex(), and so is what follows
cudaError_t enable_peer(int device, int peer);
cudaError_t disable_peer(int device, int peer);
void forget_peers(int device);

int turn_of_device(int device);  // its place in the order in which devices run, by SIMT_ORDER

int device_of(cudaStream_t stream);  // -1 where the handle is none

}  // namespace simt
