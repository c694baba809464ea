//! Tests with a module of six functions, of which three call each other.

use super::tests::Fixture;
use super::*;
use crate::RecipeProof;
use kerntune_kernel::Kernel;
use kerntune_profile::{Address, Block, Edge, EdgeKind, FunctionIndex, Instructions, Profile, Symbol};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Address at which the module is loaded, and the distance of its functions there.
const TEXT: u64 = 0xffff_ffff_c040_0000;
const DISTANCE: u64 = 64;

/// Links the module into `kernel` with these functions first.
fn link_module(dir: &Path, kernel: &Kernel, first: &[&str]) {
    let mut source = String::from(
        "static const char info[] __attribute__((used, section(\".modinfo\"))) = \"license=GPL\";\n",
    );
    for i in 0..6 {
        source.push_str(&format!("int sink{i}; void m{i}(int x) {{ sink{i} ^= x; }}\n"));
    }
    let places: String = first.iter().map(|name| format!("*(.text.{name}) ")).collect();
    let script = format!("SECTIONS {{ .text 0 : {{ {places} *(.text .text.*) }} }}\n");
    fs::write(dir.join("m.c"), source).unwrap();
    fs::write(dir.join("m.ld"), script).unwrap();
    let module = kernel.dir.join("lib/modules/6.12.117/kernel/drivers/m.ko");
    fs::create_dir_all(module.parent().unwrap()).unwrap();
    fs::write(kernel.config(), "CONFIG_MODULES=y\n").unwrap();
    let output = Command::new("gcc")
        .current_dir(dir)
        .args(["-O2", "-ffunction-sections", "-nostdlib", "-r", "-Wl,-T,m.ld", "m.c", "-o"])
        .arg(module)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Adds to a recording what `m5` does: it calls `m3`, which calls `m1`.
fn add_calls(recording: &mut Profile) {
    let tables = &mut recording.tables;
    let address = |i: u64| Address(TEXT + i * DISTANCE);
    for i in 0..6 {
        let (function, module) = (FunctionIndex(tables.symbols.len() as u32), Some("m".into()));
        let name = format!("m{i}");
        tables.symbols.push(Symbol { function, name, address: address(i), size: 16, file: None, module });
        if i % 2 == 1 {
            let last = Address(address(i).get() + 4);
            let instructions = Instructions(2);
            tables.blocks.push(Block { start: address(i), last, count: 1_000 * i, instructions, bytes: 8 });
        }
    }
    for (caller, callee) in [(5, 3), (3, 1)] {
        let (source, target) = (Address(address(caller).get() + 4), address(callee));
        tables.edges.push(Edge { source, target, count: 1_000, kind: EdgeKind::Call });
    }
}

#[test]
fn functions_of_a_module_are_ordered_and_its_file_is_asked() {
    let fixture = Fixture::new();
    let mut recording = fixture.recording();
    add_calls(&mut recording);
    let order = |recording: &Profile| {
        prepare_order(&fixture.work, recording, &fixture.movable, DEFAULT_ALGORITHM).unwrap()
    };
    let without = order(&recording);
    assert!(without.order.modules().is_empty(), "the kernel has no such module");
    link_module(fixture.dir.path(), &fixture.movable, &[]);
    let with = order(&recording);
    assert_eq!((with.order.names(), with.id == without.id), (without.order.names(), false));
    assert_eq!(with.order.modules()["m"], ["m5", "m3", "m1"]);
    let summary = OrderedModule { module: "m".into(), ordered: 3, entries: 9_000 };
    assert_eq!(with.summary.modules, [summary]);
    assert_eq!(crate::PreparedResult::load(&with.dir).ok().as_ref(), Some(&with));

    let tuned = fixture.linked("tuned", with.order.names());
    link_module(fixture.dir.path(), &tuned, &["m5", "m3", "m1"]);
    let proof = prove(&fixture.movable, &with, &tuned).unwrap();
    let module = ModuleLayout { module: "m".into(), ordered: 3, in_place: 3, out_of_order: 0 };
    assert_eq!(proof.modules, [module]);
    proof.verdict().unwrap();
    assert!(proof.to_string().contains("module      m: 3 of 3 that ran stand in order"), "{proof}");

    for (first, said) in
        [(&["m1", "m5", "m3"][..], "3 of 3 functions begin"), (&[], "0 of 3 functions begin")]
    {
        link_module(fixture.dir.path(), &tuned, first);
        let refused = prove(&fixture.movable, &with, &tuned).unwrap().verdict().unwrap_err().to_string();
        assert!(refused.contains("module m: ") && refused.contains(said), "{refused}");
    }
}

#[test]
fn calls_of_a_running_kernel_order_modules_too() {
    let fixture = Fixture::new();
    link_module(fixture.dir.path(), &fixture.movable, &[]);
    let mut live = fixture.live(true);
    let before = live.tables.symbols.len() as u32;
    add_calls(&mut live);
    live.tables.blocks.clear();
    live.tables.edges.clear();
    for (caller, callee) in [(5, 3), (3, 1)] {
        let [caller, callee] = [caller, callee].map(|number| FunctionIndex(before + number));
        live.tables.arcs.push(kerntune_profile::CallArc { caller, callee, calls: 10, ..Default::default() });
        live.tables.functions.push(kerntune_profile::FunctionStats {
            function: callee,
            calls: 10,
            ..Default::default()
        });
    }
    let order = prepare_order(&fixture.work, &live, &fixture.movable, DEFAULT_ALGORITHM).unwrap();
    assert_eq!(order.order.modules()["m"], ["m3", "m1"], "m5 was called by nobody");
}
