//! Merging of profiles of one kernel.

use crate::{CounterTotal, Error, Manifest, Profile, ProfileSum, Result, SamplingSummary, TransferSummary};
use kerntune_work::Key;
use std::collections::BTreeMap;

/// Merges profiles of the same kernel, each times its weight; skips those of weight 0.
///
/// The manifest of the result is that of [`merge_manifests`]. Extremes (`max_ticks`, `min_ticks`)
/// are those of all parts. Footprints are those of a single profile, and TLBs those that all parts
/// have in common.
///
/// # Errors
/// Those of [`merge_manifests`] and of [`ProfileSum::add`].
pub fn merge(parts: &[(&Profile, u64)]) -> Result<Profile> {
    let manifests: Vec<(&Manifest, u64)> =
        parts.iter().map(|(profile, weight)| (&profile.manifest, *weight)).collect();
    let manifest = merge_manifests(&manifests)?;
    let mut sum = ProfileSum::default();
    for &(profile, weight) in parts {
        sum.add(profile.tables.clone(), weight)?;
    }
    Ok(Profile { manifest, tables: sum.into_tables() })
}

/// Merges the manifests of profiles of the same kernel, each times its weight; skips those of
/// weight 0.
///
/// The result lists the parts among its sources; its `recorded` is the latest of theirs.
///
/// # Errors
/// Profiles of different kernels; sampled and exact profiles together; nothing to merge.
pub fn merge_manifests(parts: &[(&Manifest, u64)]) -> Result<Manifest> {
    let parts: Vec<(&Manifest, u64)> = parts.iter().copied().filter(|&(_, weight)| weight > 0).collect();
    let &[(first, _), ..] = parts.as_slice() else { return Err(Error::NothingToMerge) };
    for &(other, _) in &parts {
        if first.kernel.id != other.kernel.id {
            return Err(Error::DifferentKernels {
                first: first.id.clone(),
                second: other.id.clone(),
                first_kernel: first.kernel.id.clone(),
                second_kernel: other.kernel.id.clone(),
            });
        }
    }
    let one = |is_sampled: bool| {
        let mut all = parts.iter().map(|(manifest, _)| manifest);
        all.find(|manifest| manifest.sampled.is_some() == is_sampled).map(|manifest| manifest.id.clone())
    };
    if let (Some(sampled), Some(measured)) = (one(true), one(false)) {
        return Err(Error::SampledAndMeasured { sampled, measured });
    }
    Ok(manifest(&parts, first))
}

fn manifest(parts: &[(&Manifest, u64)], first: &Manifest) -> Manifest {
    let all = || parts.iter().copied();
    let words = |of: fn(&Manifest) -> &str| {
        let mut words: Vec<&str> = all().map(|(m, _)| of(m)).collect();
        words.sort_unstable();
        words.dedup();
        words.join("+")
    };
    let mut id = Key::new("merged-profile/2", crate::CODE);
    let mut health: BTreeMap<String, u64> = BTreeMap::new();
    for (part, weight) in all() {
        id = id.field(&part.id, weight.to_le_bytes());
        for (name, count) in &part.health {
            let sum = health.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    Manifest {
        id: id.id(),
        workload: words(|m| &m.workload),
        machine: words(|m| &m.machine),
        model: all().all(|(m, _)| m.model == first.model).then(|| first.model.clone()).flatten(),
        recorded: all().map(|(m, _)| m.recorded.clone()).max().unwrap_or_default(),
        elapsed_ticks: all().map(|(m, weight)| m.elapsed_ticks * weight).sum(),
        busy_ticks: all().map(|(m, weight)| m.busy_ticks * weight).sum(),
        idle_ticks: all().map(|(m, weight)| m.idle_ticks * weight).sum(),
        events: all().fold(0, |sum, (m, _)| sum.saturating_add(m.events)),
        lost_events: all().fold(0, |sum, (m, _)| sum.saturating_add(m.lost_events)),
        health,
        capture: crate::CaptureSummary {
            functions: all().any(|(m, _)| m.capture.functions),
            edges: all().any(|(m, _)| m.capture.edges),
            instructions: all().any(|(m, _)| m.capture.instructions),
            model: all().any(|(m, _)| m.capture.model),
            weights: all().any(|(m, _)| m.capture.weights),
            data: all().any(|(m, _)| m.capture.data),
            requests: all().all(|(m, _)| m.capture.requests),
            packets: all().all(|(m, _)| m.capture.packets),
        },
        exact: all().all(|(m, _)| m.exact),
        sources: all().map(|(m, weight)| format!("profile {} × {weight}", m.id)).collect(),
        carried: carried(parts),
        sampled: sampled(parts),
        counted: counted(parts),
        // The state of one machine says nothing of another.
        host: None,
        tables: BTreeMap::new(),
        ..first.clone()
    }
}

/// Sums the losses of the parts that were transferred from another kernel.
fn carried(parts: &[(&Manifest, u64)]) -> Option<TransferSummary> {
    let all = || parts.iter().filter_map(|(manifest, weight)| Some((manifest.carried.as_ref()?, *weight)));
    let sum = |of: fn(&TransferSummary) -> u64| {
        all().fold(0u64, |sum, (carried, weight)| sum.saturating_add(of(carried).saturating_mul(weight)))
    };
    let (first, _) = all().next()?;
    Some(TransferSummary {
        profile: all().map(|(carried, _)| carried.profile.as_str()).collect::<Vec<_>>().join("+"),
        executed: sum(|carried| carried.executed),
        carried: sum(|carried| carried.carried),
        exact: sum(|carried| carried.exact),
        loose: sum(|carried| carried.loose),
        inferred: sum(|carried| carried.inferred),
        at_least_percent: all().map(|(carried, _)| carried.at_least_percent).min().unwrap_or_default(),
        kernel: first.kernel.clone(),
    })
}

/// Merges the sampling of the parts; `None` if no part was sampled. A sample of the sum stands for
/// the longest sample of a part times its weight, so reported errors are upper bounds.
fn sampled(parts: &[(&Manifest, u64)]) -> Option<SamplingSummary> {
    let all = || parts.iter().filter_map(|(manifest, weight)| Some((manifest.sampled.as_ref()?, *weight)));
    let (first, _) = all().next()?;
    let words = |of: fn(&SamplingSummary) -> Option<&str>| {
        let mut words: Vec<&str> = all().filter_map(|(sampled, _)| of(sampled)).collect();
        words.sort_unstable();
        words.dedup();
        (!words.is_empty()).then(|| words.join("; "))
    };
    Some(SamplingSummary {
        source: words(|sampled| Some(&sampled.source)).unwrap_or_default(),
        samples: all().fold(0, |sum, (sampled, _)| sum.saturating_add(sampled.samples)),
        sample_ns: all().map(|(sampled, weight)| sampled.sample_ns * weight).max().unwrap_or_default(),
        cpus: all().map(|(sampled, _)| sampled.cpus).max().unwrap_or_default(),
        wall_ns: all().map(|(sampled, weight)| sampled.wall_ns * weight).sum(),
        period: words(|sampled| Some(&sampled.period)).unwrap_or_default(),
        bias: words(|sampled| sampled.bias.as_deref()),
        filter: words(|sampled| sampled.filter.as_deref()),
        // Where only some parts counted calls, the sum is no number of calls.
        calls: words(|sampled| sampled.calls.as_deref())
            .filter(|_| all().count() == parts.len() && all().all(|(sampled, _)| sampled.calls.is_some())),
        ..first.clone()
    })
}

/// Sums the counters beside the tables, each part times its weight.
fn counted(parts: &[(&Manifest, u64)]) -> Vec<CounterTotal> {
    let mut sums: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    for (manifest, weight) in parts {
        for CounterTotal { kind, name, count, source } in &manifest.counted {
            let sum = sums.entry((kind, name, source)).or_default();
            *sum = sum.saturating_add(count.saturating_mul(*weight));
        }
    }
    let row = |((kind, name, source), count): ((&str, &str, &str), u64)| CounterTotal {
        kind: kind.into(),
        name: name.into(),
        count,
        source: source.into(),
    };
    sums.into_iter().map(row).collect()
}
