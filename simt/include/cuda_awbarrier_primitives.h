// Barriers in shared memory as C functions.
#pragma once
#include "simt/mbarrier.h"

using __mbarrier_t = simt::Mbarrier;
using __mbarrier_token_t = uint64_t;

inline uint32_t __mbarrier_maximum_count() { return simt::Mbarrier::kMaxCount; }
inline void __mbarrier_init(__mbarrier_t* barrier, uint32_t expected, simt::Site site = simt::Site::here()) {
  barrier->init(expected, site);
}
inline void __mbarrier_inval(__mbarrier_t*) {}
inline __mbarrier_token_t __mbarrier_arrive(__mbarrier_t* barrier, simt::Site site = simt::Site::here()) {
  return barrier->arrive(1, site);
}
inline __mbarrier_token_t __mbarrier_arrive_and_drop(__mbarrier_t* barrier, simt::Site site = simt::Site::here()) {
  return barrier->arrive(1, 1, 0, site, [] {});
}
// Not yet: the caller's loop asks again, once the other lanes have run.
inline bool __mbarrier_test_wait(__mbarrier_t* barrier, __mbarrier_token_t token,
                                 simt::Site site = simt::Site::here()) {
  return barrier->test(static_cast<unsigned>(token), 7, site);
}
inline bool __mbarrier_test_wait_parity(__mbarrier_t* barrier, bool parity, simt::Site site = simt::Site::here()) {
  return barrier->test(parity, 1, site);
}
inline bool __mbarrier_try_wait(__mbarrier_t* barrier, __mbarrier_token_t token, uint32_t,
                                simt::Site site = simt::Site::here()) {
  return barrier->test(static_cast<unsigned>(token), 7, site);
}
inline bool __mbarrier_try_wait_parity(__mbarrier_t* barrier, bool parity, uint32_t,
                                       simt::Site site = simt::Site::here()) {
  return barrier->test(parity, 1, site);
}
