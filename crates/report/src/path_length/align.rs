//! Lays the call paths of two kernels over each other where they differ by a frame.

use kerntune_profile::{source_name, Difference, PathFigures, PathLabel, Profile};
use std::collections::{BTreeSet, HashMap};

/// Stands for a thread's name that says nothing but which of several workers it is.
const WORKER: &str = "kworker";

/// A call path of both kernels.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Another place; none for a root.
    pub parent: Option<usize>,
    pub label: PathLabel,
    /// What the function at its end did itself, in both; of elapsed time, nothing.
    pub own: [PathFigures; 2],
    /// Functions that count as this one, as they are a frame of their own in one kernel alone.
    pub parts: Vec<Part>,
    /// Instructions at it and below it.
    pub elapsed: [i128; 2],
    /// Places below it.
    pub children: Vec<usize>,
}

/// A function of one kernel that counts as its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// Row of [`Difference::functions`].
    pub row: usize,
    pub why: Why,
    /// In which of the two it is.
    pub side: usize,
    pub calls: i128,
    pub instructions: i128,
}

/// Why a function counts as its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    /// The other kernel has no function of that name: one that was inlined, renamed, or is not in its source.
    Alone,
    /// The other kernel has it, and calls here without it what is called through it.
    Between,
}

impl Place {
    fn new(parent: Option<usize>, label: PathLabel) -> Self {
        Self {
            parent,
            label,
            own: Default::default(),
            parts: Vec::new(),
            elapsed: [0; 2],
            children: Vec::new(),
        }
    }

    /// Instructions at the place, its parts among them.
    pub fn instructions(&self) -> [i128; 2] {
        let mut sums = self.own.map(|own| own.net_ns);
        self.parts.iter().for_each(|part| sums[part.side] += part.instructions);
        sums
    }

    /// One part for each function, side and reason, in that order.
    fn tidy(&mut self) {
        self.parts.sort_by_key(|part| (part.side, part.row, part.why));
        self.parts.dedup_by(|next, kept| {
            let same = (next.side, next.row, next.why) == (kept.side, kept.row, kept.why);
            if same {
                kept.calls += next.calls;
                kept.instructions += next.instructions;
            }
            same
        });
    }

    /// The one kernel in which something happens there.
    pub fn only(&self) -> Option<usize> {
        let [a, b] = [0, 1].map(|side| self.elapsed[side] > 0 || self.own[side].calls > 0);
        match [a, b] {
            [true, false] => Some(0),
            [false, true] => Some(1),
            _ => None,
        }
    }
}

/// The places of both, laid over each other. What is user code is left out, and every kernel instruction is at one place.
pub(super) struct Aligned {
    pub places: Vec<Place>,
    pub roots: Vec<usize>,
    /// Time of user code in both, with the way back to it.
    pub user: [i128; 2],
    found: HashMap<(Option<usize>, PathLabel), usize>,
}

impl Aligned {
    pub fn new(profiles: [&Profile; 2], difference: &Difference) -> Self {
        let mut aligned = Self { places: Vec::new(), roots: Vec::new(), user: [0; 2], found: HashMap::new() };
        aligned.fold(profiles, difference);
        aligned.sum();
        let mut next = aligned.roots.clone();
        while let Some(at) = next.pop() {
            aligned.pass_through(at);
            next.extend(&aligned.places[at].children);
        }
        aligned.places.iter_mut().for_each(Place::tidy);
        aligned
    }

    /// A place for each path, but for functions that the other kernel does not have: those are their callers'.
    fn fold(&mut self, profiles: [&Profile; 2], difference: &Difference) {
        let known = profiles.map(|profile| {
            let kernel = profile.tables.symbols.iter().filter(|symbol| symbol.module.is_none());
            kernel.map(|symbol| source_name(&symbol.name).0).collect::<BTreeSet<&str>>()
        });
        let binaries: BTreeSet<&str> = profiles
            .iter()
            .flat_map(|profile| &profile.tables.symbols)
            .filter_map(|s| s.module.as_deref())
            .collect();
        // The kernel that has a function, where only one has it.
        let alone = |row: usize| {
            let function = difference.functions.get(row)?;
            let name = source_name(&function.name).0;
            match [0, 1].map(|side| known[side].contains(name)) {
                [true, false] => Some(0),
                [false, true] => Some(1),
                _ => None,
            }
        };
        let of_user = |row: usize| {
            let file = difference.functions.get(row).and_then(|function| function.file.as_deref());
            file.is_some_and(|file| binaries.contains(file))
        };
        let mut to: Vec<Option<usize>> = vec![None; difference.paths.len()];
        for (at, path) in difference.paths.iter().enumerate() {
            let parent = path.parent.and_then(|parent| to.get(parent).copied().flatten());
            let is_user = match path.label {
                PathLabel::User => true,
                PathLabel::Function(row) => of_user(row),
                _ => false,
            };
            to[at] = match (&path.label, parent) {
                (_, parent) if is_user => {
                    [0, 1].iter().for_each(|side| self.user[*side] += path.figures[*side].net_ns);
                    parent
                }
                (PathLabel::Function(row), Some(parent)) if alone(*row).is_some() => {
                    self.add_part(parent, *row, Why::Alone, path.figures);
                    Some(parent)
                }
                (label, parent) => {
                    let place = self.place(parent, general(label));
                    for (own, more) in self.places[place].own.iter_mut().zip(path.figures) {
                        own.calls += more.calls;
                        own.net_ns += more.net_ns;
                    }
                    Some(place)
                }
            };
        }
    }

    /// The instructions from the last function's end to user code are a root of their own.
    pub fn add_way_back(&mut self, instructions: [i128; 2]) {
        let place = self.place(None, PathLabel::User);
        for (side, instructions) in instructions.into_iter().enumerate() {
            self.places[place].own[side].net_ns += instructions;
            self.places[place].elapsed[side] += instructions;
        }
    }

    fn place(&mut self, parent: Option<usize>, label: PathLabel) -> usize {
        let Self { places, roots, found, .. } = self;
        *found.entry((parent, label.clone())).or_insert_with(|| {
            places.push(Place::new(parent, label));
            let new = places.len() - 1;
            match parent {
                Some(parent) => places[parent].children.push(new),
                None => roots.push(new),
            }
            new
        })
    }

    fn add_part(&mut self, place: usize, row: usize, why: Why, figures: [PathFigures; 2]) {
        for (side, PathFigures { calls, net_ns: instructions, .. }) in figures.into_iter().enumerate() {
            if calls != 0 || instructions != 0 {
                self.places[place].parts.push(Part { row, why, side, calls, instructions });
            }
        }
    }

    /// Sums up what is below each place; parents come before their children.
    fn sum(&mut self) {
        for at in (0..self.places.len()).rev() {
            let own = self.places[at].instructions();
            let place = &mut self.places[at];
            let sums = [0, 1].map(|side| place.elapsed[side] + own[side]);
            place.elapsed = sums;
            if let Some(parent) = place.parent {
                [0, 1].iter().for_each(|side| self.places[parent].elapsed[*side] += sums[*side]);
            }
        }
    }

    /// Where one kernel calls through a function what the other calls without it, the function counts as its caller: as long as
    /// half of the function's instructions are below what is so called.
    fn pass_through(&mut self, at: usize) {
        loop {
            let children = &self.places[at].children;
            let shared = children.iter().filter_map(|child| Some((self.shared(at, *child)?, *child)));
            // The first of those with most.
            let Some((_, child)) = shared.max_by_key(|(shared, child)| (*shared, std::cmp::Reverse(*child)))
            else {
                return;
            };
            self.dissolve(at, child);
        }
    }

    /// How many instructions of a child are below what the other kernel calls from `at` itself; none if they are too few.
    fn shared(&self, at: usize, child: usize) -> Option<i128> {
        let place = &self.places[child];
        let (side, PathLabel::Function(_)) = (place.only()?, &place.label) else { return None };
        let directly = |below: &&usize| {
            let label = &self.places[**below].label;
            let sibling = self.found.get(&(Some(at), label.clone()));
            sibling.is_some_and(|same| *same != child && self.places[*same].only() == Some(1 - side))
        };
        let below = place.children.iter().filter(directly);
        let shared: i128 = below.map(|below| self.places[*below].elapsed[side]).sum();
        (shared > 0 && 2 * shared >= place.elapsed[side]).then_some(shared)
    }

    /// A child becomes a part of the place that it is below.
    fn dissolve(&mut self, at: usize, child: usize) {
        let gone = std::mem::replace(&mut self.places[child], Place::new(None, PathLabel::Unattributed));
        self.places[at].children.retain(|other| *other != child);
        self.found.remove(&(Some(at), gone.label.clone()));
        if let PathLabel::Function(row) = gone.label {
            self.add_part(at, row, Why::Between, gone.own);
        }
        self.places[at].parts.extend(gone.parts);
        self.move_below(&gone.children, child, at);
    }

    /// Places that were below `from` go below `to`, and become one with what is there.
    fn move_below(&mut self, children: &[usize], from: usize, to: usize) {
        let mut moves: Vec<(usize, usize, usize)> =
            children.iter().rev().map(|child| (*child, from, to)).collect();
        while let Some((place, from, to)) = moves.pop() {
            let label = self.places[place].label.clone();
            self.found.remove(&(Some(from), label.clone()));
            match self.found.get(&(Some(to), label.clone())).copied() {
                None => {
                    self.found.insert((Some(to), label), place);
                    self.places[place].parent = Some(to);
                    self.places[to].children.push(place);
                }
                Some(same) => {
                    let gone =
                        std::mem::replace(&mut self.places[place], Place::new(None, PathLabel::Unattributed));
                    let into = &mut self.places[same];
                    for side in 0..2 {
                        into.own[side].calls += gone.own[side].calls;
                        into.own[side].net_ns += gone.own[side].net_ns;
                        into.elapsed[side] += gone.elapsed[side];
                    }
                    into.parts.extend(gone.parts);
                    moves.extend(gone.children.iter().rev().map(|child| (*child, place, same)));
                }
            }
        }
    }
}

/// Workers of the kernel are one thread: which of them does what is chance.
fn general(label: &PathLabel) -> PathLabel {
    match label {
        PathLabel::Thread(comm) if comm.starts_with("kworker/") => PathLabel::Thread(WORKER.into()),
        label => label.clone(),
    }
}
