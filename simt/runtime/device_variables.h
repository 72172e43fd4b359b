#pragma once

namespace simt {

void put_variables_in_place(int device);  // those of this device, from now on

}  // namespace simt
