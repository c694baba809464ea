//! Kinds of anomalies of recordings, analyses, imports and collectors.

/// Declares the kinds: variant, name in [`crate::Manifest::health`], weight and sentence.
macro_rules! anomalies {
    ($($variant:ident $name:literal $weight:ident $sentence:literal;)+) => {
        /// Kind of anomaly. Its documentation is the sentence that reports print, in which `{count}` is
        /// the number of cases and `{events}` that of the profile's events.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Anomaly {
            $(#[doc = $sentence] $variant,)+
        }

        impl Anomaly {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the name in [`crate::Manifest::health`].
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns the weight of the anomaly.
            pub fn weight(self) -> AnomalyWeight {
                match self {
                    $(Self::$variant => AnomalyWeight::$weight,)+
                }
            }

            /// Returns a sentence for readers, which says what to do if anything can be done.
            pub fn sentence(self, count: &str, events: &str) -> String {
                let template = match self {
                    $(Self::$variant => $sentence,)+
                };
                template.replace("{count}", count).replace("{events}", events)
            }
        }
    };
}

/// Weight of an anomaly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnomalyWeight {
    /// No fault: a check or correction, calls that were open when recording began or paused, or a
    /// count that another remark covers.
    Harmless,
    /// Readers of the figures should know it.
    Notable,
}

impl Anomaly {
    /// Returns the kind with this name in [`crate::Manifest::health`]; `None` for names of other
    /// versions.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.name() == name)
    }
}

anomalies! {
    // The recorder's.
    LostEvents "lost_events" Harmless
        "{count} events were lost: the figures are too low. Record again.";
    UnmatchedReturns "unmatched_returns" Notable
        "{count} returns (of {events} events) could not be matched with a call.";
    ForeignReturns "foreign_returns" Notable
        "{count} returns (of {events} events) were by code reached through a jump into a function.";
    UnwoundFrames "unwound_frames" Notable
        "{count} calls (of {events} events) ended without a return of their own.";
    HeadlessReturns "headless_returns" Notable
        "{count} returns of user functions (of {events} events) are of calls that were not seen.";
    LostJumps "lost_jumps" Notable
        "{count} jumps out of the selection could not be followed: some times may be too long.";
    UncountedBlocks "uncounted_blocks" Notable
        "{count} executed blocks found no counter and are missing from the counts.";
    UncountedEdges "uncounted_edges" Notable
        "{count} taken branches found no counter and are missing from the counts.";
    ClockChecks "clock_checks" Harmless
        "The guest's clock and the count of instructions were compared {count} times.";
    ClockErrors "clock_errors" Notable
        "The guest's clock and the count of instructions differed {count} times: run/recording.json says where, docs/measuring.md why.";
    ClockErrorNs "clock_error_ns" Harmless
        "The guest's clock and the count of instructions differed by {count} ns in all.";
    CutBlocks "cut_blocks" Harmless
        "{count} blocks were cut short by an exception or a device; their counts were corrected.";
    UnreadIo "unread_io" Notable
        "{count} requests to block devices or network packets could not be read; no figure includes them.";
    HostDisks "host_disks" Notable
        "The disk is a file of the host: figures differ from run to run (docs/disk.md).";
    // The analysis's.
    StackMismatches "stack_mismatches" Notable
        "{count} stack mismatches in the trace (of {events} events).";
    RunningMismatches "running_mismatches" Notable
        "{count} running mismatches in the trace (of {events} events).";
    ClockMismatches "clock_mismatches" Notable
        "{count} clock mismatches in the trace (of {events} events).";
    ClockMismatchNs "clock_mismatch_ns" Notable
        "The clocks of the trace's chunks differ by {count} ns in all.";
    UnmatchedExits "unmatched_exits" Notable
        "{count} unmatched exits in the trace (of {events} events).";
    CutCalls "cut_calls" Harmless
        "{count} calls were not recorded from begin to end: they have self time only.";
    OutsideNs "outside_ns" Notable
        "Events of {count} ns lie outside of all regions.";
    RegionMismatches "region_mismatches" Notable
        "{count} marks of regions were out of order.";
    RegionMismatchNs "region_mismatch_ns" Notable
        "The times of regions and of their events differ by {count} ns.";
    CpuMismatchNs "cpu_mismatch_ns" Notable
        "The times of CPUs and the instructions that the recorder counted for them differ by {count} ns.";
    UnclosedRegions "unclosed_regions" Notable
        "{count} regions were begun and never ended: their figures are incomplete.";
    UnattributedNs "unattributed_ns" Harmless
        "No function was open for {count} ns of kernel time.";
    UnnamedNs "unnamed_ns" Notable
        "{count} ns of kernel time ran in code that no symbol names.";
    FoldedCalls "folded_calls" Notable
        "{count} calls were too deep for the tree of call paths and are counted for one of their callers.";
    MissingChunks "missing_chunks" Notable
        "{count} damaged chunks of the trace were left out.";
    MissingEvents "missing_events" Notable
        "{count} events of the trace were left out with damaged chunks.";
    MissingNs "missing_ns" Notable
        "{count} ns of the trace were left out with damaged chunks.";
    // Imports'.
    UnknownTags "unknown_tags" Notable
        "{count} records (of {events} events) have a tag that no names file has.";
    OpenAtBegin "open_at_begin" Harmless
        "{count} functions were open where the capture begins.";
    OpenAtEnd "open_at_end" Harmless
        "{count} functions were open where the capture ends.";
    UncertainSwitches "uncertain_switches" Notable
        "{count} context switches do not show with certainty which process continued.";
    RepeatedSwitches "repeated_switches" Notable
        "{count} context switches began within another one.";
    TimerWraps "timer_wraps" Harmless
        "The counter of time wrapped {count} times.";
    StrangeRuns "strange_runs" Notable
        "{count} runs between two branches do not fit the kernel's code and were left out.";
    UnplacedRuns "unplaced_runs" Notable
        "{count} runs in the kernel's memory were left out: it has no function there.";
    SpeculatedBranches "speculated_branches" Notable
        "{count} branches were not taken, or undone by the CPU, and were left out.";
    StrangeLines "strange_lines" Notable
        "{count} lines of the samples could not be parsed and were left out.";
    Boots "boots" Notable
        "The samples are of {count} boots or machines.";
    SilentCpus "silent_cpus" Notable
        "{count} CPUs have no sample.";
    CallsOfUnknownCode "calls_of_unknown_code" Notable
        "{count} calls are of code that the image does not have, and were left out.";
    // The live collector's.
    UnnamedFrames "unnamed_frames" Notable
        "{count} frames of call chains are in code that no symbol names.";
    UnnamedUserFrames "unnamed_user_frames" Notable
        "{count} frames of user code are in code that no symbol names.";
    UnnamedCalls "unnamed_calls" Notable
        "{count} counted calls are of code that no symbol names.";
    CutChains "cut_chains" Notable
        "{count} call chains were longer than the kernel records: their outer callers are missing (kernel.perf_event_max_stack).";
    Throttled "throttled" Notable
        "The kernel throttled sampling {count} times (kernel.perf_cpu_time_max_percent): use a lower --rate.";
    FoldedSamples "folded_samples" Notable
        "{count} samples (of {events}) had no room for their call path and are counted for one of its callers.";
    CrowdedThreads "crowded_threads" Notable
        "{count} samples are of threads that had no room in the table of threads.";
    CrowdedSwitches "crowded_switches" Notable
        "{count} context switches had no room in their table.";
    CrowdedCalls "crowded_calls" Notable
        "{count} counted calls had no room in their table.";
    LostSwitchSamples "lost_switch_samples" Notable
        "{count} samples of context switches were lost: the others stand for them.";
    LostTraceEvents "lost_trace_events" Notable
        "{count} events of tracepoints were lost: counts and times of waits and system calls are too low.";
    MissedSwitches "missed_switches" Notable
        "{count} context switches are missing from the kernel's events: times of waits are uncertain. Does another program trace, too?";
    CrowdedWaits "crowded_waits" Notable
        "{count} waits had no room in their table and were left out.";
    FoldedWaits "folded_waits" Notable
        "{count} call paths of waits had no room and are counted for one of their callers.";
    DamagedRecords "damaged_records" Notable
        "{count} records of the kernel could not be read and were left out.";
    LostCalls "lost_calls" Notable
        "{count} calls had no room in the tables of kgmon and were not counted.";
    FtraceWasOff "ftrace_was_off" Notable
        "ftrace was switched off while calls were counted: the counts are too low.";
    ModulesMissed "modules_missed" Notable
        "Functions of modules are not counted, or the addresses of modules are unknown.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_lead_to_their_kinds() {
        let names: BTreeSet<&str> = Anomaly::ALL.iter().map(|anomaly| anomaly.name()).collect();
        assert_eq!(names.len(), Anomaly::ALL.len());
        assert!(Anomaly::ALL.iter().all(|anomaly| Anomaly::from_name(anomaly.name()) == Some(*anomaly)));
        assert_eq!(Anomaly::from_name("of another version"), None);
    }
}
