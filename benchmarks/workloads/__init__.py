"""The workloads that `python -m benchmarks` compares: written once for topos and idiomatically for each peer."""
