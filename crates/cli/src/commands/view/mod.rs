//! `kerntune view`: serves the page of a profile of any size to this machine's browser; with `--tui` in the terminal.

mod answer;
mod connection;
mod request;
mod server;
mod terminal;

use crate::args::{Global, View};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::page::{run_files, WRITTEN};
use crate::subject::Subject;
use answer::Answerer;
use kerntune_profile::{find, Profile};
use kerntune_report::html::profile::{Answers, ProfilePage};
use kerntune_work::interrupt;
use server::Server;

pub fn run(global: &Global, options: &View, output: &Output) -> Result<Exit, Failure> {
    if options.tui {
        return terminal::run(global, options);
    }
    let of = Subject::open(global, &options.profile)?;
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
    let answers = Answers::new(&page, files.as_ref().map(|files| &files.recording))?;
    let server = Server::open(options.port)?;
    output.print(&format!("{}\n", server.address()));
    output.note("open it in a browser on this machine; Ctrl-C ends it");
    let answerer = Answerer::new(&of, region, answers, files.as_ref());
    server.serve(&answerer, &interrupt::is_set);
    // Ctrl-C is how it ends.
    interrupt::take();
    Ok(Exit::Ok)
}
