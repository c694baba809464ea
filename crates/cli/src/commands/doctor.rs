//! The command `kerntune doctor`.

use clap::Args;
use kerntune_command::{
    command, work_to_read, CliOutput, CommandEntry, Exit, Failure, FormatOptions, GlobalOptions,
    RunSubcommand,
};
use kerntune_kernel::Arch;

pub const COMMAND: CommandEntry = command::<DoctorOptions>("doctor", 10, "");

/// Show what this machine has and lacks, and the commands that install missing tools
#[derive(Debug, Args)]
pub struct DoctorOptions {
    #[command(flatten)]
    pub format: FormatOptions,
}

impl RunSubcommand<GlobalOptions> for DoctorOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        // The work directory is only read, not created: doctor works outside of any project.
        let kernels =
            work_to_read(global).ok().and_then(|work| kerntune_kernel::list(&work).ok()).unwrap_or_default();
        let newest = |arch| {
            kernels.iter().rfind(|kernel| kernel.manifest.arch == arch).map(kerntune_kernel::Kernel::image)
        };
        let report = kerntune_doctor::examine(&kerntune_doctor::ExamineOptions {
            recorder: kerntune_machine::find_recorder().ok(),
            kernel: newest(Arch::X86_64),
            uml: newest(Arch::Um),
            work_dir: global.work_dir(),
        });
        if self.format.json {
            output.json(&report);
        } else {
            output.print(&report.text(output.style().color));
        }
        Ok(if report.is_ready() { Exit::Ok } else { Exit::Missing })
    }
}
