"""The translator: what it writes, what it refuses, and that its output means what CUDA means (translate/*.cu)."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import full_but

SIMT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SIMT))
from preprocessed import MARKER
from translate import TranslateError, translate

PROGRAMS = sorted((SIMT / "tests/translate").glob("*.cu"))


def flat(text):
    """Without line markers, with single blanks, and with none beside brackets and commas."""
    text = " ".join(MARKER.sub("", text).split())
    return re.sub(r" ?([()\[\]{}<>,;:&*]) ?", r"\1", text)


def translated(code):
    return flat(translate(f'# 1 "t.cu"\n{code}\n'))


def refused(code):
    with pytest.raises(TranslateError) as caught:
        translate(f'# 1 "t.cu"\n{code}\n')
    return str(caught.value)


def in_main(statement):
    return "int main(){" + statement + "}"


@pytest.mark.parametrize("host", ["void scale(float* p, int n) { scale<<<1, n>>>(p); }", "void scale(float*, int);"])
def test_a_kernel_that_a_host_function_overloads(host):
    code = "__global__ void scale(float* p) {}\n" + host + in_main("scale<<<1, 2>>>(p);")
    assert "launch_deduced([&](auto... simt_args){::simt::runs::on_both();scale(simt_args...);}" in translated(code)
    method = "struct S { void scale(); };" + code.replace(host, "")
    assert "::simt::launch(scale,::simt::LaunchConfig" in translated(method)


@pytest.mark.parametrize(
    "launch, kernel",
    [
        ("k<<<g, b>>>(x);", "k"),
        ("k <<< g, b >>> (x);", "k"),
        ("k << <g, b >> >(x);", "k"),
        ("ns::k<<<g, b>>>(x);", "ns::k"),
        ("::ns::k<<<g, b>>>(x);", "::ns::k"),
        ("return ::k<<<g, b>>>(x);", "::k"),
        ("ns::K<T, 256><<<g, b>>>(x);", "ns::K<T, 256>"),
        ("A<B<C>>::template K<(1 > 2)><<<g, b>>>(x);", "A<B<C>>::template K<(1 > 2)>"),
        ("this->template k<T><<<g, b>>>(x);", "this->template k<T>"),
        ("table[i + 1]<<<g, b>>>(x);", "table[i + 1]"),
        ("(*pointer)<<<g, b>>>(x);", "(*pointer)"),
        ("if (y) (*pointer)<<<g, b>>>(x);", "(*pointer)"),
        ("choose(a, b)<<<g, b>>>(x);", "choose(a, b)"),
        ("objects[2].kernels->at(3)<<<g, b>>>(x);", "objects[2].kernels->at(3)"),
        ("else k<<<g, b>>>(x);", "k"),
        ("case 3: k<<<g, b>>>(x);", "k"),
        ("c ? k<<<g, b>>>(x) : k<<<g, b>>>(x);", "k"),
    ],
)
def test_kernel_of_a_launch(launch, kernel):
    expected = flat(f'::simt::launch({kernel}, ::simt::LaunchConfig("{kernel}", g, b))(x)')
    assert expected in translated(in_main(launch))


@pytest.mark.parametrize(
    "config",
    [
        "dim3(1, 2), dim3{3, 4}, 16, stream",
        "A<B<C<int>>>::value, 1",
        "1, A<B<C<int>>>(3)",
        "1, A<B<3>>::f<D<E<int>>>({})",
        "n < 4 ? 1 : 2, m > 3 ? n >> 1 : m",
        "n >> 1, n << 1",
        "{1, 2}, {3}",
        "f([] { return a > b; }), 1",
        "std::min<int>(a, b), sizeof(A<B<C>>)",
    ],
)
def test_configuration_of_a_launch(config):
    assert flat(f'::simt::LaunchConfig("k", {config}))(x);') in translated(in_main(f"k<<<{config}>>>(x);"))


@pytest.mark.parametrize(
    "declaration, launch, is_deduced",
    [
        ("__global__ void k(int);", "k<<<1, 1>>>(0)", False),
        ("__global__ void k(int); __global__ void k(int x) {}", "k<<<1, 1>>>(0)", False),
        ("__global__ void k(const float*, int); __global__ void k(const float* y, int n);", "k<<<1, 1>>>(0, 0)", False),
        ("__global__ void k(int); __global__ void k(float);", "k<<<1, 1>>>(0)", True),
        ("__global__ void k(int); __global__ void k(int, int);", "k<<<1, 1>>>(0)", True),
        (
            "namespace a { __global__ void k(int); } namespace b { __global__ void k(float); }",
            "a::k<<<1, 1>>>(0)",
            False,
        ),
        ("__global__ void k(int, int = 1);", "k<<<1, 1>>>(0)", True),
        ("__global__ void k(int, int = 1);", "k<<<1, 1>>>(0, 1)", False),
        ("__global__ void k(int, int = 1);", "k<<<1, 1>>>(0, rest...)", True),
        ("template <typename T> __global__ void k(T);", "k<<<1, 1>>>(0)", True),
        ("template <typename T> __global__ void k(T);", "k<int><<<1, 1>>>(0)", False),
        ("template <int N, typename T> __global__ void k(T);", "k<3><<<1, 1>>>(0)", True),
        ("template <int N, typename T> __global__ void k(T);", "k<(3 > 2), A<B, C>><<<1, 1>>>(0)", False),
        ("template <typename T, int N = (2 > 1)> __global__ void k(T);", "k<int><<<1, 1>>>(0)", True),
        ("template <typename... T> __global__ void k(T...);", "k<int><<<1, 1>>>(0)", True),
        (
            "template <typename T> __global__ void k(T); template <> __global__ void k<int>(int);",
            "k<int><<<1, 1>>>(0)",
            False,
        ),
        ("template <template <class, int> class A, class T> __global__ void k(T);", "k<A, int><<<1, 1>>>(0)", False),
        ("__global__ void k(auto x);", "k<<<1, 1>>>(0)", True),
        ("struct S { static __global__ void k(int); };", "S::k<<<1, 1>>>(0)", False),
        ("", "k<<<1, 1>>>(0)", False),
    ],
)
def test_deduction(declaration, launch, is_deduced):
    text = translated(declaration + in_main(launch + ";"))
    assert ("::simt::launch_deduced(" in text) == is_deduced
    assert ("::simt::launch(" in text) != is_deduced


def test_cluster_dimensions():
    text = translated("__global__ void __cluster_dims__(2, 1) k(); int main() { k<<<1, 1>>>(); }")
    assert '::simt::LaunchConfig("k",1,1).cluster(2,1))()' in text
    message = refused("__global__ void __cluster_dims__(2) k();\nint main() { cudaLaunchKernelEx(&c, k); }")
    assert message.startswith("t.cu:2: error: ") and "cudaLaunchAttributeClusterDimension" in message
    assert "must not depend" in refused("template <int N> __global__ void __cluster_dims__(N) k();")


@pytest.mark.parametrize(
    "cast, expected",
    [
        ("(void*)k<float>", "(void*)::simt::handle<k<float>>()"),
        ("(const void*)&k<float>", "(const void*)::simt::handle<k<float>>()"),
        ("reinterpret_cast<const void*>(k<float>)", "reinterpret_cast<const void*>(::simt::handle<k<float>>())"),
        ("(void*)pointer", "(void*)pointer"),
        ("(void*)k<float>(3)", "(void*)k<float>(3)"),
        ("(char*)k<float>", "(char*)k<float>"),
    ],
)
def test_kernel_as_a_void_pointer(cast, expected):
    kernel = "template <typename T> __global__ void k(T*);"
    assert flat(f"f({expected});") in translated(kernel + in_main(f"f({cast});"))


def test_a_variable_with_the_name_of_a_kernel_is_no_kernel():
    text = translated("__global__ void k(int); void f(void (*k)(int)) { g((void*)k); }")
    assert "g((void*)k)" in text


@pytest.mark.parametrize(
    "code, line, words",
    [
        ("__global__ void k() {\n  __shared__ float s[2] = {1, 2};\n}", 2, "s cannot have an initializer"),
        ("__global__ void k() {\n  __shared__ int a, b(3);\n}", 2, "b cannot have an initializer"),
        ("__global__ void k() {\n  __shared__ S s{};\n}", 2, "s cannot have an initializer"),
        ("__global__ void k() {\n  __shared__ int s[];\n}", 2, "the size of s is missing"),
        ("__global__ void k() {\n  __shared__ = 3;\n}", 2, "__shared__ declaration"),
        ("struct S {\n  __shared__ int member;\n};", 2, "a member cannot be __shared__"),
        (
            'void f() {\n\n  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");\n}',
            3,
            "the PTX instruction wgmma.fence.sync.aligned cannot run on the CPU device; use the CUDA C++ function",
        ),
        (
            'void f() {\n  asm("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 16;" :: "l"(a), "r"(b));\n}',
            2,
            "cannot run",
        ),
        (
            'void f() {\n  asm("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %1}], [%1];" :: "l"(a), "r"(b));\n}',
            2,
            "use cuda::device::experimental::cp_async_bulk_tensor_2d_global_to_shared",
        ),
        (
            'void f() {\n  asm("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 16, [%0], 3;" '
            ':: "r"(a), "l"(b));\n}',
            2,
            "multicast::cluster cannot run on the CPU device; use cuda::device::memcpy_async_tx",
        ),
        ('void f() {\n  asm("mov.u32 %0, %%laneid;" "add.u32 %0, 1;" : "=r"(a));\n}', 2, "the PTX instruction add.u32"),
        ('void f() {\n  asm("add.u32 %0, %0, %9;" : "+r"(a));\n}', 2, "does not know the PTX operand %9"),
        ('void f() {\n  asm("mov.b128 %0, %0;" : "+q"(a));\n}', 2, 'the constraint "+q"'),
        ('void f() {\n  asm("add.u32 %0, %0, 1" : "+r"(a));\n}', 2, "`add.u32 %0, %0, 1` lacks its semicolon"),
        ('void f() {\n  asm("L: bra M;");\n}', 2, "the PTX instruction bra cannot run"),
        (
            'void f() {\n  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %1;" : "=h"(a) : "f"(b));\n}',
            2,
            "cvt.rn.satfinite.e4m3x2.f32",
        ),
        ('void f() {\n  asm("add.u32 %0, %0, 1.5;" : "+r"(a));\n}', 2, "the PTX operand 1.5"),
        ('asm(".global .u32 x;");', 1, "the PTX instruction .global"),
        ("__global__ void k() { }\n__global__ void p() { k<<<1, 1>>>(); }", 2, "dynamic parallelism"),
        ("__global__ int k() { return 1; }", 1, "must return void"),
        ("__global__ int k;", 1, "declaration of a function"),
        ("int main() {\n  k<<<1, 1>>>;\n}", 2, "no '>>>(arguments)'"),
        ("int main() {\n  k<<<1, 1>>(x);\n}", 2, "no '>>>(arguments)'"),
        ("int main() {\n  k<<<1>>>(x);\n}", 2, "a launch takes <<<grid, block>>>"),
        ("int main() {\n  k<<<1, 2, 3, 4, 5>>>(x);\n}", 2, "a launch takes <<<grid, block>>>"),
        ("template <class T> __global__ void k(T);\nint main() { k<<<1, 1>>>({1}); }", 2, "braced argument"),
        ("texture<float, 2> image;", 1, "texture references"),
        ("__global__ void k(cudaSurfaceObject_t image);", 1, "no surface objects"),
    ],
)
def test_refusal(code, line, words):
    message = refused(code)
    assert message.startswith(f"t.cu:{line}: error: ") and words in message
    assert len(message.splitlines()) == 1


def test_every_refusal_is_told_in_order():
    code = '__global__ void k() {\n  asm("x;");\n  __shared__ int s = 1;\n  asm("y;");\n}'
    assert [line.split(":")[1] for line in refused(code).splitlines()] == ["2", "3", "4"]


def test_ptx_becomes_calls():
    headers = []
    code = 'void f() { asm("{.reg .b32 t; add.s32 t, %1, -3; ld.global.nc.v2.f32 {%0, _}, [%2+8];}" : "=f"(x) : "r"(y), "l"(p)); }'
    text = "".join(translate(f'# 1 "t.cu"\n{code}\n', headers=headers).split())
    assert headers == ["simt/ptx.h"]
    assert "simt_r_t=::simt::ptx::add_<int32_t>(simt_p1,static_cast<uint64_t>(-3ll));" in text
    assert "::simt::ptx::load<float,2>(::simt::ptx::generic(simt_p2,static_cast<uint64_t>(8ll)))" in text
    assert "simt_p0=simt_v.item[0];(void)(simt_v.item[1]);" in text


def test_a_program_without_ptx_includes_nothing_for_it():
    headers = []
    translate('# 1 "t.cu"\nvoid f() { asm("membar.gl;"); asm volatile("" ::: "memory"); }\n', headers=headers)
    assert headers == []


def without_where_it_runs(text):
    """The text without what functions say for execution_space.py."""
    return re.sub(r' ::simt::runs::\w+\(\);(\n# \d+ "t.cu"\n)?|\n// simt: \w+ \w+(?=\n|$)', "", text)


@pytest.mark.parametrize(
    "code",
    [
        'void f() { asm volatile("" ::: "memory"); }',
        'int f() asm("other_name");',
        "void f() { int texture = 1, b = texture < 2; }",
        "std::ostream& operator<<<int>(std::ostream&, A<int>);",
        "bool b = x < y && y > z; int s = 1 << 2 >> 1;",
        "A<B<C<int>>> nested; template <typename T = A<B<C<int>>>> void f(T);",
        "const char* s = \"k<<<1, 1>>>(x); __shared__\"; char c = '\\'';",
        'const char* s = R"x(\n# 1 "no.h" 1 3\nk<<<1, 1>>>("))x"; int k = 1\'000;',
        "__attribute__((__noinline__)) void f(); [[gnu::__noinline__]] void g();",
        "// k<<<1, 1>>>(x)\n/* __shared__ int\n __global__ */ int x;",
    ],
)
def test_what_stays_as_it_is(code):
    text = f'# 1 "t.cu"\n{code}\n'
    assert without_where_it_runs(translate(text)).split() == text.split()


def test_volatile_in_place_of_a_warp_barrier_is_noted():
    tail = "s[t] += s[t + 2]; s[t] += s[t + 1];"
    for code, is_noted in [
        (f"__device__ void sum(volatile float* s, int t) {{ {tail} }}", True),
        (f"__global__ void k(float* m, int t) {{ volatile float* s = m; {tail} }}", True),
        ("__device__ void sum(volatile float* s, int t) { s[t] += s[t + 2]; __syncwarp(); s[t] += s[t + 1]; }", False),
        ("__device__ void wait(volatile int* flag) { while (flag[0] == 0) {} flag[1] = 1; }", False),
        (f"void sum(volatile float* s, int t) {{ {tail} }}", False),
    ]:
        notes = []
        translate(f'# 1 "t.cu"\n{code}\n', notes=notes)
        assert [note.split(": note: ")[0] for note in notes] == ["t.cu:1"] * is_noted, code


def test_a_system_header_is_not_read_unless_it_holds_cuda():
    plain = '# 1 "h.h" 1 3\nvoid f() { asm("nop"); __noinline__ }\n# 2 "t.cu" 2\n'
    assert translate('# 1 "t.cu"\n' + plain) == '# 1 "t.cu"\n' + plain
    kernel = '# 1 "h.h" 1 3\n__global__ void k();\n# 2 "t.cu" 2\nint main() { k<<<1, 1>>>(); }\n'
    text = translate('# 1 "t.cu"\n' + kernel)
    assert "__global__" not in text and "::simt::launch(" in text


def test_a_macro_of_a_system_header_may_hold_ptx():
    code = 'void f() {\n# 2 "t.cu" 3\n asm("nop")\n# 2 "t.cu"\n ; k<<<1, 1>>>(x); }'
    assert '::simt::launch(k,::simt::LaunchConfig("k",1,1))(x)' in translated(code)


def test_brackets_that_the_student_forgot_are_left_to_gxx():
    for code in [
        "int main() { f(; k<<<1, 1>>>(x); }",
        "int main() { k<<<1, 1>>>(x); ",
        "void f() { } } void g() { k<<<1, 1>>>(x); }",
    ]:
        assert "::simt::launch(k," in translated(code)


def places(text, name):
    """{word: the (line, column) of each in the file of that name}, as the line markers say."""
    found, line, is_read = {}, 0, False
    for row in text.split("\n"):
        mark = MARKER.match(row)
        if mark:
            line, is_read = int(mark[1]), mark[2].endswith(name + '"')
            continue
        for word in re.finditer(r"\w+", row if is_read else ""):
            found.setdefault(word[0], set()).add((line, word.start() + 1))
        line += 1
    return found


def test_words_keep_their_line_and_column():
    source = SIMT / "tests/translate/shared.cu"
    folders = [option for name in ("include", "extras/include") for option in ("-isystem", SIMT / name)]
    command = ["g++", "-E", "-x", "c++", "-std=c++17", "-D__CUDACC__", *folders]
    command += ["-include", "cuda_runtime.h", source]
    preprocessed = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    own = places(f'# 1 "shared.cu"\n{source.read_text()}', "shared.cu")
    after = places(translate(preprocessed), "shared.cu")
    for word in "kRows Constructed matrix dependent volatile_second punned in_lambda hidden_by_local".split():
        assert own[word] <= after[word], word


def compile_errors(tmp_path, code):
    (tmp_path / "student.cu").write_text(code)
    command, environment = [SIMT / "simtcc", "-c", "student.cu"], {**os.environ, "LC_ALL": "C"}
    made = subprocess.run(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    assert made.returncode == 1
    return made.stderr


def test_errors_name_the_students_line_and_column(tmp_path):
    code = (
        "__global__ void k(float* x,   int n) {\n"
        "  __shared__   float   s[32];   x[0] = s[0] + missing;\n"
        "  __shared__ flaot t[2];\n"
        "  __shared__ float u[absent];\n"
        "}\n"
        "__host__ __device__   int f() { return nowhere; }\n"
        "int main() {\n"
        "\tfloat*   d;   k<<<1,   32>>>(d,   unknown);   int   bad = also_missing;   // here\n"
        "}\n"
    )
    errors = compile_errors(tmp_path, code)
    for word in ["missing", "flaot", "absent", "nowhere", "unknown", "also_missing"]:
        line, row = next((n + 1, row) for n, row in enumerate(code.splitlines()) if re.search(rf"\b{word}\b", row))
        column = re.search(rf"\b{word}\b", row.expandtabs()).start() + 1
        assert f"student.cu:{line}:{column}: error: '{word}'" in errors
    assert "simt_" not in errors


def test_a_shared_array_of_variable_length_is_refused(tmp_path):
    errors = compile_errors(tmp_path, "__global__ void k(int n) {\n  __shared__ float s[n];\n  s[0] = 1;\n}\n")
    assert "student.cu:2:20: error: variable length array 's'" in errors and "simt_" not in errors


@pytest.fixture(scope="session", params=PROGRAMS, ids=lambda path: path.stem)
def program(request, tmp_path_factory):
    """A program of translate/, built without a warning."""
    output = tmp_path_factory.mktemp("translate") / request.param.stem
    command = [SIMT / "simtcc", "-O0", "-Wall", "-Wextra", "-Werror", "all-warnings", request.param, "-o", output]
    made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert made.returncode == 0, made.stdout
    assert made.stdout == ""
    return output


@pytest.mark.parametrize("order", full_but(["forward", "reversed", "7"], "reversed"))
def test_program(program, order):
    environment = {**os.environ, "SIMT_ORDER": order}
    ran = subprocess.run([program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert ran.returncode == 0, ran.stdout


def test_long_texts_are_quick():
    header = "".join(
        f"template <typename T> struct A{i} {{ T x[{i}]; int f() const {{ return {i}; }} }};\n" for i in range(40000)
    )
    kernel = "__global__ void k{i}(float* x) {{\n  __shared__ float s[8];\n  s[0] = 1;\n  x[0] = s[0];\n}}\n"
    text = '# 1 "h.h" 1 3\n' + header + '# 1 "t.cu"\n' + "".join(kernel.format(i=i) for i in range(400))
    start = time.process_time()
    translate(text)
    assert time.process_time() - start < 1
