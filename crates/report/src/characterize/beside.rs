//! Main figures and similarities of several profiles, one column each.

use super::event::FigureBasis;
use super::facts::WorkloadCharacter;
use super::similarity::Similarity;
use super::split::PartGroup;
use crate::html::PageSection;
use kerntune_table::number::{figure, fixed};
use kerntune_table::{printable, Columns, Table};
use serde::Serialize;
use std::collections::BTreeMap;

/// Main figure: its JSON name, title, and getter.
type MainFigure = (&'static str, &'static str, fn(&WorkloadCharacter) -> Option<f64>);

const MAIN_FIGURES: [MainFigure; 30] = [
    ("operations", "operations", |of| of.operations.map(|count| count as f64)),
    ("user_percent", "user code, % of elapsed", |of| of_elapsed(of, PartGroup::User)),
    ("kernel_percent", "kernel, % of elapsed", |of| of_elapsed(of, PartGroup::Kernel)),
    ("interrupt_percent", "hard interrupts, % of elapsed", |of| of_elapsed(of, PartGroup::Interrupt)),
    ("softirq_percent", "softirqs, % of elapsed", |of| of_elapsed(of, PartGroup::Softirq)),
    ("idle_percent", "idle, % of elapsed", |of| of_elapsed(of, PartGroup::Idle)),
    ("lock_percent", "waiting for locks, % of busy", |of| of.functions.then_some(of.locks.percent_busy)),
    ("kernel_path_length", "kernel instructions per operation", |of| {
        of.figure("instructions", "kernel")?.per_operation
    }),
    ("user_path_length", "user instructions per operation", |of| {
        of.figure("instructions", "user")?.per_operation
    }),
    ("kernel_cpi", "kernel CPI (model)", |of| cpi(of, "kernel")),
    ("user_cpi", "user CPI (model)", |of| cpi(of, "user")),
    ("kernel_l1i_misses", "kernel L1I misses per 1,000 instructions (model)", |of| {
        Some(of.figure("l1i_misses", "kernel")?.per_thousand)
    }),
    ("kernel_itlb_misses", "kernel iTLB misses per 1,000 instructions (model)", |of| {
        Some(of.figure("itlb_misses", "kernel")?.per_thousand)
    }),
    ("syscalls", "system calls a second", |of| a_second(of, of.syscalls.count())),
    ("switches", "context switches a second", |of| a_second(of, of.entries.then_some(of.switches.all.count))),
    ("interrupts", "interrupts a second", |of| a_second(of, of.interrupts())),
    ("page_faults", "page faults a second", |of| item(of, "page_faults")),
    ("bios", "block I/Os a second", |of| item(of, "bios")),
    ("io_bytes", "mean bytes of a request to a block device", |of| of.disk.as_ref()?.all.bytes.mean()),
    ("io_sequential", "sequential reads and writes of block devices, %", |of| {
        of.disk.as_ref()?.all.percent_sequential()
    }),
    ("io_depth", "mean queue depth of block devices", |of| of.disk.as_ref()?.all.depths.mean()),
    ("io_time", "mean time of a request to a block device, ns", |of| of.disk.as_ref()?.all.times.mean()),
    ("packets_received", "packets received a second", |of| item(of, "packets_received")),
    ("packet_bytes", "mean bytes of a packet received", |of| {
        of.network.as_ref()?.all.iter().find(|row| row.direction == "received")?.bytes.mean()
    }),
    ("touched_bytes", "bytes of the lines that are touched", |of| {
        of.memory.bytes().map(|bytes| bytes as f64)
    }),
    ("huge_percent", "accesses to user memory in huge pages, %", |of| of.memory.percent_huge()),
    ("wakeups", "wake-ups a second", |of| item(of, "wakeups")),
    ("forks", "processes and threads made a second", |of| item(of, "forks")),
    ("syscalls_per_operation", "system calls per operation", |of| {
        Some(of.syscalls.count()? as f64 / of.operations? as f64)
    }),
    ("switches_per_operation", "context switches per operation", |of| {
        of.switches.all.per_operation.filter(|_| of.entries)
    }),
];

/// Similarity: its title and getter.
type SimilarityFigure = (&'static str, fn(&Similarity) -> Option<f64>);

const SIMILARITY_FIGURES: [SimilarityFigure; 4] = [
    ("similarity by kernel function, %", |of| of.functions),
    ("similarity by system call, %", |of| of.syscalls),
    ("similarity by part of the kernel, %", |of| of.subsystems),
    ("similarity by user, kernel, interrupt, softirq, idle, %", |of| of.split),
];

fn of_elapsed(of: &WorkloadCharacter, group: PartGroup) -> Option<f64> {
    let known = of.entries || group == PartGroup::Idle;
    (known && of.elapsed_ns > 0).then(|| 100.0 * of.group_ns(group) as f64 / of.elapsed_ns as f64)
}

fn cpi(of: &WorkloadCharacter, mode: &str) -> Option<f64> {
    of.cycles.iter().find(|row| row.mode == mode).map(|row| row.per_instruction)
}

fn a_second(of: &WorkloadCharacter, count: Option<u64>) -> Option<f64> {
    count.filter(|_| of.passed_ns > 0).map(|count| count as f64 * 1e9 / of.passed_ns as f64)
}

fn item(of: &WorkloadCharacter, item: &str) -> Option<f64> {
    of.item(item)?.per_second
}

/// Column of the comparison: the profile itself, or one beside it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ComparedProfile {
    pub profile: String,
    /// Name of the built-in reference; `None` for a profile of the work directory.
    pub reference: Option<String>,
    pub region: Option<String>,
    pub workload: String,
    pub kernel: String,
    pub recorded: String,
    pub basis: FigureBasis,
    /// Main figures; `None` where the profile lacks one.
    pub figures: BTreeMap<String, Option<f64>>,
    /// Similarity to the first column.
    pub similarity: Similarity,
}

impl ComparedProfile {
    pub fn new(of: &WorkloadCharacter, similarity: Similarity) -> Self {
        Self {
            profile: of.profile.clone(),
            reference: None,
            region: of.region.clone(),
            workload: of.workload.clone(),
            kernel: of.kernel.label.clone(),
            recorded: of.recorded.clone(),
            basis: of.basis,
            figures: MAIN_FIGURES.iter().map(|(name, _, get)| ((*name).to_owned(), get(of))).collect(),
            similarity,
        }
    }

    fn head(&self) -> String {
        let id: String = match self.reference {
            Some(_) => "reference".into(),
            None => self.profile.chars().take(8).collect(),
        };
        let region = self.region.as_ref().map_or(String::new(), |region| format!("\n{region}"));
        let name = self.reference.as_ref().unwrap_or(&self.workload);
        format!("{}{region}\n{id}", printable(name))
    }
}

/// Renders the columns as a table; `None` without profiles to compare with.
pub(crate) fn section(columns: &[ComparedProfile]) -> Option<PageSection> {
    if columns.len() < 2 {
        return None;
    }
    let main = MAIN_FIGURES.iter().map(|(name, title, _)| {
        let value = |column: &ComparedProfile| Some(figure(column.figures.get(*name).copied()??));
        (*title, columns.iter().map(value).collect::<Vec<_>>())
    });
    let similarities = SIMILARITY_FIGURES.iter().map(|(title, get)| {
        let value = |column: &ComparedProfile| Some(fixed(get(&column.similarity)?, 1));
        (*title, columns.iter().map(value).collect())
    });
    let main = main.filter(|(_, values)| values.iter().any(Option::is_some));
    let mut declared = Columns::<(&str, Vec<Option<String>>)>::new();
    for (at, column) in columns.iter().enumerate() {
        declared.text_only(column.head(), move |row| row.1[at].clone()).right().null("-");
    }
    declared.text_only("figure", |row| row.0.to_owned());
    let mut section = PageSection::new("beside", "Beside each other");
    section.about.push(
        "Similarity: how much of the time goes the same way as in the first profile; 100 is all of it."
            .into(),
    );
    section.table = Some(Table::text_only(main.chain(similarities), declared).into());
    Some(section)
}
