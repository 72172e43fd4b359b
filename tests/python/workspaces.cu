// The workspaces of streams (python/binding/workspace.cu): how many there are, and who has them.
#include <cstdio>
#include <memory>
#include <set>
#include <vector>

#include "workspace.cu"

using rms_norm_binding::Workspace;

namespace {

int failures = 0;
void expect(bool is_right, const char* what) {
  if (!is_right) std::printf("wrong: %s\n", what), ++failures;
}

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  return stream;
}

void* workspace_of(cudaStream_t stream) {
  Workspace workspace;
  expect(workspace.find(stream) == cudaSuccess && workspace.memory != nullptr, "a workspace is found");
  return workspace.memory;
}

}  // namespace

int main() {
  // A stream keeps its workspace while there are few.
  const cudaStream_t first = new_stream();
  void* const of_first = workspace_of(first);
  std::set<void*> all = {of_first};
  for (int i = 0; i < 300; ++i) {
    const cudaStream_t stream = new_stream();
    void* const one = workspace_of(stream);
    expect(one == workspace_of(stream), "a stream has one workspace");
    all.insert(one);
    cudaStreamDestroy(stream);
  }
  std::printf("%zu workspaces of 301 streams\n", all.size());
  expect(workspace_of(first) == of_first, "a stream that lives keeps it");

  // Calls that have not launched yet have theirs for themselves.
  std::vector<std::unique_ptr<Workspace>> held;
  std::set<void*> different;
  for (int i = 0; i < 50; ++i) {
    held.push_back(std::make_unique<Workspace>());
    expect(held.back()->find(new_stream()) == cudaSuccess, "a workspace is found");
    expect(different.insert(held.back()->memory).second, "no other call has it");
  }
  held.clear();
  different.clear();
  for (int i = 0; i < 50; ++i) different.insert(workspace_of(new_stream()));
  std::printf("%zu workspaces of 50 more streams\n", different.size());
  return failures != 0;
}
