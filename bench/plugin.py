"""What bench/ adds to python3 -m ladder; tools/ladder/core/registry.py says what the names mean."""

JOBS = {"peers": "bench.norm.peers", "chain": "bench.norm.chain"}
PAGES = [
    "bench.norm.peer_tables",
    "bench.norm.peer_plots",
    "bench.norm.chain_tables",
    "bench.norm.chain_plots",
    "bench.gemm.gemm_tables",
    "bench.models.model_tables",
    "bench.models.model_plots",
]
STORED = ["header/shapes", "header/host_time"]
PROGRAMS = {"shapes": "bench/norm/shapes"}
