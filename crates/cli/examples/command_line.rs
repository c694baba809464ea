//! Writes what shells and readers want of the command line, below a directory: manual pages and completions for
//! bash, fish and zsh, each where it is looked for. `make install` and `make dist` run it.
//!
//!     cargo run --release -p kerntune-cli --example command_line -- DIR

// The program's own definition, of which this uses nothing but the words.
#[allow(dead_code, unused_imports)]
#[path = "../src/args/mod.rs"]
mod args;

use clap::CommandFactory;
use clap_complete::Shell;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let share = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: command_line DIR")?).join("share");
    let mut command = args::Arguments::command();

    let manual = share.join("man/man1");
    fs::create_dir_all(&manual)?;
    clap_mangen::generate_to(command.clone(), &manual)?;

    let completions = [
        (Shell::Bash, "bash-completion/completions/kerntune"),
        (Shell::Fish, "fish/vendor_completions.d/kerntune.fish"),
        (Shell::Zsh, "zsh/site-functions/_kerntune"),
    ];
    for (shell, place) in completions {
        let place = share.join(place);
        fs::create_dir_all(place.parent().unwrap_or(&share))?;
        clap_complete::generate(shell, &mut command, "kerntune", &mut fs::File::create(place)?);
    }
    Ok(())
}
