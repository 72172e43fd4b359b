"""The counters of Nsight Compute: a short name for the markers of the pages, ncu's own, and one for people.

ncu's names as of Nsight Compute 2025.3 for sm_90.
"""

from ..core.ladders import Unusable

STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
SECTORS_EACH = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{}.ratio"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
SHARED = "smsp__inst_executed_op_shared_{}.sum"
SHARED_PATCHED = "smsp__sass_inst_executed_op_shared_{}.sum"
SASS_WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
DURATION = "gpu__time_duration.sum"
OPCODES = "sass__inst_executed_per_opcode"
MISSING = "missing"  # the value of a counter that this GPU or this ncu lacks

# The counters of a profile, in the order of the stored files: (short name, ncu's name, name for people).
PROFILE = [
    ("duration", DURATION, "duration"),
    ("blocks", "launch__grid_size", "blocks in the grid"),
    ("threads", "launch__block_size", "threads per block"),
    ("registers", "launch__registers_per_thread", "registers per thread"),
    ("shared", "launch__shared_mem_per_block_static", "shared memory per block"),
    ("shared_set_aside", "launch__shared_mem_config_size", "shared memory set aside per SM"),
    ("limit_slots", "launch__occupancy_limit_blocks", "block limit per SM, slots"),
    ("limit_registers", "launch__occupancy_limit_registers", "block limit per SM, registers"),
    ("limit_shared", "launch__occupancy_limit_shared_mem", "block limit per SM, shared memory"),
    ("limit_warps", "launch__occupancy_limit_warps", "block limit per SM, warps"),
    ("possible_occupancy", "sm__maximum_warps_per_active_cycle_pct", "theoretical occupancy"),
    ("occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", "achieved occupancy"),
    ("waves", "launch__waves_per_multiprocessor", "waves per SM"),
    ("active", "sm__cycles_active.avg", "active cycles per SM"),
    ("most_active", "sm__cycles_active.max", "active cycles of the busiest SM"),
    ("elapsed", "sm__cycles_elapsed.max", "elapsed cycles"),
    ("dram_read", "dram__bytes_read.sum", "read from DRAM"),
    ("dram_written", "dram__bytes_write.sum", "written to DRAM"),
    ("dram_busy", "dram__throughput.avg.pct_of_peak_sustained_elapsed", "DRAM throughput"),
    ("l2_to_l1", "l1tex__m_xbar2l1tex_read_bytes.sum", "moved from L2 to L1"),
    ("l2_hits", "lts__t_sector_hit_rate.pct", "L2 hit rate"),
    ("l2_read_hits", "lts__t_sector_op_read_hit_rate.pct", "L2 hit rate of reads"),
    ("all_l1_hits", "l1tex__t_sector_hit_rate.pct", "L1 hit rate"),
    ("l1_hits", "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct", "L1 hit rate of global loads"),
    ("l1_busy", "l1tex__throughput.avg.pct_of_peak_sustained_active", "L1 throughput"),
    ("load_requests", REQUESTS.format("ld"), "global load requests"),
    ("store_requests", REQUESTS.format("st"), "global store requests"),
    ("load_sectors", SECTORS_EACH.format("ld"), "sectors per load request"),
    ("store_sectors", SECTORS_EACH.format("st"), "sectors per store request"),
    ("shared_loads", SHARED_PATCHED.format("ld"), "shared-memory load instructions"),
    ("shared_stores", SHARED_PATCHED.format("st"), "shared-memory store instructions"),
    ("local_loads", REQUESTS.format("ld").replace("global", "local"), "local-memory load requests"),
    ("local_stores", REQUESTS.format("st").replace("global", "local"), "local-memory store requests"),
    ("load_conflicts", CONFLICTS.format("ld"), "bank conflicts of shared loads"),
    ("store_conflicts", CONFLICTS.format("st"), "bank conflicts of shared stores"),
    ("load_wavefronts", SASS_WAVEFRONTS.format("ld"), "wavefronts of shared loads"),
    ("store_wavefronts", SASS_WAVEFRONTS.format("st"), "wavefronts of shared stores"),
    ("instructions", "smsp__inst_executed.sum", "instructions executed"),
    ("lanes", "smsp__thread_inst_executed_per_inst_executed.ratio", "active lanes per instruction"),
    (
        *("lanes_on", "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"),
        "lanes that were not switched off by a predicate",
    ),
    ("issue_busy", "smsp__issue_active.avg.pct_of_peak_sustained_active", "issue slots busy"),
    ("waits", "smsp__average_warp_latency_per_inst_issued.ratio", "warp cycles per issued instruction"),
    ("global_wait", STALL.format("long_scoreboard"), "of these, stalled on global memory (long scoreboard)"),
    ("barrier", STALL.format("barrier"), "of these, stalled at a barrier (barrier)"),
    ("lg_throttle", STALL.format("lg_throttle"), "of these, stalled on the queue of global accesses (lg throttle)"),
    ("mio_throttle", STALL.format("mio_throttle"), "of these, stalled on the queue of shared accesses (mio throttle)"),
    ("shared_wait", STALL.format("short_scoreboard"), "of these, stalled on shared memory (short scoreboard)"),
    ("latency", STALL.format("wait"), "of these, stalled on a fixed latency (wait)"),
    ("math_throttle", STALL.format("math_pipe_throttle"), "of these, stalled on arithmetic units (math pipe throttle)"),
    ("not_selected", STALL.format("not_selected"), "of these, ready but not chosen (not selected)"),
    ("fetch", STALL.format("no_instruction"), "of these, stalled on fetching the next instruction (no instruction)"),
    ("drain", STALL.format("drain"), "of these, stalled on its last stores (drain)"),
    ("selected", STALL.format("selected"), "of these, issuing (selected)"),
]
COUNTERS = {metric: name for _, metric, name in PROFILE}
SHORT = {short: metric for short, metric, _ in PROFILE}

# What a stage's page shows of its own stage and the one before, and what a comparison of many stages shows.
FEW = "load_sectors load_requests instructions occupancy waits barrier l1_hits l2_to_l1 dram_read dram_busy".split()
MANY = (
    "duration dram_read dram_written dram_busy l2_to_l1 l2_hits l1_hits l1_busy load_sectors store_sectors "
    "load_requests blocks threads registers limit_registers limit_shared possible_occupancy occupancy active elapsed shared_loads "
    "shared_stores load_conflicts store_conflicts instructions issue_busy waits global_wait barrier lg_throttle"
).split()

# What make counts reads beside the CPU device: first what the hardware counts, then what patched instructions count.
WORDS = {"ld": "load", "st": "store", "atom": "atomic", "red": "reduction"}
HARDWARE = {
    **{REQUESTS.format(op): f"global {word} requests" for op, word in WORDS.items()},
    **{SECTORS.format(op): f"sectors of global {word}s" for op, word in WORDS.items()},
    **{WAVEFRONTS.format(op): f"wavefronts of shared {WORDS[op]}s" for op in ("ld", "st", "atom")},
    **{CONFLICTS.format(op): f"bank conflicts of shared {WORDS[op]}s" for op in ("ld", "st", "atom")},
    **{SHARED.format(op): f"shared {WORDS[op]} instructions" for op in ("ld", "st", "atom")},
    "smsp__inst_executed.sum": "instructions executed",
}
PATCHED = [
    *(f"smsp__sass_inst_executed_op_global_{op}.sum" for op in ("ld", "st")),
    *(SHARED_PATCHED.format(op) for op in ("ld", "st")),
    *(SASS_WAVEFRONTS.format(op) for op in ("ld", "st")),
    *(f"smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st")),
    *(f"smsp__sass_data_bytes_mem_global_op_{op}.sum" for op in ("ld", "st")),
    *("memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"),
    *("memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal"),
    OPCODES,
]


def metrics(names):
    """ncu's names of short ones."""
    unknown = [name for name in names if name not in SHORT]
    if unknown:
        raise Unusable(
            f"there is no counter {', '.join(unknown)}; tools/ladder/measure/counters.py has {', '.join(SHORT)}"
        )
    return [SHORT[name] for name in names]
