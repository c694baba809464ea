//! The format `order` of `kerntune export`.

use super::{absolute, recorded_kernel, Entry};
use clap::{Args, ValueEnum};
use kerntune_command::{
    entry, CliOutput, Exit, Failure, GlobalOptions, OutputFile, ProfileSubject, RunSubcommand,
};
use kerntune_compare::number::grouped;
use kerntune_convert::link_order::{script_fragment, symbol_order};
use kerntune_kernel::Compiler;
use kerntune_tune::own_build::{order, MakeLine, OrderLinker};
use std::path::PathBuf;

pub const ENTRY: Entry = entry::<_, ExportOrderOptions>("order", 7);

/// Functions in order of use, for the linker of a kernel that you build yourself
/// (docs/own-builds.md)
#[derive(Debug, Args)]
pub struct ExportOrderOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(default_value = "latest")]
    profile: String,
    /// Write to this file [default: order.txt for lld, order.lds for a script]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The form: `lld` for its --symbol-ordering-file, `script` for a part of the linker script of GNU
    /// ld and lld
    #[arg(long, default_value = "lld", value_name = "FORM")]
    form: OrderForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OrderForm {
    Lld,
    Script,
}

impl RunSubcommand<GlobalOptions> for ExportOrderOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        let (linker, default) = match self.form {
            OrderForm::Lld => (OrderLinker::Lld, "order.txt"),
            OrderForm::Script => (OrderLinker::Script, "order.lds"),
        };
        let file = OutputFile::new("--output", self.output.as_deref().unwrap_or(default.as_ref()))?;
        let subject = ProfileSubject::open(global, &self.profile)?;
        let kernel = recorded_kernel(&subject)?;
        let names = order(&subject.work, &subject.profile, &kernel)?;
        let text = match self.form {
            OrderForm::Lld => symbol_order(names.iter().map(String::as_str)),
            OrderForm::Script => script_fragment(names.iter().map(String::as_str)),
        };
        file.write(text.as_bytes())?;
        output.note(&format!("{} functions that ran", grouped(names.len() as u64)));
        let compiler: Compiler = kernel.manifest.cc.parse()?;
        let line = MakeLine::order(&absolute(file.path()), linker, &kernel.manifest.version, &compiler);
        super::note_line(&line, output);
        Ok(Exit::Ok)
    }
}
