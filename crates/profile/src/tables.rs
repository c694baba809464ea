//! The tables of a profile, each declared once: the row, its columns, its file.

use crate::parquet_file::{self, Cell, ColumnType, Columns, Stored};
use crate::parquet_guard;
use crate::{
    Address, EdgeKind, FunctionIndex, How, Instructions, ModelEvent, Nanoseconds, PathKind, SwitchKind,
    ThreadKind,
};
use bytes::Bytes;
use parquet::errors::ParquetError;

/// A table's name and columns, as in `docs/profile.md`.
#[derive(Debug, Clone, Copy)]
pub struct TableSchema {
    /// Name of the table; its file is `<name>.parquet`.
    pub name: &'static str,
    /// Names and types of the columns, in order.
    pub columns: &'static [(&'static str, ColumnType)],
}

/// Tables that have a file only if they have rows: few profiles do.
const RARE: &[&str] = &[
    "model_events",
    "cpus",
    "cpu_front_ends",
    "cpu_model_events",
    "cpu_interrupts",
    "signals",
    "migrations",
    "delays",
    "locks",
    "data_accesses",
    "data_paths",
    "data_places",
    "shared_lines",
    "io_requests",
    "packets",
    "distributions",
    "page_accesses",
    "footprints",
    "data_tlbs",
];

/// Whether a profile may lack the file of this table.
pub(crate) fn is_rare(table: &str) -> bool {
    RARE.contains(&table)
}

/// A table as the bytes of its file.
pub(crate) struct EncodedTable {
    pub name: &'static str,
    pub rows: u64,
    pub bytes: Vec<u8>,
}

/// Declares the rows, [`Tables`], [`SCHEMA`] and both directions of the store from one list.
macro_rules! tables {
    ($(
        $(#[$doc:meta])*
        $table:ident: $Row:ident { $($(#[$column_doc:meta])* $column:ident: $type:ty,)* }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Eq)]
            pub struct $Row {
                $($(#[$column_doc])* pub $column: $type,)*
            }
        )*

        /// Everything that a profile counted. `docs/profile.md` describes each column.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Tables {
            $($(#[$doc])* pub $table: Vec<$Row>,)*
        }

        /// All tables with their columns.
        pub const SCHEMA: &[TableSchema] = &[$(
            TableSchema {
                name: stringify!($table),
                columns: &[$((stringify!($column), <<$type as Cell>::Stored as Stored>::TYPE),)*],
            },
        )*];

        impl Tables {
            /// Each table as a file, in the order of [`SCHEMA`], but for rare ones without rows.
            pub(crate) fn encode(
                &self,
                mut each: impl FnMut(EncodedTable) -> crate::Result<()>,
            ) -> crate::Result<()> {
                let mut schemas = SCHEMA.iter();
                $(
                    let Some(schema) = schemas.next() else { return Ok(()) };
                    if !(self.$table.is_empty() && is_rare(schema.name)) {
                    let bytes = parquet_file::encode(schema.name, schema.columns, |writer| {
                        $(writer.column::<$type>(self.$table.iter().map(|row| row.$column.store()))?;)*
                        Ok(())
                    })
                    .map_err(|source| crate::Error::Encode { table: schema.name, source })?;
                    each(EncodedTable { name: schema.name, rows: self.$table.len() as u64, bytes })?;
                    }
                )*
                Ok(())
            }

            /// Reads every table from the bytes that `file` has for its name; one that it has none for is empty.
            pub(crate) fn decode(
                mut file: impl FnMut(&'static str) -> crate::Result<Option<Bytes>>,
                damaged: impl Fn(&'static str, ParquetError) -> crate::Error,
            ) -> crate::Result<Self> {
                let mut tables = Self::default();
                $(if let (name, Some(bytes)) = (stringify!($table), file(stringify!($table))?) {
                    let read = || {
                        let columns = Columns::open(bytes)?;
                        $(let mut $column = columns.column::<$type>(stringify!($column))?;)*
                        let rows = (0..columns.rows())
                            .map_while(|_| Some($Row { $($column: $column.next()?,)* }))
                            .collect();
                        Ok(rows)
                    };
                    tables.$table = parquet_guard::contained(read).map_err(|source| damaged(name, source))?;
                })*
                Ok(tables)
            }
        }
    };
}

tables! {
    /// What a function did in a region. A call counts in the region in which it was made, its end in the one
    /// in which it ended, net time in the innermost region in which it passed; the sum over all regions is
    /// the whole profile.
    functions: FunctionStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Row of [`Tables::symbols`].
        function: FunctionIndex,
        /// Calls that were made here.
        calls: u64,
        /// Calls that ended here, wherever they were made. Some calls never end.
        ended: u64,
        /// Time in the function itself, without its callees, in all calls.
        net_ns: Nanoseconds,
        /// Time in the function itself in the calls that ended here, from entry to exit.
        ended_net_ns: Nanoseconds,
        /// Time between entry and exit of the calls that ended here, with callees; once per level of recursion.
        elapsed_ns: Nanoseconds,
        /// Greatest net time of one call that ended here; 0 without any.
        max_ns: Nanoseconds,
        /// Least net time of one call that ended here; 0 without any.
        min_ns: Nanoseconds,
        /// Greatest elapsed time of one call that ended here: the slowest; 0 without any.
        slowest_ns: Nanoseconds,
        /// Virtual time at which the slowest call began, the first of several.
        slowest_at_ns: Nanoseconds,
    }

    /// A function of the kernel or of a traced user binary. Row `i` has `function == i`.
    symbols: Symbol {
        /// Its own row number.
        function: FunctionIndex,
        /// Name in the symbol table; several functions may share one.
        name: String,
        /// First instruction; 0 if unknown.
        address: Address,
        /// Bytes; 0 if unknown.
        size: u64,
        /// Source file, where known: a path from the top of the source tree, or its name alone.
        file: Option<String>,
        /// User binary that the function is in; `None` for the kernel.
        module: Option<String>,
    }

    /// Who called whom in a region, and how: a row for each arc over which a call was made, ended, or was open
    /// while it or its callees ran.
    arcs: CallArc {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Row of [`Tables::symbols`], or [`FunctionIndex::NONE`] for what nothing called.
        caller: FunctionIndex,
        /// Row of [`Tables::symbols`].
        callee: FunctionIndex,
        /// How the callee came to run.
        how: How,
        /// Such calls that were made here.
        calls: u64,
        /// Such calls that ended here, wherever they were made.
        ended: u64,
        /// Elapsed time of the callee in the calls that ended here.
        elapsed_ns: Nanoseconds,
    }

    /// Whose time it was in a region. The sum over all rows of a region is its own busy time.
    threads: ThreadStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Number of the thread in the recording; the same in all regions.
        thread: u32,
        /// Thread, all interrupts together, or an idle task.
        kind: ThreadKind,
        /// Thread id (the kernel's `pid`).
        pid: u32,
        /// Process id (the kernel's `tgid`).
        tgid: u32,
        /// Its name when it last ran.
        comm: String,
        /// Time on the CPU, in the kernel and in user mode, without interrupts.
        net_ns: Nanoseconds,
        /// User mode's part of it.
        user_ns: Nanoseconds,
        /// How often the CPU was given to it.
        switches_in: u64,
    }

    /// A stretch between a begin and an end mark. Times and counters include the regions within
    /// it, except for `user_ns` and `unattributed_ns`, which like the rows of the other tables
    /// belong to the innermost region.
    regions: RegionStats {
        /// Its own row number, in order of their beginning.
        region: u32,
        /// Name that the mark gave; may occur more than once.
        name: String,
        /// When it began.
        begin_ns: Nanoseconds,
        /// From begin to end.
        elapsed_ns: Nanoseconds,
        /// `elapsed_ns - idle_ns`.
        busy_ns: Nanoseconds,
        /// The CPU was halted.
        idle_ns: Nanoseconds,
        /// User mode, outside regions within this one.
        user_ns: Nanoseconds,
        /// Kernel code with no known function open, outside regions within this one.
        unattributed_ns: Nanoseconds,
        /// Operations done.
        operations: u64,
        /// Number of regions open around it.
        depth: u32,
        /// Instructions in the kernel.
        kernel_instructions: Instructions,
        /// Instructions in user mode.
        user_instructions: Instructions,
        /// Branches taken in the kernel.
        kernel_taken_branches: u64,
        /// Branches taken in user mode.
        user_taken_branches: u64,
        /// Model: misses of the first-level instruction cache in the kernel.
        kernel_l1i_misses: u64,
        /// The same in user mode.
        user_l1i_misses: u64,
        /// Model: misses of the first-level instruction TLB in the kernel.
        kernel_itlb_misses: u64,
        /// The same in user mode.
        user_itlb_misses: u64,
    }

    /// What a front-end model with a second-level cache or a branch predictor counted there: a row for each region and
    /// each kind of event that the model can have. Counters include the regions within.
    model_events: ModelEventStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// What kind of event.
        event: ModelEvent,
        /// Of kernel code.
        kernel: u64,
        /// Of user code.
        user: u64,
    }

    /// Taken branches of the kernel, of all regions together.
    edges: Edge {
        /// The branch instruction.
        source: Address,
        /// The instruction executed next.
        target: Address,
        /// How often.
        count: u64,
        /// What kind of branch.
        kind: EdgeKind,
    }

    /// Straight runs of the kernel's instructions, of all regions together.
    blocks: Block {
        /// First instruction.
        start: Address,
        /// Last instruction.
        last: Address,
        /// How often it ran from first to last.
        count: u64,
        /// Instructions in it.
        instructions: Instructions,
        /// Bytes from the first instruction to the end of the last.
        bytes: u64,
    }

    /// How the elapsed time of calls that ended is spread: a log-scaled histogram for each arc.
    histograms: HistogramBucket {
        /// Row of [`Tables::regions`] in which the calls ended.
        region: u32,
        /// Row of [`Tables::symbols`], or [`FunctionIndex::NONE`] for what nothing called.
        caller: FunctionIndex,
        /// Row of [`Tables::symbols`]: whose calls these are.
        function: FunctionIndex,
        /// Bucket of the elapsed time, see [`crate::bucket_of`].
        bucket: u32,
        /// Calls in it.
        count: u64,
        /// Virtual time at which the first of them began.
        example_ns: Nanoseconds,
    }

    /// The tree of call paths: a row for each way in which a function was reached. Net times of
    /// a region's rows sum to its own busy time; a path's elapsed time is the sum over its subtree.
    /// Parents come before children.
    paths: PathNode {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Its own row number.
        path: u32,
        /// Row of this table, or [`PathNode::ROOT`].
        parent: u32,
        /// What the row stands for.
        kind: PathKind,
        /// Name of the thread for [`PathKind::Thread`], else empty.
        comm: String,
        /// Row of [`Tables::symbols`] for [`PathKind::Function`], else [`FunctionIndex::NONE`].
        function: FunctionIndex,
        /// How the function came to run; `call` for the other kinds.
        how: How,
        /// Calls that were made here.
        calls: u64,
        /// Time at this path itself.
        net_ns: Nanoseconds,
        /// Branches taken meanwhile; 0 where the trace has no weights.
        taken_branches: u64,
        /// Model: misses of the first-level instruction cache.
        l1i_misses: u64,
        /// Model: misses of the first-level instruction TLB.
        itlb_misses: u64,
    }

    /// Why the CPU was given to another thread, and how often.
    switches: SwitchStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Name of the thread that had it.
        from: String,
        /// Name of the thread that got it.
        to: String,
        /// The function that called the scheduler: the topmost open one outside of it, or
        /// [`FunctionIndex::NONE`].
        reason: FunctionIndex,
        /// Whether it was taken (preemption on the way out of an interrupt or system call) or given
        /// up.
        kind: SwitchKind,
        /// How often.
        count: u64,
    }

    /// Stretches in which the CPU was halted, by length and by what ended them.
    idles: IdleStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// The interrupt's function that woke the CPU, or [`FunctionIndex::NONE`].
        waker: FunctionIndex,
        /// Bucket of the length, see [`crate::bucket_of`].
        bucket: u32,
        /// How many.
        count: u64,
        /// Their time.
        idle_ns: Nanoseconds,
    }

    /// What each of several CPUs did in a region, those within it included. What is left of the region's time it was
    /// another CPU's turn.
    cpus: CpuStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// The CPU's number.
        cpu: u32,
        /// Instructions in the kernel.
        kernel_instructions: Instructions,
        /// Instructions in user mode.
        user_instructions: Instructions,
        /// Time that it executed, as the trace has it; 0 where functions were not recorded.
        busy_ns: Nanoseconds,
        /// Time in which it was halted.
        halted_ns: Nanoseconds,
        /// Interrupts.
        interrupts: u64,
        /// How often another thread got it.
        switches: u64,
    }

    /// What the front end of each of several CPUs did in a region, those within it included: its part of the same columns
    /// of [`Tables::regions`]. Only where a front-end model counted.
    cpu_front_ends: CpuFrontEndStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// The CPU's number.
        cpu: u32,
        /// Branches taken in kernel code.
        kernel_taken_branches: u64,
        /// Branches taken in user code.
        user_taken_branches: u64,
        /// Model: misses of the L1I by kernel code.
        kernel_l1i_misses: u64,
        /// Model: misses of the L1I by user code.
        user_l1i_misses: u64,
        /// Model: misses of the iTLB by kernel code.
        kernel_itlb_misses: u64,
        /// Model: misses of the iTLB by user code.
        user_itlb_misses: u64,
    }

    /// The part of each of several CPUs of [`Tables::model_events`].
    cpu_model_events: CpuModelEventStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// The CPU's number.
        cpu: u32,
        /// What kind of event.
        event: ModelEvent,
        /// Of kernel code.
        kernel: u64,
        /// Of user code.
        user: u64,
    }

    /// Interrupts of each of several CPUs.
    cpu_interrupts: CpuInterruptStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// The CPU's number.
        cpu: u32,
        /// Row of [`Tables::symbols`]: the interrupt's first function.
        function: FunctionIndex,
        /// How often.
        count: u64,
    }

    /// Interrupts that CPUs send each other.
    signals: SignalStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// The CPU that sends.
        from_cpu: u32,
        /// The CPU that is interrupted.
        to_cpu: u32,
        /// The function that sends, which says what kind it is; or [`FunctionIndex::NONE`].
        function: FunctionIndex,
        /// The function on whose behalf: the topmost open one that is not of the scheduler or the like, or
        /// [`FunctionIndex::NONE`].
        reason: FunctionIndex,
        /// How often.
        count: u64,
    }

    /// Threads that go on on another CPU.
    migrations: MigrationStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Name of the thread.
        comm: String,
        /// The CPU that it ran on.
        from_cpu: u32,
        /// The CPU that it is to run on.
        to_cpu: u32,
        /// The function that moves it, or [`FunctionIndex::NONE`].
        reason: FunctionIndex,
        /// How often.
        count: u64,
    }

    /// How long threads that could run waited for a CPU.
    delays: DelayStats {
        /// Row of [`Tables::regions`] in which the thread got one.
        region: u32,
        /// Name of the thread.
        comm: String,
        /// Name of the thread that woke it up, `[interrupt]`, or nothing if a CPU had been taken from it.
        waker: String,
        /// Bucket of the time, see [`crate::bucket_of`].
        bucket: u32,
        /// How often.
        count: u64,
        /// That time in all.
        delay_ns: Nanoseconds,
        /// The longest.
        max_ns: Nanoseconds,
    }

    /// Locks that had to be waited for.
    locks: LockStats {
        /// Row of [`Tables::regions`] in which the wait ended.
        region: u32,
        /// The function that waits, which says what kind of lock it is.
        function: FunctionIndex,
        /// Where the lock is in memory.
        address: Address,
        /// The variable that it is or is in, with the offset; nothing where it is not in one of the kernel's.
        name: String,
        /// The function on whose behalf: the topmost open one that is not one of locking, or [`FunctionIndex::NONE`].
        caller: FunctionIndex,
        /// How often.
        count: u64,
        /// Time from when the function began to when it ended, whoever ran meanwhile.
        wait_ns: Nanoseconds,
        /// The longest.
        max_ns: Nanoseconds,
    }

    /// Accesses to data, and what of it a model's caches missed.
    data_accesses: DataAccesses {
        /// Row of [`Tables::regions`], without the regions in it.
        region: u32,
        /// Of which code: `kernel` or `user`.
        mode: String,
        /// Reads.
        loads: u64,
        /// Writes.
        stores: u64,
        /// Lines that were not in the L1D.
        l1d_misses: u64,
        /// Of these, those that were to be written.
        l1d_store_misses: u64,
        /// Lines that the L2 did not have either.
        l2_misses: u64,
        /// Lines that no cache had.
        l3_misses: u64,
        /// Lines that had to come from another CPU's cache, which had written them.
        transfers: u64,
        /// Translations that were not in the first-level data TLB.
        dtlb_misses: u64,
        /// Translations that no TLB had.
        walks: u64,
    }

    /// Where code was that missed data.
    data_paths: DataPath {
        /// Row of [`Tables::regions`], without the regions in it.
        region: u32,
        /// Names of the open functions, outermost first, with `;` between them; nothing if none was open.
        path: String,
        /// Lines that were not in the L1D.
        l1d_misses: u64,
        /// Of these, those that were to be written.
        l1d_store_misses: u64,
        /// Lines that the L2 did not have either.
        l2_misses: u64,
        /// Lines that no cache had.
        l3_misses: u64,
        /// Lines that had to come from another CPU's cache, which had written them.
        transfers: u64,
        /// Translations that were not in the first-level data TLB.
        dtlb_misses: u64,
        /// Translations that no TLB had.
        walks: u64,
    }

    /// Data that was missed, and by which function.
    data_places: DataPlace {
        /// Row of [`Tables::regions`], without the regions in it.
        region: u32,
        /// The kernel's function whose instructions missed it, or [`FunctionIndex::NONE`] for user code.
        function: FunctionIndex,
        /// What kind of memory it is in: `variable`, `per-CPU`, `slab`, `page struct`, `stack`, `memory`, `mapped`, `user`, `other`.
        kind: String,
        /// The variable or the slab cache; nothing of what is neither.
        object: String,
        /// Its type as the kernel's debug information has it, `struct tcp_sock`; nothing if that is not known.
        type_name: String,
        /// The member, or the offset (`+0x18`) where the type is not known.
        field: String,
        /// Lines that were not in the L1D.
        l1d_misses: u64,
        /// Of these, those that were to be written.
        l1d_store_misses: u64,
        /// Lines that the L2 did not have either.
        l2_misses: u64,
        /// Lines that no cache had.
        l3_misses: u64,
        /// Lines that had to come from another CPU's cache, which had written them.
        transfers: u64,
        /// Translations that were not in the first-level data TLB.
        dtlb_misses: u64,
        /// Translations that no TLB had.
        walks: u64,
    }

    /// Lines that went from one CPU's cache to another's, by what each CPU did to which of their bytes.
    shared_lines: SharedLine {
        /// Row of [`Tables::regions`], without the regions in it.
        region: u32,
        /// The line's address in physical memory.
        line: Address,
        /// The first of 4 bytes, counted from the beginning of the line.
        at: u32,
        /// Which CPU.
        cpu: u32,
        /// As in [`Tables::data_places`].
        kind: String,
        /// The variable or the slab cache.
        object: String,
        /// Its type.
        type_name: String,
        /// The member or the offset.
        field: String,
        /// Reads of any of these bytes from the first transfer on.
        loads: u64,
        /// Writes, likewise.
        stores: u64,
        /// How often an access here made the line come from another CPU's cache.
        transfers: u64,
    }

    /// Accesses to data by the size of the page that they go to.
    page_accesses: PageAccesses {
        /// Row of [`Tables::regions`], without the regions in it.
        region: u32,
        /// Of which memory, whoever accesses it: `kernel` or `user`.
        memory: String,
        /// Bytes of a page: 4 KiB, 2 MiB or 1 GiB.
        page_bytes: u64,
        /// Reads.
        loads: u64,
        /// Writes.
        stores: u64,
    }

    /// Memory that was touched. Of one recording: what several touch together cannot be told of their sums.
    footprints: Footprint {
        /// In all regions of this name and those within them; nothing for all regions.
        name: String,
        /// As in [`Tables::page_accesses`].
        memory: String,
        /// Bytes of a page.
        page_bytes: u64,
        /// Pages by virtual address; one that two processes map is two.
        pages: u64,
        /// Lines in them.
        lines: u64,
        /// Bytes of a line.
        line_bytes: u64,
    }

    /// Data TLBs of the model.
    data_tlbs: DataTlb {
        /// `dtlb`, `dtlb_large` or `stlb`.
        tlb: String,
        /// Bytes of a page that it holds translations of; one that holds several sizes has several rows.
        page_bytes: u64,
        /// Translations that it holds.
        entries: u64,
    }

    /// Requests to block devices, by what they ask for.
    io_requests: IoRequests {
        /// Row of [`Tables::regions`] in which they were issued, without the regions in it.
        region: u32,
        /// The device, `vda`; nothing of a queue without a disk.
        device: String,
        /// `read`, `write`, `flush`, `discard`, `write zeroes`, `other`.
        operation: String,
        /// Requests that the driver was given.
        requests: u64,
        /// Of these, how often the driver gave one back and was given it again.
        again: u64,
        /// Of these, which completed in this region.
        completed: u64,
        /// Of these, which completed later, in another region or in none.
        completed_later: u64,
        /// Of these, of which no completion was seen.
        unfinished: u64,
        /// Requests that completed in this region and were issued before it or in another one; not among `requests`.
        issued_before: u64,
        /// Reads and writes that begin where the device's last one, of either kind, ended.
        sequential: u64,
    }

    /// Network packets.
    packets: PacketStats {
        /// Row of [`Tables::regions`], without the regions in it.
        region: u32,
        /// The device, `lo`; nothing of a packet without one.
        device: String,
        /// `sent` or `received`.
        direction: String,
        /// How many.
        packets: u64,
        /// Their bytes as the kernel holds them: with the link's header where they are sent, without where they are received.
        bytes: u64,
    }

    /// How often a figure of requests or packets had each value.
    distributions: Distribution {
        /// Row of [`Tables::regions`], without the regions in it.
        region: u32,
        /// `request` or `packet`.
        subject: String,
        /// As in [`Tables::io_requests`] or [`Tables::packets`].
        device: String,
        /// The operation, or the direction.
        operation: String,
        /// `bytes`; of requests also `seek` (bytes from where the device's last read or write ended, if it is not sequential),
        /// `depth` (requests of the device under way at issue, itself included) and `time_ns` (from issue to completion).
        figure: String,
        /// The value.
        value: u64,
        /// How often.
        count: u64,
    }

    /// Inline points that were passed.
    points: PointStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// The point as it was asked for: `symbol+offset` or `file.c:line`.
        point: String,
        /// Row of [`Tables::symbols`]: the function that it is in.
        function: FunctionIndex,
        /// How often.
        count: u64,
    }
}

impl PathNode {
    /// [`PathNode::parent`] of a row that has none.
    pub const ROOT: u32 = u32::MAX;
}

impl Tables {
    /// A function's name; `[unknown]` for one that has no symbol.
    pub fn name(&self, function: FunctionIndex) -> &str {
        self.symbols.get(function.0 as usize).map_or("[unknown]", |symbol| &symbol.name)
    }

    /// What is wrong between the tables: the first row that refers to nothing.
    pub(crate) fn broken_reference(&self) -> Option<(&'static str, String)> {
        let symbols = self.symbols.len();
        let regions = self.regions.len();
        let no_function = |f: FunctionIndex| f.0 as usize >= symbols;
        let no_region = |r: u32| r as usize >= regions;
        if let Some(i) = (0..symbols).find(|&i| self.symbols[i].function.0 as usize != i) {
            return Some(("symbols", format!("row {i} is not function {i}")));
        }
        if let Some(i) = (0..regions).find(|&i| self.regions[i].region as usize != i) {
            return Some(("regions", format!("row {i} is not region {i}")));
        }
        if let Some(row) = self.functions.iter().find(|r| no_function(r.function) || no_region(r.region)) {
            return Some(("functions", format!("{row:?} refers to nothing")));
        }
        let stray = |arc: &&CallArc| {
            no_function(arc.callee) || arc.caller.known().is_some_and(no_function) || no_region(arc.region)
        };
        if let Some(row) = self.arcs.iter().find(stray) {
            return Some(("arcs", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.threads.iter().find(|r| no_region(r.region)) {
            return Some(("threads", format!("{row:?} refers to nothing")));
        }
        let no_caller = |f: FunctionIndex| f.known().is_some_and(no_function);
        let bad =
            |r: &&HistogramBucket| no_function(r.function) || no_caller(r.caller) || no_region(r.region);
        if let Some(row) = self.histograms.iter().find(bad) {
            return Some(("histograms", format!("{row:?} refers to nothing")));
        }
        let orphan = |(at, r): &(usize, &PathNode)| {
            let parent = r.parent != PathNode::ROOT && r.parent as usize >= *at;
            r.path as usize != *at || parent || no_caller(r.function) || no_region(r.region)
        };
        if let Some((_, row)) = self.paths.iter().enumerate().find(orphan) {
            return Some(("paths", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.model_events.iter().find(|r| no_region(r.region)) {
            return Some(("model_events", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.switches.iter().find(|r| no_caller(r.reason) || no_region(r.region)) {
            return Some(("switches", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.idles.iter().find(|r| no_caller(r.waker) || no_region(r.region)) {
            return Some(("idles", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.cpus.iter().find(|r| no_region(r.region)) {
            return Some(("cpus", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.cpu_front_ends.iter().find(|r| no_region(r.region)) {
            return Some(("cpu_front_ends", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.cpu_model_events.iter().find(|r| no_region(r.region)) {
            return Some(("cpu_model_events", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.cpu_interrupts.iter().find(|r| no_function(r.function) || no_region(r.region))
        {
            return Some(("cpu_interrupts", format!("{row:?} refers to nothing")));
        }
        let bad = |r: &&SignalStats| no_caller(r.function) || no_caller(r.reason) || no_region(r.region);
        if let Some(row) = self.signals.iter().find(bad) {
            return Some(("signals", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.migrations.iter().find(|r| no_caller(r.reason) || no_region(r.region)) {
            return Some(("migrations", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.delays.iter().find(|r| no_region(r.region)) {
            return Some(("delays", format!("{row:?} refers to nothing")));
        }
        let bad = |r: &&LockStats| no_function(r.function) || no_caller(r.caller) || no_region(r.region);
        if let Some(row) = self.locks.iter().find(bad) {
            return Some(("locks", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.data_accesses.iter().find(|r| no_region(r.region)) {
            return Some(("data_accesses", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.data_paths.iter().find(|r| no_region(r.region)) {
            return Some(("data_paths", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.data_places.iter().find(|r| no_caller(r.function) || no_region(r.region)) {
            return Some(("data_places", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.shared_lines.iter().find(|r| no_region(r.region)) {
            return Some(("shared_lines", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.page_accesses.iter().find(|r| no_region(r.region)) {
            return Some(("page_accesses", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.io_requests.iter().find(|r| no_region(r.region)) {
            return Some(("io_requests", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.packets.iter().find(|r| no_region(r.region)) {
            return Some(("packets", format!("{row:?} refers to nothing")));
        }
        if let Some(row) = self.distributions.iter().find(|r| no_region(r.region)) {
            return Some(("distributions", format!("{row:?} refers to nothing")));
        }
        let row = self.points.iter().find(|r| no_caller(r.function) || no_region(r.region))?;
        Some(("points", format!("{row:?} refers to nothing")))
    }
}
