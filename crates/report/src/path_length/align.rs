//! Alignment of two kernels' call paths that differ by single frames.

use kerntune_profile::{add_up, source_name, PathFigures, PathFrame, Profile, ProfileDifference, RowFrame};
use std::collections::{BTreeSet, HashMap};

/// Common name of kernel workers, whose own names only number them.
const WORKER: &str = "kworker";

/// Call path of both kernels.
#[derive(Debug, Clone)]
pub(super) struct AlignedPath {
    /// Index of the parent; `None` for a root.
    pub parent: Option<usize>,
    pub frame: RowFrame,
    /// Self figures of the function at its end, in both; total times are unused.
    pub self_figures: [PathFigures; 2],
    /// Functions that count as this one, because only one kernel has them as frames.
    pub parts: Vec<FoldedFunction>,
    /// Instructions of the path and of those below, in both.
    pub total: [i128; 2],
    /// Indices of the paths below.
    pub children: Vec<usize>,
}

/// Function of one kernel that counts as its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoldedFunction {
    /// Row of [`ProfileDifference::functions`].
    pub row: usize,
    pub why: FoldReason,
    /// Kernel that has the function as a frame: 0 or 1.
    pub side: usize,
    pub calls: i128,
    pub instructions: i128,
}

/// Reason for counting a function as its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FoldReason {
    /// The other kernel has no function of that name: it was inlined, renamed, or is not in the
    /// source.
    Alone,
    /// The other kernel has the function, but here calls its callees directly.
    Between,
}

impl AlignedPath {
    fn new(parent: Option<usize>, frame: RowFrame) -> Self {
        Self {
            parent,
            frame,
            self_figures: Default::default(),
            parts: Vec::new(),
            total: [0; 2],
            children: Vec::new(),
        }
    }

    /// Returns the self instructions, folded functions included.
    pub fn instructions(&self) -> [i128; 2] {
        let mut sums = self.self_figures.map(|own| own.self_ticks);
        self.parts.iter().for_each(|part| sums[part.side] += part.instructions);
        sums
    }

    /// Merges folded functions of equal side, function and reason, and sorts them in that order.
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

    /// Returns the only kernel in which the path occurs; `None` if both have it.
    pub fn only(&self) -> Option<usize> {
        let [a, b] = [0, 1].map(|side| self.total[side] > 0 || self.self_figures[side].calls > 0);
        match [a, b] {
            [true, false] => Some(0),
            [false, true] => Some(1),
            _ => None,
        }
    }
}

/// Aligned paths of both kernels. User code is left out, and every kernel instruction is at exactly
/// one path.
pub(super) struct AlignedPaths {
    pub places: Vec<AlignedPath>,
    pub roots: Vec<usize>,
    /// Instructions of user code in both, including the return path to it.
    pub user: [i128; 2],
    found: HashMap<(Option<usize>, RowFrame), usize>,
}

impl AlignedPaths {
    pub fn new(profiles: [&Profile; 2], difference: &ProfileDifference) -> Self {
        let mut aligned = Self { places: Vec::new(), roots: Vec::new(), user: [0; 2], found: HashMap::new() };
        aligned.fold(profiles, difference);
        aligned.sum();
        let mut next = aligned.roots.clone();
        while let Some(at) = next.pop() {
            aligned.pass_through(at);
            next.extend(&aligned.places[at].children);
        }
        aligned.places.iter_mut().for_each(AlignedPath::tidy);
        aligned
    }

    /// Creates a path for each recorded path; functions that the other kernel lacks are folded into
    /// their callers.
    fn fold(&mut self, profiles: [&Profile; 2], difference: &ProfileDifference) {
        let known = profiles.map(|profile| {
            let kernel = profile.tables.symbols.iter().filter(|symbol| symbol.module.is_none());
            kernel.map(|symbol| source_name(&symbol.name).0).collect::<BTreeSet<&str>>()
        });
        let binaries: BTreeSet<&str> = profiles
            .iter()
            .flat_map(|profile| &profile.tables.symbols)
            .filter_map(|s| s.module.as_deref())
            .collect();
        // The kernel that has the function, if only one has it.
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
            let is_user = match path.frame {
                PathFrame::User => true,
                PathFrame::Function(row) => of_user(row),
                _ => false,
            };
            to[at] = match (&path.frame, parent) {
                (_, parent) if is_user => {
                    [0, 1].iter().for_each(|side| self.user[*side] += path.figures[*side].self_ticks);
                    parent
                }
                (PathFrame::Function(row), Some(parent)) if alone(*row).is_some() => {
                    self.add_part(parent, *row, FoldReason::Alone, path.figures);
                    Some(parent)
                }
                (frame, parent) => {
                    let place = self.place(parent, general(frame));
                    for (own, more) in self.places[place].self_figures.iter_mut().zip(path.figures) {
                        own.calls += more.calls;
                        own.self_ticks += more.self_ticks;
                    }
                    Some(place)
                }
            };
        }
    }

    /// Adds the instructions from the last function's end to user code as a root of their own.
    pub fn add_way_back(&mut self, instructions: [i128; 2]) {
        let place = self.place(None, PathFrame::User);
        for (side, instructions) in instructions.into_iter().enumerate() {
            self.places[place].self_figures[side].self_ticks += instructions;
            self.places[place].total[side] += instructions;
        }
    }

    fn place(&mut self, parent: Option<usize>, frame: RowFrame) -> usize {
        let Self { places, roots, found, .. } = self;
        *found.entry((parent, frame.clone())).or_insert_with(|| {
            places.push(AlignedPath::new(parent, frame));
            let new = places.len() - 1;
            match parent {
                Some(parent) => places[parent].children.push(new),
                None => roots.push(new),
            }
            new
        })
    }

    fn add_part(&mut self, place: usize, row: usize, why: FoldReason, figures: [PathFigures; 2]) {
        for (side, PathFigures { calls, self_ticks: instructions, .. }) in figures.into_iter().enumerate() {
            if calls != 0 || instructions != 0 {
                self.places[place].parts.push(FoldedFunction { row, why, side, calls, instructions });
            }
        }
    }

    /// Sums up totals.
    fn sum(&mut self) {
        self.places.iter_mut().for_each(|place| place.total = place.instructions());
        let parent = |_, place: &AlignedPath| place.parent.unwrap_or(usize::MAX);
        add_up(&mut self.places, parent, |above, below| {
            (0..2).for_each(|side| above.total[side] += below.total[side]);
        });
    }

    /// Folds functions through which one kernel calls what the other calls directly, if at least
    /// half of the function's instructions are in those calls.
    fn pass_through(&mut self, at: usize) {
        loop {
            let children = &self.places[at].children;
            let shared = children.iter().filter_map(|child| Some((self.shared(at, *child)?, *child)));
            // The first one with the most.
            let Some((_, child)) = shared.max_by_key(|(shared, child)| (*shared, std::cmp::Reverse(*child)))
            else {
                return;
            };
            self.dissolve(at, child);
        }
    }

    /// Returns the instructions of a child that are in calls which the other kernel makes from `at`
    /// directly; `None` if they are less than half.
    fn shared(&self, at: usize, child: usize) -> Option<i128> {
        let place = &self.places[child];
        let (side, PathFrame::Function(_)) = (place.only()?, &place.frame) else { return None };
        let directly = |below: &&usize| {
            let frame = &self.places[**below].frame;
            let sibling = self.found.get(&(Some(at), frame.clone()));
            sibling.is_some_and(|same| *same != child && self.places[*same].only() == Some(1 - side))
        };
        let below = place.children.iter().filter(directly);
        let shared: i128 = below.map(|below| self.places[*below].total[side]).sum();
        (shared > 0 && 2 * shared >= place.total[side]).then_some(shared)
    }

    /// Folds a child into its parent.
    fn dissolve(&mut self, at: usize, child: usize) {
        let gone =
            std::mem::replace(&mut self.places[child], AlignedPath::new(None, PathFrame::Unattributed));
        self.places[at].children.retain(|other| *other != child);
        self.found.remove(&(Some(at), gone.frame.clone()));
        if let PathFrame::Function(row) = gone.frame {
            self.add_part(at, row, FoldReason::Between, gone.self_figures);
        }
        self.places[at].parts.extend(gone.parts);
        self.move_below(&gone.children, child, at);
    }

    /// Moves children of `from` below `to`, merging those that exist there.
    fn move_below(&mut self, children: &[usize], from: usize, to: usize) {
        let mut moves: Vec<(usize, usize, usize)> =
            children.iter().rev().map(|child| (*child, from, to)).collect();
        while let Some((place, from, to)) = moves.pop() {
            let frame = self.places[place].frame.clone();
            self.found.remove(&(Some(from), frame.clone()));
            match self.found.get(&(Some(to), frame.clone())).copied() {
                None => {
                    self.found.insert((Some(to), frame), place);
                    self.places[place].parent = Some(to);
                    self.places[to].children.push(place);
                }
                Some(same) => {
                    let gone = std::mem::replace(
                        &mut self.places[place],
                        AlignedPath::new(None, PathFrame::Unattributed),
                    );
                    let into = &mut self.places[same];
                    for side in 0..2 {
                        into.self_figures[side].calls += gone.self_figures[side].calls;
                        into.self_figures[side].self_ticks += gone.self_figures[side].self_ticks;
                        into.total[side] += gone.total[side];
                    }
                    into.parts.extend(gone.parts);
                    moves.extend(gone.children.iter().rev().map(|child| (*child, place, same)));
                }
            }
        }
    }
}

/// Replaces the names of kernel workers by a common one: their division of work is random.
fn general(frame: &RowFrame) -> RowFrame {
    match frame {
        PathFrame::Thread(comm) if comm.starts_with("kworker/") => PathFrame::Thread(WORKER.into()),
        frame => frame.clone(),
    }
}
