"""What bench/ adds to python3 -m ladder; tools/ladder/core/registry.py says what the names mean."""

JOBS = {"peers": "bench.norm.peers", "chain": "bench.norm.chain", "tune": "bench.tune.job"}
PAGES = [
    "bench.norm.peer_tables",
    "bench.norm.peer_plots",
    "bench.norm.invariance_tables",
    "bench.norm.chain_tables",
    "bench.norm.chain_plots",
    "bench.norm.all_reduce.tables",
    "bench.gemm.gemm_tables",
    "bench.models.model_tables",
    "bench.models.model_plots",
    "bench.models.training_tables",
    "bench.tune.policy_tables",
]
STORED = ["header/shapes", "header/host_time"]
STORES = {
    "header/peers_*": ("the RMSNorm header beside its peers", "make peers"),
    "header/all_reduce*": ("the norm behind an all-reduce beside its peers", "make peers ARGS=--all-reduce"),
    "header/chain*": ("what the header and its peers add to a layer", "make chain"),
    "header/end_to_end*": ("whole models with patched norms", "python3 bench/models/end_to_end.py"),
    "header/tensor_parallel*": ("models that are split over GPUs", "python3 bench/models/tensor_parallel.py"),
    "header/training*": ("a training step of models with patched norms", "python3 bench/models/training.py"),
    "header/host_time.csv": ("the host's part of a call from Python", "python3 bench/norm/host_time.py"),
    "header/shapes.csv": ("the header on other shapes", "make bench S=header"),
    "header/tune*": ("every candidate of the header's kernels", "make tune"),
    "q4_gemm/tune*": ("every candidate of the q4_gemm header's kernels", "make tune S=q4_gemm"),
    "q4_gemm/peers*": ("the q4_gemm header beside its peers", "python3 bench/gemm/gemm_peers.py"),
    "q4_gemm/norm*": ("norm and product together and apart", "python3 bench/gemm/gemm_peers.py"),
}
PROGRAMS = {"shapes": "bench/norm/shapes"}
