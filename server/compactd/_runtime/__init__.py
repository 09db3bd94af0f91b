"""How the process runs: lazy imports, garbage collection, other programs. Below everything else."""
