//! The command `kerntune view`: serves the page of a profile of any size to a browser on this
//! machine; with `--tui` it shows the profile in the terminal.

mod answer;
mod connection;
mod request;
mod server;
mod terminal;

use crate::args::{GlobalOptions, ViewOptions};
use crate::exit::{Exit, Failure};
use crate::output::CliOutput;
use crate::page::{run_files, WRITTEN};
use crate::subject::ProfileSubject;
use answer::ProfileServer;
use kerntune_profile::{find, Profile};
use kerntune_report::html::profile::{PageAnswers, ProfilePage};
use kerntune_work::interrupt;
use server::HttpServer;

pub fn run(global: &GlobalOptions, options: &ViewOptions, output: &CliOutput) -> Result<Exit, Failure> {
    if options.tui {
        return terminal::run(global, options);
    }
    let of = ProfileSubject::open(global, &options.profile)?;
    let against = match &options.against {
        Some(name) => Some(Profile::load(&find(&of.work, name)?.path)?),
        None => None,
    };
    let files = run_files(&of.directory)?;
    let region = options.region.as_deref();
    let page = ProfilePage {
        profile: &of.profile,
        region,
        timeline: None,
        against: against.as_ref(),
        code: None,
        written: WRITTEN,
    };
    let answers = PageAnswers::new(&page, files.as_ref().map(|files| &files.recording))?;
    let server = HttpServer::open(options.port)?;
    output.print(&format!("{}\n", server.address()));
    output.note("open it in a browser on this machine; Ctrl-C ends it");
    let answerer = ProfileServer::new(&of, region, answers, files.as_ref());
    server.serve(&answerer, &interrupt::is_set);
    // Ctrl-C is the normal way to end the command.
    interrupt::take();
    Ok(Exit::Ok)
}
