//! Promoted indirect calls in a linked x86-64 image.
//!
//! GCC compiles a promoted call to `cmp $usual_target, %reg`, a branch, and the usual target's body
//! or a direct call of it. Comparisons in the source (callbacks that are told apart) are in the
//! base kernel as well, as often as its function was inlined. Therefore only targets count that the
//! base kernel compares with nowhere.

use crate::Result;
use iced_x86::{Code, ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, OpKind};
use kerntune_debuginfo::{Elf, MappedFile};
use kerntune_kernel::Symbols;
use kerntune_work::IoContext;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// Most instructions between the comparison and its branch: moves that the compiler put there.
const MAX_INSTRUCTIONS_BETWEEN: usize = 3;

/// Places of one image that compare with a function's address and branch, in the order of sections
/// and addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TargetComparisons {
    pub places: Vec<DirectSite>,
}

/// Place that compares with a function's address and branches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectSite {
    /// Address of the comparison.
    pub address: u64,
    /// Function that contains the comparison.
    pub function: String,
    /// Function whose address is compared.
    pub target: String,
    /// Code after a successful comparison.
    pub then: PromotedCallForm,
}

/// Code for the usual target of a promoted call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromotedCallForm {
    /// Direct call or jump to the target in the same function.
    Called,
    /// No such call: the target is inlined.
    Inlined,
}

impl std::fmt::Display for PromotedCallForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PromotedCallForm::Called => "called directly",
            PromotedCallForm::Inlined => "inlined",
        })
    }
}

impl TargetComparisons {
    /// Disassembles the functions of an image; `None` if it is not for x86-64.
    pub(super) fn of(vmlinux: &Path, symbols: &Symbols) -> Result<Option<Self>> {
        let bytes = MappedFile::open(vmlinux).at("read", vmlinux)?;
        let Some(elf) = Elf::parse_any(&bytes).ok().filter(Elf::is_x86_64) else { return Ok(None) };
        let mut found = Self::default();
        for section in elf.code_sections().unwrap_or_default() {
            found.section(section.data, section.start, symbols);
        }
        Ok(Some(found))
    }

    /// Returns the places whose target `base` compares with nowhere.
    pub fn not_in(&self, base: &Self) -> Vec<DirectSite> {
        let known: BTreeSet<&str> = base.places.iter().map(|place| place.target.as_str()).collect();
        self.places.iter().filter(|place| !known.contains(place.target.as_str())).cloned().collect()
    }

    /// Searches all functions of one section.
    fn section(&mut self, code: &[u8], start: u64, symbols: &Symbols) {
        let functions = symbols.functions();
        let entries: HashMap<u64, &str> = functions.iter().map(|f| (f.address, f.name.as_str())).collect();
        let end = start.saturating_add(code.len() as u64);
        for function in functions.iter().filter(|f| f.size > 0 && f.address >= start && f.end() <= end) {
            let Some(body) = slice(code, function.address - start, function.size) else { continue };
            let body: Vec<Instruction> =
                Decoder::with_ip(64, body, function.address, DecoderOptions::NONE).iter().collect();
            for (at, instruction) in body.iter().enumerate() {
                let Some(target) = compared(instruction) else { continue };
                let Some(name) = entries.get(&target) else { continue };
                let next = body.iter().skip(at + 1).take(MAX_INSTRUCTIONS_BETWEEN + 1);
                if !next.into_iter().any(asks_whether_equal) {
                    continue;
                }
                let called = body.iter().any(|i| is_direct(i) && i.near_branch_target() == target);
                self.places.push(DirectSite {
                    address: instruction.ip(),
                    function: function.name.clone(),
                    target: (*name).to_string(),
                    then: if called { PromotedCallForm::Called } else { PromotedCallForm::Inlined },
                });
            }
        }
    }
}

/// Returns the constant operand of a 64-bit comparison.
fn compared(instruction: &Instruction) -> Option<u64> {
    let wide = [Code::Cmp_rm64_imm32, Code::Cmp_RAX_imm32].contains(&instruction.code());
    (wide && instruction.op1_kind() == OpKind::Immediate32to64).then(|| instruction.immediate(1))
}

fn asks_whether_equal(instruction: &Instruction) -> bool {
    instruction.flow_control() == FlowControl::ConditionalBranch
        && matches!(instruction.condition_code(), ConditionCode::e | ConditionCode::ne)
}

fn is_direct(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::Call | FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
    )
}

fn slice(code: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let from = usize::try_from(offset).ok()?;
    code.get(from..from.checked_add(usize::try_from(size).ok()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerntune_convert::gcda::{summarize, Gcda};
    use std::fs;
    use std::process::Command;

    const PROGRAM: &str = "typedef int (*F)(int);\n\
        __attribute__((noinline)) static int big(int x) { for (int i = 0; i < x % 5; i++) x ^= i * x; return x; }\n\
        static int small(int x) { return x * 3 + 1; }\n\
        __attribute__((noipa)) int to_big(F f, int x) { return f(x) + 1; }\n\
        __attribute__((noipa)) int to_small(F f, int x) { return f(x) + 2; }\n\
        __attribute__((noipa)) unsigned divide(unsigned a, unsigned b) { return a / b; }\n\
        F fs[] = { big, small };\n\
        int main(void) { unsigned s = 0; for (int i = 0; i < 100000; i++) { s += to_big(fs[i % 50 == 0], i);\n\
        s += to_small(fs[i % 50 != 0], i) + divide(i, 1000); } return s == 1; }\n";

    fn gcc(dir: &Path, args: &[&str]) -> String {
        let output = Command::new("gcc").env("LC_ALL", "C").current_dir(dir).args(args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said
    }

    /// Compiled like the kernel: addresses are constants.
    fn build(dir: &Path, flags: &[&str]) -> (TargetComparisons, String) {
        let common = ["-O2", "-fno-pie", "-c", "p.c", "-o", "p.o"];
        let said = gcc(dir, &[flags, &common].concat());
        gcc(dir, &["-no-pie", "p.o", "-o", "p", "--coverage"]);
        let symbols = Symbols::load(&dir.join("p")).unwrap();
        (TargetComparisons::of(&dir.join("p"), &symbols).unwrap().unwrap(), said)
    }

    #[test]
    fn what_gcc_makes_of_usual_targets_is_seen_and_called_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        fs::write(dir.join("p.c"), PROGRAM).unwrap();
        let (base, _) = build(dir, &[]);
        build(dir, &["-fprofile-arcs", "-ftest-coverage", "-fprofile-values"]);
        assert!(Command::new(dir.join("p")).current_dir(dir).status().unwrap().success());
        let mut profile = Gcda::parse(&fs::read(dir.join("p.gcda")).unwrap()).unwrap();
        profile.set_summary(1, summarize([&profile]).sum_max);
        fs::write(dir.join("p.gcda"), profile.to_bytes()).unwrap();

        let (tuned, said) = build(dir, &["-fprofile-use", "-fopt-info-optimized-ipa"]);
        let expected =
            [("to_big", "big", PromotedCallForm::Called), ("to_small", "small", PromotedCallForm::Inlined)];
        let direct = tuned.not_in(&base);
        let mut found: Vec<_> = direct.iter().map(|p| (&*p.function, &*p.target, p.then)).collect();
        found.sort_by_key(|(function, ..)| *function);
        assert_eq!(found, expected, "{tuned:?}");
        assert!(tuned.not_in(&tuned).is_empty());
        let log = super::super::build_log::GccLog::parse(&said, "/");
        assert!(log.transformed.calls >= 2 && log.transformed.divisions == 1, "{said}");
    }
}
