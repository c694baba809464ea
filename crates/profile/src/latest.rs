//! Names `latest`, `latest~2` and `latest:workload=rr,kernel=base`: the most recent profile that
//! passes the filters, or one before it.

use crate::{Error, Manifest, Result};

const PREFIX: &str = "latest";
/// Filters that a name can have, for messages.
const FILTER_KEYS: &str = "workload, kernel, machine, run and model";

/// Filters of a `latest:` name, all of which a profile must pass, and the number of younger ones to
/// pass over.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LatestFilter {
    wanted: Vec<(FilterKey, String)>,
    /// Number N of `latest~N`: 0 is the most recent profile.
    pub before: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilterKey {
    Workload,
    Kernel,
    Machine,
    Run,
    Model,
}

impl LatestFilter {
    /// Parses a `latest` name; returns `None` for a name of another form.
    pub fn parse(name: &str) -> Result<Option<Self>> {
        let Some(rest) = name.strip_prefix(PREFIX) else { return Ok(None) };
        let (number, filters) = match rest.split_once(':') {
            Some((number, filters)) => (number, Some(filters)),
            None => (rest, None),
        };
        let before = match (number, number.strip_prefix('~')) {
            ("", _) => 0,
            ("~", _) => 1,
            (_, Some(number)) => number.parse().map_err(|_| Error::Filter {
                wanted: name.to_owned(),
                what: format!("`{number}` is not a number of profiles"),
            })?,
            (_, None) => return Ok(None),
        };
        let filters = filters.into_iter().flat_map(|filters| filters.split(','));
        let wanted = filters.map(|filter| Self::filter(name, filter)).collect::<Result<_>>()?;
        Ok(Some(Self { wanted, before }))
    }

    fn filter(name: &str, filter: &str) -> Result<(FilterKey, String)> {
        let bad = |what: String| Error::Filter { wanted: name.to_owned(), what };
        let (key, value) =
            filter.split_once('=').ok_or_else(|| bad(format!("`{filter}` is not KEY=VALUE")))?;
        let key = match key {
            "workload" => FilterKey::Workload,
            "kernel" => FilterKey::Kernel,
            "machine" => FilterKey::Machine,
            "run" => FilterKey::Run,
            "model" => FilterKey::Model,
            _ => return Err(bad(format!("`{key}` is nothing that a profile is asked for"))),
        };
        match value {
            "" => Err(bad(format!("`{filter}` has no value"))),
            value => Ok((key, value.to_owned())),
        }
    }

    /// Checks whether a profile passes all filters. A workload is a whole name, or the program of a
    /// command; a kernel is a label or the beginning of an id.
    pub fn fits(&self, manifest: &Manifest) -> bool {
        self.wanted.iter().all(|(key, value)| match key {
            FilterKey::Workload => {
                manifest.workload == *value || manifest.workload.split(' ').next() == Some(value.as_str())
            }
            FilterKey::Kernel => {
                manifest.kernel.label == *value || manifest.kernel.id.starts_with(value.as_str())
            }
            FilterKey::Machine => manifest.machine == *value,
            FilterKey::Run => manifest.run.to_string() == *value,
            FilterKey::Model => manifest.model.as_ref() == Some(value),
        })
    }
}

/// Returns the known filters, for messages.
pub(crate) fn keys() -> &'static str {
    FILTER_KEYS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelId;

    #[test]
    fn what_fits() {
        let kernel = KernelId { id: "fba921".into(), label: "base".into(), version: "6.12".into() };
        let manifest = Manifest::new("p", kernel, "ls -lR /usr", "emulator");
        let fits = |name: &str| LatestFilter::parse(name).unwrap().unwrap().fits(&manifest);
        assert!(fits("latest") && fits("latest:kernel=base") && fits("latest:kernel=fba,machine=emulator"));
        assert!(
            fits("latest:workload=ls") && fits("latest:workload=ls -lR /usr") && fits("latest:run=training")
        );
        assert!(!fits("latest:workload=l") && !fits("latest:kernel=bas") && !fits("latest:model=zen4"));
        assert!(!fits("latest:kernel=base,run=measured"));
    }

    #[test]
    fn other_names_and_mistakes() {
        assert_eq!(LatestFilter::parse("aa11").unwrap(), None);
        assert_eq!(LatestFilter::parse("latest2").unwrap(), None);
        assert_eq!(LatestFilter::parse("latest2:workload=rr").unwrap(), None);
        let before = |name: &str| LatestFilter::parse(name).unwrap().unwrap().before;
        assert_eq!(
            [before("latest"), before("latest~"), before("latest~0"), before("latest~12")],
            [0, 1, 0, 12]
        );
        assert_eq!(before("latest~3:workload=rr"), 3);
        for (name, what) in [
            ("latest:", "`` is not KEY=VALUE"),
            ("latest:rr", "`rr` is not KEY=VALUE"),
            ("latest:workload=", "has no value"),
            ("latest:label=base", "`label` is nothing"),
            ("latest~x", "`x` is not a number"),
            ("latest~-1", "`-1` is not a number"),
        ] {
            let error = LatestFilter::parse(name).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains(FILTER_KEYS), "{error}");
        }
    }
}
