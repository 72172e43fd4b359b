// benchmark_best M N K: the ladder's stages side by side on one shape, checked and, on a GPU, timed. Further words are
// options of q4_gemm_test.
#include <cstdio>
#include <string>
#include <vector>

#include "build/generated/assignment2/q4_gemm/stages.cuh"

int main(int argc, char** argv) {
  std::vector<std::string> words = {argv[0], "--no-small"};
  for (int i = 1; i < argc; ++i)
    if (const std::string word = argv[i]; word == "--help" || word == "-h") {
      std::puts(
          "benchmark_best M N K [OPTIONS]\nRuns every stage on weights of M x K and activations of K x N, for "
          "example benchmark_best 4096 2 14336.\nK is a multiple of 32. The options, those for M, N and K "
          "aside:\n");
      char* const help[] = {argv[0], argv[i]};
      return ladder::run_all(ladder::q4_gemm::stages, 2, const_cast<char**>(help));
    }
  const char* const names[] = {"--m", "--n", "--k"};
  for (int i = 0; i < 3; ++i) {
    if (argc <= i + 1 || argv[i + 1][0] == '-') {
      std::fputs("benchmark_best: say M, N and K, for example: benchmark_best 4096 2 14336\n", stderr);
      return 2;
    }
    words.insert(words.end(), {names[i], argv[i + 1]});
  }
  words.insert(words.end(), argv + 4, argv + argc);
  std::vector<char*> given;
  for (std::string& word : words) given.push_back(word.data());
  return ladder::run_all(ladder::q4_gemm::stages, static_cast<int>(given.size()), given.data());
}
