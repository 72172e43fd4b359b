"""The jobs of the course, and the modules of its tables and plots; core/registry.py says what the names mean."""

JOBS = {
    "bench": "ladder.measure.bench",
    "profile": "ladder.measure.profile",
    "analyze": "ladder.measure.analyze",
    "compare": "ladder.measure.compare",
    "readme": "ladder.pages.readme",
    "plot": "ladder.pages.plots",
    "site": "ladder.pages.site",
    "slides": "ladder.pages.slides",
    "terms": "ladder.pages.terms",
    "stage": "ladder.core.stage",
    "grade": "ladder.grader.grade",
    "quiz": "ladder.grader.quiz",
    "class": "ladder.grader.classroom",
    "student-tree": "ladder.grader.student_tree",
}
PAGES = [
    "ladder.pages.ladder_tables",
    "ladder.pages.counter_tables",
    "ladder.pages.cpu_device_tables",
    "ladder.pages.grid_tables",
    "ladder.pages.plots",
    "ladder.pages.counter_plots",
    "ladder.pages.roofline",
    "ladder.pages.pictures",
    "ladder.pages.index",
]
STORES = {
    "environment.txt": ("the GPU, its driver, its clocks and the compilers", "make bench"),
    "gpu_check.txt": ("what every check on a GPU said", "scripts/gpu_check.sh"),
    "known_answers_ncu.*": (
        "Nsight Compute's counts beside those of the CPU device's analysis",
        "scripts/gpu_check.sh",
    ),
    "*/main.csv": ("the stages on the main input", "make bench S={ladder}"),
    "*/repeat.csv": ("the same, repeated", "make bench S={ladder}"),
    "*/python.csv": ("the kernels from Python, beside PyTorch", "the ladder's Python program with --csv"),
    "*/environment.txt": ("where and when", "make bench S={ladder}"),
    "W3L1/power.csv": (
        "power and clock while 07_half_wgmma runs",
        "nvidia-smi, as W3L1 shows",
    ),
    "*/outputs/*": ("what programs print", "make bench S={ladder}"),
    "*/ncu_small/*": ("counters on the input of `make analyze`", "scripts/gpu_check.sh"),
    "*/ncu_details/*": ("Nsight Compute's whole report as text", "make profile S={ladder}"),
    "*/ncu/*": ("counters on the main input", "make profile S={ladder}"),
    "*/ncu_*/*": ("counters on another input", "make profile S={ladder}"),
    "*/reports/*": ("reports for Nsight Compute's window", "make profile S={ladder}"),
}
