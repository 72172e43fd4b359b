// 08_shifted: 08_prefetch whose rows begin in the middle of a 32-byte sector of shared memory.
#pragma once

#include "assignment1/rms_norm/backward/08_prefetch/kernel.cuh"

namespace ladder::backward::controls::shifted {

inline const Stage<RmsNormBackward> stage{"08_shifted",
                                          "rows come to shared memory 16 bytes past the begin of a sector",
                                          prefetch::launch<1>,
                                          {0, RmsNormBackward::refuses_beyond_8192}};

}  // namespace ladder::backward::controls::shifted
