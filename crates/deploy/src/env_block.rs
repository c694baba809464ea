//! GRUB's environment block: `/boot/grub/grubenv`, 1,024 bytes of variables that GRUB reads, and
//! writes in place, when the machine starts.
//!
//! ```
//! # use kerntune_deploy::EnvBlock;
//! let mut block = EnvBlock::default();
//! block.set("next_entry", "other").unwrap();
//! let read = EnvBlock::read(&block.bytes()).unwrap();
//! assert_eq!(read.get("next_entry"), Some("other"));
//! ```

/// Size of a block in bytes.
pub const BLOCK_BYTES: usize = 1024;
/// Size of a part that a disk writes whole or not at all, in bytes.
const SECTOR_BYTES: usize = 512;
const SIGNATURE: &str = "# GRUB Environment Block\n";

/// Lines of an environment block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnvBlock {
    lines: Vec<EnvLine>,
}

/// Line of a block, in the block's own form.
#[derive(Debug, Clone, PartialEq, Eq)]
enum EnvLine {
    Comment(String),
    Variable { name: String, value: String },
}

impl EnvBlock {
    /// Reads a block.
    ///
    /// # Errors
    /// The reason why GRUB would not take it: another size or signature, or a line without `=`.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() != BLOCK_BYTES {
            return Err(format!("it has {} bytes instead of {BLOCK_BYTES}", bytes.len()));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_string())?;
        let mut rest = text.strip_prefix(SIGNATURE).ok_or("it does not begin as an environment block")?;
        let mut lines = Vec::new();
        while !rest.trim_start_matches('#').is_empty() {
            let end = line_end(rest).ok_or("its last line has no end")?;
            let line = &rest[..end];
            rest = &rest[end + 1..];
            lines.push(match line.split_once('=') {
                _ if line.starts_with('#') => EnvLine::Comment(line.to_string()),
                Some((name, value)) => EnvLine::Variable { name: name.into(), value: unescaped(value) },
                None => return Err("it has a line without `=`".into()),
            });
        }
        Ok(Self { lines })
    }

    /// Returns the value of a variable; an empty value counts as none, as in GRUB's scripts.
    pub fn get(&self, variable: &str) -> Option<&str> {
        let found = self.lines.iter().find_map(|line| match line {
            EnvLine::Variable { name, value } if name == variable => Some(value.as_str()),
            _ => None,
        });
        found.filter(|value| !value.is_empty())
    }

    /// Sets a variable.
    ///
    /// # Errors
    /// The block has no room for it; it is unchanged then.
    pub fn set(&mut self, variable: &str, value: &str) -> Result<(), String> {
        let before = self.clone();
        self.unset(variable);
        self.lines.push(EnvLine::Variable { name: variable.into(), value: value.into() });
        if self.text().len() > BLOCK_BYTES {
            *self = before;
            return Err("it has no room for another variable".into());
        }
        Ok(())
    }

    /// Removes a variable.
    pub fn unset(&mut self, variable: &str) {
        self.lines.retain(|line| !matches!(line, EnvLine::Variable { name, .. } if name == variable));
    }

    /// Returns true if all variables are in the first sector, so that writing the block in place is
    /// atomic: the second sector is the same padding before and after.
    pub fn fits_one_sector(&self) -> bool {
        self.text().len() <= SECTOR_BYTES
    }

    /// Returns the block: the lines, padded with `#` to [`BLOCK_BYTES`].
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.text().into_bytes();
        bytes.resize(BLOCK_BYTES, b'#');
        bytes
    }

    fn text(&self) -> String {
        let mut text = SIGNATURE.to_string();
        for line in &self.lines {
            match line {
                EnvLine::Comment(comment) => text.push_str(comment),
                EnvLine::Variable { name, value } => {
                    text.push_str(name);
                    text.push('=');
                    for c in value.chars() {
                        if matches!(c, '\\' | '\n') {
                            text.push('\\');
                        }
                        text.push(c);
                    }
                }
            }
            text.push('\n');
        }
        text
    }
}

/// Finds the end of the first line; a backslash escapes the character after it.
fn line_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'\n' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

fn unescaped(value: &str) -> String {
    let mut escaped = false;
    let kept = value.chars().filter(|&c| {
        escaped = c == '\\' && !escaped;
        !escaped
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block as `grub-editenv` 2.06 makes it, with `create` and `set saved_entry=… next_entry=b`.
    fn of_grub_editenv() -> Vec<u8> {
        let mut bytes = b"# GRUB Environment Block\nsaved_entry=gnulinux-simple-a>b\nnext_entry=b\n".to_vec();
        bytes.resize(BLOCK_BYTES, b'#');
        bytes
    }

    #[test]
    fn a_block_of_grub_keeps_its_bytes() {
        let block = EnvBlock::read(&of_grub_editenv()).unwrap();
        assert_eq!(
            (block.get("saved_entry"), block.get("next_entry")),
            (Some("gnulinux-simple-a>b"), Some("b"))
        );
        assert!(block.bytes() == of_grub_editenv() && block.fits_one_sector());
        let mut changed = block.clone();
        changed.unset("next_entry");
        assert_eq!(changed.get("next_entry"), None);
        changed.set("next_entry", "b").unwrap();
        assert_eq!(changed, block);
    }

    #[test]
    fn comments_and_escapes_are_kept() {
        let mut bytes = b"# GRUB Environment Block\n# WARNING: Do not edit\na=x\\\\y\\\nz\nempty=\n".to_vec();
        bytes.resize(BLOCK_BYTES, b'#');
        let block = EnvBlock::read(&bytes).unwrap();
        assert_eq!((block.get("a"), block.get("empty")), (Some("x\\y\nz"), None));
        assert!(block.bytes() == bytes);
    }

    #[test]
    fn a_full_block_takes_no_more() {
        let mut block = EnvBlock::default();
        block.set("a", &"x".repeat(900)).unwrap();
        assert!(!block.fits_one_sector());
        let before = block.clone();
        assert!(block.set("b", &"y".repeat(200)).is_err() && block == before);
    }

    #[test]
    fn other_bytes_are_refused() {
        let mut no_equals = b"# GRUB Environment Block\nword\n".to_vec();
        no_equals.resize(BLOCK_BYTES, b'#');
        let mut no_end = b"# GRUB Environment Block\n".to_vec();
        no_end.resize(BLOCK_BYTES, b'a');
        for bytes in [
            vec![],
            vec![0; BLOCK_BYTES],
            vec![b'#'; BLOCK_BYTES],
            vec![0xff; BLOCK_BYTES],
            no_equals,
            no_end,
        ] {
            assert!(EnvBlock::read(&bytes).is_err());
        }
    }
}
