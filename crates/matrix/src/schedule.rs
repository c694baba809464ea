//! Chooses the task that a machine begins next (pure).
//!
//! A build takes every CPU, a guest in the emulator takes one. Builds go first, because other tasks
//! wait for their kernels: when one is ready, nothing else begins, so that running tasks end and
//! the build gets the whole machine.

use crate::CoreDemand;

/// Tasks that run on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineLoad {
    /// CPUs that may be used.
    pub cores: usize,
    /// Number of running tasks that take one CPU each.
    pub ones: usize,
    /// True while a task that takes all CPUs is running.
    pub all: bool,
}

/// Returns the index of the task to begin among those that are ready, which are in the plan's
/// order; `None` to wait.
pub fn next(ready: impl IntoIterator<Item = CoreDemand>, load: MachineLoad) -> Option<usize> {
    if load.all {
        return None;
    }
    let mut one = None;
    for (at, cores) in ready.into_iter().enumerate() {
        match cores {
            CoreDemand::All => return (load.ones == 0).then_some(at),
            CoreDemand::One if one.is_none() => one = Some(at),
            CoreDemand::One => {}
        }
    }
    one.filter(|_| load.ones < load.cores.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use CoreDemand::{All, One};

    #[test]
    fn a_build_has_the_machine_to_itself() {
        let load = |ones, all| MachineLoad { cores: 4, ones, all };
        assert_eq!(next([One, All, One], load(0, false)), Some(1));
        assert_eq!(
            next([One, All, One], load(2, false)),
            None,
            "what runs ends first, and nothing new begins"
        );
        assert_eq!(next([One, One], load(0, true)), None);
        assert_eq!(next([One, One], load(3, false)), Some(0));
        assert_eq!(next([One, One], load(4, false)), None);
        assert_eq!(next([], load(0, false)), None);
        assert_eq!(next([One], MachineLoad { cores: 0, ones: 0, all: false }), Some(0));
    }
}
