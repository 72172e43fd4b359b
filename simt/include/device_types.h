// CUDA's rounding modes as an enumeration, for functions that take the mode as an argument.
#pragma once

enum cudaRoundMode { cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf };
