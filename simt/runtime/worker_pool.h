// The workers, which wait for launches to run.
#pragma once
#include <cstdint>
#include <vector>

namespace simt {

struct Launch;
class Worker;

void run_on_workers(Launch& launch);  // until it has ended
std::vector<Worker*> all_workers();
uint64_t oldest_running_block();

}  // namespace simt
