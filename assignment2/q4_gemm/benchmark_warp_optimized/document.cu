#include "../experiments/document.cu"
