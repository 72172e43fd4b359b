#pragma once
#include "detail/vectors.h"
