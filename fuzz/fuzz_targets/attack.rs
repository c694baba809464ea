//! libFuzzer entry for the target of `kerntune_attack` that `KERNTUNE_ATTACK_TARGET` names; without
//! the variable, prints the names.
//!
//! One program serves all targets, so that only one is linked.
#![no_main]

use kerntune_attack::{target, targets, AttackTarget};
use std::path::Path;
use std::sync::OnceLock;

static TARGET: OnceLock<AttackTarget> = OnceLock::new();

/// Chooses the target, and writes its seeds into the corpus: the first argument that is a
/// directory.
fn prepare() {
    let Ok(name) = std::env::var("KERNTUNE_ATTACK_TARGET") else {
        targets().iter().for_each(|target| println!("{}", target.name));
        std::process::exit(0);
    };
    let target = target(&name).unwrap_or_else(|| panic!("there is no target {name}"));
    if let Some(corpus) = std::env::args().skip(1).find(|argument| Path::new(argument).is_dir()) {
        for (number, seed) in (target.seeds)().iter().enumerate() {
            let path = Path::new(&corpus).join(format!("seed-{number}"));
            std::fs::write(&path, seed).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
    TARGET.get_or_init(|| target);
}

libfuzzer_sys::fuzz_target!(init: prepare(), |bytes: &[u8]| {
    if let Some(target) = TARGET.get() {
        (target.run)(bytes);
    }
});
