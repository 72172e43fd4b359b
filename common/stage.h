// A stage, a mutant, and the programs built from them. Light on purpose: every kernel.cuh includes this file.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <vector>

namespace ladder {

class Operator;

// Values of an operator's parameters in their order: rows and cols of a matrix, n of a vector; the others are 0.
struct Shape {
  int64_t values[3] = {};
  int64_t operator[](int parameter) const { return values[parameter]; }
};

// The arguments of a launcher: device pointers in the order of the operator's tensors, nullptr for one left out.
struct Arguments {
  void* const* tensors;
  Shape shape;
  const double* scalars;

  template <class T>
  T* tensor(int place) const {
    return static_cast<T*>(tensors[place]);
  }
};

// Hands them out one after the other: a pointer is the next tensor, a whole number the next value of the shape, a float
// the next scalar.
struct NextArgument {
  const Arguments& from;
  cudaStream_t stream;
  int tensor = 0, value = 0, scalar = 0;

  template <class T>
  T next() {
    if constexpr (std::is_same_v<T, cudaStream_t>)
      return stream;
    else if constexpr (std::is_pointer_v<T>)
      return static_cast<T>(from.tensors[tensor++]);
    else if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(from.scalars[scalar++]);
    else
      return from.shape[value++];
  }
};

// Calls a launcher of an operator. One whose launcher takes its arguments in another form has an overload of its own.
template <class Op, class... T>
void call(Op, void (*launch)(T...), const Arguments& arguments, cudaStream_t stream) {
  NextArgument argument{arguments, stream};
  std::apply(launch, std::tuple<T...>{argument.next<T>()...});
}
template <class Op>
void call(Op, void (*launch)(const Arguments&, cudaStream_t), const Arguments& arguments, cudaStream_t stream) {
  launch(arguments, stream);
}

// What a stage requires. If a requirement is not met, the stage is skipped and counted as skipped, and the reason is
// printed.
struct Requires {
  int compute_capability = 0;                      // 90 for a stage that needs Hopper
  const char* (*refuses)(const Shape&) = nullptr;  // why the stage refuses a shape; nullptr: it accepts it
};

// Op is an operator of common/operators/. Its Launch starts a kernel on the stream and returns without waiting.
template <class Op>
struct Stage {
  const char* name;     // "05_warp_shuffle", as the folder
  const char* summary;  // one line for --list
  typename Op::Launch launch;
  Requires needs = {};
};

// Where a fault shows reliably. A fault that depends on the order of threads shows on the CPU device. One that depends
// on two kernels running at the same time shows on a GPU of compute capability 9.0 or newer.
enum class Shows { anywhere, on_cpu_device, on_hopper };

// A known-wrong kernel. The checks that a stage must pass must reject it.
template <class Op>
struct Mutant {
  const char* name;
  const char* fault;  // what is wrong, one line
  typename Op::Launch launch;
  const char* expect;  // what the rejection's message must contain
  Shows shows = Shows::anywhere;
  Shape shape = {};  // a shape that shows the fault; {}: the edge cases show it
};

// The same without the operator's type.
class AnyStage {
 public:
  template <class Op>
  AnyStage(const Stage<Op>& stage)
      : name(stage.name),
        summary(stage.summary),
        needs(stage.needs),
        op(&Op::get()),
        launch_(reinterpret_cast<void (*)()>(stage.launch)),
        call_([](const AnyStage& self, const Arguments& arguments, cudaStream_t stream) {
          call(Op{}, self.launch<Op>(), arguments, stream);
        }) {}

  void operator()(const Arguments& arguments, cudaStream_t stream) const { call_(*this, arguments, stream); }

  // Where the operator is known.
  template <class Op>
  typename Op::Launch launch() const {
    return reinterpret_cast<typename Op::Launch>(launch_);
  }

  const char *name, *summary;
  Requires needs;
  const Operator* op;

 private:
  void (*launch_)();
  void (*call_)(const AnyStage&, const Arguments&, cudaStream_t);
};
struct AnyMutant {
  template <class Op>
  AnyMutant(const Mutant<Op>& mutant)
      : stage(Stage<Op>{mutant.name, mutant.fault, mutant.launch}),
        expect(mutant.expect),
        shows(mutant.shows),
        shape(mutant.shape) {}
  AnyStage stage;
  const char* expect;
  Shows shows;
  Shape shape;
};

// The programs. Each returns its exit code: 0 all right, 1 a wrong result or a CUDA failure, 2 a bad command line.
// Of one stage or of several; common/experiment.h has the one with experiments.
int run_all(const std::vector<AnyStage>& stages, int argc, char** argv);

// One mutant per process, since a fault may end the CUDA context. 1: rejected, as it should be; 0: it passed;
// 77: this device cannot show it.
int run_mutants(const std::vector<AnyMutant>& mutants, int argc, char** argv);

}  // namespace ladder

// The main of a stage that is one file. The program over all stages includes those files and has a main of its own.
#ifdef LADDER_ALL_STAGES
#define LADDER_MAIN(stage)
#else
#define LADDER_MAIN(stage) \
  int main(int argc, char** argv) { return ladder::run_all({stage}, argc, argv); }
#endif
