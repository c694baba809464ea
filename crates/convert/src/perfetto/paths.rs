//! Trace of call paths, which have no times.

use super::writer::PacketWriter;
use crate::stacks::CallStacks;
use kerntune_profile::TreeChildren;
use std::io::{self, Write};

/// Writes a track for all threads of a name. Each path is a slice as long as its total; slices
/// follow each other in no order of time. Returns the number of packets.
///
/// # Errors
/// Those of `out`.
pub fn of_paths(stacks: &CallStacks, title: &str, out: impl Write) -> io::Result<u64> {
    let mut out = PacketWriter::new(out, &["path"]);
    out.track(1, None, &format!("{title}, in no order of time"));
    let (inclusive, children) = (stacks.inclusive(), TreeChildren::new(&stacks.paths));
    for (track, root) in (2..).zip(&children.roots) {
        let name = stacks.paths.get(*root).and_then(|path| stacks.frames.get(path.frame));
        out.track(track, Some(1), name.map_or("", |frame| &frame.name));
        // Work to do, the next item last: a path with its begin, or the end of one.
        let mut open: Vec<Result<(usize, u64), u64>> = vec![Ok((*root, 0))];
        while let Some(step) = open.pop() {
            let (path, begin) = match step {
                Ok(path) => path,
                Err(end) => {
                    out.end(end, track);
                    continue;
                }
            };
            let iid = stacks.paths[path].frame as u64 + 1;
            if !out.knows(iid) {
                out.name(iid, stacks.frames.get(stacks.paths[path].frame).map_or("", |frame| &frame.name));
            }
            out.begin(begin, track, iid, 0);
            open.push(Err(begin + inclusive[path]));
            // First the callees, then the self time.
            let mut at = begin;
            let callees: Vec<_> = (children.of[path].iter())
                .filter(|callee| inclusive[**callee] > 0)
                .map(|callee| {
                    let step = Ok((*callee, at));
                    at += inclusive[*callee];
                    step
                })
                .collect();
            open.extend(callees.into_iter().rev());
        }
    }
    out.finish()
}
