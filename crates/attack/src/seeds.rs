//! Seeds for the readers: output of compilers and programs of this host, and of our own writers.

#[path = "../../profile/tests/support/mod.rs"]
mod sample;

use kerntune_convert::perf_data::{PerfDataWriter, WrittenMachine};
use kerntune_profile::{Profile, SCHEMA};
use kerntune_trace::stream::{StreamRecord, MAX_INSN_BYTES};
use kerntune_trace::{
    CaptureSpec, ChunkIndex, ChunkState, EnterKind, ModeCounters, OpenStack, RecordedRegion, RecordedThread,
    Recording, RecordingHealth, TraceHeader, VERSION,
};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::{fs, io};

/// Has every kind of counter that GCC makes of a program of this size.
const PROGRAM: &str = "#include <string.h>\n#include <stdlib.h>\n\
    static int add(int a) { return a + 1; }\nstatic int twice(int a) { return a * 2; }\n\
    int main(int argc, char **argv) {\n  int (*f[2])(int) = { add, twice };\n  int sum = 0;\n  char buf[64];\n\
    for (int i = 0; i < 100; i++) { sum = f[i & argc & 1](sum) / (1 + i % 7);\n    memset(buf, sum, (i & 31) + argc); }\n\
    return sum + buf[0] > 1000000 ? 1 : 0; }\n";

/// A program with two hints, as the patch set `hints` describes them.
const HINTED: &str = ".text\n.globl f\nf: nop\n ret\n.section .rodata\nn: .asciz \"./a.c\"\n\
    .section .debug_sfnames,\"\"\n.quad f, n\n.long 7, 2\n.quad f, n\n.long 8, 1\n";

/// Triggers as the compiler places them, and the mark at their beginning.
const TAGGED: &str =
    ".globl __kt_tags_start\n.section kt_tags,\"a\",@progbits\n__kt_tags_start:\n__kt_tag.f: .byte 0, 0\n\
    __kt_tag.g: .byte 0, 0\n.text\n.type f, @function\nf: testb %al, __kt_tag.f(%rip)\n ret\n.size f, .-f\n";

/// Files from compiling and running the program.
#[derive(Default)]
struct CompiledSeeds {
    gcda: Vec<u8>,
    gcno: Vec<u8>,
    gmon: Vec<u8>,
    /// The program with all its symbols, and stripped.
    programs: Vec<Vec<u8>>,
    /// An object with event tags.
    tagged: Vec<u8>,
    /// A program with outcomes of hints.
    hinted: Vec<u8>,
}

fn made() -> &'static CompiledSeeds {
    static MADE: OnceLock<CompiledSeeds> = OnceLock::new();
    MADE.get_or_init(|| make().unwrap_or_else(|error| panic!("the seeds need gcc: {error}")))
}

fn make() -> io::Result<CompiledSeeds> {
    let dir = tempfile::tempdir()?;
    let here = dir.path();
    fs::write(here.join("p.c"), PROGRAM)?;
    let run = |program: &Path, arguments: &[&str]| -> io::Result<()> {
        let status = Command::new(program).args(arguments).current_dir(here).status()?;
        match status.success() {
            true => Ok(()),
            false => Err(io::Error::other(format!("{} {arguments:?}: {status}", program.display()))),
        }
    };
    let gcc = Path::new("gcc");
    let counted =
        ["-O1", "-fprofile-generate", "-ftest-coverage", "-fprofile-update=single", "-o", "counted"];
    run(gcc, &[&counted[..], &["p.c"]].concat())?;
    run(&here.join("counted"), &[])?;
    run(gcc, &["-pg", "-o", "timed", "p.c"])?;
    run(&here.join("timed"), &[])?;
    run(gcc, &["-O1", "-g", "-Wl,--build-id", "-o", "plain", "p.c"])?;
    run(gcc, &["-O1", "-s", "-o", "stripped", "p.c"])?;
    run(gcc, &["-O1", "-c", "-o", "object.o", "p.c"])?;
    let mut made = CompiledSeeds { gmon: fs::read(here.join("gmon.out"))?, ..CompiledSeeds::default() };
    for entry in fs::read_dir(here)? {
        let path = entry?.path();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("gcda") => made.gcda = fs::read(path)?,
            Some("gcno") => made.gcno = fs::read(path)?,
            _ => {}
        }
    }
    fs::write(here.join("tagged.s"), TAGGED)?;
    run(gcc, &["-c", "-o", "tagged.o", "tagged.s"])?;
    made.tagged = fs::read(here.join("tagged.o"))?;
    fs::write(here.join("hinted.s"), HINTED)?;
    run(gcc, &["-nostdlib", "-static", "-no-pie", "-Wl,-ef", "-o", "hinted", "hinted.s"])?;
    made.hinted = fs::read(here.join("hinted"))?;
    for name in ["plain", "stripped", "object.o"] {
        made.programs.push(fs::read(here.join(name))?);
    }
    Ok(made)
}

pub fn gcda() -> Vec<Vec<u8>> {
    vec![made().gcda.clone()]
}

pub fn gcno() -> Vec<Vec<u8>> {
    vec![made().gcno.clone()]
}

pub fn gmon() -> Vec<Vec<u8>> {
    vec![made().gmon.clone()]
}

pub fn kgmon() -> Vec<Vec<u8>> {
    use kerntune_kgmon::{CallSiteCount, KgmonDump, ModuleRange, SampleCount};
    let module = |name: &str| ModuleRange { name: name.into(), start: 1, end: 2, gone: false };
    let dump = KgmonDump {
        counting: true,
        release: "6.12.117-kt".into(),
        text: Some((0x1000, 0x2000)),
        arcs: (1..9)
            .map(|at| CallSiteCount { caller: at * 64, callee: at * 128, calls: at << (at * 7) })
            .collect(),
        samples: (1..9).map(|at| SampleCount { ip: at * 16, count: at }).collect(),
        modules: vec![module("veth"), module("ext4")],
        ..KgmonDump::default()
    };
    vec![KgmonDump::default().to_bytes(), dump.to_bytes()]
}

pub fn elf() -> Vec<Vec<u8>> {
    made().programs.clone()
}

/// Whole files, and notes as a kernel shows them.
pub fn build_id() -> Vec<Vec<u8>> {
    let mut notes = Vec::new();
    for (kind, text) in [(0x100u32, &b"Linux\0"[..]), (3, b"GNU\0")] {
        notes.extend([text.len() as u32, 20, kind].map(u32::to_le_bytes).concat());
        notes.extend(text);
        notes.resize(notes.len().next_multiple_of(4), 0);
        notes.extend([0xab; 20]);
    }
    [elf(), vec![notes]].concat()
}

/// Two functions, one of three blocks and one without, and one in two pieces; maps of versions 3 to
/// 5 with the ends of calls, and with hashes of blocks.
pub fn block_map() -> Vec<Vec<u8>> {
    let mut plain = vec![2, 0];
    plain.extend(0xffff_ffff_8100_0000u64.to_le_bytes());
    plain.extend([3, 0, 0, 16, 8, 3, 2, 0x80, 1, 1, 1, 0, 0, 8, 2, 0]);
    plain.extend(0xffff_ffff_8100_0200u64.to_le_bytes());
    plain.push(0);
    let mut pieces = vec![2, 8, 2];
    pieces.extend(0x1000u64.to_le_bytes());
    pieces.extend([1, 0, 0, 4, 0]);
    pieces.extend(0x9000u64.to_le_bytes());
    pieces.extend([1, 5, 0, 7, 1]);
    let called = |head: &[u8], hash: &[u8]| {
        let mut map = [head, &0x1000u64.to_le_bytes(), &[2, 0, 0, 2, 3, 4, 5, 8], hash].concat();
        map.extend([1, 1, 0, 6, 1]);
        map.extend(hash);
        map
    };
    let hash = [0x5a; 8];
    vec![plain, pieces, called(&[3, 0x20], &[]), called(&[4, 0x60], &hash), called(&[5, 0x60, 0], &hash)]
}

/// Files of `perf record -b`: in a file, and through a pipe. Others are those that perf itself
/// recorded here, compressed ones among them.
pub fn perf_data() -> Vec<Vec<u8>> {
    let written = |is_pipe, has_index| {
        let text_at = 0xffff_ffff_8100_0000;
        let mut writer = PerfDataWriter::new(WrittenMachine {
            hostname: "box".into(),
            release: "6.12.1".into(),
            build_id: [7; 20],
            text_at,
            cpus: 2,
            is_pipe,
            has_index,
            ..WrittenMachine::default()
        });
        writer.sample(0, &[(text_at + 0x90, text_at + 0x200, 2), (text_at + 0x50, text_at + 0x60, 1 << 24)]);
        writer.sample(1, &[(text_at + 0x90, text_at + 0x200, 2), (0, 0, 0)]);
        writer.to_bytes()
    };
    let mut all =
        vec![written(false, false), written(false, true), written(true, false), written(true, true)];
    for packed in [
        &include_bytes!("../../live/tests/perf_data/dwarf.data.zst")[..],
        include_bytes!("../../live/tests/perf_data/packed.data.zst"),
        include_bytes!("../../live/tests/perf_data/pipe.data.zst"),
    ] {
        all.extend(zstd::decode_all(packed));
    }
    all
}

pub fn perf_text() -> Vec<Vec<u8>> {
    vec![b"# os release : 6.12.117\n# nrcpus online : 4\n\
        \x20swapper 0 [000] 0.0: PERF_RECORD_MMAP -1/0: [0xffffffff9a000000(0x1000000) @ 0xffffffff9a000000]: x [kernel.kallsyms]_text\n\
        \x20[002]  ffffffff9a000190  0x30/0x60/P/-/-/7  0x10/0x20/M/-/-/0\n [000]\n        ffffffff9a000190\n\
        \x200x30/0x60/P/-/-/0 0x50/0x40/P/-/-/0\n3\n 0 0x30/0x60/P/-/-/0 0x10/0x20/P/-/-/0 0x0/0x8/P/-/-/0\n\n"
        .to_vec()]
}

pub fn autofdo_text() -> Vec<Vec<u8>> {
    vec![b"work:224000:100\n 0: 100\n 0.3: 2500 leaf:2500\n 0.512: 2500\n 65532: 100\n 0.4: small:32500\n  0: 2500\n  \
        0.1: 0\n  3: deeper:7\n   1: 7000\n !CFGChecksum: 4711\nleaf:0:2500\nns::odd:12:3\n 1: 12\n"
        .to_vec()]
}

/// A chunk's state and events, and the beginning of a trace.
pub fn chunk() -> Vec<Vec<u8>> {
    let frames = vec![(1, EnterKind::Call), (2, EnterKind::Call)];
    let stacks = vec![OpenStack { thread: 1, running: true, frames }];
    let mut state = Vec::new();
    ChunkState { user: false, regions: vec![0], stacks, ..ChunkState::default() }.write(&mut state);
    let mut events = Vec::new();
    for number in 0..40 {
        let event = match number % 3 {
            0 => kerntune_trace::Event::Enter { function: number, how: EnterKind::Call },
            1 => kerntune_trace::Event::Idle { ns: 1_000 },
            _ => kerntune_trace::Event::Operation,
        };
        kerntune_trace::encode::event(&mut events, u64::from(number) * 100, event);
    }
    let file = kerntune_trace::TraceFileWriter::new(Vec::new(), TraceHeader { wide: false });
    let file = file.and_then(|writer| writer.finish()).map(|(bytes, _)| bytes).unwrap_or_default();
    vec![state, events, file]
}

/// Flags, a damaged place, and events.
pub fn trace_file() -> Vec<Vec<u8>> {
    let events = chunk().swap_remove(1);
    [[0u8, 0], [1, 0], [4, 7], [7, 99]].map(|head| [&head[..], events.as_slice()].concat()).to_vec()
}

/// A names file and a dump, in records and in text.
pub fn mcrae() -> Vec<Vec<u8>> {
    let names = "a/2\nb/4\nc/6\nswtch/8!\nother/10!\np/12=\n";
    let records: Vec<u8> = (0..60u32)
        .flat_map(|at| {
            let tag = [2, 4, 5, 3, 6, 7, 8, 9, 12][at as usize % 9];
            let time = (at * 37).to_le_bytes();
            [tag, 0, time[0], time[1], time[2]]
        })
        .collect();
    let text = "2 10\n4 12\n5 20\n3 40 # out of a\n";
    vec![
        [names.as_bytes(), b"\0", records.as_slice()].concat(),
        [names.as_bytes(), b"\0", text.as_bytes()].concat(),
        records,
    ]
}

/// Tags from a serial line: records, text, pairs of bytes, and wide tags in all three.
pub fn mcrae_stream() -> Vec<Vec<u8>> {
    let records = [[0x58, 0x02, 1, 0, 0], [0x59, 0x02, 0xff, 0, 0]].concat();
    let wide = [[0, 0, 1, 1, 0, 0, 0, 0], [1, 0, 1, 9, 0, 0, 0, 1]].concat();
    let wide_text = b"65536 1\n0x10001 0x1ffffffff\n".to_vec();
    let pairs = vec![0x84, 88, 0x84, 89, 5];
    vec![records, b"600 1\n0x259 255 # out\n".to_vec(), pairs, wide, wide_text, vec![0x84, 0, 1]]
}

/// An object with triggers that the compiler placed, and the mark at their beginning.
pub fn triggers() -> Vec<Vec<u8>> {
    vec![made().tagged.clone()]
}

/// Outcomes of two hints.
pub fn hints() -> Vec<Vec<u8>> {
    vec![made().hinted.clone()]
}

/// A small profile with rows in all tables.
pub fn example_profile() -> Profile {
    sample::sample("attack")
}

/// Each table's file, preceded by the number of the table.
pub fn profile() -> Vec<Vec<u8>> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    example_profile().save(dir.path()).expect("the example is written");
    let file = |(at, table): (usize, &kerntune_profile::TableSchema)| {
        let bytes = fs::read(dir.path().join(format!("{}.parquet", table.name))).ok()?;
        Some([&[at as u8][..], &bytes].concat())
    };
    SCHEMA.iter().enumerate().filter_map(file).collect()
}

pub fn workload() -> Vec<Vec<u8>> {
    let shipped = kerntune_guest::SHIPPED.iter().map(|(_, text)| text.as_bytes().to_vec());
    shipped.chain([include_bytes!("../../guest/fixtures/every-key.toml").to_vec()]).collect()
}

pub fn grub_env() -> Vec<Vec<u8>> {
    let mut full = kerntune_deploy::EnvBlock::default();
    for (name, value) in [("saved_entry", "a>b"), ("next_entry", "memtest"), ("escaped", "a\\b\nc")] {
        full.set(name, value).expect("there is room");
    }
    vec![kerntune_deploy::EnvBlock::default().bytes(), full.bytes()]
}

pub fn guard() -> Vec<Vec<u8>> {
    let file = "source = \"debian:6.12\"\ngit = \"linux\"\ncompilers = [\"gcc\", \"clang-19\"]\n[tolerance]\npath = 0.01\nput_off = 20\n\
        [[configuration]]\nname = \"hz\"\nfragments = [\"a.config\"]\nset = [\"CONFIG_HZ_100=y\"]\n[[workload]]\nname = \"rr\"\n\
        rows = [\"pipe_rr\"]\nscale = 4\n[[row]]\nworkload = \"rr\"\nname = \"pipe_rr\"\nleast = 1.5\n";
    let baseline = "{\"schema\":\"kerntune-guard/1\",\"subject\":{\"what\":\"kernel base\"},\"cells\":[{\"configuration\":\"\",\"compiler\":\"\",\
        \"workload\":\"rr\",\"kernel\":{\"id\":\"a\",\"label\":\"b\",\"version\":\"6\",\"compiler\":\"gcc\"},\"making\":\"m\",\"profile\":\"p\",\
        \"rows\":[{\"row\":\"pipe_rr\",\"operations\":10,\"kernel_instructions\":100,\"put_off\":{\"timer\":7}}]}]}";
    let source = "static int\nsend(struct sock *sk)\n{\n\tlock(sk);\n\treturn 0;\n}\n\nSYSCALL_DEFINE1(send, int, fd)\n{\n}\n";
    let program = "{\"schema\":\"kerntune-guard-program/1\",\"cells\":[{\"workload\":\"w\",\"kernel\":{\"id\":\"a\",\"label\":\"b\",\
        \"version\":\"6\",\"compiler\":\"gcc\"},\"inputs\":{\"machine\":\"m\",\"workload\":\"w\",\"code\":\"c\",\"programs\":[\"/p\"],\"files\":{\"/f\":\"1\"}},\
        \"profile\":\"p\",\"rows\":[{\"row\":\"r\",\"operations\":10,\"kernel_instructions\":100,\"user_instructions\":7,\"functions\":{\"f\":7},\
        \"system_calls\":[{\"name\":\"read\",\"caller\":\"f\",\"calls\":3,\"instructions\":90}],\
        \"page_faults\":[{\"kind\":\"memory\",\"caller\":\"f\",\"faults\":1,\"instructions\":10}]}]}]}";
    [file, baseline, program, source].map(|text| text.as_bytes().to_vec()).into()
}

pub fn model() -> Vec<Vec<u8>> {
    vec![
        include_bytes!("../../../data/cpu-models/zen4.toml").to_vec(),
        include_bytes!("../../../data/cpu-models/generic.toml").to_vec(),
    ]
}

pub fn paper() -> Vec<Vec<u8>> {
    vec![
        include_bytes!("../../../data/papers/hpux.toml").to_vec(),
        b"[[exclude]]\npath = \"arch/x86/boot\"\nreason = \"runs before\"\nfrom = \"6.1\"\n".to_vec(),
    ]
}

pub fn bench_results() -> Vec<Vec<u8>> {
    vec![include_bytes!("../../stats/tests/fixtures/results.json").to_vec()]
}

pub fn json_manifests() -> Vec<Vec<u8>> {
    let profile = serde_json::to_vec_pretty(&example_profile().manifest);
    let region = RecordedRegion {
        name: "all".into(),
        begin_ns: 0,
        elapsed_ns: 100,
        idle_ns: 0,
        operations: 0,
        depth: 0,
        closed: true,
        kernel: ModeCounters::default(),
        user: ModeCounters::default(),
        model_events: Vec::new(),
        cpus: Vec::new(),
    };
    let recording = Recording {
        ran: Vec::new(),
        ran_since_boot: Vec::new(),
        version: VERSION,
        capture: CaptureSpec { functions: true, edges: false, weights: false },
        kernel_functions: 8,
        first_loaded: None,
        cpus: 1,
        per_cpu: Vec::new(),
        regions: vec![region],
        threads: vec![RecordedThread { task: 1, pid: 1, tgid: 1, comm: "init".into() }],
        chunks: Vec::<ChunkIndex>::new(),
        events: 0,
        health: RecordingHealth::default(),
        notes: vec!["a note".into()],
    };
    let image = br#"{"schema":"kerntune.guest/1","id":"1","workload":"rr","files":[{"path":"/init","size":9}],"bytes":512}"#;
    vec![
        profile.expect("a manifest is JSON"),
        serde_json::to_vec(&recording).expect("a recording is JSON"),
        include_bytes!("../seeds/kernel.json").to_vec(),
        image.to_vec(),
    ]
}

pub fn matrix() -> Vec<Vec<u8>> {
    let file = "workloads = [\"rr\"]\nrecipes = [\"none\", \"gcc-pgo\"]\n[[kernel]]\nsource = \"debian:6.12\"\n\
        [[kernel]]\ntree = \"linux\"\ncommits = [\"a..b\"]\n[[configuration]]\nname = \"x\"\nset = [\"CONFIG_X=y\"]\n\
        [[command]]\nname = \"c\"\narguments = [\"paper\"]\ncores = \"one\"\n";
    let plan = r#"{"schema":"kerntune-matrix-plan/2","name":"p","code":"c","model":"generic","model_text":"","workloads":{"rr":null},
        "texts":{},"tasks":[{"id":"t1","title":"build","what":{"kind":"build","source":{"named":"debian:6.12"},"patches":[],
        "config":null,"fragments":[],"set":[],"compiler":"gcc","kcflags":[],"label":"k"},"needs":[],"inputs":[["does","build"]]},
        {"id":"t2","title":"measure","what":{"kind":"measure","kernel":{"of":"t1"},"workload":"rr","run":"measured"},"needs":["t1"],
        "inputs":[]}],"cells":[{"kernel":"k","configuration":"-","compiler":"gcc","recipe":"none","workload":"rr","task":"t2"}]}"#;
    let claim = r#"{"schema":"kerntune-claim/1","holder":{"host":"h","inside":"b","process":"1@2"},"state":"working","beat":3}"#;
    let figures = r#"{"schema":"kerntune-cell/2","task":"t","kernel":"k","workload":"rr","run":"measured","model":"generic",
        "operations":[{"operation":"a","operations":1,"counts":{"path_length":7}}],"total":{"operation":"total","operations":1,"counts":{}}}"#;
    let answers = "ok\t3\nabcnone\ntaken\nerror\tno\n";
    let sealed = [claim, figures].map(|text| {
        let value: serde_json::Value = serde_json::from_str(text).expect("a seed is JSON");
        kerntune_work::seal_bytes(&value).expect("a value is JSON")
    });
    let plain = [file, plan, claim, figures, answers].map(|text| text.as_bytes().to_vec());
    plain.into_iter().chain(sealed).collect()
}

pub fn names() -> Vec<Vec<u8>> {
    let plain = [
        "0123456789abcdef",
        "base-gcc-pgo+layout-rr",
        "patches/6.12/01-fix.patch",
        "two words.txt",
        "../victim",
        "a//b",
    ];
    let hashes = ["0123456789abcdef".repeat(4), "0123456789".repeat(4)];
    plain.map(Vec::from).into_iter().chain(hashes.map(String::into_bytes)).collect()
}

pub fn sealed() -> Vec<Vec<u8>> {
    let value = serde_json::json!({"schema": "kerntune-plan/3", "results": {"build": "kernels/0123"}, "files": {"proof.json": 1.5}});
    vec![kerntune_work::seal_bytes(&value).expect("a value is JSON")]
}

/// `kernel.json`, the release of the image, and the configuration.
pub fn package() -> Vec<Vec<u8>> {
    let json: &[u8] = include_bytes!("../seeds/kernel.json");
    let texts: [&[u8]; 2] = [b"6.12.117-kt", b"CONFIG_MODULES=y\nCONFIG_BLK_DEV_INITRD=y\n"];
    vec![[json, texts[0], texts[1]].join(&0)]
}

pub fn function_order() -> Vec<Vec<u8>> {
    vec![b"# mine\nvfs_write\ntcp_v4_rcv\n\nvfs_read\n".to_vec()]
}

pub fn kernel_config() -> Vec<Vec<u8>> {
    vec![
        b"# a comment\nCONFIG_NET=y\n# CONFIG_SMP is not set\nCONFIG_LOCALVERSION=\"-x\"\nCONFIG_HZ=250\n".to_vec(),
        b"savedcmd_arch/x86/kernel/asm-offsets.s := gcc -Wp,-MMD,x.d -DA=\"$(pound)\" -S -o x.s ../asm-offsets.c\n".to_vec(),
        b"\t.ascii \"->KERNTUNE_pid $1234 x\"\n\t.ascii \"->KERNTUNE_tgid $1238 x\"\n\t.ascii \"->KERNTUNE_comm $1800 x\"\n"
            .to_vec(),
        b"# kerntune sources 1\n100\tnet/a.c\n200\t-\n300\tnet/b.c\n".to_vec(),
    ]
}

pub fn console() -> Vec<Vec<u8>> {
    vec![b"[    0.1] Linux version 6.12\r\nkt: phase boot\r\nkt: phase measured step 1 rr\r\n\x1b[2Jhello\r\n\
        [    1.0] Out of memory: Killed process 77\r\n[    1.1] Kernel panic - not syncing: Attempted to kill init!\r\n\
        kt: failed service redis: not ready\r\nkt: done\r\n[    2.0] reboot: Power down\r\n"
        .to_vec()]
}

pub fn discovered_files() -> Vec<Vec<u8>> {
    vec![b"hidden /mnt: Invalid argument\nl /usr/bin/sh\nx /usr/bin/sh\nr /a\\x20b\\x5c\\xff\nw /tmp/made\nd /srv\n\
        s /run/made\n- /etc/shadow\nexit 3\n"
        .to_vec()]
}

pub fn step_output() -> Vec<Vec<u8>> {
    vec![b"Document Length:        4 bytes\n\nConcurrency Level:      100\nComplete requests:      1000\n\
        Failed requests:        0\nRequests per second:    4672.92 [#/sec] (mean)\n"
        .to_vec()]
}

/// The archive with the files that a guest sends.
pub fn results() -> Vec<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, text) in [("gcov/work/kernel/fork.gcda", "counters"), ("./status", "done"), ("out/1", "x")] {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, text.as_bytes()).expect("written into memory");
    }
    vec![builder.into_inner().expect("written into memory")]
}

pub fn suite_lines() -> Vec<Vec<u8>> {
    vec![b"{\"row\":\"getpid\",\"operations\":4,\"nanoseconds\":100}\n{\"row\":\"nop\",\"iteration\":1,\"operations\":1,\
        \"nanoseconds\":1,\"counters\":{\"cycles\":10},\"uncounted\":{\"l1i_misses\":\"No such file or directory\"}}\n"
        .to_vec()]
}

pub fn tool_output() -> Vec<Vec<u8>> {
    vec![
        b"BOLT-INFO: setting --alt-inst-has-padlen=0\nBOLT-INFO: setting --alt-inst-feature-size=4\n\
          BOLT-WARNING: do_it(*2) size exceeds allocated space by 24 bytes\nBOLT-INFO: 12 out of 900 functions in the binary (1%) have\n\
          BOLT-INFO: 3 out of 12 functions were overwritten.\n"
            .to_vec(),
        b"../net/a.c:10:5: warning: '/k/build/net/a.gcda' profile count data file not found [-Wmissing-profile]\n\
          ../net/b.c:1:1: error: coverage mismatch; ../net/c.c:3:1: optimized: indirect call f -> g transformed\n\
          warning: net/d.c: profile data may be out of date: of 1 function, 1 has mismatched data\n"
            .to_vec(),
    ]
}

/// Records of a stream of instructions.
pub fn instructions() -> Vec<Vec<u8>> {
    let code = |number, address, code: &[u8]| {
        let mut bytes = [0; MAX_INSN_BYTES];
        bytes[..code.len()].copy_from_slice(code);
        StreamRecord::Instruction { number, address, length: code.len() as u8, bytes }
    };
    let steps = [
        code(0, 0xffff_ffff_8100_0000, &[0x48, 0x8b, 0x07]),
        code(1, 0xffff_ffff_8100_0003, &[0x75, 0xfb]),
        StreamRecord::Execute(0),
        StreamRecord::Read(0x7000),
        StreamRecord::Write(0x7008),
        StreamRecord::Execute(1),
        StreamRecord::Execute(0),
        StreamRecord::End { instructions: 3 },
    ];
    let mut records = Vec::new();
    for step in steps {
        step.write(&mut records).expect("memory");
    }
    vec![records]
}
