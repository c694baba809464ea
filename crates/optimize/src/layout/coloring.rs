//! Cache coloring of an order: places for functions by the sets of a cache.

use super::graph::ALIGNMENT;
use super::PreparedOrder;
use crate::stored::{store, PreparedResult};
use crate::Result;
use kerntune_kernel::{FunctionOrder, Kernel, Symbols, ORDER_END, ORDER_START};
use kerntune_layout::order::{place_by_color, BlockPosition, HotLoop, LoopBlock, COLORING_TRIALS};
use kerntune_layout::CacheConfig;
use kerntune_profile::{Profile, Tables};
use kerntune_work::{Key, Progress, WorkDir};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Least share of the misses that coloring must save; otherwise the order is unchanged.
const MIN_SAVED_SHARE: f64 = 0.25;

/// Places the functions of `order` by the sets of `cache` ([`place_by_color`]).
///
/// `recording` is the one that the order was made from, `movable` the recorded kernel. `linked` has
/// the same objects linked in that order: it shows which functions the linker script can move, and
/// the addresses of the others.
///
/// Returns `order` unchanged if the recording has no functions by region (recorded with
/// `--no-functions`), or if coloring would save too little.
///
/// # Errors
/// Images that cannot be read.
pub fn prepare_coloring(
    work: &WorkDir,
    recording: &Profile,
    (movable, linked): (&Kernel, &Kernel),
    order: &PreparedOrder,
    cache: &CacheConfig,
    progress: &dyn Progress,
) -> Result<PreparedOrder> {
    let recorded = Symbols::load(&movable.vmlinux())?;
    let image = Symbols::load(&linked.vmlinux())?;
    let mark = |name: &str| image.address_of(name).unwrap_or_default();
    let (start, end) = (mark(ORDER_START), mark(ORDER_END));

    // Functions that can be placed: those with a unique name, where the script put them.
    let mut addresses: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, function) in image.functions().iter().enumerate() {
        for name in function.aliases.iter().chain([&function.name]) {
            addresses.entry(name).or_default().push(at);
        }
    }
    let place = |name: &str| match addresses.get(name).map(Vec::as_slice) {
        Some(&[at]) if (start..end).contains(&image.functions()[at].address) => Some(at),
        _ => None,
    };
    // Everything that the script put between its marks, by address.
    let names: HashSet<&str> = order.order.names().iter().map(String::as_str).collect();
    let mut placed: Vec<(u64, u64, Option<&str>)> = Vec::new();
    for name in &names {
        for &at in addresses.get(name).into_iter().flatten() {
            let function = &image.functions()[at];
            if (start..end).contains(&function.address) {
                let alone = place(name).map(|_| *name);
                placed.push((function.address, function.end(), alone));
            }
        }
    }
    placed.sort_unstable();
    placed.dedup_by_key(|(address, ..)| *address);
    let units = units(&placed, end);
    let mut numbers: HashMap<&str, (usize, u64)> = HashMap::new();
    for (number, unit) in units.iter().enumerate() {
        numbers
            .extend(unit.functions.iter().map(|(name, address)| (*name, (number, address - unit.address))));
    }
    let before: Vec<u64> = units.iter().map(|unit| unit.address).collect();
    let sizes: Vec<u64> = units.iter().map(|unit| unit.bytes).collect();

    let located = |address: u64| -> Option<BlockPosition> {
        let of = &recorded.functions()[recorded.lookup(address)?];
        let offset = address - of.address;
        let named = || of.aliases.iter().chain([&of.name]).map(String::as_str);
        if let Some((number, inside)) = named().find_map(|name| numbers.get(name)) {
            return Some(BlockPosition::Function(*number, inside + offset));
        }
        let there = named().find_map(|name| match addresses.get(name).map(Vec::as_slice) {
            Some(&[at]) => Some(image.functions()[at].address),
            _ => None,
        });
        Some(BlockPosition::Address(there? + offset))
    };
    let loops = loops(&recording.tables, &recorded, &located);
    let base: Vec<usize> = (0..units.len()).collect();
    progress.begin("cache coloring", Some(COLORING_TRIALS));
    let placed = place_by_color(&sizes, &base, &before, &loops, cache, start, &|done| progress.at(done));
    progress.end();
    let [now, then] = placed.misses;
    if now <= 0.0 || then > (1.0 - MIN_SAVED_SHARE) * now {
        return Ok(order.clone());
    }

    // Functions that cannot be placed on their own follow without a place.
    let in_units = placed.starts.iter().flat_map(|(number, _)| &units[*number].functions);
    let in_units = in_units.map(|(name, _)| name.to_string());
    let rest = order.order.names().iter().filter(|name| !numbers.contains_key(name.as_str())).cloned();
    let offset = |(number, offset): &(usize, u64)| (units[*number].functions[0].0.to_string(), *offset);
    let in_modules = order.order.modules().clone();
    let placed = FunctionOrder::new(in_units.chain(rest))?
        .with_offsets(placed.starts.iter().map(offset))
        .with_modules(in_modules)?;
    let mut prepared = order.clone();
    let key = Key::new("order-by-sets/3", crate::CODE).field("order", placed.text()).field("of", &order.id);
    prepared.id = key.id();
    prepared.order = placed;
    prepared.summary.algorithm = format!("{}, by sets", order.summary.algorithm);
    prepared.summary.set_misses = Some([now, then]);
    store(work, &key, order.quality()?.as_ref(), |dir| prepared.write(dir))
}

/// Functions that are moved together.
#[derive(Debug, PartialEq)]
struct MovableUnit<'a> {
    address: u64,
    /// Bytes up to the next unit, at most; a multiple of [`ALIGNMENT`].
    bytes: u64,
    /// Names and addresses.
    functions: Vec<(&'a str, u64)>,
}

/// Returns the movable units of `placed` (ascending: address, end, and the name if movable), up to
/// `end`.
///
/// A gap between two functions may be larger than alignment: a section has code after its function,
/// or another object has a section of the same name whose weak function was not linked
/// (`kernel/sys_ni.c`). It is not known to which function the gap belongs, so both are moved as
/// one. A function after such a gap stays in place if its predecessor cannot be moved.
fn units<'a>(placed: &[(u64, u64, Option<&'a str>)], end: u64) -> Vec<MovableUnit<'a>> {
    let mut units: Vec<MovableUnit> = Vec::new();
    // Expected address of the next function, and whether the previous one can be moved.
    let (mut expected, mut moves) = (None, false);
    for (at, &(address, last, name)) in placed.iter().enumerate() {
        let next = placed.get(at + 1).map_or(end, |(next, ..)| *next);
        let gap = expected.is_some_and(|expected| address > expected);
        moves = match (name, units.last_mut()) {
            (Some(name), Some(unit)) if gap && moves => {
                unit.bytes = (next - unit.address).next_multiple_of(ALIGNMENT);
                unit.functions.push((name, address));
                true
            }
            (Some(name), _) if !gap => {
                let bytes = (next - address).next_multiple_of(ALIGNMENT);
                units.push(MovableUnit { address, bytes, functions: vec![(name, address)] });
                true
            }
            _ => false,
        };
        expected = Some(last.next_multiple_of(ALIGNMENT));
    }
    units
}

/// Returns the code that each region of a recording repeats.
///
/// User code is represented by its misses, in recordings with a model. A recording counts blocks
/// over all regions; their counts are divided among the regions in proportion to the calls of their
/// function.
fn loops(tables: &Tables, symbols: &Symbols, located: &dyn Fn(u64) -> Option<BlockPosition>) -> Vec<HotLoop> {
    let mut regions: BTreeMap<&str, usize> = BTreeMap::new();
    let mut region_of: HashMap<u32, usize> = HashMap::new();
    let (mut rounds, mut instructions, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for row in tables.regions.iter().filter(|row| row.operations > 0) {
        let at = *regions.entry(&row.name).or_insert(rounds.len());
        if at == rounds.len() {
            rounds.push(0.0);
            instructions.push(0.0);
            others.push(0.0);
        }
        region_of.insert(row.region, at);
        rounds[at] += row.operations as f64;
        instructions[at] += row.kernel_instructions.0 as f64;
        others[at] += row.user_l1i_misses as f64;
    }
    let mut calls: HashMap<&str, Vec<f64>> = HashMap::new();
    let names: HashMap<_, &str> =
        tables.symbols.iter().map(|symbol| (symbol.function, symbol.name.as_str())).collect();
    for row in tables.functions.iter().filter(|row| row.calls > 0) {
        if let (Some(&region), Some(&name)) = (region_of.get(&row.region), names.get(&row.function)) {
            calls.entry(name).or_insert_with(|| vec![0.0; rounds.len()])[region] += row.calls as f64;
        }
    }
    if calls.is_empty() {
        return Vec::new();
    }
    let each = rounds.iter().zip(&others);
    let mut loops: Vec<HotLoop> = each
        .map(|(&rounds, others)| HotLoop { rounds, others: others / rounds, blocks: Vec::new() })
        .collect();
    for block in &tables.blocks {
        let Some(function) = symbols.lookup(block.start.get()) else { continue };
        let Some(at) = located(block.start.get()) else { continue };
        // A cold part runs with its function, and has no calls of its own.
        let function = &symbols.functions()[symbols.whole(function)];
        // Code without calls (entry code) is divided by the regions' instructions.
        let called = calls.get(function.name.as_str()).unwrap_or(&instructions);
        let all: f64 = called.iter().sum();
        for (of, part) in loops.iter_mut().zip(called) {
            let count = block.count as f64 * part / all;
            if count > 0.0 {
                of.blocks.push(LoopBlock { at, bytes: block.bytes, frequency: count / of.rounds });
            }
        }
    }
    loops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_with_something_between_them_are_moved_as_one() {
        let placed = [
            (0x100, 0x10b, Some("a")),
            (0x110, 0x120, Some("b")),
            // 16 bytes without a name.
            (0x130, 0x138, Some("c")),
            (0x140, 0x150, None),
            (0x160, 0x170, Some("stays: who came before it does")),
            (0x170, 0x171, Some("d")),
        ];
        let unit = |address, bytes, functions: &[(&'static str, u64)]| MovableUnit {
            address,
            bytes,
            functions: functions.to_vec(),
        };
        let expected = [
            unit(0x100, 0x10, &[("a", 0x100)]),
            unit(0x110, 0x30, &[("b", 0x110), ("c", 0x130)]),
            unit(0x170, 0x10, &[("d", 0x170)]),
        ];
        assert_eq!(units(&placed, 0x180), expected);
    }
}
