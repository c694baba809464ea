//! Kernel linker script with functions in a given order.
//!
//! Kbuild generates `vmlinux.lds` from the source's `vmlinux.lds.S`. kerntune changes the generated
//! file and not the source, so that the same code works for every version, for GNU ld and for lld:
//! make sees a file newer than its prerequisites and leaves it alone.
//!
//! With `-ffunction-sections` each function is in a section `.text.NAME`, or `.text.hot.NAME` and
//! `.text.unlikely.NAME` if the compiler knows. Scripts before 6.13 place these only in builds with
//! LTO; in others they would follow `.text` somewhere, and the kernel hangs at boot. Later scripts
//! place them in all builds, and the cold sections come before the hot ones.
//!
//! Modules are all linked by one script, `scripts/module.lds`. It has no rule for code, so that each
//! section of an object is one of the module; the kernel would load thousands of them.

use crate::FunctionOrder;
use std::collections::HashSet;

/// Symbol at the first byte of the ordered functions.
pub const ORDER_START: &str = "__kerntune_order_start";
/// Symbol behind the last byte of the ordered functions.
pub const ORDER_END: &str = "__kerntune_order_end";

/// Start of the hot sections in `TEXT_TEXT` (`include/asm-generic/vmlinux.lds.h`).
const HOT: &str = "*(.text.hot .text.hot.*)";
/// Last of the cold sections; the remaining sections follow.
const UNKNOWN: &str = "*(.text.unknown .text.unknown.*)";
/// Pattern that kerntune adds for all other functions.
const REST: &str = "*(.text.[0-9a-zA-Z_]*)";
/// Pattern that newer scripts have instead (`TEXT_MAIN`): it leaves out `.text.startup`.
const MAIN: &str = " .text.[_0-9A-Za-df-rt-z]*";

/// Alignment of the ordered functions, so that they share no page with code that does not run.
const PAGE: u32 = 4096;

/// Returns the script with the functions of `order` first, in that order, and all others after
/// them. `script` may already have an order.
///
/// # Errors
/// A message, if the script is not as expected.
pub(crate) fn place(script: &str, order: &FunctionOrder) -> Result<String, String> {
    let script = without_order(script);
    let missing = |what| format!("it has no `{what}`: a kernel of this version cannot be ordered yet");
    let hot = script.find(HOT).ok_or_else(|| missing(HOT))?;
    let unknown = script.find(UNKNOWN).ok_or_else(|| missing(UNKNOWN))? + UNKNOWN.len();
    // Position of the remaining functions: after all sections that have a name of their own.
    let named = unknown.max(hot + HOT.len());
    let mut placed = String::with_capacity(script.len() + order.names().len() * 64);
    placed.push_str(&script[..hot]);
    placed.push_str(&format!(". = ALIGN({PAGE}); {ORDER_START} = .;\n"));
    for name in order.names() {
        if let Some(offset) = order.offset(name) {
            placed.push_str(&format!("  . = MAX(., {ORDER_START} + {offset});\n"));
        }
        // A function that the compiler considers cold is not moved: its section has the same name
        // as the cold part of a hot function.
        placed.push_str(&format!("  *(.text.{name} .text.hot.{name})\n"));
    }
    placed.push_str(&format!("  {ORDER_END} = .; . = ALIGN({PAGE});\n  "));
    placed.push_str(&script[hot..named]);
    let has_place = script[named..].trim_start().starts_with(REST) || script[hot..].contains(MAIN);
    if !has_place {
        placed.push(' ');
        placed.push_str(REST);
    }
    placed.push_str(&script[named..]);
    Ok(placed)
}

/// Beginning of the script of modules, which the rules of [`place_in_modules`] follow.
const SECTIONS: &str = "SECTIONS {";
/// Begin and end of the rules that [`place_in_modules`] adds.
const MODULE_RULES: [&str; 2] = ["/* kerntune: functions in order */", "/* kerntune: end */"];

/// Returns the script of modules with the functions of `order` first in `.text`, and all others
/// after them. `script` may already have an order.
///
/// A function's name stands in the script once, whatever module it is of: static functions of one
/// name in two modules have one place.
///
/// # Errors
/// A message, if the script is not as expected.
pub(crate) fn place_in_modules(script: &str, order: &FunctionOrder) -> Result<String, String> {
    let [begin, end] = MODULE_RULES;
    let script = match (script.find(begin), script.find(end)) {
        (Some(from), Some(to)) if from < to => {
            format!("{}{}", &script[..from], &script[to + end.len()..])
        }
        _ => script.to_string(),
    };
    let at = script.find(SECTIONS).ok_or_else(|| format!("it has no `{SECTIONS}`"))? + SECTIONS.len();
    if script.contains(" .text ") || script.contains("\t.text ") {
        return Err("it places `.text` itself: modules of this version cannot be ordered yet".into());
    }
    let mut seen = HashSet::new();
    let names = order.modules().values().flatten().filter(|name| seen.insert(name.as_str()));
    let places: String = names.map(|name| format!("  *(.text.{name} .text.hot.{name})\n")).collect();
    let rules = format!(
        "{begin}\n .text.unlikely 0 : {{ *(.text.unlikely .text.unlikely.*) }}\n .text 0 : {{\n{places}  {HOT}\n  *(.text) \
         {REST}\n }}\n{end}"
    );
    Ok(format!("{}{rules}{}", &script[..at], &script[at..]))
}

/// Checks whether a script of modules has an order from [`place_in_modules`].
pub(crate) fn is_placed_in_modules(script: &str) -> bool {
    script.contains(MODULE_RULES[0])
}

/// Checks whether a script has an order from [`place`].
pub(crate) fn is_placed(script: &str) -> bool {
    script.contains(ORDER_START)
}

/// Removes the part that [`place`] put before [`HOT`].
fn without_order(script: &str) -> String {
    let begin = format!(". = ALIGN({PAGE}); {ORDER_START}");
    match (script.find(&begin), script.find(HOT)) {
        (Some(from), Some(to)) if from < to => format!("{}{}", &script[..from], &script[to..]),
        _ => script.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str =
        " .text : {\n  _stext = .;\n  . = ALIGN(16); *(.text.hot .text.hot.*) *(.text .text.fixup) \
         *(.text.unlikely .text.unlikely.*) *(.text.unknown .text.unknown.*) . = ALIGN(16);\n }\n";

    #[test]
    fn functions_of_modules_are_placed_in_one_section_and_again_in_another_order() {
        let script = "SECTIONS {\n /DISCARD/ : { *(.discard) }\n .data : { }\n}\n";
        let none = place_in_modules(script, &FunctionOrder::default()).unwrap();
        assert!(none.contains("*(.text) *(.text.[0-9a-zA-Z_]*)") && is_placed_in_modules(&none), "{none}");
        let order = FunctionOrder::parse("x\nb [m]\na [m]\na [n]\n").unwrap();
        let two = place_in_modules(&none, &order).unwrap();
        let (b, a) = (two.find("*(.text.b .text.hot.b)"), two.find("*(.text.a .text.hot.a)"));
        assert!(b.is_some() && b < a && a < two.find(HOT) && !two.contains(".text.x"), "{two}");
        assert_eq!(two.matches("*(.text.a ").count(), 1);
        assert_eq!(place_in_modules(&two, &FunctionOrder::default()).unwrap(), none);
        assert!(place_in_modules(" .text : { *(.text) }", &order).unwrap_err().contains("SECTIONS"));
        assert!(place_in_modules("SECTIONS {\n .text : { *(.text) }", &order)
            .unwrap_err()
            .contains("`.text`"));
    }

    #[test]
    fn functions_are_placed_before_what_is_hot_and_again_in_another_order() {
        let order = |names: &[&str]| FunctionOrder::new(names.iter().map(ToString::to_string)).unwrap();
        let none = place(SCRIPT, &order(&[])).unwrap();
        assert!(none.contains("*(.text.unknown .text.unknown.*) *(.text.[0-9a-zA-Z_]*) . ="), "{none}");
        let two = place(&none, &order(&["b", "a.isra.0"])).unwrap();
        let (b, a) = (two.find("*(.text.b .text.hot.b)"), two.find("*(.text.a.isra.0 .text.hot.a.isra.0)"));
        assert!(b.is_some() && b < a && a < two.find(HOT), "{two}");
        assert_eq!(place(&two, &order(&[])).unwrap(), none, "nothing is left of an order before");
        let far = order(&["b", "a"]).with_offsets([("a".to_string(), 4160)]);
        let far = place(&none, &far).unwrap();
        assert!(
            far.contains(&format!(". = MAX(., {ORDER_START} + 4160);\n  *(.text.a .text.hot.a)")),
            "{far}"
        );
        assert!(is_placed(&two) && !is_placed(SCRIPT));
        // Linux 7.3, abridged.
        let newer = " .text : { _stext = .; . = ALIGN(16); *(.text.unknown .text.unknown.*) *(.text.split .text.split.[0-9a-zA-Z_]*) \
            *(.text.unlikely .text.unlikely.*) . = ALIGN((1 << 12)); *(.text.hot .text.hot.*) \
            *(.text .text.[_0-9A-Za-df-rt-z]* .text.s[_0-9A-Za-su-z]* .text.fixup) *(.ref.text) }\n";
        let none = place(newer, &order(&[])).unwrap();
        assert!(!none.contains(REST) && none.find(UNKNOWN) < none.find(ORDER_START), "{none}");
        let one = place(&none, &order(&["b"])).unwrap();
        assert!(
            one.find(ORDER_START) < one.find("*(.text.b .text.hot.b)")
                && one.contains("*(.text.hot .text.hot.*)")
        );
        assert_eq!(place(&one, &order(&[])).unwrap(), none);
        assert!(place(" .text : { *(.text) }", &order(&[])).unwrap_err().contains("cannot be ordered"));
    }
}
