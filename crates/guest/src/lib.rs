//! Workload file to guest image
