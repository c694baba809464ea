//! Writes a small profile with every table filled, to be read with other engines: `cargo run -p
//! kerntune-profile --example sample_profile -- DIRECTORY`

#[path = "../tests/support/mod.rs"]
mod support;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args_os().nth(1).ok_or("give a directory that exists")?;
    support::sample("sample").save(dir.as_ref())?;
    Ok(())
}
