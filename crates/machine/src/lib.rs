//! Starts a kernel on a machine, feeds it a workload, brings back what was captured
