//! The command `kerntune view`: serves the page of a profile of any size to a browser on this
//! machine; with `--tui` it shows the profile in the terminal.

mod answer;
mod connection;
mod request;
mod server;
mod terminal;

use crate::page::{run_files, WRITTEN};
use answer::ProfileServer;
use clap::Args;
use kerntune_command::{
    command, CliOutput, CommandEntry, Exit, Failure, GlobalOptions, ProfileSubject, RunSubcommand,
};
use kerntune_profile::{find, Profile};
use kerntune_report::html::profile::{PageAnswers, ProfilePage};
use kerntune_work::interrupt;
use server::HttpServer;

pub const COMMAND: CommandEntry = command::<ViewOptions>("view", 70, "");

/// Show a profile of any size in a browser on this machine, or in the terminal (docs/html.md)
#[derive(Debug, Args)]
pub struct ViewOptions {
    /// Beginning of an id, directory, `latest`, `latest~1` (the one before), or
    /// `latest:workload=rr,kernel=base` (docs/profiler.md)
    #[arg(value_name = "PROFILE", default_value = "latest")]
    pub profile: String,
    /// Show it in the terminal: call tree, functions, paths, difference
    #[arg(long)]
    pub tui: bool,
    /// Show only events in the regions of this name
    #[arg(long, value_name = "NAME")]
    pub region: Option<String>,
    /// Show also this profile, and the difference between both
    #[arg(long, value_name = "PROFILE")]
    pub against: Option<String>,
    /// Listen on this port of 127.0.0.1; 0 picks a free one
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "tui")]
    pub port: u16,
}

impl RunSubcommand<GlobalOptions> for ViewOptions {
    fn run(&self, global: &GlobalOptions, output: &CliOutput) -> Result<Exit, Failure> {
        if self.tui {
            return terminal::run(global, self);
        }
        let of = ProfileSubject::open(global, &self.profile)?;
        let against = match &self.against {
            Some(name) => Some(Profile::load(&find(&of.work, name)?.path)?),
            None => None,
        };
        let files = run_files(&of.directory)?;
        let region = self.region.as_deref();
        let page = ProfilePage {
            profile: &of.profile,
            region,
            timeline: None,
            against: against.as_ref(),
            code: None,
            written: WRITTEN,
        };
        let answers = PageAnswers::new(&page, files.as_ref().map(|files| &files.recording))?;
        let server = HttpServer::open(self.port)?;
        output.print(&format!("{}\n", server.address()));
        output.note("open it in a browser on this machine; Ctrl-C ends it");
        let answerer = ProfileServer::new(&of, region, answers, files.as_ref());
        server.serve(&answerer, &interrupt::is_set);
        // Ctrl-C is the normal way to end the command.
        interrupt::take();
        Ok(Exit::Ok)
    }
}
