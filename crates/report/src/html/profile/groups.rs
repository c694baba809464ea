//! Regions in groups: those of one name, apart from the same name inside another. Every row of the
//! profile belongs to exactly one group, and each view of the page is a sum of groups.

use crate::{Error, Result};
use kerntune_profile::Profile;
use std::collections::{BTreeMap, BTreeSet};

/// Which group each region is in, and what can be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Groups {
    /// By region: its group; none if it is left out.
    pub of_region: Vec<Option<u32>>,
    /// Number of groups.
    pub count: u32,
    /// The whole first, then each name.
    pub views: Vec<GroupView>,
}

/// Something to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupView {
    /// Name of the regions; none for all of them.
    pub name: Option<String>,
    /// The groups that it is the sum of.
    pub groups: Vec<u32>,
}

impl Groups {
    /// `only` leaves out everything outside the regions of that name.
    pub fn new(profile: &Profile, only: Option<&str>) -> Result<Self> {
        let tables = &profile.tables;
        // The names of a region and of all around it.
        let mut names: Vec<BTreeSet<&str>> = vec![BTreeSet::new(); tables.regions.len()];
        for outer in &tables.regions {
            for inner in tables.within(outer.region) {
                if let Some(set) = names.get_mut(inner as usize) {
                    set.insert(&outer.name);
                }
            }
        }
        if let Some(name) = only.filter(|name| !names.iter().any(|set| set.contains(name))) {
            return Err(Error::no_region(name, profile));
        }
        let mut numbers: BTreeMap<&BTreeSet<&str>, u32> = BTreeMap::new();
        let mut of_region = Vec::with_capacity(names.len());
        for set in &names {
            let wanted = only.is_none_or(|name| set.contains(name));
            let next = numbers.len() as u32;
            of_region.push(wanted.then(|| *numbers.entry(set).or_insert(next)));
        }
        let count = numbers.len() as u32;
        let with = |name: Option<&str>| GroupView {
            name: name.map(Into::into),
            groups: (numbers.iter())
                .filter(|(set, _)| name.is_none_or(|name| set.contains(name)))
                .map(|(_, number)| *number)
                .collect(),
        };
        let mut views = vec![with(only)];
        for region in &tables.regions {
            let known = views.iter().any(|view| view.name.as_deref() == Some(&region.name));
            let inside = of_region.get(region.region as usize).is_some_and(Option::is_some);
            if !known && inside {
                views.push(with(Some(&region.name)));
            }
        }
        // One name alone is the whole.
        if only.is_none() && views.len() == 2 && views[0].groups == views[1].groups {
            views.remove(0);
        }
        Ok(Self { of_region, count, views })
    }

    /// The group of a region.
    pub fn group(&self, region: u32) -> Option<u32> {
        self.of_region.get(region as usize).copied().flatten()
    }
}
