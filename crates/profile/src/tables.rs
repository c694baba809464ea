//! Tables of a profile: one declaration gives the row type, its columns and its file.

use crate::parquet_file::{self, ColumnType, ColumnValue, StoredType, TableReader};
use crate::parquet_guard;
use crate::{
    Address, CallKind, EdgeKind, FunctionIndex, Instructions, ModelEvent, PathKind, SwitchKind, ThreadKind,
    Ticks,
};
use bytes::Bytes;
use parquet::errors::ParquetError;

/// Name and columns of a table, as in `docs/profile.md`.
#[derive(Debug, Clone, Copy)]
pub struct TableSchema {
    /// Name of the table; its file is `<name>.parquet`.
    pub name: &'static str,
    /// Names and types of the columns, in order.
    pub columns: &'static [(&'static str, ColumnType)],
}

/// Tables that have a file only if they have rows, because few profiles have any.
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

/// Checks whether a profile may lack the file of this table.
pub(crate) fn is_rare(table: &str) -> bool {
    RARE.contains(&table)
}

pub(crate) struct EncodedTable {
    pub name: &'static str,
    pub rows: u64,
    pub bytes: Vec<u8>,
}

/// Declares the row types, [`Tables`], [`SCHEMA`], and reading and writing of all tables.
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

        /// All tables of a profile. `docs/profile.md` describes each column.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Tables {
            $($(#[$doc])* pub $table: Vec<$Row>,)*
        }

        /// All tables with their columns.
        pub const SCHEMA: &[TableSchema] = &[$(
            TableSchema {
                name: stringify!($table),
                columns: &[$((stringify!($column), <<$type as ColumnValue>::Stored as StoredType>::TYPE),)*],
            },
        )*];

        impl Tables {
            /// Encodes each table as a file, in the order of [`SCHEMA`]; skips rare ones without
            /// rows.
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

            /// Decodes every table from the bytes that `file` returns for its name; a table without
            /// bytes is empty.
            pub(crate) fn decode(
                mut file: impl FnMut(&'static str) -> crate::Result<Option<Bytes>>,
                damaged: impl Fn(&'static str, ParquetError) -> crate::Error,
            ) -> crate::Result<Self> {
                let mut tables = Self::default();
                $(if let (name, Some(bytes)) = (stringify!($table), file(stringify!($table))?) {
                    let read = || {
                        let columns = TableReader::open(bytes)?;
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
    /// Calls and times of a function in a region. A call counts in the region in which it was made,
    /// its end in the region in which it ended, and self time in the innermost region in which it
    /// passed. The sum over all regions is the whole profile.
    functions: FunctionStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Row of [`Tables::symbols`].
        function: FunctionIndex,
        /// Calls made in this region.
        calls: u64,
        /// Calls that ended in this region, wherever they were made. Some calls never end.
        ended: u64,
        /// Self time of all calls.
        self_ticks: Ticks,
        /// Self time of the calls that ended here, from entry to exit.
        ended_self_ticks: Ticks,
        /// Total time, callees included, of the calls that ended here; once for each level of
        /// recursion.
        total_ticks: Ticks,
        /// Greatest self time of one call that ended here; 0 without any.
        max_ticks: Ticks,
        /// Least self time of one call that ended here; 0 without any.
        min_ticks: Ticks,
        /// Greatest total time of one call that ended here; 0 without any.
        slowest_ticks: Ticks,
        /// Virtual time at which the slowest call began, the first of several.
        slowest_at_ticks: Ticks,
    }

    /// Function of the kernel or of a traced user binary. Row `i` has `function == i`.
    symbols: Symbol {
        /// Row number of this row.
        function: FunctionIndex,
        /// Name in the symbol table; several functions may share one.
        name: String,
        /// Address of the first instruction; 0 if unknown.
        address: Address,
        /// Size in bytes; 0 if unknown.
        size: u64,
        /// Source file, where known: a path from the top of the source tree, or its name alone.
        file: Option<String>,
        /// User binary that contains the function; `None` for the kernel.
        module: Option<String>,
    }

    /// Calls from one function to another in a region, by kind of call. A row exists for each arc
    /// over which a call was made, ended, or was open while it or its callees ran.
    arcs: CallArc {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Row of [`Tables::symbols`], or [`FunctionIndex::NONE`] without a caller.
        caller: FunctionIndex,
        /// Row of [`Tables::symbols`].
        callee: FunctionIndex,
        /// Kind of call.
        how: CallKind,
        /// Calls of this kind made here.
        calls: u64,
        /// Calls of this kind that ended here, wherever they were made.
        ended: u64,
        /// Total time of the callee in the calls that ended here.
        total_ticks: Ticks,
    }

    /// Time of a thread in a region. The sum over all rows of a region is its own busy time,
    /// without nested regions.
    threads: ThreadStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Number of the thread in the recording; the same in all regions.
        thread: u32,
        /// Task, all interrupts together, or an idle task.
        kind: ThreadKind,
        /// Thread id (the kernel's `pid`).
        pid: u32,
        /// Process id (the kernel's `tgid`).
        tgid: u32,
        /// Name when the thread last ran.
        comm: String,
        /// Time on the CPU, in the kernel and in user mode, without interrupts.
        self_ticks: Ticks,
        /// Part of `self_ticks` in user mode.
        user_ticks: Ticks,
        /// Number of switches to this thread.
        switches_in: u64,
    }

    /// Part of the run between a begin and an end mark. Times and counters include nested regions,
    /// except for `user_ticks` and `unattributed_ticks`, which like the rows of the other tables
    /// belong to the innermost region.
    regions: RegionStats {
        /// Row number of this row, in order of begin marks.
        region: u32,
        /// Name from the mark; several regions may share one.
        name: String,
        /// Time of the begin mark.
        begin_ticks: Ticks,
        /// Time from begin to end.
        elapsed_ticks: Ticks,
        /// `elapsed_ticks - idle_ticks`.
        busy_ticks: Ticks,
        /// Time in which the CPU was halted.
        idle_ticks: Ticks,
        /// Time in user mode, without nested regions.
        user_ticks: Ticks,
        /// Time in kernel code with an empty call stack, without nested regions.
        unattributed_ticks: Ticks,
        /// Completed operations.
        operations: u64,
        /// Number of open regions around this one.
        depth: u32,
        /// Instructions executed in the kernel.
        kernel_instructions: Instructions,
        /// Instructions executed in user mode.
        user_instructions: Instructions,
        /// Branches taken in the kernel.
        kernel_taken_branches: u64,
        /// Branches taken in user mode.
        user_taken_branches: u64,
        /// Model: misses of the first-level instruction cache in the kernel.
        kernel_l1i_misses: u64,
        /// Model: misses of the first-level instruction cache in user mode.
        user_l1i_misses: u64,
        /// Model: misses of the first-level instruction TLB in the kernel.
        kernel_itlb_misses: u64,
        /// Model: misses of the first-level instruction TLB in user mode.
        user_itlb_misses: u64,
    }

    /// Events of a front-end model with a second-level cache or a branch predictor: a row for each
    /// region and each kind of event that the model can have. Counters include nested regions.
    model_events: ModelEventStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Kind of event.
        event: ModelEvent,
        /// Events of kernel code.
        kernel: u64,
        /// Events of user code.
        user: u64,
    }

    /// Taken branches of the kernel, of all regions together.
    edges: Edge {
        /// Address of the branch instruction.
        source: Address,
        /// Address of the instruction executed next.
        target: Address,
        /// Number of times that the branch was taken.
        count: u64,
        /// Kind of branch instruction.
        kind: EdgeKind,
    }

    /// Straight runs of kernel instructions, of all regions together.
    blocks: Block {
        /// Address of the first instruction.
        start: Address,
        /// Address of the last instruction.
        last: Address,
        /// Number of executions from first to last.
        count: u64,
        /// Number of instructions in the block.
        instructions: Instructions,
        /// Bytes from the first instruction to the end of the last.
        bytes: u64,
    }

    /// Distribution of the total time of calls that ended: a log-scaled histogram for each arc.
    histograms: HistogramBucket {
        /// Row of [`Tables::regions`] in which the calls ended.
        region: u32,
        /// Row of [`Tables::symbols`], or [`FunctionIndex::NONE`] without a caller.
        caller: FunctionIndex,
        /// Row of [`Tables::symbols`] of the called function.
        function: FunctionIndex,
        /// Bucket of the total time, see [`crate::bucket_of`].
        bucket: u32,
        /// Calls in the bucket.
        count: u64,
        /// Virtual time at which the first of these calls began.
        example_ticks: Ticks,
    }

    /// Call tree: a row for each path by which a function was reached. Self times of a region's
    /// rows sum to its own busy time; a path's total time is the sum over its subtree. Parents come
    /// before children.
    paths: PathNode {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Row number of this row.
        path: u32,
        /// Row of this table, or [`PathNode::ROOT`].
        parent: u32,
        /// Kind of node.
        kind: PathKind,
        /// Name of the thread for [`PathKind::Thread`], otherwise empty.
        comm: String,
        /// Row of [`Tables::symbols`] for [`PathKind::Function`], otherwise
        /// [`FunctionIndex::NONE`].
        function: FunctionIndex,
        /// Kind of call; `call` for nodes that are no functions.
        how: CallKind,
        /// Calls made in this region.
        calls: u64,
        /// Time at this path itself, without its children.
        self_ticks: Ticks,
        /// Branches taken at this path; 0 if the trace has no weights.
        taken_branches: u64,
        /// Model: misses of the first-level instruction cache.
        l1i_misses: u64,
        /// Model: misses of the first-level instruction TLB.
        itlb_misses: u64,
    }

    /// Context switches by thread and reason.
    switches: SwitchStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Name of the previous thread.
        from: String,
        /// Name of the next thread.
        to: String,
        /// Function that called the scheduler: the topmost open one outside the scheduler, or
        /// [`FunctionIndex::NONE`].
        reason: FunctionIndex,
        /// Preemption (on the way out of an interrupt or system call) or voluntary switch.
        kind: SwitchKind,
        /// Number of switches.
        count: u64,
    }

    /// Idle periods of the CPU, by length and by the interrupt that ended them.
    idles: IdleStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// First function of the interrupt that woke the CPU, or [`FunctionIndex::NONE`].
        waker: FunctionIndex,
        /// Bucket of the length, see [`crate::bucket_of`].
        bucket: u32,
        /// Number of idle periods.
        count: u64,
        /// Sum of their lengths.
        idle_ticks: Ticks,
    }

    /// Activity of one of several CPUs in a region, nested regions included. In the rest of the
    /// region's time another CPU had its turn.
    cpus: CpuStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Number of the CPU.
        cpu: u32,
        /// Instructions executed in the kernel.
        kernel_instructions: Instructions,
        /// Instructions executed in user mode.
        user_instructions: Instructions,
        /// Time in which the CPU executed, from the trace; 0 if functions were not recorded.
        busy_ticks: Ticks,
        /// Time in which the CPU was halted.
        halted_ticks: Ticks,
        /// Number of interrupts.
        interrupts: u64,
        /// Number of context switches.
        switches: u64,
    }

    /// Front-end counters of one of several CPUs in a region, nested regions included: its part of
    /// the same columns of [`Tables::regions`]. Only filled if a front-end model counted.
    cpu_front_ends: CpuFrontEndStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Number of the CPU.
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

    /// Part of one of several CPUs in [`Tables::model_events`].
    cpu_model_events: CpuModelEventStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Number of the CPU.
        cpu: u32,
        /// Kind of event.
        event: ModelEvent,
        /// Events of kernel code.
        kernel: u64,
        /// Events of user code.
        user: u64,
    }

    /// Interrupts of one of several CPUs.
    cpu_interrupts: CpuInterruptStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Number of the CPU.
        cpu: u32,
        /// Row of [`Tables::symbols`] of the interrupt's first function.
        function: FunctionIndex,
        /// Number of interrupts.
        count: u64,
    }

    /// Interrupts between CPUs (IPIs).
    signals: SignalStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// CPU that sends.
        from_cpu: u32,
        /// CPU that is interrupted.
        to_cpu: u32,
        /// Function that sends, which shows the kind of interrupt; or [`FunctionIndex::NONE`].
        function: FunctionIndex,
        /// Function that caused it: the topmost open one that does not belong to the scheduler or
        /// the like, or [`FunctionIndex::NONE`].
        reason: FunctionIndex,
        /// Number of interrupts.
        count: u64,
    }

    /// Moves of threads from one CPU to another.
    migrations: MigrationStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Name of the thread.
        comm: String,
        /// CPU on which the thread ran.
        from_cpu: u32,
        /// CPU on which the thread will run.
        to_cpu: u32,
        /// Function that moves the thread, or [`FunctionIndex::NONE`].
        reason: FunctionIndex,
        /// Number of moves.
        count: u64,
    }

    /// Time that runnable threads waited for a CPU.
    delays: DelayStats {
        /// Row of [`Tables::regions`] in which the thread got a CPU.
        region: u32,
        /// Name of the thread.
        comm: String,
        /// Name of the thread that woke it, `[interrupt]`, or empty if it had been preempted.
        waker: String,
        /// Bucket of the waiting time, see [`crate::bucket_of`].
        bucket: u32,
        /// Number of waits.
        count: u64,
        /// Sum of the waiting times.
        delay_ticks: Ticks,
        /// Longest waiting time.
        max_ticks: Ticks,
    }

    /// Waits for locks.
    locks: LockStats {
        /// Row of [`Tables::regions`] in which the wait ended.
        region: u32,
        /// Function that waits, which shows the kind of lock.
        function: FunctionIndex,
        /// Address of the lock in memory.
        address: Address,
        /// Variable that is or contains the lock, with the offset; empty if the lock is in no
        /// variable of the kernel.
        name: String,
        /// Function that takes the lock: the topmost open one that is no locking function, or
        /// [`FunctionIndex::NONE`].
        caller: FunctionIndex,
        /// Number of waits.
        count: u64,
        /// Time from begin to end of the waiting function, whoever ran in between.
        wait_ticks: Ticks,
        /// Longest waiting time.
        max_ticks: Ticks,
    }

    /// Accesses to data, and their misses in a model's caches.
    data_accesses: DataAccesses {
        /// Row of [`Tables::regions`], without nested regions.
        region: u32,
        /// Accessing code: `kernel` or `user`.
        mode: String,
        /// Number of reads.
        loads: u64,
        /// Number of writes.
        stores: u64,
        /// Lines that were not in the L1D.
        l1d_misses: u64,
        /// Part of `l1d_misses` that were writes.
        l1d_store_misses: u64,
        /// Lines that were not in the L2 either.
        l2_misses: u64,
        /// Lines that were in no cache.
        l3_misses: u64,
        /// Lines that came from the cache of another CPU, which had written them.
        transfers: u64,
        /// Translations that were not in the first-level data TLB.
        dtlb_misses: u64,
        /// Translations that were in no TLB.
        walks: u64,
    }

    /// Data misses by call path.
    data_paths: DataPath {
        /// Row of [`Tables::regions`], without nested regions.
        region: u32,
        /// Names of the open functions, outermost first, separated by `;`; empty if none was open.
        path: String,
        /// Lines that were not in the L1D.
        l1d_misses: u64,
        /// Part of `l1d_misses` that were writes.
        l1d_store_misses: u64,
        /// Lines that were not in the L2 either.
        l2_misses: u64,
        /// Lines that were in no cache.
        l3_misses: u64,
        /// Lines that came from the cache of another CPU, which had written them.
        transfers: u64,
        /// Translations that were not in the first-level data TLB.
        dtlb_misses: u64,
        /// Translations that were in no TLB.
        walks: u64,
    }

    /// Data misses by object and function.
    data_places: DataPlace {
        /// Row of [`Tables::regions`], without nested regions.
        region: u32,
        /// Kernel function whose instructions missed, or [`FunctionIndex::NONE`] for user code.
        function: FunctionIndex,
        /// Kind of memory: `variable`, `per-CPU`, `slab`, `page struct`, `stack`, `memory`,
        /// `mapped`, `user`, `other`.
        kind: String,
        /// Variable or slab cache; empty for other memory.
        object: String,
        /// Type from the kernel's debug information, for example `struct tcp_sock`; empty if
        /// unknown.
        type_name: String,
        /// Member, or offset (`+0x18`) if the type is unknown.
        field: String,
        /// Lines that were not in the L1D.
        l1d_misses: u64,
        /// Part of `l1d_misses` that were writes.
        l1d_store_misses: u64,
        /// Lines that were not in the L2 either.
        l2_misses: u64,
        /// Lines that were in no cache.
        l3_misses: u64,
        /// Lines that came from the cache of another CPU, which had written them.
        transfers: u64,
        /// Translations that were not in the first-level data TLB.
        dtlb_misses: u64,
        /// Translations that were in no TLB.
        walks: u64,
    }

    /// Accesses of each CPU to lines that moved between the caches of CPUs, for each 4 bytes.
    shared_lines: SharedLine {
        /// Row of [`Tables::regions`], without nested regions.
        region: u32,
        /// Physical address of the line.
        line: Address,
        /// Offset of the 4 bytes in the line.
        at: u32,
        /// Number of the accessing CPU.
        cpu: u32,
        /// Kind of memory, as in [`Tables::data_places`].
        kind: String,
        /// Variable or slab cache; empty for other memory.
        object: String,
        /// Type from the kernel's debug information; empty if unknown.
        type_name: String,
        /// Member or offset.
        field: String,
        /// Reads of any of these bytes from the first transfer on.
        loads: u64,
        /// Writes of any of these bytes from the first transfer on.
        stores: u64,
        /// Number of transfers of the line that accesses to these bytes caused.
        transfers: u64,
    }

    /// Accesses to data, by the size of the page.
    page_accesses: PageAccesses {
        /// Row of [`Tables::regions`], without nested regions.
        region: u32,
        /// Accessed memory, whoever accesses it: `kernel` or `user`.
        memory: String,
        /// Size of a page: 4 KiB, 2 MiB or 1 GiB, in bytes.
        page_bytes: u64,
        /// Number of reads.
        loads: u64,
        /// Number of writes.
        stores: u64,
    }

    /// Amount of touched memory, of one recording only: footprints of several recordings cannot be
    /// added.
    footprints: Footprint {
        /// Name of the regions, with their nested regions; empty for all regions.
        name: String,
        /// Touched memory, as in [`Tables::page_accesses`].
        memory: String,
        /// Size of a page, in bytes.
        page_bytes: u64,
        /// Touched pages by virtual address; a page that two processes map counts twice.
        pages: u64,
        /// Touched lines in these pages.
        lines: u64,
        /// Size of a line, in bytes.
        line_bytes: u64,
    }

    /// Data TLBs of the model.
    data_tlbs: DataTlb {
        /// Name of the TLB: `dtlb`, `dtlb_large` or `stlb`.
        tlb: String,
        /// Size of a page whose translations the TLB holds, in bytes. A TLB of several sizes has
        /// several rows.
        page_bytes: u64,
        /// Number of translations that the TLB holds.
        entries: u64,
    }

    /// Requests to block devices, by operation.
    io_requests: IoRequests {
        /// Row of [`Tables::regions`] in which the requests were issued, without nested regions.
        region: u32,
        /// Name of the device, for example `vda`; empty for a queue without a disk.
        device: String,
        /// Requested operation: `read`, `write`, `flush`, `discard`, `write zeroes`, `other`.
        operation: String,
        /// Requests handed to the driver.
        requests: u64,
        /// Number of times that the driver returned one of these requests and got it again.
        again: u64,
        /// Requests of these that completed in this region.
        completed: u64,
        /// Requests of these that completed later, in another region or outside of regions.
        completed_later: u64,
        /// Requests of these without a recorded completion.
        unfinished: u64,
        /// Requests that completed in this region and were issued before it or in another one; not
        /// part of `requests`.
        issued_before: u64,
        /// Reads and writes that begin where the device's last read or write ended.
        sequential: u64,
    }

    /// Network packets.
    packets: PacketStats {
        /// Row of [`Tables::regions`], without nested regions.
        region: u32,
        /// Name of the device, for example `lo`; empty for a packet without one.
        device: String,
        /// Direction: `sent` or `received`.
        direction: String,
        /// Number of packets.
        packets: u64,
        /// Size of the packets as the kernel holds them, in bytes: with the link header if sent,
        /// without if received.
        bytes: u64,
    }

    /// Distribution of a figure of requests or packets: number of occurrences of each value.
    distributions: Distribution {
        /// Row of [`Tables::regions`], without nested regions.
        region: u32,
        /// Counted objects: `request` or `packet`.
        subject: String,
        /// Name of the device, as in [`Tables::io_requests`] or [`Tables::packets`].
        device: String,
        /// Operation of the requests, or direction of the packets.
        operation: String,
        /// Measured figure. `bytes` for requests and packets. For requests also `seek` (bytes from
        /// the end of the device's last read or write, if not sequential), `depth` (open requests
        /// of the device at issue, this one included) and `time_ns` (from issue to completion).
        figure: String,
        /// Value of the figure.
        value: u64,
        /// Number of requests or packets with this value.
        count: u64,
    }

    /// Executions of inline points.
    points: PointStats {
        /// Row of [`Tables::regions`].
        region: u32,
        /// Point as the user named it: `symbol+offset` or `file.c:line`.
        point: String,
        /// Row of [`Tables::symbols`] of the function that contains the point.
        function: FunctionIndex,
        /// Number of executions.
        count: u64,
    }
}

impl PathNode {
    /// Value of [`PathNode::parent`] for roots.
    pub const ROOT: u32 = u32::MAX;
}

impl Tables {
    /// Returns a function's name; `[unknown]` without a symbol.
    pub fn name(&self, function: FunctionIndex) -> &str {
        self.symbols.get(function.0 as usize).map_or("[unknown]", |symbol| &symbol.name)
    }

    /// Returns the first row that refers to a missing row: its table and a description. `None` if
    /// all references are valid.
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
