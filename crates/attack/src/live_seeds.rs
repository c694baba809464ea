//! Seeds for readers of the running kernel's interfaces: real output, or made to look like it.

/// `/proc/kallsyms` of Linux 6.18, with hidden addresses and without.
pub fn kallsyms() -> Vec<Vec<u8>> {
    let shown = "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _text\nffffffff81000010 t __pfx_read\n\
        ffffffff81000020 t read\nffffffff81000020 T __pi_read\nffffffff82000000 T _etext\n\
        ffffffffc0a01000 t nft_do_chain\t[nf_tables]\nffffffffc0b02000 t bpf_prog_6deef7357e7b4530_x\t[bpf]\n";
    let hidden = "0000000000000000 T _text\n0000000000000000 t nft_do_chain\t[nf_tables]\n";
    vec![shown.into(), hidden.into()]
}

/// Samples with a call chain and a tracepoint's bytes, names, ends, losses, code that is loaded and
/// unloaded.
pub fn perf_record() -> Vec<Vec<u8>> {
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
    let record = |kind: u8, holds: u8, mode: u8, body: Vec<u8>| [vec![kind, holds, mode], body].concat();
    let kernel = -128_i64 as u64;
    let user = -512_i64 as u64;
    let thread = 7 | 8 << 32;
    let sample =
        words(&[0xffff_ffff_8100_0010, thread, 77, 1, 5, kernel, 0xffff_ffff_8100_0010, 0x20, user, 0x40]);
    let raw = [sample.clone(), 4_u32.to_ne_bytes().to_vec(), b"abcd".to_vec()].concat();
    let branches = words(&[0x1000, thread, 77, 2, 0x90, 0x200, 2, 0x50, 0x60, 1 << 24]);
    let indexed = words(&[0x1000, thread, 77, 1, u64::MAX, 0, 0, 0]);
    let plain = words(&[0x1000, thread, 77, 2, kernel, 0x1000]);
    let comm = [words(&[thread]), b"redis-server\0\0\0\0".to_vec(), words(&[thread, 78])].concat();
    let symbol = [words(&[0xffff_ffff_c000_0000, 64 | 1 << 32]), b"bpf_prog_1\0".to_vec()].concat();
    vec![
        record(9, 3, 1, raw),
        record(9, 0, 1, branches),
        record(9, 4, 1, indexed),
        record(9, 1, 2, sample),
        record(9, 0, 1, plain),
        record(3, 0, 0, comm),
        record(7, 0, 0, words(&[thread, thread, 5])),
        record(4, 0, 0, words(&[thread, thread, 5])),
        record(2, 0, 0, words(&[1, 99])),
        record(13, 0, 0, words(&[99])),
        record(17, 0, 0, symbol),
    ]
}

/// Events of each tracepoint that is read, with its format of Linux 6.18, and paths of cgroups.
pub fn trace_event() -> Vec<Vec<u8>> {
    let field = |text: &str, at: usize, size: usize| {
        format!("\tfield:{text};\toffset:{at};\tsize:{size};\tsigned:0;\n")
    };
    let switch = [
        field("char prev_comm[16]", 8, 16),
        field("pid_t prev_pid", 24, 4),
        field("long prev_state", 32, 8),
        field("char next_comm[16]", 40, 16),
        field("pid_t next_pid", 56, 4),
    ];
    let event = |path: u8, format: &str, raw: &[u8]| [&[path][..], format.as_bytes(), b"\0", raw].concat();
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
    let comm = *b"redis-server\0\0\0\0";
    let raw = [&words(&[0])[..], &comm, &words(&[7, 1]), &comm, &words(&[8])].concat();
    let (pid, lock) =
        (field("pid_t pid", 24, 4), field("void * lock_addr", 8, 8) + &field("unsigned int flags", 16, 4));
    let call = field("long id", 8, 8) + &field("long ret", 16, 8);
    vec![
        event(0, &switch.concat(), &raw),
        event(1, &pid, &raw),
        event(2, &pid, &raw),
        event(3, &lock, &words(&[0, 0x1000, 0x21])),
        event(4, &lock, &words(&[0, 0x1000, 0])),
        event(5, &call, &words(&[1, 0, 0])),
        event(6, &call, &words(&[1, 0, u64::MAX - 8])),
        event(6, "0::/system.slice/nginx.service\n4:memory:/job\n", b"7654321\0/job\0\0"),
    ]
}

/// `/proc/interrupts`, `/proc/softirqs`, `/proc/stat`, figures of ftrace's function profiler, a
/// list of CPUs.
pub fn proc_counts() -> Vec<Vec<u8>> {
    let interrupts =
        "           CPU0       CPU7       \n 36:          0    8085066 PCI-MSIX-0000:00:02.0   1-edge      \
        virtio1-req.0\nLOC:    6158928    6366656   Local timer interrupts\nERR:          0\n";
    let softirqs = "                    CPU0       CPU7       \n          HI:          0          3\n";
    let stat = "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 5 1 2\nctxt 9\nprocesses 77\n";
    let hits = "  Function      Hit    Time            Avg             s^2\n  --------      ---    ----            ---             ---\n\
        \x20 vfs_read       12    71.000 us       5.916 us        1.000 us\n";
    let maps =
        "7f1c2a028000-7f1c2a17d000 r-xp 00026000 fe:00 1835033                    /usr/lib/libc.so.6\n";
    [interrupts, softirqs, stat, hits, maps, "0-3,8\n"].map(|text| text.as_bytes().to_vec()).to_vec()
}

/// Notes with the text that contains the kernel's address.
pub fn vmcoreinfo() -> Vec<Vec<u8>> {
    let text = b"OSRELEASE=6.18.44\nSYMBOL(_stext)=ffffffff81000000\nKERNELOFFSET=1f000000\n".to_vec();
    let mut notes = Vec::new();
    for (name, body) in [("CORE\0", &b"abcde"[..]), ("VMCOREINFO\0", &text)] {
        for word in [name.len() as u32, body.len() as u32, 0] {
            notes.extend(word.to_le_bytes());
        }
        for bytes in [name.as_bytes(), body] {
            notes.extend(bytes);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
    }
    vec![notes, text]
}

/// Archives of counters, the first as `gcov collect --host` gets it.
pub fn gcov_archive() -> Vec<Vec<u8>> {
    let archive = |members: &[(&str, &[u8])]| {
        let mut archive = tar::Builder::new(Vec::new());
        for (name, bytes) in members {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o600);
            archive.append_data(&mut header, name, *bytes).expect("written to memory");
        }
        archive.into_inner().expect("written to memory")
    };
    let facts: [(&str, &[u8]); 3] =
        [("release", b"6.12.1\n"), ("modules", b"tun 1 0 - Live 0x0\n"), ("notes", b"\x04\0\0\0")];
    let counters: [(&str, &[u8]); 2] =
        [("gcov/proc/self/cwd/kernel/fork.gcda", b"adcg"), ("gcov/w/drivers/net/tun.gcda", b"adcg")];
    vec![archive(&[&facts[..], &counters[..]].concat()), archive(&counters)]
}
