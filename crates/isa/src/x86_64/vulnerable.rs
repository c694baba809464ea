//! Vulnerable CPUs, by their `cpuid`: the kernel has lists of families and models
//! (`cpu_vuln_whitelist` and `cpu_vuln_blacklist` of arch/x86/kernel/cpu/common.c).

use crate::VulnerableCpu;

/// One CPU of each manufacturer; each needs mitigations that the other does not.
pub const CPUS: &[VulnerableCpu] = &[
    // Retpolines; return thunks that are untrained at every entry.
    VulnerableCpu { name: "zen2", properties: "vendor=AuthenticAMD,family=23,model=49,stepping=0" },
    // Retpolines; separate page tables for user code; buffers cleared at every exit.
    VulnerableCpu { name: "skylake", properties: "vendor=GenuineIntel,family=6,model=94,stepping=3" },
];
