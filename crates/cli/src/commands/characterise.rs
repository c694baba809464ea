//! `kerntune characterise`.

use crate::args::{Characterise, Global};
use crate::exit::{Exit, Failure};
use crate::files::OutputFile;
use crate::global::work;
use crate::output::Output;
use kerntune_compare::Costs;
use kerntune_profile::{find, Error, Manifest, Profile};
use kerntune_report::characterise::{characterise, Wanted};
use kerntune_tune::model;
use kerntune_work::WorkDir;

pub fn run(global: &Global, options: &Characterise, output: &Output) -> Result<Exit, Failure> {
    let page = options.output.as_deref().map(|path| OutputFile::new("--output", path)).transpose()?;
    let work = work(global)?;
    let profile = Profile::load(&find(&work, &options.profile)?.path)?;
    let region = options.region.as_deref();
    let beside = options
        .beside
        .iter()
        .map(|named| other(&work, named, region))
        .collect::<Result<Vec<(Profile, Option<&str>)>, Failure>>()?;
    let others: Vec<Wanted> = beside.iter().map(|(profile, region)| wanted(profile, *region)).collect();
    let found = characterise(&wanted(&profile, region), &others)?;
    if let Some(page) = &page {
        let html = found.html(concat!("kerntune ", env!("CARGO_PKG_VERSION")));
        page.write(html.as_bytes())?;
        output.note(&format!("wrote {} ({} KiB)", page.path().display(), html.len().div_ceil(1024)));
    }
    if options.format.json {
        output.print(&found.json()?);
    } else if page.is_none() {
        output.print(&found.text(output.style()));
    }
    Ok(Exit::Ok)
}

/// A profile to put beside the first, and its regions: `PROFILE`, `PROFILE:NAME`, `PROFILE:`. A colon may be in the path of a
/// directory that is there.
fn other<'a>(
    work: &WorkDir,
    named: &'a str,
    region: Option<&'a str>,
) -> Result<(Profile, Option<&'a str>), Failure> {
    let of =
        |failure: Failure| Failure { message: format!("--beside {named}: {}", failure.message), ..failure };
    let (entry, region) = match (find(work, named), named.split_once(':')) {
        (Err(Error::NotFound { .. } | Error::NotAProfile { .. }), Some((name, its))) => {
            (find(work, name), Some(its).filter(|its| !its.is_empty()))
        }
        (entry, _) => (entry, region),
    };
    let profile = entry.and_then(|entry| Profile::load(&entry.path)).map_err(|error| of(error.into()))?;
    // Said here, where the profile's name is known.
    kerntune_report::scope(&profile, region).map_err(|error| of(error.into()))?;
    Ok((profile, region))
}

fn wanted<'a>(profile: &'a Profile, region: Option<&'a str>) -> Wanted<'a> {
    Wanted { profile, region, costs: costs(&profile.manifest) }
}

/// What events of the model cost that a profile was recorded with; none of models that are not built in: a file may have changed
/// since.
pub fn costs(manifest: &Manifest) -> Option<Costs> {
    let name = manifest.model.as_deref().filter(|name| !name.contains(['/', '.']))?;
    model::find(name).ok()?.costs
}
