"""The jobs of the course, and the modules of its tables and plots; core/registry.py says what the names mean."""

JOBS = {
    "bench": "ladder.measure.bench",
    "profile": "ladder.measure.profile",
    "analyze": "ladder.measure.analyze",
    "compare": "ladder.measure.compare",
    "tune": "ladder.tune_job",
    "readme": "ladder.pages.readme",
    "plot": "ladder.pages.plots",
    "site": "ladder.pages.site",
    "terms": "ladder.pages.terms",
    "stage": "ladder.core.stage",
    "grade": "ladder.grader.grade",
    "quiz": "ladder.grader.quiz",
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
]
