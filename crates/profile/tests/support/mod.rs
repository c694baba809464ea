//! Small profile for tests: every table filled, two regions, and a nested region.
#![allow(dead_code)]

use kerntune_profile::*;

pub fn ns(n: u64) -> Ticks {
    Ticks(n)
}

pub fn symbol(function: u32, name: &str, address: u64) -> Symbol {
    let file = (function % 2 == 0).then(|| format!("kernel/{name}.c"));
    let module = (function == 2).then(|| "/usr/bin/rr".to_string());
    let (function, address) = (FunctionIndex(function), Address(address));
    Symbol { function, name: name.into(), address, size: 16, file, module }
}

pub fn region(region: u32, name: &str, depth: u32, elapsed: u64) -> RegionStats {
    RegionStats {
        region,
        name: name.into(),
        begin_ticks: ns(1_000 + u64::from(region)),
        elapsed_ticks: ns(elapsed),
        busy_ticks: ns(elapsed) - ns(10),
        idle_ticks: ns(10),
        user_ticks: ns(20),
        unattributed_ticks: ns(0),
        operations: 3,
        depth,
        kernel_instructions: Instructions(elapsed) - Instructions(30),
        user_instructions: Instructions(20),
        kernel_taken_branches: 5,
        user_taken_branches: 2,
        kernel_l1i_misses: 4,
        user_l1i_misses: 1,
        kernel_itlb_misses: 3,
        user_itlb_misses: 0,
    }
}

pub fn sample(id: &str) -> Profile {
    let f = FunctionIndex;
    let kernel = KernelId { id: "k1".into(), label: "base".into(), version: "6.12.90".into() };
    let mut manifest = Manifest::new(id, kernel, "rr", "emulator");
    manifest.recorded = "2025-06-01T12:00:00.000Z".into();
    manifest.elapsed_ticks = ns(300);
    manifest.idle_ticks = ns(10);
    manifest.busy_ticks = ns(290);
    manifest.events = 7;
    manifest.health.insert("stack_mismatches".into(), 0);
    manifest.capture = CaptureSummary {
        functions: true,
        edges: true,
        model: false,
        weights: true,
        data: true,
        ..CaptureSummary::default()
    };
    manifest.exact = true;
    let stats = |region, function, [calls, net, elapsed, max, min]: [u64; 5]| FunctionStats {
        region,
        function: f(function),
        calls,
        ended: calls,
        self_ticks: ns(net),
        ended_self_ticks: ns(net),
        total_ticks: ns(elapsed),
        max_ticks: ns(max),
        min_ticks: ns(min),
        slowest_ticks: ns(elapsed / 2),
        slowest_at_ticks: ns(1_000 + calls),
    };
    let thread = |region, thread, kind, pid, net| ThreadStats {
        region,
        thread,
        kind,
        pid,
        tgid: pid,
        comm: format!("t{pid}"),
        self_ticks: ns(net),
        user_ticks: ns(net / 2),
        switches_in: 1,
    };
    let arc = |caller, callee, how| CallArc {
        region: 0,
        caller: f(caller),
        callee: f(callee),
        how,
        calls: 2,
        ended: 2,
        total_ticks: ns(90),
    };
    let path = |path, parent, kind, function, net| PathNode {
        region: 0,
        path,
        parent,
        kind,
        comm: if kind == PathKind::Thread { "t17".into() } else { String::new() },
        function: f(function),
        how: CallKind::Call,
        calls: u64::from(function != u32::MAX),
        self_ticks: ns(net),
        taken_branches: 2 * net,
        l1i_misses: 3 * net,
        itlb_misses: net,
    };
    let tables = Tables {
        functions: vec![
            stats(0, 0, [2, 60, 100, 40, 20]),
            stats(0, 1, [5, 40, 40, 9, 7]),
            stats(1, 1, [1, 30, 30, 30, 30]),
        ],
        symbols: vec![
            symbol(0, "do_syscall_64", 0xffff_ffff_8100_0000),
            symbol(1, "show", 0xffff_ffff_8100_0010),
            symbol(2, "show", 0xffff_ffff_8100_0020),
        ],
        arcs: vec![arc(u32::MAX, 0, CallKind::Syscall), arc(0, 1, CallKind::Call)],
        threads: vec![
            thread(0, 4, ThreadKind::Thread, 17, 200),
            thread(0, 0, ThreadKind::Idle, 0, 10),
            thread(1, 4, ThreadKind::Thread, 17, 80),
        ],
        regions: vec![region(0, "all", 0, 300), region(1, "tcp_rr", 1, 100), region(2, "tcp_rr", 1, 50)],
        model_events: vec![
            ModelEventStats { region: 1, event: ModelEvent::L2Miss, kernel: 9, user: 2 },
            ModelEventStats { region: 1, event: ModelEvent::Misprediction, kernel: 11, user: 0 },
        ],
        lock_paths: vec![LockPathStats {
            region: 1,
            kind: "mutex".into(),
            path: "do_syscall_64;pipe_read;__mutex_lock".into(),
            count: 2,
            wait_ticks: ns(30),
            max_ticks: ns(20),
        }],
        system_calls: vec![SystemCallStats {
            region: 1,
            comm: "a".into(),
            name: "read".into(),
            calls: 4,
            ended: 3,
            errors: 1,
            elapsed_ticks: ns(60),
            max_ticks: ns(40),
        }],
        thread_cgroups: vec![ThreadCgroup {
            region: 1,
            thread: 0,
            cgroup: "/system.slice/a.service".into(),
            self_ticks: ns(10),
            user_ticks: ns(5),
        }],
        data_accesses: vec![DataAccesses {
            region: 1,
            mode: "kernel".into(),
            loads: 90,
            stores: 30,
            l1d_misses: 7,
            l1d_store_misses: 2,
            l2_misses: 3,
            l3_misses: 1,
            transfers: 1,
            dtlb_misses: 4,
            walks: 1,
        }],
        data_paths: vec![DataPath {
            region: 1,
            path: "do_syscall_64;show".into(),
            l1d_misses: 7,
            l1d_store_misses: 2,
            l2_misses: 3,
            l3_misses: 1,
            transfers: 1,
            dtlb_misses: 4,
            walks: 1,
        }],
        data_places: vec![DataPlace {
            region: 1,
            function: f(1),
            kind: "slab".into(),
            object: "TCP".into(),
            type_name: "struct tcp_sock".into(),
            field: "snd_nxt".into(),
            l1d_misses: 7,
            l1d_store_misses: 2,
            l2_misses: 3,
            l3_misses: 1,
            transfers: 1,
            dtlb_misses: 4,
            walks: 1,
        }],
        shared_lines: vec![SharedLine {
            region: 1,
            line: Address(0x1000),
            at: 8,
            cpu: 1,
            kind: "per-CPU".into(),
            object: "counters".into(),
            type_name: "struct counters".into(),
            field: "first".into(),
            loads: 5,
            stores: 6,
            transfers: 1,
        }],
        page_accesses: vec![PageAccesses {
            region: 1,
            memory: "user".into(),
            page_bytes: 2 << 20,
            loads: 70,
            stores: 20,
        }],
        footprints: vec![Footprint {
            name: "tcp_rr".into(),
            memory: "user".into(),
            page_bytes: 2 << 20,
            pages: 1,
            lines: 40,
            line_bytes: 64,
        }],
        data_tlbs: vec![DataTlb { tlb: "dtlb".into(), page_bytes: 4096, entries: 64 }],
        io_requests: vec![IoRequests {
            region: 1,
            device: "vda".into(),
            operation: "read".into(),
            requests: 6,
            again: 1,
            completed: 4,
            completed_later: 1,
            unfinished: 1,
            issued_before: 2,
            sequential: 3,
        }],
        packets: vec![PacketStats {
            region: 1,
            device: "lo".into(),
            direction: "sent".into(),
            packets: 2,
            bytes: 132,
        }],
        distributions: vec![Distribution {
            region: 1,
            subject: "packet".into(),
            device: "lo".into(),
            operation: "sent".into(),
            figure: "bytes".into(),
            value: 66,
            count: 2,
        }],
        edges: vec![
            Edge { source: Address(10), target: Address(20), count: 7, kind: EdgeKind::Conditional },
            Edge {
                source: Address(u64::MAX),
                target: Address(1 << 63),
                count: u64::MAX,
                kind: EdgeKind::Return,
            },
        ],
        blocks: vec![Block {
            start: Address(10),
            last: Address(18),
            count: 8,
            instructions: Instructions(4),
            bytes: 12,
        }],
        histograms: vec![HistogramBucket {
            region: 0,
            caller: f(0),
            function: f(1),
            bucket: bucket_of(ns(8)),
            count: 6,
            example_ticks: ns(1_005),
        }],
        paths: vec![
            path(0, PathNode::ROOT, PathKind::Thread, u32::MAX, 0),
            path(1, 0, PathKind::Function, 0, 60),
            path(2, 1, PathKind::Function, 1, 40),
            path(3, PathNode::ROOT, PathKind::Interrupt, u32::MAX, 5),
        ],
        switches: vec![SwitchStats {
            region: 0,
            from: "t17".into(),
            to: "swapper".into(),
            reason: f(1),
            kind: SwitchKind::Voluntary,
            count: 3,
        }],
        idles: vec![IdleStats {
            region: 0,
            waker: FunctionIndex::NONE,
            bucket: bucket_of(ns(10)),
            count: 1,
            idle_ticks: ns(10),
        }],
        points: vec![PointStats { region: 1, point: "show+0x4".into(), function: f(1), count: 9 }],
        cpus: vec![CpuStats {
            region: 0,
            cpu: 1,
            kernel_instructions: Instructions(50),
            user_instructions: Instructions(10),
            busy_ticks: ns(60),
            halted_ticks: ns(20),
            interrupts: 3,
            switches: 4,
        }],
        cpu_front_ends: vec![CpuFrontEndStats {
            region: 0,
            cpu: 1,
            kernel_taken_branches: 9,
            user_taken_branches: 2,
            kernel_l1i_misses: 4,
            user_l1i_misses: 1,
            kernel_itlb_misses: 3,
            user_itlb_misses: 0,
        }],
        cpu_model_events: vec![CpuModelEventStats {
            region: 0,
            cpu: 1,
            event: ModelEvent::L2Miss,
            kernel: 5,
            user: 6,
        }],
        cpu_interrupts: vec![CpuInterruptStats { region: 0, cpu: 1, function: f(0), count: 3 }],
        signals: vec![SignalStats { to_cpu: 1, function: f(1), count: 2, ..SignalStats::default() }],
        migrations: vec![MigrationStats {
            region: 1,
            comm: "a".into(),
            from_cpu: 1,
            to_cpu: 0,
            reason: f(1),
            count: 5,
        }],
        delays: vec![DelayStats {
            region: 1,
            comm: "a".into(),
            waker: "[interrupt]".into(),
            bucket: bucket_of(ns(7)),
            count: 6,
            delay_ticks: ns(42),
            max_ticks: ns(7),
        }],
        blocked: vec![BlockedStats {
            region: 1,
            comm: "a".into(),
            path: "do_syscall_64;pipe_read".into(),
            waker: "b".into(),
            waker_path: "do_syscall_64;pipe_write".into(),
            count: 6,
            blocked_ticks: ns(420),
            max_ticks: ns(70),
        }],
        locks: vec![LockStats {
            region: 1,
            function: f(1),
            address: Address(0x77),
            name: "runqueues of CPU 1".into(),
            caller: f(0),
            count: 2,
            wait_ticks: ns(9),
            max_ticks: ns(5),
        }],
    };
    Profile { manifest, tables }
}
