//! The collector: takes what sources have, as long as it is told to.

use crate::counts::{idle_ns, Counts};
use crate::profile::{Labels, Seen};
use crate::sources::choose;
use crate::top::{self, TopView};
use crate::{Aggregate, Description, Options, Result, Source};
use kerntune_profile::{Counted, Profile};
use kerntune_symbols::Running;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::fs;
use std::time::{Duration, Instant};

/// How often sources are looked at, if none asks for it earlier.
const TAKE_EVERY: Duration = Duration::from_millis(100);

/// A profile in the making.
pub struct Collector {
    options: Options,
    running: Running,
    sources: Vec<Box<dyn Source>>,
    all: Aggregate,
    base: Counts,
    began: Instant,
}

impl Collector {
    /// Begins to watch.
    ///
    /// # Errors
    /// What the kernel refuses, see [`crate::Error`].
    pub fn start(options: Options, mut running: Running) -> Result<Self> {
        // The aggregate has the table from here on.
        let all = Aggregate::new(std::mem::take(&mut running.table), options.bounds);
        let sources = choose(&options)?;
        let (base, began) = (Counts::now(&options.filter.cpus), Instant::now());
        let mut collector = Self { options, running, sources, all, base, began };
        collector.read_names();
        Ok(collector)
    }

    /// Names of the threads that there are: the kernel tells only changes.
    fn read_names(&mut self) {
        let numbers = |path: &str| -> Vec<u32> {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
        };
        for process in numbers("/proc") {
            for thread in numbers(&format!("/proc/{process}/task")) {
                let name = fs::read_to_string(format!("/proc/{process}/task/{thread}/comm"));
                if let Ok(name) = name {
                    self.all.threads.named(thread, process, name.trim_end_matches('\n'));
                }
            }
            if self.options.user_chains() {
                self.all.user.read_process(process);
            }
        }
    }

    /// Takes what there is once something is there, or a moment has passed.
    ///
    /// # Errors
    /// A source that fails.
    pub fn take(&mut self) -> Result<()> {
        let wait = Timespec::try_from(TAKE_EVERY).unwrap_or_default();
        let mut descriptors: Vec<PollFd> = self
            .sources
            .iter()
            .flat_map(|source| source.descriptors())
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect();
        let ready = poll(&mut descriptors, Some(&wait));
        let hung = descriptors.iter().any(|descriptor| descriptor.revents().contains(PollFlags::HUP));
        if ready.is_ok() && hung {
            // Threads that have ended stay readable for ever.
            std::thread::sleep(TAKE_EVERY);
        }
        self.drain()
    }

    fn drain(&mut self) -> Result<()> {
        self.sources.iter_mut().try_for_each(|source| source.drain(&mut self.all))
    }

    /// Takes until `stop` says so, which is asked ten times a second.
    ///
    /// # Errors
    /// A source that fails, or `stop`.
    pub fn run_until<E: From<crate::Error>>(
        &mut self,
        mut stop: impl FnMut() -> std::result::Result<bool, E>,
    ) -> std::result::Result<(), E> {
        while !stop()? {
            self.take()?;
        }
        Ok(self.drain()?)
    }

    /// The profile of what was seen since the beginning or the last reset. Watching goes on.
    ///
    /// # Errors
    /// A source that fails; no time to make a profile of.
    pub fn snapshot(&mut self, labels: &Labels) -> Result<Profile> {
        self.drain()?;
        self.sources.iter_mut().try_for_each(|source| source.count(&mut self.all))?;
        let mut observed = None;
        for source in &mut self.sources {
            observed = observed.or(source.observed()?);
        }
        let counted = self.counted()?;
        let descriptions: Vec<Description> = self.sources.iter().map(|source| source.description()).collect();
        let seen = Seen {
            all: &self.all,
            running: &self.running,
            descriptions: &descriptions,
            observed: observed.unwrap_or_default(),
            halted_ns: idle_ns(&counted),
            counted,
            filter: &self.options.filter,
            wall: self.began.elapsed(),
            bound_bytes: self.bound_bytes(&descriptions),
        };
        seen.profile(labels)
    }

    /// Begins anew: what was seen is forgotten.
    ///
    /// # Errors
    /// A source that fails.
    pub fn reset(&mut self) -> Result<()> {
        self.drain()?;
        self.sources.iter_mut().try_for_each(|source| source.reset())?;
        self.all.clear();
        (self.base, self.began) = (Counts::now(&self.options.filter.cpus), Instant::now());
        Ok(())
    }

    /// What was counted beside samples.
    ///
    /// # Errors
    /// A source that fails.
    pub fn counted(&mut self) -> Result<Vec<Counted>> {
        let mut counted = Vec::new();
        for source in &mut self.sources {
            counted.extend(source.counted()?);
        }
        counted.extend(Counts::now(&self.options.filter.cpus).since(&self.base));
        Ok(counted)
    }

    /// The heaviest of what was seen: at most so many functions and paths.
    ///
    /// # Errors
    /// A source that fails.
    pub fn top(&mut self, most: usize) -> Result<TopView> {
        self.drain()?;
        let counted = self.counted()?;
        let lost = self.lost();
        let source = self
            .descriptions()
            .into_iter()
            .map(|description| description.name)
            .collect::<Vec<_>>()
            .join("; ");
        let wall_ns = u64::try_from(self.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(TopView { wall_ns, lost, source, counted, ..top::of(&self.all, most) })
    }

    /// Samples that were lost.
    pub fn lost(&mut self) -> u64 {
        let lost = self.sources.iter_mut().filter_map(|source| Some(source.observed().ok()??.lost));
        lost.sum::<u64>().max(self.all.lost)
    }

    /// What is watched, and how.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What was seen until now.
    pub fn seen(&self) -> &Aggregate {
        &self.all
    }

    /// Names of the kernel's code; without its table, which is in [`seen`](Self::seen).
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// What the sources are.
    pub fn descriptions(&self) -> Vec<Description> {
        self.sources.iter().map(|source| source.description()).collect()
    }

    /// Time since the beginning or the last reset.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Memory that it takes at most, in bytes: tables, buffers, and the names of the kernel's code.
    pub fn bound(&self) -> u64 {
        self.bound_bytes(&self.descriptions())
    }

    fn bound_bytes(&self, descriptions: &[Description]) -> u64 {
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
