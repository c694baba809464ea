//! Synthetic machine that runs TCP ping-pong, fork and file work: its trace, and the matching
//! profile. Every figure of the profile is counted while the trace is written, without the
//! analysis.
#![allow(dead_code)]

use kerntune_analyze::timeline;
use kerntune_profile::{
    bucket_of, Address, CallKind, CaptureSummary, FunctionIndex, FunctionStats, HistogramBucket,
    Instructions, KernelId, Manifest, PathKind, PathNode, Profile, RegionStats, Symbol, Tables, Ticks,
};
use kerntune_report::html::profile::{windows, ChunkStorage, TimelinePlace, TraceTimeline, BINS};
use kerntune_trace::{
    encode, ChunkHeader, ChunkState, Event, OpenStack, RecordedRegion, RecordedThread, Recording,
    RecordingHealth, TraceFileWriter, TraceHeader, VERSION,
};
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

/// Name, source, self time in ns, callees with the probability of each in per cent.
type SyntheticFunction = (&'static str, &'static str, u64, &'static [(&'static str, u32)]);

const CODE: &[SyntheticFunction] = &[
    ("entry_SYSCALL_64", "arch/x86/entry/entry_64.S", 30, &[("do_syscall_64", 100)]),
    ("do_syscall_64", "arch/x86/entry/common.c", 40, &[]),
    ("__x64_sys_sendto", "net/socket.c", 20, &[("__sys_sendto", 100)]),
    ("__sys_sendto", "net/socket.c", 90, &[("sockfd_lookup_light", 100), ("sock_sendmsg", 100)]),
    ("sockfd_lookup_light", "net/socket.c", 30, &[("__fget_light", 100)]),
    ("__fget_light", "fs/file.c", 25, &[]),
    ("sock_sendmsg", "net/socket.c", 40, &[("security_socket_sendmsg", 100), ("tcp_sendmsg", 100)]),
    ("security_socket_sendmsg", "security/security.c", 25, &[]),
    (
        "tcp_sendmsg",
        "net/ipv4/tcp.c",
        40,
        &[("lock_sock_nested", 100), ("tcp_sendmsg_locked", 100), ("release_sock", 100)],
    ),
    ("lock_sock_nested", "net/core/sock.c", 40, &[("__local_bh_enable_ip", 100)]),
    ("release_sock", "net/core/sock.c", 35, &[("__local_bh_enable_ip", 100)]),
    ("__local_bh_enable_ip", "kernel/softirq.c", 20, &[("do_softirq", 12)]),
    ("do_softirq", "kernel/softirq.c", 40, &[("net_rx_action", 100)]),
    (
        "tcp_sendmsg_locked",
        "net/ipv4/tcp.c",
        350,
        &[
            ("tcp_stream_alloc_skb", 90),
            ("skb_copy_datagram_from_iter", 100),
            ("__tcp_push_pending_frames", 100),
        ],
    ),
    ("tcp_stream_alloc_skb", "net/ipv4/tcp.c", 60, &[("__alloc_skb", 100)]),
    ("__alloc_skb", "net/core/skbuff.c", 120, &[("kmem_cache_alloc_node", 100), ("__kmalloc_node", 100)]),
    ("kmem_cache_alloc_node", "mm/slub.c", 140, &[("___slab_alloc", 8)]),
    ("__kmalloc_node", "mm/slab_common.c", 150, &[("___slab_alloc", 10)]),
    ("___slab_alloc", "mm/slub.c", 500, &[("allocate_slab", 20)]),
    ("allocate_slab", "mm/slub.c", 900, &[("__alloc_pages", 100)]),
    ("__alloc_pages", "mm/page_alloc.c", 400, &[("get_page_from_freelist", 100)]),
    ("get_page_from_freelist", "mm/page_alloc.c", 800, &[]),
    ("skb_copy_datagram_from_iter", "net/core/datagram.c", 80, &[("_copy_from_iter", 100)]),
    ("_copy_from_iter", "lib/iov_iter.c", 110, &[]),
    ("__tcp_push_pending_frames", "net/ipv4/tcp_output.c", 30, &[("tcp_write_xmit", 100)]),
    ("tcp_write_xmit", "net/ipv4/tcp_output.c", 260, &[("__tcp_transmit_skb", 100)]),
    ("__tcp_transmit_skb", "net/ipv4/tcp_output.c", 420, &[("skb_clone", 100), ("ip_queue_xmit", 100)]),
    ("skb_clone", "net/core/skbuff.c", 80, &[("kmem_cache_alloc_node", 100)]),
    ("ip_queue_xmit", "net/ipv4/ip_output.c", 220, &[("ip_local_out", 100)]),
    ("ip_local_out", "net/ipv4/ip_output.c", 40, &[("nf_hook_slow", 100), ("ip_output", 100)]),
    ("nf_hook_slow", "net/netfilter/core.c", 70, &[]),
    ("ip_output", "net/ipv4/ip_output.c", 60, &[("ip_finish_output2", 100)]),
    ("ip_finish_output2", "net/ipv4/ip_output.c", 130, &[("__dev_queue_xmit", 100)]),
    ("__dev_queue_xmit", "net/core/dev.c", 210, &[("loopback_xmit", 100)]),
    ("loopback_xmit", "drivers/net/loopback.c", 60, &[("__netif_rx", 100)]),
    ("__netif_rx", "net/core/dev.c", 50, &[("enqueue_to_backlog", 100)]),
    ("enqueue_to_backlog", "net/core/dev.c", 90, &[]),
    ("net_rx_action", "net/core/dev.c", 110, &[("process_backlog", 100)]),
    ("process_backlog", "net/core/dev.c", 80, &[("__netif_receive_skb_core", 100)]),
    ("__netif_receive_skb_core", "net/core/dev.c", 180, &[("ip_rcv", 100)]),
    ("ip_rcv", "net/ipv4/ip_input.c", 90, &[("ip_local_deliver", 100)]),
    ("ip_local_deliver", "net/ipv4/ip_input.c", 60, &[("tcp_v4_rcv", 100)]),
    ("tcp_v4_rcv", "net/ipv4/tcp_ipv4.c", 420, &[("tcp_v4_do_rcv", 100)]),
    ("tcp_v4_do_rcv", "net/ipv4/tcp_ipv4.c", 60, &[("tcp_rcv_established", 100)]),
    ("tcp_rcv_established", "net/ipv4/tcp_input.c", 480, &[("tcp_ack", 100), ("sock_def_readable", 60)]),
    ("tcp_ack", "net/ipv4/tcp_input.c", 500, &[("tcp_clean_rtx_queue", 80)]),
    ("tcp_clean_rtx_queue", "net/ipv4/tcp_input.c", 260, &[("__kfree_skb", 100)]),
    ("__kfree_skb", "net/core/skbuff.c", 60, &[("kmem_cache_free", 100)]),
    ("kmem_cache_free", "mm/slub.c", 120, &[]),
    ("sock_def_readable", "net/core/sock.c", 60, &[("__wake_up_sync_key", 100)]),
    ("__wake_up_sync_key", "kernel/sched/wait.c", 80, &[("try_to_wake_up", 100)]),
    ("try_to_wake_up", "kernel/sched/core.c", 380, &[("ttwu_do_activate", 100)]),
    ("ttwu_do_activate", "kernel/sched/core.c", 150, &[("enqueue_task_fair", 100)]),
    ("enqueue_task_fair", "kernel/sched/fair.c", 420, &[]),
    ("__x64_sys_recvfrom", "net/socket.c", 20, &[("__sys_recvfrom", 100)]),
    ("__sys_recvfrom", "net/socket.c", 90, &[("sockfd_lookup_light", 100), ("inet_recvmsg", 100)]),
    ("inet_recvmsg", "net/ipv4/af_inet.c", 40, &[("tcp_recvmsg", 100)]),
    (
        "tcp_recvmsg",
        "net/ipv4/tcp.c",
        70,
        &[("lock_sock_nested", 100), ("tcp_recvmsg_locked", 100), ("release_sock", 100)],
    ),
    ("tcp_recvmsg_locked", "net/ipv4/tcp.c", 300, &[("__kfree_skb", 70), ("schedule", 45)]),
    ("schedule", "kernel/sched/core.c", 60, &[("__schedule", 100)]),
    ("__schedule", "kernel/sched/core.c", 600, &[("dequeue_task_fair", 100), ("pick_next_task_fair", 100)]),
    ("dequeue_task_fair", "kernel/sched/fair.c", 380, &[]),
    ("pick_next_task_fair", "kernel/sched/fair.c", 350, &[]),
    ("__x64_sys_openat", "fs/open.c", 20, &[("do_filp_open", 100)]),
    ("do_filp_open", "fs/namei.c", 60, &[("path_openat", 100)]),
    ("path_openat", "fs/namei.c", 220, &[("link_path_walk", 100), ("ext4_lookup", 30)]),
    ("link_path_walk", "fs/namei.c", 260, &[("walk_component", 100), ("walk_component", 80)]),
    ("walk_component", "fs/namei.c", 90, &[("lookup_fast", 100)]),
    ("lookup_fast", "fs/namei.c", 110, &[("__d_lookup_rcu", 100)]),
    ("__d_lookup_rcu", "fs/dcache.c", 160, &[]),
    ("ext4_lookup", "fs/ext4/namei.c", 300, &[("ext4_find_entry", 100), ("submit_bio", 10)]),
    ("ext4_find_entry", "fs/ext4/namei.c", 700, &[("ext4_find_entry", 20)]),
    ("submit_bio", "block/blk-core.c", 350, &[("virtio_queue_rq", 100)]),
    ("virtio_queue_rq", "drivers/block/virtio_blk.c", 420, &[]),
    ("asm_exc_page_fault", "arch/x86/mm/fault.c", 60, &[("handle_mm_fault", 100)]),
    ("handle_mm_fault", "mm/memory.c", 500, &[("__alloc_pages", 40)]),
    (
        "sysvec_apic_timer_interrupt",
        "arch/x86/kernel/apic/apic.c",
        90,
        &[("hrtimer_interrupt", 100), ("irq_exit_rcu", 100)],
    ),
    ("hrtimer_interrupt", "kernel/time/hrtimer.c", 260, &[("tick_sched_timer", 100)]),
    ("tick_sched_timer", "kernel/time/tick-sched.c", 150, &[("update_process_times", 100)]),
    ("update_process_times", "kernel/time/timer.c", 240, &[]),
    ("irq_exit_rcu", "kernel/softirq.c", 60, &[("do_softirq", 15)]),
    ("default_idle_call", "kernel/sched/idle.c", 80, &[]),
];

const MAIN: u32 = CODE.len() as u32 + 1;
const IDLE_TASK: usize = 2;

/// Small deterministic random number generator.
pub struct DeterministicRandom(pub u64);

impl DeterministicRandom {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
    fn percent(&mut self, chance: u32) -> bool {
        self.below(100) < u64::from(chance)
    }
}

struct OpenCall {
    function: u32,
    how: CallKind,
    began: u64,
    net: u64,
    below: u64,
    path: u32,
}

/// State of the synthetic machine.
pub struct SyntheticMachine {
    dice: DeterministicRandom,
    names: HashMap<&'static str, u32>,
    now: u64,
    since: u64,
    until_tick: u64,
    ticking: bool,
    thread: usize,
    stacks: Vec<Vec<OpenCall>>,
    region: u32,
    paths: Vec<PathNode>,
    place: HashMap<(u32, u32, u32, CallKind, u32), u32>,
    functions: BTreeMap<(u32, u32), FunctionStats>,
    arcs: BTreeMap<(u32, u32, u32, CallKind), (u64, u64)>,
    histograms: BTreeMap<(u32, u32, u32, u32), (u64, u64)>,
    regions: Vec<RegionStats>,
    user_ticks: u64,
    idle_ns: u64,
    writer: Option<TraceFileWriter<Vec<u8>>>,
    raw: Vec<u8>,
    chunk_bytes: usize,
    state: usize,
    begin: u64,
    count: u32,
    sequence: u32,
    events: u64,
}

fn trace_how(how: CallKind) -> kerntune_trace::EnterKind {
    match how {
        CallKind::Call => kerntune_trace::EnterKind::Call,
        CallKind::Jump => kerntune_trace::EnterKind::Jump,
        CallKind::Interrupt => kerntune_trace::EnterKind::Interrupt,
        CallKind::Exception => kerntune_trace::EnterKind::Exception,
        CallKind::Syscall => kerntune_trace::EnterKind::Syscall,
    }
}

/// Trace and profile of a run.
pub struct SyntheticRun {
    pub profile: Profile,
    pub trace: Vec<u8>,
    pub recording: Recording,
}

/// Runs `operations` operations of each kind.
pub fn run(operations: u32) -> SyntheticRun {
    run_in_chunks(operations, 60_000)
}

/// Runs with a trace whose chunks have about this many bytes before compression.
pub fn run_in_chunks(operations: u32, chunk_bytes: usize) -> SyntheticRun {
    let names = CODE.iter().enumerate().map(|(at, code)| (code.0, at as u32)).collect();
    let mut machine = SyntheticMachine {
        dice: DeterministicRandom(0x9e37_79b9_7f4a_7c15),
        names,
        now: 3_000_000_000,
        since: 3_000_000_000,
        until_tick: 250_000,
        ticking: false,
        thread: 0,
        stacks: (0..3).map(|_| Vec::new()).collect(),
        region: 0,
        paths: Vec::new(),
        place: HashMap::new(),
        functions: BTreeMap::new(),
        arcs: BTreeMap::new(),
        histograms: BTreeMap::new(),
        regions: Vec::new(),
        user_ticks: 0,
        idle_ns: 0,
        writer: Some(TraceFileWriter::new(Vec::new(), TraceHeader { wide: false }).unwrap()),
        raw: Vec::new(),
        chunk_bytes,
        state: 0,
        begin: 0,
        count: 0,
        sequence: 0,
        events: 0,
    };
    for (name, work) in [("tcp_rr", 0u32), ("open", 1), ("page_fault", 2)] {
        machine.begin_region(name);
        for _ in 0..operations {
            machine.operation(work);
        }
        machine.end_region(u64::from(operations));
        // A pause in which nothing is recorded.
        machine.now += 7_000_000;
    }
    machine.finish()
}

impl SyntheticMachine {
    fn begin_chunk(&mut self) {
        self.raw.clear();
        (self.begin, self.since, self.count) = (self.now, self.now, 0);
        let open = |(thread, stack): (usize, &Vec<OpenCall>)| OpenStack {
            thread: thread as u32,
            running: thread == self.thread,
            frames: stack.iter().map(|frame| (frame.function, trace_how(frame.how))).collect(),
        };
        let stacks = self.stacks.iter().enumerate().map(open).collect();
        let user = self.stacks[self.thread].last().is_none_or(|frame| frame.function >= MAIN);
        ChunkState { user, regions: vec![self.region], stacks, ..ChunkState::default() }.write(&mut self.raw);
        self.state = self.raw.len();
    }

    fn end_chunk(&mut self) {
        let header = ChunkHeader {
            vcpu: 0,
            sequence: self.sequence,
            events: self.count,
            begin: self.begin,
            end: self.now,
            state: self.state as u32,
            payload: (self.raw.len() - self.state) as u32,
            compressed: 0,
        };
        self.writer.as_mut().unwrap().chunk(header, &self.raw).unwrap();
        self.sequence += 1;
    }

    fn event(&mut self, event: Event) {
        encode::event(&mut self.raw, self.now - self.since, event);
        if let Event::Idle { ns } = event {
            self.now += ns;
        }
        self.since = self.now;
        self.count += 1;
        self.events += 1;
    }

    fn begin_region(&mut self, name: &str) {
        self.region = self.regions.len() as u32;
        self.begin_chunk();
        (self.user_ticks, self.idle_ns) = (0, 0);
        let zero = Ticks::ZERO;
        self.regions.push(RegionStats {
            region: self.region,
            name: name.into(),
            begin_ticks: Ticks(self.now),
            elapsed_ticks: zero,
            busy_ticks: zero,
            idle_ticks: zero,
            user_ticks: zero,
            unattributed_ticks: zero,
            ..RegionStats::default()
        });
        self.event(Event::RegionBegin { region: self.region });
    }

    fn end_region(&mut self, operations: u64) {
        self.event(Event::RegionEnd { region: self.region });
        self.end_chunk();
        let (now, user, idle) = (self.now, self.user_ticks, self.idle_ns);
        let row = self.regions.last_mut().unwrap();
        row.elapsed_ticks = Ticks(now) - row.begin_ticks;
        row.idle_ticks = Ticks(idle);
        row.busy_ticks = row.elapsed_ticks - row.idle_ticks;
        row.user_ticks = Ticks(user);
        row.operations = operations;
        row.user_instructions = Instructions(user);
        row.kernel_instructions = Instructions(row.busy_ticks.get() - user);
    }

    fn node(&mut self, parent: u32, kind: PathKind, comm: &str, function: u32, how: CallKind) -> u32 {
        let tag = (kind as u32) * 8 + comm.len() as u32;
        let key = (self.region, parent, function, how, tag);
        let paths = &mut self.paths;
        let region = self.region;
        *self.place.entry(key).or_insert_with(|| {
            let path = paths.len() as u32;
            paths.push(PathNode {
                region,
                path,
                parent,
                kind,
                comm: comm.into(),
                function: FunctionIndex(function),
                how,
                ..PathNode::default()
            });
            path
        })
    }

    fn base(&mut self) -> u32 {
        let comm = ["client", "server7", ""][self.thread];
        let kind = if self.thread == IDLE_TASK { PathKind::Idle } else { PathKind::Thread };
        self.node(PathNode::ROOT, kind, comm, u32::MAX, CallKind::Call)
    }

    fn pass(&mut self, ns: u64) {
        self.now += ns;
        let path = match self.stacks[self.thread].last_mut() {
            Some(frame) => {
                frame.net += ns;
                frame.path
            }
            None => {
                self.user_ticks += ns;
                let base = self.base();
                self.node(base, PathKind::User, "", u32::MAX, CallKind::Call)
            }
        };
        let misses = u64::from(self.dice.below(900) < ns);
        let node = &mut self.paths[path as usize];
        node.self_ticks += Ticks(ns);
        node.taken_branches += ns / 7;
        node.l1i_misses += misses * (1 + ns / 300);
        node.itlb_misses += u64::from(misses == 1 && ns % 13 == 0);
    }

    fn enter(&mut self, function: u32, how: CallKind) {
        let parent = match self.stacks[self.thread].last() {
            _ if how == CallKind::Interrupt => {
                self.node(PathNode::ROOT, PathKind::Interrupt, "", u32::MAX, CallKind::Call)
            }
            Some(frame) => frame.path,
            None => self.base(),
        };
        let path = self.node(parent, PathKind::Function, "", function, how);
        self.event(Event::Enter { function, how: trace_how(how) });
        self.stacks[self.thread].push(OpenCall { function, how, began: self.now, net: 0, below: 0, path });
    }

    fn leave(&mut self, event: Event) {
        self.event(event);
        let stack = &mut self.stacks[self.thread];
        let frame = stack.pop().unwrap();
        let elapsed = frame.net + frame.below;
        let mut caller = u32::MAX;
        if frame.how != CallKind::Interrupt {
            if let Some(below) = stack.last_mut() {
                below.below += elapsed;
                caller = below.function;
            }
        }
        self.paths[frame.path as usize].calls += 1;
        let zero = Ticks::ZERO;
        let row = self.functions.entry((self.region, frame.function)).or_insert(FunctionStats {
            region: self.region,
            function: FunctionIndex(frame.function),
            calls: 0,
            ended: 0,
            self_ticks: zero,
            ended_self_ticks: zero,
            total_ticks: zero,
            max_ticks: zero,
            min_ticks: Ticks(u64::MAX),
            slowest_ticks: zero,
            slowest_at_ticks: zero,
        });
        (row.calls, row.ended) = (row.calls + 1, row.ended + 1);
        row.self_ticks += Ticks(frame.net);
        row.ended_self_ticks += Ticks(frame.net);
        row.total_ticks += Ticks(elapsed);
        row.max_ticks = row.max_ticks.max(Ticks(frame.net));
        row.min_ticks = row.min_ticks.min(Ticks(frame.net));
        if Ticks(elapsed) > row.slowest_ticks {
            (row.slowest_ticks, row.slowest_at_ticks) = (Ticks(elapsed), Ticks(frame.began));
        }
        let arc = self.arcs.entry((self.region, caller, frame.function, frame.how)).or_default();
        *arc = (arc.0 + 1, arc.1 + elapsed);
        let bucket = bucket_of(Ticks(elapsed));
        let key = (self.region, caller, frame.function, bucket);
        self.histograms.entry(key).or_insert((0, frame.began)).0 += 1;
    }

    fn number(&self, name: &str) -> u32 {
        self.names[name]
    }

    /// Spends time in the innermost function, during which the timer may fire.
    fn work(&mut self, ns: u64) {
        let ns = ns * (70 + self.dice.below(60)) / 100;
        if self.ticking || ns < self.until_tick {
            self.until_tick = self.until_tick.saturating_sub(ns);
            self.pass(ns);
            return;
        }
        self.pass(ns / 2);
        self.interrupt();
        self.pass(ns - ns / 2);
    }

    fn interrupt(&mut self) {
        self.ticking = true;
        self.enter(self.number("sysvec_apic_timer_interrupt"), CallKind::Interrupt);
        self.body("sysvec_apic_timer_interrupt");
        let in_user = self.stacks[self.thread].len() == 1;
        self.leave(if in_user { Event::Leave } else { Event::Resume });
        self.ticking = false;
        self.until_tick = 250_000;
    }

    fn body(&mut self, name: &str) {
        let (_, _, net, callees) = CODE[self.number(name) as usize];
        let parts = callees.len() as u64 + 1;
        self.work(net / parts);
        for (callee, chance) in callees {
            if self.dice.percent(*chance) {
                let how = if *callee == "tcp_rcv_established" { CallKind::Jump } else { CallKind::Call };
                self.enter(self.number(callee), CallKind::Call);
                let _ = how;
                self.body(callee);
                self.leave(Event::Exit);
            }
            self.work(net / parts);
        }
        if name == "__schedule" && !self.ticking {
            self.switch();
        }
    }

    fn switch(&mut self) {
        if self.dice.percent(40) {
            let from = self.thread;
            self.to(IDLE_TASK);
            self.enter(self.number("default_idle_call"), CallKind::Call);
            self.work(80);
            let ns = 2_000 + self.dice.below(30_000);
            self.event(Event::Idle { ns });
            self.idle_ns += ns;
            self.work(60);
            self.leave(Event::Exit);
            self.to(from);
        }
    }

    fn to(&mut self, thread: usize) {
        self.event(Event::Switch { thread: thread as u32 });
        self.thread = thread;
    }

    fn syscall(&mut self, name: &str) {
        self.work(400);
        self.enter(self.number("entry_SYSCALL_64"), CallKind::Syscall);
        self.work(20);
        self.enter(self.number("do_syscall_64"), CallKind::Call);
        self.enter(self.number(name), CallKind::Call);
        self.body(name);
        self.leave(Event::Exit);
        self.leave(Event::Exit);
        self.leave(Event::Leave);
    }

    fn operation(&mut self, work: u32) {
        match work {
            0 => {
                self.syscall("__x64_sys_sendto");
                self.syscall("__x64_sys_recvfrom");
            }
            1 => self.syscall("__x64_sys_openat"),
            _ => {
                self.work(300);
                self.enter(self.number("asm_exc_page_fault"), CallKind::Exception);
                self.body("asm_exc_page_fault");
                self.leave(Event::Leave);
            }
        }
        self.work(300);
        self.event(Event::Operation);
        if self.raw.len() > self.chunk_bytes {
            self.end_chunk();
            self.begin_chunk();
        }
    }

    fn finish(mut self) -> SyntheticRun {
        let (trace, chunks) = self.writer.take().unwrap().finish().unwrap();
        let thread =
            |pid, comm: &str| RecordedThread { task: u64::from(pid), pid, tgid: pid, comm: comm.into() };
        let region = |row: &RegionStats| RecordedRegion {
            name: row.name.clone(),
            begin_ns: row.begin_ticks.get(),
            elapsed_ns: row.elapsed_ticks.get(),
            idle_ns: row.idle_ticks.get(),
            operations: row.operations,
            depth: 0,
            closed: true,
            kernel: Default::default(),
            user: Default::default(),
            model_events: Vec::new(),
            cpus: Vec::new(),
        };
        let recording = Recording {
            ran: Vec::new(),
            ran_since_boot: Vec::new(),
            version: VERSION,
            capture: kerntune_trace::CaptureSpec { functions: true, edges: false, weights: false },
            kernel_functions: CODE.len() as u32,
            first_loaded: None,
            cpus: 1,
            per_cpu: Vec::new(),
            regions: self.regions.iter().map(region).collect(),
            threads: vec![thread(231, "client"), thread(232, "server7"), thread(0, "swapper/0")],
            chunks,
            events: self.events,
            health: RecordingHealth::default(),
            notes: vec![],
        };
        let symbol = |(at, code): (usize, &SyntheticFunction)| Symbol {
            function: FunctionIndex(at as u32),
            name: code.0.into(),
            address: Address(0xffff_ffff_8100_0000 + 4096 * at as u64),
            size: 400,
            file: Some(code.1.into()),
            module: None,
        };
        let kernel = KernelId { id: "3f9a".into(), label: "base".into(), version: "6.12.90".into() };
        let mut manifest = Manifest::new("p-synthetic", kernel, "made-up", "emulator");
        manifest.capture =
            CaptureSummary { functions: true, edges: true, model: true, weights: true, ..Default::default() };
        manifest.events = self.events;
        manifest.exact = true;
        for row in &self.regions {
            manifest.elapsed_ticks += row.elapsed_ticks;
            manifest.busy_ticks += row.busy_ticks;
            manifest.idle_ticks += row.idle_ticks;
        }
        let arc = |((region, caller, callee, how), (calls, ns)): ((u32, u32, u32, CallKind), (u64, u64))| {
            let (caller, callee) = (FunctionIndex(caller), FunctionIndex(callee));
            let (ended, elapsed_ns) = (calls, Ticks(ns));
            kerntune_profile::CallArc { region, caller, callee, how, calls, ended, total_ticks: elapsed_ns }
        };
        let bucket =
            |((region, caller, function, bucket), (count, at)): ((u32, u32, u32, u32), (u64, u64))| {
                let (caller, function) = (FunctionIndex(caller), FunctionIndex(function));
                HistogramBucket { region, caller, function, bucket, count, example_ticks: Ticks(at) }
            };
        let tables = Tables {
            functions: self.functions.into_values().collect(),
            symbols: CODE.iter().enumerate().map(symbol).collect(),
            arcs: self.arcs.into_iter().map(arc).collect(),
            histograms: self.histograms.into_iter().map(bucket).collect(),
            paths: self.paths,
            regions: self.regions,
            ..Tables::default()
        };
        SyntheticRun { profile: Profile { manifest, tables }, trace, recording }
    }
}

/// Adds this many small paths below random ones, and functions for them.
pub fn grow(profile: &mut Profile, paths: usize) {
    let mut dice = DeterministicRandom(42);
    let tables = &mut profile.tables;
    let first = tables.symbols.len() as u32;
    for at in 0..4000u32 {
        let symbol = tables.symbols[dice.below(u64::from(first)) as usize].clone();
        let name = format!("{}_part{at}", symbol.name);
        tables.symbols.push(Symbol { function: FunctionIndex(first + at), name, ..symbol });
    }
    for _ in 0..paths {
        // Recent paths are more likely, so that the tree gets deep.
        let n = tables.paths.len() as u64;
        let mut parent = tables.paths[(n - 1 - dice.below(n).min(dice.below(n))) as usize].clone();
        if parent.kind == PathKind::User {
            parent = tables.paths[0].clone();
        }
        let net = 1 + dice.below(40) * dice.below(40) * dice.below(40) / 40;
        tables.paths.push(PathNode {
            path: n as u32,
            parent: parent.path,
            kind: PathKind::Function,
            comm: String::new(),
            function: FunctionIndex(first + dice.below(4000) as u32),
            how: CallKind::Call,
            calls: 1 + net / 50,
            self_ticks: Ticks(net),
            taken_branches: net / 7,
            l1i_misses: dice.below(2) * net / 100,
            itlb_misses: net / 2000,
            ..parent
        });
    }
}

/// Builds the timeline as the command does.
pub fn timeline(run: &SyntheticRun) -> TraceTimeline<'_> {
    let source = run.trace.as_slice();
    let trace = kerntune_analyze::TraceFile::open(&source, &run.recording).unwrap();
    let overview = timeline::overview(&trace, BINS, &mut |_| ControlFlow::Continue(())).unwrap();
    let places = windows(&run.profile, None)
        .into_iter()
        .map(|choice| {
            let detail = timeline::detail(&trace, &choice.window).unwrap();
            TimelinePlace {
                label: choice.label,
                function: choice.function,
                begin: detail.begin,
                end: detail.end,
            }
        })
        .collect();
    let chunks = (0..trace.chunks()).map(|at| ChunkStorage::Here(trace.chunk_bytes(at).unwrap())).collect();
    TraceTimeline { recording: &run.recording, wide: trace.wide, overview, places, chunks }
}
