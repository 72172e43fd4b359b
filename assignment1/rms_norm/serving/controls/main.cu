// One change of the document at a time, checked as strictly as the stages and timed beside the kernels without it.
#include "forms.h"

int main(int argc, char** argv) { return ladder::run_all(ladder::serving::controls::all(), argc, argv); }
