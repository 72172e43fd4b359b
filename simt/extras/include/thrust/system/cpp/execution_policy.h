#pragma once
#include "../../detail/device.h"
