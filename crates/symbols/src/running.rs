//! The running kernel.

use crate::{hidden, image, slide, Error, FunctionTable, Kallsyms, KernelFunction, KernelSymbol, Result};
use kerntune_kernel::known_sources::{anchors, by_name, infer, InferredDirectories, ANCHORS_OF};
use kerntune_kernel::{Kernel, Symbols};
use kerntune_work::WorkDir;
use std::fs;
use std::path::{Path, PathBuf};

/// Functions of the running kernel, with the origin of their names.
#[derive(Debug, Clone, Default)]
pub struct RunningKernel {
    /// Functions at the addresses at which they run.
    pub table: FunctionTable,
    /// `uname -r`.
    pub release: String,
    /// The linker's build id in hexadecimal digits; `None` if the kernel does not tell it.
    pub build_id: Option<String>,
    /// Difference between running and linked addresses (KASLR); `None` if unknown.
    pub slide: Option<u64>,
    /// Addresses of `_text` and `_stext` in the list of symbols, as far as it has them.
    pub anchors: Vec<(String, u64)>,
    /// The image with symbols, if it was found.
    pub image: Option<PathBuf>,
    /// Origins of names and files, for the user.
    pub sources: Vec<String>,
    /// Missing or uncertain facts, for the user.
    pub notes: Vec<String>,
}

/// The kernel's list of symbols.
const KALLSYMS: &str = "/proc/kallsyms";

impl RunningKernel {
    /// Like [`find`](Self::find), with the help of a work directory: one of its kernels may be the
    /// running one. Without an image, source files are taken by function name from the kernel with
    /// the nearest version. Also returns the running kernel if the work directory has it.
    ///
    /// # Errors
    /// As [`find`](Self::find), or the work directory cannot be listed.
    pub fn find_in(work: &WorkDir) -> Result<(Self, Option<Kernel>)> {
        let own = kerntune_kernel::find_running(work)?;
        let known: Vec<PathBuf> = own.iter().map(Kernel::vmlinux).collect();
        let mut found = Self::find(&known)?;
        if let Some(own) = &own {
            found.take_files(&own.symbols()?);
            found.sources.push(format!("source files: kernel {} of this work directory", own.manifest.label));
        } else if found.table.functions().iter().all(|function| function.file.is_none()) {
            let mut kernels = kerntune_kernel::list(work)?;
            kernels.sort_by_key(|kernel: &Kernel| {
                (distance(&kernel.manifest.version, &found.release), kernel.manifest.id.clone())
            });
            let taken = kernels.iter().find_map(|kernel| {
                let symbols = kernel.symbols().ok()?;
                let pairs =
                    symbols.functions().iter().filter_map(|f| Some((f.name.as_str(), f.file.as_deref()?)));
                let pairs: Vec<_> = pairs.filter(|(_, file)| file.contains('/')).collect();
                let origin = format!("kernel {} ({})", kernel.manifest.label, kernel.manifest.version);
                (!pairs.is_empty()).then(|| found.take_files_by_name(pairs, &origin))
            });
            if taken.is_none() {
                found.take_files_by_name(anchors(), ANCHORS_OF);
            }
            found.notes.push(
                "no image of this kernel was found: source files are inferred from names and from the order of the \
                 code; `?` is a file of which only the directory is known"
                    .into(),
            );
        }
        Ok((found, own))
    }

    /// Finds the symbols of this machine's kernel. Images in `known` are tried first.
    ///
    /// # Errors
    /// [`Error::Hidden`], [`Error::Read`], [`Error::NoSymbols`]: without names there is no profile.
    pub fn find(known: &[PathBuf]) -> Result<Self> {
        let path = Path::new(KALLSYMS);
        let text = fs::read(path).map_err(|source| Error::Read { path: path.into(), source })?;
        let list = match Kallsyms::parse(&text, KALLSYMS) {
            Err(Error::Hidden { .. }) => None,
            list => Some(list?),
        };
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string();
        let build_id = kerntune_kernel::running_build_id();
        let mut found = Self { release, build_id, ..Self::default() };
        let mut places = known.to_vec();
        places.extend(image::places(Path::new("/"), &found.release, found.build_id.as_deref()));
        let (image, notes) = image::find(&places, found.build_id.as_deref());
        found.notes.extend(notes);
        let symbols = image.as_deref().map(Symbols::load).transpose()?;
        let linked = symbols.as_ref().and_then(|symbols| symbols.address_of("_text"));
        let note = slide::note_of_kcore(Path::new("/proc/kcore"));
        // Names of an image without a note are taken only where nothing moved the kernel.
        let hidden_slide = (list.is_none() && note.is_none()).then_some(0);
        let names = match list {
            Some(list) => {
                found.sources.push(format!("names: {KALLSYMS}"));
                if list.malformed_lines > 0 {
                    let lines = list.malformed_lines;
                    found.notes.push(format!("{lines} lines of {KALLSYMS} were not understood"));
                }
                list.symbols
            }
            None => {
                let maps = hidden::maps(Path::new("/"), &found.release);
                let command_line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
                let of_image = image.as_deref().zip(symbols.as_ref());
                let names = hidden::names(of_image, note.as_deref(), &command_line, &maps)
                    .map_err(|why| Error::NoNames { origin: KALLSYMS.into(), why })?;
                found.sources.push(format!("names: {}", names.origin));
                found.notes.push(format!(
                    "{KALLSYMS} shows no addresses (kernel.kptr_restrict): code of modules and BPF programs has no names"
                ));
                names.symbols
            }
        };
        found.anchors = anchors_of(&names);
        let text_at = names.iter().find(|symbol| symbol.name == "_text" && symbol.module.is_none());
        let text_at = text_at.map(|symbol| symbol.address);
        found.table = FunctionTable::new(names);
        found.slide = note
            .as_deref()
            .and_then(slide::slide_in_vmcoreinfo)
            .or(hidden_slide)
            .or_else(|| slide::of_text(text_at?, linked))
            .filter(|slide| text_at.is_none_or(|text| *slide <= text));
        match found.slide {
            Some(0) | None => {}
            Some(slide) => {
                found.sources.push(format!("the kernel runs {slide:#x} above where it was linked (KASLR)"))
            }
        }
        if found.slide.is_none() {
            found.notes.push(
                "where the kernel was linked is not known: addresses are those at which it runs".into(),
            );
        }
        if let (Some(path), Some(symbols)) = (image, symbols) {
            found.take_files(&symbols);
            found.sources.push(format!("image: {}", path.display()));
            found.image = Some(path);
        }
        Ok(found)
    }

    /// Takes the source files from an image's symbol table.
    pub(crate) fn take_files(&mut self, symbols: &Symbols) {
        let slide = self.slide.unwrap_or(0);
        let of_image = |function: &KernelFunction| {
            let linked = function.address.checked_sub(slide).filter(|_| function.module.is_none())?;
            symbols.functions()[symbols.lookup(linked)?].file.clone()
        };
        self.table.set_files(of_image);
    }

    /// Takes source files from another kernel, given as pairs of a function's name and its file;
    /// other functions get a directory from the link order. Returns the number of functions that
    /// got one.
    pub fn take_files_by_name<'a>(
        &mut self,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
        origin: &str,
    ) -> usize {
        let functions = self.table.functions();
        let names = functions.iter().map(|f| f.module.is_none().then_some(f.name.as_str()));
        let mut files = by_name(names, pairs);
        let named = files.iter().flatten().count();
        let mut order: Vec<usize> =
            (0..functions.len()).filter(|at| functions[*at].module.is_none()).collect();
        order.sort_by_key(|at| functions[*at].address);
        let mut sorted: Vec<Option<String>> = order.iter().map(|at| files[*at].take()).collect();
        let InferredDirectories { functions: inferred, checked, right } = infer(&mut sorted);
        order.into_iter().zip(sorted).for_each(|(at, file)| files[at] = file);
        self.table.set_files_in_order(&mut files.into_iter());
        if named > 0 {
            self.sources.push(format!(
                "source files: {named} functions by their names, from {origin}; directories: {inferred} by the order of the \
                 code ({:.1} % of {checked} that are known by name agree)",
                100.0 * right as f64 / checked.max(1) as f64
            ));
        }
        named + inferred
    }

    /// Returns the address of a function in the image; if that is unknown, the address at which it
    /// runs.
    pub fn linked(&self, function: &KernelFunction) -> u64 {
        match (&function.module, self.slide) {
            (None, Some(slide)) => function.address.saturating_sub(slide),
            _ => function.address,
        }
    }
}

/// Returns the addresses of the symbols by which a kernel's place in memory is known.
pub(crate) fn anchors_of(symbols: &[KernelSymbol]) -> Vec<(String, u64)> {
    let of_image = symbols.iter().filter(|symbol| symbol.module.is_none());
    let anchors = of_image.filter(|symbol| matches!(symbol.name.as_str(), "_text" | "_stext"));
    anchors.map(|symbol| (symbol.name.clone(), symbol.address)).collect()
}

/// Returns the distance of two versions: differences of their numbers, the first one being the most
/// significant.
fn distance(a: &str, b: &str) -> [u64; 3] {
    let numbers = |version: &str| {
        let mut parts =
            version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u64>().unwrap_or(0));
        [parts.next(), parts.next(), parts.next()].map(Option::unwrap_or_default)
    };
    let (a, b) = (numbers(a), numbers(b));
    [0, 1, 2].map(|at| a[at].abs_diff(b[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(names: &[&str]) -> RunningKernel {
        let symbol = |(at, name): (usize, &&str)| KernelSymbol {
            address: 0x1000 + 16 * at as u64,
            name: (*name).into(),
            is_global: true,
            module: None,
        };
        RunningKernel {
            table: FunctionTable::new(names.iter().enumerate().map(symbol).collect()),
            ..RunningKernel::default()
        }
    }

    #[test]
    fn files_by_name_are_taken_where_they_are_certain() {
        let mut found = running(&["tcp_ack", "show", "tcp_ack.isra.0", "other"]);
        let pairs = [("tcp_ack", "net/ipv4/tcp_input.c"), ("show", "a/b.c"), ("show", "a/c.c")];
        assert_eq!(found.take_files_by_name(pairs, "kernel x"), 3);
        let files: Vec<_> = found.table.functions().iter().map(|f| f.file.as_deref()).collect();
        let tcp = Some("net/ipv4/tcp_input.c");
        // A name in two files has none; a function between two of a directory gets the directory.
        assert_eq!(files, [tcp, Some("net/ipv4/?"), tcp, None]);
    }

    #[test]
    fn the_nearest_version_is_the_one_whose_first_numbers_agree() {
        let mut versions = ["6.12.90", "6.1.200", "7.3.4", "6.18.44-fc"];
        versions.sort_by_key(|version| distance(version, "6.18.44-fc-v657"));
        assert_eq!(versions, ["6.18.44-fc", "6.12.90", "6.1.200", "7.3.4"]);
    }

    #[test]
    fn this_kernel_is_found_or_says_why_not() {
        match RunningKernel::find(&[]) {
            Ok(found) => {
                assert!(!found.release.is_empty() && found.table.functions().len() > 1000);
                let schedule = found.table.functions().iter().find(|f| f.name == "schedule").unwrap();
                let at = found.table.lookup(schedule.address + 1).unwrap();
                assert_eq!(found.table.functions()[at as usize].name, "schedule");
            }
            Err(error) => assert!(matches!(error, Error::Hidden { .. } | Error::Read { .. }), "{error}"),
        }
    }
}
