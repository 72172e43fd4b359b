// RMS_NORM_RSTD(T) compiles, for tensors of one type, the norms that store each row's rstd and the gradients that read
// it. Other mixtures of types compute it again: all of them would add a third to what a compiler has to do.
#pragma once
#include "gradients_instance.cuh"
#include "instance.cuh"

#define RMS_NORM_RSTD(T)                                                                                            \
  namespace rms_norm_binding {                                                                                      \
  static const Instance storing_##T = instance(number_of<T>, kNone, number_of<T>, number_of<T>, true) =             \
      run<T, void, T, T, true>;                                                                                     \
  static const Instance adding_and_storing_##T =                                                                    \
      instance(number_of<T>, number_of<T>, number_of<T>, number_of<T>, true) = run<T, T, T, T, true>;               \
  static const GradientsInstance reading_##T = gradients_instance(number_of<T>, number_of<T>, number_of<T>, true) = \
      run_gradients<T, T, T, true>;                                                                                 \
  }
