"""What g++ is given: the options, macros and libraries of each kind of program."""

# One entry a kind of program: what every compilation gets, and the runtime that it is linked with. A build with other
# flags and another library, like one for analysis, is another entry and the option that chooses it.
BUILDS = {
    "run": {
        # The three of the second line keep two calls of one built-in apart: lanes that are at the same call are together.
        # The last one has addresses checked, whatever instructions g++ chooses; runtime/fault.cpp has what it calls.
        "compile": (
            "-O2 -march=native -fno-strict-aliasing -ffp-contract=fast -g1 "
            "-fno-optimize-sibling-calls -fno-crossjumping -fno-tree-tail-merge "
            "-fsanitize=alignment"
        ).split(),
        "kernels_apart": False,
        "library": "libsimt.a",
        "link": [],
    },
    # --analyze: the compiler's hooks for a race detector and for coverage call those of simt/analysis. Whatever moves,
    # merges or splits accesses is off. Functions are inlined, as nvcc does, since the compiler has no hook for a structure
    # that goes from memory into a call or from a call into memory.
    "analysis": {
        "compile": (
            "-O1 -march=native -fno-strict-aliasing -ffp-contract=fast -g -fno-omit-frame-pointer "
            "-fno-optimize-sibling-calls -fno-tree-sra -fno-thread-jumps -fno-reorder-blocks -fno-tree-vectorize "
            "-finline-small-functions -finline-functions "
            "--param=max-inline-insns-auto=2000 --param=max-inline-insns-single=2000 "
            "-fsanitize=bounds -fsanitize=thread --param tsan-instrument-func-entry-exit=0 --param tsan-distinguish-volatile=1 "
            "-fsanitize-coverage=trace-pc -DSIMT_ANALYSIS -U_FORTIFY_SOURCE -Wno-tsan -Wno-class-memaccess -Wno-deprecated-copy"
        ).split(),
        "optimization": "-O1",
        "kernels_apart": True,
        "library": "libsimt_analysis.a",
        "link": [
            "-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset,--wrap=printf,--wrap=vprintf,--wrap=puts,--wrap=putchar"
        ],
    },
}
# On Arm a division by zero gives zero in silence and char is unsigned; elsewhere the processor traps, and nvcc's char is
# signed. runtime/fault.cpp has what the first one calls.
OF_MACHINE = {"aarch64": ["-fsanitize=integer-divide-by-zero", "-fsigned-char"]}

CUDA_MACROS = (
    "-D__CUDACC__ -D__CUDA_ARCH__=900 -D__CUDACC_VER_MAJOR__=13 -D__CUDACC_VER_MINOR__=0 -D__CUDACC_VER_BUILD__=0 "
    "-D__NVCC_DIAG_PRAGMA_SUPPORT__=1 -D__device__=__device__ -D__host__=__host__ -include cuda_runtime.h"
).split()

# nvcc refuses arrays of variable length in kernels; the comments that allow a fall-through are gone when g++ compiles; a
# tensor map is a parameter aligned to 128 bytes, of which g++ says that g++ 4.6 passed it in another way.
CUDA_WARNINGS = ["-Wvla", "-Wno-error=vla", "-Wno-implicit-fallthrough", "-Wno-psabi"]
