//! Tables of a profile: one declaration gives the row type, its columns and its file.

use crate::parquet_file::{self, ColumnType, ColumnValue, StoredType, TableReader};
use crate::parquet_guard;
use crate::row_sums::RowSums;
use crate::rules::{
    CheckedRow, ColumnRule, First, Function, FunctionOrNone, Key, Max, MergePart, Min, MinorKey, Parent,
    PathNumber, Region, RegionNumber, Special, Sum, SymbolNumber, TableRow, Thread,
};
use crate::{
    Address, CallKind, EdgeKind, FunctionIndex, Instructions, ModelEvent, PathKind, SwitchKind, ThreadKind,
    Ticks,
};
use bytes::Bytes;
use parquet::errors::ParquetError;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// Name and columns of a table, as in `docs/profile.md`.
#[derive(Debug, Clone, Copy)]
pub struct TableSchema {
    /// Name of the table; its file is `<name>.parquet`.
    pub name: &'static str,
    /// Names and types of the columns, in order.
    pub columns: &'static [(&'static str, ColumnType)],
    /// The table has a file only if it has rows, because few profiles have any.
    pub is_rare: bool,
}

/// Checks whether a profile may lack the file of this table.
pub(crate) fn is_rare(table: &str) -> bool {
    SCHEMA.iter().any(|schema| schema.name == table && schema.is_rare)
}

pub(crate) struct EncodedTable {
    pub name: &'static str,
    pub rows: u64,
    pub bytes: Vec<u8>,
}

macro_rules! is_rare {
    () => {
        false
    };
    (rare) => {
        true
    };
}

/// Declares the row types, [`Tables`], [`SCHEMA`], reading, writing, adding and checking of all
/// tables. Each column has a type and a rule of [`crate::rules`]; `with` names the method that adds
/// the columns of the rule [`Special`], before the others are added.
macro_rules! tables {
    ($(
        $(#[$doc:meta])*
        $table:ident: $Row:ident $(, $rare:ident)? $(; with $special:ident)? {
            $($(#[$column_doc:meta])* $column:ident: $type:ty = $rule:ident,)*
        }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Default, PartialEq, Eq)]
            pub struct $Row {
                $($(#[$column_doc])* pub $column: $type,)*
            }

            impl TableRow for $Row {
                fn order(&self, other: &Self) -> Ordering {
                    let by = |rank: u8| {
                        Ordering::Equal$(.then_with(|| {
                            match <$rule as ColumnRule<$type>>::RANK == Some(rank) {
                                true => self.$column.cmp(&other.$column),
                                false => Ordering::Equal,
                            }
                        }))*
                    };
                    by(0).then_with(|| by(1)).then_with(|| by(2))
                }

                fn hash_key(&self, state: &mut impl Hasher) {
                    $(if <$rule as ColumnRule<$type>>::RANK.is_some() {
                        self.$column.hash(state);
                    })*
                }

                fn convert(&mut self, part: &MergePart) {
                    $(<$rule as ColumnRule<$type>>::convert(&mut self.$column, part);)*
                }

                fn add(&mut self, other: &Self) {
                    $(self.$special(other);)?
                    $(<$rule as ColumnRule<$type>>::add(&mut self.$column, &other.$column);)*
                }

                fn problem(&self, row: CheckedRow) -> Option<String> {
                    None$(.or_else(|| <$rule as ColumnRule<$type>>::problem(&self.$column, row)))*
                }
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
                is_rare: is_rare!($($rare)?),
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
                    if !(self.$table.is_empty() && schema.is_rare) {
                    let bytes = parquet_file::encode(schema.name, schema.columns, &|writer| {
                        let rows = &self.$table;
                        $(writer.column::<$type>(rows.len(), &|row| rows[row].$column.store())?;)*
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

            /// Returns the first row that refers to a missing row: its table and a description.
            /// `None` if all references are valid. `symbols` is the number of rows of symbols.
            pub(crate) fn broken_reference(&self, symbols: usize) -> Option<(&'static str, String)> {
                let regions = self.regions.len();
                $(for (at, row) in self.$table.iter().enumerate() {
                    if let Some(problem) = row.problem(CheckedRow { at, row, symbols, regions }) {
                        return Some((stringify!($table), problem));
                    }
                })*
                None
            }
        }

        /// Sums of all tables.
        #[derive(Default)]
        pub(crate) struct TableSums {
            $($table: RowSums<$Row>,)*
        }

        impl TableSums {
            /// Adds the tables of a part: rows with the same key become one.
            pub fn add(&mut self, tables: Tables, part: &MergePart) {
                $(self.$table.add(tables.$table, part);)*
            }

            /// Returns the sums, each in the order in which keys first appeared.
            pub fn into_tables(self) -> Tables {
                Tables { $($table: self.$table.into_rows(),)* }
            }

            /// Returns the sums, each sorted by key.
            pub fn into_sorted(self) -> Tables {
                Tables { $($table: self.$table.into_sorted(),)* }
            }
        }
    };
}

tables! {
    /// Calls and times of a function in a region. A call counts in the region in which it was made,
    /// its end in the region in which it ended, and self time in the innermost region in which it
    /// passed. The sum over all regions is the whole profile.
    functions: FunctionStats; with add_extremes {
        /// Row of [`Tables::regions`].
        region: u32 = Region,
        /// Row of [`Tables::symbols`].
        function: FunctionIndex = Function,
        /// Calls made in this region.
        calls: u64 = Sum,
        /// Calls that ended in this region, wherever they were made. Some calls never end.
        ended: u64 = Sum,
        /// Self time of all calls.
        self_ticks: Ticks = Sum,
        /// Self time of the calls that ended here, from entry to exit.
        ended_self_ticks: Ticks = Sum,
        /// Total time, callees included, of the calls that ended here; once for each level of
        /// recursion.
        total_ticks: Ticks = Sum,
        /// Greatest self time of one call that ended here; 0 without any.
        max_ticks: Ticks = Special,
        /// Least self time of one call that ended here; 0 without any.
        min_ticks: Ticks = Special,
        /// Greatest total time of one call that ended here; 0 without any.
        slowest_ticks: Ticks = Special,
        /// Virtual time at which the slowest call began, the first of several.
        slowest_at_ticks: Ticks = Special,
    }

    /// Function of the kernel or of a traced user binary. Row `i` has `function == i`.
    symbols: Symbol {
        /// Row number of this row.
        function: FunctionIndex = SymbolNumber,
        /// Name in the symbol table; several functions may share one.
        name: String = Key,
        /// Address of the first instruction; 0 if unknown.
        address: Address = Key,
        /// Size in bytes; 0 if unknown.
        size: u64 = First,
        /// Source file, where known: a path from the top of the source tree, or its name alone.
        file: Option<String> = First,
        /// Module that the kernel loaded, or user binary, that contains the function; `None` for the
        /// kernel's image ([`Symbol::loaded_module`], [`Symbol::binary`]).
        module: Option<String> = First,
    }

    /// Calls from one function to another in a region, by kind of call. A row exists for each arc
    /// over which a call was made, ended, or was open while it or its callees ran.
    arcs: CallArc {
        /// Row of [`Tables::regions`].
        region: u32 = Region,
        /// Row of [`Tables::symbols`], or [`FunctionIndex::NONE`] without a caller.
        caller: FunctionIndex = FunctionOrNone,
        /// Row of [`Tables::symbols`].
        callee: FunctionIndex = Function,
        /// Kind of call.
        how: CallKind = Key,
        /// Calls of this kind made here.
        calls: u64 = Sum,
        /// Calls of this kind that ended here, wherever they were made.
        ended: u64 = Sum,
        /// Total time of the callee in the calls that ended here.
        total_ticks: Ticks = Sum,
    }

    /// Time of a thread in a region. The sum over all rows of a region is its own busy time,
    /// without nested regions.
    threads: ThreadStats {
        /// Row of [`Tables::regions`].
        region: u32 = Region,
        /// Number of the thread in the recording; the same in all regions.
        thread: u32 = Thread,
        /// Task, all interrupts together, or an idle task.
        kind: ThreadKind = First,
        /// Thread id (the kernel's `pid`).
        pid: u32 = First,
        /// Process id (the kernel's `tgid`).
        tgid: u32 = First,
        /// Name when the thread last ran.
        comm: String = First,
        /// Time on the CPU, in the kernel and in user mode, without interrupts.
        self_ticks: Ticks = Sum,
        /// Part of `self_ticks` in user mode.
        user_ticks: Ticks = Sum,
        /// Number of switches to this thread.
        switches_in: u64 = Sum,
    }

    /// Part of the run between a begin and an end mark. Times and counters include nested regions,
    /// except for `user_ticks` and `unattributed_ticks`, which like the rows of the other tables
    /// belong to the innermost region.
    regions: RegionStats {
        /// Row number of this row, in order of begin marks.
        region: u32 = RegionNumber,
        /// Name from the mark; several regions may share one.
        name: String = Key,
        /// Time of the begin mark.
        begin_ticks: Ticks = Min,
        /// Time from begin to end.
        elapsed_ticks: Ticks = Sum,
        /// `elapsed_ticks - idle_ticks`.
        busy_ticks: Ticks = Sum,
        /// Time in which the CPU was halted.
        idle_ticks: Ticks = Sum,
        /// Time in user mode, without nested regions.
        user_ticks: Ticks = Sum,
        /// Time in kernel code with an empty call stack, without nested regions.
        unattributed_ticks: Ticks = Sum,
        /// Completed operations.
        operations: u64 = Sum,
        /// Number of open regions around this one.
        depth: u32 = First,
        /// Instructions executed in the kernel.
        kernel_instructions: Instructions = Sum,
        /// Instructions executed in user mode.
        user_instructions: Instructions = Sum,
        /// Branches taken in the kernel.
        kernel_taken_branches: u64 = Sum,
        /// Branches taken in user mode.
        user_taken_branches: u64 = Sum,
        /// Model: misses of the first-level instruction cache in the kernel.
        kernel_l1i_misses: u64 = Sum,
        /// Model: misses of the first-level instruction cache in user mode.
        user_l1i_misses: u64 = Sum,
        /// Model: misses of the first-level instruction TLB in the kernel.
        kernel_itlb_misses: u64 = Sum,
        /// Model: misses of the first-level instruction TLB in user mode.
        user_itlb_misses: u64 = Sum,
    }

    /// Events of a front-end model with a second-level cache or a branch predictor: a row for each
    /// region and each kind of event that the model can have. Counters include nested regions.
    model_events: ModelEventStats, rare {
        /// Row of [`Tables::regions`].
        region: u32 = Region,
        /// Kind of event.
        event: ModelEvent = Key,
        /// Events of kernel code.
        kernel: u64 = Sum,
        /// Events of user code.
        user: u64 = Sum,
    }

    /// Taken branches of the kernel, of all regions together.
    edges: Edge {
        /// Address of the branch instruction.
        source: Address = Key,
        /// Address of the instruction executed next.
        target: Address = Key,
        /// Number of times that the branch was taken.
        count: u64 = Sum,
        /// Kind of branch instruction.
        kind: EdgeKind = Key,
    }

    /// Straight runs of kernel instructions, of all regions together.
    blocks: Block {
        /// Address of the first instruction.
        start: Address = Key,
        /// Address of the last instruction.
        last: Address = Key,
        /// Number of executions from first to last.
        count: u64 = Sum,
        /// Number of instructions in the block.
        instructions: Instructions = MinorKey,
        /// Bytes from the first instruction to the end of the last.
        bytes: u64 = Key,
    }

    /// Distribution of the total time of calls that ended: a log-scaled histogram for each arc.
    histograms: HistogramBucket {
        /// Row of [`Tables::regions`] in which the calls ended.
        region: u32 = Region,
        /// Row of [`Tables::symbols`], or [`FunctionIndex::NONE`] without a caller.
        caller: FunctionIndex = FunctionOrNone,
        /// Row of [`Tables::symbols`] of the called function.
        function: FunctionIndex = Function,
        /// Bucket of the total time, see [`crate::bucket_of`].
        bucket: u32 = Key,
        /// Calls in the bucket.
        count: u64 = Sum,
        /// Virtual time at which the first of these calls began.
        example_ticks: Ticks = Min,
    }

    /// Call tree: a row for each path by which a function was reached. Self times of a region's
    /// rows sum to its own busy time; a path's total time is the sum over its subtree. Parents come
    /// before children.
    paths: PathNode {
        /// Row of [`Tables::regions`].
        region: u32 = Region,
        /// Row number of this row.
        path: u32 = PathNumber,
        /// Row of this table, or [`PathNode::ROOT`].
        parent: u32 = Parent,
        /// Kind of node.
        kind: PathKind = Key,
        /// Name of the thread for [`PathKind::Thread`], otherwise empty.
        comm: String = Key,
        /// Row of [`Tables::symbols`] for [`PathKind::Function`], otherwise
        /// [`FunctionIndex::NONE`].
        function: FunctionIndex = FunctionOrNone,
        /// Kind of call; `call` for nodes that are no functions.
        how: CallKind = Key,
        /// Calls made in this region.
        calls: u64 = Sum,
        /// Time at this path itself, without its children.
        self_ticks: Ticks = Sum,
        /// Branches taken at this path; 0 if the trace has no weights.
        taken_branches: u64 = Sum,
        /// Model: misses of the first-level instruction cache.
        l1i_misses: u64 = Sum,
        /// Model: misses of the first-level instruction TLB.
        itlb_misses: u64 = Sum,
    }

    /// Context switches by thread and reason.
    switches: SwitchStats {
        /// Row of [`Tables::regions`].
        region: u32 = Region,
        /// Name of the previous thread.
        from: String = Key,
        /// Name of the next thread.
        to: String = Key,
        /// Function that called the scheduler: the topmost open one outside the scheduler, or
        /// [`FunctionIndex::NONE`].
        reason: FunctionIndex = FunctionOrNone,
        /// Preemption (on the way out of an interrupt or system call) or voluntary switch.
        kind: SwitchKind = Key,
        /// Number of switches.
        count: u64 = Sum,
    }

    /// Idle periods of the CPU, by length and by the interrupt that ended them.
    idles: IdleStats {
        /// Row of [`Tables::regions`].
        region: u32 = Region,
        /// First function of the interrupt that woke the CPU, or [`FunctionIndex::NONE`].
        waker: FunctionIndex = FunctionOrNone,
        /// Bucket of the length, see [`crate::bucket_of`].
        bucket: u32 = Key,
        /// Number of idle periods.
        count: u64 = Sum,
        /// Sum of their lengths.
        idle_ticks: Ticks = Sum,
    }

    /// Activity of one of several CPUs in a region, nested regions included. In the rest of the
    /// region's time another CPU had its turn.
    cpus: CpuStats, rare {
        /// Row of [`Tables::regions`].
        region: u32 = Region,
        /// Number of the CPU.
        cpu: u32 = Key,
        /// Instructions executed in the kernel.
        kernel_instructions: Instructions = Sum,
        /// Instructions executed in user mode.
        user_instructions: Instructions = Sum,
        /// Time in which the CPU executed, from the trace; 0 if functions were not recorded.
        busy_ticks: Ticks = Sum,
        /// Time in which the CPU was halted.
        halted_ticks: Ticks = Sum,
        /// Number of interrupts.
        interrupts: u64 = Sum,
        /// Number of context switches.
        switches: u64 = Sum,
    }

    /// Front-end counters of one of several CPUs in a region, nested regions included: its part of
    /// the same columns of [`Tables::regions`]. Only filled if a front-end model counted.
    cpu_front_ends: CpuFrontEndStats, rare {
        /// Row of [`Tables::regions`].
        region: u32 = Region,
        /// Number of the CPU.
        cpu: u32 = Key,
        /// Branches taken in kernel code.
        kernel_taken_branches: u64 = Sum,
        /// Branches taken in user code.
        user_taken_branches: u64 = Sum,
        /// Model: misses of the L1I by kernel code.
        kernel_l1i_misses: u64 = Sum,
        /// Model: misses of the L1I by user code.
        user_l1i_misses: u64 = Sum,
        /// Model: misses of the iTLB by kernel code.
        kernel_itlb_misses: u64 = Sum,
        /// Model: misses of the iTLB by user code.
        user_itlb_misses: u64 = Sum,
    }

    /// Part of one of several CPUs in [`Tables::model_events`].
    cpu_model_events: CpuModelEventStats, rare {
        /// Row of [`Tables::regions`].
        region: u32 = Region,
        /// Number of the CPU.
        cpu: u32 = Key,
        /// Kind of event.
        event: ModelEvent = Key,
        /// Events of kernel code.
        kernel: u64 = Sum,
        /// Events of user code.
        user: u64 = Sum,
    }

    /// Interrupts of one of several CPUs.
    cpu_interrupts: CpuInterruptStats, rare {
        /// Row of [`Tables::regions`].
        region: u32 = Region,
        /// Number of the CPU.
        cpu: u32 = Key,
        /// Row of [`Tables::symbols`] of the interrupt's first function.
        function: FunctionIndex = Function,
        /// Number of interrupts.
        count: u64 = Sum,
    }

    /// Interrupts between CPUs (IPIs).
    signals: SignalStats, rare {
        /// Row of [`Tables::regions`].
        region: u32 = Region,
        /// CPU that sends.
        from_cpu: u32 = Key,
        /// CPU that is interrupted.
        to_cpu: u32 = Key,
        /// Function that sends, which shows the kind of interrupt; or [`FunctionIndex::NONE`].
        function: FunctionIndex = FunctionOrNone,
        /// Function that caused it: the topmost open one that does not belong to the scheduler or
        /// the like, or [`FunctionIndex::NONE`].
        reason: FunctionIndex = FunctionOrNone,
        /// Number of interrupts.
        count: u64 = Sum,
    }

    /// Moves of threads from one CPU to another.
    migrations: MigrationStats, rare {
        /// Row of [`Tables::regions`].
        region: u32 = Region,
        /// Name of the thread.
        comm: String = Key,
        /// CPU on which the thread ran.
        from_cpu: u32 = Key,
        /// CPU on which the thread will run.
        to_cpu: u32 = Key,
        /// Function that moves the thread, or [`FunctionIndex::NONE`].
        reason: FunctionIndex = FunctionOrNone,
        /// Number of moves.
        count: u64 = Sum,
    }

    /// Time that runnable threads waited for a CPU.
    delays: DelayStats, rare {
        /// Row of [`Tables::regions`] in which the thread got a CPU.
        region: u32 = Region,
        /// Name of the thread.
        comm: String = Key,
        /// Name of the thread that woke it, `[interrupt]`, or empty if it had been preempted.
        waker: String = Key,
        /// Bucket of the waiting time, see [`crate::bucket_of`].
        bucket: u32 = Key,
        /// Number of waits.
        count: u64 = Sum,
        /// Sum of the waiting times.
        delay_ticks: Ticks = Sum,
        /// Longest waiting time.
        max_ticks: Ticks = Max,
    }

    /// Time for which threads were blocked: they waited off the CPU until something woke them.
    blocked: BlockedStats, rare {
        /// Row of [`Tables::regions`] in which the wait ended.
        region: u32 = Region,
        /// Name of the thread.
        comm: String = Key,
        /// Names of the functions in which the thread went to sleep, outermost first, separated by
        /// `;`; empty if unknown.
        path: String = Key,
        /// Name of the thread that woke it, `[interrupt]`, or empty if the wake-up was not seen.
        waker: String = Key,
        /// Names of the functions that woke it, as in `path`.
        waker_path: String = Key,
        /// Number of waits that ended.
        count: u64 = Sum,
        /// Sum of their times, from the loss of the CPU to the wake-up.
        blocked_ticks: Ticks = Sum,
        /// Longest of these times.
        max_ticks: Ticks = Max,
    }

    /// Waits for locks.
    locks: LockStats, rare {
        /// Row of [`Tables::regions`] in which the wait ended.
        region: u32 = Region,
        /// Function that waits, which shows the kind of lock.
        function: FunctionIndex = Function,
        /// Address of the lock in memory.
        address: Address = Key,
        /// Variable that is or contains the lock, with the offset; empty if the lock is in no
        /// variable of the kernel.
        name: String = Key,
        /// Function that takes the lock: the topmost open one that is no locking function, or
        /// [`FunctionIndex::NONE`].
        caller: FunctionIndex = FunctionOrNone,
        /// Number of waits.
        count: u64 = Sum,
        /// Time from begin to end of the waiting function, whoever ran in between.
        wait_ticks: Ticks = Sum,
        /// Longest waiting time.
        max_ticks: Ticks = Max,
    }

    /// Waits for locks by call path.
    lock_paths: LockPathStats, rare {
        /// Row of [`Tables::regions`] in which the wait ended.
        region: u32 = Region,
        /// Kind of lock: `spinlock`, `rwlock`, `mutex`, `rwsem`, `percpu rwsem`, `rt mutex`,
        /// `semaphore` or `lock`.
        kind: String = Key,
        /// Names of the functions up to the one that waits, outermost first, separated by `;`; empty
        /// if unknown.
        path: String = Key,
        /// Number of waits.
        count: u64 = Sum,
        /// Sum of their times.
        wait_ticks: Ticks = Sum,
        /// Longest of these times.
        max_ticks: Ticks = Max,
    }

    /// System calls with their times and errors, by the thread that made them.
    system_calls: SystemCallStats, rare {
        /// Row of [`Tables::regions`] in which the call ended.
        region: u32 = Region,
        /// Name of the thread when it made the call.
        comm: String = Key,
        /// Name of the system call; `syscall_N` if the number has no known name.
        name: String = Key,
        /// Number of calls.
        calls: u64 = Sum,
        /// Calls of them that returned.
        ended: u64 = Sum,
        /// Calls of them that returned an error.
        errors: u64 = Sum,
        /// Time from entry to exit of the calls that returned, whoever ran meanwhile.
        elapsed_ticks: Ticks = Sum,
        /// Longest of these times.
        max_ticks: Ticks = Max,
    }

    /// Time of a thread in a control group.
    thread_cgroups: ThreadCgroup, rare {
        /// Row of [`Tables::regions`].
        region: u32 = Region,
        /// Number of the thread, as in [`Tables::threads`].
        thread: u32 = Thread,
        /// Path of the cgroup in its hierarchy, as in `/proc/PID/cgroup`; empty if unknown.
        cgroup: String = Key,
        /// Time on the CPU, in the kernel and in user mode, without interrupts.
        self_ticks: Ticks = Sum,
        /// Part of `self_ticks` in user mode.
        user_ticks: Ticks = Sum,
    }

    /// Accesses to data, and their misses in a model's caches.
    data_accesses: DataAccesses, rare {
        /// Row of [`Tables::regions`], without nested regions.
        region: u32 = Region,
        /// Accessing code: `kernel` or `user`.
        mode: String = Key,
        /// Number of reads.
        loads: u64 = Sum,
        /// Number of writes.
        stores: u64 = Sum,
        /// Lines that were not in the L1D.
        l1d_misses: u64 = Sum,
        /// Part of `l1d_misses` that were writes.
        l1d_store_misses: u64 = Sum,
        /// Lines that were not in the L2 either.
        l2_misses: u64 = Sum,
        /// Lines that were in no cache.
        l3_misses: u64 = Sum,
        /// Lines that came from the cache of another CPU, which had written them.
        transfers: u64 = Sum,
        /// Translations that were not in the first-level data TLB.
        dtlb_misses: u64 = Sum,
        /// Translations that were in no TLB.
        walks: u64 = Sum,
    }

    /// Data misses by call path.
    data_paths: DataPath, rare {
        /// Row of [`Tables::regions`], without nested regions.
        region: u32 = Region,
        /// Names of the open functions, outermost first, separated by `;`; empty if none was open.
        path: String = Key,
        /// Lines that were not in the L1D.
        l1d_misses: u64 = Sum,
        /// Part of `l1d_misses` that were writes.
        l1d_store_misses: u64 = Sum,
        /// Lines that were not in the L2 either.
        l2_misses: u64 = Sum,
        /// Lines that were in no cache.
        l3_misses: u64 = Sum,
        /// Lines that came from the cache of another CPU, which had written them.
        transfers: u64 = Sum,
        /// Translations that were not in the first-level data TLB.
        dtlb_misses: u64 = Sum,
        /// Translations that were in no TLB.
        walks: u64 = Sum,
    }

    /// Data misses by object and function.
    data_places: DataPlace, rare {
        /// Row of [`Tables::regions`], without nested regions.
        region: u32 = Region,
        /// Kernel function whose instructions missed, or [`FunctionIndex::NONE`] for user code.
        function: FunctionIndex = FunctionOrNone,
        /// Kind of memory: `variable`, `per-CPU`, `slab`, `page struct`, `stack`, `memory`,
        /// `mapped`, `user`, `other`.
        kind: String = Key,
        /// Variable or slab cache; empty for other memory.
        object: String = Key,
        /// Type from the kernel's debug information, for example `struct tcp_sock`; empty if
        /// unknown.
        type_name: String = Key,
        /// Member, or offset (`+0x18`) if the type is unknown.
        field: String = Key,
        /// Lines that were not in the L1D.
        l1d_misses: u64 = Sum,
        /// Part of `l1d_misses` that were writes.
        l1d_store_misses: u64 = Sum,
        /// Lines that were not in the L2 either.
        l2_misses: u64 = Sum,
        /// Lines that were in no cache.
        l3_misses: u64 = Sum,
        /// Lines that came from the cache of another CPU, which had written them.
        transfers: u64 = Sum,
        /// Translations that were not in the first-level data TLB.
        dtlb_misses: u64 = Sum,
        /// Translations that were in no TLB.
        walks: u64 = Sum,
    }

    /// Accesses of each CPU to lines that moved between the caches of CPUs, for each 4 bytes.
    shared_lines: SharedLine, rare {
        /// Row of [`Tables::regions`], without nested regions.
        region: u32 = Region,
        /// Physical address of the line.
        line: Address = Key,
        /// Offset of the 4 bytes in the line.
        at: u32 = Key,
        /// Number of the accessing CPU.
        cpu: u32 = Key,
        /// Kind of memory, as in [`Tables::data_places`].
        kind: String = Key,
        /// Variable or slab cache; empty for other memory.
        object: String = Key,
        /// Type from the kernel's debug information; empty if unknown.
        type_name: String = Key,
        /// Member or offset.
        field: String = Key,
        /// Reads of any of these bytes from the first transfer on.
        loads: u64 = Sum,
        /// Writes of any of these bytes from the first transfer on.
        stores: u64 = Sum,
        /// Number of transfers of the line that accesses to these bytes caused.
        transfers: u64 = Sum,
    }

    /// Accesses to data, by the size of the page.
    page_accesses: PageAccesses, rare {
        /// Row of [`Tables::regions`], without nested regions.
        region: u32 = Region,
        /// Accessed memory, whoever accesses it: `kernel` or `user`.
        memory: String = Key,
        /// Size of a page: 4 KiB, 2 MiB or 1 GiB, in bytes.
        page_bytes: u64 = Key,
        /// Number of reads.
        loads: u64 = Sum,
        /// Number of writes.
        stores: u64 = Sum,
    }

    /// Amount of touched memory, of one recording only: footprints of several recordings cannot be
    /// added.
    footprints: Footprint, rare {
        /// Name of the regions, with their nested regions; empty for all regions.
        name: String = Key,
        /// Touched memory, as in [`Tables::page_accesses`].
        memory: String = Key,
        /// Size of a page, in bytes.
        page_bytes: u64 = Key,
        /// Touched pages by virtual address; a page that two processes map counts twice.
        pages: u64 = Key,
        /// Touched lines in these pages.
        lines: u64 = Key,
        /// Size of a line, in bytes.
        line_bytes: u64 = Key,
    }

    /// Data TLBs of the model.
    data_tlbs: DataTlb, rare {
        /// Name of the TLB: `dtlb`, `dtlb_large` or `stlb`.
        tlb: String = Key,
        /// Size of a page whose translations the TLB holds, in bytes. A TLB of several sizes has
        /// several rows.
        page_bytes: u64 = Key,
        /// Number of translations that the TLB holds.
        entries: u64 = Key,
    }

    /// Requests to block devices, by operation.
    io_requests: IoRequests, rare {
        /// Row of [`Tables::regions`] in which the requests were issued, without nested regions.
        region: u32 = Region,
        /// Name of the device, for example `vda`; empty for a queue without a disk.
        device: String = Key,
        /// Requested operation: `read`, `write`, `flush`, `discard`, `write zeroes`, `other`.
        operation: String = Key,
        /// Requests handed to the driver.
        requests: u64 = Sum,
        /// Number of times that the driver returned one of these requests and got it again.
        again: u64 = Sum,
        /// Requests of these that completed in this region.
        completed: u64 = Sum,
        /// Requests of these that completed later, in another region or outside of regions.
        completed_later: u64 = Sum,
        /// Requests of these without a recorded completion.
        unfinished: u64 = Sum,
        /// Requests that completed in this region and were issued before it or in another one; not
        /// part of `requests`.
        issued_before: u64 = Sum,
        /// Reads and writes that begin where the device's last read or write ended.
        sequential: u64 = Sum,
    }

    /// Network packets.
    packets: PacketStats, rare {
        /// Row of [`Tables::regions`], without nested regions.
        region: u32 = Region,
        /// Name of the device, for example `lo`; empty for a packet without one.
        device: String = Key,
        /// Direction: `sent` or `received`.
        direction: String = Key,
        /// Number of packets.
        packets: u64 = Sum,
        /// Size of the packets as the kernel holds them, in bytes: with the link header if sent,
        /// without if received.
        bytes: u64 = Sum,
    }

    /// Distribution of a figure of requests or packets: number of occurrences of each value.
    distributions: Distribution, rare {
        /// Row of [`Tables::regions`], without nested regions.
        region: u32 = Region,
        /// Counted objects: `request` or `packet`.
        subject: String = MinorKey,
        /// Name of the device, as in [`Tables::io_requests`] or [`Tables::packets`].
        device: String = Key,
        /// Operation of the requests, or direction of the packets.
        operation: String = Key,
        /// Measured figure. `bytes` for requests and packets. For requests also `seek` (bytes from
        /// the end of the device's last read or write, if not sequential), `depth` (open requests
        /// of the device at issue, this one included) and `time_ns` (from issue to completion).
        figure: String = MinorKey,
        /// Value of the figure.
        value: u64 = MinorKey,
        /// Number of requests or packets with this value.
        count: u64 = Sum,
    }

    /// Executions of inline points.
    points: PointStats {
        /// Row of [`Tables::regions`].
        region: u32 = Region,
        /// Point as the user named it: `symbol+offset` or `file.c:line`.
        point: String = Key,
        /// Row of [`Tables::symbols`] of the function that contains the point.
        function: FunctionIndex = FunctionOrNone,
        /// Number of executions.
        count: u64 = Sum,
    }
}

impl PathNode {
    /// Value of [`PathNode::parent`] for roots.
    pub const ROOT: u32 = u32::MAX;
}

impl Symbol {
    /// Checks whether the function is the kernel's: of its image, or of code that it loaded, which
    /// has addresses in the upper half.
    pub fn is_kernel(&self) -> bool {
        self.module.is_none() || self.address.get() >> 63 == 1
    }

    /// Returns the name of the module that contains the function, or `bpf`.
    pub fn loaded_module(&self) -> Option<&str> {
        self.module.as_deref().filter(|_| self.is_kernel())
    }

    /// Returns the user binary that contains the function.
    pub fn binary(&self) -> Option<&str> {
        self.module.as_deref().filter(|_| !self.is_kernel())
    }

    /// Returns the place of the function for readers: the source path of the kernel's code where it
    /// is known, or else its module or binary.
    pub fn place(&self) -> Option<&str> {
        match self.is_kernel() {
            true => self.file.as_deref().or(self.module.as_deref()),
            false => self.module.as_deref(),
        }
    }
}

impl Tables {
    /// Returns a function's name; `[unknown]` without a symbol.
    pub fn name(&self, function: FunctionIndex) -> &str {
        self.symbols.get(function.0 as usize).map_or("[unknown]", |symbol| &symbol.name)
    }
}
