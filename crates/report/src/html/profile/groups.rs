//! Groups of regions: regions of one name form a group, separate from those of the same name within
//! another region. Every row of the profile belongs to exactly one group, and each view of the page
//! is a sum of groups.

use crate::{Error, Result};
use kerntune_profile::Profile;
use std::collections::{BTreeMap, BTreeSet};

/// Group of each region, and the selectable views.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RegionGroups {
    /// By region: its group; `None` if it is left out.
    pub of_region: Vec<Option<u32>>,
    /// Number of groups.
    pub count: u32,
    /// View of the whole first, then one per name.
    pub views: Vec<GroupView>,
}

/// View that the page offers: a region name, or everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupView {
    /// Name of the regions; `None` for all of them.
    pub name: Option<String>,
    /// Groups that the view adds up.
    pub groups: Vec<u32>,
}

impl RegionGroups {
    /// Groups the regions; `only` leaves out everything outside the regions of that name.
    pub fn new(profile: &Profile, only: Option<&str>) -> Result<Self> {
        let tables = &profile.tables;
        // Names of a region and of all regions around it.
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
        // A single name is the same as the whole.
        if only.is_none() && views.len() == 2 && views[0].groups == views[1].groups {
            views.remove(0);
        }
        Ok(Self { of_region, count, views })
    }

    /// Returns the group of a region.
    pub fn group(&self, region: u32) -> Option<u32> {
        self.of_region.get(region as usize).copied().flatten()
    }
}
