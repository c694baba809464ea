//! What a machine begins next: pure.
//!
//! A build takes every CPU, a guest in the emulator takes one. Builds go first, since others wait for what they make: as soon as
//! one is ready nothing else is begun, so that it has the machine to itself when what runs has ended.

use crate::Cores;

/// What runs on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// CPUs that may be used.
    pub cores: usize,
    /// Tasks that run and take one each.
    pub ones: usize,
    /// Whether one runs that takes all.
    pub all: bool,
}

/// Which of the tasks that are ready to begin, in the order of the plan; none if the machine is to go on with what it has.
pub fn next(ready: impl IntoIterator<Item = Cores>, load: Load) -> Option<usize> {
    if load.all {
        return None;
    }
    let mut one = None;
    for (at, cores) in ready.into_iter().enumerate() {
        match cores {
            Cores::All => return (load.ones == 0).then_some(at),
            Cores::One if one.is_none() => one = Some(at),
            Cores::One => {}
        }
    }
    one.filter(|_| load.ones < load.cores.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Cores::{All, One};

    #[test]
    fn a_build_has_the_machine_to_itself() {
        let load = |ones, all| Load { cores: 4, ones, all };
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
        assert_eq!(next([One], Load { cores: 0, ones: 0, all: false }), Some(0));
    }
}
