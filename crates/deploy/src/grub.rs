//! GRUB: the entry in `custom.cfg`, which the menu of Debian's GRUB reads, and checks that GRUB can
//! start an entry once.
//!
//! `custom.cfg` is used instead of `/etc/grub.d`, because it needs no `update-grub`: one renamed
//! file adds the entry, and `grub.cfg` stays as it is.

use crate::facts::MachineFacts;
use crate::{Error, Result};

/// Id of our entry.
pub(crate) const ENTRY: &str = "kerntune-deploy";
/// GRUB's variable that names the entry of the next start, which GRUB then clears.
pub(crate) const NEXT: &str = "next_entry";
const BEGIN: &str = "# kerntune deploy: begin";
const END: &str = "# kerntune deploy: end";
/// Line that only a confirmed entry has.
const DEFAULT: &str = "    set default=\"kerntune-deploy\"";
/// File systems that GRUB writes to by block lists without harm.
const WRITABLE: &[&str] = &["ext2", "fat", "xfs"];

/// Kernels of an entry, with paths as GRUB sees them.
#[derive(Debug, Clone)]
pub(crate) struct GrubEntry {
    /// Title in the menu.
    pub title: String,
    /// Commands that make `root` the file system of `/boot`.
    pub find_root: String,
    /// The new kernel and its RAM disk.
    pub new: [String; 2],
    /// The old kernel and its RAM disk.
    pub old: [String; 2],
    /// Command line of the old kernel, quoted for GRUB.
    pub old_line: String,
}

impl GrubEntry {
    /// Returns our part of `custom.cfg`. `new_line` is the new kernel's command line, quoted for
    /// GRUB. The entry starts the old kernel if the new one cannot be read. An entry that is not
    /// confirmed also does so if GRUB did not manage to clear [`NEXT`].
    pub fn block(&self, new_line: &str, confirmed: bool) -> String {
        let Self { title, find_root, new, old, old_line } = self;
        let default = if confirmed {
            format!("if [ -z \"${{boot_once}}\" ]; then\n{DEFAULT}\nfi\n")
        } else {
            String::new()
        };
        // Reads the block again: what is still set there could not be cleared.
        let condition = if confirmed {
            "    set kerntune_next=\n"
        } else {
            "    load_env\n    set kerntune_next=\"${next_entry}\"\n    set next_entry=\n"
        };
        let once = if confirmed { "" } else { " (once)" };
        format!(
            "{BEGIN}\n\
             {default}\
             menuentry '{title}{once}' --id {ENTRY} {{\n\
             {find_root}{condition}    \
                 set kerntune_old=1\n    \
                 if [ -z \"${{kerntune_next}}\" ]; then\n        \
                     if linux {} {new_line}; then\n            \
                         if initrd {}; then\n                \
                             set kerntune_old=\n            \
                         fi\n        \
                     fi\n    \
                 fi\n    \
                 if [ -n \"${{kerntune_old}}\" ]; then\n        \
                     echo 'kerntune: starting the old kernel'\n        \
                     linux {} {old_line}\n        \
                     initrd {}\n    \
                 fi\n\
             }}\n\
             {END}\n",
            new[0], new[1], old[0], old[1]
        )
    }
}

/// Removes our part from the content of `custom.cfg`.
pub(crate) fn without_block(custom: &[u8]) -> Vec<u8> {
    let mut inside = false;
    let mut kept = Vec::new();
    for line in custom.split_inclusive(|&byte| byte == b'\n') {
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        inside |= bare == BEGIN.as_bytes();
        if !inside {
            kept.extend_from_slice(line);
        }
        inside &= bare != END.as_bytes();
    }
    kept
}

/// Returns whether `custom.cfg` makes our entry the default.
pub(crate) fn is_default(custom: &[u8]) -> bool {
    custom.split(|&byte| byte == b'\n').any(|line| line == DEFAULT.as_bytes())
}

/// Quotes one word of a command line for GRUB's scripts.
///
/// # Errors
/// A word with quotes, backslashes or control characters, which GRUB would pass on changed.
pub(crate) fn word(word: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,@%+-".contains(c);
    if word.chars().all(plain) {
        return Ok(word.into());
    }
    if word.chars().any(|c| matches!(c, '\'' | '"' | '\\') || c.is_control() || c.is_whitespace()) {
        let word = word.escape_debug();
        return Err(format!("GRUB cannot pass `{word}` of a kernel's command line on unchanged"));
    }
    Ok(format!("'{word}'"))
}

/// Checks that GRUB starts an entry once on this machine, and returns the commands that find the
/// file system of `/boot`.
///
/// # Errors
/// [`Error::Unsafe`] with the reason.
pub(crate) fn check(facts: &MachineFacts) -> Result<String> {
    let refuse = |reason: String| Error::Unsafe { host: facts.host.clone(), reason };
    let yes = |key: &str| facts.get(key) == "yes";
    if !yes("grub_cfg") {
        return Err(refuse(
            "there is no /boot/grub/grub.cfg, and kerntune can start a kernel once by GRUB only".into(),
        ));
    }
    if !yes("grub_next") {
        return Err(refuse(format!(
            "/boot/grub/grub.cfg does not clear `{NEXT}`, so an entry cannot be started once: `update-grub` makes one \
             that does"
        )));
    }
    if !yes("grub_custom") {
        return Err(refuse(
            "/boot/grub/grub.cfg does not read custom.cfg: `update-grub` with /etc/grub.d/41_custom makes one that does"
                .into(),
        ));
    }
    if yes("env_link") || yes("custom_link") {
        return Err(refuse(
            "/boot/grub/grubenv or custom.cfg is a symbolic link, which GRUB cannot write".into(),
        ));
    }
    let file_system = facts.get("grub_fs");
    if !WRITABLE.contains(&file_system) {
        let found = if file_system.is_empty() { "(unknown: is grub-probe installed?)" } else { file_system };
        return Err(refuse(format!(
            "GRUB cannot write its environment block on the file system of /boot/grub, {found}: it would start the new \
             kernel again and again"
        )));
    }
    if !facts.get("grub_abstraction").trim().is_empty() {
        return Err(refuse(format!(
            "/boot/grub lies on {}, where GRUB cannot write its environment block: it would start the new kernel again \
             and again",
            facts.get("grub_abstraction").trim()
        )));
    }
    let uuid = facts.get("grub_uuid");
    if uuid.is_empty() || !uuid.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
        return Err(refuse("grub-probe does not know the UUID of the file system of /boot".into()));
    }
    let mut text = String::new();
    let module = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let maps = facts.get("grub_partmap").split_whitespace().map(|map| format!("part_{map}"));
    for name in maps.chain([file_system.to_string()]).filter(|name| module(name)) {
        text.push_str(&format!("    insmod {name}\n"));
    }
    Ok(format!("{text}    search --no-floppy --fs-uuid --set=root {uuid}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> GrubEntry {
        GrubEntry {
            title: "kerntune: 6.12".into(),
            find_root: "    search --no-floppy --fs-uuid --set=root ab-12\n".into(),
            new: ["/boot/kerntune-deploy/vmlinuz".into(), "/boot/kerntune-deploy/initrd.img".into()],
            old: ["/boot/vmlinuz-6.1".into(), "/boot/initrd.img-6.1".into()],
            old_line: "root=UUID=ab-12 ro".into(),
        }
    }

    #[test]
    fn the_users_lines_are_kept() {
        for (users, confirmed) in [("", false), ("set x=1\n", true), ("menuentry 'a' { true }\n# end", false)]
        {
            let block = entry().block("root=UUID=ab-12 panic=10", confirmed);
            let whole = format!("{block}{users}");
            assert_eq!(without_block(whole.as_bytes()), users.as_bytes());
            assert_eq!(is_default(whole.as_bytes()), confirmed);
        }
    }

    #[test]
    fn an_entry_that_is_not_confirmed_reads_the_environment_again() {
        let block = entry().block("panic=10", false);
        assert!(block.contains("load_env\n") && block.contains("(once)"), "{block}");
        assert!(block.contains("linux /boot/vmlinuz-6.1 root=UUID=ab-12 ro\n"), "{block}");
        assert!(!entry().block("panic=10", true).contains("load_env"));
    }

    #[test]
    fn words_mean_nothing_to_grub() {
        assert_eq!(word("root=UUID=ab-12").unwrap(), "root=UUID=ab-12");
        assert_eq!(word("a=$(x);{y}*").unwrap(), "'a=$(x);{y}*'");
        for bad in ["a='b'", "dyndbg=\"x", "a\\b", "a\nb", "a b"] {
            assert!(word(bad).is_err(), "{bad:?}");
        }
    }
}
