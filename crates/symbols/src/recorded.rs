//! Kernels of recordings, which may have run elsewhere or at another boot.

use crate::running::anchors_of;
use crate::{slide, FunctionTable, Kallsyms, KernelSymbol, Result, RunningKernel};
use kerntune_kernel::Kernel;

/// Place of a kernel's image in memory: a symbol, `_text` or `_stext`, and its address.
pub type ImagePlace<'a> = (&'a str, u64);

impl RunningKernel {
    /// Takes functions from a kernel of the work directory, whose image was at `place` while it ran.
    /// Modules have no names there.
    ///
    /// # Errors
    /// The symbols of the kernel cannot be read.
    pub fn of_kernel(kernel: &Kernel, place: Option<ImagePlace<'_>>) -> Result<Self> {
        let symbols = kernel.symbols()?;
        let symbol =
            |name: &str, address| KernelSymbol { address, name: name.into(), is_global: true, module: None };
        let mut all: Vec<KernelSymbol> =
            symbols.functions().iter().map(|function| symbol(&function.name, function.address)).collect();
        for anchor in ["_text", "_stext", "_etext"] {
            all.extend(symbols.address_of(anchor).map(|address| symbol(anchor, address)));
        }
        let manifest = &kernel.manifest;
        let mut found = Self {
            anchors: anchors_of(&all),
            table: FunctionTable::new(all),
            release: manifest.version.clone(),
            build_id: kernel.build_id()?,
            slide: Some(0),
            image: Some(kernel.vmlinux()),
            sources: vec![format!("names: kernel {} of this work directory", manifest.label)],
            ..Self::default()
        };
        found.place_at(place);
        found.take_files(&symbols);
        Ok(found)
    }

    /// Takes functions from a `System.map` or a copy of `/proc/kallsyms`, for an image at `place`.
    ///
    /// # Errors
    /// A text without symbols, or with hidden addresses.
    pub fn of_list(text: &[u8], origin: &str, place: Option<ImagePlace<'_>>) -> Result<Self> {
        let list = Kallsyms::parse(text, origin)?;
        let mut found = Self { sources: vec![format!("names: {origin}")], ..Self::default() };
        if list.malformed_lines > 0 {
            found.notes.push(format!("{} lines of {origin} were not understood", list.malformed_lines));
        }
        found.anchors = anchors_of(&list.symbols);
        found.table = FunctionTable::new(list.symbols);
        let text_at = found.anchors.iter().find(|(name, _)| name == "_text").map(|(_, address)| *address);
        found.slide = text_at.and_then(|text| slide::of_text(text, None));
        found.place_at(place);
        Ok(found)
    }

    /// Moves the image to `place`, where it was at another boot (KASLR). Names of modules are lost
    /// if it moves.
    pub fn place_at(&mut self, place: Option<ImagePlace<'_>>) {
        let Some((symbol, address)) = place else {
            self.notes.push("the recording does not say where the kernel was in memory".into());
            return;
        };
        let Some((_, listed)) = self.anchors.iter().find(|(name, _)| name == symbol) else {
            self.notes.push(format!("the list of symbols has no {symbol}, which says where the kernel was"));
            return;
        };
        let by = address.wrapping_sub(*listed);
        if by == 0 {
            return;
        }
        let modules = self.table.move_image(by);
        self.anchors.iter_mut().for_each(|(_, at)| *at = at.wrapping_add(by));
        self.slide = self.slide.map(|slide| slide.wrapping_add(by));
        self.sources.push(format!("the kernel ran at {address:#x} ({symbol})"));
        if modules > 0 {
            self.notes.push(format!(
                "the kernel was elsewhere in memory than in the list of symbols: {modules} functions of modules have no address"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] = b"ffffffff81000000 T _text\nffffffff81000010 T a\nffffffff81000040 t b\n\
        ffffffffc0000000 t in_module\t[m]\n";

    fn name(kernel: &RunningKernel, address: u64) -> Option<&str> {
        kernel.table.lookup(address).map(|at| kernel.table.functions()[at as usize].name.as_str())
    }

    #[test]
    fn a_list_is_moved_to_where_the_kernel_ran() {
        let here = RunningKernel::of_list(LIST, "x", Some(("_text", 0xffff_ffff_8100_0000))).unwrap();
        assert_eq!(name(&here, 0xffff_ffff_8100_0011), Some("a"));
        assert_eq!(name(&here, 0xffff_ffff_c000_0001), Some("in_module"));
        assert_eq!(here.slide, Some(0));
        let moved = RunningKernel::of_list(LIST, "x", Some(("_text", 0xffff_ffff_9a00_0000))).unwrap();
        assert_eq!(name(&moved, 0xffff_ffff_9a00_0011), Some("a"));
        assert_eq!((name(&moved, 0xffff_ffff_8100_0011), name(&moved, 0xffff_ffff_c000_0001)), (None, None));
        assert_eq!(moved.slide, Some(0x1900_0000));
        let function = &moved.table.functions()[moved.table.lookup(0xffff_ffff_9a00_0011).unwrap() as usize];
        assert_eq!(moved.linked(function), 0xffff_ffff_8100_0010);
        assert!(RunningKernel::of_list(LIST, "x", None).unwrap().notes[0].contains("does not say"));
    }
}
