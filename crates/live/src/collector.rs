//! Collector: opens sources, drains them into an aggregate, and builds profiles from it.

use crate::counts::{idle_ns, ProcCounters};
use crate::profile::{ProfileBuilder, ProfileLabels};
use crate::sources::open_sources;
use crate::sources::perf::task_cgroups;
use crate::top::{self, TopView};
use crate::{Aggregate, CollectorOptions, MachineState, Result, Source, SourceDescription};
use kerntune_convert::perf::BranchStacks;
use kerntune_profile::{CounterTotal, Profile};
use kerntune_symbols::RunningKernel;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::fs;
use std::time::{Duration, Instant};

/// Longest time between two drains of the sources.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Running collection of a profile.
pub struct Collector {
    options: CollectorOptions,
    running: RunningKernel,
    sources: Vec<Box<dyn Source>>,
    all: Aggregate,
    base: ProcCounters,
    began: Instant,
    state: MachineState,
}

impl Collector {
    /// Opens the sources and starts to collect.
    ///
    /// # Errors
    /// The kernel refuses a source; see [`crate::Error`].
    pub fn start(options: CollectorOptions, mut running: RunningKernel) -> Result<Self> {
        // The aggregate owns the table of functions from here on.
        let all = Aggregate::new(std::mem::take(&mut running.table), options.bounds);
        let sources = open_sources(&options)?;
        let state = MachineState::read(&running.release);
        let (base, began) = (ProcCounters::now(&options.filter.cpus), Instant::now());
        let mut collector = Self { options, running, sources, all, base, began, state };
        collector.read_names();
        Ok(collector)
    }

    /// Reads the names and mappings of existing threads, since the kernel reports only changes.
    fn read_names(&mut self) {
        let numbers = |path: &str| -> Vec<u32> {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
        };
        if !self.options.filter.processes.is_empty() {
            let processes = self.options.filter.processes.iter();
            let threads = processes.flat_map(|process| numbers(&format!("/proc/{process}/task")));
            self.all.waits.off_cpu.follow(threads);
        }
        for process in numbers("/proc") {
            let cgroup = task_cgroups::read(&format!("/proc/{process}/cgroup"), &mut self.all);
            for thread in numbers(&format!("/proc/{process}/task")) {
                let name = fs::read_to_string(format!("/proc/{process}/task/{thread}/comm"));
                if let Ok(name) = name {
                    self.all.threads.named(thread, process, name.trim_end_matches('\n'));
                    self.all.threads.set_cgroup(thread, process, cgroup);
                }
            }
            if self.options.user_chains() {
                self.all.user.read_process(process);
            }
        }
    }

    /// Waits until a source has data or 100 ms have passed, then drains the sources.
    ///
    /// # Errors
    /// A source fails.
    pub fn poll(&mut self) -> Result<()> {
        let wait = Timespec::try_from(POLL_INTERVAL).unwrap_or_default();
        let mut descriptors: Vec<PollFd> = self
            .sources
            .iter()
            .flat_map(|source| source.descriptors())
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect();
        let ready = poll(&mut descriptors, Some(&wait));
        let hung = descriptors.iter().any(|descriptor| descriptor.revents().contains(PollFlags::HUP));
        if ready.is_ok() && hung {
            // The descriptor of an event whose thread has ended stays readable forever.
            std::thread::sleep(POLL_INTERVAL);
        }
        self.drain()
    }

    fn drain(&mut self) -> Result<()> {
        self.sources.iter_mut().try_for_each(|source| source.drain(&mut self.all))
    }

    /// Collects until `stop` returns true. `stop` is called at least ten times a second.
    ///
    /// # Errors
    /// A source or `stop` fails.
    pub fn run_until<E: From<crate::Error>>(
        &mut self,
        mut stop: impl FnMut() -> std::result::Result<bool, E>,
    ) -> std::result::Result<(), E> {
        while !stop()? {
            self.poll()?;
        }
        Ok(self.drain()?)
    }

    /// Builds a profile of everything since the start or the last reset. Collection continues.
    ///
    /// # Errors
    /// A source fails, or no time was recorded.
    pub fn snapshot(&mut self, labels: &ProfileLabels) -> Result<Profile> {
        self.drain()?;
        self.sources.iter_mut().try_for_each(|source| source.flush_counts(&mut self.all))?;
        let mut coverage = None;
        for source in &mut self.sources {
            coverage = coverage.or(source.coverage()?);
        }
        let counted = self.counter_totals()?;
        let descriptions: Vec<SourceDescription> =
            self.sources.iter().map(|source| source.description()).collect();
        let builder = ProfileBuilder {
            all: &self.all,
            running: &self.running,
            descriptions: &descriptions,
            coverage: coverage.unwrap_or_default(),
            halted_ns: idle_ns(&counted),
            counted,
            filter: &self.options.filter,
            wall: self.began.elapsed(),
            bound_bytes: self.bound_bytes(&descriptions),
        };
        let mut profile = builder.build(labels)?;
        profile.manifest.host = Some(self.state.host.clone());
        Ok(profile)
    }

    /// Returns the CPU's last branches since the start or the last reset, with what is known of this boot;
    /// `None` if the collector samples something else. Collection continues.
    ///
    /// # Errors
    /// A source fails.
    pub fn branch_stacks(&mut self) -> Result<Option<BranchStacks>> {
        self.drain()?;
        let Some(mut stacks) = self.sources.iter().find_map(|source| source.branches()).cloned() else {
            return Ok(None);
        };
        for boot in &mut stacks.parts {
            let text_at = self.running.anchors.iter().find(|(name, _)| name == "_text");
            boot.release = Some(self.running.release.clone());
            boot.kernel_at = text_at.map(|(_, address)| *address);
        }
        Ok(Some(stacks))
    }

    /// Discards everything collected and starts anew.
    ///
    /// # Errors
    /// A source fails.
    pub fn reset(&mut self) -> Result<()> {
        self.drain()?;
        self.sources.iter_mut().try_for_each(|source| source.reset())?;
        self.all.clear();
        (self.base, self.began) = (ProcCounters::now(&self.options.filter.cpus), Instant::now());
        Ok(())
    }

    /// Returns the counters that are kept beside samples.
    ///
    /// # Errors
    /// A source fails.
    pub fn counter_totals(&mut self) -> Result<Vec<CounterTotal>> {
        let mut counted = Vec::new();
        for source in &mut self.sources {
            counted.extend(source.counter_totals()?);
        }
        counted.extend(ProcCounters::now(&self.options.filter.cpus).since(&self.base));
        Ok(counted)
    }

    /// Returns the functions and paths with the most samples, at most `max` of each.
    ///
    /// # Errors
    /// A source fails.
    pub fn top(&mut self, max: usize) -> Result<TopView> {
        self.drain()?;
        let counted = self.counter_totals()?;
        let lost = self.lost();
        let source = self
            .descriptions()
            .into_iter()
            .map(|description| description.name)
            .collect::<Vec<_>>()
            .join("; ");
        let wall_ns = u64::try_from(self.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(TopView { wall_ns, lost, source, counted, ..top::of(&self.all, max) })
    }

    /// Returns the number of lost samples.
    pub fn lost(&mut self) -> u64 {
        let lost = self.sources.iter_mut().filter_map(|source| Some(source.coverage().ok()??.lost));
        lost.sum::<u64>().max(self.all.lost)
    }

    /// Returns the options of the collection.
    pub fn options(&self) -> &CollectorOptions {
        &self.options
    }

    /// Returns the aggregate of everything collected since the start or the last reset.
    pub fn aggregate(&self) -> &Aggregate {
        &self.all
    }

    /// Returns the running kernel. Its table of functions is in [`aggregate`](Self::aggregate).
    pub fn running(&self) -> &RunningKernel {
        &self.running
    }

    /// Returns the state of the machine at the start, with the kernel's configuration.
    pub fn machine_state(&self) -> &MachineState {
        &self.state
    }

    /// Returns the descriptions of the sources.
    pub fn descriptions(&self) -> Vec<SourceDescription> {
        self.sources.iter().map(|source| source.description()).collect()
    }

    /// Returns the time since the start or the last reset.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns an upper bound for the memory of tables, buffers and kernel symbol names, in bytes.
    pub fn bound(&self) -> u64 {
        self.bound_bytes(&self.descriptions())
    }

    fn bound_bytes(&self, descriptions: &[SourceDescription]) -> u64 {
        let buffers: usize = descriptions.iter().map(|description| description.buffers).sum();
        let names: usize = self
            .all
            .table
            .functions()
            .iter()
            .map(|function| {
                size_of_val(function)
                    + function.name.len()
                    + function.file.as_ref().map_or(0, String::len)
                    + 24
            })
            .sum();
        (self.options.bounds.bytes() + buffers + names) as u64
    }
}
