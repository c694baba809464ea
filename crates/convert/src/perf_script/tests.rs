use super::*;

const DEFAULT: &str = "# os release : 6.1.0\n\
    qemu system 15475 [000] 75738.742617:    1001001 cpu-clock: \n\
    \t          8c4b77 [unknown] (/usr/bin/qemu-system-x86_64)\n\
    \t               0 [unknown] ([unknown])\n\n\
    perf-exec 15747 [001] 75738.745610:    1000999 cpu-clock: \n\
    \tffffffff82252e5c xas_load+0xc ([kernel.kallsyms])\n\
    \tffffffff82260566 exc_page_fault+0x176 ([kernel.kallsyms])\n\
    \t          166cc0 operator()(int)+0x0 (/usr/lib/libc.so.6)\n\n\
    swapper     0 [001] 75738.746000:    1000000 cpu-clock: \n\
    \tffffffff82252e5c native_safe_halt+0xc ([kernel.kallsyms])\n\n\
    sh 7/8 [001] 75738.747:    1000000 cpu-clock: \n\
    \tffffffffc0252e5c nft_do_chain+0xc ([nf_tables])\n\
    \tffffffff82252e5c handle_irq+0xc ([kernel.kallsyms])\n\
    \tffffffff82252e5c asm_common_interrupt+0xc ([kernel.kallsyms])\n\
    \tffffffff82252e5c vfs_read+0xc ([kernel.kallsyms])\n";

fn read(text: &str, user_chains: bool) -> Result<PerfScriptImport, PerfScriptError> {
    import(text.as_bytes(), PerfScriptOptions { user_chains, event: None })
}

/// Paths with samples: `root;function;…`.
fn paths(made: PerfScriptImport) -> Vec<String> {
    let tables = made.stacks.finish("x", 1).unwrap();
    let name = |node: &kerntune_profile::PathNode| match node.kind {
        kerntune_profile::PathKind::Thread => node.comm.clone(),
        kerntune_profile::PathKind::Function => {
            let symbol = tables.symbols.iter().find(|symbol| symbol.function == node.function).unwrap();
            symbol.module.iter().fold(symbol.name.clone(), |name, module| format!("{name}@{module}"))
        }
        kind => format!("{kind:?}"),
    };
    let mut found: Vec<String> = Vec::new();
    for node in tables.paths.iter().filter(|node| node.self_ticks.get() > 0) {
        let (mut at, mut names) = (node, vec![name(node)]);
        while at.parent != u32::MAX {
            at = tables.paths.iter().find(|path| path.path == at.parent).unwrap();
            names.push(name(at));
        }
        names.reverse();
        found.push(format!("{} {}", names.join(";"), node.self_ticks.get()));
    }
    found
}

#[test]
fn the_default_output_becomes_stacks() {
    let made = read(DEFAULT, false).unwrap();
    assert_eq!((made.event.as_deref(), made.period, made.cpus), (Some("cpu-clock"), Some(1_000_500), 2));
    assert_eq!(made.release.as_deref(), Some("6.1.0"));
    assert_eq!(
        paths(made),
        [
            "qemu system;User 1",
            "perf-exec;exc_page_fault;xas_load 1",
            "Idle;native_safe_halt 1",
            "Interrupt;asm_common_interrupt;handle_irq;nft_do_chain@nf_tables 1",
        ]
    );
    let made = paths(read(DEFAULT, true).unwrap());
    assert_eq!(made[0], "qemu system;[unknown]@[unknown];[qemu-system-x86_64]@qemu-system-x86_64 1");
    assert_eq!(made[1], "perf-exec;operator()(int)@libc.so.6;exc_page_fault;xas_load 1");
}

#[test]
fn lines_of_chosen_fields_are_read() {
    let text = "       perf-exec 15747  ffffffff82252e5c xas_load\n\
                kworker/0:1 12/12      55778f46bca6 [unknown]\n\
                my app 2 15747 3.5: cycles:k:  ffffffff82252e5c xas_load+0x1 (/lib/modules/x/ext-4.ko.xz)\n";
    let made = import(text.as_bytes(), PerfScriptOptions::default()).unwrap();
    assert_eq!((made.event.as_deref(), made.period), (Some("cycles:k"), None));
    assert_eq!(paths(made), ["perf-exec;xas_load 1", "kworker/0:1;User 1", "my app 2;xas_load@ext_4 1"]);
}

#[test]
fn one_event_is_imported() {
    let text = format!(
        "{DEFAULT}\nsh 7 [001] 75738.747: 5 faults: \n\tffffffff82252e5c f+0xc ([kernel.kallsyms])\n"
    );
    let made = read(&text, false).unwrap();
    assert_eq!((made.stacks.samples(), &made.others), (4, &[("faults".to_string(), 1)].into()));
    let of = |event| import(text.as_bytes(), PerfScriptOptions { event: Some(event), user_chains: false });
    assert_eq!(of("faults").unwrap().stacks.samples(), 1);
    let error = of("cycles").unwrap_err().to_string();
    assert!(error.contains("cpu-clock, faults"), "{error}");
}

#[test]
fn other_texts_are_refused_with_their_line() {
    for (text, words) in [
        ("a;b;c 3\n", "line 1"),
        ("", "no sample"),
        ("# only a comment\n", "no sample"),
        (&format!("{DEFAULT}\nPERF_RECORD_MMAP2 1/1\nnonsense\n"), "line 21"),
        ("\tffffffff82252e5c f+0xc ([kernel.kallsyms])\n", "line 1"),
    ] {
        let error = read(text, false).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}
