//! A guest with several CPUs. No recorder: it knows one. What has to be counted is known from what the guest did.

use crate::bench::{Bench, RR};
use kerntune_kgmon::Dump;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub struct Smp {
    directory: tempfile::TempDir,
}

impl Smp {
    /// Boots the kernel with four CPUs and runs the steps.
    pub fn run(bench: &Bench, steps: &str) -> Self {
        let image = bench.image(RR, steps);
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let (console, stream) = (at("console.log"), at("out.tar"));
        let status = Command::new("qemu-system-x86_64")
            .args([
                "-accel",
                "tcg",
                "-cpu",
                "max,-rdrand,-rdseed",
                "-smp",
                "4,sockets=4",
                "-m",
                "1024",
                "-nographic",
                "-no-reboot",
            ])
            .args([
                "-nodefaults",
                "-icount",
                "shift=0,sleep=off",
                "-rtc",
                "base=2026-01-01,clock=vm",
                "-seed",
                "1",
            ])
            .arg("-kernel")
            .arg(bench.kernel.image())
            .arg("-initrd")
            .arg(&image.initramfs)
            .args([
                "-append",
                "console=ttyS0 tsc=reliable clocksource=tsc mitigations=off panic=-1 kt.run=measured",
            ])
            .args(["-serial", &format!("file:{}", console.display())])
            .args(["-serial", &format!("file:{}", stream.display())])
            .stdin(Stdio::null())
            .status()
            .unwrap();
        let said = std::fs::read_to_string(&console).unwrap_or_default();
        assert!(status.success() && said.contains("kt: done"), "{said}");
        for bad in ["WARNING:", "BUG:", "Oops", "Call Trace"] {
            assert!(!said.contains(bad), "{said}");
        }
        let tar = Command::new("tar").args(["-xf", "out.tar"]).current_dir(&directory).status().unwrap();
        assert!(tar.success());
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn dump(&self, name: &str) -> Dump {
        Dump::read(&std::fs::read(self.path(name)).unwrap()).unwrap()
    }
}

/// Functions of a kernel with modules by name, from `/proc/kallsyms`: the first of a name, with where it ends.
pub fn places(kallsyms: &str) -> BTreeMap<String, (u64, u64)> {
    let mut symbols: Vec<(u64, &str)> = kallsyms
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            matches!(words.next()?, "t" | "T").then_some((address, words.next()?))
        })
        .collect();
    symbols.sort_unstable();
    let mut places = BTreeMap::new();
    for (at, &(address, name)) in symbols.iter().enumerate() {
        let end = symbols[at..].iter().map(|next| next.0).find(|&next| next > address);
        places.entry(name.to_string()).or_insert((address, end.unwrap_or(address + 4096)));
    }
    places
}

/// Calls of a function, by all callers or by one.
pub fn calls(dump: &Dump, places: &BTreeMap<String, (u64, u64)>, caller: Option<&str>, callee: &str) -> u64 {
    let within = |address: u64, name: &str| {
        let (start, end) = places[name];
        (start..end).contains(&address)
    };
    let arcs = dump.arcs.iter().filter(|arc| within(arc.callee, callee));
    arcs.filter(|arc| caller.is_none_or(|caller| within(arc.caller - 1, caller))).map(|arc| arc.calls).sum()
}
